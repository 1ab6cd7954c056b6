"""The Python package's limits beside the package limits: with asyncio and with one thread, over Redis and in memory."""

from __future__ import annotations

import asyncio
import json
import sys
from typing import Any

import limits
import limits.aio.storage
import limits.aio.strategies
import limits.storage
import limits.strategies

import leasehold
from bare import Bare
from python_peers import repeated, together

TASKS = 50
MANY = 1_000_000_000
PERIOD = 3_600

Samples = dict[tuple[str, str], list[float]]


def main(url: str, rounds: int, seconds: float) -> None:
    samples: Samples = {}
    item = limits.RateLimitItemPerHour(MANY)
    redis = limits.strategies.FixedWindowRateLimiter(limits.storage.RedisStorage(url))
    memory = limits.strategies.FixedWindowRateLimiter(limits.storage.MemoryStorage())
    with leasehold.open(url, namespace="peers") as store, leasehold.open() as here, Bare(url) as bare:
        limit = store.limit("python", max=MANY, period=PERIOD)
        in_memory = here.limit("python", max=MANY, period=PERIOD)
        for _ in range(rounds):
            for name, subject, check in [
                ("limits, redis, 1 thread", "leasehold", lambda: limit.increment()),
                ("limits, redis, 1 thread", "limits", lambda: redis.hit(item, "python")),
                ("limits, redis, 1 thread", Bare.CHECK, bare.check),
                ("limits, memory, 1 thread", "leasehold", lambda: in_memory.increment()),
                ("limits, memory, 1 thread", "limits", lambda: memory.hit(item, "python")),
            ]:
                samples.setdefault((name, subject), []).append(repeated(seconds, check))
            asyncio.run(tasks(url, seconds, samples))
    for (name, subject), figures in samples.items():
        print(json.dumps({"name": name, "subject": subject, "language": "python", "unit": "checks/s", "samples": figures}))


async def tasks(url: str, seconds: float, samples: Samples) -> None:
    """One round with asyncio."""
    item = limits.RateLimitItemPerHour(MANY)
    # The same client as everywhere here; its other one is slower.
    storage = limits.aio.storage.RedisStorage(f"async+{url}", implementation="redispy")
    theirs = limits.aio.strategies.FixedWindowRateLimiter(storage)
    async with leasehold.aio.open(url, namespace="peers") as store:
        limit = store.limit("python-tasks", max=MANY, period=PERIOD)

        async def ours(_: int) -> Any:
            return await limit.increment()

        async def hit(_: int) -> Any:
            return await theirs.hit(item, "python-tasks")

        for subject, check in [("leasehold", ours), ("limits", hit)]:
            for count in (1, TASKS):
                # Connections are made beforehand.
                await asyncio.gather(*(check(number) for number in range(count)))
                name = f"limits, redis, {count} task{'s' if count > 1 else ''}"
                samples.setdefault((name, subject), []).append(await together(count, seconds, check))
    with Bare(url) as bare:
        figure = await together(1, seconds, bare.check_in_task)
        samples.setdefault(("limits, redis, 1 task", Bare.CHECK), []).append(figure)


if __name__ == "__main__":
    quick = sys.argv[2:] == ["quick"]
    main(sys.argv[1], 1 if quick else 5, 0.2 if quick else 0.7)
