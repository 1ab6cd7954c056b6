import math

import pytest

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
