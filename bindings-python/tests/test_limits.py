"""Limits, with threads and with asyncio."""

import asyncio
import gc
import math
import os
import signal
import subprocess
import sys
import threading
import time

import pytest

import leasehold
from leasehold import aio, errors

# Nothing worth mentioning comes back while a test runs.
HOUR = 3600
YEAR = 366 * 86_400
KEYS = {"allowed", "limit", "remaining", "retry_after", "reset_after", "said"}


def opened(place, face=leasehold):
    return face.open(place.url, namespace=place.namespace)


@pytest.fixture
def lh(place):
    with opened(place) as lh:
        yield lh


@pytest.fixture
def other(place):
    with opened(place) as other:
        yield other


def test_each_value_of_a_registered_action_is_a_limit_of_its_own(lh, other):
    lh.register("action", max=2, period=HOUR)
    lh.register("action", max="2", period=HOUR, kind="refill")
    other.register("action", max=2, period=HOUR)
    limit = lh.limit_of("action", "10.0.0.1")
    assert (limit.increment(2), limit.increment()) == (True, False)
    assert other.limit_of("action", "10.0.0.1").exceeded()
    # Each by itself, and none of them what `limit` names.
    for value, name in [
        ("10.0.0.2", "action%=10.0.0.2"),
        (7, "action%=7"),
        (2**53, "action%=9007199254740992"),
        ("::1", "action%=::1"),
        ("é {~%", "action%=~c3~a9~20~7b~7e~25"),
    ]:
        answer = lh.limit_of("action", value).take()
        assert (answer["allowed"], answer["remaining"], answer["limit"]) == (True, 1, name)
    assert other.limit_of("action", "7").take()["remaining"] == 0
    assert lh.limit("action:7", max=2, period=HOUR).take()["remaining"] == 1


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
        ("value", "is not a whole number", lambda: lh.limit_of("action", -1)),
    ]:
        with pytest.raises(errors.InvalidArgument, match=says) as wrong:
            call()
        assert wrong.value.field == field
    assert isinstance(lh.limit_of("action", "a"), face.Limit)


def test_each_verb(lh):
    limit = lh.limit("logins:10.0.0.1", max=3, period=HOUR)
    answer = limit.take()
    assert set(answer) == KEYS
    assert (answer["allowed"], answer["limit"], answer["remaining"], answer["retry_after"]) == (True, "logins:10.0.0.1", 2, 0.0)
    assert HOUR / 4 < answer["reset_after"] <= HOUR / 3 and answer["said"] == "store"
    assert limit.increment(2) is True and limit.increment() is False
    refused = limit.take(1)
    assert (refused["allowed"], refused["remaining"]) == (False, 0)
    assert HOUR / 4 < refused["retry_after"] <= HOUR / 3 and refused["said"] in ("store", "memory")
    with pytest.raises(errors.Limited, match="logins:10.0.0.1 has 0 left; try again in") as limited:
        limit.increment_or_fail()
    assert 0 < limited.value.retry_after <= HOUR / 3
    with pytest.raises(errors.Limited, match="never") as limited:
        limit.increment_or_fail(4)
    assert limited.value.retry_after is None
    assert limit.refund(2)["remaining"] == 2
    assert limit.decrement()["remaining"] == 3
    assert limit.peek(4)["retry_after"] is None
    assert limit.increment_or_fail("2")["remaining"] == 1
    assert limit.peek()["allowed"] is True and limit.peek(2)["allowed"] is False
    assert limit.exceeded(2) is True and limit.exceeded() is False
    assert limit.limit_exceeded(2) == "logins:10.0.0.1" and limit.limit_exceeded() is None
    assert (limit.remaining(), limit.used()) == (1, 2)
    assert limit.take(0)["allowed"]
    assert limit.reset() is None
    assert (limit.remaining(), limit.used()) == (3, 0)
    assert repr(limit) == '<leasehold Limit { names: ["logins:10.0.0.1"] }>'


def test_each_verb_with_asyncio(place):
    async def main():
        async with opened(place, aio) as lh:
            limit = lh.limit("a", max=3, period=HOUR)
            answer = await limit.take(2)
            assert (set(answer), answer["remaining"]) == (KEYS, 1)
            assert await limit.increment() is True and await limit.increment() is False
            with pytest.raises(errors.Limited):
                await limit.increment_or_fail()
            assert (await limit.refund(2))["remaining"] == 2
            assert (await limit.decrement())["remaining"] == 3
            assert (await limit.increment_or_fail(2))["remaining"] == 1
            assert (await limit.peek(4))["retry_after"] is None
            assert await limit.exceeded(2) and await limit.limit_exceeded(2) == "a" and await limit.limit_exceeded() is None
            assert (await limit.remaining(), await limit.used()) == (1, 2)
            assert (await limit.wait())["allowed"]
            assert await limit.reset() is None
            assert await limit.used() == 0
            assert "a" in repr(limit)
            # Many at once travel together, and are counted one by one.
            taken = await asyncio.gather(*[limit.increment() for _ in range(50)])
            assert taken.count(True) == 3
        with pytest.raises(errors.Cancelled):
            lh.limit("b", max=1, period=1)

    asyncio.run(main())


@pytest.mark.parametrize(
    "options",
    [
        {"period": HOUR},
        {"period": HOUR, "kind": "refill", "outage": None, "scope": "apart"},
        {"period": HOUR, "kind": "gcra"},
        {"period": HOUR, "kind": "rolling"},
        {"period": YEAR, "kind": "budget", "offset": 1.5},
        {"kind": "lifetime"},
    ],
    ids=str,
)
def test_each_kind_allows_its_maximum(lh, options):
    limit = lh.limit("a", max=2, **options)
    assert [limit.increment() for _ in range(3)] == [True, True, False]


def test_a_burst(lh):
    limit = lh.limit("a", max=2, period=HOUR, kind="gcra", burst=4)
    assert [limit.increment(2) for _ in range(3)] == [True, True, False]


def test_what_has_no_period_limits_each_request_by_itself(lh):
    limit = lh.limit("a", max=2, period=0)
    assert [limit.increment(cost) for cost in (2, 2, 3)] == [True, True, False]


def test_two_handles_share_a_limit(lh, other, place):
    one, same = (it.limit("a", max=3, period=HOUR) for it in (lh, other))
    assert one.increment(2) and not same.increment(2) and same.increment()
    assert one.used() == 3

    async def main():
        assert await opened(place, aio).limit("a", max=3, period=HOUR).used() == 3

    asyncio.run(main())
    # Another maximum loses nothing of what was used.
    assert other.limit("a", max=5, period=HOUR).remaining() == 2


def test_never_more_than_the_maximum_with_many_threads(lh, other):
    limits = [it.limit("a", max=100, period=YEAR, kind="rolling") for it in (lh, other)]
    allowed = []

    def work(limit):
        for _ in range(20):
            if limit.increment():
                allowed.append(1)

    threads = [threading.Thread(target=work, args=(limits[at % 2],)) for at in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(allowed) == 100


def test_large_amounts(lh):
    half = 2**255
    budget = lh.limit("wei", max=2**256 - 1, period=YEAR, kind="budget")
    answer = budget.take(half)
    assert (answer["remaining"], type(answer["remaining"])) == (half - 1, int)
    assert not budget.increment(half)
    assert budget.increment(str(half - 1))
    assert (budget.used(), budget.remaining()) == (2**256 - 1, 0)
    # At the borders of what travels as what.
    for amount in (2**53 + 1, 2**64 - 1, 2**64, 2**127 - 1, 2**127, 2**128 + 7):
        limit = lh.limit("lifetime", max=str(amount), kind="lifetime")
        limit.reset()
        assert limit.increment(amount) and not limit.increment()
        assert limit.used() == amount
        limit.refund(amount)
        assert limit.remaining() == amount


def test_groups(lh):
    key, account = lh.limit("key", max=5, period=HOUR), lh.limit("account", max=100, period=HOUR)
    group = lh.group([lh.group([key, None]), account, key])
    assert group.increment(3)
    assert group.take(3)["limit"] == "key"
    assert group.limit_exceeded(3) == "key"
    # What is there twice was charged once, and nobody was charged for the refusal.
    assert (key.used(), account.used(), group.remaining()) == (3, 3, 2)
    gas = lh.limit("gas", max=10**6, period=HOUR)
    both = lh.group((gas, key.at_cost(1)))
    assert both.increment(21_000)
    assert (gas.used(), key.used()) == (21_000, 4)
    answer = lh.group([None]).take(7)
    assert (answer["allowed"], answer["limit"], answer["remaining"]) == (True, None, 2**256 - 1)


def test_groups_with_asyncio(place):
    async def main():
        lh = opened(place, aio)
        key, account = lh.limit("key", max=5, period=HOUR), lh.limit("account", max=100, period=HOUR)
        group = lh.group([lh.group([key.at_cost(1), None]), account])
        assert await group.increment(50) and not await group.increment(51)
        assert (await key.used(), await account.used()) == (1, 50)
        for wrong, field in (([5], "limits[0]"), ([key, lh.lock("a")], "limits[1]"), (5, "limits"), ("a", "limits[0]")):
            with pytest.raises(errors.InvalidArgument) as caught:
                lh.group(wrong)
            assert caught.value.field == field

    asyncio.run(main())


def test_a_reservation_ends_once(lh):
    limit = lh.limit("spend", max=10, kind="lifetime")
    kept = limit.reserve(4, ttl=HOUR)
    assert kept.answer["remaining"] == 6
    assert 0.9 * HOUR < kept.remaining < HOUR
    back = limit.reserve(6, ttl=HOUR)
    with pytest.raises(errors.Limited, match="spend has 0 left"):
        limit.reserve(ttl=HOUR)
    assert back.refund() is None and kept.commit() is None
    for reservation in (kept, back):
        for end in (reservation.commit, reservation.refund):
            with pytest.raises(errors.Lost, match="ended already"):
                end()
    assert limit.used() == 4 and kept.remaining == 0.0
    late = limit.reserve(ttl=1)
    time.sleep(1.05)
    assert late.remaining == 0.0
    with pytest.raises(errors.Lost, match="time has passed"):
        late.refund()
    assert limit.used() == 5


def test_a_reservation_is_ended_by_its_id(memory):
    here, there = opened(memory), opened(memory)

    def group(lh):
        return lh.group([lh.limit("spend", max=10, kind="lifetime"), lh.limit("flights", max=9, kind="in_flight").at_cost(1)])

    def used():
        return here.limit("spend", max=10, kind="lifetime").used(), here.limit("flights", max=9, kind="in_flight").used()

    first = group(here).reserve(4, ttl=HOUR)
    given, kept = first.hand_over(), group(here).reserve(3, ttl=HOUR).hand_over()
    assert (first.id, first.remaining, used()) == (given, 0.0, (7, 2))
    with pytest.raises(errors.Lost):
        first.hand_over()
    for _ in range(2):
        assert group(there).refund_reservation(given) is None
        assert group(there).commit_reservation(kept) is None
        assert used() == (3, 0)
    for end in (lambda: group(there).commit_reservation(given), lambda: group(there).refund_reservation(kept)):
        with pytest.raises(errors.Lost):
            end()
    for wrong in ("x", 5, None, kept[:-1]):
        with pytest.raises(errors.InvalidArgument) as caught:
            group(there).refund_reservation(wrong)
        assert caught.value.field == "id"

    async def main():
        lh = opened(memory, aio)
        limit = lh.limit("flights", max=9, kind="in_flight")
        reservation = await limit.reserve(2, ttl=HOUR)
        assert reservation.hand_over() == reservation.id
        assert await limit.used() == 2
        await limit.commit_reservation(reservation.id)
        await limit.refund_reservation((await limit.reserve(1, ttl=HOUR)).hand_over())
        assert await limit.used() == 0

    asyncio.run(main())


def test_a_reservation_as_a_block(lh):
    flying, spend = lh.limit("signer", max=1, kind="in_flight"), lh.limit("spend", max=10, kind="lifetime")
    both = lh.group([flying.at_cost(1), spend])
    with both.reserve(3, ttl=HOUR):
        with pytest.raises(errors.Limited, match="signer"):
            both.reserve(3, ttl=HOUR)
    assert (flying.used(), spend.used()) == (0, 3)
    with both.reserve(3, ttl=HOUR) as reservation:
        reservation.refund()
    assert (flying.used(), spend.used()) == (0, 3)
    with pytest.raises(KeyError), both.reserve(2, ttl=HOUR):
        raise KeyError
    assert (flying.used(), spend.used()) == (0, 5)
    reservation = both.reserve(ttl=HOUR)
    del reservation
    gc.collect()
    # Who had it may still be at work: it lands at its deadline.
    assert (flying.used(), spend.used()) == (1, 6)


# The task was cancelled after the store had answered and before it ran again: it stayed charged.
def test_a_reservation_that_reaches_nobody_is_not_charged(memory):
    async def main():
        limit = opened(memory, aio).limit("spend", max=1_000, kind="lifetime")

        async def reserve(waits):
            return await (limit.wait_to_reserve if waits else limit.reserve)(ttl=HOUR)

        tasks = []
        for turn in range(120):
            task = asyncio.ensure_future(reserve(turn % 2 == 0))
            tasks.append(task)
            for _ in range(turn % 5):
                await asyncio.sleep(0)
            task.cancel()
        done = await asyncio.gather(*tasks, return_exceptions=True)
        had = [it for it in done if not isinstance(it, BaseException)]
        assert len(had) < len(done)
        assert await limit.used() == len(had)

    asyncio.run(main())


def test_a_reservation_shows_what_it_is_of(lh):
    reservation = lh.limit("signer", max=1, kind="in_flight").reserve(ttl=HOUR)
    assert repr(reservation) == '<leasehold Reservation { limit: "signer", ended: false }>'
    reservation.commit()
    assert repr(reservation) == '<leasehold Reservation { limit: "signer", ended: true }>'


def test_a_reservation_with_asyncio(place):
    async def main():
        lh = opened(place, aio)
        flying, spend = lh.limit("signer", max=1, kind="in_flight"), lh.limit("spend", max=10, kind="lifetime")
        both = lh.group([flying.at_cost(1), spend])
        async with both.reserve(3, ttl=HOUR) as reservation:
            assert reservation.answer["allowed"]
            with pytest.raises(errors.Limited):
                await both.reserve(3, ttl=HOUR)
        assert (await flying.used(), await spend.used()) == (0, 3)
        with pytest.raises(errors.Lost):
            await reservation.refund()
        reservation = await both.reserve(ttl=HOUR)
        waiting = asyncio.create_task(waited(both))
        await asyncio.sleep(0)
        await reservation.refund()
        await (await waiting).commit()
        with pytest.raises(KeyError):
            async with both.wait_to_reserve(2, ttl=HOUR, timeout=30):
                raise KeyError
        assert (await flying.used(), await spend.used()) == (0, 7)

    async def waited(limit):
        return await limit.wait_to_reserve(2, ttl=HOUR, timeout=30, priority=1)

    asyncio.run(main())


KILLED = """
import sys, leasehold
lh = leasehold.open(sys.argv[1], namespace=sys.argv[2])
with lh.limit("signer", max=1, kind="in_flight").reserve(ttl=3600):
    pass
"""


def test_the_end_of_a_block_is_told_before_the_process_ends(redis_place):
    subprocess.run([sys.executable, "-c", KILLED, redis_place.url, redis_place.namespace], check=True, stdin=subprocess.DEVNULL)
    with opened(redis_place) as lh:
        assert lh.limit("signer", max=1, kind="in_flight").used() == 0


def test_waiting(lh):
    assert lh.limit("soon", max=1, period=0.05).wait()["allowed"]
    assert lh.limit("soon", max=1, period=0.05).wait(timeout=30)["allowed"]
    limit = lh.limit("late", max=1, period=HOUR)
    assert limit.wait()["remaining"] == 0
    with pytest.raises(errors.TimedOut):
        limit.wait(timeout=0.02)
    with pytest.raises(errors.Limited, match="never"):
        limit.wait(2, timeout=HOUR)
    outcomes = []
    waiter = threading.Thread(target=lambda: outcomes.append(limit.wait(timeout=30, priority=3)))
    waiter.start()
    limit.refund()
    waiter.join(30)
    assert [it["allowed"] for it in outcomes] == [True]
    flying = lh.limit("flying", max=1, kind="in_flight")
    with flying.reserve(ttl=HOUR) as reservation:
        waiter = threading.Thread(target=lambda: outcomes.append(flying.wait_to_reserve(ttl=HOUR, timeout=30)))
        waiter.start()
        reservation.commit()
        waiter.join(30)
    outcomes[1].commit()
    assert flying.used() == 0
    with pytest.raises(errors.Lost), flying.reserve(ttl=1):
        time.sleep(1.05)


def test_a_closed_handle_ends_what_waits(place):
    lh = opened(place)
    limit = lh.limit("a", max=1, period=HOUR)
    limit.take()
    outcomes = []

    def wait():
        try:
            limit.wait(timeout=HOUR)
        except errors.Cancelled:
            outcomes.append("cancelled")

    waiter = threading.Thread(target=wait)
    waiter.start()
    time.sleep(0.05)
    lh.close()
    waiter.join(30)
    assert outcomes == ["cancelled"]
    with pytest.raises(errors.Cancelled):
        lh.limit("a", max=1, period=HOUR)


def test_a_cancelled_wait_is_given_up(place):
    async def main():
        lh = opened(place, aio)
        limit = lh.limit("a", max=1, period=HOUR)
        await limit.take()
        waiting = [asyncio.create_task(waited(limit, priority)) for priority in (0, 5)]
        for _ in range(5):
            # What waits has asked before this.
            await asyncio.sleep(0.01)
            await limit.peek()
        for task in waiting:
            task.cancel()
        ends = await asyncio.gather(*waiting, return_exceptions=True)
        assert all(isinstance(end, asyncio.CancelledError) for end in ends)
        with pytest.raises(asyncio.TimeoutError):
            await asyncio.wait_for(limit.wait(timeout=HOUR), 0.01)
        await limit.refund()
        await asyncio.sleep(0.05)
        assert await limit.used() == 0
        # Nor does it keep its place.
        assert (await limit.wait(timeout=30))["allowed"]

    async def waited(limit, priority):
        return await limit.wait(timeout=HOUR, priority=priority)

    asyncio.run(main())


def test_ctrl_c_ends_a_wait(lh):
    limit = lh.limit("a", max=1, period=HOUR)
    limit.take()
    timer = threading.Timer(0.1, os.kill, (os.getpid(), signal.SIGINT))
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        limit.wait(timeout=30)
    timer.join()
    limit.refund()
    assert limit.used() == 0


def test_an_outage(own_redis):
    lh = leasehold.open(own_redis.url, response_timeout=0.3)
    closed = lh.limit("closed", max=2, period=HOUR, outage="closed")
    open = lh.limit("open", max=2, period=HOUR, outage="open")
    flying = lh.limit("flying", max=2, kind="in_flight", outage="open")
    assert closed.increment() and open.increment()
    reservation = flying.reserve(ttl=HOUR)
    own_redis.kill()
    for call in (closed.take, closed.peek, closed.used, closed.refund, closed.reset, closed.wait, open.refund, lh.group([open, closed]).take):
        with pytest.raises(errors.StoreUnavailable):
            call()
    with pytest.raises(errors.StoreUnavailable):
        flying.reserve(ttl=HOUR)
    # What one process would be allowed that was alone, and took one before.
    answers = [open.take() for _ in range(3)]
    assert [(it["allowed"], it["said"]) for it in answers] == [(True, "outage"), (False, "outage"), (False, "outage")]
    with pytest.raises(errors.Limited):
        open.increment_or_fail()
    # The error of the block is the one to be seen, with a note of the other.
    with pytest.raises(KeyError) as caught, reservation:
        raise KeyError
    assert caught.value.__notes__[0].startswith("At the end of the block: StoreUnavailable: ")

    async def main():
        lh = aio.open(own_redis.url, response_timeout=0.3)
        with pytest.raises(errors.StoreUnavailable):
            await lh.limit("a", max=2, period=HOUR).take()
        assert (await lh.limit("a", max=2, period=HOUR, outage="open").take())["said"] == "outage"

    asyncio.run(main())


def test_an_outage_at_the_end_of_a_block(own_redis):
    async def main():
        lh = aio.open(own_redis.url, response_timeout=0.3)
        flying = lh.limit("flying", max=3, kind="in_flight")
        blocks = [await flying.reserve(ttl=HOUR) for _ in range(3)]
        own_redis.kill()
        # It was charged to the block's end, and stays so.
        async with blocks[0]:
            pass
        with pytest.raises(KeyError) as caught:
            async with blocks[1]:
                raise KeyError
        assert caught.value.__notes__[0].startswith("At the end of the block: StoreUnavailable: ")
        with pytest.raises(errors.StoreUnavailable):
            await blocks[2].refund()

    asyncio.run(main())


def test_functions_under_a_limit(lh, place):
    limit = lh.limit("a", max=3, period=HOUR)
    ran = []

    @leasehold.limited(limit, cost=2)
    def send(to, *, value=0):
        """Sends."""
        ran.append((to, value))
        return to

    assert send("0xaa", value=7) == "0xaa" and send.__doc__ == "Sends."
    with pytest.raises(errors.Limited):
        send("0xbb")
    assert ran == [("0xaa", 7)]

    async def main():
        @leasehold.limited(opened(place, aio).limit("a", max=3, period=HOUR))
        async def later(to):
            await asyncio.sleep(0)
            return to

        assert await later("0xcc") == "0xcc"
        with pytest.raises(errors.Limited):
            await later("0xdd")

    asyncio.run(main())


def test_a_generator_function_is_charged_when_it_is_called(memory):
    limit = opened(memory).limit("a", max=1, period=HOUR)

    @leasehold.limited(limit)
    def count():
        yield from range(3)

    counting = count()
    assert limit.used() == 1
    with pytest.raises(errors.Limited):
        count()
    assert list(counting) == [0, 1, 2]


async def coroutine():
    pass


async def generates_later():
    yield


def generates():
    yield


def test_what_cannot_be_under_a_limit_is_refused_when_it_is_decorated(memory):
    sync, later = (opened(memory, face).limit("a", **RATE) for face in (leasehold, aio))
    for limit in ("not a limit", None, opened(memory), coroutine, generates):
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
        limit = opened(memory, aio).limit("a", **RATE)
        for verb in (limit.take, limit.increment, limit.increment_or_fail, limit.refund, limit.decrement, limit.wait):
            with pytest.raises(errors.InvalidArgument, match="^cost: "):
                await verb(None)
        for verb in (limit.reserve, limit.wait_to_reserve):
            with pytest.raises(errors.InvalidArgument, match="^cost: "):
                await verb(None, ttl=1)
        assert await limit.used() == 0

    asyncio.run(main())


AMOUNTS = [-1, 1.5, math.nan, math.inf, -(2**200), 2**256, "", "-1", "1e3", "1_000", "010", "0x", "0xg", str(2**256), True, b"1", [], {}, ..., "\ud800"]
TIMES = [-1, math.nan, math.inf, 2**64, 2**200, "1", b"1", [], {}, True, ...]
WORDS = ["ajar", "", 5, True, b"open", [], ..., "\ud800"]
RATE = {"max": 5, "period": 60}


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
        opened(memory).limit("a", **RATE).take(10**5000)


def test_wrong_groups_are_named(memory):
    lh, other = opened(memory), opened(memory)
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


def test_what_is_in_flight_is_only_reserved(lh):
    flying = lh.limit("signer", max=1, kind="in_flight")
    for call in (flying.take, flying.increment, flying.increment_or_fail, flying.refund, flying.decrement, flying.wait):
        with pytest.raises(errors.InvalidArgument) as caught:
            call()
        assert caught.value.field == "limit"
    with pytest.raises(TypeError):
        flying.reserve(1)
