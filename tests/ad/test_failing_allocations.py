"""Where memory runs out, recording and the backward pass raise `MemoryError`, and neither crash nor leak."""

import subprocess
import sys
from pathlib import Path

import pytest

from tenferro_tensor import calls

PROGRAM = Path(__file__).parents[1] / "support" / "failing_allocations.py"


@pytest.mark.skipif(calls.Node.__module__ != "tenferro_tensor._accelerated", reason="there is no C extension")
def test_every_allocation_may_fail() -> None:
    pytest.importorskip("_testcapi", reason="this Python cannot make allocations fail")
    found = subprocess.run(
        [sys.executable, "-X", "faulthandler", PROGRAM], capture_output=True, text=True, timeout=300, check=False
    )
    assert found.returncode == 0, found.stderr[-2000:]
    counts = [int(line.rpartition(" ")[2]) for line in found.stdout.splitlines()]
    assert len(counts) == 10 and min(counts) >= 2, found.stdout
