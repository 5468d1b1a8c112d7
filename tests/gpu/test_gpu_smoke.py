"""The smoke test of GPUs runs on the simulated CuPy, and fails where a check fails or none runs."""

import sys

import numpy as np
import pytest

import gpu_smoke
from host_kernels import COMPILER

on_host = pytest.mark.skipif(COMPILER is None, reason="there is no g++ to compile rendered kernels with")


@on_host
def test_every_check_passes_on_the_simulated_cupy(tmp_path, capsys):
    report = tmp_path / "folder" / "smoke.md"
    assert gpu_smoke.main(["--simulated", "--report", str(report)]) == 0
    count = len(gpu_smoke.CHECKS)
    assert f"{count} of {count} checks passed; the report is {report}" in capsys.readouterr().out
    text = report.read_text()
    assert text.startswith(f"# GPU smoke test: {count} of {count} checks passed\n")
    assert text.count("| passed |") == count and "numpy==" in text and "## Driver" in text


def wrong(card):
    gpu_smoke._close(card.put(np.ones(3)), np.zeros(3))


def test_a_check_that_fails_is_in_the_report(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(gpu_smoke, "CHECKS", (gpu_smoke._device_is_found, wrong, gpu_smoke._transforms))
    report = tmp_path / "smoke.md"
    assert gpu_smoke.main(["--simulated", "--report", str(report)]) == 1
    assert "2 of 3 checks passed" in capsys.readouterr().out
    assert "## wrong\n\n```\nTraceback" in report.read_text() and "Mismatched elements: 3 / 3" in report.read_text()


def test_without_a_device_nothing_is_tried(tmp_path, fake_process, monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "cupy", None)
    report = tmp_path / "smoke.md"
    assert gpu_smoke.main(["--report", str(report)]) == 1
    assert "0 of 12 checks passed" in capsys.readouterr().out
    assert "CuPy cannot be imported" in report.read_text()
