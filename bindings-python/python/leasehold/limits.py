"""Functions under a limit."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from functools import wraps
from typing import Any, ParamSpec, Protocol, TypeVar, overload

from . import aio
from ._bodies import COROUTINE, GENERATOR, kind
from ._choices import check, checked, chosen
from ._leasehold import Limit
from .errors import _invalid

__all__ = ["limited"]

P = ParamSpec("P")
T = TypeVar("T")


class _Later(Protocol):
    def __call__(self, body: Callable[P, Coroutine[Any, Any, T]], /) -> Callable[P, Coroutine[Any, Any, T]]: ...


class _Now(Protocol):
    def __call__(self, body: Callable[P, T], /) -> Callable[P, T]: ...


_Cost = int | str | Callable[..., int | str]


@overload
def limited(limit: Limit | Callable[..., Limit], cost: _Cost = 1) -> _Now: ...
@overload
def limited(limit: aio.Limit | Callable[..., aio.Limit], cost: _Cost = 1) -> _Later: ...
def limited(limit: Any, cost: Any = 1) -> Any:
    """Decorates a function, or for a limit of asyncio a coroutine function: each call first charges the cost, and raises `Limited`
    without running the body if that is refused. `limit` and `cost` are for all calls, or plain functions that choose them by the
    arguments of the call: the limit of whoever asks, the cost of what is asked. What cannot be decorated so is refused at once."""
    if isinstance(limit, (Limit, aio.Limit)):
        if not callable(cost):
            # Refuses what is no cost.
            limit.at_cost(cost)
    elif not callable(limit):
        raise _invalid("limit", "must be a limit, or a function that gives one")
    check(limit, "limit")
    check(cost, "cost")

    def decorate(body: Callable[..., Any]) -> Callable[..., Any]:
        if not callable(body):
            raise _invalid("body", "must be a function")
        found = kind(body)
        if found not in (None, GENERATOR, COROUTINE) or found == COROUTINE and isinstance(limit, Limit):
            raise _invalid("body", f"is {found}, which {'a limit of leasehold.aio is for' if found == COROUTINE else 'no limit is for'}")
        if found != COROUTINE:
            if isinstance(limit, aio.Limit):
                raise _invalid("body", "must be a coroutine function for a limit of leasehold.aio")

            @wraps(body)
            def now(*arguments: Any, **options: Any) -> Any:
                charged = chosen(cost, arguments, options)
                checked(chosen(limit, arguments, options), Limit, "a limit of leasehold for a function").increment_or_fail(charged)
                return body(*arguments, **options)

            return now

        @wraps(body)
        async def later(*arguments: Any, **options: Any) -> Any:
            charged = chosen(cost, arguments, options)
            its = checked(chosen(limit, arguments, options), aio.Limit, "a limit of leasehold.aio for a coroutine function")
            await its.increment_or_fail(charged)
            return await body(*arguments, **options)

        return later

    return decorate
