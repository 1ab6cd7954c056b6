import os
import signal
import threading
import time

import pytest

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
