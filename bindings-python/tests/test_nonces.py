"""Nonces: their hand-off from lease to lease, and `read_nonce`."""

import asyncio
import contextvars
import functools
import threading
import time
import traceback

import pytest

import leasehold
from leasehold import aio, errors

TTL = 3
SLOT = "0x52908400098527886E0F7030069857D2E4169EE7"


def test_a_nonce_goes_from_lease_to_lease(lh):
    base = 2**64 - 9
    chain, reads, seen = base, [], []

    def read_nonce(slot):
        reads.append(slot)
        return chain

    pool = lh.pool("p", slots=[SLOT], ttl=TTL, read_nonce=read_nonce)
    for outcome, next_on_chain in (("used", 1), ("unused", 1), ("used", 2), ("rejected", 3), ("used", 4), ("unknown", 5)):
        with pool.acquire(timeout=3) as lease:
            seen.append(lease.nonce - base)
            getattr(lease, outcome)()
        chain = base + next_on_chain
    with pool.acquire() as lease:
        seen.append(lease.nonce - base)
        lease.used(next=2**64 - 1)
    # The chain is asked at first, and after each outcome that leaves a doubt.
    assert seen == [0, 1, 1, 2, 3, 4, 5]
    assert reads == [SLOT] * 3
    with pool.acquire() as lease:
        assert lease.nonce == 2**64 - 1
        with pytest.raises(errors.InvalidArgument) as caught:
            lease.used()
        assert caught.value.field == "next"
        lease.unused()


def test_doubt_and_resync(lh):
    pool = lh.pool("p", slots=["a"], ttl=TTL, settle=0.2)
    with pool.acquire(timeout=3) as lease:
        assert lease.resync(10) == 10
        lease.unknown()
    with pool.acquire() as lease:
        assert (lease.in_doubt, lease.nonce) == (True, None)
        with pytest.raises(errors.InvalidArgument):
            lease.used()
        with pytest.raises(errors.Stalled):
            lease.resync(8)
        with pytest.raises(errors.NonceUnavailable):
            lease.read_nonce()
        assert lease.resync(8, rewind=True) == 8
        assert (lease.in_doubt, lease.nonce) == (False, 8)
        lease.rejected(expected=12)
    with pool.acquire() as lease:
        assert lease.nonce == 12
        lease.used()
    with pool.acquire() as lease:
        assert lease.nonce == 13
        # Nothing is said.
    assert pool.inspect()["in_doubt"] == 1


def test_reading_on_demand(lh):
    chain = iter([5, 7])
    pool = lh.pool("p", slots=["a"], ttl=TTL, read_nonce=lambda _: next(chain))
    with pool.acquire(timeout=3) as lease:
        assert lease.nonce == 5
        assert lease.read_nonce() == 7
        assert lease.nonce == 7
        lease.unused()


def refuses(slot):
    raise KeyError(slot)


def with_threads(place, read_nonce):
    pool = place.open().pool("p", slots=[SLOT], ttl=TTL, read_nonce=read_nonce)
    with pool.acquire(timeout=3) as lease:
        lease.unused()
        return lease.nonce


def with_asyncio(place, read_nonce):
    async def main():
        pool = await place.open(aio).pool("p", slots=[SLOT], ttl=TTL, read_nonce=read_nonce)
        async with pool.acquire(timeout=3) as lease:
            lease.unused()
            return lease.nonce

    return asyncio.run(main())


FACES = pytest.mark.parametrize("take", [with_threads, with_asyncio])


async def later(slot):
    await asyncio.sleep(0.001)
    return len(slot)


async def fails(slot):
    await asyncio.sleep(0.001)
    raise KeyError(slot)


@FACES
def test_a_plain_function(place, take):
    assert take(place, len) == 42


@pytest.mark.parametrize("read_nonce", [later, functools.partial(later), lambda slot: later(slot)])
def test_a_coroutine_function(place, read_nonce):
    assert with_asyncio(place, read_nonce) == 42


@FACES
def test_its_exception_is_the_cause(place, take):
    for read_nonce in (refuses, fails) if take is with_asyncio else (refuses,):
        with pytest.raises(errors.NonceUnavailable, match="KeyError: '0x529") as caught:
            take(place, read_nonce)
        assert type(caught.value.__cause__) is KeyError
        assert caught.value.__cause__.args == (SLOT,)
    # The slot was given back each time.
    assert take(place, len) == 42


def test_each_caller_gets_its_own_cause(memory):
    pool = leasehold.open(memory.url).pool("p", slots=[f"s{i}" for i in range(16)], read_nonce=refuses)
    causes = []

    def work(slot):
        for _ in range(20):
            with pytest.raises(errors.NonceUnavailable) as caught:
                pool.acquire(slots=[slot])
            causes.append((slot, *caught.value.__cause__.args))

    threads = [threading.Thread(target=work, args=(f"s{i}",)) for i in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(causes) == 320
    assert all(asked == told for asked, told in causes)


@pytest.mark.parametrize("last", ["a", "aa"])
def test_the_cause_is_that_of_the_slot_that_is_named(memory, last):
    """Of slots that are acquired together each may have an exception of its own."""
    raising = threading.Event()

    def read_nonce(slot):
        if slot == last:
            assert raising.wait(20)
            time.sleep(0.01)
        raising.set()
        error = ValueError("no answer")
        error.slot = slot
        raise error

    pool = leasehold.open(memory.url).pool("p", slots=["a", "aa"], read_nonce=read_nonce)
    with pytest.raises(errors.NonceUnavailable) as caught:
        pool.acquire_many(count=2, timeout=40)
    assert f" for {caught.value.__cause__.slot}: ValueError: no answer" in str(caught.value)


@FACES
@pytest.mark.parametrize("answer", [-1, 2**64, 2**128, 5.0, float("nan"), "5", True, None, [5], object()])
def test_an_answer_that_is_no_nonce(memory, take, answer):
    with pytest.raises(errors.NonceUnavailable) as caught:
        take(memory, lambda _: answer)
    assert type(caught.value.__cause__) is errors.InvalidArgument
    assert "the answer of read_nonce" in str(caught.value.__cause__)


class Later:
    async def __call__(self, slot):
        return await later(slot)


@pytest.mark.parametrize("read_nonce", [later, functools.partial(later), Later(), Later().__call__])
def test_a_coroutine_function_in_the_blocking_api(memory, read_nonce):
    with pytest.raises(errors.InvalidArgument, match=r"is a coroutine function; use leasehold\.aio") as caught:
        leasehold.open(memory.url).pool("p", slots=[SLOT], read_nonce=read_nonce)
    assert caught.value.field == "read_nonce"


def test_a_coroutine_in_the_blocking_api(memory):
    """That it gives one is known only when it is called."""
    with pytest.raises(errors.NonceUnavailable) as caught:
        with_threads(memory, lambda slot: later(slot))
    assert "leasehold.aio" in str(caught.value.__cause__)


@FACES
def test_the_traceback_of_its_exception_begins_with_it(memory, take):
    for read_nonce in (refuses, fails) if take is with_asyncio else (refuses,):
        with pytest.raises(errors.NonceUnavailable) as caught:
            take(memory, read_nonce)
        frames = traceback.extract_tb(caught.value.__cause__.__traceback__)
        assert [frame.name for frame in frames] == [read_nonce.__name__]


@FACES
@pytest.mark.parametrize("raised", [SystemExit, KeyboardInterrupt, asyncio.CancelledError])
def test_what_is_no_exception_is_a_cause_too(memory, take, raised):
    def read_nonce(slot):
        raise raised

    with pytest.raises(errors.NonceUnavailable) as caught:
        take(memory, read_nonce)
    assert type(caught.value.__cause__) is raised


def test_more_than_there_are_threads_for_wait_their_turn(memory):
    """However many ask at once, so many functions run at a time."""
    running, most, lock = 0, 0, threading.Lock()

    def read_nonce(slot):
        nonlocal running, most
        with lock:
            running += 1
            most = max(most, running)
        time.sleep(0.02)
        with lock:
            running -= 1
        return 7

    async def main():
        slots = [f"s{i}" for i in range(700)]
        pool = await aio.open(memory.url).pool("p", slots=slots, read_nonce=read_nonce, timeout=50)
        for lease in await asyncio.gather(*[pool.acquire() for _ in slots]):
            assert lease.nonce == 7
            await lease.release()

    asyncio.run(main())
    assert 1 < most <= 512


def test_what_cannot_be_called(memory):
    for wrong in (5, "f", object()):
        with pytest.raises(errors.InvalidArgument) as caught:
            leasehold.open(memory.url).pool("p", read_nonce=wrong)
        assert caught.value.field == "read_nonce"
    leasehold.open(memory.url).pool("p", read_nonce=None)


def test_it_may_call_back(memory):
    lh = leasehold.open(memory.url)
    other = lh.pool("other", slots=["a"])

    def read_nonce(_):
        with other.acquire() as lease:
            return lease.resync(3)

    assert with_threads(memory, read_nonce) == 3


def test_a_slow_one_holds_up_neither_the_loop_nor_the_timeout(memory):
    async def main():
        pool = await aio.open(memory.url).pool("p", slots=["a"], read_nonce=lambda _: time.sleep(1) or 1)
        acquiring = asyncio.create_task(later_lease(pool))
        begun = time.monotonic()
        await asyncio.sleep(0.01)
        assert time.monotonic() - begun < 0.8
        assert await acquiring == 1
        lease = await pool.acquire()
        assert lease.nonce == 1
        lease.unknown()
        await lease.release()
        begun = time.monotonic()
        with pytest.raises(errors.NonceUnavailable):
            await pool.acquire(timeout=0.05)
        assert time.monotonic() - begun < 0.8

    asyncio.run(main())


async def later_lease(pool):
    async with pool.acquire() as lease:
        lease.unused()
        return lease.nonce


def test_a_cancelled_acquisition_cancels_the_coroutine(memory):
    ends = []

    async def never(_):
        try:
            await asyncio.sleep(30)
        except asyncio.CancelledError:
            ends.append("cancelled")
            raise

    async def main():
        pool = await aio.open(memory.url).pool("p", slots=["a"], read_nonce=never)
        acquiring = asyncio.create_task(later_lease(pool))
        await asyncio.sleep(0.05)
        acquiring.cancel()
        while not ends or not (await pool.inspect())["ready"]:
            await asyncio.sleep(0.005)

    asyncio.run(asyncio.wait_for(main(), 5))
    assert ends == ["cancelled"]


def test_a_coroutine_that_comes_too_late_is_cancelled(memory):
    begun = []

    async def never(_):
        await asyncio.sleep(30)

    def read_nonce(slot):
        begun.append(slot)
        time.sleep(0.2)
        return never(slot)

    async def main():
        pool = await aio.open(memory.url).pool("p", slots=["a"], read_nonce=read_nonce)
        with pytest.raises(errors.NonceUnavailable):
            await pool.acquire(timeout=0.05)
        await asyncio.sleep(0.3)
        end = time.monotonic() + 5
        while len(asyncio.all_tasks()) > 1:
            assert time.monotonic() < end
            await asyncio.sleep(0.005)

    asyncio.run(main())
    assert begun == ["a"]


def test_a_coroutine_runs_on_its_loop_and_in_its_context(memory):
    chain = contextvars.ContextVar("chain")
    seen = []

    async def read_nonce(_):
        seen.append((threading.get_ident(), chain.get()))
        return 1

    async def main():
        chain.set("eth:1")
        pool = await aio.open(memory.url).pool("p", slots=["a"], read_nonce=read_nonce)
        chain.set("eth:2")
        await later_lease(pool)

    asyncio.run(main())
    assert seen == [(threading.get_ident(), "eth:1")]


def test_a_coroutine_whose_loop_closed_is_not_waited_for_long(memory):
    """A pool outlives the loop that opened it; its `read_nonce` does not."""

    async def never(_):
        await asyncio.sleep(30)

    async def opened():
        return await aio.open(memory.url).pool("p", slots=["a"], read_nonce=never)

    async def taken(pool):
        return await pool.acquire(timeout=0.2)

    pool = asyncio.run(opened())
    begun = time.monotonic()
    with pytest.raises(errors.NonceUnavailable):
        asyncio.run(taken(pool))
    assert time.monotonic() - begun < 2
