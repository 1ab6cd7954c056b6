"""Whatever is passed, a wrong argument is an `InvalidArgument` that names it."""

import asyncio
import datetime
import decimal
import fractions
import math

import pytest

import leasehold
from leasehold import aio, errors

NUMBERS = [-1, -0.5, math.nan, math.inf, -math.inf, 2**64, 2**128, -(2**128), "1", b"1", [], {}, True, object(), 1j]
TEXTS = [0, 1.5, b"a", ["a"], {}, object(), "\ud800", "", "a" * 129]
LISTS = ["a", {"a"}, 5, [], [1], [None], [b"a"], ["a", "a"], [{"weight": 1}], [{"id": "a", "weight": 0}], [{"id": "a", "wait": 1}], iter(["a"])]


def fields():
    for option in ("ttl", "timeout", "cooldown", "max_hold", "doubt_rest", "settle"):
        yield from (("pool", option, value) for value in NUMBERS)
    for option in ("ttl", "timeout"):
        yield from (("acquire", option, value) for value in NUMBERS)
    yield from (("acquire_many", "count", value) for value in [0, 1001, 1.5, *NUMBERS])
    yield from (("open", "response_timeout", value) for value in [0, 61, *NUMBERS])
    yield from (("open", "namespace", value) for value in TEXTS)
    for call in ("pool", "acquire", "try_acquire"):
        yield from ((call, "slots", value) for value in LISTS)
        yield from ((call, "strategy", value) for value in [*TEXTS, "best"])
        yield (call, "tll", 1)
    yield from (("quarantine", "time", value) for value in NUMBERS)
    yield from (("release", "cooldown", value) for value in NUMBERS)
    yield from (("renew", "ttl", value) for value in NUMBERS)
    for call, name in (("used", "next"), ("rejected", "expected"), ("resync", "nonce")):
        yield from ((call, name, value) for value in [5.0, *NUMBERS] if not (name == "expected" and value is None))
    yield from (("resync", "rewind", value) for value in [0, 1, "yes", [], object()])
    for call in ("remove", "enable", "disable", "drain", "break_lease"):
        yield from ((call, "slot", value) for value in [*TEXTS, None])
    yield from (("named", "name", value) for value in [*TEXTS, None])
    yield from (("add", "slots", value) for value in [*LISTS, None])
    for call in ("lock", "lock.acquire", "lock.run"):
        yield from ((call, option, value) for option in ("ttl", "timeout") for value in NUMBERS)
        yield from ((call, "reentrant", value) for value in [0, 1, "yes", [], object()])
        yield from ((call, option, 1) for option in ("tll", "slots"))
        yield (call, "ttl", 61)
    for call in ("lock", "lock.acquire"):
        yield from ((call, option, True) for option in ("if_", "unless"))
    yield from (("lock.run", option, value) for option in ("if_", "unless") for value in [0, 1, "yes", [], object()])
    yield ("lock.run", "if", True)
    yield from (("lock.run", "body", value) for value in [None, 5, "a", object()])
    yield from (("locks", "names", value) for value in [*TEXTS[:2], *TEXTS[4:], None, "a b", ["a"] * 2, [1], [None], ["a"] * 1001, {"a"}, iter(["a"])])
    yield from (("lost", "timeout", value) for value in NUMBERS)
    yield from (("open", "lock_ttl", value) for value in [0, 7 * 86_400 + 1, *NUMBERS])
    yield from (("open", "lock_ageing", value) for value in [366 * 86_400, *NUMBERS])
    yield from (("inspect", "slots", value) for value in ["a", {"a"}, 5, [1], [None], [""], ["a"] * 1001, iter(["a"])])


@pytest.mark.parametrize(("call", "name", "value"), list(fields()), ids=lambda it: repr(it)[:20])
def test_wrong_arguments_are_named(call, name, value):
    lh = leasehold.open("memory:arguments")
    pool = lh.pool("p", slots=["a"])
    lease = pool.acquire()
    lock = lh.lock("a", reentrant=True)
    calls = {
        "open": lambda it: leasehold.open(**{name: it}),
        "pool": lambda it: lh.pool("q", **{name: it}),
        "named": lambda it: lh.pool(it),
        "locks": lambda it: lh.lock(it),
        "lock": lambda it: lh.lock("a", **{name: it}),
        "lock.acquire": lambda it: lock.acquire(**{name: it}),
        "lock.run": lambda it: lock.run(**({"body": print} | {name: it})),
        "lost": lambda it: lock.run(lambda locked: locked.lost(it)),
        "quarantine": lambda it: pool.quarantine("a", it),
        "resync": lambda it: lease.resync(**({"nonce": 1} | {name: it})),
        **{method: lambda it, method=method: getattr(lease, method)(it) for method in ("release", "renew", "used", "rejected")},
        **{
            method: lambda it, method=method: getattr(pool, method)(it)
            for method in ("remove", "enable", "disable", "drain", "break_lease", "add", "inspect")
        },
        **{
            method: lambda it, method=method: getattr(pool, method)(**{name: it})
            for method in ("acquire", "acquire_many", "try_acquire")
        },
    }
    with lease:
        with pytest.raises(errors.InvalidArgument) as caught:
            calls[call](value)
        assert caught.value.field is not None
        assert caught.value.field.split("[")[0].split(".")[0] == name
        assert caught.value.field in str(caught.value)
        lease.unused()


@pytest.mark.parametrize(
    ("target", "field"),
    [
        (5, "url"),
        ("", "url"),
        (None, "url"),
        ("http://localhost", "url"),
        (b"memory:", "url"),
        (["memory:"], "url"),
        ({}, "mode"),
        ({"mode": "apart"}, "mode"),
        ({"mode": "shared"}, "redis.endpoint"),
        ({"mode": "shared", "redis": {"endpoint": 5}}, "redis.endpoint"),
        ({"mode": "segregated", "retry_timeout": -1}, "retry_timeout"),
        ({"mode": "segregated", "retry_timeout": {1}}, "url.retry_timeout"),
        ({"mode": "segregated", 5: 1}, "url"),
    ],
)
def test_wrong_stores_are_named(target, field):
    for open in (leasehold.open, aio.open):
        with pytest.raises(errors.InvalidArgument) as caught:
            open(target)
        assert caught.value.field == field


def test_asyncio_refuses_the_same():
    async def main():
        lh = aio.open("memory:arguments")
        pool = await lh.pool("p", slots=["a"])
        async with pool.acquire() as lease:
            for wrong, field in (
                (lambda: lh.pool("q", ttl=2**64), "ttl"),
                (lambda: lh.pool("q", tll=1), "tll"),
                (lambda: pool.acquire(ttl=math.nan), "ttl"),
                (lambda: pool.acquire_many(count=-1), "count"),
                (lambda: pool.add({"a"}), "slots"),
                (lambda: pool.inspect([1]), "slots[0]"),
                (lambda: pool.quarantine("a", "1"), "time"),
                (lambda: lease.renew(-1), "ttl"),
                (lambda: lease.resync(2**64), "nonce"),
                (lambda: lease.release(math.inf), "cooldown"),
            ):
                with pytest.raises(errors.InvalidArgument) as caught:
                    await wrong()
                assert caught.value.field == field
            lease.unused()

    asyncio.run(main())


def opened_with(**options):
    return leasehold.open("memory:options", **options)


# A function is a likely value of an option that another language has, or that is spelled otherwise here.
@pytest.mark.parametrize("value", [1, print, object(), b"a", {"a"}])
def test_an_option_that_there_is_none_of_is_told_as_such_whatever_its_value(value):
    lh = opened_with()
    pool, lock, limit = lh.pool("p", slots=["a"]), lh.lock("a"), lh.limit("a", max=1, period=1)
    wallet = lh.tokens("w", source=leasehold.TokensInMemory())
    calls = [
        opened_with,
        lambda **it: leasehold.open_quorum(["memory:"], **it),
        lambda **it: lh.pool("q", **it),
        lambda **it: lh.lock("a", **it),
        lambda **it: lh.limit("a", max=1, period=1, **it),
        lambda **it: lh.tokens("w", source=leasehold.TokensInMemory(), **it),
        pool.acquire,
        pool.acquire_many,
        pool.try_acquire,
        lock.acquire,
        lambda **it: lock.run(print, **it),
        lambda **it: wallet.select(0, **it),
        limit.wait,
        lambda **it: limit.wait_to_reserve(ttl=1, **it),
    ]
    for call in calls:
        with pytest.raises(errors.InvalidArgument, match="^on_claimed: is not an option; there are: ") as caught:
            call(on_claimed=value)
        assert caught.value.field == "on_claimed"
    # Nothing was taken meanwhile.
    pool.acquire(timeout=0).release()
    lock.acquire(timeout=0).release()
    assert limit.used() == 0


def test_a_duration_is_a_number_of_seconds():
    pool = opened_with().pool("p", slots=["a"])
    for call in (lambda it: pool.acquire(timeout=it), lambda it: pool.quarantine("a", it)):
        with pytest.raises(errors.InvalidArgument, match=r": is a timedelta; pass seconds, as a number$"):
            call(datetime.timedelta(seconds=1))
        for wrong in (decimal.Decimal(1), fractions.Fraction(1)):
            with pytest.raises(errors.InvalidArgument, match=r": is a \w+; pass an int, a float, or an amount's digits$"):
                call(wrong)
