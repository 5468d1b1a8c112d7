"""Past failures stay mended: every case of the corpus is replayed, as the campaign found it."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from fuzzing.areas import AREAS
from fuzzing.reducing import Reducer

CORPUS = Path(__file__).parent / "corpus"
FILES = sorted(CORPUS.glob("*.json"))


@pytest.fixture(scope="module")
def reducers() -> Iterator[dict[str, Reducer]]:
    """A process for each way of using machine code; it serves all areas."""
    made = {machine: Reducer(AREAS["singles"], machine, 0.0) for machine in ("with", "without")}
    yield made
    for reducer in made.values():
        reducer.close()


@pytest.mark.parametrize("path", FILES, ids=[f.stem for f in FILES])
def test_a_past_failure_passes(path, reducers):
    document = json.loads(path.read_text())
    reducer, cases = reducers[document["machine"]], document["cases"]
    reducer.area = AREAS[document["area"]]
    failure = reducer.fails(cases, alone=len(cases) > 1)  # several cases show what one leaves behind for the next
    assert failure is None, f"{failure['kind']}: {failure['text']}"


@pytest.mark.parametrize("path", FILES, ids=[f.stem for f in FILES])
def test_a_past_failure_says_what_it_showed(path):
    comment = json.loads(path.read_text())["comment"]
    assert 10 < len(comment) < 200 and "\n" not in comment
