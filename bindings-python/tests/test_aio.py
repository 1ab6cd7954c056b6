"""The asyncio API over each store."""

import asyncio
import gc
import random
import time

import pytest

import leasehold
from conftest import until
from leasehold import aio, errors

TTL = 3


def test_a_lease_from_its_grant_to_its_end(place):
    async def main():
        async with place.open(aio) as lh:
            pool = await lh.pool("p", slots=["a"], ttl=TTL)
            async with pool.acquire(timeout=3) as lease:
                assert (lease.slot, lease.nonce, lease.in_doubt, lease.held) == ("a", None, False, True)
                assert 0 < lease.remaining <= TTL
                assert (await pool.inspect(["a"]))["slots"][0]["state"] == "leased"
                await lease.renew()
                await lease.renew(ttl=2)
                assert await lease.resync(7) == 7
                lease.used(next=9)
            assert not lease.held
            lease = await pool.acquire()
            assert lease.nonce == 9
            lease.unused()
            await lease.release(cooldown=0)
            assert (await pool.inspect())["ready"] == 1
            statistics = pool.statistics()
            assert (statistics["granted"], statistics["ended"]) == (2, 2)
            for lease in await pool.acquire_many(count=1):
                lease.unused()
                async with lease:
                    pass
        with pytest.raises(errors.Cancelled):
            await lh.pool("q")

    asyncio.run(main())


def test_administration(place):
    async def main():
        pool = await place.open(aio).pool("p", ttl=TTL)
        assert pool.name == "p"
        assert await pool.add(["a", "b"]) == 2
        assert await pool.list() == ["a", "b"]
        for change in (pool.disable, pool.drain, pool.enable, pool.break_lease):
            await change("a")
        await pool.quarantine("b", 60)
        assert (await pool.inspect(["b"]))["ready"] == 1
        await pool.remove("b")
        with pytest.raises(errors.InvalidArgument) as caught:
            await pool.remove("b")
        assert caught.value.field == "slot"

    asyncio.run(main())


def test_at_once_or_not_at_all(memory):
    async def main():
        pool = await aio.open(memory.url).pool("p", slots=["a"])
        async with pool.try_acquire() as lease:
            assert lease.slot == "a"
            assert pool.try_acquire() is None

    asyncio.run(main())


def test_a_block_tells_that_its_lease_was_lost(place):
    async def main():
        pool = await place.open(aio).pool("p", slots=["a"], ttl=0.2)
        with pytest.raises(errors.Lost) as caught:
            async with pool.acquire(timeout=3):
                await asyncio.sleep(0.3)
                raise KeyError
        assert type(caught.value.__context__) is KeyError
        with pytest.raises(errors.Lost):
            async with pool.acquire(timeout=3):
                await asyncio.sleep(0.3)

    asyncio.run(main())


def test_run_holds_a_lease_for_bodies_of_both_kinds(place):
    async def main():
        pool = await place.open(aio).pool("p", slots=["a"], ttl=3)

        async def body(lease):
            with pytest.raises(errors.Exhausted):
                await pool.run(pytest.fail, timeout=0)
            lease.used(await lease.resync(7) + 1)
            return lease.slot

        async def outlives(lease):
            assert await lease.lost()
            return "what it gave"

        async def fails(lease):
            await outlives(lease)
            raise KeyError

        assert await pool.run(body, timeout=3) == "a"

        def now(lease):
            lease.unused()
            return lease.nonce

        assert await pool.run(now) == 8
        with pytest.raises(errors.Lost) as caught:
            await pool.run(outlives, ttl=0.2)
        assert caught.value.result == "what it gave"
        with pytest.raises(errors.Lost) as caught:
            await pool.run(fails, ttl=0.2, timeout=3)
        assert type(caught.value.__context__) is KeyError
        with pytest.raises(asyncio.TimeoutError):
            await asyncio.wait_for(pool.run(lambda lease: asyncio.sleep(30), timeout=3), 0.5)
        with pytest.raises(errors.InvalidArgument, match="^body: must be a function"):
            await pool.run("a")
        assert (await pool.inspect())["ready"] == 1

    asyncio.run(main())


def test_a_slot_goes_from_task_to_task(place):
    async def main():
        pool = await place.open(aio).pool("p", slots=["a", "b"], ttl=5)
        held, fences = set(), []

        async def work():
            for _ in range(5):
                async with pool.acquire(timeout=20) as lease:
                    assert lease.slot not in held
                    held.add(lease.slot)
                    await asyncio.sleep(0.0005)
                    held.remove(lease.slot)
                    fences.append(lease.fence)

        await asyncio.gather(*[work() for _ in range(30)])
        assert len(set(fences)) == 150

    asyncio.run(main())


def test_a_cancelled_acquisition_leaves_nothing(place):
    async def main():
        pool = await place.open(aio).pool("p", slots=["a"], ttl=30 if place.is_memory else TTL)
        async with pool.acquire(timeout=3):
            waiting = [asyncio.create_task(take(pool)) for _ in range(5)]
            while pool.statistics()["waiting"] < 5:
                await asyncio.sleep(0.005)
            for task in waiting:
                task.cancel()
            ends = await asyncio.gather(*waiting, return_exceptions=True)
            assert all(isinstance(end, asyncio.CancelledError) for end in ends)
            with pytest.raises(asyncio.TimeoutError):
                await asyncio.wait_for(pool.acquire(), 0.01)
            while pool.statistics()["waiting"]:
                await asyncio.sleep(0.005)
        async with pool.acquire():
            pass

    asyncio.run(main())


async def take(pool):
    return await pool.acquire(timeout=20)


def test_cancelling_while_grants_arrive(place):
    """Whenever the cancellation comes, the slot comes back, and its nonce is not in doubt: nobody has seen it."""

    async def main():
        pool = await place.open(aio).pool("p", slots=[f"s{i}" for i in range(8)], ttl=TTL)
        for lease in await pool.acquire_many(count=8, timeout=3):
            await lease.resync(5)
            lease.unused()
            await lease.release()
        for _ in range(100):
            tasks = [asyncio.create_task(take(pool)) for _ in range(8)]
            await asyncio.sleep(random.random() * 0.002)
            for task in tasks:
                task.cancel()
            for end in await asyncio.gather(*tasks, return_exceptions=True):
                if isinstance(end, aio.Lease):
                    end.unused()
                    await end.release()
            gc.collect()
        census = {}
        end = time.monotonic() + 5
        while census.get("ready") != 8 and time.monotonic() < end:
            census = await pool.inspect()
        assert (census["ready"], census["in_doubt"]) == (8, 0)

    asyncio.run(main())


def test_a_grant_whose_task_was_cancelled_before_it_ran(redis_place):
    """It rested for the pool's cooldown, though nobody had used it."""

    async def main():
        pool = await redis_place.open(aio).pool("p", slots=["a"], ttl=TTL, cooldown=600)
        lease = await pool.acquire(timeout=3)
        await lease.resync(5)
        lease.unused()
        await lease.release(cooldown=0)
        task = asyncio.create_task(take(pool))
        await asyncio.sleep(0)
        time.sleep(0.1)  # the grant comes while the loop is busy
        asyncio.get_running_loop().call_soon(lambda: asyncio.get_running_loop().call_soon(task.cancel))
        with pytest.raises(asyncio.CancelledError):
            lease = await task  # it came before the loop was busy: on a slow machine
            lease.unused()
            await lease.release(cooldown=0)
            raise asyncio.CancelledError
        task = lease = None
        gc.collect()
        async with pool.acquire() as lease:
            assert lease.nonce == 5
            lease.unused()

    asyncio.run(main())


async def cancelled_when_granted(awaitable):
    """A task that is cancelled after the grant and before it runs again, and that has ended; it keeps its exception."""

    async def take():
        return await awaitable

    def watch():
        waiter = task._fut_waiter
        if waiter is not None and waiter.done():
            task.cancel()
        elif not task.done():
            loop.call_soon(watch)

    loop, task = asyncio.get_running_loop(), asyncio.create_task(take())
    loop.call_soon(watch)
    await asyncio.wait([task])
    assert task.cancelled()
    return task


def test_what_was_granted_to_a_task_that_was_cancelled_goes_back_while_the_task_is_kept(redis_place):
    """It was held for as long as the exception of the task was: a lock that is renewed, for ever."""

    async def main():
        source = leasehold.TokensInMemory()
        source.add("w", "EUR", {"id": "a", "amount": 1})
        lh = redis_place.open(aio, lock_ttl=TTL, response_timeout=1)
        pool = await lh.pool("p", slots=["a"], ttl=TTL, keepalive=True)
        lock, flights = lh.lock("l"), lh.limit("f", max=1, kind="in_flight")
        wallet = lh.tokens("w", source=source, currency="EUR", ttl=TTL, settle=1, max_age=1)
        calls = [
            lambda: pool.acquire(timeout=10),
            lambda: lock.acquire(timeout=10),
            lambda: wallet.select(1, timeout=10),
            lambda: flights.wait_to_reserve(1, ttl=60, timeout=10),
        ]
        for call in calls:
            first = await call()
            await (first.refund() if isinstance(first, aio.Reservation) else first.release())
            kept = await cancelled_when_granted(call())
            end = time.monotonic()
            again = await call()
            assert time.monotonic() - end < TTL / 2
            await (again.refund() if isinstance(again, aio.Reservation) else again.release())
            del kept

    asyncio.run(main())


def test_the_end_of_a_loop_ends_its_acquisitions(place):
    """And not its leases: who has taken the slot out of one may be at work on."""
    kept = []

    async def main():
        pool = await place.open(aio).pool("p", slots=["a"], ttl=8)
        kept.append(await pool.acquire(timeout=30))
        kept.append(asyncio.create_task(take(pool)))
        await asyncio.sleep(0.01)

    async def given_back():
        await kept[0].release()

    asyncio.run(main())
    assert kept[1].cancelled() and kept[0].held
    asyncio.run(given_back())
    kept.clear()
    gc.collect()
    pool = place.open().pool("p", slots=["a"], ttl=8)
    with pool.acquire(timeout=2):
        pass


def test_threads_and_tasks_wait_for_the_same_slots(place):
    plain = place.open().pool("p", slots=["a"], ttl=5)
    lease = plain.acquire(timeout=6)

    async def main():
        pool = await place.open(aio).pool("p", slots=["a"], ttl=5)
        waiting = asyncio.create_task(take(pool))
        while not pool.statistics()["waiting"]:
            await asyncio.sleep(0.005)
        await asyncio.to_thread(lease.release)
        async with await waiting as late:
            assert late.fence > lease.fence

    asyncio.run(main())
    until(lambda: plain.inspect()["ready"] == 1)
