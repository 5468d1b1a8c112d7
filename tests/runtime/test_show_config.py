"""`show_config` names what computes here, and a missing compiler is told once."""

import logging
import subprocess
import sys

import numpy as np
import pytest

import tenferro_runtime as tr
from tenferro_cpu.native.codegen.machine import _jit


def test_what_is_installed_is_named() -> None:
    found = tr.show_config("dict")
    assert found["versions"]["numpy"] == np.__version__
    assert found["versions"]["tenferro-tensor-core"] == "0.1.0"
    assert found["calls"] in ("in C", "in Python")
    assert {"blas", "cache", "cores", "extension", "level", "native", "team", "threads"} <= set(
        found["backends"]["cpu"]
    )
    assert found["backends"]["cuda"] == "not in use" or isinstance(found["backends"]["cuda"], dict)


def test_it_prints_a_line_for_each_value(capsys: pytest.CaptureFixture[str]) -> None:
    tr.show_config()
    lines = capsys.readouterr().out.splitlines()
    assert f"  numpy: {np.__version__}" in lines
    assert any(line.startswith("    native: ") for line in lines)


WITHOUT = """
import sys
sys.modules["llvmlite"] = None
import importlib.util
found = importlib.util.find_spec
importlib.util.find_spec = lambda name, *rest: None if name == "llvmlite" else found(name, *rest)
import tenferro_runtime as tr
f = tr.compile(lambda x: tr.exp(x) * x + 1)
for n in (3, 4):
    f(tr.ones((n,)))
tr.compile(lambda x: tr.sin(x) * x + 1)(tr.ones((3,)))
print(tr.show_config("dict")["backends"]["cpu"]["native"])
"""


def test_a_missing_compiler_is_told_once() -> None:
    result = subprocess.run([sys.executable, "-c", WITHOUT], capture_output=True, text=True, check=True)
    assert result.stdout == "llvmlite is not installed: pip install llvmlite\n"
    (line,) = result.stderr.splitlines()
    assert line == (
        "compiled programs run step by step on NumPy kernels, which is several times slower than machine code: "
        "llvmlite is not installed: pip install llvmlite"
    )


def test_what_the_user_turned_off_is_not_told(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(_jit, "unavailable", lambda: f"{_jit.JIT_VARIABLE}=0 turns them off")
    with caplog.at_level(logging.INFO, "tenferro"):
        assert not _jit.compiles_programs.__wrapped__()
    assert caplog.records == []
