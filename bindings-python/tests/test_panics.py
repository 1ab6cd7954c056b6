"""A panic in any export is an `Internal`, and nothing is broken by it."""

import asyncio
import re
from functools import partial
from pathlib import Path

import pytest

import leasehold
import leasehold._leasehold as native
from conftest import promise
from leasehold import errors
from leasehold._leasehold import trial
from leasehold._settle import settle

SOURCES = Path(__file__).parent.parent / "src"

LH = leasehold.open("memory:panics")
POOL = LH.pool("p", slots=[f"s{i}" for i in range(200)], ttl=3600, read_nonce=lambda slot: 7)
LEASE = POOL.acquire(slots=["s0"])
LOCK = LH.lock("a", reentrant=True)
LOCKED = LOCK.acquire()
LIMIT = LH.limit("a", max=10**6, period=3600)
LH.register("action", max=1, period=1)
RESERVATION = LIMIT.reserve(ttl=3600)
ANSWER = LIMIT.peek()
RESERVATION_ID = RESERVATION.id
SOURCE = leasehold.TokensInMemory()
SOURCE.add("w", "", {"id": "a", "amount": 1})
WALLET = LH.tokens("w", source=SOURCE)
SELECTION = WALLET.select(1)
QUORUM = leasehold.open_quorum(["memory:panics-1", "memory:panics-2"])


async def granted():
    return native.open_aio("memory:panics").pool("q", slots=["a"]).acquire()


# How each export is called. One that is missing here fails the test below.
CALLS = {
    "Granted.take": asyncio.run(granted()).take,
    "Lease.__enter__": LEASE.__enter__,
    "Lease.__exit__": lambda: LEASE.__exit__(None, None, None),
    "Lease.__repr__": LEASE.__repr__,
    "Lease.fence": lambda: LEASE.fence,
    "Lease.held": lambda: LEASE.held,
    "Lease.in_doubt": lambda: LEASE.in_doubt,
    "Lease.nonce": lambda: LEASE.nonce,
    "Lease.lost": lambda: LEASE.lost(0),
    "Lease.claimed": lambda: LEASE.claimed(0),
    "Lease.read_nonce": LEASE.read_nonce,
    "Lease.rejected": LEASE.rejected,
    "Lease.release": LEASE.release,
    "Lease.remaining": lambda: LEASE.remaining,
    "Lease.renew": LEASE.renew,
    "Lease.resync": lambda: LEASE.resync(8),
    "Lease.slot": lambda: LEASE.slot,
    "Lease.unknown": LEASE.unknown,
    "Lease.unused": LEASE.unused,
    "Lease.used": LEASE.used,
    "Leasehold.__enter__": LH.__enter__,
    "Leasehold.__exit__": lambda: LH.__exit__(None, None, None),
    "Leasehold.__repr__": LH.__repr__,
    "Leasehold.close": LH.close,
    "Leasehold.doctor": LH.doctor,
    "Leasehold.group": lambda: LH.group([LIMIT]),
    "Leasehold.limit": lambda: LH.limit("a", max=1, period=1),
    "Leasehold.limit_of": lambda: LH.limit_of("action", "a"),
    "Leasehold.lock": lambda: LH.lock("b"),
    "Leasehold.pool": lambda: LH.pool("p"),
    "Leasehold.register": lambda: LH.register("action", max=1, period=1),
    "Leasehold.tokens": lambda: LH.tokens("w", source=SOURCE),
    "Limit.__repr__": LIMIT.__repr__,
    "Limit.at_cost": lambda: LIMIT.at_cost(1),
    "Limit.commit_reservation": lambda: LIMIT.commit_reservation(RESERVATION_ID),
    "Limit.decrement": LIMIT.decrement,
    "Limit.exceeded": LIMIT.exceeded,
    "Limit.increment": LIMIT.increment,
    "Limit.increment_or_fail": LIMIT.increment_or_fail,
    "Limit.limit_exceeded": LIMIT.limit_exceeded,
    "Limit.peek": LIMIT.peek,
    "Limit.refund": LIMIT.refund,
    "Limit.refund_reservation": lambda: LIMIT.refund_reservation(RESERVATION_ID),
    "Limit.remaining": LIMIT.remaining,
    "Limit.renew_reservation": lambda: LIMIT.renew_reservation(RESERVATION_ID, 1),
    "Limit.reserve": lambda: LIMIT.reserve(ttl=1),
    "Limit.reset": LIMIT.reset,
    "Limit.take": LIMIT.take,
    "Limit.used": LIMIT.used,
    "Limit.wait": LIMIT.wait,
    "Limit.wait_to_reserve": lambda: LIMIT.wait_to_reserve(ttl=1),
    "LimitAnswer": lambda: leasehold.views.LimitAnswer(True, None, 1, 0.0, 0.0, "store"),
    "LimitAnswer.__repr__": ANSWER.__repr__,
    "LimitAnswer.allowed": lambda: ANSWER.allowed,
    "LimitAnswer.as_dict": ANSWER.as_dict,
    "LimitAnswer.limit": lambda: ANSWER.limit,
    "LimitAnswer.remaining": lambda: ANSWER.remaining,
    "LimitAnswer.reset_after": lambda: ANSWER.reset_after,
    "LimitAnswer.retry_after": lambda: ANSWER.retry_after,
    "LimitAnswer.said": lambda: ANSWER.said,
    "Lock.__repr__": LOCK.__repr__,
    "Lock._enter": LOCK._enter,
    "Lock.acquire": LOCK.acquire,
    "Lock.break_lease": LOCK.break_lease,
    "Lock.handshake": lambda: LOCK.handshake,
    "Lock.inspect": LOCK.inspect,
    "Lock.recommended_ttl": lambda: LOCK.recommended_ttl(contenders=1, levels=1, confidence=0.5),
    "Lock.run": lambda: LOCK.run(print),
    "Locked.__enter__": LOCKED.__enter__,
    "Locked.__exit__": lambda: LOCKED.__exit__(None, None, None),
    "Locked.__repr__": LOCKED.__repr__,
    "Locked.fence": lambda: LOCKED.fence,
    "Locked.held": lambda: LOCKED.held,
    "Locked.lost": lambda: LOCKED.lost(0),
    "Locked.claimed": lambda: LOCKED.claimed(0),
    "Locked.names": lambda: LOCKED.names,
    "Locked.release": LOCKED.release,
    "Locked.remaining": lambda: LOCKED.remaining,
    "Locked.renew": LOCKED.renew,
    "Pool.__repr__": POOL.__repr__,
    "Pool.acquire": POOL.acquire,
    "Pool.acquire_many": POOL.acquire_many,
    "Pool.add": lambda: POOL.add(["b"]),
    "Pool.break_lease": lambda: POOL.break_lease("s0"),
    "Pool.disable": lambda: POOL.disable("s0"),
    "Pool.drain": lambda: POOL.drain("s0"),
    "Pool.enable": lambda: POOL.enable("s0"),
    "Pool.inspect": POOL.inspect,
    "Pool.list": POOL.list,
    "Pool.name": lambda: POOL.name,
    "Pool.quarantine": lambda: POOL.quarantine("s0", 1),
    "Pool.recommended_ttl": lambda: POOL.recommended_ttl(contenders=1, levels=1, confidence=0.5),
    "Pool.run": lambda: POOL.run(print),
    "Pool.remove": lambda: POOL.remove("s0"),
    "Pool.statistics": POOL.statistics,
    "Pool.try_acquire": POOL.try_acquire,
    "Quorum.__enter__": QUORUM.__enter__,
    "Quorum.__exit__": lambda: QUORUM.__exit__(None, None, None),
    "Quorum.__repr__": QUORUM.__repr__,
    "Quorum.close": QUORUM.close,
    "Quorum.doctor": QUORUM.doctor,
    "Quorum.lock": lambda: QUORUM.lock("b"),
    "Reservation.__enter__": RESERVATION.__enter__,
    "Reservation.__exit__": lambda: RESERVATION.__exit__(None, None, None),
    "Reservation.__repr__": RESERVATION.__repr__,
    "Reservation.answer": lambda: RESERVATION.answer,
    "Reservation.commit": RESERVATION.commit,
    "Reservation.hand_over": RESERVATION.hand_over,
    "Reservation.id": lambda: RESERVATION.id,
    "Reservation.refund": RESERVATION.refund,
    "Reservation.remaining": lambda: RESERVATION.remaining,
    "Reservation.renew": RESERVATION.renew,
    "Selection.__enter__": SELECTION.__enter__,
    "Selection.__exit__": lambda: SELECTION.__exit__(None, None, None),
    "Selection.__repr__": SELECTION.__repr__,
    "Selection.change": lambda: SELECTION.change,
    "Selection.fence": lambda: SELECTION.fence,
    "Selection.held": lambda: SELECTION.held,
    "Selection.lost": lambda: SELECTION.lost(0),
    "Selection.release": SELECTION.release,
    "Selection.remaining": lambda: SELECTION.remaining,
    "Selection.renew": SELECTION.renew,
    "Selection.spent": SELECTION.spent,
    "Selection.sum": lambda: SELECTION.sum,
    "Selection.tokens": lambda: SELECTION.tokens,
    "Tokens.__repr__": WALLET.__repr__,
    "Tokens.release_spender": lambda: WALLET.release_spender("a"),
    "Tokens.count_locked": WALLET.count_locked,
    "Tokens.counts": WALLET.counts,
    "Tokens.hear": lambda: WALLET.hear("gap"),
    "Tokens.locks": lambda: WALLET.locks(["a"]),
    "Tokens.select": lambda: WALLET.select(0),
    "Tokens.statistics": WALLET.statistics,
    "Tokens.wallet": lambda: WALLET.wallet,
    "TokensInMemory": native.TokensInMemory,
    "TokensInMemory.add": lambda: SOURCE.add("w", "", {"id": "b", "amount": 1}),
    "TokensInMemory.spend": lambda: SOURCE.spend("w", "b"),
    "TokensInMemory.sum": lambda: SOURCE.sum("w", ""),
    "fence_admit": lambda: native.fence_admit(0, 1),
    "fence_texts": native.fence_texts,
    "open": native.open,
    "open_aio": native.open_aio,
    "open_quorum": lambda: native.open_quorum(["memory:"]),
    "open_quorum_aio": lambda: native.open_quorum_aio(["memory:"]),
    "recommended_ttl": lambda: native.recommended_ttl(contenders=1, levels=1, handshake=1, round_trip=1, confidence=0.5),
    "version": native.version,
    "trial.alive": trial.alive,
    "trial.codes": trial.codes,
    "trial.echo": lambda: trial.echo(1),
    "trial.fail": lambda: trial.fail("busy", ""),
    "trial.hop_aio": trial.hop_aio,
    "trial.looks": trial.looks,
    "trial.panic_aio": lambda: trial.panic_aio(0),
    "trial.panic_blocking": lambda: trial.panic_blocking(0),
    "trial.panic_next": trial.panic_next,
    "trial.replay": lambda: trial.replay([]),
    "trial.replay_limits": lambda: trial.replay_limits([]),
    "trial.replay_tokens": lambda: trial.replay_tokens([]),
    "trial.sleep": lambda: trial.sleep(0),
    "trial.sleep_aio": lambda: trial.sleep_aio(0),
}
OURS = {"__enter__", "__exit__", "__repr__", "__call__", "_enter"}


def exports(holder, prefix=""):
    for name, it in vars(holder).items():
        if name.startswith("_") and name not in OURS:
            continue
        if name == "trial":
            yield from exports(it, "trial.")
        elif isinstance(it, type):
            if name in CALLS:
                yield name
            else:
                assert it.__new__ is object.__new__ or "cannot create" in refusal(it)
            yield from exports(it, f"{prefix}{name}.")
        else:
            yield prefix + name


def refusal(kind):
    with pytest.raises(TypeError) as caught:
        kind()
    return str(caught.value)


def test_the_table_is_complete():
    assert set(CALLS) | {f"Bridge.{name}" for name in BRIDGE} | {"Pending.abort", "Pending.expect"} == set(exports(native))


@pytest.mark.parametrize("name", sorted(CALLS))
def test_a_panic_in_an_export(name):
    trial.panic_next()
    with pytest.raises(errors.Internal, match="panic: as the test asked for"):
        CALLS[name]()
    # The library goes on: neither the slot nor the pool was touched, and no lock is stuck.
    assert LEASE.held
    assert LOCKED.held
    assert LOCK.run(lambda locked: locked.fence) == LOCKED.fence
    assert LIMIT.increment()
    assert SELECTION.held and WALLET.count_locked() == 1
    with POOL.acquire(slots=["s1"]) as lease:
        assert lease.nonce == 7
        lease.unused()


def test_a_panic_in_the_listener_of_a_coroutine():
    heard = []

    async def read_nonce(_):
        trial.panic_next()
        return 7

    async def main():
        asyncio.get_running_loop().set_exception_handler(lambda _, context: heard.append(context["exception"]))
        pool = await leasehold.aio.open("memory:panics").pool("r", slots=["a"], read_nonce=read_nonce)
        with pytest.raises(errors.NonceUnavailable):
            await pool.acquire()

    asyncio.run(main())
    assert [type(it) for it in heard] == [errors.Internal]


BRIDGE = {"again": (), "begins_to_look": (), "comes": (0.0,), "hear": (0,), "look": (False,), "looks": (), "settled": (), "turn": ()}


async def touch_a_pending_call():
    pending, future = trial.sleep_aio(10), asyncio.Future()
    bridge = pending.expect(future, 0.0)

    def touch_bridge(name, given):
        # A property panics as it is asked for.
        getattr(bridge, name)(*given)

    touches = [partial(touch_bridge, name, given) for name, given in BRIDGE.items()]
    for touch in (lambda: pending.expect(future, 0.0), lambda: pending.abort(future), *touches):
        trial.panic_next()
        with pytest.raises(errors.Internal):
            touch()
    pending.abort(future)


def test_a_panic_in_a_pending_call():
    asyncio.run(touch_a_pending_call())


@pytest.mark.parametrize("seconds", [0, 0.01])
def test_a_panic_in_a_future(seconds):
    with pytest.raises(errors.Internal, match="after a while"):
        trial.panic_blocking(seconds)

    async def main():
        with pytest.raises(errors.Internal, match="after a while"):
            await settle(trial.panic_aio(seconds))
        return await settle(trial.sleep_aio(0.001))

    assert asyncio.run(main()) == 0.001
    assert trial.sleep(0.001) == 0.001


def test_a_panic_in_the_answer_of_the_bridge_loses_nothing(capsys):
    """The loop's own call into Rust panics once: it is reported, and the next ring delivers."""
    heard = []

    async def main():
        asyncio.get_running_loop().set_exception_handler(lambda _, context: heard.append(context["exception"]))
        pending = trial.sleep_aio(0.02)
        first = promise(pending)
        trial.panic_next()
        await asyncio.sleep(0.05)
        await settle(trial.sleep_aio(0.001))
        return await first

    assert asyncio.run(asyncio.wait_for(main(), 5)) == 0.02
    assert [type(it) for it in heard] == [errors.Internal]


def test_every_export_of_the_source_is_guarded():
    bodies = 0
    for source in SOURCES.glob("*.rs"):
        text = source.read_text()
        methods = re.findall(r"^#\[pymethods\]\nimpl .*?^}", text, re.M | re.S)
        functions = re.findall(r"^#\[pyfunction\].*?^}", text, re.M | re.S)
        for body in functions + [it for block in methods for it in re.findall(r"^    (?:pub )?fn .*?^    }", block, re.M | re.S)]:
            # The collector's own calls can raise nothing.
            if re.match(r" *fn __(traverse|clear)__", body):
                continue
            bodies += 1
            assert "guard(||" in body, f"{source.name}: {body.splitlines()[:3]}"
    assert bodies > 40
