"""Reservations of limits, with threads and with asyncio."""

import asyncio
import gc
import subprocess
import sys
import time

import pytest

import leasehold
from leasehold import aio, errors

# Nothing worth mentioning comes back while a test runs.
HOUR = 3600


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
    here, there = memory.open(), memory.open()

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
    group(there).commit_reservation(group(here).reserve(6, ttl=HOUR).hand_over(), 2)
    assert used() == (5, 0), "the rest is given back"
    paid = group(here).reserve(5, ttl=HOUR)
    for wrong in (-1, 0.5, "x", [], 2**256):
        for commit in (lambda: paid.commit(wrong), lambda: group(there).commit_reservation(paid.id, wrong)):
            with pytest.raises(errors.InvalidArgument) as caught:
                commit()
            assert caught.value.field == "cost"
    paid.commit("1")
    assert used() == (6, 0)
    for wrong in ("x", 5, None, kept[:-1]):
        with pytest.raises(errors.InvalidArgument) as caught:
            group(there).refund_reservation(wrong)
        assert caught.value.field == "id"

    async def main():
        lh = memory.open(aio)
        limit = lh.limit("flights", max=9, kind="in_flight")
        reservation = await limit.reserve(2, ttl=HOUR)
        assert reservation.hand_over() == reservation.id
        assert await limit.used() == 2
        await limit.commit_reservation(reservation.id)
        await limit.refund_reservation((await limit.reserve(1, ttl=HOUR)).hand_over())
        spend = lh.limit("aio-spend", max=9, kind="lifetime")
        await (await spend.reserve(5, ttl=HOUR)).commit(2)
        await spend.commit_reservation((await spend.reserve(5, ttl=HOUR)).hand_over(), cost=1)
        assert await spend.used() == 3
        assert await limit.used() == 0

    asyncio.run(main())


def test_a_reservation_is_renewed(memory):
    here, there = (memory.open().limit("renewed", max=2, kind="in_flight") for _ in range(2))
    reservation = here.reserve(1, ttl=20)
    assert reservation.renew(HOUR) is None
    assert 0.9 * HOUR < reservation.remaining < HOUR
    reservation.renew()
    reservation.renew(1)
    assert 0.9 * HOUR < reservation.remaining, "never shorter"
    assert there.renew_reservation(reservation.id, 2 * HOUR) is None
    assert here.peek(2)["retry_after"] > HOUR
    for wrong in (0, -1, "1", 8 * 24 * HOUR):
        for renew in (reservation.renew, lambda ttl: there.renew_reservation(reservation.id, ttl)):
            with pytest.raises(errors.InvalidArgument) as caught:
                renew(wrong)
            assert caught.value.field == "ttl"
    for wrong, field in ((None, "ttl"), ("x", "id")):
        with pytest.raises(errors.InvalidArgument) as caught:
            there.renew_reservation(reservation.id if field == "ttl" else wrong, None if field == "ttl" else 1)
        assert caught.value.field == field
    reservation.commit()
    for renew in (reservation.renew, lambda: there.renew_reservation(reservation.id, 1)):
        with pytest.raises(errors.Lost):
            renew()
    forgotten = here.reserve(1, ttl=HOUR)
    there.reset()
    with pytest.raises(errors.Lost):
        forgotten.renew()
    assert forgotten.remaining == 0.0

    async def main():
        limit = memory.open(aio).limit("renewed", max=2, kind="in_flight")
        async with limit.reserve(1, ttl=20) as reservation:
            await reservation.renew(HOUR)
            assert reservation.remaining > 0.9 * HOUR
            await limit.renew_reservation(reservation.id, 2 * HOUR)
            # Whoever ends it need not wait for a renewal.
            renewal = asyncio.ensure_future(reservation.renew())
            await asyncio.sleep(0)
            await reservation.commit()
            await renewal
        with pytest.raises(errors.Lost):
            await reservation.renew()
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
        limit = memory.open(aio).limit("spend", max=1_000, kind="lifetime")

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
        lh = place.open(aio)
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
    with redis_place.open() as lh:
        assert lh.limit("signer", max=1, kind="in_flight").used() == 0


LEFT = """
import signal, socket, sys, threading, time, leasehold

def refused(call):
    try:
        call()
    except leasehold.Lost:
        return True

def has_ended():
    # It ends before the store is asked: the block's own thread waits for that for a while yet.
    if reservation.remaining == 0.0:
        assert "ended: true" in repr(reservation)
        assert all(map(refused, [reservation.renew, reservation.commit, reservation.refund, reservation.hand_over]))
        told.set()
    return told.is_set()

def watch():
    while not has_ended():
        time.sleep(0.001)

def heard(*_):
    if has_ended():
        signal.setitimer(signal.ITIMER_REAL, 0)

told = threading.Event()
port = int(sys.argv[1].rpartition(":")[2])
with leasehold.open(sys.argv[1], response_timeout=30) as lh:
    signer = lh.limit("signer", max=1, kind="in_flight")
    with signer.reserve(ttl=3600) as reservation:
        if sys.argv[2] == "thread":
            threading.Thread(target=watch).start()
        else:
            signal.signal(signal.SIGALRM, heard)
            signal.setitimer(signal.ITIMER_REAL, 0.001, 0.001)
        with socket.create_connection(("127.0.0.1", port)) as connection:
            connection.sendall(b"CLIENT PAUSE 600 ALL\\r\\n")
            assert connection.recv(64).startswith(b"+OK")
    while not told.is_set():
        time.sleep(0.001)
    assert signer.used() == 0
"""


# Each of them waited for the block's end with the interpreter, which the end of the block waited for.
@pytest.mark.parametrize("who", ["thread", "signal handler"])
def test_a_reservation_whose_block_is_being_left_answers_others(own_redis, who):
    subprocess.run([sys.executable, "-c", LEFT, own_redis.url, who], check=True, stdin=subprocess.DEVNULL, timeout=60)


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


def test_what_is_in_flight_is_only_reserved(lh):
    flying = lh.limit("signer", max=1, kind="in_flight")
    for call in (flying.take, flying.increment, flying.increment_or_fail, flying.refund, flying.decrement, flying.wait):
        with pytest.raises(errors.InvalidArgument) as caught:
            call()
        assert caught.value.field == "limit"
    with pytest.raises(TypeError):
        flying.reserve(1)
