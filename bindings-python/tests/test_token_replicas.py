"""Tokens of many processes: killed ones, forks, stores that are away, and a table of SQL."""

import gc
import itertools
import os
import sqlite3
import subprocess
import sys
import threading
from contextlib import closing

import pytest

import leasehold
from leasehold import errors
from wallets import AT_ONCE, BRIEF, PATIENT, ids, opened, source_of, two


PROGRAM = """
import sys
import leasehold
lh = leasehold.open(sys.argv[1], namespace=sys.argv[2], response_timeout=3)
wallet = lh.tokens("w", source=lambda ask: [{"id": f"t{at}", "amount": 1} for at in range(100)], currency="EUR", ttl=5, settle=5, max_age=1, timeout=50)
selection = wallet.select(60)
print(*(it["id"] for it in selection.tokens), flush=True)
sys.stdin.read()
"""


def test_a_process_that_is_killed_costs_no_more_than_its_time_to_live(redis_place):
    command = [sys.executable, "-c", PROGRAM, redis_place.url, redis_place.namespace]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as child:
        theirs = child.stdout.readline().split()
        assert len(theirs) == 60
        rows = [{"id": f"t{at}", "amount": 1} for at in range(100)]
        wallet = opened(redis_place).tokens("w", source=lambda ask: rows, **BRIEF, timeout=50)
        with pytest.raises(errors.LockedUntil):
            wallet.select(100, **AT_ONCE)
        child.kill()
    with wallet.select(100) as selection:
        assert len(selection.tokens) == 100
    assert wallet.count_locked() == 0


def test_a_store_that_is_away_is_its_own_error(own_redis):
    source = source_of({"a": 5})
    wallet = leasehold.open(own_redis.url, response_timeout=0.3).tokens("w", source=source, **BRIEF)
    wallet.select(5, **PATIENT).release()
    own_redis.kill()
    for call in (wallet.count_locked, lambda: wallet.locks(["a"]), lambda: wallet.select(5, **AT_ONCE)):
        with pytest.raises(errors.StoreUnavailable):
            call()
    with pytest.raises(errors.Insufficient):
        wallet.select(6, **AT_ONCE)


def test_a_fork_has_no_selection_of_its_parent(memory):
    wallet, *_ = two(memory, {"a": 1}, ttl=60, settle=60)
    selection = wallet.select(1)
    child = os.fork()
    if child == 0:
        seen = 1
        try:
            selection.sum
        except errors.Lost:
            seen = 0
        del selection
        gc.collect()
        os._exit(seen)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert selection.held and wallet.count_locked() == 1


class SqlSource:
    """Tokens of a table, listed by a number that no other gets: what is added or spent meanwhile moves no other."""

    def __init__(self, path):
        self.path = path
        with closing(self.connected()) as table:
            table.execute("CREATE TABLE tokens (number INTEGER PRIMARY KEY AUTOINCREMENT, wallet, currency, id TEXT UNIQUE, amount TEXT)")

    def connected(self):
        return sqlite3.connect(self.path, timeout=30, isolation_level=None)

    def add(self, tokens):
        with closing(self.connected()) as table:
            table.executemany("INSERT INTO tokens (wallet, currency, id, amount) VALUES ('w', 'EUR', ?, ?)", tokens)

    def spend(self, those):
        with closing(self.connected()) as table:
            table.executemany("DELETE FROM tokens WHERE id = ?", [(it,) for it in those])

    def page(self, ask):
        wanted = (ask["wallet"], ask["currency"], int(ask["after"] or 0), ask["limit"])
        with closing(self.connected()) as table:
            rows = table.execute(
                "SELECT number, id, amount FROM tokens WHERE wallet = ? AND currency = ? AND number > ? ORDER BY number LIMIT ?", wanted
            ).fetchall()
        tokens = [{"id": it, "amount": amount, "since": number} for number, it, amount in rows]
        return {"tokens": tokens, "next": str(rows[-1][0]) if len(rows) == ask["limit"] else None}

    def spent(self, wallet, those):
        with closing(self.connected()) as table:
            there = {it for (it,) in table.execute("SELECT id FROM tokens WHERE wallet = ?", (wallet,))}
        return [it for it in those if it not in there]


def walk(source, limit, between=lambda: None):
    ask = {"wallet": "w", "currency": "EUR", "after": None, "limit": limit, "seed": 1}
    while True:
        page = source.page(ask)
        yield from (it["id"] for it in page["tokens"])
        if page["next"] is None:
            return
        ask["after"] = page["next"]
        between()


@pytest.mark.parametrize("limit", [1, 7, 100, 1_000])
def test_a_cursor_of_sql_neither_skips_nor_repeats(tmp_path, limit):
    source = SqlSource(tmp_path / "wallet.db")
    source.add([("", "1"), *((f"kept-{at}", str(at)) for at in range(99)), *((f"spent-{at}", "1") for at in range(99))])
    kept = {"", *(f"kept-{at}" for at in range(99))}
    numbers = itertools.count()

    def between():
        at = next(numbers)
        source.spend([f"spent-{at % 99}"])
        if at < 99:
            source.add([(f"added-{at}", "1")])

    seen = list(walk(source, limit, between))
    assert len(seen) == len(set(seen))
    assert kept <= set(seen)


def test_replicas_spend_a_table_of_sql_once(place, tmp_path):
    source = SqlSource(tmp_path / "wallet.db")
    source.add([(f"t{at}", str(2**200)) for at in range(100)])
    spent, wrong, turn = set(), [], threading.Lock()

    def replica():
        try:
            wallet = opened(place).tokens("w", source=source, page=30, **BRIEF, timeout=50)
            while True:
                with wallet.select(7 * 2**200) as selection:
                    mine = set(ids(selection))
                    with turn:
                        assert not spent & mine and len(mine) == 7
                        spent.update(mine)
                    selection.spent()
                source.spend(mine)
        except errors.Insufficient:
            pass
        except BaseException as error:
            wrong.append(error)

    threads = [threading.Thread(target=replica) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []
    assert len(spent) == 98 and len(list(walk(source, 10))) == 2
