"""Where tokens come from, what strategies choose of them, and sources that fail or are slow."""

import asyncio

import pytest

import leasehold
from leasehold import aio, errors
from wallets import AT_ONCE, ids, opened, selected, source_of


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
    if source is later:
        with pytest.raises(errors.InvalidArgument, match=r"use leasehold\.aio") as caught:
            opened(memory).tokens("w", source=source)
        assert caught.value.field == "source"
    else:
        with opened(memory).tokens("w", source=source).select(3) as selection:
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


def test_a_page_ends_with_who_is_cut_off_or_with_the_handle_and_outlasts_a_timeout(memory):
    async def main():
        begun, ended = asyncio.Event(), []

        async def never(ask):
            begun.set()
            try:
                await asyncio.sleep(1_000)
            finally:
                ended.append(ask["wallet"])

        lh = opened(memory, aio)
        wallet = lh.tokens("w", source=never)
        task = asyncio.ensure_future(selected(wallet, 1))
        await begun.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        while not ended:
            await asyncio.sleep(0.001)
        # What the first has no time for any more is there for the second.
        for _ in range(2):
            with pytest.raises(errors.TimedOut):
                await wallet.select(1, timeout=0.02)
        assert ended == ["w"]
        await lh.close()
        while len(ended) < 2:
            await asyncio.sleep(0.001)
        assert ended == ["w", "w"]

    asyncio.run(asyncio.wait_for(main(), 50))


# A plain function needs no loop, and was refused with Python's own words where none ran.
def test_a_source_of_plain_functions_is_taken_where_no_loop_runs():
    lh = aio.open()
    tokens = lh.tokens("wallet", source=lambda ask: [{"id": "a", "amount": 5}])

    async def select(tokens):
        async with tokens.select(5) as selection:
            return selection.sum

    assert asyncio.run(select(tokens)) == 5

    async def page(ask):
        return [{"id": "a", "amount": 5}]

    with pytest.raises(errors.InvalidArgument, match="no event loop is running") as wrong:
        lh.tokens("other", source=page)
    assert wrong.value.field == "source"

    def awaits(ask):
        return page(ask)

    with pytest.raises(errors.LeaseholdError, match="must be awaited: use leasehold.aio, in an event loop"):
        asyncio.run(select(lh.tokens("third", source=awaits)))
