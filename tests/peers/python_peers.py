"""The Python package: over Redis beside redis-py's locks, with asyncio and with one thread, and in memory."""

from __future__ import annotations

import asyncio
import json
import sys
import time
from collections.abc import Awaitable, Callable
from typing import Any

import redis
import redis.asyncio

import leasehold
from bare import Bare

TASKS = 50
TTL = 5.0
SLOTS = [f"0x{number:064x}" for number in range(1_000)]
STRETCH = 100

Samples = dict[tuple[str, str], list[float]]


def main(url: str, rounds: int, seconds: float) -> None:
    samples: Samples = {}
    with (
        leasehold.open(url, namespace="peers") as store,
        leasehold.open() as memory,
        redis.Redis.from_url(url) as client,
        Bare(url) as bare,
    ):
        # The first lease is given when the server has been up for a time to live.
        pool = store.pool("python", slots=SLOTS, ttl=TTL)
        pool.acquire(timeout=30.0).release()
        in_memory = memory.pool("python", slots=SLOTS, ttl=TTL)
        lock = client.lock("lock", timeout=TTL)

        def leased() -> None:
            pool.acquire().release()

        def locked() -> None:
            lock.acquire()
            lock.release()

        def at_once() -> None:
            lease = in_memory.try_acquire()
            assert lease is not None
            lease.release()

        for _ in range(rounds):
            for name, subject, pair in [
                ("redis, 1 thread", "leasehold", leased),
                ("redis, 1 thread", "redis-py Lock", locked),
                ("redis, 1 thread", Bare.PAIR, bare.pair),
                (f"memory, {len(SLOTS)} slots, 1 thread", "leasehold", at_once),
            ]:
                samples.setdefault((name, subject), []).append(repeated(seconds, pair))
            asyncio.run(tasks(url, seconds, samples))
    for (name, subject), figures in samples.items():
        print(json.dumps({"name": name, "subject": subject, "language": "python", "unit": "pairs/s", "samples": figures}))


def repeated(seconds: float, pair: Callable[[], None]) -> float:
    """Pairs a second on this thread."""
    began, pairs = time.perf_counter(), 0
    while time.perf_counter() - began < seconds:
        for _ in range(STRETCH):
            pair()
        pairs += STRETCH
    return pairs / (time.perf_counter() - began)


async def tasks(url: str, seconds: float, samples: Samples) -> None:
    """One round with asyncio."""
    async with leasehold.aio.open(url, namespace="peers") as store, redis.asyncio.Redis.from_url(url) as client:
        pool = await store.pool("python", slots=SLOTS, ttl=TTL)
        locks = [client.lock(f"lock-{number}", timeout=TTL) for number in range(TASKS)]

        async def leased(_: int) -> None:
            lease = await pool.acquire()
            await lease.release()

        async def locked(number: int) -> None:
            await locks[number].acquire()
            await locks[number].release()

        peers: list[tuple[str, Callable[[int], Awaitable[Any]]]] = [("leasehold", leased), ("redis-py Lock", locked)]
        for subject, pair in peers:
            # Connections are made beforehand.
            await asyncio.gather(*(pair(number) for number in range(TASKS)))
            samples.setdefault((f"redis, {TASKS} tasks", subject), []).append(await together(TASKS, seconds, pair))


async def together(count: int, seconds: float, pair: Callable[[int], Awaitable[Any]]) -> float:
    """Pairs a second of all tasks."""
    began, pairs = time.perf_counter(), 0

    async def task(number: int) -> None:
        nonlocal pairs
        while time.perf_counter() - began < seconds:
            await pair(number)
            pairs += 1

    await asyncio.gather(*(task(number) for number in range(count)))
    return pairs / (time.perf_counter() - began)


if __name__ == "__main__":
    quick = sys.argv[2:] == ["quick"]
    main(sys.argv[1], 1 if quick else 5, 0.2 if quick else 0.7)
