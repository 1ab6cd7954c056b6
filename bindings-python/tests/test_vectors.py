"""The transcripts that all languages replay."""

import json
from pathlib import Path

import pytest

from leasehold import errors
from leasehold._leasehold import trial

FOLDER = Path(__file__).parent.parent.parent / "tests" / "vectors"
VECTORS = sorted(FOLDER.glob("*.json"))
OF_LIMITS = sorted(FOLDER.glob("limits/*.json"))
OF_TOKENS = sorted(FOLDER.glob("tokens/*.json"))


def test_there_are_some():
    assert VECTORS and OF_LIMITS and OF_TOKENS


@pytest.mark.parametrize("path", VECTORS, ids=lambda it: it.stem)
def test_a_transcript(path):
    vector = json.loads(path.read_text())
    assert trial.replay(vector["steps"]) == vector["answers"]


@pytest.mark.parametrize("path", OF_LIMITS, ids=lambda it: it.stem)
def test_a_transcript_of_limits(path):
    vector = json.loads(path.read_text())
    assert trial.replay_limits(vector["steps"]) == vector["answers"]


@pytest.mark.parametrize("path", OF_TOKENS, ids=lambda it: it.stem)
def test_a_transcript_of_selections(path):
    vector = json.loads(path.read_text())
    assert trial.replay_tokens(vector["steps"]) == vector["answers"]


@pytest.mark.parametrize("replay", [trial.replay, trial.replay_limits, trial.replay_tokens])
def test_what_is_no_transcript(replay):
    with pytest.raises(errors.InvalidArgument):
        replay([{"wall": "1"}])
