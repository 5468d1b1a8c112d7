"""Whole calls with machine code for AVX2, on a processor that has more: some tests again, in a process of their own."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tenferro_cpu.native import available

AGAIN = (
    "einsum/test_einsum_networks.py", "einsum/test_einsum_graphs.py", "native/test_contraction_entry.py",
    "native/test_contraction_chains.py", "native/test_native_combined.py", "native/test_native_planned.py",
    "native/test_native_eager_reduce.py",
)  # fmt: skip


@pytest.mark.skipif(not available(), reason="native kernels are off")
def test_the_same_at_the_level_of_avx2():
    from tenferro_cpu.native import engine
    from tenferro_cpu.native.codegen.machine._jit import LEVEL_VARIABLE

    if engine().host.level != "avx512":
        pytest.skip("the processor has no wider vectors")
    tests = [str(Path("tests", name)) for name in AGAIN]
    options = ("-q", "-x", "-n", "0", "-p", "no:cacheprovider", "-m", "not slow")
    command = [sys.executable, "-m", "pytest", *options, *tests]
    environment = os.environ | {LEVEL_VARIABLE: "avx2"}
    done = subprocess.run(command, cwd=Path(__file__).parents[2], env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout[-4000:]
    assert " passed" in done.stdout


@pytest.mark.skipif(not available(), reason="native kernels are off")
def test_float16_is_converted_where_there_is_no_instruction():
    from tenferro_cpu.native.codegen.machine._jit import LEVEL_VARIABLE

    chosen = ("-k", "rounding_to_narrow or conversions_of_every", "tests/agreement/test_narrow_floats.py")
    command = [sys.executable, "-m", "pytest", "-q", "-x", "-n", "0", "-p", "no:cacheprovider", *chosen]
    environment = os.environ | {LEVEL_VARIABLE: "generic"}
    done = subprocess.run(command, cwd=Path(__file__).parents[2], env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout[-4000:]
    assert " passed" in done.stdout
