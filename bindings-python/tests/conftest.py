"""What the tests of the border share."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator

import pytest

from leasehold._leasehold import trial


def until(condition: Callable[[], bool], seconds: float = 5.0) -> None:
    """Waits for what another thread is about to do."""
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "did not come about"
        time.sleep(0.002)


@pytest.fixture(autouse=True)
def nothing_left_behind() -> Iterator[None]:
    """No test leaves a live Rust future behind."""
    before = trial.alive()
    yield
    until(lambda: trial.alive() == before)
