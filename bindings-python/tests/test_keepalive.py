"""Leases that are kept alive, and how their holders hear of their end."""

import asyncio
import threading
import time

import pytest

import leasehold
from conftest import until
from leasehold import aio, errors

TTL = 1.5


def opened(place):
    return place.open(response_timeout=0.5)


def test_a_lease_that_is_kept_outlives_its_time_to_live(place):
    with opened(place) as lh:
        pool = lh.pool("kept", slots=["a"], ttl=TTL, keepalive=True)
        with pool.acquire(timeout=10) as lease:
            end = time.monotonic() + 2 * TTL
            while time.monotonic() < end:
                assert lease.held
                # Neither the interpreter nor a thread that waits is needed for renewals.
                time.sleep(0.3)
            assert lease.lost(0) is None
            with pytest.raises(errors.Exhausted):
                pool.acquire(timeout=0)
        assert not lease.held
        assert lease.lost() is None
        pool.acquire(timeout=10).release()


def test_renewals_go_on_while_the_interpreter_is_busy(place):
    with opened(place) as lh:
        pool = lh.pool("busy", slots=["a"], ttl=TTL, keepalive=TTL / 5)
        lease = pool.acquire(timeout=10)
        end = time.monotonic() + 2 * TTL
        while time.monotonic() < end:
            sum(range(100_000))
        assert lease.held
        lease.release()


# MasterLock 5: what was held when `start` was called again was renewed no more.
def test_what_is_opened_and_closed_again_changes_nothing_for_what_is_kept(place):
    with opened(place) as lh:
        lease = lh.pool("again", slots=["a"], ttl=TTL, keepalive=TTL / 5).acquire(timeout=10)
        for _ in range(2):
            with opened(place) as again:
                pool = again.pool("again", slots=["a"], ttl=TTL, keepalive=TTL / 5)
                with pytest.raises(errors.Exhausted):
                    pool.acquire(timeout=0)
        assert lease.lost(timeout=1.5 * TTL) is None
        lease.release()


def test_a_thread_is_told_of_a_loss(place):
    with opened(place) as lh:
        pool = lh.pool("broken", slots=["a"], ttl=TTL, keepalive=True)
        lease = pool.acquire(timeout=10)
        told = []
        listener = threading.Thread(target=lambda: told.append(lease.lost()))
        listener.start()
        pool.break_lease("a")
        listener.join(10)
        assert [type(error) for error in told] == [errors.Lost]
        assert "it has ended" in str(told[0])
        assert not lease.held
        # Late listeners too.
        assert isinstance(lease.lost(), errors.Lost)
        with pytest.raises(errors.Lost):
            lease.release()


def test_the_end_of_a_lease_that_is_not_kept_is_told(place):
    with opened(place) as lh:
        pool = lh.pool("plain", slots=["a"], ttl=TTL)
        lease = pool.acquire(timeout=10)
        assert lease.lost(timeout=TTL / 10) is None
        error = lease.lost(timeout=10)
        assert isinstance(error, errors.Lost)
        assert "its deadline passed" in str(error)
        assert lease.remaining == 0


def test_a_task_is_told_of_a_loss(place):
    async def main():
        async with place.open(aio, response_timeout=0.5) as lh:
            pool = await lh.pool("tasks", slots=["a", "b"], ttl=TTL)
            kept = await pool.acquire(timeout=10, keepalive=True, slots=["a"])
            listener = asyncio.ensure_future(kept.lost())
            # Who stops waiting leaves nothing behind.
            with pytest.raises(asyncio.TimeoutError):
                await asyncio.wait_for(kept.lost(), 2 * TTL)
            assert kept.held and not listener.done()
            await pool.break_lease("a")
            assert isinstance(await asyncio.wait_for(listener, 10), errors.Lost)
            async with pool.acquire(timeout=10, slots=["b"]) as lease:
                listener = asyncio.ensure_future(lease.lost())
                await asyncio.sleep(0)
            assert await asyncio.wait_for(listener, 10) is None

    asyncio.run(main())


def test_bad_intervals_are_named():
    with leasehold.open() as lh:
        pool = lh.pool("intervals", slots=["a"], ttl=2)
        for keepalive in (-1, 0.0001, float("nan"), "yes", 2, 3):
            with pytest.raises(errors.InvalidArgument) as caught:
                pool.acquire(keepalive=keepalive)
            assert caught.value.field == "keepalive"
        lease = pool.acquire()
        with pytest.raises(errors.InvalidArgument) as caught:
            lease.lost(timeout=-1)
        assert caught.value.field == "timeout"
        lease.release()
        until(lambda: pool.inspect()["ready"] == 1)
