import math
from collections import UserList, UserString, deque
from collections.abc import Sequence

import pytest

import leasehold
from leasehold import errors
from leasehold._leasehold import trial

BIG = 2**127


@pytest.mark.parametrize(
    "value",
    [None, True, False, 0, -1, 2**64 + 1000, BIG - 1, -BIG, 0.5, -0.0, math.inf, "", "zkž\U0001f512", [], {}, [1, [2.5, None]], {"b": 1, "a": {"c": [True]}}],
)
def test_there_and_back(value):
    back = trial.echo(value)
    assert (back, type(back), repr(back)) == (value, type(value), repr(value))


def test_kinds_that_come_back_simpler():
    assert trial.echo((1, "a")) == [1, "a"]
    assert math.isnan(trial.echo(math.nan))
    assert list(trial.echo({"b": 1, "a": 2})) == ["b", "a"]


class Letters(Sequence):
    """Says that it has fewer than there are for who asks until there are no more."""

    def __len__(self):
        return 3

    def __getitem__(self, at):
        return "abcdef"[at]


class Sour(Letters):
    def __getitem__(self, at):
        raise KeyError("no more")


# The types promise any sequence, and lists and tuples alone were taken.
def test_a_sequence_is_read_as_a_list(memory):
    assert trial.echo({"a": deque([1, UserList(["b", (2,)])])}) == {"a": [1, ["b", [2]]]}
    assert trial.echo(Letters()) == ["a", "b", "c"]
    with leasehold.open(memory.url) as lh:
        assert lh.pool("q", slots=deque(["a"])).list() == ["a"]
        with lh.lock(deque(["b", "a"])).acquire() as locked:
            assert locked.names == ["b", "a"]
        pages = lh.tokens("w", source=lambda ask: {"tokens": deque([{"id": "a", "amount": 1}])})
        with pages.select(1) as selection:
            assert selection.sum == 1
    leasehold.open_quorum(deque([memory.url])).close()


class Wei(int):
    """Shows itself as ether, and reckons in it."""

    def ether(self, *_):
        return int.__floordiv__(self, 10**18)

    __index__ = __int__ = __rshift__ = __and__ = ether

    def __str__(self):
        return str(self.ether())

    __repr__ = __str__


@pytest.mark.parametrize("amount", [0, 10**18, 2**64 + 7, 2**127 - 1, 2**127, 2**200 + 1])
def test_a_number_of_a_class_that_is_derived_from_int_is_what_it_is(memory, amount):
    if amount < BIG:
        assert trial.echo(Wei(amount)) == amount
    limit = leasehold.open(memory.url).limit("a", max=2**201, kind="lifetime")
    assert limit.increment(Wei(amount))
    assert limit.used() == amount


CYCLE: list = []
CYCLE.append(CYCLE)


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (BIG, r"^value: is an integer of more than 128 bits"),
        ({"limits": [1, {"max": -BIG - 1}]}, r"^value\.limits\[1\]\.max: is an integer"),
        ([b"x"], r"^value\[0\]: is a bytes"),
        ({"a": {1: 2}}, r"^value\.a: is a dict with a key that is a int"),
        ({"a": [{1, 2}]}, r"^value\.a\[0\]: is a set"),
        (["ok", "\ud800"], r"^value\[1\]: is a text that is not valid Unicode"),
        (CYCLE, r"nested too deeply"),
        (object(), r"^value: is a object"),
        (deque([1, b"x"]), r"^value\[1\]: is a bytes"),
        (bytearray(b"x"), r"^value: is a bytearray"),
        (memoryview(b"x"), r"^value: is a memoryview"),
        (range(2**62), r"^value: is a range"),
        ({1: 2}.keys(), r"^value: is a dict_keys"),
        (UserString("x"), r"^value: is a UserString"),
        (Sour(), r"^value: is a Sour that cannot be read: KeyError: 'no more'"),
    ],
)
def test_what_is_refused_is_named(value, message):
    with pytest.raises(errors.InvalidArgument, match=message):
        trial.echo(value)
