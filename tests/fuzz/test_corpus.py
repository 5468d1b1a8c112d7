"""Past failures stay mended: every case of the corpus is replayed, as the campaign found it."""

import json
from pathlib import Path

import pytest

from fuzzing.areas import AREAS
from fuzzing.campaign import replay

CORPUS = Path(__file__).parent / "corpus"
FILES = sorted(CORPUS.glob("*.json"))


@pytest.mark.parametrize("path", FILES, ids=[f.stem for f in FILES])
def test_a_past_failure_passes(path):
    failure = replay(path, AREAS)
    assert failure is None, f"{failure['kind']}: {failure['text']}"


@pytest.mark.parametrize("path", FILES, ids=[f.stem for f in FILES])
def test_a_past_failure_says_what_it_showed(path):
    comment = json.loads(path.read_text())["comment"]
    assert 10 < len(comment) < 200 and "\n" not in comment
