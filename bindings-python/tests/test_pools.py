"""The blocking API over each store."""

import functools
import subprocess
import sys
import threading
import time

import pytest

import leasehold
from conftest import until
from leasehold import errors, views

TTL = 3


def test_a_lease_from_its_grant_to_its_end(lh):
    pool = lh.pool("p", slots=["0xAA"], ttl=TTL)
    assert pool.name == "p"
    with pool.acquire(timeout=3) as lease:
        assert (lease.slot, lease.nonce, lease.in_doubt, lease.held) == ("0xAA", None, False, True)
        assert 0 < lease.remaining <= TTL
        fence = lease.fence
        (state,) = pool.inspect(["0xAA"])["slots"]
        assert (state["state"], state["fence"], state["mode"]) == ("leased", fence, "enabled")
        assert 0 < state["left"] <= TTL
        assert repr(lease) == f'<leasehold Lease {{ slot: "0xAA", fence: {fence} }}>'
    assert (lease.held, lease.remaining) == (False, 0.0)
    lease.release()
    assert pool.inspect()["ready"] == 1
    with pool.acquire() as later:
        assert later.fence > fence


def test_run_gives_what_its_body_gives_and_holds_the_lease_meanwhile(lh):
    pool = lh.pool("p", slots=["a"], ttl=TTL)

    def body(lease):
        assert lease.held and pool.inspect()["ready"] == 0
        with pytest.raises(errors.Exhausted):
            pool.run(pytest.fail, timeout=0)
        lease.resync(7)
        lease.used()
        return lease.slot

    def raises(lease):
        assert lease.nonce == 8
        lease.unused()
        raise KeyError("mine")

    assert pool.run(body, timeout=3) == "a"
    with pytest.raises(KeyError, match="mine"):
        pool.run(raises)
    with pool.acquire() as lease:
        assert lease.nonce == 8
        lease.unused()


def test_run_tells_what_became_of_a_body_that_outlived_its_lease(lh):
    pool = lh.pool("p", slots=["a"], ttl=TTL)

    def gives(lease):
        until(lambda: not lease.held)
        return "what it gave"

    def raises(error):
        def body(lease):
            gives(lease)
            raise error

        return body

    with pytest.raises(errors.Lost) as caught:
        pool.run(gives, ttl=0.2, timeout=3)
    assert caught.value.result == "what it gave"
    with pytest.raises(errors.Lost) as caught:
        pool.run(raises(error := KeyError()), ttl=0.2, timeout=3)
    assert (caught.value.__context__, caught.value.result) == (error, None)
    with pytest.raises(KeyboardInterrupt):
        pool.run(raises(KeyboardInterrupt()), ttl=0.2, timeout=3)


async def later(lease):
    """Would run without it."""


@pytest.mark.parametrize("body", [later, functools.partial(later), "a", None], ids=["coroutine", "partial", "text", "none"])
def test_run_refuses_a_body_that_would_not_run_under_its_lease(lh, body):
    pool = lh.pool("p", slots=["a"], ttl=TTL)
    with pytest.raises(errors.InvalidArgument) as caught:
        pool.run(body, timeout=3)
    assert caught.value.field == "body"
    assert pool.statistics()["granted"] == 0
    with pytest.raises(errors.InvalidArgument, match="^body: gave what must be awaited"):
        pool.run(lambda lease: later(lease), timeout=3)
    assert pool.inspect()["ready"] == 1


def test_options_of_one_acquisition(lh):
    pool = lh.pool("p", slots=["a", {"id": "b", "weight": 3}, "c"], ttl=TTL, strategy="weighted", cooldown=0.0)
    with pool.acquire(slots=["b"], ttl=2, timeout=None) as lease:
        assert lease.slot == "b"
        assert lease.remaining <= 2
        with pytest.raises(errors.TimedOut):
            pool.acquire(slots=["b"], timeout=0.5)
        with pytest.raises(errors.Exhausted):
            pool.acquire(slots=("b",), timeout=0)


def test_many_at_once(lh):
    pool = lh.pool("p", slots=["a", "b", "c"], ttl=TTL)
    leases = pool.acquire_many(count=2)
    assert len({lease.slot for lease in leases}) == 2
    with pytest.raises(errors.TimedOut):
        pool.acquire_many(count=2, timeout=0.5)
    for lease in leases:
        lease.release()
    assert len(pool.acquire_many(count=3, timeout=2)) == 3


def test_a_release_with_a_cooldown(lh):
    pool = lh.pool("p", slots=["a"], ttl=TTL)
    pool.acquire().release(cooldown=1)
    begun = time.monotonic()
    assert pool.inspect(["a"])["slots"][0]["state"] == "cooling"
    with pool.acquire():
        assert time.monotonic() - begun > 0.9


def test_renewal(lh):
    pool = lh.pool("p", slots=["a"], ttl=3)
    with pool.acquire(timeout=3) as lease:
        time.sleep(0.5)
        before = lease.remaining
        lease.renew()
        assert lease.remaining > before
        lease.renew(ttl=2)
        with pytest.raises(errors.InvalidArgument) as caught:
            lease.renew(ttl=4)
        assert caught.value.field == "ttl"
    with pytest.raises(errors.Lost):
        lease.renew()


def test_a_lease_that_ran_out(lh):
    pool = lh.pool("p", slots=["a"], ttl=0.2)
    late = pool.acquire(timeout=3)
    with pool.acquire(timeout=3) as lease:
        assert not late.held
        with pytest.raises(errors.Lost):
            late.release()
        assert lease.held
    with pytest.raises(errors.Lost), pool.acquire():
        time.sleep(0.25)
    with pytest.raises(errors.Lost) as caught, pool.acquire():
        time.sleep(0.25)
        raise KeyError
    assert type(caught.value.__context__) is KeyError


def test_the_error_of_a_block_goes_on_and_the_slot_comes_back(lh):
    pool = lh.pool("p", slots=["a"], ttl=TTL, read_nonce=lambda _: 5)
    with pytest.raises(KeyError), pool.acquire() as lease:
        assert lease.nonce == 5
        raise KeyError
    # Nothing was said of the nonce: the next holder has it read anew.
    assert pool.inspect(["a"])["slots"][0]["in_doubt"]
    with pytest.raises(KeyError), pool.acquire() as lease:
        lease.used()
        raise KeyError
    with pool.acquire() as lease:
        assert lease.nonce == 6
        lease.unused()


def test_administration(lh):
    pool = lh.pool("p", ttl=TTL)
    with pytest.raises(errors.Exhausted):
        pool.acquire(timeout=2)
    assert pool.add(["a", {"id": "b", "weight": 2}]) == 2
    assert pool.add(("a",)) == 0
    assert pool.list() == ["a", "b"]
    pool.disable("a")
    pool.drain("b")
    assert [it["mode"] for it in pool.inspect(["a", "b"])["slots"]] == ["disabled", "disabled"]
    pool.enable("a")
    pool.enable("b")
    lease = pool.acquire(slots=["a"], timeout=2)
    pool.break_lease("a")
    with pytest.raises(errors.Lost):
        lease.renew()
    with pytest.raises(errors.Lost):
        lease.release()
    pool.quarantine("a", 60)
    assert pool.inspect()["ready"] == 1
    pool.quarantine("a", time=0.05)
    pool.enable("a")
    pool.remove("b")
    assert pool.list() == ["a"]
    census = pool.inspect()
    assert census == {"total": 1, "ready": 1, "in_doubt": census["in_doubt"], "busy": 0, "quiet": 0.0, "slots": []}
    for change in (pool.remove, pool.enable, pool.disable, pool.drain, pool.break_lease):
        with pytest.raises(errors.InvalidArgument) as caught:
            change("nobody")
        assert caught.value.field == "slot"


def test_statistics(lh):
    pool = lh.pool("p", slots=["a"], ttl=TTL)
    with pool.acquire(timeout=3):
        with pytest.raises(errors.TimedOut):
            pool.acquire(timeout=0.5)
        statistics = pool.statistics()
        assert (statistics["leased"], statistics["granted"], statistics["refused"]) == (1, 1, 1)
        assert 0 <= statistics["wait_p50"] <= statistics["wait_max"] < 3
    assert pool.statistics()["ended"] == 1
    assert set(statistics) == set(views.Statistics.__annotations__)
    (state,) = pool.inspect(["a"])["slots"]
    assert set(state) == set(views.SlotState.__annotations__)
    assert set(pool.inspect()) == set(views.Census.__annotations__)


def test_a_closed_store_opens_no_pools(lh):
    pool = lh.pool("p", slots=["a"], ttl=TTL)
    with pool.acquire(timeout=3) as lease:
        lh.close()
        with pytest.raises(errors.Cancelled):
            lh.pool("q")
        assert lease.held


def test_a_closed_store_ends_what_waits_for_a_slot(lh):
    pool = lh.pool("p", slots=["a"], ttl=TTL)
    outcomes = []

    def wait():
        with pytest.raises(errors.Cancelled, match="open anew"):
            pool.acquire(timeout=30)
        outcomes.append("cancelled")

    with pool.acquire(timeout=3) as lease:
        threads = [threading.Thread(target=wait) for _ in range(3)]
        for thread in threads:
            thread.start()
        until(lambda: pool.statistics()["waiting"] == 3)
        lh.close()
        for thread in threads:
            thread.join(5)
        assert outcomes == ["cancelled"] * 3
        assert lease.held


def test_a_slot_goes_from_thread_to_thread(lh):
    pool = lh.pool("p", slots=["a", "b"], ttl=5)
    held, most, done = set(), 0, []
    guard = threading.Lock()

    def work():
        nonlocal most
        for _ in range(15):
            with pool.acquire(timeout=20) as lease:
                with guard:
                    assert lease.slot not in held
                    held.add(lease.slot)
                    most = max(most, len(held))
                time.sleep(0.001)
                with guard:
                    held.remove(lease.slot)
                    done.append(lease.fence)

    threads = [threading.Thread(target=work) for _ in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (len(done), len(set(done)), most) == (16 * 15, 16 * 15, 2)


def test_a_waiter_is_granted_at_the_release(lh):
    pool = lh.pool("p", slots=["a"], ttl=5)
    lease = pool.acquire(timeout=6)
    granted = []

    def wait():
        with pool.acquire(timeout=5):
            granted.append(time.monotonic())

    waiter = threading.Thread(target=wait)
    waiter.start()
    until(lambda: pool.statistics()["waiting"] == 1)
    begun = time.monotonic()
    lease.release()
    waiter.join()
    assert granted[0] - begun < 2


def test_two_handles_share_a_store(place):
    pools = [place.open().pool("p", slots=["a"], ttl=TTL) for _ in range(2)]
    with pools[0].acquire(timeout=3):
        with pytest.raises(errors.TimedOut):
            pools[1].acquire(timeout=0.5)
    other = leasehold.open(place.url, namespace="another").pool("p", slots=["a"], ttl=TTL)
    with pools[0].acquire(), other.acquire(timeout=3):
        pass


def test_at_once_or_not_at_all(memory, redis_place):
    pool = leasehold.open(memory.url).pool("p", slots=["a"], read_nonce=lambda _: 1)
    with pool.try_acquire(ttl=1.0) as lease:
        assert (lease.slot, lease.nonce) == ("a", None)
        assert pool.try_acquire() is None
    shared = redis_place.open().pool("p", slots=["a"], ttl=TTL)
    with pytest.raises(errors.InvalidArgument):
        shared.try_acquire()


def test_the_configuration_of_a_paymaster(redis_place):
    lh = leasehold.open({"mode": "shared", "retry_timeout": 0.1, "redis": {"endpoint": redis_place.url}}, namespace=redis_place.namespace)
    pool = lh.pool("p", slots=["a"], ttl=TTL)
    with pool.acquire(timeout=3):
        begun = time.monotonic()
        with pytest.raises(errors.TimedOut):
            pool.acquire()
        assert time.monotonic() - begun < 2
    for mode in ("segregated", "seggregated"):
        with leasehold.open({"mode": mode}).pool(f"config-{mode}", slots=["a"]).acquire() as lease:
            assert lease.remaining <= 5


KILLED = """
import sys, leasehold
lh = leasehold.open(sys.argv[1], namespace=sys.argv[2])
lease = lh.pool("p", slots=["a"], ttl=2).acquire(timeout=3)
print(lease.fence, flush=True)
sys.stdin.read()
"""


def test_a_process_that_is_killed_costs_its_ttl(redis_place):
    child = subprocess.Popen(
        [sys.executable, "-c", KILLED, redis_place.url, redis_place.namespace], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    with child:
        try:
            fence = int(child.stdout.readline())
        finally:
            child.kill()
    begun = time.monotonic()
    pool = redis_place.open().pool("p", slots=["a"], ttl=2)
    with pool.acquire(timeout=10) as lease:
        assert lease.fence > fence
        assert 0.3 < time.monotonic() - begun < 5
