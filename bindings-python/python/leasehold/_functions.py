"""Functions of the user's, as the compiled half asks them: `read_nonce`, and those of a source of tokens."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextvars import copy_context
from inspect import isawaitable, iscoroutine
from typing import Any, Protocol

from ._bodies import COROUTINE, kind
from .errors import _invalid

__all__ = ["Home", "Listener", "ask", "check"]


class Listener(Protocol):
    """Hears what a function gave, once."""

    def answered(self, answer: Any, /) -> None: ...
    def refused(self, error: BaseException, text: str, /) -> None: ...
    def awaits(self, cancel: Callable[[], None], /) -> bool: ...


def check(function: Any, awaited: bool, name: str) -> bool:
    """Whether it is a coroutine function, which is refused where nothing is awaited."""
    found = kind(function) == COROUTINE
    if found and not awaited:
        raise _invalid(name, f"is {COROUTINE}; use leasehold.aio")
    return found


def home(needed: bool, name: str) -> Home | None:
    """Where the coroutines of a function run: on the loop that is running now. Where none is, no coroutine function is taken."""
    try:
        return Home()
    except RuntimeError:
        if needed:
            raise _invalid(name, f"is {COROUTINE}, and no event loop is running that could run it; give it in one") from None
        return None


def ask(function: Callable[..., Any], arguments: tuple[Any, ...], home: Home | None, name: str, listener: Listener) -> None:
    """Asks a function, and has the listener hear what it gives or raises. This is all that the thread of a plain function does: at the
    interpreter's exit it may end wherever it is."""
    try:
        answer = function(*arguments)
        if isawaitable(answer):
            _await(answer, home, name, listener)
        else:
            listener.answered(answer)
    except BaseException as error:
        _refuse(listener, error)


def _await(answer: Awaitable[Any], home: Home | None, name: str, listener: Listener) -> None:
    try:
        if home is None:
            raise TypeError(f"{name} gave what must be awaited: use leasehold.aio, in an event loop")
        cancel = home.begin(answer, listener)
    except BaseException:
        if iscoroutine(answer):
            # Python would complain of one that nobody awaited.
            answer.close()
        raise
    if listener.awaits(cancel):
        cancel()


def _refuse(listener: Listener, error: BaseException) -> None:
    """Tells of an exception as it was raised, without the frame that caught it, which has what was asked."""
    caught = error.__traceback__
    name = type(error).__name__
    try:
        text = str(error)
    except BaseException:
        # Whatever it raises says less than what it is asked about.
        text = ""
    listener.refused(error.with_traceback(caught and caught.tb_next), f"{name}: {text}" if text else name)


class Home:
    """Where coroutines run: on the loop that is running now, in the context of now."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._context = copy_context()

    def begin(self, awaitable: Awaitable[Any], listener: Listener) -> Callable[[], None]:
        """Awaits, and has the end heard. Gives what cancels that. May be called on any thread, and so may that."""
        task: asyncio.Future[Any] | None = None

        def start() -> None:
            nonlocal task
            task = asyncio.ensure_future(awaitable)
            task.add_done_callback(end)

        def end(task: asyncio.Future[Any]) -> None:
            try:
                answer = task.result()
            except BaseException as error:
                _refuse(listener, error)
            else:
                listener.answered(answer)

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
