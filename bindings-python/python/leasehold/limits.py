"""Functions under a limit."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from functools import wraps
from typing import Any, ParamSpec, Protocol, TypeVar, overload

from . import aio
from ._bodies import COROUTINE, GENERATOR, kind
from ._leasehold import Limit
from .errors import _invalid

__all__ = ["limited"]

P = ParamSpec("P")
T = TypeVar("T")


class _Later(Protocol):
    def __call__(self, body: Callable[P, Coroutine[Any, Any, T]], /) -> Callable[P, Coroutine[Any, Any, T]]: ...


class _Now(Protocol):
    def __call__(self, body: Callable[P, T], /) -> Callable[P, T]: ...


@overload
def limited(limit: Limit, cost: int | str = 1) -> _Now: ...
@overload
def limited(limit: aio.Limit, cost: int | str = 1) -> _Later: ...
def limited(limit: Limit | aio.Limit, cost: int | str = 1) -> Any:
    """Decorates a function, or for a limit of asyncio a coroutine function: each call first charges the cost, and raises `Limited`
    without running the body if that is refused. What cannot be decorated so is refused at once."""
    if not isinstance(limit, (Limit, aio.Limit)):
        raise _invalid("limit", "must be a limit")
    # Refuses what is no cost.
    limit.at_cost(cost)

    def decorate(body: Callable[..., Any]) -> Callable[..., Any]:
        if not callable(body):
            raise _invalid("body", "must be a function")
        found = kind(body)
        if isinstance(limit, Limit):
            if found not in (None, GENERATOR):
                raise _invalid("body", f"is {found}, which a limit of leasehold.aio is for")

            @wraps(body)
            def now(*arguments: Any, **options: Any) -> Any:
                limit.increment_or_fail(cost)
                return body(*arguments, **options)

            return now

        if found != COROUTINE:
            raise _invalid("body", "must be a coroutine function for a limit of leasehold.aio")

        @wraps(body)
        async def later(*arguments: Any, **options: Any) -> Any:
            await limit.increment_or_fail(cost)
            return await body(*arguments, **options)

        return later

    return decorate
