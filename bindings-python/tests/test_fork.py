import asyncio
import os
import signal

import pytest

from leasehold import errors
from leasehold._leasehold import trial
from leasehold._settle import settle

# Other threads exist at the fork, as they will in real life; newer Pythons warn of that.
pytestmark = pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork:DeprecationWarning")


def in_child(body) -> None:
    """Runs `body` in a fork; its failure, or its hanging, is this test's."""
    pid = os.fork()
    if pid == 0:
        code = 1
        try:
            signal.alarm(20)
            body()
            code = 0
        except BaseException:
            import traceback

            traceback.print_exc()
        finally:
            os._exit(code)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0


async def nap():
    return await settle(trial.sleep_aio(0.01))


def test_a_child_starts_anew():
    assert trial.sleep(0.01) == 0.01
    assert asyncio.run(nap()) == 0.01

    def child():
        assert trial.sleep(0.01) == 0.01
        assert asyncio.run(nap()) == 0.01

    for _ in range(3):
        in_child(child)
    assert trial.sleep(0.01) == 0.01
    assert asyncio.run(nap()) == 0.01


def test_a_grandchild_too():
    def child():
        assert trial.sleep(0.01) == 0.01
        in_child(lambda: trial.sleep(0.01))

    in_child(child)


def test_a_handle_stays_with_its_process():
    handle = trial.Handle()
    count = handle.count()

    def child():
        with pytest.raises(errors.InvalidArgument, match=f"belongs to process {os.getppid()}, not to its fork"):
            handle.count()
        assert trial.Handle().count() == count + 1

    in_child(child)
    assert handle.count() == count


def test_a_child_does_not_run_the_destructor_of_its_parents_handle():
    handles = [trial.Handle()]
    count = handles[0].count()

    def child():
        handles.clear()
        assert trial.Handle().count() == count + 1

    in_child(child)
    handles.clear()
    assert trial.Handle().count() == count


def test_a_fork_while_calls_are_under_way():
    async def main():
        calls = [asyncio.create_task(settle(trial.sleep_aio(0.3))) for _ in range(20)]
        await asyncio.sleep(0.01)
        in_child(lambda: trial.sleep(0.01))
        return await asyncio.gather(*calls)

    assert len(asyncio.run(main())) == 20


def test_a_call_of_the_parent_is_not_aborted_by_a_child():
    async def main():
        calls = [trial.sleep_aio(0.1)]

        def child():
            with pytest.raises(errors.Lost):
                calls[0].abort()
            calls.clear()

        in_child(child)
        return await settle(calls[0])

    assert asyncio.run(main()) == 0.1
