"""The examples of the README run as they stand, and are typed."""

import re
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

README = Path(__file__).parent.parent / "README.md"
EXAMPLES = re.findall(r"```python\n(.*?)```", README.read_text(), re.S)
MAIN = re.findall(r"```python\n(.*?)```", (README.parent.parent / "README.md").read_text(), re.S)


def test_the_first_one_is_short():
    assert len(EXAMPLES[0].splitlines()) <= 10


@pytest.mark.parametrize("example", EXAMPLES, ids=["threads", "asyncio"])
def test_an_example_runs(example, redis_place):
    opening = f'open("{redis_place.url}", namespace="{redis_place.namespace}")'
    for program in (example, example.replace('open(namespace="eth:1")', opening).replace("ttl=30", "ttl=1")):
        done = subprocess.run([sys.executable, "-W", "error", "-c", program], capture_output=True, text=True, stdin=subprocess.DEVNULL)
        assert (done.returncode, done.stderr) == (0, ""), done.stderr
        assert "sign with" not in example or re.search(r"^sign with 0x(aa|bb), nonce 7$", done.stdout, re.M)


def test_the_readme_of_all_begins_with_the_same():
    assert MAIN[:2] == EXAMPLES


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
