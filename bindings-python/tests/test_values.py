import math

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
    ],
)
def test_what_is_refused_is_named(value, message):
    with pytest.raises(errors.InvalidArgument, match=message):
        trial.echo(value)
