"""The Python package's locks beside redis-py's and pottery's: alone, of one name for many, and from one to the next."""

from __future__ import annotations

import asyncio
import json
import random
import statistics
import sys
import time
import warnings
from collections.abc import Awaitable, Callable
from typing import Any

import pottery
import redis
import redis.asyncio

import leasehold
from bare import Bare
from python_peers import together

TASKS = 50
HOLD = 0.005
WAKES = 10
TTL = 5.0
PATIENCE = 60.0

Pair = Callable[[], None]
Samples = dict[tuple[str, str, str], list[float]]


def main(url: str, rounds: int, seconds: float) -> None:
    samples: Samples = {}
    with (
        leasehold.open(url, namespace="peers", lock_ttl=TTL) as store,
        redis.Redis.from_url(url) as client,
        Bare(url) as bare,
    ):
        # The first lock is given when the server has been up for a time to live.
        store.lock("first", timeout=30.0).acquire().release()
        lock = store.lock("python")
        theirs = client.lock("redis-py", timeout=TTL)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            redlock = pottery.Redlock(key="pottery", masters={client}, auto_release_time=TTL)

        def ours() -> None:
            lock.acquire().release()

        def redis_py() -> None:
            theirs.acquire()
            theirs.release()

        def with_pottery() -> None:
            redlock.acquire()
            redlock.release()

        for _ in range(rounds):
            peers = [("leasehold", ours), ("redis-py Lock", redis_py), ("pottery", with_pottery), (Bare.PAIR, bare.pair)]
            for subject, pair in peers:
                samples.setdefault(("lock, 1 thread", subject, "pairs/s"), []).append(repeated(seconds, pair))
            asyncio.run(tasks(url, seconds, samples))
    for (name, subject, unit), figures in samples.items():
        print(json.dumps({"name": name, "subject": subject, "language": "python", "unit": unit, "samples": figures}))


def repeated(seconds: float, pair: Pair) -> float:
    """Pairs a second on this thread."""
    began, pairs = time.perf_counter(), 0
    while time.perf_counter() - began < seconds:
        pair()
        pairs += 1
    return pairs / (time.perf_counter() - began)


async def tasks(url: str, seconds: float, samples: Samples) -> None:
    """One round with asyncio."""
    async with (
        leasehold.aio.open(url, namespace="peers", lock_ttl=TTL) as store,
        leasehold.aio.open(url, namespace="peers", lock_ttl=TTL) as other,
        redis.asyncio.Redis.from_url(url) as client,
    ):

        class Ours:
            """As redis-py's lock, which one object holds."""

            def __init__(self, name: str, process: int = 0) -> None:
                self.lock = (store, other)[process].lock(name, timeout=PATIENCE)

            async def acquire(self) -> None:
                self.locked = await self.lock.acquire()

            async def release(self) -> None:
                await self.locked.release()

        def theirs(name: str, process: int = 0) -> Any:
            return client.lock(name, timeout=TTL)

        peers: list[tuple[str, Callable[..., Any]]] = [("leasehold", Ours), ("redis-py Lock", theirs)]
        for subject, lock in peers:
            locks = [lock(f"{subject}-{number}") for number in range(TASKS)]

            async def pair(number: int) -> None:
                await locks[number].acquire()
                await locks[number].release()

            # Connections are made beforehand.
            await asyncio.gather(*(pair(number) for number in range(TASKS)))
            for count, name in [(1, "lock, 1 task"), (TASKS, f"lock, {TASKS} tasks")]:
                figure = await together(count, seconds, pair)
                samples.setdefault((name, subject, "pairs/s"), []).append(figure)
            drained = f"lock, {TASKS} contenders of 5 ms, drained"
            samples.setdefault((drained, subject, "ms"), []).append(await drain(lock, subject))
            samples.setdefault(("lock, wake-up", subject, "ms"), []).append(await wake_up(lock, subject))
    with Bare(url) as bare:
        figure = await together(1, seconds, bare.pair_in_task)
        samples.setdefault(("lock, 1 task", Bare.PAIR, "pairs/s"), []).append(figure)


async def drain(lock: Callable[..., Any], subject: str) -> float:
    """How long it takes until all who came together have had the lock for a moment."""

    async def contend() -> None:
        own = lock(f"{subject}-burst")
        await own.acquire()
        await asyncio.sleep(HOLD)
        await own.release()

    began = time.perf_counter()
    await asyncio.gather(*(contend() for _ in range(TASKS)))
    return (time.perf_counter() - began) * 1_000


async def wake_up(lock: Callable[..., Any], subject: str) -> float:
    """How long after it was given back a waiter of another process has the lock: the median."""
    one, other = lock(f"{subject}-woken", 0), lock(f"{subject}-woken", 1)

    async def wait() -> float:
        await other.acquire()
        return time.perf_counter()

    taken = []
    for _ in range(WAKES):
        await one.acquire()
        waits = asyncio.create_task(wait())
        # At no moment of the waiter's own.
        await asyncio.sleep(random.uniform(0.02, 0.07))
        released = time.perf_counter()
        await one.release()
        taken.append((await waits - released) * 1_000)
        await other.release()
    return statistics.median(taken)


if __name__ == "__main__":
    quick = sys.argv[2:] == ["quick"]
    main(sys.argv[1], 1 if quick else 5, 0.2 if quick else 0.7)
