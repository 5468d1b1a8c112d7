"""Public einsum instances: all are planned, the small ones evaluated and differentiated against oracles."""

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import opt_einsum
import pytest

import example_programs
import tenferro_runtime as tr
from tenferro_einsum import contract_path
from workspace import ROOT

example = example_programs.load("einsum_instances")
INSTANCES = {path.stem: example.Instance.load(path) for path in sorted(example.DATA.glob("*.json"))}
SMALL = [name for name, instance in INSTANCES.items() if instance.log10_flops < 8.6]


def test_there_are_instances_of_every_kind() -> None:
    assert {name.split("_")[0] for name in INSTANCES} == {"bin", "nary", "lm", "gm", "str", "tensornetwork"}
    assert len(SMALL) >= 10
    assert max(len(instance.shapes) for instance in INSTANCES.values()) == 415


def test_source_and_licence_of_the_data_are_named() -> None:
    text = (ROOT / "data" / "einsum" / "SOURCE.md").read_text()
    assert "MIT" in text and "tenferro-benchmark" in text
    assert all(f"`{name.split('_')[0]}_`" in text for name in INSTANCES)


@pytest.mark.parametrize("name", INSTANCES)
def test_every_instance_is_planned_along_its_path(name: str) -> None:
    instance = INSTANCES[name]
    contraction = instance.plan()
    assert contraction.path == instance.path
    inputs, output = instance.equation.split("->")
    assert [len(term) for term in inputs.split(",")] == [len(shape) for shape in instance.shapes]
    assert len(contraction.contraction.output) == len(output)


@pytest.mark.parametrize("name", INSTANCES)
def test_every_instance_finds_a_path_of_its_own(name: str) -> None:
    instance = INSTANCES[name]
    specs = [tr.Spec(shape, tr.float64) for shape in instance.shapes]
    path, _ = contract_path(instance.equation, *specs, optimize="greedy")
    left = len(specs)
    for step in path:
        assert len(set(step)) == len(step) and all(0 <= i < left for i in step)
        left -= len(step) - 1
    assert left == 1


@pytest.mark.parametrize("name", SMALL)
def test_small_instances_agree_with_their_oracles(name: str) -> None:
    result = example.examine(INSTANCES[name], 20.0, 0)
    assert result.skipped == ""
    assert result.value < 1e-10  # opt_einsum along another path
    assert result.slope < 1e-6  # a central difference
    assert result.euler < 1e-10  # linear in every operand
    assert result.forward > 0 and result.gradient > 0 and result.numpy > 0


def test_numbers_are_such_that_the_result_is_near_one() -> None:
    instance = INSTANCES["str_matrix_chain_multiplication_100"]
    out = np.asarray(instance.plan()(*[tr.asarray(x) for x in instance.operands(0)]))
    assert 1e-2 < out.min() and out.max() < 1e2


def main(*options: str) -> int:
    return int(example.main(list(options)))


def test_the_table_lists_instances_with_times_and_checks(capsys: pytest.CaptureFixture[str]) -> None:
    assert main("nary_", "bin_matmul_256") == 0
    lines = [line for line in capsys.readouterr().out.splitlines() if "_" in line and "opt_einsum" not in line]
    assert [line.split()[1] for line in lines] == ["nary_matmul_chain_64", "bin_matmul_256"]
    assert all(line.split()[-2] == "ok" for line in lines)


def test_what_would_take_long_is_skipped_and_said(capsys: pytest.CaptureFixture[str]) -> None:
    assert main("gm_", "--seconds", "0.001") == 0
    assert "skipped: over 0.001 s" in capsys.readouterr().out


def test_a_long_gradient_is_skipped_and_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(example, "GRADIENT", 1e9)
    result = example.examine(INSTANCES["nary_matmul_chain_64"], 1.0, 0)
    assert result.value < 1e-10 and math.isnan(result.gradient)
    assert result.verdict == "gradient skipped: over 1 s"


def test_a_wrong_value_fails(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    right = opt_einsum.contract
    monkeypatch.setattr(example.opt_einsum, "contract", lambda *args, **kwargs: right(*args, **kwargs) * (1 + 1e-8))
    assert main("nary_") == 1
    assert "FAILED" in capsys.readouterr().out


def test_a_wrong_gradient_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    right = example.value_and_grad

    def wrong(*args: Any, **kwargs: Any) -> Any:
        def evaluate(*xs: Any) -> Any:
            value, gradient = right(*args, **kwargs)(*xs)
            return value, (gradient[0] * 1.001, *gradient[1:])

        return evaluate

    monkeypatch.setattr(example, "value_and_grad", wrong)
    result = example.examine(INSTANCES["nary_matmul_chain_64"], 20.0, 0)
    assert result.slope > 1e-6 and result.euler > 1e-10 and not result.passed


@pytest.mark.parametrize(
    ("options", "text"),
    [
        (["nothing_"], "no instance is named 'nothing_'...; there are nary_matmul_chain_64, bin_"),
        (["--data", "."], "is not an einsum instance"),
        (["--data", "nowhere"], "there are no instances in 'nowhere'; give a folder of .json files"),
        (["--seconds", "0"], "--seconds is 0.0; give a positive number"),
        (["--seed", "-1"], "--seed is -1; give an integer of at least 0"),
        (["--threads", "0"], "--threads is 0; give an integer of at least 1"),
    ],
)
def test_bad_options(
    options: list[str], text: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "broken.json").write_text(json.dumps({"name": "broken"}))
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SystemExit) as stop:
        main(*options)
    assert stop.value.code == 2
    assert text in capsys.readouterr().err
