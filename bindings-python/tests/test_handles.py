"""Handles belong to the process that opened them."""

import asyncio
import copy
import pickle

import pytest

import leasehold
from leasehold import aio


def refused(handles):
    for handle in handles:
        for copied in (pickle.dumps, copy.copy, copy.deepcopy):
            with pytest.raises(TypeError, match="open a new one there"):
                copied(handle)


def test_no_handle_is_copied_or_pickled(memory):
    lh, source = leasehold.open(memory.url), leasehold.TokensInMemory()
    pool, lock, limit = lh.pool("p", slots=["a"]), lh.lock("a"), lh.limit("a", max=9, period=60)
    wallet = lh.tokens("w", source=source)
    refused([lh, leasehold.open_quorum([memory.url]), source, pool, lock, limit, wallet])
    refused([pool.acquire(), lock.acquire(), limit.reserve(ttl=1), wallet.select(0)])


def test_nor_with_asyncio(memory):
    async def main():
        lh = aio.open(memory.url)
        pool, lock = await lh.pool("p", slots=["a"]), lh.lock("a")
        refused([lh, pool, lock, await pool.acquire(), await lock.acquire()])

    asyncio.run(main())
