"""What its holder dropped without giving it back: who took a part of it out may still be at work."""

import asyncio
import gc
import os
import signal
import subprocess
import sys
import textwrap
import threading
import time
import warnings

import pytest

import leasehold
from conftest import until
from leasehold import aio, errors
from wallets import AT_ONCE, BRIEF, source_of, two

LONG = 600


@pytest.fixture
def lh(place):
    with place.open(lock_ttl=3, response_timeout=0.5) as lh:
        yield lh


def complained(thing):
    return pytest.warns(ResourceWarning, match=f"^the {thing} was dropped without being given back; it ends at its deadline")


def test_who_took_slot_and_nonce_out_of_a_lease_has_them_alone(lh):
    pool = lh.pool("p", slots=["a", "b", "c"], ttl=3, read_nonce=lambda _: 7)

    def next_account():
        lease = pool.acquire(timeout=6)
        return lease.slot, lease.nonce

    with complained("lease of [abc]"):
        accounts = [next_account(), next_account()]
    assert {nonce for _, nonce in accounts} == {7}
    assert len({slot for slot, _ in accounts}) == 2
    assert pool.inspect()["ready"] == 1


def test_so_has_who_took_it_out_with_asyncio(memory):
    async def main():
        pool = await aio.open(memory.url).pool("p", slots=["a", "b"], ttl=LONG)

        async def next_account():
            return (await pool.acquire()).slot

        with complained("lease of [ab]"):
            accounts = {await next_account(), await next_account()}
            # The loop still has the last one for this turn.
            await asyncio.sleep(0)
            gc.collect()
        assert accounts == {"a", "b"}
        with pytest.raises(errors.Exhausted):
            await pool.acquire(timeout=0)

    asyncio.run(main())


def test_one_of_many_and_one_that_was_tried_for(memory):
    pool = leasehold.open(memory.url).pool("p", slots=["a", "b", "c"], ttl=LONG)
    with complained("lease of [abc]"):
        pool.try_acquire()
    leases = pool.acquire_many(count=2)
    with complained("lease of [abc]"):
        del leases[0]
    assert (pool.statistics()["leased"], pool.inspect()["ready"]) == (1, 0)
    leases[0].release()
    assert pool.inspect()["ready"] == 1


def test_it_is_kept_no_more_and_ends_at_its_deadline_in_doubt(lh):
    pool = lh.pool("p", slots=["a"], ttl=2, keepalive=0.2, max_hold=0, read_nonce=lambda _: 7)
    lease = pool.acquire(timeout=6)
    lease.used()
    with complained("lease of a"):
        del lease
    assert pool.inspect()["ready"] == 0
    until(lambda: pool.inspect()["ready"] == 1, seconds=20)
    assert pool.inspect()["in_doubt"] == 1


def test_a_lock_that_nobody_keeps_protects_to_its_deadline(lh):
    lock = lh.lock("a", timeout=20)
    lock.acquire().release()
    with complained("lock of a, b"):
        lh.lock(["a", "b"], timeout=6).acquire()
    with pytest.raises(errors.Exhausted):
        lock.acquire(timeout=0)
    lock.acquire().release()


def test_a_quorum_too():
    quorum = leasehold.open_quorum([f"memory:forgotten-{number}" for number in range(3)])
    with complained("lock of a"):
        quorum.lock("a").acquire()
    with pytest.raises(errors.Exhausted):
        quorum.lock("a").acquire(timeout=0)


def test_one_who_shares_a_lock_ends_it_for_all(memory):
    lock = leasehold.open(memory.url, lock_ttl=1).lock("a", reentrant=True, keepalive=False)
    first = lock.acquire()
    with complained("lock of a"):
        lock.acquire()
    first.release()
    with pytest.raises(errors.Exhausted):
        leasehold.open(memory.url, lock_ttl=1).lock("a").acquire(timeout=0)


def test_a_selection_too(memory):
    here, there, _ = two(memory, {"a": 1}, keepalive=False)
    with complained(r"selection of 1 token\(s\)"):
        here.select(1)
    with pytest.raises(errors.LockedUntil):
        there.select(1, **AT_ONCE)
    there.select(1, timeout=30).release()


def test_what_was_given_back_is_not_complained_of(memory):
    here, *_ = two(memory, {"a": 1, "b": 1})
    lh = leasehold.open(memory.url)
    pool, lock = lh.pool("p", slots=["a"], ttl=LONG), lh.lock("a")
    brief = lh.pool("q", slots=["a"], ttl=0.02)
    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always")
        for held in (pool.acquire(), lock.acquire(), here.select(1)):
            held.release()
        for held in (pool.acquire(), lock.acquire(), here.select(1)):
            with held:
                pass
        here.select(1).spent()
        assert here.select(0).held
        # Nobody relies on what is over.
        over = brief.acquire()
        until(lambda: not over.held)
        pool.acquire().release()
        del held, over
        gc.collect()
    assert not heard
    assert pool.inspect()["ready"] == 1


def test_an_exception_on_its_way_goes_on(memory):
    pool = leasehold.open(memory.url).pool("p", slots=["a"], ttl=LONG)
    with complained("lease of a"), pytest.raises(IndexError):
        [lease for lease in [pool.acquire()] if lease.slot][5]


def test_a_warning_that_is_an_error_has_nobody_to_be_raised_at(memory, monkeypatch):
    pool = leasehold.open(memory.url).pool("p", slots=["a"], ttl=LONG)
    heard = []
    monkeypatch.setattr(sys, "unraisablehook", lambda it: heard.append(type(it.exc_value)))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        pool.acquire()
    assert heard == [ResourceWarning]
    assert pool.inspect()["ready"] == 0


def test_what_is_granted_at_the_moment_of_ctrl_c_is_given_back_at_once(memory):
    """Nobody has seen it: the call does not come back with it."""
    pool = leasehold.open(memory.url).pool("p", slots=["a"], ttl=LONG, read_nonce=lambda _: 7)
    for _ in range(10):
        held = pool.acquire()
        held.unused()

        def interrupt(held=held):
            until(lambda: pool.statistics()["waiting"] == 1)
            os.kill(os.getpid(), signal.SIGINT)
            held.release()

        thread = threading.Thread(target=interrupt)
        thread.start()
        with pytest.raises(KeyboardInterrupt):
            pool.acquire(timeout=50)
        thread.join()
        until(lambda: pool.inspect()["ready"] == 1)
    assert pool.inspect()["in_doubt"] == 0


@pytest.mark.parametrize("kind", ["lease", "lock", "selection"])
def test_what_was_granted_to_a_cancelled_task_is_given_back_at_once(redis_place, kind):
    """Nobody has seen it."""

    async def main():
        lh = redis_place.open(aio, lock_ttl=8)
        pool = await lh.pool("p", slots=["a"], ttl=8)
        wallet = lh.tokens("w", source=lambda ask: [{"id": "a", "amount": 1}], ttl=8, settle=8, max_age=1)
        takes = {"lease": pool.acquire, "lock": lh.lock("a").acquire, "selection": lambda **wait: wallet.select(1, **wait)}
        take = takes[kind]
        # A server grants nothing for one time to live after its start.
        await (await take(timeout=30)).release()

        async def taken():
            return await take(timeout=30)

        for _ in range(5):
            task = asyncio.create_task(taken())
            await asyncio.sleep(0)
            # The grant comes while the loop is busy.
            time.sleep(0.1)
            asyncio.get_running_loop().call_soon(lambda task=task: asyncio.get_running_loop().call_soon(task.cancel))
            with pytest.raises(asyncio.CancelledError):
                await (await task).release()
                raise asyncio.CancelledError
            del task
            gc.collect()
            # Long before the deadline.
            await (await take(timeout=4)).release()

    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always")
        asyncio.run(main())
        gc.collect()
    assert not [it for it in heard if it.category is ResourceWarning and "dropped" in str(it.message)]


@pytest.mark.parametrize(("held", "complaints"), [("lease = pool.acquire()", 0), ("pool.acquire()", 1)])
def test_the_exit_gives_back_without_a_word(held, complaints):
    script = f"""
        import leasehold
        lh = leasehold.open()
        pool, lock = lh.pool("p", slots=["s"], ttl=600), lh.lock("a")
        {held}
        locked, cycle = lock.acquire(), []
        cycle.append((cycle, lh.lock("b").acquire()))
    """
    run = [sys.executable, "-X", "dev", "-c", textwrap.dedent(script)]
    ended = subprocess.run(run, check=True, timeout=30, capture_output=True, text=True)
    assert ended.stderr.count("ResourceWarning") == complaints, ended.stderr
    assert "Exception ignored" not in ended.stderr


def test_what_an_exception_drops_that_its_caller_never_saw_is_given_back(memory):
    """As Ctrl-C does between a call that acquires and what is done with what it gives: it was held to its deadline."""
    lh = leasehold.open(memory.url, lock_ttl=LONG)
    pool = lh.pool("p", slots=["a"], ttl=LONG)
    wallet = lh.tokens("w", source=source_of({"a": 1}), **BRIEF)
    lock = lh.lock("n", timeout=0)

    def raises():
        raise KeyboardInterrupt

    for acquire in (
        lambda: pool.acquire(timeout=0),
        lambda: pool.acquire_many(count=1, timeout=0),
        lambda: pool.try_acquire(),
        lock.acquire,
        lambda: wallet.select(1, timeout=0),
    ):
        for _ in range(2):
            with pytest.raises(KeyboardInterrupt):
                # What was granted is dropped as the exception leaves the expression.
                (acquire(), raises())


def test_a_reservation_that_its_caller_never_saw_is_given_back(memory):
    """It stayed charged, for good what has no period, and what it had in flight blocked its place to the end of its ttl."""
    lh = leasehold.open(memory.url)
    for limit in (lh.limit("ever", max=3, kind="lifetime"), lh.limit("flights", max=3, kind="in_flight")):

        def raises():
            assert limit.remaining() == 0
            raise KeyboardInterrupt

        for _ in range(2):
            with pytest.raises(KeyboardInterrupt):
                (limit.reserve(3, ttl=LONG), raises())
        assert limit.remaining() == 3
        with pytest.raises(ZeroDivisionError):
            reserved = limit.reserve(3, ttl=LONG)
            assert reserved.id
            raise ZeroDivisionError
        del reserved
        assert limit.remaining() == 0


def test_what_was_used_before_an_exception_ends_at_its_deadline(memory):
    pool = leasehold.open(memory.url).pool("p", slots=["a"], ttl=LONG)

    def raises(slot):
        raise KeyboardInterrupt

    with complained("lease of a"), pytest.raises(KeyboardInterrupt):
        raises(pool.acquire().slot)
    assert pool.inspect()["ready"] == 0
