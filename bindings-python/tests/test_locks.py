"""Named locks, with threads and with asyncio."""

import asyncio
import functools
import threading
import time

import pytest

import leasehold
from conftest import until
from leasehold import aio, errors
from leasehold._leasehold import trial

# Renewed so often that only a machine that stands still for most of the time to live loses a lock.
TTL = 1.5
OPTIONS = {"response_timeout": 0.5, "lock_ttl": TTL}
KEPT = {"keepalive": 0.2, "timeout": 30}
# One that ends by itself, and soon.
BRIEF = {"ttl": 0.2, "keepalive": False}


def opened(place):
    return place.open(**OPTIONS)


@pytest.fixture
def lh(place):
    with opened(place) as lh:
        # A server that has just started grants no lock for a while.
        lh.lock("first", timeout=20).acquire().release()
        yield lh


@pytest.fixture
def other(place, lh):
    with opened(place) as other:
        yield other


def is_free(other, names):
    try:
        other.lock(names, timeout=0).acquire().release()
    except errors.Exhausted:
        return False
    return True


class Room:
    """Fails if two are inside at once."""

    def __init__(self):
        self.inside = 0

    def __call__(self, _locked):
        self.inside += 1
        assert self.inside == 1, "two were inside at once"
        time.sleep(0.001)
        self.inside -= 1

    async def visit(self, _locked):
        self.inside += 1
        assert self.inside == 1, "two were inside at once"
        await asyncio.sleep(0.001)
        self.inside -= 1


def together(*bodies):
    """Runs each on a thread of its own; what one of them raises is raised."""
    raised = []

    def run(body):
        try:
            body()
        except BaseException as error:
            raised.append(error)

    threads = [threading.Thread(target=run, args=(body,)) for body in bodies]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(50)
    if raised:
        raise raised[0]
    assert not any(thread.is_alive() for thread in threads)


def test_run_gives_what_its_body_gives_and_holds_the_lock_meanwhile(lh, other):
    lock = lh.lock(["account:13", "Account:13"], **KEPT)
    fences = []

    def body(locked):
        assert locked.names == ["account:13", "Account:13"]
        assert locked.held
        assert 0 < locked.remaining <= TTL
        assert locked.lost(0) is None
        assert (is_free(other, "account:13"), is_free(other, "account:14")) == (False, True)
        fences.append(locked.fence)
        return "what it gave"

    assert [lock.run(body), lock.run(body)] == ["what it gave"] * 2
    assert fences[0] < fences[1]
    assert is_free(other, ["Account:13", "account:13"])


def test_what_the_body_raises_comes_through_and_the_lock_is_free(lh, other):
    with pytest.raises(ZeroDivisionError) as caught:
        lh.lock("a").run(lambda locked: 1 // 0)
    assert caught.value.__context__ is None
    assert is_free(other, "a")
    # Also an error of this library that is not about the lock.
    with pytest.raises(errors.Lost) as lost:
        lh.lock("a").run(lambda locked: trial.fail("lost", "another"))
    assert (str(lost.value), lost.value.result) == ("another", None)


def test_contenders_are_never_inside_together(lh, other):
    room = Room()

    def contend(handle):
        lock = handle.lock("contended", **KEPT)
        for _ in range(20):
            lock.run(room)

    together(*[lambda handle=handle: contend(handle) for handle in (lh, other) * 2])


def test_several_names_in_opposite_orders_do_not_deadlock(lh, other):
    left, right = Room(), Room()

    def contend(handle, names):
        lock = handle.lock(names, **KEPT)
        for _ in range(40):
            lock.run(lambda locked: (left(locked), right(locked)))

    together(lambda: contend(lh, ["left", "right"]), lambda: contend(other, ("right", "left")))


def test_timeout_bounds_the_waiting_and_0_is_one_attempt(lh, other):
    with lh.lock("a").acquire():
        lock = other.lock("a", timeout=0)
        with pytest.raises(errors.Exhausted):
            lock.acquire()
        with pytest.raises(errors.TimedOut):
            lock.acquire(timeout=0.5)
        with pytest.raises(errors.TimedOut):
            lock.run(pytest.fail, timeout=0.5)


# redis-py's lives for ever, and is waited for as long.
def test_a_lock_of_which_nothing_is_said_lives_for_a_minute_and_is_waited_for_for_five_seconds(memory):
    with memory.open() as lh, lh.lock("a").acquire() as held:
        assert 50 < held.remaining <= 60
        begun = time.monotonic()
        with pytest.raises(errors.TimedOut):
            lh.lock("a").acquire()
        assert 4.9 < time.monotonic() - begun < 20


def test_who_acquires_it_again_is_refused_unless_the_lock_is_reentrant(lh):
    lock = lh.lock("a", timeout=0)
    with lock.acquire():
        for options in ({}, {"reentrant": True}):
            with pytest.raises(errors.Exhausted):
                lock.acquire(**options)


def test_releasing_one_of_two_reentrant_holds_does_not_free_the_lock(lh, other):
    lock = lh.lock(["one", "two"], reentrant=True, timeout=0)
    with lock.acquire() as outer:
        inner = lock.acquire()
        assert inner.fence == outer.fence
        inner.release()
        inner.release()
        assert (inner.held, outer.held) == (False, True)
        assert not is_free(other, "one")
        assert lock.run(lambda locked: locked.fence) == outer.fence
        assert not is_free(other, "two")
    assert is_free(other, ["two", "one"])


def test_a_reentrant_lock_that_was_lost_is_acquired_anew(lh):
    lock = lh.lock("a", reentrant=True, **BRIEF)
    lost = lock.acquire()
    until(lambda: not lost.held)
    with lock.acquire(ttl=TTL, **KEPT) as anew:
        assert anew.fence > lost.fence
        with pytest.raises(errors.Lost):
            lost.release()
        assert anew.held


def test_one_that_nobody_keeps_alive_is_prolonged_by_its_holder(lh):
    locked = lh.lock(["a", "b"], ttl=1.0, keepalive=False).acquire()
    locked.renew(1.0)
    before = locked.remaining
    assert before <= 1.0
    locked.renew()
    assert before < locked.remaining <= TTL
    for wrong in [TTL + 0.001, 0, "1"]:
        with pytest.raises(errors.InvalidArgument) as error:
            locked.renew(wrong)
        assert error.value.field == "ttl"
    locked.release()
    with pytest.raises(errors.Lost):
        locked.renew()


def test_renewals_end_at_max_hold(lh, other):
    locked = lh.lock("bounded", max_hold=0.4, **KEPT).acquire()
    assert locked.lost(20).code == "lost"
    until(lambda: is_free(other, "bounded"))
    with pytest.raises(errors.InvalidArgument) as error:
        lh.lock("bounded", max_hold=-1)
    assert error.value.field == "max_hold"


def test_who_holds_it_is_seen_from_elsewhere_and_ended_by_force(lh, other):
    held = lh.lock("seen", **KEPT).acquire()
    lock = other.lock(["free", "seen"])
    free, seen = lock.inspect()
    assert free == {"name": "free", "held": False, "holder": None, "fence": None, "since": None, "left": 0.0}
    assert (seen["name"], seen["held"], seen["fence"]) == ("seen", True, held.fence)
    assert len(seen["holder"]) == 32
    assert abs(seen["since"] - time.time()) < 60
    assert 0 < seen["left"] <= TTL
    lock.break_lease()
    assert is_free(other, "seen")
    assert held.lost(20).code == "lost"


def test_asyncio_prolongs_sees_and_ends_locks(memory):
    async def main():
        async with aio.open(memory.url) as lh:
            lock = lh.lock(["a", "b"], ttl=20, keepalive=False)
            locked = await lock.acquire()
            await locked.renew(50)
            assert locked.remaining > 20
            assert [state["held"] for state in await lock.inspect()] == [True, True]
            await lock.break_lease()
            assert [state["held"] for state in await lock.inspect()] == [False, False]
            with pytest.raises(errors.Lost):
                await locked.renew()

    asyncio.run(main())


def test_a_holder_is_told_of_who_steals_and_yields(lh, other):
    low = lh.lock("stolen", priority=-1, **KEPT).acquire()
    assert low.claimed(timeout=0) is None
    told = []

    def obliges():
        told.append(low.claimed())
        low.release()

    holder = threading.Thread(target=obliges)
    holder.start()
    with other.lock("stolen", steal=True, **KEPT).acquire() as high:
        holder.join()
        assert isinstance(told[0], errors.Claimed)
        assert high.fence > low.fence
        # Who is equal is not robbed.
        with pytest.raises(errors.TimedOut):
            lh.lock("stolen", steal=True, timeout=0.5).acquire()
    # Whose lock ends is not claimed.
    assert high.claimed() is None
    assert 0 < other.lock("stolen").handshake < 30
    assert lh.lock("stolen").handshake == 0
    # Three in a row, and two handshakes among them.
    among = {"contenders": 20, "levels": 3, "confidence": 0.99}
    assert 0 <= other.lock("stolen").recommended_ttl(**among) - 2 * other.lock("stolen").handshake < OPTIONS["response_timeout"]
    pool = lh.pool("p", slots=["a"])
    for measures in (lh.lock("stolen"), pool):
        assert measures.recommended_ttl(**among) is None
        for wrong, field in (({"levels": 0}, "levels"), ({"round_trip": 1}, "round_trip")):
            with pytest.raises(errors.InvalidArgument) as caught:
                measures.recommended_ttl(**among | wrong)
            assert caught.value.field == field
    with pytest.raises(errors.InvalidArgument) as caught:
        lh.lock("stolen", stolen_consistency_factor=0.5)
    assert caught.value.field == "stolen_consistency_factor"


def test_who_waits_long_goes_before_a_higher_priority_that_came_so_much_later(place, lh):
    served = []
    with place.open(lock_ageing=0.001, **OPTIONS) as here, place.open(lock_ageing=0.001, **OPTIONS) as there:
        held = here.lock("aged", **KEPT).acquire()

        def low():
            here.lock("aged", **KEPT).run(lambda locked: served.append("low"))

        def high():
            time.sleep(0.3)
            there.lock("aged", priority=1, **KEPT).run(lambda locked: served.append("high"))

        def gives_back():
            time.sleep(0.4)
            held.release()

        together(low, high, gives_back)
    assert served == ["low", "high"]


def test_a_holder_is_told_of_who_steals_with_asyncio(place, lh):
    async def main():
        async with place.open(aio, **OPTIONS) as low, place.open(aio, **OPTIONS) as high:
            held = await low.lock("stolen", priority=-1, **KEPT).acquire()

            async def obliges():
                assert isinstance(await held.claimed(), errors.Claimed)
                await held.release()

            yields = asyncio.create_task(obliges())
            async with await high.lock("stolen", steal=True, **KEPT).acquire() as stolen:
                await yields
                assert stolen.fence > held.fence

    asyncio.run(main())


def outlive(locked):
    assert isinstance(locked.lost(timeout=10), errors.Lost)
    assert not locked.held


def test_run_keeps_what_became_of_the_body_when_the_lock_was_lost(lh):
    lock = lh.lock("a", **BRIEF)

    def gives(locked):
        outlive(locked)
        return "what it gave"

    with pytest.raises(errors.Lost) as caught:
        lock.run(gives)
    assert caught.value.result == "what it gave"

    def raises(locked):
        outlive(locked)
        raise KeyError("mine")

    with pytest.raises(errors.Lost) as caught:
        lock.run(raises)
    assert isinstance(caught.value.__context__, KeyError)
    assert caught.value.result is None


def test_a_block_that_outlived_its_lock_is_told_at_its_end(lh):
    with pytest.raises(errors.Lost) as caught, lh.lock("a", **BRIEF).acquire() as locked:
        outlive(locked)
    assert caught.value.__context__ is None
    with pytest.raises(errors.Lost) as caught, lh.lock("a", **BRIEF).acquire() as locked:
        outlive(locked)
        raise KeyError("mine")
    assert isinstance(caught.value.__context__, KeyError)


def test_a_body_that_is_not_to_be_locked_runs_without_after_its_arguments_were_looked_at(lh, other):
    with lh.lock("a").acquire():
        lock = other.lock("a", timeout=0)
        for without in ({"if_": False}, {"unless": True}, {"if_": True, "unless": True}):
            assert lock.run(lambda locked: (locked, "ran"), **without) == (None, "ran")
            with pytest.raises(errors.InvalidArgument) as caught:
                lock.run(pytest.fail, ttl=-1, **without)
            assert caught.value.field == "ttl"
        for within in ({"if_": True}, {"unless": False}, {"if_": None}):
            with pytest.raises(errors.Exhausted):
                lock.run(pytest.fail, **within)


def test_a_lock_that_is_kept_outlives_its_time_to_live(lh, other):
    with lh.lock("a", **KEPT).acquire() as locked:
        assert locked.lost(timeout=1.5 * TTL) is None
        assert locked.held
        assert not is_free(other, "a")
    assert is_free(other, "a")
    assert locked.lost() is None


async def coroutine(locked):
    pytest.fail("ran")


async def generates_later(locked):
    pytest.fail("ran")
    yield


def generates(locked):
    pytest.fail("ran")
    yield


class Later:
    async def __call__(self, locked):
        pytest.fail("ran")

    async def method(self, locked):
        pytest.fail("ran")


def name(body):
    return getattr(body, "__name__", type(body).__name__)


LATER = [coroutine, generates_later, Later(), Later().method, functools.partial(coroutine), functools.partial(generates)]


@pytest.mark.parametrize("body", [*LATER, generates], ids=name)
def test_a_body_that_would_run_later_is_refused_before_the_lock_is_taken(lh, other, body):
    with lh.lock("a").acquire():
        for options in ({}, {"unless": True}):
            with pytest.raises(errors.InvalidArgument, match="^body: is ") as caught:
                other.lock("a", timeout=0).run(body, **options)
            assert caught.value.field == "body"


def test_a_body_that_gives_what_must_be_awaited_is_told_of_it(lh, other):
    loop = asyncio.new_event_loop()
    for given in (coroutine(None), loop.create_future()):
        for options in ({}, {"unless": True}):
            with pytest.raises(errors.InvalidArgument, match="^body: gave what must be awaited") as caught:
                lh.lock("a").run(lambda locked: given, **options)
            assert caught.value.field == "body"
    loop.close()
    assert is_free(other, "a")


@pytest.mark.parametrize("body", [generates, generates_later, functools.partial(generates)], ids=name)
def test_asyncio_refuses_a_body_that_would_run_later(memory, body):
    async def main():
        async with aio.open(memory.url) as lh:
            async with lh.lock("a").acquire():
                with pytest.raises(errors.InvalidArgument, match="^body: is ") as caught:
                    await lh.lock("a", timeout=0).run(body)
                assert caught.value.field == "body"
            with pytest.raises(errors.InvalidArgument) as caught:
                await lh.lock("a", timeout=0).run("a")
            assert caught.value.field == "body"

    asyncio.run(main())


def test_asyncio_runs_whatever_gives_what_can_be_awaited(memory):
    class Body:
        async def __call__(self, locked):
            await asyncio.sleep(0)
            return locked.held

    async def main():
        async with aio.open(memory.url) as lh:
            for body in (Body(), functools.partial(Body()), lambda locked: asyncio.ensure_future(Body()(locked))):
                assert await lh.lock("a").run(body) is True

    asyncio.run(main())


# In MasterLock the body ran on without a word.
def test_a_refused_extension_tells_the_body(own_redis):
    with leasehold.open(own_redis.url, **OPTIONS) as lh:

        def body(locked):
            own_redis.command("FLUSHALL")
            return locked.lost(timeout=10)

        with pytest.raises(errors.Lost) as caught:
            lh.lock("a", **KEPT).run(body)
        assert isinstance(caught.value.result, errors.Lost)


def test_asyncio_runs_bodies_of_both_kinds(place):
    async def main():
        async with place.open(aio, **OPTIONS) as lh, place.open(aio, **OPTIONS) as other:
            lock = lh.lock(["a", "b"], **KEPT)
            refused = other.lock("b", timeout=0)

            async def body(locked):
                assert (locked.names, locked.held) == (["a", "b"], True)
                with pytest.raises(errors.Exhausted):
                    await refused.acquire()
                assert await locked.lost(0) is None
                return "what it gave"

            assert await lock.run(body) == "what it gave"
            assert await lock.run(lambda locked: locked.remaining > 0)
            with pytest.raises(ZeroDivisionError):
                await lock.run(lambda locked: 1 // 0)
            async with refused.acquire() as locked:
                assert await refused.run(lambda locked: (locked, "ran"), unless=True) == (None, "ran")
                with pytest.raises(errors.Exhausted):
                    await lock.run(pytest.fail, timeout=0)
            assert not locked.held
            await locked.release()
            held = await refused.acquire()
            await held.release()

    asyncio.run(main())


def test_asyncio_contenders_are_never_inside_together(place):
    async def main():
        rooms = Room(), Room()

        async def contend(handle, names):
            lock = handle.lock(names, **KEPT)
            for _ in range(20):
                await lock.run(lambda locked: asyncio.gather(*(room.visit(locked) for room in rooms)))

        async with place.open(aio, **OPTIONS) as lh, place.open(aio, **OPTIONS) as other:
            await asyncio.gather(*(contend(*it) for it in [(lh, ["a", "b"]), (other, ["b", "a"]), (other, ["a", "b"])]))

    asyncio.run(main())


def test_asyncio_is_told_that_a_body_outlived_its_lock(place):
    async def main():
        async with place.open(aio, **OPTIONS) as lh:
            lock = lh.lock("a", timeout=20, **BRIEF)

            async def gives(locked):
                assert isinstance(await locked.lost(timeout=10), errors.Lost)
                return "what it gave"

            with pytest.raises(errors.Lost) as caught:
                await lock.run(gives)
            assert caught.value.result == "what it gave"

            async def raises(locked):
                await gives(locked)
                raise KeyError("mine")

            with pytest.raises(errors.Lost) as caught:
                await lock.run(raises)
            assert isinstance(caught.value.__context__, KeyError)
            with pytest.raises(errors.Lost):
                async with lock.acquire() as locked:
                    await gives(locked)

    asyncio.run(main())


def test_a_task_that_is_cancelled_as_it_acquires_leaves_nothing_behind(place):
    async def main():
        async with place.open(aio, **OPTIONS) as lh, place.open(aio, **OPTIONS) as other:
            held = await lh.lock("a", timeout=20).acquire()
            lock = other.lock("a", **KEPT)
            waiting = [asyncio.ensure_future(it) for it in (lock.run(pytest.fail), lock.acquire())]
            await asyncio.sleep(0.05)
            for task in waiting:
                task.cancel()
                with pytest.raises(asyncio.CancelledError):
                    await task
            await held.release()
            # Whenever it comes, before, while, or after it is granted.
            for round in range(100):
                task = asyncio.ensure_future(lock.acquire())
                await asyncio.sleep((round % 10) / 5000)
                task.cancel()
                try:
                    await (await task).release()
                except asyncio.CancelledError:
                    pass
            async with lh.lock("a", timeout=10).acquire():
                pass

    asyncio.run(main())


# In redis-py it left the lock to whoever had it, until its time had passed.
def test_a_release_that_is_cancelled_gives_back_all_the_same(place):
    async def main():
        options = {**OPTIONS, "lock_ttl": 3}
        async with place.open(aio, **options) as lh, place.open(aio, **options) as other:
            for round in range(5):
                held = await lh.lock("a", **KEPT).acquire()
                task = asyncio.ensure_future(held.release())
                await asyncio.sleep(round / 5000)
                task.cancel()
                await asyncio.wait([task])
                begun = time.monotonic()
                async with other.lock("a", timeout=20).acquire():
                    assert time.monotonic() - begun < 2

    asyncio.run(main())
