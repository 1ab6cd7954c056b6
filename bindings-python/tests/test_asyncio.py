import asyncio
import gc
import sys
import threading
import time
import warnings
import weakref

import pytest

from conftest import promise, until
from leasehold._leasehold import trial
from leasehold._settle import answer, settle


def test_many_calls_at_once():
    async def main():
        return await asyncio.gather(*[settle(trial.sleep_aio(0.001 * (i % 7 + 1))) for i in range(500)])

    assert len(asyncio.run(main())) == 500


def test_a_hundred_ways_through_tokio_and_back():
    async def main():
        return [await settle(trial.hop_aio()) for _ in range(100)]

    assert asyncio.run(main()) == [1] * 100


def test_cancelling_the_task_drops_the_rust_future():
    async def main():
        task = asyncio.create_task(settle(trial.sleep_aio(30)))
        await asyncio.sleep(0.01)
        assert trial.alive() == 1
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        until(lambda: trial.alive() == 0)
        with pytest.raises(asyncio.TimeoutError):
            await asyncio.wait_for(settle(trial.sleep_aio(30)), 0.01)
        until(lambda: trial.alive() == 0)

    asyncio.run(main())


def test_cancelling_while_results_arrive():
    async def main():
        for round_ in range(30):
            tasks = [asyncio.create_task(settle(trial.sleep_aio(0.0001 * i))) for i in range(20)]
            await asyncio.sleep(0.0001 * round_)
            for task in tasks:
                task.cancel()
            ends = await asyncio.gather(*tasks, return_exceptions=True)
            assert all(isinstance(end, (float, asyncio.CancelledError)) for end in ends)

    asyncio.run(main())


def test_one_wake_delivers_many():
    wakes = 0

    class Counting(asyncio.SelectorEventLoop):
        def add_reader(self, fd, callback, *args):
            def counted():
                nonlocal wakes
                wakes += 1
                callback(*args)

            return super().add_reader(fd, counted)

    async def main():
        calls = [trial.sleep_aio(0.02) for _ in range(200)]
        time.sleep(0.1)  # the loop is busy while all of them end
        return [await settle(call) for call in calls]

    with asyncio.Runner(loop_factory=Counting) as runner:
        assert len(runner.run(main())) == 200
    assert wakes <= 2


def test_a_loop_closed_meanwhile():
    async def main():
        trial.sleep_aio(0.05)
        pending = trial.sleep_aio(0.05)
        return pending, promise(pending)

    pending, future = asyncio.run(main())
    time.sleep(0.1)
    assert not future.done()
    pending.abort(future)
    assert asyncio.run(settle_soon()) == 0.001


async def settle_soon():
    return await settle(trial.sleep_aio(0.001))


def test_a_task_destroyed_with_its_loop():
    loop = asyncio.new_event_loop()
    coroutine = settle_soon_after(loop)
    loop.run_until_complete(coroutine)
    loop.close()
    gc.collect()
    until(lambda: trial.alive() == 0)


async def settle_soon_after(loop):
    waiting = settle(trial.sleep_aio(30))
    waiting.send(None)
    waiting.close()


def test_a_call_that_ends_before_its_future_is_known():
    async def main():
        early, late = trial.sleep_aio(0.001), trial.sleep_aio(0.1)
        await settle(late)
        return await settle(early)

    assert asyncio.run(main()) == 0.001


def test_a_future_that_cannot_be_settled_does_not_keep_the_others_waiting():
    class Broken(asyncio.Future):
        def set_result(self, result):
            raise KeyboardInterrupt

    async def main():
        broken, whole = trial.sleep_aio(0.01), trial.sleep_aio(0.01)
        broken.expect(Broken(), 0.0)
        return asyncio.ensure_future(settle(whole)), broken

    async def wait(task):
        return await asyncio.wait_for(task, 5)

    loop = asyncio.new_event_loop()
    task, broken = loop.run_until_complete(main())
    time.sleep(0.05)
    with pytest.raises(KeyboardInterrupt):
        loop.run_until_complete(asyncio.sleep(1))
    assert loop.run_until_complete(wait(task)) == 0.01
    loop.run_until_complete(loop.shutdown_default_executor())
    loop.close()


def test_what_a_signal_handler_raises_as_calls_end_keeps_no_caller_waiting():
    """It may run as the call returns that says which have ended: they were forgotten, and their tasks waited for ever."""

    class Interrupted:
        """A bridge of which each call into Rust is followed by a handler that raises, once."""

        def __init__(self, bridge, at):
            self.bridge, self.at, self.raised = bridge, at, False

        @property
        def settled(self):
            settled = self.bridge.settled
            return Interrupting(settled, self) if self.at == "settling" else settled

        def turn(self):
            self.bridge.turn()
            self.interrupt("turn")

        def interrupt(self, at):
            if self.at == at and not self.raised:
                self.raised = True
                raise KeyboardInterrupt

        def __getattr__(self, name):
            return getattr(self.bridge, name)

    class Interrupting:
        def __init__(self, settled, bridge):
            self.settled, self.bridge = settled, bridge

        def __len__(self):
            return len(self.settled)

        def __getitem__(self, at):
            return self.settled[at]

        def popleft(self):
            # Between the settling of a future and its taking out.
            self.bridge.interrupt("settling")
            return self.settled.popleft()

    async def main(at):
        pending = [trial.sleep_aio(0.005) for _ in range(3)]
        futures = [asyncio.get_running_loop().create_future() for _ in pending]
        (bridge,) = {one.expect(future, 0.0) for one, future in zip(pending, futures)} - {None}
        await asyncio.sleep(0)
        # They end while the loop stands still.
        time.sleep(0.02)
        with pytest.raises(KeyboardInterrupt):
            answer(Interrupted(bridge, at))
        return await asyncio.wait_for(asyncio.gather(*futures), 5)

    for at in ["turn", "settling"]:
        assert asyncio.run(main(at)) == [0.005] * 3


def test_several_loops_in_several_threads():
    sums = []

    async def main():
        for _ in range(20):
            sums.append(sum(await asyncio.gather(*[settle(trial.hop_aio()) for _ in range(50)])))

    threads = [threading.Thread(target=lambda: asyncio.run(main())) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sums == [50] * 80


def test_two_loops_taking_turns_keep_their_bridges():
    import os

    loops = [asyncio.new_event_loop() for _ in range(2)]
    count = lambda: len(os.listdir("/proc/self/fd"))
    for loop in loops:
        loop.run_until_complete(settle_soon())
    before = count()
    for _ in range(100):
        for loop in loops:
            loop.run_until_complete(settle_soon())
    assert count() == before
    for loop in loops:
        loop.close()


def test_closed_loops_leave_no_sockets_behind():
    import os

    for _ in range(200):
        asyncio.run(settle_soon())
    gc.collect()
    assert len(os.listdir("/proc/self/fd")) < 60


def test_loops_that_nobody_closes_are_collected():
    loops = []

    def work():
        loop = asyncio.new_event_loop()
        loops.append(weakref.ref(loop))
        loop.run_until_complete(settle_soon())

    with warnings.catch_warnings():
        # Each says that it was not closed.
        warnings.simplefilter("ignore")
        for _ in range(100):
            thread = threading.Thread(target=work)
            thread.start()
            thread.join()
        gc.collect()
        assert [loop for loop in loops if loop() is not None] == []


def test_short_loops_in_several_threads():
    """A new loop is the moment to look for those that are gone, and so may others do."""
    failed = []
    end = time.monotonic() + 3

    def work():
        try:
            while time.monotonic() < end:
                assert asyncio.run(settle_soon()) == 0.001
        except BaseException as error:
            failed.append(error)

    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        threads = [threading.Thread(target=work) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        sys.setswitchinterval(before)
    assert failed == []


def test_without_a_loop():
    with pytest.raises(RuntimeError, match="no running event loop"):
        trial.sleep_aio(1)
