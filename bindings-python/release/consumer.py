"""Code of a user, for the type checker; it also runs."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Iterable
from typing import TYPE_CHECKING, Any
import leasehold
from leasehold import aio
from leasehold.sources import PageAsk, TokenPage, TokenSpec
from leasehold.views import Census, LimitAnswer, LockedToken, Statistics, Token

if TYPE_CHECKING:
    from _typeshed.wsgi import StartResponse, WSGIApplication

def read(address: str) -> int:
    return 7

async def read_later(address: str) -> int:
    return 7

def send_nothing(lease: leasehold.Lease | aio.Lease) -> str:
    lease.unused()
    return lease.slot

async def send_nothing_later(lease: aio.Lease) -> str:
    return send_nothing(lease)

def page(ask: PageAsk) -> TokenPage:
    return {"tokens": [{"id": "a", "amount": 5}, {"id": "b", "amount": "5", "since": 1}], "next": None}

async def page_later(ask: PageAsk) -> list[TokenSpec]:
    return [{"id": ask["wallet"], "amount": 5}]

class Table:
    def page(self, ask: PageAsk) -> TokenPage:
        return page(ask)

    def spent(self, wallet: str, ids: list[str]) -> list[str]:
        return []

class AsyncTable:
    async def page(self, ask: PageAsk) -> list[TokenSpec]:
        return await page_later(ask)

with leasehold.open("memory:x", namespace="eth:1", response_timeout=2) as lh:
    pool: leasehold.Pool = lh.pool("p", slots=["a", {"id": "b", "weight": 3}], ttl=30, strategy="weighted", read_nonce=read)
    with pool.acquire(timeout=1.0, slots=["a"]) as lease:
        nonce: int | None = lease.nonce
        slot: str = lease.slot
        left: float = lease.remaining
        lease.used(next=9)
    of: str = pool.run(send_nothing, timeout=1)
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
    assert answer.as_dict()["retry_after"] == retry
    if not answer:
        again: float | None = answer.retry_after
    group: leasehold.Limit = lh.group([rate, None, rate.at_cost(1)][:2])
    with group.wait_to_reserve("2", ttl=10, timeout=1) as reservation:
        reservation.refund()

    memory = leasehold.TokensInMemory()
    memory.add("w", "EUR", {"id": "a", "amount": 2**255})
    for wallet in (lh.tokens("w", source=page), lh.tokens("w", source=Table(), verify=True), lh.tokens("w", source=memory, currency="EUR")):
        with wallet.select("5", strategy="best_fit", timeout=0) as selection:
            worth: int = selection.sum
            token: Token = selection.tokens[0]
        wallet.hear({"added": {"id": "c", "amount": 1}})
        wallet.hear("gap", "EUR")
        locks: list[LockedToken] = wallet.locks([token["id"]])

    @leasehold.limited(rate)
    def send(to: str) -> int:
        return len(to)

    sent: int = send("0xaa")
    lh.register("login", max=5, period=60)
    of_number: leasehold.Limit = lh.limit_of("login", 7)

    @leasehold.limited(lambda user: lh.limit_of("login", user), cost=lambda user: len(user))
    def login(user: str) -> bool:
        return user != ""

    logged_in: bool = login("ann")

    def serve(environ: dict[str, Any], start_response: StartResponse) -> Iterable[bytes]:
        start_response("200 OK", [])
        return [b""]

    guarded: WSGIApplication = leasehold.wsgi.LimitRequests(serve, lambda environ: lh.limit_of("login", environ["REMOTE_ADDR"]), 2)
    leasehold.wsgi.LimitRequests(guarded, rate)

    waiting: leasehold.options.WaitOptions = {"timeout": 1}
    listed: leasehold.sources.TokenSpec = {"id": "a", "amount": 1}
    looked: leasehold.views.LimitAnswer = rate.peek()
    guard: leasehold.fence.FenceGuard = leasehold.FenceGuard()
    refusal: type[leasehold.errors.Limited] = leasehold.Limited
    decorate = leasehold.limits.limited
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
        of: str = await pool.run(send_nothing_later, timeout=1)
        also: str = await pool.run(send_nothing)
        held: aio.Lease = await pool.acquire()
        wait: Awaitable[aio.Lease] = pool.acquire()
        await held.release()
        await (await wait).release(cooldown=1)
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
        for wallet in (lh.tokens("w", source=page_later), lh.tokens("w", source=AsyncTable()), lh.tokens("w", source=page)):
            async with wallet.select(5, spender="tx") as selection:
                worth: int = selection.change
            selecting: Awaitable[aio.Selection] = wallet.select(0)
            await (await selecting).spent()
        reserving: Awaitable[aio.Reservation] = rate.reserve(ttl=1)
        await (await reserving).commit()

        @leasehold.limited(rate)
        async def send(to: str) -> int:
            return len(to)

        lh.register("login", max=5, period=60)

        @leasehold.limited(lambda user: lh.limit_of("login", user))
        async def login(user: str) -> bool:
            return user != ""

        logged_in: bool = await login("ann")

        async def serve(scope: Any, receive: Any, send: Any) -> None:
            await send({"type": "http.response.start", "status": 200})

        leasehold.asgi.LimitRequests(serve, lambda scope: lh.limit_of("login", scope["client"][0]))
        leasehold.asgi.LimitRequests(serve, rate, cost=2)

        sent: int = await send("0xaa")

async def fenced(locked: aio.Locked) -> int:
    return locked.fence

asyncio.run(main())
