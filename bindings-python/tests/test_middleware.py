"""Functions and applications under a limit that is chosen by what is asked."""

import asyncio
import re
from wsgiref.util import setup_testing_defaults
from wsgiref.validate import validator

import pytest

import leasehold
from leasehold import aio, asgi, errors, wsgi

HOUR = 3600
TEXT = "text/plain; charset=utf-8"


def wsgi_app(environ, start_response):
    start_response("200 OK", [("Content-Type", "text/plain")])
    return [b"served"]


def get(app, **environ):
    setup_testing_defaults(environ)
    environ.setdefault("QUERY_STRING", "")
    told = []
    result = validator(app)(environ, lambda status, headers, error=None: told.append((status, headers)) or (lambda _: None))
    try:
        body = b"".join(result)
    finally:
        result.close()
    ((status, headers),) = told
    return status, dict(headers), body


async def asgi_app(scope, receive, send):
    if scope["type"] == "lifespan":
        return await send({"type": "lifespan.startup.complete"})
    if scope["type"] == "websocket":
        assert (await receive())["type"] == "websocket.connect"
        return await send({"type": "websocket.accept"})
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": b"served"})


async def call(app, **scope):
    sent = []

    async def receive():
        return {"type": "websocket.connect"} if scope["type"] == "websocket" else {"type": "http.request", "body": b""}

    async def send(message):
        sent.append(message)

    await app(scope, receive, send)
    return sent


def test_a_limit_is_chosen_by_what_a_function_is_called_with(memory):
    with memory.open() as lh:
        lh.register("login", max=3, period=HOUR)
        ran = []

        @leasehold.limited(lambda user, **_: lh.limit_of("login", user), lambda *_, tries=1: tries)
        def login(user, *, tries=1):
            ran.append(user)
            return user

        assert login("a", tries=2) == "a" and login("a") == "a"
        with pytest.raises(errors.Limited):
            login("a")
        assert login("b", tries=3) == "b" and ran == ["a", "a", "b"]
        with pytest.raises(errors.InvalidArgument, match="^cost: "):
            login("c", tries=None)
        with pytest.raises(errors.InvalidArgument, match="^value: must not be empty"):
            login("")
        assert ran == ["a", "a", "b"]

        by_cost = leasehold.limited(lh.limit("bytes", max=5, period=HOUR), len)(bytes)
        assert by_cost(b"abc") == b"abc"
        with pytest.raises(errors.Limited):
            by_cost(b"abc")


def test_a_limit_is_chosen_by_what_a_coroutine_function_is_called_with(memory):
    async def main():
        async with memory.open(aio) as lh:
            lh.register("login", max=2, period=HOUR)

            @leasehold.limited(lambda user, tries: lh.limit_of("login", user), cost=lambda user, tries: tries)
            async def login(user, tries):
                await asyncio.sleep(0)
                return user

            assert await login("a", 2) == "a"
            with pytest.raises(errors.Limited):
                await login("a", tries=1)
            assert await login("b", 1) == "b"

    asyncio.run(main())


def test_what_is_chosen_is_of_the_face_that_is_called(memory):
    blocking, later = (face.open(memory.url).limit("a", max=1, period=HOUR) for face in (leasehold, aio))

    async def coroutine():
        raise AssertionError("not reached")

    for given in (later, None, "a"):
        with pytest.raises(errors.InvalidArgument, match="^limit: must be a limit of leasehold for a function"):
            leasehold.limited(lambda given=given: given)(print)()
        with pytest.raises(errors.InvalidArgument, match="^limit: must be a limit, or"):
            get(wsgi.LimitRequests(wsgi_app, lambda _, given=given: given))
    for given in (blocking, None, "a"):
        with pytest.raises(errors.InvalidArgument, match="^limit: must be a limit of leasehold.aio for a coroutine function"):
            asyncio.run(leasehold.limited(lambda given=given: given)(coroutine)())
        with pytest.raises(errors.InvalidArgument, match="^limit: must be a limit of leasehold.aio"):
            asyncio.run(call(asgi.LimitRequests(asgi_app, lambda _, given=given: given), type="http"))
    for middleware, app, fit, unfit in ((wsgi, wsgi_app, blocking, later), (asgi, asgi_app, later, blocking)):
        for limit, cost, field in [(unfit, 1, "limit"), (None, 1, "limit"), (coroutine, 1, "limit"), (fit, coroutine, "cost")]:
            with pytest.raises(errors.InvalidArgument, match=f"^{field}: "):
                middleware.LimitRequests(app, limit, cost)
    with pytest.raises(errors.InvalidArgument, match="^cost: is a coroutine function"):
        leasehold.limited(blocking, coroutine)
    assert blocking.used() == 0


def test_wsgi_answers_what_is_refused_and_says_when_to_come_again(memory):
    with memory.open() as lh:
        lh.register("request", max=2, period=HOUR)
        cost = lambda environ: environ.get("HTTP_X_COST", 1)  # noqa: E731
        app = wsgi.LimitRequests(wsgi_app, lambda environ: lh.limit_of("request", environ["HTTP_X_KEY"]), cost)
        for key in ("a", "a", "b"):
            assert get(app, HTTP_X_KEY=key)[::2] == ("200 OK", b"served")
        status, headers, body = get(app, HTTP_X_KEY="a")
        seconds = int(headers["Retry-After"])
        assert status == "429 Too Many Requests" and HOUR / 3 < seconds <= HOUR / 2
        assert body == f"too many requests; try again in {seconds} s".encode() and int(headers["Content-Length"]) == len(body)
        assert re.fullmatch('"default";r=0;t=3(600|59.)', headers["RateLimit"]) and headers["Content-Type"] == TEXT
        status, headers, body = get(app, HTTP_X_KEY="a", REQUEST_METHOD="HEAD")
        assert (status, body) == ("429 Too Many Requests", b"")
        # No time will ever allow it.
        status, headers, body = get(app, HTTP_X_KEY="b", HTTP_X_COST="3")
        assert (status, body) == ("429 Too Many Requests", b"too much was asked for; ask for less")
        assert "Retry-After" not in headers and headers["RateLimit"].startswith('"default";r=1;t=')
        assert get(app, HTTP_X_KEY="b")[0] == "200 OK"
        with pytest.raises(errors.InvalidArgument, match="^cost: "):
            get(app, HTTP_X_KEY="b", HTTP_X_COST="-1")


def test_asgi_answers_what_is_refused_and_says_when_to_come_again(memory):
    async def main():
        async with memory.open(aio) as lh:
            lh.register("request", max=2, period=HOUR)
            app = asgi.LimitRequests(asgi_app, lambda scope: lh.limit_of("request", scope["client"][0]))
            for host in ("a", "a", "b"):
                start, end = await call(app, type="http", client=(host, 1))
                assert (start["status"], end["body"]) == (200, b"served")
            start, end = await call(app, type="http", client=("a", 1))
            headers = dict(start["headers"])
            seconds = int(headers[b"retry-after"])
            assert (start["type"], start["status"]) == ("http.response.start", 429) and HOUR / 3 < seconds <= HOUR / 2
            assert end == {"type": "http.response.body", "body": f"too many requests; try again in {seconds} s".encode()}
            assert re.fullmatch(b'"default";r=0;t=3(600|59.)', headers[b"ratelimit"])
            assert headers[b"content-type"] == TEXT.encode() and int(headers[b"content-length"]) == len(end["body"])
            # A WebSocket is a request as well, and the start of a server is none.
            assert await call(app, type="websocket", client=("b", 1)) == [{"type": "websocket.accept"}]
            assert await call(app, type="websocket", client=("b", 1)) == [{"type": "websocket.close", "code": 1013}]
            extensions = {"websocket.http.response": {}}
            start, end = await call(app, type="websocket", client=("b", 1), extensions=extensions)
            assert (start["type"], start["status"], end["type"]) == ("websocket.http.response.start", 429, "websocket.http.response.body")
            assert await call(app, type="lifespan") == [{"type": "lifespan.startup.complete"}]

    asyncio.run(main())


def test_what_remains_fits_into_a_header(memory):
    with memory.open() as lh:
        app = wsgi.LimitRequests(wsgi_app, lh.limit("wei", max=2**256 - 1, kind="lifetime"), 2**256 - 1)
        assert get(app)[0] == "200 OK"
        assert get(app)[1]["RateLimit"] == '"default";r=0'
        app = wsgi.LimitRequests(wsgi_app, lh.limit("more", max=2**255, kind="lifetime"), 2**255 + 1)
        assert get(app)[1]["RateLimit"] == '"default";r=999999999999999;t=0'


def test_an_outage_closes_what_the_limit_says(own_redis):
    """What it says of outages is the core's: the middleware has no say in it."""
    with leasehold.open(own_redis.url, response_timeout=1.0) as lh:
        closed, open_then = (lh.limit(name, max=1, period=HOUR, outage=name) for name in ("closed", "open"))
        own_redis.kill()
        with pytest.raises(errors.StoreUnavailable):
            get(wsgi.LimitRequests(wsgi_app, closed))
        app = wsgi.LimitRequests(wsgi_app, open_then)
        assert [get(app)[0] for _ in range(2)] == ["200 OK", "429 Too Many Requests"]
