"""Code of a user, for the type checker; it also runs."""

import asyncio
from collections.abc import Awaitable
import leasehold
from leasehold import aio
from leasehold.views import Census, LimitAnswer, Statistics

def read(address: str) -> int:
    return 7

async def read_later(address: str) -> int:
    return 7

with leasehold.open("memory:x", namespace="eth:1", response_timeout=2) as lh:
    pool: leasehold.Pool = lh.pool("p", slots=["a", {"id": "b", "weight": 3}], ttl=30, strategy="weighted", read_nonce=read)
    with pool.acquire(timeout=1.0, slots=["a"]) as lease:
        nonce: int | None = lease.nonce
        slot: str = lease.slot
        left: float = lease.remaining
        lease.used(next=9)
    many: list[leasehold.Lease] = pool.acquire_many(count=2)
    maybe: leasehold.Lease | None = pool.try_acquire()
    census: Census = pool.inspect(["a"])
    total: int = census["total"]
    s: Statistics = pool.statistics()
    names: list[str] = pool.list()
    lock: leasehold.Lock = lh.lock("account:13", ttl=10, keepalive=True, reentrant=True)
    with lock.acquire(timeout=0) as locked:
        fence: int = locked.fence
        held_names: list[str] = locked.names
    ran: int = lock.run(lambda it: it.fence, timeout=1)
    perhaps: int | None = lock.run(lambda it: it.fence if it else None, unless=False)
    rate: leasehold.Limit = lh.limit("logins", max=5, period=60, kind="gcra", burst=9, outage="open")
    answer: LimitAnswer = rate.take(2)
    retry: float | None = answer["retry_after"]
    group: leasehold.Limit = lh.group([rate, None, rate.at_cost(1)][:2])
    with group.wait_to_reserve("2", ttl=10, timeout=1) as reservation:
        reservation.refund()

    @leasehold.limited(rate)
    def send(to: str) -> int:
        return len(to)

    sent: int = send("0xaa")
leasehold.open({"mode": "shared", "retry_timeout": 1, "redis": {"endpoint": "redis://127.0.0.1"}})
try:
    pass
except leasehold.InvalidArgument as error:
    field: str | None = error.field
    code: str = error.code

async def main() -> None:
    async with leasehold.aio.open() as lh:
        pool = await lh.pool("p", slots=["a"], read_nonce=read_later)
        await lh.pool("p", read_nonce=read)
        async with pool.acquire(timeout=1) as lease:
            n: int = await lease.resync(7)
        held: aio.Lease = await pool.acquire()
        wait: Awaitable[aio.Lease] = pool.acquire()
        await held.release(cooldown=1)
        async with lh.lock(["a", "b"]).acquire(timeout=1) as locked:
            fence: int = locked.fence
        waits: Awaitable[aio.Locked] = lh.lock("c").acquire()
        await (await waits).release()
        later: int = await lh.lock("a").run(fenced)
        now: int = await lh.lock("a").run(lambda it: it.fence)
        maybe: int | None = await lh.lock("a").run(lambda it: it.fence if it else None, if_=True)
        async with lh.limit("wei", max=2**255, kind="lifetime").reserve(2**200, ttl=1) as reserved:
            left: int = reserved.answer["remaining"]
        rate = lh.limit("logins", max=5, period=60)
        taken: bool = await lh.group([rate, None]).increment()
        reserving: Awaitable[aio.Reservation] = rate.reserve(ttl=1)
        await (await reserving).commit()

        @leasehold.limited(rate)
        async def send(to: str) -> int:
            return len(to)

        sent: int = await send("0xaa")

async def fenced(locked: aio.Locked) -> int:
    return locked.fence

asyncio.run(main())
