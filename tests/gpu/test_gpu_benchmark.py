"""The benchmark of GPUs runs: all rows on the simulated CuPy give the numbers of CuPy, and without a GPU it says so."""

import importlib.util
import sys
from types import SimpleNamespace

import numpy as np
import pytest

from workspace import ROOT


@pytest.fixture
def benchmark(monkeypatch):
    spec = importlib.util.spec_from_file_location("benchmark_of_gpus", ROOT / "benchmarks" / "gpu.py")
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, spec.name, module)
    monkeypatch.setattr(sys, "path", [*sys.path])
    spec.loader.exec_module(module)

    def run(*options):
        monkeypatch.setattr(sys, "argv", ["gpu.py", *options])
        return module.main()

    return SimpleNamespace(module=module, run=run)


def test_every_row_runs_on_the_simulated_cupy(benchmark, capsys):
    assert benchmark.run("--check", "--simulated") == 0
    assert capsys.readouterr().out.endswith("simulated: 10 rows ran, 0 differ; nothing is measured\n")


def test_rows_that_differ_are_named(benchmark, capsys):
    row = benchmark.module.Row("sums", lambda: np.ones(3), lambda: np.zeros(3), 1)
    assert benchmark.module.tried([row]) == 1
    assert "sums" in capsys.readouterr().out


def test_without_a_gpu_nothing_is_measured(benchmark, capsys, fake_process, monkeypatch):
    monkeypatch.setitem(sys.modules, "cupy", None)
    for options, status in (((), 0), (("--check",), 1)):
        assert benchmark.run(*options) == status
        assert capsys.readouterr().out.startswith("nothing is measured: a cuda device was requested")
