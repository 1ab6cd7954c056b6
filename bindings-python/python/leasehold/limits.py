"""Functions under a limit."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Coroutine
from functools import wraps
from typing import Any, ParamSpec, Protocol, TypeVar, overload

from . import aio
from ._leasehold import Limit

__all__ = ["limited"]

P = ParamSpec("P")
T = TypeVar("T")


class _Later(Protocol):
    def __call__(self, body: Callable[P, Awaitable[T]], /) -> Callable[P, Coroutine[Any, Any, T]]: ...


class _Now(Protocol):
    def __call__(self, body: Callable[P, T], /) -> Callable[P, T]: ...


@overload
def limited(limit: Limit, cost: int | str = 1) -> _Now: ...
@overload
def limited(limit: aio.Limit, cost: int | str = 1) -> _Later: ...
def limited(limit: Limit | aio.Limit, cost: int | str = 1) -> Any:
    """Decorates a function, or for a limit of asyncio a coroutine function: each call first charges the cost, and raises `Limited`
    without running the body if that is refused."""

    def decorate(body: Callable[..., Any]) -> Callable[..., Any]:
        if isinstance(limit, Limit):

            @wraps(body)
            def now(*arguments: Any, **options: Any) -> Any:
                limit.increment_or_fail(cost)
                return body(*arguments, **options)

            return now

        @wraps(body)
        async def later(*arguments: Any, **options: Any) -> Any:
            await limit.increment_or_fail(cost)
            return await body(*arguments, **options)

        return later

    return decorate
