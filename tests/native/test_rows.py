"""Kernels of one op as loop functions over rows: verified, and their machine code beside their meaning."""

import ctypes
import itertools
from collections.abc import Callable

import numpy as np
import pytest

from native_kernels import values
from tenferro_cpu.native import available, engine
from tenferro_cpu.native.codegen.whole._row import render_row
from tenferro_cpu.native.kernels._forms import Access
from tenferro_cpu.native.kernels._rows import combined_rows, mapped_row, reduced_row, short_rows
from tenferro_tensor.catalog import arithmetic, comparison
from tenferro_tensor.loop_interpreter import interpret
from tenferro_tensor.loop_ir import LoopFunction, verify
from tenferro_tensor_core import evaluate

pytestmark = pytest.mark.skipif(not available(), reason="native kernels are off")

ROW = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int64, ctypes.c_void_p, ctypes.c_int64, ctypes.c_void_p)
DTYPES = ("float64", "complex64", "int8", "bool")
REDUCTIONS = [(k, d) for k in ("sum", "prod", "max", "min") for d in DTYPES if k in ("sum", "prod") or d[0] != "c"]
Sizes = dict[str, int]


def compiled(function: LoopFunction) -> Callable[[Sizes], tuple[np.ndarray, np.ndarray]]:
    """From sizes to the output by machine code, in memory that was all ones, and by the interpreter."""
    row = ROW(engine().function(render_row(function, "row", engine().host), "row"))
    (buffer,) = function.outputs
    buffers = [*function.inputs, buffer]

    def run(sizes: Sizes) -> tuple[np.ndarray, np.ndarray]:
        arrays = inputs(function, sizes)
        out = np.ones([evaluate(d, sizes) for d in buffer.shape], buffer.dtype)
        pointers = (ctypes.c_void_p * len(buffers))(*[x.ctypes.data for x in (*arrays, out)])
        array = ctypes.c_int64 * len(buffers)
        steps, far = (
            array(*[sizes.get(f"{letter}{k}", 0) * b.dtype.itemsize for k, b in enumerate(buffers)]) for letter in "sd"
        )
        row(pointers, sizes["n"], steps, sizes.get("m", 1), far)
        (meant,) = interpret(function, arrays, [sizes[name] for name in function.sizes])
        return out, meant

    return run


def inputs(function: LoopFunction, sizes: Sizes) -> list[np.ndarray]:
    rng = np.random.default_rng(0)
    return [values(rng, b.dtype, [evaluate(d, sizes) for d in b.shape]) for b in function.inputs]


def same(found: np.ndarray, meant: np.ndarray, where: slice) -> None:
    assert found.dtype == meant.dtype
    if found.dtype.kind in "fc":  # the interpreter adds in another order
        np.testing.assert_allclose(found[where], meant[where], rtol=1e-4 if found.dtype.itemsize < 16 else 1e-12)
    else:
        np.testing.assert_array_equal(found[where], meant[where])
    left = np.ones(found.size, bool)
    left[where] = False
    assert (found[left] == 1).all(), "an element between those of the row was written"


@pytest.mark.parametrize("dtype", ["complex64", "bool"])
@pytest.mark.parametrize("accesses", [*itertools.product(Access, Access, (Access.UNIT, Access.STRIDED))], ids=str)
def test_element_wise_rows(dtype, accesses):
    d = np.dtype(dtype)
    op = (comparison.eq if dtype == "bool" else arithmetic.mul).op()
    function = mapped_row(op, (d, d), accesses)
    if accesses[2] is Access.UNIT:  # the caller promises that a stride of a result is not 0
        verify(function)
    run = compiled(function)
    for n in (0, 1, 70):
        found, meant = run({"n": n, "s0": 2, "s1": 3, "s2": 2})
        same(
            found,
            meant,
            slice(0, n * (2 if accesses[2] is Access.STRIDED else 1), 2 if accesses[2] is Access.STRIDED else 1),
        )


@pytest.mark.parametrize(("kind", "dtype"), REDUCTIONS)
def test_reduced_rows(kind, dtype):
    d = np.dtype(dtype)
    for access in Access:
        function = reduced_row(kind, d, access)
        verify(function)
        run = compiled(function)
        for n in (0, 1, 7, 300):
            same(*run({"n": n, "s0": 3}), slice(None))
    for length in (3, 8, 12):
        for access in (Access.UNIT, Access.FIXED):
            function = short_rows(kind, d, length, access)
            verify(function)
            run = compiled(function)
            for n in (0, 5, 67):
                same(*run({"n": n}), slice(None))


@pytest.mark.parametrize("write", [Access.UNIT, Access.STRIDED], ids=str)
@pytest.mark.parametrize("read", Access, ids=str)
@pytest.mark.parametrize(("kind", "dtype"), REDUCTIONS)
def test_combined_rows(kind, dtype, read, write):
    function = combined_rows(kind, np.dtype(dtype), read, write)
    if write is Access.UNIT:
        verify(function)
    run = compiled(function)
    for n, m in ((0, 5), (1, 130), (19, 1), (19, 15), (19, 17), (19, 64), (19, 75)):
        sizes = {"n": n, "m": m, "s0": 2, "s1": 2, "d0": 50}
        step = 2 if write is Access.STRIDED else 1
        same(*run(sizes), slice(0, n * step, step))
