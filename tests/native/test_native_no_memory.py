"""The n-th allocation of a call fails, for every n: it raises `MemoryError`, leaks nothing, and works afterwards."""

import subprocess
import sys

import pytest

from tenferro_cpu.native import available

pytestmark = pytest.mark.skipif(not available(), reason="native kernels are off")

CODE = """
import sys
import _testcapi
import numpy as np
from tenferro_cpu.native._extension import compiled
from tenferro_cpu.native.eager import _eager
from tenferro_cpu.native.kernels._elementwise import Elementwise
from tenferro_cpu.native.kernels._forms import Access
from tenferro_cpu.native.kernels._reduce import Reduced
from tenferro_tensor import Spec, catalog
from tenferro_cpu.native.kernels._fused_entry import Rows, entry
from tenferro_tensor.reference import kernels

def absent(*args):
    raise AssertionError("left to the fallback")

F8 = np.dtype("f8")
SPEC = Spec((4,), F8)
x, y = np.arange(12.0).reshape(3, 4), np.arange(4.0)
reverse = y[::-1]
tall = np.ones((2000, 40))
add = _eager.entries(kernels(np, absent))[catalog.add]((SPEC, SPEC), (SPEC,))
loop = compiled.ElementwiseEntry(0, (F8,) * 3, absent, absent, loop=np.add)
product = Elementwise(catalog.mul.op(), (F8, F8))
product(x.T[:, :1] + x.T, x.T)
product(x, reverse)
summed = Reduced("sum", F8)
rest = summed.rows(Access.UNIT)
rows = Rows(trailing=1, combined=True)
combined = entry(rest, (F8,), F8, rows, absent, cost=summed.cost, rest=rest, partible=True)
cube = np.ones((3, 5, 4))
summed(cube, axes=(1,))
(planned,) = [f for f in summed._by_layout.values() if f is not None]
assert isinstance(planned, compiled.PlannedReduction)
rowed, strided = product.entry(absent), product.strided(absent)
CALLS = {
    "elementwise": lambda: add(x, x),
    "number": lambda: add(x, 2.5),
    "loop": lambda: loop(y, y),
    "long": lambda: add(tall, tall),
    "rowed": lambda: rowed(x, x),
    "strided": lambda: strided(x, reverse),
    "planned": lambda: planned(cube),
    "combined": lambda: combined(tall),
    "made": lambda: compiled.ElementwiseEntry(0, (F8,) * 3, absent, absent, loop=np.add)(y, y),
}
EXPECTED = {
    "elementwise": x + x, "number": x + 2.5, "loop": y + y, "long": tall + tall, "rowed": x * x,
    "strided": x * reverse, "planned": cube.sum(1), "combined": tall.sum(0),
    "made": y + y,
}

def attempt(call, n):
    if n is not None:
        _testcapi.set_nomemory(n, n + 1)
    try:
        return call()
    except MemoryError:
        return None
    finally:
        if n is not None:
            _testcapi.remove_mem_hooks()

def good(found, wanted):
    return np.array_equal(found, wanted)

for name, call in CALLS.items():
    failing = 0
    for n in range(60):
        found = attempt(call, n)
        failing = n + 1 if found is None else failing
        assert found is None or good(found, EXPECTED[name]), (name, n)
    assert failing, name
    assert good(call(), EXPECTED[name]), name
    before, held = sys.getallocatedblocks(), sys.getrefcount(F8)
    for _ in range(20):
        for n in range(failing + 1):  # the last one does not fail
            attempt(call, n)
    assert sys.getallocatedblocks() - before < 20, (name, sys.getallocatedblocks() - before)
    assert abs(sys.getrefcount(F8) - held) < 20, name
print("done")
"""


def test_every_allocation_may_fail() -> None:
    pytest.importorskip("_testcapi")
    done = subprocess.run([sys.executable, "-c", CODE], capture_output=True, text=True, timeout=300, check=False)
    assert done.stdout == "done\n", done.stderr
