"""The runtime of the documentation works from a distribution with an entry point alone; its page checks it."""

import os
import subprocess
import sys

import pytest

import markdown_blocks
from workspace import ROOT

PAGE = ROOT / "docs" / "device-runtimes.md"


USE = """
import sys
import tenferro_runtime as tr
from tenferro_tensor import available_backends, device_runtime, get_backend

assert "abacus" in available_backends() and "abacus_runtime" not in sys.modules, "nothing is imported before it is used"
x = tr.asarray([1.0, 2.0], device="abacus:1")
print(tr.compile(lambda x: tr.sum(tr.exp(x) * 0 + x))(x).to_device("cpu:0"), get_backend("abacus").name)
assert type(device_runtime()).__module__ == "abacus_runtime"
try:
    tr.asarray([1.0], device="cuda:0")
except Exception as error:
    print(type(error).__name__)
"""


@pytest.mark.parametrize(("configured", "says"), [("abacus", ""), ("cuda", "TENFERRO_ACCELERATOR=cuda")])
def test_a_distribution_brings_runtime_and_backend_by_one_entry_point(tmp_path, configured, says):
    code = markdown_blocks.program(PAGE).partition("from tenferro_ad import grad")[0]
    register = "\ndef register():\n    register_device_runtime('abacus', Abacus, backend=AbacusBackend)\n"
    (tmp_path / "abacus_runtime.py").write_text(code + register)
    info = tmp_path / "abacus_runtime-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: abacus-runtime\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[tenferro.device_runtimes]\nabacus = abacus_runtime:register\n")
    environment = os.environ | {"PYTHONPATH": str(tmp_path)}
    environment.pop("TENFERRO_ACCELERATOR", None)
    if configured:
        environment["TENFERRO_ACCELERATOR"] = configured
    done = subprocess.run([sys.executable, "-c", USE], env=environment, capture_output=True, text=True)
    if says:
        assert "AcceleratorMismatchError" in done.stderr and says in done.stderr
    else:
        first, second = done.stdout.splitlines()
        assert first == "Tensor(3.) abacus", done.stderr
        assert second in ("AcceleratorMismatchError", "BackendUnavailableError")
