"""The fuzz campaign finds what is planted, makes it small, tells it apart, and finds nothing where nothing is."""

import json
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from fuzzing import texts
from fuzzing.area import Mismatch
from fuzzing.areas import AREAS, PLANTED
from fuzzing.campaign import Campaign, replay
from fuzzing.comparing import bitwise, near
from fuzzing.reducing import signature
from fuzzing.worker import failure, rng_of

SUPPORT = Path(__file__).parents[1] / "support"

SMOKE = {
    "singles": 250,
    "programs": 6,
    "gradients": 6,
    "indexing": 80,
    "interchange": 80,
    "files": 3,
    "einsum": 50,
    "processes": 1,
    "plug-ins": 40,
    "objects": 0,  # a crash would end the tests; theirs run in children
}
"""Cases of a smoke run; a few seconds in all."""


@pytest.mark.parametrize("name", SMOKE)
def test_an_area_runs(name):
    """Some cases of every area, in this process; each is plain data and prints as a program that compiles."""
    area = AREAS[name]
    for number in range(SMOKE[name]):
        case = area.draw(rng_of(1, number))
        assert json.loads(json.dumps(case)) == case
        found = failure(area, case)
        assert not found, f"{found['text']}\n{area.code(case)}"
        compile(area.code(case), "case", "exec")


def test_every_area_has_a_smoke_run():
    assert set(SMOKE) == set(AREAS)


@pytest.mark.parametrize("name", SMOKE)
def test_cases_follow_from_the_seed(name):
    area = AREAS[name]
    assert area.draw(rng_of(3, 5)) == area.draw(rng_of(3, 5)) != area.draw(rng_of(3, 6))


@pytest.fixture
def campaign(monkeypatch, tmp_path):
    """A short campaign over the area of planted errors of one kind."""

    def run(kind: str, cases: int = 40) -> Campaign:
        monkeypatch.setenv("PLANTED", kind)
        made = Campaign([PLANTED["planted"]], 120.0, 11, folder=tmp_path, cases=cases, reduction=30.0)
        made.run()
        return made

    return run


EXPECTED = {"wrong": "Mismatch", "error": "KeyError", "crash": "Crash SIGSEGV", "exit": "Exit 3", "hang": "Hang"}


@pytest.mark.parametrize("kind", EXPECTED)
def test_a_planted_failure_is_found_and_reduced(kind, campaign, tmp_path, capsys):
    found = campaign(kind)
    (finding,) = found.findings.values()
    assert finding.failure["kind"] == EXPECTED[kind]
    assert finding.cases == [{"kind": kind, "numbers": [50]}] and finding.reproduced
    assert "print([50])" in capsys.readouterr().out
    (file,) = tmp_path.glob("*.json")
    assert replay(file, PLANTED)["kind"] == EXPECTED[kind]
    document = json.loads(file.read_text())
    document["cases"] = [{"kind": kind, "numbers": [1]}]
    file.write_text(json.dumps(document))
    assert replay(file, PLANTED) is None


def test_what_a_failure_remembers_is_found_and_reduced(campaign):
    """The failing case alone passes: the cases before it that matter are kept, and no other."""
    (finding,) = campaign("remembered").findings.values()
    assert len(finding.cases) <= 2 and finding.reproduced
    assert 7 in finding.cases[0]["numbers"] and 50 in finding.cases[-1]["numbers"]


def test_a_campaign_without_failures_finds_nothing(campaign):
    found = campaign("wrong", cases=1)
    assert not found.findings and found.counts == {"planted": 1}


def test_one_defect_is_one_finding():
    texts = ("`eager: f(a[3])`: 2 of 7 elements, first at (0, 1): expected np.float32(1.5), seen nan",
             "`xla: f(a[1])`: 1 of 3 elements, first at (2,): expected np.float64(-2e-05), seen np.float64(3.0)",
             "`eager: f(a)`: expected int64[3], seen int32[3]")  # fmt: skip
    first, second, third = ({"kind": "Mismatch", "text": t, "place": ""} for t in texts)
    assert signature("x", "f", first) == signature("x", "f", second) != signature("x", "f", third)
    assert signature("x", "f", first) != signature("x", "g", first)


def test_a_wrong_kernel_is_found(monkeypatch):
    """A kernel that is off in one element of strided operands only."""
    import tenferro_runtime as tr

    right = tr.sin
    monkeypatch.setattr(tr, "sin", lambda x: right(x) + (x.ndim == 2 and x.shape[0] == 3))
    texts.pair.cache_clear()
    area = AREAS["singles"]
    found = [failure(area, case) for case in _sines(area)]
    texts.pair.cache_clear()
    assert any(f and f["kind"] == "Mismatch" for f in found)


def _sines(area):
    cases = (area.draw(rng_of(1, number)) for number in range(20_000))
    return [c | {"way": "eager"} for c in cases if c["text"] == "tr.sin(a)"]


def test_a_wrong_gradient_is_found(monkeypatch):
    import tenferro_ad

    right = tenferro_ad.grad
    monkeypatch.setattr(tenferro_ad, "grad", lambda *a: lambda *xs: tuple(1.001 * g for g in right(*a)(*xs)))
    area = AREAS["gradients"]
    found = [failure(area, area.draw(rng_of(1, number))) for number in range(5)]
    assert any(f and "jvp" in f["text"] for f in found)


def test_the_command_ends_at_a_signal(tmp_path):
    """Interrupted, it ends its processes and sums up."""
    command = [sys.executable, "-m", "fuzzing", "--area", "einsum", "--minutes", "5", "--seed", "1"]
    child = subprocess.Popen([*command, "--out", str(tmp_path)], cwd=SUPPORT, stdout=subprocess.PIPE, text=True)
    assert child.stdout.readline().startswith("seed 1, areas einsum")
    time.sleep(0.5)
    child.send_signal(signal.SIGINT)
    out, _ = child.communicate(timeout=120)
    assert "0 findings, seed 1" in out and child.returncode == 0


def test_numbers_are_compared_to_the_bit_and_to_the_tolerance():
    import numpy as np

    import tenferro_runtime as tr

    x = np.asarray([1.0, np.nan, -0.0])
    near(tr.asarray(x), x, "same")
    bitwise(tr.asarray(x), tr.asarray(x), "same")
    for wrong in (x * (1 + 1e-10), np.asarray([1.0, 0.0, -0.0]), x.astype("float32"), x[:2]):
        with pytest.raises(Mismatch):
            near(tr.asarray(wrong), x, "other")
    with pytest.raises(Mismatch, match="bits differ at 1 of 3 elements, first at \\(2,\\)|bits differ"):
        bitwise(tr.asarray(np.asarray([1.0, np.nan, 0.0])), tr.asarray(x), "signed zero")


def test_a_wrong_program_is_found_and_reduced(monkeypatch):
    """One wrong function in long programs; shrinking leaves little more than its call."""
    import tenferro_runtime as tr

    right = tr.tanh
    monkeypatch.setattr(tr, "tanh", lambda x: right(x) * (1 + 1e-7))
    area = AREAS["programs"]
    cases = (area.draw(rng_of(4, number)) | {"way": "eager"} for number in range(30))
    case = next(c for c in cases if failure(area, c))
    smaller = case
    while smaller is not None:
        case, smaller = smaller, next((c for c in area.shrink(smaller) if failure(area, c)), None)
    assert len(case["lines"]) <= 3 and any("tanh" in text for _, text in case["lines"])
    assert "tanh" in area.subject(case)
