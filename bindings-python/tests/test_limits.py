"""Limits, with threads and with asyncio."""

import asyncio
import copy
import json
import os
import pickle
import signal
import threading
import time

import pytest

import leasehold
from leasehold import aio, errors

# Nothing worth mentioning comes back while a test runs.
HOUR = 3600
YEAR = 366 * 86_400
KEYS = {"allowed", "limit", "remaining", "retry_after", "reset_after", "said"}


@pytest.fixture
def other(place):
    with place.open() as other:
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
        (-7, "action%=-7"),
        (2**200, "action%=1606938044258990275541962092341162602522202993782792835301376"),
        ("::1", "action%=::1"),
        ("é {~%", "action%=~c3~a9~20~7b~7e~25"),
    ]:
        answer = lh.limit_of("action", value).take()
        assert (answer["allowed"], answer["remaining"], answer["limit"]) == (True, 1, name)
    assert other.limit_of("action", "7").take()["remaining"] == 0
    assert lh.limit("action:7", max=2, period=HOUR).take()["remaining"] == 1


# It was a `dict` of six keys, which is true: a refusal looked like success; then a false `dict`, of which those who write one wrote nothing.
def test_an_answer_is_as_true_as_what_it_says(lh):
    limit = lh.limit("a", max=2, period=HOUR)
    group = lh.group([limit, lh.limit("b", max=3, period=HOUR)])
    assert limit.take() and limit.peek() and group.take() and limit.refund()
    assert limit.wait() and not limit.peek() and not limit.take() and not group.take() and not group.peek()
    answer = limit.take()
    # Also by name.
    said = answer.as_dict()
    assert said == {key: getattr(answer, key) for key in KEYS} == {key: answer[key] for key in KEYS}
    assert (answer.allowed, answer.limit, answer.remaining) == (False, "a", 0)
    assert 0 < answer.retry_after <= answer.reset_after
    assert [json.loads(json.dumps(said, indent=indent)) for indent in (None, 1)] == [said, said]
    assert repr(answer) == f"LimitAnswer({', '.join(f'{key}={value!r}' for key, value in said.items())})"
    with pytest.raises(KeyError, match="other"):
        answer["other"]
    for same in (copy.copy(answer), pickle.loads(pickle.dumps(answer))):
        assert same == answer and hash(same) == hash(answer) and not same and same != limit.peek(0)
    with pytest.raises(AttributeError):
        answer.allowed = True
    with lh.limit("c", max=1, kind="in_flight").reserve(ttl=60) as reservation:
        assert reservation.answer and reservation.answer.remaining == 0


def test_an_answer_is_as_true_as_what_it_says_with_asyncio(place):
    async def main():
        async with place.open(aio) as lh:
            limit = lh.limit("a", max=1, period=HOUR)
            assert await limit.peek() and await limit.wait() and not await limit.take() and not await lh.group([limit]).peek()
            assert (await limit.take()).retry_after > 0
            async with lh.limit("c", max=1, kind="in_flight").reserve(ttl=60) as reservation:
                assert reservation.answer and reservation.answer.remaining == 0

    asyncio.run(main())


def test_each_verb(lh):
    limit = lh.limit("logins:10.0.0.1", max=3, period=HOUR)
    answer = limit.take()
    assert set(answer.as_dict()) == KEYS
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
        async with place.open(aio) as lh:
            limit = lh.limit("a", max=3, period=HOUR)
            answer = await limit.take(2)
            assert (set(answer.as_dict()), answer["remaining"]) == (KEYS, 1)
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
        assert await place.open(aio).limit("a", max=3, period=HOUR).used() == 3

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
    gas = lh.limit("gas", max=10**6, kind="lifetime")
    both = lh.group((gas, key.at_cost(1)))
    assert both.increment(21_000)
    assert (gas.used(), key.used()) == (21_000, 4)
    answer = lh.group([None]).take(7)
    assert (answer["allowed"], answer["limit"], answer["remaining"]) == (True, None, 2**256 - 1)


def test_groups_with_asyncio(place):
    async def main():
        lh = place.open(aio)
        key, account = lh.limit("key", max=5, period=HOUR), lh.limit("account", max=100, period=HOUR)
        group = lh.group([lh.group([key.at_cost(1), None]), account])
        assert await group.increment(50) and not await group.increment(51)
        assert (await key.used(), await account.used()) == (1, 50)
        for wrong, field in (([5], "limits[0]"), ([key, lh.lock("a")], "limits[1]"), (5, "limits"), ("a", "limits[0]")):
            with pytest.raises(errors.InvalidArgument) as caught:
                lh.group(wrong)
            assert caught.value.field == field

    asyncio.run(main())


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
    lh = place.open()
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
        lh = place.open(aio)
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
