"""What needs no store: the checks of fences, and the time to live that outlasts a chain of thieves."""

from pathlib import Path

import pytest

import leasehold
from leasehold import FENCE_SCRIPT, FENCE_SQL, FenceGuard, errors

CORE = Path(__file__).parent.parent.parent / "core" / "src"
HANDSHAKES = {"contenders": 1000, "levels": 100, "handshake": 0.05, "round_trip": 0.005, "confidence": 0.99}


def test_a_guard_refuses_who_is_late_and_nobody_else(memory):
    with leasehold.open(memory.url) as lh:
        pool = lh.pool("p", slots=["a"])
        guard = FenceGuard()
        with pool.acquire() as paused:
            guard.admit(paused.fence)
        with pool.acquire() as other:
            guard.admit(other.fence)
            guard.admit(other.fence)
            with pytest.raises(errors.Lost):
                guard.admit(paused.fence)
            assert guard.highest == other.fence


def test_a_guard_goes_on_from_what_it_is_given():
    guard = FenceGuard(9)
    with pytest.raises(errors.Lost):
        guard.admit(8)
    guard.admit(10)
    for wrong in (0, -1, 1.5, 2**53, "9", None):
        with pytest.raises(errors.InvalidArgument) as caught:
            guard.admit(wrong)
        assert caught.value.field == "fence"
    assert (guard.highest, FenceGuard().highest) == (10, 0)
    with pytest.raises(errors.InvalidArgument):
        FenceGuard(-1)


def test_the_texts_are_those_of_the_core():
    assert FENCE_SCRIPT == (CORE / "fence.lua").read_text()
    assert f"AND {FENCE_SQL}\n" in (CORE / "fence.rs").read_text()


def test_a_recommended_ttl_outlasts_the_chain():
    # Ten in a row, and nine handshakes among them.
    assert leasehold.recommended_ttl(**HANDSHAKES) == 0.455
    assert leasehold.recommended_ttl(**HANDSHAKES | {"levels": 1}) == 0.005
    for wrong, field in (({"confidence": 1}, "confidence"), ({"round_trip": None}, "round_trip"), ({"handshakes": 1}, "handshakes")):
        with pytest.raises(errors.InvalidArgument) as caught:
            leasehold.recommended_ttl(**HANDSHAKES | wrong)
        assert caught.value.field == field
