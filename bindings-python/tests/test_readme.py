"""The examples of the README run as they stand, and are typed."""

import asyncio
import re
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

from leasehold import aio, errors

README = Path(__file__).parent.parent / "README.md"
EXAMPLES = re.findall(r"```python\n(.*?)```", README.read_text(), re.S)
MAIN = re.findall(r"```python\n(.*?)```", (README.parent.parent / "README.md").read_text(), re.S)


def test_the_first_one_is_short():
    assert len(EXAMPLES[0].splitlines()) <= 10


@pytest.mark.parametrize("example", EXAMPLES, ids=["threads", "asyncio", "while held"])
def test_an_example_runs(example, redis_place):
    opening = f'open("{redis_place.url}", namespace="{redis_place.namespace}")'
    for program in (example, example.replace('open(namespace="eth:1")', opening).replace("ttl=30", "ttl=1")):
        done = subprocess.run([sys.executable, "-W", "error", "-c", program], capture_output=True, text=True, stdin=subprocess.DEVNULL)
        assert (done.returncode, done.stderr) == (0, ""), done.stderr
        assert "sign with" not in example or re.search(r"^sign with 0x(aa|bb), nonce 7$", done.stdout, re.M)


def test_the_readme_of_all_begins_with_the_same():
    assert MAIN[:2] == EXAMPLES[:2]


@pytest.fixture
def while_held():
    scope = {}
    exec(EXAMPLES[2].partition("async def main")[0], scope)
    return scope["while_held"]


class Work:
    """Notes how it ended, which takes a moment."""

    ended = None

    async def __call__(self):
        try:
            await asyncio.sleep(30)
        except asyncio.CancelledError:
            await asyncio.sleep(0.01)
            self.ended = "cancelled"
            raise


def test_the_work_of_the_example_ends_with_what_it_runs_under(memory, while_held):
    async def main():
        async with memory.open(aio) as lh:
            pool, work = await lh.pool("p", slots=["a"], ttl=0.2), Work()
            with pytest.raises(errors.Lost):
                async with pool.acquire(timeout=3) as lease:
                    try:
                        await while_held(lease, work())
                    finally:
                        assert (work.ended, lease.held) == ("cancelled", False)
            # `run` is a block, too.
            with pytest.raises(errors.Lost):
                await pool.run(lambda lease: while_held(lease, Work()()), timeout=3)

    asyncio.run(main())


def test_the_work_of_the_example_is_called_off_as_its_task_is(memory, while_held):
    async def main():
        async with memory.open(aio) as lh:
            lock, work = lh.lock("a"), Work()
            with pytest.raises(asyncio.TimeoutError):
                await asyncio.wait_for(lock.run(lambda locked: while_held(locked, work())), 0.1)
            assert work.ended == "cancelled"
            async with lock.acquire(timeout=0) as locked:
                assert await while_held(locked, asyncio.sleep(0, "paid")) == "paid"
                with pytest.raises(KeyError):
                    await while_held(locked, fails())

    asyncio.run(main())


@pytest.mark.skipif(sys.version_info < (3, 11), reason="there are no task groups")
def test_the_work_of_the_example_is_that_of_a_task_group(memory, while_held):
    async def main():
        async with memory.open(aio) as lh:
            pool, others = await lh.pool("p", slots=["a", "b"], ttl=60), [Work() for _ in range(3)]
            # What is lost ends the group, and the group ends what goes on.
            with pytest.raises(ExceptionGroup) as caught:
                async with asyncio.TaskGroup() as group:
                    group.create_task(pool.run(lambda lease: while_held(lease, others[0]())))
                    group.create_task(pool.run(lambda lease: while_held(lease, others[1]()), ttl=0.2))
                    group.create_task(others[2]())
            assert [type(error) for error in caught.value.exceptions] == [errors.Lost]
            assert [work.ended for work in others] == ["cancelled"] * 3

    asyncio.run(main())


async def fails():
    raise KeyError


def test_the_example_that_selects_from_a_table_runs(tmp_path):
    done = subprocess.run([sys.executable, "-W", "error", "-c", MAIN[5]], cwd=tmp_path, capture_output=True, text=True, stdin=subprocess.DEVNULL)
    assert (done.returncode, done.stderr) == (0, ""), done.stderr
    said = re.fullmatch(r"(5 for 4, 1|6 for 4, 2|8 for 4, 4) is change\ninsufficient\nlocked_until\n", done.stdout)
    assert said, done.stdout
    with closing(sqlite3.connect(tmp_path / "wallet.db")) as table:
        left = table.execute("SELECT SUM(CAST(amount AS INTEGER)) FROM tokens").fetchone()
    assert left == (11 - int(said[1][0]),), "the source hears of what was spent"


def test_the_example_that_locks_runs(redis_place):
    example = MAIN[2]
    opening = f'open("{redis_place.url}", namespace="{redis_place.namespace}", response_timeout=0.3, lock_ttl=1)'
    for program in (example, example.replace("open()", opening)):
        done = subprocess.run([sys.executable, "-W", "error", "-c", program], capture_output=True, text=True, stdin=subprocess.DEVNULL)
        assert (done.returncode, done.stderr) == (0, ""), done.stderr
        assert re.fullmatch(r"withdrawn under \d+\n\['account:13', 'treasury'\] for [\d.]+ s\n", done.stdout)


@pytest.mark.parametrize(
    ("at", "said"),
    [
        (3, r"one of priority 5 waits for account:13: .*\nstolen: True\n"),
        (4, r"\['account:13'\] for [\d.]+ s\n"),
        (6, r"spend:7 refuses, 2\d{17} wei are left\nallowed: True\n"),
        (7, r"\[False, True, True\] the limit login%=ann has 0 left; try again in \d+ ms\n"),
        (8, r"\{'account:13': 7\}, and a ttl of 0.41 s\n"),
        (9, r"store: ok: this process's memory, .*\n"),
    ],
    ids=["stealing", "quorum", "limits", "actions", "checks", "doctor"],
)
def test_an_example_in_memory_runs(at, said):
    assert len(MAIN) == 10
    example = MAIN[at]
    done = subprocess.run([sys.executable, "-W", "error", "-c", example], capture_output=True, text=True, stdin=subprocess.DEVNULL)
    assert (done.returncode, done.stderr) == (0, ""), done.stderr
    assert re.fullmatch(said, done.stdout)
