"""What limits refuse: each wrong argument by its name."""

import asyncio
import math

import pytest

import leasehold
from leasehold import aio, errors

# Nothing worth mentioning comes back while a test runs.
HOUR = 3600
YEAR = 366 * 86_400
AMOUNTS = [-1, 1.5, math.nan, math.inf, -(2**200), 2**256, "", "-1", "1e3", "1_000", "010", "0x", "0xg", str(2**256), True, b"1", [], {}, ..., "\ud800"]
TIMES = [-1, math.nan, math.inf, 2**64, 2**200, "1", b"1", [], {}, True, ...]
WORDS = ["ajar", "", 5, True, b"open", [], ..., "\ud800"]
RATE = {"max": 5, "period": 60}


@pytest.mark.parametrize("face", [leasehold, aio])
def test_what_is_wrong_with_an_action_is_named(face):
    lh = face.open()
    lh.register("action", max=2, period=HOUR)
    for field, says, call in [
        ("action", '"action" is registered with other options', lambda: lh.register("action", max=3, period=HOUR)),
        ("action", "must be text", lambda: lh.register(7, max=3, period=HOUR)),
        ("max", "is missing", lambda: lh.register("new")),
        ("action", '"new" is not registered with this handle', lambda: lh.limit_of("new", "a")),
        ("value", "must not be empty", lambda: lh.limit_of("action", "")),
        ("value", "257 bytes long, at most 256", lambda: lh.limit_of("action", "v" * 257)),
        ("value", "must be text or a whole number, not nothing", lambda: lh.limit_of("action", None)),
        ("value", "must be text or a whole number, not a truth value", lambda: lh.limit_of("action", True)),
        ("value", "is not a whole number", lambda: lh.limit_of("action", -0.5)),
    ]:
        with pytest.raises(errors.InvalidArgument, match=says) as wrong:
            call()
        assert wrong.value.field == field
    assert isinstance(lh.limit_of("action", "a"), face.Limit)


async def coroutine():
    pass


async def generates_later():
    yield


def generates():
    yield


def test_what_cannot_be_under_a_limit_is_refused_when_it_is_decorated(memory):
    sync, later = (memory.open(face).limit("a", **RATE) for face in (leasehold, aio))
    for limit in ("not a limit", None, memory.open(), coroutine, generates):
        with pytest.raises(errors.InvalidArgument, match="^limit: ") as caught:
            leasehold.limited(limit)
        assert caught.value.field == "limit"
    for limit in (sync, later):
        for cost in (None, *AMOUNTS):
            with pytest.raises(errors.InvalidArgument, match="^cost: ") as caught:
                leasehold.limited(limit, cost)
            assert caught.value.field == "cost"
    unfit = [(sync, it) for it in (coroutine, generates_later)] + [(later, it) for it in (print, generates, generates_later)]
    for limit, body in [*unfit, (sync, None), (sync, 5), (later, None)]:
        with pytest.raises(errors.InvalidArgument, match="^body: ") as caught:
            leasehold.limited(limit)(body)
        assert caught.value.field == "body"
    assert sync.used() == 0


def test_asyncio_refuses_a_cost_that_is_none(memory):
    async def main():
        limit = memory.open(aio).limit("a", **RATE)
        for verb in (limit.take, limit.increment, limit.increment_or_fail, limit.refund, limit.decrement, limit.wait):
            with pytest.raises(errors.InvalidArgument, match="^cost: "):
                await verb(None)
        for verb in (limit.reserve, limit.wait_to_reserve):
            with pytest.raises(errors.InvalidArgument, match="^cost: "):
                await verb(None, ttl=1)
        assert await limit.used() == 0

    asyncio.run(main())


def fields():
    yield from (("limit", RATE | {"max": value}, "max") for value in [None, 10**16, *AMOUNTS])
    yield ("limit", {"period": 60}, "max")
    yield ("limit", {"max": 5}, "period")
    yield from (("limit", RATE | {"period": value}, "period") for value in [None, 1e-9, YEAR + 1, *TIMES])
    yield from (("limit", RATE | {"kind": value}, "kind") for value in WORDS)
    yield from (("limit", RATE | {"outage": value}, "outage") for value in WORDS)
    yield from (("limit", RATE | {"scope": value}, "scope") for value in [*WORDS[1:], "a" * 129])
    yield from (("limit", RATE | {"kind": "gcra", "burst": value}, "burst") for value in [-1, 1.5, 2**64, "5", True, []])
    yield ("limit", RATE | {"burst": 5}, "burst")
    yield from (("limit", RATE | {"kind": "budget", "offset": value}, "offset") for value in [60, *TIMES])
    yield ("limit", RATE | {"offset": 5}, "offset")
    yield ("limit", RATE | {"maximum": 5}, "maximum")
    yield from (("named", value, "name") for value in [None, *WORDS[1:], "a" * 129])
    for verb in ("take", "increment", "increment_or_fail", "peek", "exceeded", "limit_exceeded", "refund", "decrement", "wait", "at_cost"):
        yield from ((verb, {"cost": value}, "cost") for value in [None, *AMOUNTS])
    for verb in ("reserve", "wait_to_reserve"):
        yield from ((verb, {"ttl": 1, "cost": value}, "cost") for value in [None, *AMOUNTS])
        yield from ((verb, {"ttl": value}, "ttl") for value in [None, 0, 8 * 86_400, *TIMES])
    for verb, given in (("wait", {}), ("wait_to_reserve", {"ttl": 1})):
        yield from ((verb, given | {"timeout": value}, "timeout") for value in TIMES)
        yield from ((verb, given | {"priority": value}, "priority") for value in [1.5, 40_000, -40_000, "1", True, []])
        yield (verb, given | {"timout": 1}, "timout")


@pytest.mark.parametrize(("call", "given", "field"), list(fields()), ids=lambda it: ascii(it)[:40])
def test_wrong_arguments_are_named(call, given, field):
    lh = leasehold.open("memory:limit-arguments")
    calls = {"limit": lambda: lh.limit("b", **given), "named": lambda: lh.limit(given, **RATE)}
    limit = lh.limit("a", **RATE)
    with pytest.raises(errors.InvalidArgument) as caught:
        calls.get(call, lambda: getattr(limit, call)(**given))()
    assert caught.value.field == field
    assert str(caught.value).startswith(f"{field}: ")
    assert limit.used() == 0


def test_what_python_does_not_write_down_is_named(memory):
    with pytest.raises(errors.InvalidArgument, match="^cost: "):
        memory.open().limit("a", **RATE).take(10**5000)


def test_wrong_groups_are_named(memory):
    lh, other = memory.open(), memory.open()
    limit, lock = lh.limit("a", **RATE), lh.lock("a")
    many = [lh.limit(f"m{at}", **RATE) for at in range(65)]
    apart = [lh.limit("b", scope="s", **RATE), other.limit("b", **RATE), lh.limit("a", max=6, period=60)]
    for wrong in (5, None, {limit}, iter([limit]), limit, many, *([limit, it] for it in apart)):
        with pytest.raises(errors.InvalidArgument) as caught:
            lh.group(wrong)
        assert caught.value.field == "limits"
    for wrong in (lock, "a", 5):
        with pytest.raises(errors.InvalidArgument) as caught:
            lh.group([limit, None, wrong])
        assert caught.value.field == "limits[2]"
