"""Tokens of a wallet, with threads and with asyncio."""

import asyncio
import gc
import itertools
import math
import os
import signal
import sqlite3
import subprocess
import sys
import threading
import time
from contextlib import closing

import pytest

import leasehold
from conftest import until
from leasehold import aio, errors

# A server that has just started grants nothing for so long.
BRIEF = {"ttl": 5, "settle": 5, "max_age": 1, "currency": "EUR"}
PATIENT = {"timeout": 50}
AT_ONCE = {"timeout": 0}


def opened(place, face=leasehold):
    """Replies take less than selections live, for these to be renewed in time."""
    return face.open(place.url, namespace=place.namespace, response_timeout=3)


def source_of(tokens, wallet="w"):
    source = leasehold.TokensInMemory()
    for token, amount in tokens.items():
        source.add(wallet, "EUR", {"id": token, "amount": amount})
    return source


def two(place, tokens, face=leasehold, **options):
    """The same wallet as two processes have it, and its source."""
    source = source_of(tokens)
    here, there = (opened(place, face).tokens("w", source=source, **{**BRIEF, **options}) for _ in range(2))
    return here, there, source


def ids(selection):
    return sorted(token["id"] for token in selection.tokens)


def test_a_selection_is_one_callers_until_it_is_given_back(place):
    here, there, _ = two(place, {"a": 5, "b": "3"})
    selection = here.select(6, **PATIENT)
    assert (selection.sum, selection.change, ids(selection)) == (8, 2, ["a", "b"])
    assert selection.held and 0 < selection.remaining <= 5
    assert {frozenset(it) for it in selection.tokens} == {frozenset(("id", "amount", "since", "fence"))}
    assert selection.fence == max(it["fence"] for it in selection.tokens) > 0
    for wallet in (here, there):
        with pytest.raises(errors.LockedUntil) as caught:
            wallet.select(1, **AT_ONCE)
        assert 0 < caught.value.retry_after <= 5
        with pytest.raises(errors.Insufficient, match="holds 8 .* not 9"):
            wallet.select("9", **AT_ONCE)
        assert wallet.count_locked() == 2
    assert selection.renew() is None
    assert selection.lost(timeout=0) is None
    assert selection.release() is None and selection.release() is None
    assert not selection.held and selection.remaining == 0.0 and selection.lost() is None
    with pytest.raises(errors.Lost):
        selection.renew()
    with there.select(8, **PATIENT) as other:
        assert other.fence > selection.fence
    assert here.count_locked() == 0
    assert here.statistics()["granted"] == 2
    assert here.wallet == "w" and "w" in repr(here) and "sum" in repr(other)


def test_the_same_with_asyncio(place):
    async def main():
        here, there, source = two(place, {"a": 5, "b": 3}, aio)
        async with here.select(6, **PATIENT) as selection:
            assert (selection.sum, selection.change, ids(selection)) == (8, 2, ["a", "b"])
            assert selection.held and 0 < selection.remaining <= 5 and selection.fence > 0
            with pytest.raises(errors.LockedUntil):
                await there.select(1, **AT_ONCE)
            with pytest.raises(errors.Insufficient):
                await there.select(9, **AT_ONCE)
            assert await there.count_locked() == 2
            (lock,) = await there.locks(["a"])
            assert lock["fence"] == next(it["fence"] for it in selection.tokens if it["id"] == "a")
            await selection.renew()
            assert await selection.lost(timeout=0) is None
        assert not selection.held
        await selection.release()
        with pytest.raises(errors.Lost):
            await selection.renew()
        other = await there.select(5, **PATIENT)
        await other.spent()
        assert here.counts()["pages"] >= 1 and here.statistics()["granted"] == 2
        assert here.wallet == "w" and "w" in repr(here) and "sum" in repr(other)
        here.hear("listening")

    asyncio.run(main())


def test_nothing_is_selected_for_nothing(memory):
    here, *_ = two(memory, {})
    with here.select(0) as selection:
        assert (selection.tokens, selection.sum, selection.change, selection.fence) == ([], 0, 0, 0)
        assert selection.held and selection.remaining == math.inf
    selection.spent()


def test_what_was_spent_stays_locked(memory):
    here, there, source = two(memory, {"a": 5, "b": 5}, ttl=60, settle=60)
    selection = here.select(5)
    (token,) = ids(selection)
    selection.spent()
    selection.spent()
    selection.release()
    # The source lists it still.
    with pytest.raises(errors.Insufficient):
        here.select(10, **AT_ONCE)
    with pytest.raises(errors.LockedUntil):
        there.select(10, **AT_ONCE)
    assert [it["id"] for it in there.locks([token])] == [token]
    source.spend("w", token)
    assert source.sum("w", "EUR") == 5
    with pytest.raises(errors.Insufficient):
        there.select(10, **AT_ONCE)
    there.select(5).release()


def test_amounts_have_256_bits(place):
    half = 2**255
    here, _, source = two(place, {"a": half, "b": str(half - 2), "c": 1})
    assert source.sum("w", "EUR") == 2**256 - 1
    selection = here.select(half + 1, strategy="fewest_inputs", **PATIENT)
    assert (selection.sum, selection.change, ids(selection)) == (2**256 - 2, half - 3, ["a", "b"])
    assert {it["id"]: it["amount"] for it in selection.tokens} == {"a": half, "b": half - 2}
    selection.release()
    # At the borders of what travels as what.
    for amount in (2**53 + 1, 2**64 - 1, 2**64, 2**127 - 1, 2**127, 2**128 + 7, 2**256 - 1):
        wallet = opened(place).tokens(f"w{amount}", source=lambda ask, it=amount: [{"id": "a", "amount": it}], **BRIEF)
        selection = wallet.select(amount, **PATIENT)
        assert (selection.sum, selection.change, selection.tokens[0]["amount"]) == (amount, 0, amount)
        selection.release()


ODD = ["", "a.b", "é{}:%~ ", "0xAB", "0xab", "\U0001f40e", "x" * 256]


def test_odd_ids(place):
    here, there, _ = two(place, dict.fromkeys(ODD, 1))
    began = time.time()
    spender = "ba7816bf8f01cfea414140de5dae2223"
    selection = here.select(len(ODD), spender=spender, **PATIENT)
    assert ids(selection) == sorted(ODD)
    locks = there.locks(ODD)
    assert [it["id"] for it in locks] == ODD
    for lock in locks:
        # One machine, one clock.
        assert lock["holder"] == spender and abs(lock["since"] - began) < 120 and 0 < lock["left"] <= 5 and lock["fence"] > 0
    selection.release()
    assert here.locks(ODD) == []


def test_wallets_and_currencies_are_kept_apart(place):
    source, names = leasehold.TokensInMemory(), [("a", "b.c"), ("a.b", "c"), ("", "b.c"), ("a", "")]
    for wallet, currency in names:
        source.add(wallet, currency, {"id": f"{wallet}|{currency}", "amount": 7})
    lh = opened(place)
    for wallet, currency in names:
        tokens = lh.tokens(wallet, source=source, **BRIEF)
        with tokens.select(7, currency=currency, **PATIENT) as selection:
            assert ids(selection) == [f"{wallet}|{currency}"]
            for target, other in ((8, currency), (1, "unseen")):
                with pytest.raises(errors.Insufficient):
                    tokens.select(target, currency=other, **AT_ONCE)


def test_many_threads_never_share_a_token(place):
    here, there, _ = two(place, {f"t{at}": 1 for at in range(60)})
    live, wrong, turn = set(), [], threading.Lock()

    def work(wallet):
        try:
            for _ in range(6):
                with wallet.select(7, **PATIENT) as selection:
                    mine = set(ids(selection))
                    with turn:
                        assert not live & mine
                        live.update(mine)
                    time.sleep(0)
                    with turn:
                        live.difference_update(mine)
        except BaseException as error:
            wrong.append(error)

    threads = [threading.Thread(target=work, args=(wallet,)) for wallet in [here, there] * 6]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []
    assert here.count_locked() == 0


def test_who_waits_is_served_when_it_comes_free(place):
    here, there, _ = two(place, {"a": 3, "b": 3})
    held = here.select(4, **PATIENT)
    served = []
    threads = [threading.Thread(target=lambda wallet=wallet: served.append(wallet.select(4, **PATIENT).release())) for wallet in (here, there)]
    for thread in threads:
        thread.start()
    until(lambda: here.statistics()["waiting"] == there.statistics()["waiting"] == 1)
    held.release()
    for thread in threads:
        thread.join()
    assert served == [None, None]


def test_a_task_that_is_cancelled_leaves_nothing_locked(place):
    async def main():
        # In memory, too long for anything to end by itself.
        options = {"ttl": 60, "settle": 60} if place.is_memory else {}
        here, there, _ = two(place, dict.fromkeys("abcd", 1), aio, **options)
        held = await there.select(1, **PATIENT)
        for at in range(60):
            # 4 is more than is free: what is claimed of it on the way is given back, too.
            task = asyncio.ensure_future(selected(here, 3 + at % 2))
            for _ in range(at % 5):
                await asyncio.sleep(0)
            if at > 20:
                await asyncio.sleep((at % 10) / 4_000)
            task.cancel()
            try:
                await (await task).release()
            except asyncio.CancelledError:
                pass
            del task
        gc.collect()
        end = time.monotonic() + 20
        while await there.count_locked() != 1:
            assert time.monotonic() < end
            await asyncio.sleep(0.002)
        # A keepalive has the held one last.
        assert held.held
        await held.release()
        await (await here.select(4, **PATIENT)).release()

    asyncio.run(main())


async def selected(wallet, target):
    return await wallet.select(target, **PATIENT)


def test_ctrl_c_ends_a_wait_and_leaves_nothing_locked(memory):
    here, there, _ = two(memory, {"a": 1, "b": 1}, ttl=60, settle=60)
    held = there.select(1)

    def interrupt():
        until(lambda: here.statistics()["waiting"] == 1)
        os.kill(os.getpid(), signal.SIGINT)

    thread = threading.Thread(target=interrupt)
    thread.start()
    with pytest.raises(KeyboardInterrupt):
        here.select(2, **PATIENT)
    thread.join()
    assert there.count_locked() == 1
    held.release()
    here.select(2).release()


def test_what_nobody_has_any_more_is_given_back(memory):
    here, *_ = two(memory, {"a": 1}, ttl=60, settle=60)
    with pytest.raises(ZeroDivisionError), here.select(1):
        1 / 0
    assert here.count_locked() == 0
    selection = here.select(1)
    assert here.count_locked() == 1
    del selection
    gc.collect()
    until(lambda: here.count_locked() == 0)


def test_a_spender_goes_on_with_what_it_had(place):
    here, there, _ = two(place, {"a": 5})
    first = here.select(5, spender="tx1", **PATIENT)
    with pytest.raises(errors.LockedUntil):
        there.select(5, spender="tx2", **AT_ONCE)
    second = there.select(5, spender="tx1", **PATIENT)
    assert second.fence > first.fence
    with pytest.raises(errors.Lost):
        first.renew()
    assert isinstance(first.lost(), errors.Lost)
    second.renew()
    second.release()


def test_a_slow_spender_is_told_that_it_lost_its_tokens(memory):
    here, *_ = two(memory, {"a": 1, "b": 1}, ttl=60, settle=60)
    brief = {"ttl": 0.02, "keepalive": False, **PATIENT}

    def lose(selection):
        assert isinstance(selection.lost(), errors.Lost)
        assert not selection.held
        # It is told a little before the store ends it.
        until(lambda: here.count_locked() == 0)

    selection = here.select(1, **brief)
    lose(selection)
    with pytest.raises(errors.Lost):
        selection.spent()
    # What it wanted to spend is not offered here again.
    with pytest.raises(errors.Insufficient):
        here.select(2, **AT_ONCE)
    with pytest.raises(errors.Lost), here.select(1, **brief) as late:
        lose(late)
    # The error of the block is the one to be seen.
    with pytest.raises(ZeroDivisionError), here.select(1, **brief) as late:
        lose(late)
        1 / 0

    async def lose_later(selection):
        assert isinstance(await selection.lost(), errors.Lost)
        while here.count_locked():
            await asyncio.sleep(0.002)

    async def main():
        wallet = opened(memory, aio).tokens("w", source=lambda ask: [{"id": "a", "amount": 1}])
        with pytest.raises(errors.Lost):
            async with wallet.select(1, **brief) as late:
                await lose_later(late)
        with pytest.raises(ZeroDivisionError):
            async with wallet.select(1, **brief) as late:
                await lose_later(late)
                1 / 0

    asyncio.run(main())


def test_a_closed_handle_ends_what_waits(place):
    here, there, source = two(place, {"a": 5})
    held = here.select(5, **PATIENT)
    closing = opened(place)
    wallet = closing.tokens("w", source=source, **BRIEF)

    def close():
        until(lambda: wallet.statistics()["waiting"] == 1)
        closing.close()

    thread = threading.Thread(target=close)
    thread.start()
    with pytest.raises(errors.Cancelled):
        wallet.select(5, **PATIENT)
    thread.join()
    with pytest.raises(errors.Cancelled):
        closing.tokens("w", source=source)
    held.release()


class Table:
    def __init__(self):
        self.asked, self.verified = [], []
        self.rows = [{"id": f"t{at}", "amount": amount, "since": at} for at, amount in enumerate((3, 1, 2))]

    def page(self, ask):
        self.asked.append(ask)
        at = int(ask["after"] or 0)
        return {"tokens": self.rows[at : at + 1], "next": str(at + 1) if at + 1 < len(self.rows) else None}

    def spent(self, wallet, those):
        self.verified.append((wallet, those))
        return {it for it in those if it == "t0"}


class AsyncTable(Table):
    async def page(self, ask):
        await asyncio.sleep(0)
        return super().page(ask)

    async def spent(self, wallet, those):
        await asyncio.sleep(0)
        return super().spent(wallet, those)


def check(table, selection):
    assert [(it["id"], it["amount"], it["since"]) for it in selection.tokens] == [("t1", 1, 1), ("t2", 2, 2)]
    first, second = table.asked[:2]
    seed = first.pop("seed")
    assert first == {"wallet": "w", "currency": "é", "after": None, "limit": 7}
    assert isinstance(seed, int) and (second["after"], second["seed"]) == ("1", seed)
    assert table.verified[0][0] == "w" and "t0" in table.verified[0][1]


OPTIONS = {"page": 7, "currency": "é", "verify": True, "strategy": "oldest_first"}


def test_a_source_may_be_an_object(memory):
    table = Table()
    with opened(memory).tokens("w", source=table, **OPTIONS).select(3) as selection:
        check(table, selection)


@pytest.mark.parametrize("kind", [Table, AsyncTable])
def test_a_source_may_be_an_object_with_asyncio(memory, kind):
    async def main():
        table = kind()
        async with opened(memory, aio).tokens("w", source=table, **OPTIONS).select(3) as selection:
            check(table, selection)

    asyncio.run(main())


ROWS = [{"id": "a", "amount": 1}, {"id": "b", "amount": 2}]


async def later(ask):
    await asyncio.sleep(0)
    return {"tokens": ROWS}


@pytest.mark.parametrize("source", [lambda ask: ROWS, lambda ask: tuple(ROWS), lambda ask: {"tokens": ROWS, "next": None}, later])
def test_a_source_may_be_a_function(memory, source):
    async def main():
        async with opened(memory, aio).tokens("w", source=source).select(3) as selection:
            assert selection.sum == 3

    asyncio.run(main())
    wallet = opened(memory).tokens("w", source=source)
    if source is later:
        with pytest.raises(errors.SourceUnavailable, match=r"use leasehold\.aio"):
            wallet.select(3)
    else:
        with wallet.select(3) as selection:
            assert selection.sum == 3


def test_a_source_in_memory_is_one_for_both_faces(memory):
    source = source_of({"a": 5})

    async def main():
        async with opened(memory, aio).tokens("w", source=source, currency="EUR").select(5) as selection:
            with pytest.raises(errors.LockedUntil):
                opened(memory).tokens("w", source=source, currency="EUR").select(5, **AT_ONCE)
            assert selection.sum == 5

    asyncio.run(main())


def test_a_source_that_tells_of_changes(memory):
    rows = {"a": 5}
    wallet = opened(memory).tokens("w", source=lambda ask: [{"id": it, "amount": amount} for it, amount in rows.items()], currency="EUR")
    wallet.hear("listening")
    wallet.select(5).release()
    pages = wallet.counts()["pages"]
    rows["b"] = 2**200
    wallet.hear({"added": {"id": "b", "amount": 2**200}}, "EUR")
    wallet.hear({"added": {"id": "c", "amount": 1}}, currency="USD")
    wallet.select(2**200).release()
    del rows["a"]
    wallet.hear({"spent": "a"})
    with pytest.raises(errors.Insufficient):
        wallet.select(2**200 + 1, **AT_ONCE)
    # A verdict looks once more.
    after = wallet.counts()["pages"]
    assert after <= pages + 1
    rows["d"] = 5
    wallet.hear("gap")
    wallet.select(2**200 + 5).release()
    counts = wallet.counts()
    assert counts["pages"] > after and counts["claims"] >= 3 and counts["asked"] >= 4 and counts["missed"] == 0


@pytest.mark.parametrize(
    ("strategy", "target", "chosen", "change"),
    [
        ("fewest_inputs", 6, ["d"], 4),
        ("smallest_sufficient", 4, ["c"], 1),
        ("exact", 8, ["b", "c"], 0),
        ("best_fit", 13, ["b", "d"], 0),
        ("oldest_first", 1, ["a"], 0),
        *((it, 19, ["a", "b", "c", "d"], 0) for it in ("first_fit_random", "random_improve", "boltzmann", "consolidate")),
    ],
)
def test_each_strategy(memory, strategy, target, chosen, change):
    rows = [{"id": it, "amount": amount, "since": since} for since, (it, amount) in enumerate((("a", 1), ("b", 3), ("c", 5), ("d", 10)))]
    lh = opened(memory)
    for wallet, said in (lh.tokens("w", source=lambda ask: rows, strategy=strategy), {}), (lh.tokens("w", source=lambda ask: rows), {"strategy": strategy}):
        with wallet.select(target, **said) as selection:
            assert (ids(selection), selection.change) == (chosen, change)


def test_what_no_choice_fits(memory):
    wallet = opened(memory).tokens("w", source=lambda ask: [{"id": str(it), "amount": 2} for it in range(3)])
    with pytest.raises(errors.NoFit):
        wallet.select(3, strategy="exact")
    with pytest.raises(errors.NoFit, match="max_inputs"):
        wallet.select(5, max_inputs=2)
    with pytest.raises(errors.Insufficient):
        wallet.select(7)
    assert wallet.count_locked() == 0


def raising(error):
    def page(ask):
        raise error

    return page


@pytest.mark.parametrize(
    ("source", "message"),
    [
        (raising(OSError("the table is gone")), "OSError: the table is gone"),
        (lambda ask: None, "the answer of the source.tokens: is missing"),
        (lambda ask: "tokens", "the answer of the source: must be a map"),
        (lambda ask: 7, "the answer of the source: must be a map"),
        (lambda ask: {"tokens": 5}, "the answer of the source.tokens: must be a list"),
        (lambda ask: {"tokens": [], "next": 5}, "the answer of the source.next: must be text"),
        (lambda ask: {"tokens": [], "cursor": "5"}, "the answer of the source.cursor: is not an option"),
        (lambda ask: [None], r"the answer of the source\[0\].id: is missing"),
        (lambda ask: [{"amount": 1}], r"\[0\].id: is missing"),
        (lambda ask: {"tokens": [{"id": "a", "amount": 1}, {"id": "b"}]}, r"tokens\[1\].amount: is missing"),
        (lambda ask: [{"id": "a", "amount": -1}], r"\[0\].amount: is negative"),
        (lambda ask: [{"id": "a", "amount": -(2**200)}], r"\[0\].amount: is no amount"),
        (lambda ask: [{"id": "a", "amount": 2**256}], r"\[0\].amount: is no amount"),
        (lambda ask: [{"id": "a", "amount": 0.5}], r"\[0\].amount: 0.5 is not a whole number"),
        (lambda ask: [{"id": "a", "amount": True}], r"\[0\].amount: .* is not a whole number"),
        (lambda ask: [{"id": 5, "amount": 1}], r"\[0\].id: must be text"),
        (lambda ask: [{"id": 2**200, "amount": 1}], r"\[0\].id: is an integer of more than 128 bits"),
        (lambda ask: [{"id": "x" * 257, "amount": 1}], r"\[0\].id: 257 bytes long"),
        (lambda ask: [object()], r"\[0\]: is a object"),
    ],
)
def test_a_source_that_fails(memory, source, message):
    wallet = opened(memory).tokens("w", source=source)
    with pytest.raises(errors.SourceUnavailable, match=message) as caught:
        wallet.select(1)
    assert isinstance(caught.value.__cause__, OSError if "gone" in message else errors.InvalidArgument)
    assert wallet.count_locked() == 0


@pytest.mark.parametrize(
    ("spent", "message"),
    [(raising(OSError("no chain")), "no chain"), (lambda *_: "a", "must be a list"), (lambda *_: [5], r"\[0\]: must be text")],
)
def test_a_source_that_fails_as_it_verifies(memory, spent, message):
    class Source:
        def page(self, ask):
            return [{"id": "a", "amount": 1}]

        def spent(self, wallet, those):
            return spent(wallet) if message == "no chain" else spent(wallet, those)

    wallet = opened(memory).tokens("w", source=Source(), verify=True)
    with pytest.raises(errors.SourceUnavailable, match=message):
        wallet.select(1)
    assert wallet.count_locked() == 0


def test_a_source_that_is_slow_is_given_up(memory):
    async def main():
        ended = []

        async def never(ask):
            try:
                await asyncio.sleep(1_000)
            finally:
                ended.append(ask["wallet"])

        wallet = opened(memory, aio).tokens("w", source=never)
        with pytest.raises(errors.TimedOut):
            await wallet.select(1, timeout=0.02)
        task = asyncio.ensure_future(selected(wallet, 1))
        await asyncio.sleep(0.01)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        while len(ended) < 2:
            await asyncio.sleep(0.001)
        # It was cancelled, too.
        assert ended == ["w", "w"]

    asyncio.run(asyncio.wait_for(main(), 50))


GOOD = source_of({"a": 5})


@pytest.mark.parametrize(
    ("options", "field"),
    [
        ({"wallet": 5}, "wallet"),
        ({"wallet": "x" * 257}, "wallet"),
        ({"source": None}, "source"),
        ({"source": 5}, "source"),
        ({"source": object()}, "source"),
        ({"source": "page"}, "source"),
        ({"source": type("Source", (), {"page": print, "spent": True})()}, "source.spent"),
        ({"spender": "x"}, "spender"),
        ({"currency": 5}, "currency"),
        ({"strategy": "greedy"}, "strategy"),
        ({"strategy": 5}, "strategy"),
        ({"max_age": 0.9}, "max_age"),
        ({"settle": 20}, "settle"),
        ({"max_inputs": 0}, "max_inputs"),
        ({"max_attempts": 0}, "max_attempts"),
        ({"max_rounds": 1.5}, "max_rounds"),
        ({"page": 0}, "page"),
        ({"verify": "always"}, "verify"),
        ({"keepalive": 60}, "keepalive"),
        *(({key: value}, key) for key in ("ttl", "settle", "max_age", "timeout") for value in (-1, math.nan, math.inf, "5", True, [])),
    ],
)
def test_what_is_wrong_with_a_wallet_is_named(memory, options, field):
    options = {"wallet": "w", "source": GOOD, **options}
    for face in (leasehold, aio):
        lh = opened(memory, face)
        with pytest.raises(errors.InvalidArgument) as caught:
            lh.tokens(options["wallet"], **{key: value for key, value in options.items() if key != "wallet"})
        assert caught.value.field == field


@pytest.mark.parametrize(
    ("target", "options", "field"),
    [
        *(pytest.param(wrong, {}, "target", id=f"target-{at}") for at, wrong in enumerate( (None, -1, -(2**200), 0.5, math.nan, 2.0**60, 2**256, 10**5000, "1e3", "", "-1", "010", True, {}, []))),
        (1, {"currency": "x" * 257}, "currency"),
        (1, {"settle": 60}, "settle"),
        (1, {"strategy": "bestFit"}, "strategy"),
        (1, {"ttl": 60.1}, "ttl"),
        (1, {"spender": 5}, "spender"),
        (1, {"source": GOOD}, "source"),
        *((1, {key: value}, key) for key in ("ttl", "timeout") for value in (-1, math.nan, math.inf, "5", True, [])),
    ],
)
def test_what_is_wrong_with_a_selection_is_named(memory, target, options, field):
    wallet = opened(memory).tokens("w", source=lambda ask: [{"id": "a", "amount": 5}])
    with pytest.raises(errors.InvalidArgument) as caught:
        wallet.select(target, **options)
    assert caught.value.field == field
    assert wallet.count_locked() == 0


@pytest.mark.parametrize(
    ("call", "field"),
    [
        (lambda wallet: wallet.hear("gap", 5), "currency"),
        (lambda wallet: wallet.hear("gap", "x" * 257), "currency"),
        (lambda wallet: wallet.hear(None), "change"),
        (lambda wallet: wallet.hear("silence"), "change"),
        (lambda wallet: wallet.hear({"spent": "a", "added": {"id": "a", "amount": 1}}), "change"),
        (lambda wallet: wallet.hear({"added": {"amount": 1}}), "change.added.id"),
        (lambda wallet: wallet.hear({"added": {"id": "a", "amount": 2**256}}), "change.added.amount"),
        (lambda wallet: wallet.hear({"gone": "a"}), "change.gone"),
        (lambda wallet: wallet.locks(None), "ids"),
        (lambda wallet: wallet.locks(["a", 5]), "ids[1]"),
        (lambda wallet: wallet.locks(["x" * 257]), "ids"),
        (lambda wallet: wallet.locks([str(it) for it in range(1_001)]), "ids"),
        (lambda _: leasehold.TokensInMemory().add(5, "", {"id": "a", "amount": 1}), "wallet"),
        (lambda _: leasehold.TokensInMemory().add("w", 5, {"id": "a", "amount": 1}), "currency"),
        (lambda _: leasehold.TokensInMemory().add("w", "", None), "token.id"),
        (lambda _: leasehold.TokensInMemory().add("w", "", {"id": "a", "amount": 0.5}), "token.amount"),
        (lambda _: leasehold.TokensInMemory().add("w", "", {"id": "a", "amount": 1, "since": -1}), "token.since"),
        (lambda _: leasehold.TokensInMemory().spend("w", 5), "id"),
        (lambda _: leasehold.TokensInMemory().sum("w", 5), "currency"),
    ],
)
def test_what_is_wrong_with_the_rest_is_named(memory, call, field):
    wallet = opened(memory).tokens("w", source=GOOD)
    with pytest.raises(errors.InvalidArgument) as caught:
        call(wallet)
    assert caught.value.field == field


PROGRAM = """
import sys
import leasehold
lh = leasehold.open(sys.argv[1], namespace=sys.argv[2], response_timeout=3)
wallet = lh.tokens("w", source=lambda ask: [{"id": f"t{at}", "amount": 1} for at in range(100)], currency="EUR", ttl=5, settle=5, max_age=1, timeout=50)
selection = wallet.select(60)
print(*(it["id"] for it in selection.tokens), flush=True)
sys.stdin.read()
"""


def test_a_process_that_is_killed_costs_no_more_than_its_time_to_live(redis_place):
    command = [sys.executable, "-c", PROGRAM, redis_place.url, redis_place.namespace]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as child:
        theirs = child.stdout.readline().split()
        assert len(theirs) == 60
        rows = [{"id": f"t{at}", "amount": 1} for at in range(100)]
        wallet = opened(redis_place).tokens("w", source=lambda ask: rows, **BRIEF, timeout=50)
        with pytest.raises(errors.LockedUntil):
            wallet.select(100, **AT_ONCE)
        child.kill()
    with wallet.select(100) as selection:
        assert len(selection.tokens) == 100
    assert wallet.count_locked() == 0


def test_a_store_that_is_away_is_its_own_error(own_redis):
    source = source_of({"a": 5})
    wallet = leasehold.open(own_redis.url, response_timeout=0.3).tokens("w", source=source, **BRIEF)
    wallet.select(5, **PATIENT).release()
    own_redis.kill()
    for call in (wallet.count_locked, lambda: wallet.locks(["a"]), lambda: wallet.select(5, **AT_ONCE)):
        with pytest.raises(errors.StoreUnavailable):
            call()
    with pytest.raises(errors.Insufficient):
        wallet.select(6, **AT_ONCE)


def test_a_fork_has_no_selection_of_its_parent(memory):
    wallet, *_ = two(memory, {"a": 1}, ttl=60, settle=60)
    selection = wallet.select(1)
    child = os.fork()
    if child == 0:
        seen = 1
        try:
            selection.sum
        except errors.Lost:
            seen = 0
        del selection
        gc.collect()
        os._exit(seen)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert selection.held and wallet.count_locked() == 1


class SqlSource:
    """Tokens of a table, listed by a number that no other gets: what is added or spent meanwhile moves no other."""

    def __init__(self, path):
        self.path = path
        with closing(self.connected()) as table:
            table.execute("CREATE TABLE tokens (number INTEGER PRIMARY KEY AUTOINCREMENT, wallet, currency, id TEXT UNIQUE, amount TEXT)")

    def connected(self):
        return sqlite3.connect(self.path, timeout=30, isolation_level=None)

    def add(self, tokens):
        with closing(self.connected()) as table:
            table.executemany("INSERT INTO tokens (wallet, currency, id, amount) VALUES ('w', 'EUR', ?, ?)", tokens)

    def spend(self, those):
        with closing(self.connected()) as table:
            table.executemany("DELETE FROM tokens WHERE id = ?", [(it,) for it in those])

    def page(self, ask):
        wanted = (ask["wallet"], ask["currency"], int(ask["after"] or 0), ask["limit"])
        with closing(self.connected()) as table:
            rows = table.execute(
                "SELECT number, id, amount FROM tokens WHERE wallet = ? AND currency = ? AND number > ? ORDER BY number LIMIT ?", wanted
            ).fetchall()
        tokens = [{"id": it, "amount": amount, "since": number} for number, it, amount in rows]
        return {"tokens": tokens, "next": str(rows[-1][0]) if len(rows) == ask["limit"] else None}

    def spent(self, wallet, those):
        with closing(self.connected()) as table:
            there = {it for (it,) in table.execute("SELECT id FROM tokens WHERE wallet = ?", (wallet,))}
        return [it for it in those if it not in there]


def walk(source, limit, between=lambda: None):
    ask = {"wallet": "w", "currency": "EUR", "after": None, "limit": limit, "seed": 1}
    while True:
        page = source.page(ask)
        yield from (it["id"] for it in page["tokens"])
        if page["next"] is None:
            return
        ask["after"] = page["next"]
        between()


@pytest.mark.parametrize("limit", [1, 7, 100, 1_000])
def test_a_cursor_of_sql_neither_skips_nor_repeats(tmp_path, limit):
    source = SqlSource(tmp_path / "wallet.db")
    source.add([("", "1"), *((f"kept-{at}", str(at)) for at in range(99)), *((f"spent-{at}", "1") for at in range(99))])
    kept = {"", *(f"kept-{at}" for at in range(99))}
    numbers = itertools.count()

    def between():
        at = next(numbers)
        source.spend([f"spent-{at % 99}"])
        if at < 99:
            source.add([(f"added-{at}", "1")])

    seen = list(walk(source, limit, between))
    assert len(seen) == len(set(seen))
    assert kept <= set(seen)


def test_replicas_spend_a_table_of_sql_once(place, tmp_path):
    source = SqlSource(tmp_path / "wallet.db")
    source.add([(f"t{at}", str(2**200)) for at in range(100)])
    spent, wrong, turn = set(), [], threading.Lock()

    def replica():
        try:
            wallet = opened(place).tokens("w", source=source, page=30, **BRIEF, timeout=50)
            while True:
                with wallet.select(7 * 2**200) as selection:
                    mine = set(ids(selection))
                    with turn:
                        assert not spent & mine and len(mine) == 7
                        spent.update(mine)
                    selection.spent()
                source.spend(mine)
        except errors.Insufficient:
            pass
        except BaseException as error:
            wrong.append(error)

    threads = [threading.Thread(target=replica) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []
    assert len(spent) == 98 and len(list(walk(source, 10))) == 2
