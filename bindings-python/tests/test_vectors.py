"""The transcripts that all languages replay."""

import json
from pathlib import Path

import pytest

from leasehold import errors
from leasehold._leasehold import trial

FOLDER = Path(__file__).parent.parent.parent / "tests" / "vectors"
VECTORS = sorted(FOLDER.glob("*.json"))


def test_there_are_some():
    assert VECTORS


@pytest.mark.parametrize("path", VECTORS, ids=lambda it: it.stem)
def test_a_transcript(path):
    vector = json.loads(path.read_text())
    assert trial.replay(vector["steps"]) == vector["answers"]


def test_what_is_no_transcript():
    with pytest.raises(errors.InvalidArgument):
        trial.replay([{"wall": "1"}])
