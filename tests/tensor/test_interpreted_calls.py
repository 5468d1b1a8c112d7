"""Without the compiled twin, values and calls mean the same: tests of them run again on the functions in Python."""

import subprocess
import sys
from pathlib import Path

TESTS = Path(__file__).parents[1]
AGAIN = (
    "tensor/test_core_tensor.py", "tensor/test_core_ops.py", "runtime/test_short_entry.py", "ad/test_ad_shortcuts.py",
    "agreement/test_direct_forms.py", "assignment/test_assignment.py", "assignment/test_views.py",
    "ad/test_cotangents_of_slices.py",
)  # fmt: skip

CODE = """
import sys
sys.modules["tenferro_tensor._accelerated"] = None
import pytest
from tenferro_tensor import Tensor, calls
assert calls.OpBase.__module__ == "tenferro_tensor._interpreted" and issubclass(Tensor, calls.TensorBase)
sys.exit(pytest.main(["-q", "-x", "-p", "no:cacheprovider", *sys.argv[1:]]))
"""


def test_the_interpreted_twin_passes_the_same_tests() -> None:
    files = [str(TESTS / name) for name in AGAIN]
    done = subprocess.run([sys.executable, "-c", CODE, *files], capture_output=True, text=True, cwd=TESTS.parent)
    assert done.returncode == 0, done.stdout[-4000:]
