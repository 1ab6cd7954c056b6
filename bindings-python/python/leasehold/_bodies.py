"""Bodies: functions that are run under something. One whose call does not do its work yet would do it without that."""

from __future__ import annotations

from collections.abc import Callable
from inspect import isasyncgenfunction, isawaitable, iscoroutine, iscoroutinefunction, isfunction, isgeneratorfunction
from typing import Any, TypeVar

from .errors import _invalid

__all__ = ["COROUTINE", "GENERATOR", "check", "given_now", "kind"]

T = TypeVar("T")

COROUTINE = "a coroutine function"
GENERATOR = "a generator function"
KINDS: dict[str, Callable[[Any], bool]] = {
    COROUTINE: iscoroutinefunction,
    GENERATOR: isgeneratorfunction,
    "an async generator function": isasyncgenfunction,
}


def kind(body: Any) -> str | None:
    """What a function is whose call does not do its work yet; None for any other."""
    # An object does what its class says.
    for called in (body,) if isfunction(body) else (body, type(body).__call__):
        for name, applies in KINDS.items():
            if applies(called):
                return name
    return None


def check(body: Any, awaited: bool) -> None:
    """Refuses what would not do its work under what is held for it."""
    if not callable(body):
        raise _invalid("body", "must be a function that takes what is held for it")
    found = kind(body)
    if found is not None and not (awaited and found == COROUTINE):
        remedy = "use leasehold.aio" if found == COROUTINE else "do the work in a function"
        raise _invalid("body", f"is {found}, which would run when nothing is held for it any more; {remedy}")


def given_now(given: T) -> T:
    """What a body gave, if that does not have to be awaited: nobody would do so under what was held for it."""
    if not isawaitable(given):
        return given
    if iscoroutine(given):
        # Python would complain of one that nobody awaited.
        given.close()
    raise _invalid("body", "gave what must be awaited, which would run when nothing is held for it any more; use leasehold.aio")
