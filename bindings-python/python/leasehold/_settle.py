"""Awaiting what the compiled half has started."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ParamSpec, TypeVar

from ._leasehold import Lease, Pending

__all__ = ["call", "granted", "settle"]

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
