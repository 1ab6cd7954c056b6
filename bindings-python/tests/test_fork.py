import asyncio
import ctypes
import gc
import os
import re
import signal
import time

import pytest

import leasehold
from leasehold import aio, errors
from leasehold._leasehold import trial
from leasehold._settle import settle

# Other threads exist at the fork, as they will in real life; newer Pythons warn of that.
pytestmark = pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork:DeprecationWarning")


def in_child(body, fork=os.fork) -> None:
    """Runs `body` in a fork; its failure, or its hanging, is this test's."""
    pid = fork()
    if pid == 0:
        code = 1
        try:
            signal.alarm(20)
            body()
            code = 0
        except BaseException:
            import traceback

            traceback.print_exc()
        finally:
            os._exit(code)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0


async def nap():
    return await settle(trial.sleep_aio(0.01))


def test_a_child_starts_anew():
    assert trial.sleep(0.01) == 0.01
    assert asyncio.run(nap()) == 0.01

    def child():
        assert trial.sleep(0.01) == 0.01
        assert asyncio.run(nap()) == 0.01

    for _ in range(3):
        in_child(child)
    assert trial.sleep(0.01) == 0.01
    assert asyncio.run(nap()) == 0.01


def test_a_grandchild_too():
    def child():
        assert trial.sleep(0.01) == 0.01
        in_child(lambda: trial.sleep(0.01))

    in_child(child)


def test_handles_stay_with_their_process(lh):
    pool = lh.pool("p", slots=["a"], ttl=3)
    lease = pool.acquire()
    belongs = f"belongs to process {os.getpid()}, not to its fork"

    def child():
        for use in (lambda: lh.pool("q"), lh.close, pool.acquire, pool.try_acquire, pool.statistics, pool.list):
            with pytest.raises(errors.InvalidArgument, match=belongs):
                use()
        for use in (lambda: lease.nonce, lambda: lease.held, lease.used, lease.release, lease.renew):
            with pytest.raises(errors.Lost, match=belongs):
                use()
        with pytest.raises(errors.Lost), lease:
            pass
        assert "of another process" in f"{lh} {pool} {lease}"

    in_child(child)
    assert lease.held
    lease.renew()
    lease.release()


def test_limits_stay_with_their_process(lh):
    limit = lh.limit("signer", max=2, kind="in_flight")
    kept, dropped = limit.reserve(ttl=3600), [limit.reserve(ttl=3600)]
    belongs = f"belongs to process {os.getpid()}, not to its fork"

    def child():
        for use in (lambda: lh.limit("a", max=1, period=1), lambda: lh.group([limit]), limit.used, lambda: limit.at_cost(1)):
            with pytest.raises(errors.InvalidArgument, match=belongs):
                use()
        for use in (lambda: kept.answer, kept.commit, kept.refund):
            with pytest.raises(errors.Lost, match=belongs):
                use()
        with pytest.raises(errors.Lost), kept:
            pass
        dropped.clear()
        gc.collect()

    in_child(child)
    time.sleep(0.1)
    assert limit.used() == 2
    kept.commit()
    assert limit.used() == 1


# The end of the block of a handle, or of a reservation, was an error in place of what ended the child: of `sys.exit(0)`, too.
def test_the_end_of_a_block_of_the_parent_replaces_nothing_in_a_child(place):
    with place.open(lock_ttl=3, response_timeout=0.5) as lh, leasehold.open_quorum(["memory:"]) as quorum:
        limit = lh.limit("signer", max=1, kind="in_flight")
        held = [lh.pool("p", slots=["a"], ttl=3, keepalive=True).acquire(), lh.lock("a").acquire(), limit.reserve(ttl=3600)]

        def child():
            for block in (lh, quorum, *held):
                assert not block.__exit__(SystemExit, SystemExit(0), None)
            for handle in (lh, quorum):
                assert not handle.__exit__(None, None, None)
            for it in held:
                with pytest.raises(errors.Lost, match="not to its fork"):
                    it.__exit__(None, None, None)

        in_child(child)
        # It is the parent's as before.
        for lock in (lh.lock("b"), quorum.lock("b")):
            lock.acquire().release()
        for it in held[:2]:
            it.release()
        assert limit.used() == 1


def test_nor_with_asyncio(place):
    async def main():
        async with place.open(aio, lock_ttl=3, response_timeout=0.5) as lh, aio.open_quorum(["memory:"]) as quorum:
            held = [await lh.lock("a").acquire(), await lh.limit("signer", max=1, kind="in_flight").reserve(ttl=3600)]

            async def end():
                for block in (lh, quorum, *held):
                    await block.__aexit__(SystemExit, SystemExit(0), None)

            def child():
                with pytest.raises(StopIteration):
                    end().send(None)

            in_child(child)
            for lock in (lh.lock("b"), quorum.lock("b")):
                await (await lock.acquire()).release()
            await held[0].release()

    asyncio.run(main())


def test_a_child_gives_nothing_back(lh):
    pool = lh.pool("p", slots=["a"], ttl=5)
    held = [pool.acquire(timeout=6)]

    def child():
        held.clear()
        gc.collect()

    in_child(child)
    time.sleep(0.1)
    held[0].renew()
    assert pool.inspect()["ready"] == 0


def test_a_child_opens_anew(redis_place):
    parent = redis_place.open().pool("p", slots=["a", "b"], ttl=3)
    lease = parent.acquire()
    taken = lease.slot

    def child():
        pool = redis_place.open().pool("p", slots=["a", "b"], ttl=3)
        with pool.acquire() as other:
            assert other.slot != taken

    in_child(child)
    assert parent.inspect()["ready"] == 1
    lease.release()


# Renewed so often that only a machine that stands still for most of the time to live loses what is kept.
TTL = 1.5
KEPT = {"ttl": TTL, "keepalive": 0.2}
OPTIONS = {"response_timeout": 0.5, "lock_ttl": TTL}


# MasterLock 3: the child had no thread that renews, and did not know it.
def test_what_is_kept_is_kept_by_the_parent_and_a_child_that_opens_anew_is_refused_it(redis_place):
    with redis_place.open(**OPTIONS) as lh:
        lease = lh.pool("p", slots=["a"], **KEPT).acquire(timeout=20)
        locked = lh.lock("held", timeout=20, **KEPT).acquire()
        copies = [lease, locked]

        def child():
            for use in (lease.renew, lease.release, locked.release):
                with pytest.raises(errors.Lost, match="not to its fork"):
                    use()
            with redis_place.open(**OPTIONS) as anew:
                pool, lock = anew.pool("p", slots=["a"], **KEPT), anew.lock("held", **KEPT)
                # What it has of its parent's is forgotten, and given back by nobody.
                copies.clear()
                gc.collect()
                with pytest.raises(errors.TimedOut):
                    pool.acquire(timeout=1.5 * TTL)
                for refused in (pool.acquire, lock.acquire):
                    with pytest.raises(errors.Exhausted):
                        refused(timeout=0)
                with anew.lock("own", timeout=20, **KEPT).acquire() as own:
                    assert own.held

        in_child(child)
        assert lease.held and locked.held
        lease.release()
        locked.release()


def test_a_child_keeps_nothing_for_a_parent_that_is_gone(redis_place):
    reads, writes = os.pipe()
    parent = os.fork()
    if parent == 0:
        try:
            signal.alarm(20)
            lh = redis_place.open(**OPTIONS)
            kept = lh.pool("p", slots=["a"], **KEPT).acquire(timeout=20), lh.lock("held", timeout=20, **KEPT).acquire()
            child = os.fork()
            if child == 0:
                signal.alarm(20)
                while all(kept):
                    signal.pause()
            os.write(writes, child.to_bytes(4, "big"))
            os.kill(os.getpid(), signal.SIGKILL)
        finally:
            os._exit(1)
    assert os.waitstatus_to_exitcode(os.waitpid(parent, 0)[1]) == -signal.SIGKILL
    child = int.from_bytes(os.read(reads, 4), "big")
    os.close(reads)
    os.close(writes)
    with redis_place.open(**OPTIONS) as lh:
        for kept in (lh.pool("p", slots=["a"], **KEPT), lh.lock("held", **KEPT)):
            with kept.acquire(timeout=10):
                pass
    # It was there to the end.
    os.kill(child, signal.SIGKILL)


def test_a_fork_while_calls_are_under_way():
    async def main():
        calls = [asyncio.create_task(settle(trial.sleep_aio(0.3))) for _ in range(20)]
        await asyncio.sleep(0.01)
        in_child(lambda: trial.sleep(0.01))
        return await asyncio.gather(*calls)

    assert len(asyncio.run(main())) == 20


def test_a_call_of_the_parent_is_not_aborted_by_a_child():
    async def main():
        calls = [trial.sleep_aio(0.1)]

        def child():
            with pytest.raises(errors.Lost):
                calls[0].abort(None)
            calls.clear()

        in_child(child)
        return await settle(calls[0])

    assert asyncio.run(main()) == 0.1


@pytest.mark.parametrize("fork", [os.fork, ctypes.PyDLL(None).fork], ids=["told of it", "behind Python's back"])
def test_a_child_sends_nothing_of_what_its_parent_was_about_to_send(own_redis, fork):
    """It ran the task that the parent held until the end of its turn, and wrote to the connection of both: two answers came to one question."""

    def scripts() -> int:
        told = own_redis.told("INFO commandstats").decode()
        return int(re.search(r"cmdstat_evalsha:calls=(\d+)", told)[1])

    def use_of_its_own():
        with leasehold.open("memory:").pool("q", slots=["x"], ttl=3).acquire(timeout=0):
            pass

    async def forks():
        in_child(use_of_its_own, fork)

    async def main():
        async with aio.open(own_redis.url) as lh:
            pool = await lh.pool("p", slots=["a", "b"], ttl=3)
            await (await pool.acquire(timeout=20)).release()
            before = scripts()
            # The first has begun when the other forks, and sends as the turn ends.
            lease, _ = await asyncio.gather(pool.acquire(timeout=0), forks())
            assert scripts() - before == 1
            async with pool.acquire(timeout=0) as other:
                assert other.slot != lease.slot
            await lease.release()

    asyncio.run(main())
