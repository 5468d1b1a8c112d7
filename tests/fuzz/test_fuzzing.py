"""The fuzz campaign finds what is planted, makes it small, tells it apart, and finds nothing where nothing is."""

import json
import math
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from fuzzing import __main__ as main_module
from fuzzing import texts
from fuzzing.area import Mismatch
from fuzzing.areas import AREAS, PLANTED
from fuzzing.campaign import Campaign, replay
from fuzzing.comparing import bitwise, near
from fuzzing.layouts import strided
from fuzzing.process import Gone
from fuzzing.reducing import signature
from fuzzing.worker import failure, rng_of

SUPPORT = Path(__file__).parents[1] / "support"

SMOKE = {
    "singles": 120,
    "programs": 3,
    "sizes": 4,
    "gradients": 3,
    "indexing": 40,
    "layouts": 150,
    "interchange": 40,
    "files": 2,
    "einsum": 25,
    "processes": 1,
    "plug-ins": 20,
    "views": 30,
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


def test_a_batch_goes_on_after_a_crash(campaign):
    """All cases of a batch are tried, however many processes die in it."""
    found = campaign("exit", cases=150)
    assert found.counts == {"planted": 150} and found.alike.total() > 1


def test_one_batch_runs_on_several_machines(campaign, monkeypatch, tmp_path):
    """Rounds: each batch has one seed and runs on every machine; `resume` goes on with the next seed."""
    area = PLANTED["planted"]
    monkeypatch.setattr(area, "rounds", (("quick", "without"),))
    monkeypatch.setattr(area, "group", 8)
    monkeypatch.setenv("PLANTED", "none")
    made = Campaign([area], 120.0, 11, folder=tmp_path, cases=24)
    made.run()
    assert made.more == {"planted, quick: cases": 16, "planted, without: cases": 8}
    assert made.seed == 13 and made.counts == {"planted": 24}
    again = Campaign([area], 120.0, 0, folder=tmp_path, cases=4)
    again.resume()
    again.run()
    assert again.seed == 14 and again.counts == {"planted": 28}


REPORT = """==7==ERROR: AddressSanitizer: heap-buffer-overflow on address 0x60
    #0 0x7f in sum_rows /somewhere/native/kernels/reductions.simd.c:31
SUMMARY: AddressSanitizer: heap-buffer-overflow /somewhere/native/kernels/reductions.simd.c:31 in sum_rows
"""


def test_a_report_of_a_sanitizer_names_its_line():
    place = "AddressSanitizer: heap-buffer-overflow reductions.simd.c:31 in sum_rows"
    assert Gone("Exit 1", REPORT, 3).failure["place"] == place


def test_checked_processes_are_told_so(monkeypatch):
    """`--checked` sets the variable that the library reads in processes."""
    monkeypatch.setattr(sys, "argv", ["fuzz", "--checked", "--area", "planted", "--cases", "0"])
    monkeypatch.setattr(main_module, "AREAS", PLANTED)
    monkeypatch.setenv("TENFERRO_CHECKED", "0")
    assert main_module.main() == 0 and os.environ["TENFERRO_CHECKED"] == "1"


def test_a_strided_operand_that_is_read_wrongly_is_found(monkeypatch):
    import tenferro_runtime as tr

    right = tr.flip
    monkeypatch.setattr(tr, "flip", lambda x: right(x) + (x.numpy().strides[-1] < 0))
    operand = {"dtype": "float64", "shape": [3, 4], "steps": [1, -1], "order": [0, 1], "seed": 3}
    assert failure(AREAS["layouts"], {"text": "tr.flip(a)", "operands": [operand | {"steps": [1, 0]}]}) is None
    found = failure(AREAS["layouts"], {"text": "tr.flip(a)", "operands": [operand]})
    assert "12 of 12 elements" in found["text"]


@pytest.mark.parametrize("steps, order", [([1, 0], [0, 1]), ([-2, 3], [1, 0]), ([0, -1], [1, 0])])
def test_operands_have_their_strides(steps, order):
    x = strided({"dtype": "float64", "shape": [3, 4], "steps": steps, "order": order, "seed": 3})
    empty = strided({"dtype": "float64", "shape": [3, 0], "steps": steps, "order": order, "seed": 3})
    assert x.shape == (3, 4) and empty.shape == (3, 0)
    assert [n and n // abs(n) for n in x.strides] == [n and n // abs(n) for n in steps]
    assert (abs(x.strides[0]) < abs(x.strides[1])) == (order == [1, 0] or 0 == steps[0])


def _sized(text, sizes, **more):
    """A case of the area `sizes` of one line, with two matrices and an integer."""
    inputs = [{"name": f"v{k}", "kind": "data", "shape": ["n", "m"], "seed": 5 + k} for k in range(2)]
    inputs.append({"name": "v2", "kind": "below n", "shape": [], "seed": 1})
    line = {"name": "v3", "text": text, "after": "", "shape": ["n", "m"], "kind": "f"}
    case = {"inputs": inputs, "lines": [line], "outputs": ["v3"], "way": "value", "dtype": "float64", "extra": ""}
    return case | {"sizes": sizes, "forms": ["compiled", "deterministic", "donated"]} | more


LOOP = "tr.fori_loop(0, 4, lambda k, c: c.at[k % c.shape[0]].add(v1[v2] * 0.5), v0)"


@pytest.mark.parametrize("way", ["value", "grad", "vjp", "jvp", "lanes"])
def test_one_function_runs_at_many_sizes(way):
    area = AREAS["sizes"]
    found = failure(area, _sized(LOOP, [[4, 3], [1, 3], [2, 2], [4, 0]], way=way))
    assert not found, found["text"]


@pytest.mark.parametrize("extra", ["xla", "library"])
def test_one_function_runs_elsewhere_at_many_sizes(extra):
    found = failure(AREAS["sizes"], _sized(LOOP, [[4, 3], [2, 2]], extra=extra, forms=[]))
    assert not found, found["text"]


def _in_place_of_compile(monkeypatch, wrong):
    """Have `wrong` called with each compiled function and its arguments."""
    import tenferro_runtime as tr

    right = tr.compile

    def compile_(f, **options):
        made = right(f, **options)
        return lambda *args: wrong(made, *args)

    monkeypatch.setattr(tr, "compile", compile_)


def test_a_result_that_is_wrong_at_one_size_is_found(monkeypatch):
    def wrong(f, x, *rest):
        return tuple([y * (1 + 1e-7 * (x.shape[0] == 1)) for y in f(x, *rest)])

    _in_place_of_compile(monkeypatch, wrong)
    assert failure(AREAS["sizes"], _sized(LOOP, [[4, 3], [2, 2]], forms=["compiled"])) is None
    found = failure(AREAS["sizes"], _sized(LOOP, [[4, 3], [1, 3]], forms=["compiled"]))
    assert "at `[1, 3]`" in found["text"] and "3 of 3 elements" in found["text"]


def test_a_write_beside_an_argument_is_found(monkeypatch):
    import ctypes

    def wrong(f, x, *rest):
        out = f(x, *rest)
        if x.shape[0] == 1:
            ctypes.memset(x.numpy().ctypes.data + x.numpy().nbytes + 16, 0, 1)
        return out

    _in_place_of_compile(monkeypatch, wrong)
    found = failure(AREAS["sizes"], _sized(LOOP, [[4, 3], [1, 3]], forms=["compiled"]))
    assert "an argument of 3 elements, or what is around it, was written at 5" in found["text"]


@pytest.mark.parametrize(
    "error, text", [(IndexError, "is no error of this library"), (None, "expected AxisError .*, seen a value")]
)
def test_a_refusal_is_that_of_operation_by_operation(monkeypatch, error, text):
    """Of the first form where that is refused; an error of NumPy is one of this library in no form."""
    seen = []

    def wrong(f, x, *rest):
        seen.append(x)
        if error is not None and not x.shape[0]:
            raise error("out of bounds")
        return f(x, *rest) if len(seen) < 3 else (x * 1.0,)

    _in_place_of_compile(monkeypatch, wrong)
    case = _sized("tr.sort(v0)[0]", [[0, 3]], forms=["compiled"])
    case["lines"][0]["shape"] = ["m"]
    assert re.search(text, failure(AREAS["sizes"], case)["text"])


def test_a_program_of_many_sizes_is_reduced(monkeypatch):
    """Shrinking a long program with a wrong function leaves its call, at one size and in one form."""
    import tenferro_runtime as tr

    right = tr.flip
    monkeypatch.setattr(tr, "flip", lambda x, axis: right(x, axis=axis) * (1 + 1e-6 * isinstance(x, tr.TracedTensor)))
    area = AREAS["sizes"]
    cases = (area.draw(rng_of(6, number)) for number in range(200))
    case = next(c for c in cases if any("tr.flip(v" in x["text"] for x in c["lines"]) and failure(area, c))
    smaller = case
    while smaller is not None:
        case, smaller = smaller, next((c for c in area.shrink(smaller) if failure(area, c)), None)
    assert len(case["lines"]) == 1 and len(case["sizes"]) == 1


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


def test_operands_with_an_empty_axis_are_small_beside_it():
    """No choice of steps would make such an operand smaller, so that drawing it must not try."""
    for number in range(16_300, 16_400):
        for operand in AREAS["layouts"].draw(rng_of(970744006, number))["operands"]:
            assert math.prod([max(1, n) for n in operand["shape"]]) <= 20_000
