"""Awaiting what the compiled half has started, and running bodies under its locks and leases."""

from __future__ import annotations

import sys
from _thread import _count
from asyncio import Future, get_running_loop
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext, suppress
from typing import Any, ParamSpec, TypeVar

from ._bodies import check, given_now
from ._leasehold import Bridge, Lease, Lock, Locked, Pending, Pool
from .errors import LeaseholdError, Lost

__all__ = ["answer", "call", "granted", "note", "outlived", "run", "run_with_lease", "settle"]

P = ParamSpec("P")
T = TypeVar("T")


async def settle(started: Any) -> Any:
    """The result of a started call. Whatever ends the wait early also drops the call, and what it was granted."""
    if type(started) is not Pending:
        return started
    future = None
    try:
        future = get_running_loop().create_future()
        expect(started, future)
        return await future
    except BaseException:
        started.abort(future)
        raise
    finally:
        # An error that comes of it has this frame.
        del started, future


def expect(started: Pending, future: Future[Any]) -> None:
    """The future gets the result of a started call. What is called within one turn of the loop sets out together, at its end, unless
    the calls before were alone in theirs: then the first one sets out at once."""
    loop = future.get_loop()
    now = loop.time()
    bridge = started.expect(future, now)
    if bridge is not None:
        loop.call_soon(answer, bridge)
        bridge.comes(now)


def answer(bridge: Bridge) -> None:
    """Gives the futures of the calls that have ended what they wait for."""
    deliver(bridge, bridge.turn)
    go_round(bridge)


def hear(bridge: Bridge, fd: int) -> None:
    """The same, as a socket can be read on which they are answered."""
    deliver(bridge, bridge.hear, fd)
    go_round(bridge)


def go_round(bridge: Bridge, again: bool = False) -> None:
    """Has the loop go round without sleep for a moment, if an answer may be there by then. Another thread that waits for the
    interpreter hardly ever gets it from one that leaves it often and for a moment only."""
    if again or (_count() == 0 and bridge.begins_to_look()):
        loop = get_running_loop()
        loop.call_soon(look, bridge, loop.time())


def look(bridge: Bridge, since: float) -> None:
    """Hears the socket that can be read. The loop comes back to this for as long as it looks, and sees to all that is ready in between:
    if it had more to do than to go round, it has more to do than to look."""
    fd = bridge.look(get_running_loop().time() - since > ROUND)
    if fd is not None:
        deliver(bridge, bridge.hear, fd)
    go_round(bridge, bridge.looks())


# How many seconds a loop may take to go round that has nothing else to do.
ROUND = 50e-6


def throw(raised: BaseException) -> None:
    """Raises, in the loop, what was raised where nobody could hear it."""
    raise raised


def deliver(bridge: Bridge, look: Callable[P, None], *arguments: P.args, **options: P.kwargs) -> None:
    """Has the bridge look for calls that have ended, and gives their futures what they wait for. Each is taken out after that: Ctrl-C, it
    may be, comes in between, and nobody is to wait for ever."""
    settled = bridge.settled
    try:
        look(*arguments, **options)
    finally:
        try:
            while settled:
                give(*settled[0])
                settled.popleft()
        except BaseException:
            if settled:
                # One that takes nothing is given up.
                with suppress(BaseException):
                    give(*settled[0])
                settled.popleft()
            bridge.again()
            raise


def give(future: Future[Any], result: Any, error: BaseException | None) -> None:
    """A caller that was cancelled gets nothing."""
    if future.done():
        return
    if error is None:
        future.set_result(result)
    else:
        future.set_exception(error)


async def call(function: Callable[P, T], *arguments: P.args, **options: P.kwargs) -> T:
    """Calls a function of the compiled half that gives its result at once or a started call."""
    result: T = await settle(function(*arguments, **options))
    return result


async def granted(started: Any) -> list[Any]:
    """What was granted: leases, a lock or a selection; nothing, to a body that runs without a lock. It is taken by a caller that is
    still there: a task may be cancelled after the grant and before it runs again, and what nobody took is given back unused."""
    settling = settle(started)
    del started
    grant = await settling
    return [] if grant is None else list(grant.take())


def run(self: Lock, body: Callable[[Any], T], **options: Any) -> T:
    """Runs the body under the lock, and gives what it gives. If the lock did not last as long, others may have run beside it: that
    is `Lost`, with what the body gave as its `result`, or what it raised as its context; but what is no `Exception`,
    such as Ctrl-C, comes through with a note of that."""
    check(body, False)
    # In one statement, or what Ctrl-C comes upon in between would keep the lock.
    with outlived() as gave, self._enter(**options) or WITHOUT as locked:
        gave.append(result := given_now(body(locked)))
    return result


def run_with_lease(self: Pool, body: Callable[[Lease], T], **options: Any) -> T:
    """Runs the body with a lease, and gives what it gives. The lease is given back then, with what the body said of the nonce. If it
    did not last as long, its slot may have been another's: that is `Lost`, as with `Lock.run`."""
    check(body, False)
    with outlived() as gave, self.acquire(**options) as lease:
        gave.append(result := given_now(body(lease)))
    return result


# What a body has that runs without the lock.
WITHOUT: AbstractContextManager[None] = nullcontext()


# Under no frame of Rust, which a daemon thread that is ended at the interpreter's exit could not unwind.
Lock.run = run  # type: ignore[method-assign]
Pool.run = run_with_lease  # type: ignore[method-assign]


class outlived:
    """What is put into the list, a body that came to its end gave: if what it ran under was lost, the error takes it along."""

    __slots__ = ("_gave",)

    def __enter__(self) -> list[Any]:
        self._gave: list[Any] = []
        return self._gave

    # No generator of `contextlib`, which writes to the errors that pass: one may refuse that.
    def __exit__(self, kind: object, error: BaseException | None, traceback: object) -> None:
        if isinstance(error, Lost) and self._gave:
            (error.result,) = self._gave


def note(raised: BaseException, late: LeaseholdError) -> None:
    """Tells, with what a block raised, what went wrong at its end; not with what cannot be written to."""
    with suppress(Exception):
        # As `add_note` does, which 3.10 has not.
        told = f"At the end of the block: {type(late).__name__}: {late}"
        setattr(raised, "__notes__", [*getattr(raised, "__notes__", ()), told])
        # The tracebacks of 3.10 show no notes, but what came before.
        if sys.version_info < (3, 11) and raised.__context__ is None:
            raised.__context__ = late
