"""Middleware for servers that speak ASGI: Starlette, FastAPI, Quart, Django and their kin. Limits are those of asyncio.

    lh = leasehold.aio.open(url)
    lh.register("request", max=10, period=1)
    app.add_middleware(
        leasehold.asgi.LimitRequests,
        limit=lambda scope: lh.limit_of("request", scope["client"][0]),
    )
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

from . import aio
from ._choices import TOO_MANY, check, checked, chosen, refusal

__all__ = ["LimitRequests"]

_Message = MutableMapping[str, Any]
_Receive = Callable[[], Awaitable[_Message]]
_Send = Callable[[_Message], Awaitable[None]]
_App = Callable[[MutableMapping[str, Any], _Receive, _Send], Awaitable[None]]

# Of a WebSocket, where its server can tell no status: try again later.
_LATER = 1013

_WHAT = "a limit of leasehold.aio, or a function that gives one"


class LimitRequests:
    """An application under a limit of asyncio: each request and each WebSocket first charges the cost. `limit` and `cost` are for all
    of them, or plain functions of the connection's scope that choose them. What is refused is answered with status 429, with
    `RateLimit`, and with `Retry-After` if trying again can help; no name of a limit is told. Whatever else goes wrong is raised,
    such as `StoreUnavailable` where the limit is closed then. What is in flight is reserved, and not limited so."""

    def __init__(
        self,
        app: _App,
        limit: aio.Limit | Callable[[MutableMapping[str, Any]], aio.Limit],
        cost: int | str | Callable[[MutableMapping[str, Any]], int | str] = 1,
    ) -> None:
        if not callable(limit):
            checked(limit, aio.Limit, _WHAT)
        check(limit, "limit")
        check(cost, "cost")
        self._app, self._limit, self._cost = app, limit, cost

    async def __call__(self, scope: MutableMapping[str, Any], receive: _Receive, send: _Send) -> None:
        if scope["type"] not in ("http", "websocket"):
            return await self._app(scope, receive, send)
        cost = chosen(self._cost, (scope,), {})
        answer = await checked(chosen(self._limit, (scope,), {}), aio.Limit, _WHAT).take(cost)
        if answer["allowed"]:
            return await self._app(scope, receive, send)
        kind = "http"
        if scope["type"] == "websocket":
            # It is asked for before it can be refused.
            await receive()
            kind = "websocket.http"
            if "websocket.http.response" not in (scope.get("extensions") or {}):
                return await send({"type": "websocket.close", "code": _LATER})
        body, told = refusal(answer)
        headers = [(name.lower().encode(), value.encode()) for name, value in told]
        await send({"type": f"{kind}.response.start", "status": TOO_MANY, "headers": headers})
        await send({"type": f"{kind}.response.body", "body": body})
