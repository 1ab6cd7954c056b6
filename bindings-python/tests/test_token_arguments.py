"""What is wrong with a wallet, a selection and the rest is named."""

import math

import pytest

import leasehold
from leasehold import aio, errors
from wallets import ids, opened, source_of


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



def test_a_source_that_says_nothing_of_spends_verifies_nothing_in_silence(memory):
    with pytest.raises(errors.InvalidArgument, match="spent") as caught:
        opened(memory).tokens("w", source=lambda ask: [], verify=True)
    assert caught.value.field == "verify"


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
        (lambda wallet: wallet.locks("a"), "ids"),
        (lambda wallet: wallet.release_spender(5), "spender"),
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
