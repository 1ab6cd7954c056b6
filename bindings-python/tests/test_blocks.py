"""Blocks, with threads and with asyncio: what they begin with, and what comes of an error of theirs at their end."""

import asyncio
import gc
from dataclasses import dataclass

import pytest

import leasehold
from conftest import until
from leasehold import aio, errors
from wallets import BRIEF, source_of

TTL = 1.5
WAIT = {"timeout": 20}
# What ends by itself, and soon.
SOON = 0.4
# How each kind is given back.
ENDS = [
    *[(kind, "release") for kind in ("lease", "lock", "selection")],
    *[("selection", "spent"), ("reservation", "commit"), ("reservation", "refund")],
]
# They are no `Exception`: whoever is to end by them would go on if they were replaced.
CALLED_OFF = [KeyboardInterrupt, SystemExit, GeneratorExit, asyncio.CancelledError]


def opened(place, face):
    return place.open(face, response_timeout=0.5, lock_ttl=TTL)


def acquired(kind, lh, pool, ttl=TTL, spender=None):
    """One of each kind, which is not renewed."""
    if kind == "lease":
        return pool.acquire(ttl=ttl, **WAIT)
    if kind == "lock":
        return lh.lock("a", ttl=ttl, keepalive=False, **WAIT).acquire()
    if kind == "selection":
        return wallet(lh, ttl).select(1, spender=spender, **WAIT)
    return lh.limit("a", max=1, kind="in_flight").reserve(ttl=ttl)


def wallet(lh, ttl=TTL):
    return lh.tokens("w", source=source_of({"a": 1}), **BRIEF | {"ttl": ttl, "keepalive": False})


def lose(kind, lh, pool, held):
    """Has what is held be lost, which its holder is told when it gives it back."""
    if kind == "lease":
        return pool.break_lease("a")
    if kind == "selection":
        return wallet(lh).release_spender("s")
    if kind == "lock":
        return held.lost()
    limit = lh.limit("a", max=1, kind="in_flight")
    return landed(limit) if isinstance(lh, aio.Leasehold) else until(lambda: limit.used() == 0)


async def landed(limit):
    while await limit.used():
        await asyncio.sleep(0.01)


@pytest.mark.parametrize("kind", ["lease", "lock", "selection", "reservation"])
def test_the_end_of_a_block_is_called_without_an_error(memory, kind):
    with opened(memory, leasehold) as lh:
        held = acquired(kind, lh, lh.pool("p", slots=["a"], ttl=TTL))
        held.__exit__()
        with pytest.raises(errors.Lost), held:
            raise AssertionError("began")


@pytest.mark.parametrize(("kind", "end"), ENDS)
def test_a_block_does_not_begin_without_what_it_is_for(place, kind, end):
    with opened(place, leasehold) as lh:
        held = acquired(kind, lh, lh.pool("p", slots=["a"], ttl=TTL))
        with held as entered:
            assert entered is held
            getattr(held, end)()
        with pytest.raises(errors.Lost), held:
            pytest.fail("ran unprotected")


@pytest.mark.parametrize(("kind", "end"), ENDS)
def test_a_block_does_not_begin_without_what_it_is_for_with_asyncio(place, kind, end):
    async def main():
        async with opened(place, aio) as lh:
            held = await acquired(kind, lh, await lh.pool("p", slots=["a"], ttl=TTL))
            async with held as entered:
                assert entered is held
                await getattr(held, end)()
            with pytest.raises(errors.Lost):
                async with held:
                    pytest.fail("ran unprotected")

    asyncio.run(main())


@pytest.mark.parametrize("kind", ["lease", "lock", "selection"])
def test_nor_with_what_was_lost(place, kind):
    with opened(place, leasehold) as lh:
        held = acquired(kind, lh, lh.pool("p", slots=["a"], ttl=TTL), SOON)
        until(lambda: not held.held)
        ran = []
        with pytest.raises(errors.Lost), held:
            ran.append(1)
        assert not ran


def test_a_selection_of_nothing_is_held_for_ever(memory):
    with opened(memory, leasehold) as lh:
        nothing = lh.tokens("w", source=source_of({})).select(0)
        for _ in range(2):
            with nothing:
                assert nothing.held


# Under a lock only an error gave way to the loss: of what else was lost its note told, which is easily overlooked.
@pytest.mark.parametrize("late", [False, True])
@pytest.mark.parametrize("error", [*CALLED_OFF, KeyError])
@pytest.mark.parametrize("kind", ["lease", "lock", "selection", "reservation"])
def test_what_was_lost_does_not_hide_what_ends_the_program(place, kind, error, late):
    with opened(place, leasehold) as lh:
        raised = error("mine")
        pool = lh.pool("p", slots=["a"], ttl=TTL)
        ttl = SOON if kind in ("lock", "reservation") and late else TTL
        with pytest.raises(BaseException) as caught, acquired(kind, lh, pool, ttl, "s") as held:
            if late:
                lose(kind, lh, pool, held)
            raise raised
        check(caught.value, raised, late)


@pytest.mark.parametrize("late", [False, True])
@pytest.mark.parametrize("error", [*CALLED_OFF, KeyError])
@pytest.mark.parametrize("kind", ["lease", "lock", "selection", "reservation"])
def test_what_was_lost_does_not_hide_what_ends_the_task(place, kind, error, late):
    async def main():
        async with opened(place, aio) as lh:
            raised = error("mine")
            pool = await lh.pool("p", slots=["a"], ttl=TTL)
            ttl = SOON if kind in ("lock", "reservation") and late else TTL
            with pytest.raises(BaseException) as caught:
                async with acquired(kind, lh, pool, ttl, "s") as held:
                    if late:
                        await lose(kind, lh, pool, held)
                    raise raised
            check(caught.value, raised, late)

    asyncio.run(main())


def check(caught, raised, late):
    """An error of a block gives way to the loss of what it ran under; what is no `Exception` does not, but it is told of the loss."""
    if late and isinstance(raised, Exception):
        assert type(caught) is errors.Lost and caught.__context__ is raised
        return
    assert caught is raised
    notes = [note for note in getattr(caught, "__notes__", []) if note.startswith("At the end of the block: Lost: ")]
    assert len(notes) == late


@pytest.mark.parametrize("face", [leasehold, aio], ids=["threads", "asyncio"])
@pytest.mark.parametrize("kind", ["lease", "selection", "reservation"])
def test_what_else_goes_wrong_at_the_end_of_a_block_is_a_note_of_its_error(own_redis, kind, face):
    own = {"response_timeout": 0.3}

    async def main():
        async with aio.open(own_redis.url, **own) as lh:
            async with acquired(kind, lh, await lh.pool("p", slots=["a"], ttl=TTL)):
                own_redis.kill()
                raise KeyError

    with pytest.raises(KeyError) as caught:
        if face is aio:
            asyncio.run(main())
        with leasehold.open(own_redis.url, **own) as lh, acquired(kind, lh, lh.pool("p", slots=["a"], ttl=TTL)):
            own_redis.kill()
            raise KeyError
    (note,) = caught.value.__notes__
    assert note.startswith("At the end of the block: StoreUnavailable: ")


@dataclass(frozen=True)
class Frozen(Exception):
    reason: str


@dataclass(frozen=True)
class FrozenExit(BaseException):
    reason: str


# What cannot be written to gave way to the error of writing to it: of its traceback, or of a note.
@pytest.mark.parametrize(("kind", "late"), [(Frozen, False), (FrozenExit, False), (FrozenExit, True)])
def test_an_error_that_cannot_be_written_to_comes_through(memory, kind, late):
    def body(locked):
        until(lambda: not (late and locked.held))
        raise kind("mine")

    async def later(locked):
        body(locked)

    options = WAIT | ({"ttl": SOON, "keepalive": False} if late else {})
    with opened(memory, leasehold) as lh:
        lock = lh.lock("a", **options)
        with pytest.raises(kind, match="mine"):
            lock.run(body)
        with pytest.raises(kind, match="mine"), lock.acquire() as locked:
            body(locked)

    async def main():
        async with opened(memory, aio) as lh:
            lock = lh.lock("a", **options)
            for run in (body, later):
                with pytest.raises(kind, match="mine"):
                    await lock.run(run)
            with pytest.raises(kind, match="mine"):
                async with lock.acquire() as locked:
                    body(locked)

    asyncio.run(main())


@pytest.mark.parametrize("error", CALLED_OFF)
def test_run_lets_through_what_ends_the_program(place, error):
    raised = error("mine")

    def body(locked):
        until(lambda: not locked.held)
        raise raised

    async def later(locked):
        body(locked)

    with opened(place, leasehold) as lh, pytest.raises(error) as caught:
        lh.lock("a", ttl=SOON, keepalive=False, **WAIT).run(body)
    check(caught.value, raised, True)
    raised = error("mine")

    async def main():
        async with opened(place, aio) as lh:
            with pytest.raises(error) as caught:
                await lh.lock("a", ttl=SOON, keepalive=False, **WAIT).run(later)
            check(caught.value, raised, True)

    asyncio.run(main())


def test_a_task_that_lost_its_lock_can_be_cancelled(place):
    async def main():
        async with opened(place, aio) as lh:
            lock = lh.lock("a", ttl=SOON, keepalive=False, **WAIT)
            inside = asyncio.Event()

            async def work():
                async with lock.acquire() as locked:
                    await locked.lost()
                    inside.set()
                    await asyncio.sleep(30)

            task = asyncio.create_task(work())
            await inside.wait()
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            assert task.cancelled()
            with pytest.raises(asyncio.TimeoutError):
                async with asyncio.timeout(2 * SOON):
                    await lock.run(lambda _: asyncio.sleep(30))

    asyncio.run(main())


async def acquisitions(lh):
    pool = await lh.pool("p", slots=["a"], ttl=TTL)
    return {kind: lambda kind=kind: acquired(kind, lh, pool) for kind in ("lease", "lock", "selection", "reservation")}


@pytest.mark.parametrize("kind", ["lease", "lock", "selection", "reservation"])
def test_an_acquisition_is_good_for_one_use(place, kind):
    async def entered(acquiring):
        async with acquiring as held:
            return held

    async def awaited(acquiring):
        return await acquiring

    async def main():
        async with opened(place, aio) as lh:
            acquire = (await acquisitions(lh))[kind]

            async def refused(acquiring):
                for use in (entered, awaited, asyncio.ensure_future):
                    with pytest.raises(errors.InvalidArgument, match=r"call (acquire|select|reserve)\(\) again"):
                        await use(acquiring)

            acquiring = acquire()
            async with acquiring as held:
                # Neither the lease of the first is given back by the second, nor another one taken.
                await refused(acquiring)
                assert kind == "reservation" or held.held
            await refused(acquiring)
            held = await (acquiring := acquire())
            await refused(acquiring)
            async with held:
                pass
            async with await asyncio.create_task(acquiring := acquire()):
                await refused(acquiring)
            # Also where the first has not ended yet, or not well.
            async with acquire():
                task = asyncio.create_task(acquiring := acquire())
                await asyncio.sleep(0)
                if kind != "reservation":
                    await refused(acquiring)
                task.cancel()
                with pytest.raises((asyncio.CancelledError, errors.Limited)):
                    await task
                await refused(acquiring)

    asyncio.run(main())


def test_tasks_that_enter_the_same_acquisition_are_never_inside_together(place):
    async def main():
        async with opened(place, aio) as lh:
            acquiring = lh.lock("a", **WAIT).acquire()
            inside = []

            async def work():
                async with acquiring as locked:
                    inside.append(locked)
                    await asyncio.sleep(0.01)
                    assert locked.held
                return True

            ends = await asyncio.gather(*[work() for _ in range(3)], return_exceptions=True)
            assert [type(end) for end in ends] == [bool, errors.InvalidArgument, errors.InvalidArgument]
            assert len(inside) == 1 and not inside[0].held

    asyncio.run(main())


@pytest.mark.parametrize("kind", ["lease", "lock", "selection", "reservation"])
def test_an_acquisition_that_nobody_awaits_is_told(memory, kind):
    async def main():
        async with opened(memory, aio) as lh:
            acquire = (await acquisitions(lh))[kind]
            with pytest.warns(RuntimeWarning, match=r"\.(acquire|select|reserve)' was never awaited"):
                acquire()
                gc.collect()
            with pytest.warns(RuntimeWarning, match=r"\.wait_to_reserve' was never awaited"):
                lh.limit("a", max=1, period=1).wait_to_reserve(ttl=1)
                gc.collect()
            # Not one that was called off before it began.
            task = asyncio.ensure_future(acquire())
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            del task
            gc.collect()

    asyncio.run(main())
