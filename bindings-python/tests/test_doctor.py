"""What is found of a store, with threads and with asyncio."""

import asyncio

import pytest

import leasehold
from leasehold import aio, errors

CHECKS = ["version", "policy", "persistence", "role", "clock", "rights", "push"]


def test_a_server_is_looked_at(redis):
    with leasehold.open(redis.url) as lh:
        found = lh.doctor()
    assert [finding["check"] for finding in found] == CHECKS
    verdicts = {finding["check"]: finding["verdict"] for finding in found}
    # It keeps nothing on its disk.
    assert verdicts == dict.fromkeys(CHECKS, "ok") | {"persistence": "warning"}, found
    assert all(set(finding) == {"check", "verdict", "message"} for finding in found)

    async def awaited():
        async with aio.open(redis.url) as lh:
            return await lh.doctor()

    assert asyncio.run(awaited()) == found


def test_what_was_set_wrong_is_found(own_redis):
    with leasehold.open(own_redis.url) as lh:
        lh.doctor()
        own_redis.command("CONFIG SET maxmemory-policy allkeys-lru")
        wrong = next(finding for finding in lh.doctor() if finding["check"] == "policy")
        assert wrong["verdict"] == "error"
        assert "allkeys-lru" in wrong["message"]
        own_redis.kill()
        with pytest.raises(errors.StoreUnavailable):
            lh.doctor()


def test_a_store_in_memory_says_that_it_is_shared_with_nobody(memory):
    with leasehold.open(memory.url) as lh:
        [finding] = lh.doctor()
    assert (finding["check"], finding["verdict"]) == ("store", "ok")
    with pytest.raises(errors.Cancelled):
        lh.doctor()


def test_of_a_quorum_each_finding_says_whose_it_is(redis, memory):
    servers = [memory.url, redis.url]
    with leasehold.open_quorum(servers) as quorum:
        found = quorum.doctor()
    assert [finding["server"] for finding in found] == [0] + [1] * len(CHECKS)

    async def awaited():
        async with aio.open_quorum(servers) as quorum:
            return await quorum.doctor()

    assert asyncio.run(awaited()) == found
