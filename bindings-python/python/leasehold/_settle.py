"""Awaiting: what the compiled half has started, and for it what `read_nonce` has."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from contextvars import copy_context
from typing import Any, ParamSpec, TypeVar

from ._bodies import given_now
from ._leasehold import Lease, Locked, Pending
from .errors import LeaseholdError, Lost

__all__ = ["Home", "call", "granted", "note", "outlived", "run", "settle"]

P = ParamSpec("P")
T = TypeVar("T")


async def settle(started: Any) -> Any:
    """The result of a started call. Whatever ends the wait early also drops the call."""
    if type(started) is not Pending:
        return started
    try:
        return await started.future
    except BaseException:
        started.abort()
        raise


async def call(function: Callable[P, T], *arguments: P.args, **options: P.kwargs) -> T:
    """Calls a function of the compiled half that gives its result at once or a started call."""
    result: T = await settle(function(*arguments, **options))
    return result


async def granted(started: Any) -> list[Lease]:
    """The leases of a started acquisition. They are taken by a caller that is still there: a task may be cancelled after the
    grant and before it runs again, and what nobody took is given back unused."""
    leases: list[Lease] = (await settle(started)).take()
    return leases


def run(locked: Locked | None, body: Callable[[Locked | None], T]) -> T:
    """Runs a body under a lock that was acquired for it, or without."""
    if locked is None:
        return given_now(body(None))
    with outlived() as gave, locked:
        gave.append(result := given_now(body(locked)))
    return result


@contextmanager
def outlived() -> Iterator[list[Any]]:
    """What is put into the list, a body that came to its end gave: if the lock was lost, the error takes it along."""
    gave: list[Any] = []
    try:
        yield gave
    except Lost as error:
        if gave:
            (error.result,) = gave
        raise


def note(raised: BaseException, late: LeaseholdError) -> None:
    """Tells, with what a block raised, what went wrong at its end."""
    if sys.version_info >= (3, 11):
        raised.add_note(f"At the end of the block: {type(late).__name__}: {late}")
    elif raised.__context__ is None:
        raised.__context__ = late


class Home:
    """Where the coroutines of a `read_nonce` run: on the loop that is running now, in the context of now."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._context = copy_context()

    def begin(self, awaitable: Awaitable[Any], hear: Callable[[asyncio.Future[Any]], None]) -> Callable[[], None]:
        """Awaits, and has the end heard. Gives what cancels that. May be called on any thread, and so may that."""
        task: asyncio.Future[Any] | None = None

        def start() -> None:
            nonlocal task
            task = asyncio.ensure_future(awaitable)
            task.add_done_callback(hear)

        def stop() -> None:
            if task is not None:
                task.cancel()

        def cancel() -> None:
            if task is None or not task.done():
                self._loop.call_soon_threadsafe(stop)

        # Only from another thread the loop has to be woken.
        is_here = asyncio._get_running_loop() is self._loop
        (self._loop.call_soon if is_here else self._loop.call_soon_threadsafe)(start, context=self._context)
        return cancel
