import os
import signal
import threading
import time

import pytest

import leasehold
from conftest import until
from leasehold._leasehold import trial


def test_the_interpreter_is_free_while_a_call_waits():
    threads = [threading.Thread(target=trial.sleep, args=(0.2,)) for _ in range(20)]
    begun = time.monotonic()
    for thread in threads:
        thread.start()
    until(lambda: trial.alive() == 20)
    for thread in threads:
        thread.join()
    assert time.monotonic() - begun < 1.5


def test_ctrl_c_ends_a_wait_soon_and_drops_the_future():
    threading.Timer(0.1, os.kill, (os.getpid(), signal.SIGINT)).start()
    begun = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        trial.sleep(30)
    assert time.monotonic() - begun < 1
    assert trial.alive() == 0
    assert trial.sleep(0.01) == 0.01


def test_a_signal_whose_handler_returns_does_not_end_a_wait():
    heard = []
    before = signal.signal(signal.SIGUSR1, lambda *_: heard.append(1))
    try:
        threading.Timer(0.05, os.kill, (os.getpid(), signal.SIGUSR1)).start()
        assert trial.sleep(0.3) == 0.3
    finally:
        signal.signal(signal.SIGUSR1, before)
    assert heard == [1]


def longest_pause(call):
    """For which part of a call, at the longest, no other thread went on."""
    ticks, ends = [time.monotonic()], False

    def tick():
        while not ends:
            ticks.append(time.monotonic())

    thread = threading.Thread(target=tick)
    thread.start()
    until(lambda: len(ticks) > 1)
    begun = time.monotonic()
    call()
    ended = time.monotonic()
    ends = True
    thread.join()
    during = [begun, *(it for it in ticks if begun < it < ended), ended]
    return max(after - before for before, after in zip(during, during[1:])) / (ended - begun)


SLOTS = [f"slot-{number}" for number in range(100_000)]


def select(memory):
    source = leasehold.TokensInMemory()
    for number, slot in enumerate(SLOTS):
        source.add("w", "", {"id": slot, "amount": number % 1_000 * 2 + 2})
    wallet = leasehold.open(memory.url).tokens("w", source=source)

    # Odd, which no even ones add up to.
    def exactly():
        with pytest.raises(leasehold.LeaseholdError):
            wallet.select(999_999, strategy="exact", timeout=0)

    exactly()
    return exactly


def opening(memory):
    return lambda: leasehold.open(memory.url).pool("p", slots=SLOTS)


@pytest.mark.parametrize("long", [select, opening])
def test_the_interpreter_is_free_while_a_call_reckons(memory, long):
    """In memory nothing is waited for. One try of many is enough: while it is not free, nobody ever goes on."""
    call = long(memory)
    assert any(longest_pause(call) < 0.5 for _ in range(10))
