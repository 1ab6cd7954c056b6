"""Middleware for servers that speak WSGI: Flask, Django, Bottle and their kin.

    app.wsgi_app = leasehold.wsgi.LimitRequests(
        app.wsgi_app,
        limit=lambda environ: lh.limit_of("request", environ["REMOTE_ADDR"]),
    )
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

from ._choices import TOO_MANY, check, checked, chosen, refusal
from ._leasehold import Limit

if TYPE_CHECKING:
    from _typeshed.wsgi import StartResponse, WSGIApplication, WSGIEnvironment

__all__ = ["LimitRequests"]

_WHAT = "a limit, or a function that gives one; of asyncio's, use leasehold.asgi"


class LimitRequests:
    """An application under a limit: each request first charges the cost. `limit` and `cost` are for all of them, or plain functions of
    the request's environment that choose them. What is refused is answered with status 429, with `RateLimit`, and with
    `Retry-After` if trying again can help; no name of a limit is told. Whatever else goes wrong is raised, such as
    `StoreUnavailable` where the limit is closed then. What is in flight is reserved, and not limited so."""

    def __init__(
        self,
        app: WSGIApplication,
        limit: Limit | Callable[[WSGIEnvironment], Limit],
        cost: int | str | Callable[[WSGIEnvironment], int | str] = 1,
    ) -> None:
        if not callable(limit):
            checked(limit, Limit, _WHAT)
        check(limit, "limit")
        check(cost, "cost")
        self._app, self._limit, self._cost = app, limit, cost

    def __call__(self, environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        cost = chosen(self._cost, (environ,), {})
        answer = checked(chosen(self._limit, (environ,), {}), Limit, _WHAT).take(cost)
        if answer["allowed"]:
            return self._app(environ, start_response)
        body, headers = refusal(answer)
        start_response(f"{TOO_MANY} Too Many Requests", headers)
        # Not every server leaves out by itself what a HEAD does not ask for.
        return [] if environ.get("REQUEST_METHOD") == "HEAD" else [body]
