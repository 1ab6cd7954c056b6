"""Tokens of a wallet, with threads and with asyncio."""

import asyncio
import gc
import math
import os
import signal
import threading
import time
from contextlib import closing

import pytest

import leasehold
from conftest import until
from leasehold import aio, errors
from wallets import AT_ONCE, BRIEF, PATIENT, ids, opened, selected, two


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
    given_back = there.select(5)
    given_back.release()
    with pytest.raises(errors.Lost):
        given_back.spent()
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
    assert [it["id"] for it in there.locks()] == sorted(ODD)
    selection.release()
    assert here.locks(ODD) == here.locks() == []


def test_what_a_spender_locked_is_given_back_by_its_name(place):
    here, there, _ = two(place, {"a": 1, "b": 1, "c": 1})
    orphaned = here.select(2, spender="tx 1", keepalive=False, **PATIENT)
    kept = here.select(1, spender="tx 2", **PATIENT)
    assert (there.release_spender("tx 3"), there.release_spender("tx 1")) == (0, 2)
    with there.select(2, **PATIENT) as selection:
        assert ids(selection) == ids(orphaned)
        with pytest.raises(errors.Lost):
            orphaned.renew()
        for _ in range(2):
            with pytest.raises(errors.Lost):
                orphaned.spent()
    kept.release()


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


def test_a_block_that_fails_gives_its_selection_back(memory):
    here, *_ = two(memory, {"a": 1}, ttl=60, settle=60)
    with pytest.raises(ZeroDivisionError), here.select(1):
        1 / 0
    assert here.count_locked() == 0


def test_a_spender_is_not_refused_what_it_had(place):
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
    # An error of the block is the context of that.
    with pytest.raises(errors.Lost) as caught, here.select(1, **brief) as late:
        lose(late)
        1 / 0
    assert type(caught.value.__context__) is ZeroDivisionError

    async def lose_later(selection):
        assert isinstance(await selection.lost(), errors.Lost)
        while here.count_locked():
            await asyncio.sleep(0.002)

    async def main():
        wallet = opened(memory, aio).tokens("w", source=lambda ask: [{"id": "a", "amount": 1}])
        with pytest.raises(errors.Lost):
            async with wallet.select(1, **brief) as late:
                await lose_later(late)
        with pytest.raises(errors.Lost) as caught:
            async with wallet.select(1, **brief) as late:
                await lose_later(late)
                1 / 0
        assert type(caught.value.__context__) is ZeroDivisionError

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
