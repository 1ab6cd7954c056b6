"""The condition with which a row of a table refuses a late holder: as the core's documentation words it, on SQLite."""

import re
import sqlite3
import time
from contextlib import closing
from pathlib import Path

import pytest

import leasehold
from leasehold import errors

SOURCE = Path(__file__).parent.parent.parent / "core" / "src" / "fence.rs"
[GUARDED] = re.findall(r"^//! ```sql\n//! (.*)\n//! ```", SOURCE.read_text(), re.M)
[COLUMN] = re.findall(r"`(fence BIGINT .*)`", SOURCE.read_text())
TRUSTING = "UPDATE accounts SET balance = :balance WHERE id = :id"


@pytest.fixture
def database(tmp_path):
    with closing(sqlite3.connect(tmp_path / "accounts", isolation_level=None)) as database:
        database.execute(f"CREATE TABLE accounts (id TEXT PRIMARY KEY, balance INTEGER, {COLUMN})")
        database.executemany("INSERT INTO accounts (id, balance) VALUES (?, 0)", ["a", "b"])
        yield database


def writer(database, statement):
    """Writes a balance; tells whether a row has changed."""
    return lambda fence, balance: database.execute(statement, {"id": "a", "balance": balance, "fence": fence}).rowcount == 1


def paused_beyond_its_lease(place, write):
    """A holder sleeps until its lease is another's, who writes; then it goes on. Tells whether it got in."""
    with place.open() as lh:
        pool = lh.pool("p", slots=["a"], ttl=0.5)
        paused = pool.acquire(timeout=3)
        assert write(paused.fence, 1)
        time.sleep(0.6)
        with pool.acquire(timeout=3) as other:
            assert write(other.fence, 2)
            assert write(other.fence, 2), "a holder may write more than once, and the same again"
            return write(paused.fence, 1)


def balances(database):
    return dict(database.execute("SELECT id, balance FROM accounts"))


def test_without_the_condition_a_paused_holder_destroys_what_the_other_wrote(memory, database):
    assert paused_beyond_its_lease(memory, writer(database, TRUSTING))
    assert balances(database) == {"a": 1, "b": 0}


def test_the_condition_refuses_a_paused_holder(memory, database):
    assert not paused_beyond_its_lease(memory, writer(database, GUARDED))
    assert balances(database) == {"a": 2, "b": 0}


def test_a_guard_begins_with_a_fence_or_with_none():
    assert [leasehold.FenceGuard(highest).highest for highest in (0, 1, 2**53 - 1)] == [0, 1, 2**53 - 1]
    for wrong in (False, True, None, 0.0, "", [], -1, 2**53):
        with pytest.raises(errors.InvalidArgument):
            leasehold.FenceGuard(wrong)


def test_fences_are_compared_as_numbers(database):
    write = writer(database, GUARDED)
    admitted = [write(fence, 0) for fence in (9, 10, 9, 10, 2**53 - 1, 10, 2**53 - 2)]
    assert admitted == [True, True, False, True, True, False, False]
