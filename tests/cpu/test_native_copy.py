"""Native copies against NumPy's: layouts, dtypes, sizes, vector widths, and no byte outside of the target."""

import gc
import sys
import threading
import tracemalloc
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from guard_pages import require_inside
from native_rooms import compiled
from tenferro_cpu.native.copying import _copy
from tenferro_cpu.native.copying._copy_plan import plan
from tenferro_cpu.native.copying.tuning import MAX_TABLE

native = pytest.mark.skipif(compiled is None, reason="needs the C extension")
VECTOR_BYTES = 64 if compiled is None else compiled.VECTOR_BYTES

EXTENTS = [1, 2, 3, 4, 5, 7, 8, 16, 17]
TYPES = ["bool", "int16", "float32", "float64", "complex128", "S24", "S6"]


def values(rng: np.random.Generator, shape: tuple[int, ...], dtype: str) -> Any:
    size = int(np.prod(shape)) * np.dtype(dtype).itemsize
    raw = rng.integers(0, 2 if dtype == "bool" else 100, size, dtype="uint8")
    return raw.view(dtype).reshape(shape)


def layout(rng: np.random.Generator, dtype: str) -> Any:
    """A random view: transposed, with steps, reversed or repeated axes."""
    shape = tuple(int(n) for n in rng.choice(EXTENTS, rng.integers(1, 7)))
    while np.prod(shape) > 60000:
        shape = shape[1:]
    steps = [2 if rng.random() < 0.15 else 1 for _ in shape]
    x = values(rng, tuple(n * s for n, s in zip(shape, steps)), dtype)
    x = x[tuple(slice(None, None, -s if rng.random() < 0.1 else s) for s in steps)]
    if rng.random() < 0.1:
        x = np.broadcast_to(x[:1], x.shape)
    return x.transpose(rng.permutation(x.ndim))


class Guarded:
    """A C-contiguous target at a chosen offset inside of a buffer whose other bytes must not change."""

    def __init__(self, shape: tuple[int, ...], dtype: Any, offset: int) -> None:
        size = int(np.prod(shape)) * np.dtype(dtype).itemsize
        self.buffer = np.full(size + 512, 0xA5, np.uint8)
        self.start = -self.buffer.ctypes.data % 64 + 128 + offset
        self.end = self.start + size
        self.array = self.buffer[self.start : self.end].view(dtype).reshape(shape)

    def intact(self) -> bool:
        return bool((self.buffer[: self.start] == 0xA5).all() and (self.buffer[self.end :] == 0xA5).all())


@native
@pytest.mark.parametrize("vector", [16, 32, 64])
@pytest.mark.parametrize("seed", range(20))
def test_random_layouts(seed: int, vector: int) -> None:
    """Every element arrives, plain and streamed, at every level that is compiled and runs; nothing else changes."""
    level = {16: "generic", 32: "avx2", 64: "avx512"}[vector]
    if vector != VECTOR_BYTES and (vector > VECTOR_BYTES or compiled.contraction_sizes("d", level) is None):
        pytest.skip("this machine has shorter vectors, or the level is not compiled")
    rng = np.random.default_rng(seed)
    for _ in range(25):
        x = layout(rng, str(rng.choice(TYPES)))
        guarded = Guarded(x.shape, x.dtype, 0)
        steps = plan(x.shape, x.strides, guarded.array.strides, x.itemsize, vector)
        for stream in (False, True):
            guarded.array[...] = np.zeros((), x.dtype)
            for step in steps or ():
                assert _copy.built(step, stream, vector)(guarded.array, x) is guarded.array
            assert steps is None or np.array_equal(guarded.array, x), (x.shape, x.strides, steps)
            assert guarded.intact(), (x.shape, x.strides, steps)


KINDS = [
    ("tile", (40, 50), (1, 0), "float64"),
    ("tile", (2,) * 14, (9, 2, 13, 4, 5, 11, 0, 3, 6, 10, 8, 12, 7, 1), "float64"),
    ("tile", (5,) * 6, (3, 1, 5, 0, 2, 4), "float64"),
    ("tile", (64, 64, 4), (1, 0, 2), "float64"),
    ("run", (30, 20, 100), (1, 0, 2), "float64"),
    ("run", (60, 50, 3), (1, 0, 2), "float64"),
    ("interleave", (3, 5000), (1, 0), "float64"),
    ("deinterleave", (5000, 3), (1, 0), "float64"),
    ("interleave", (7, 1001), (1, 0), "complex64"),
]


@native
@pytest.mark.parametrize(("kind", "shape", "permutation", "dtype"), KINDS)
@pytest.mark.parametrize("offset", [0, 8, 16])
def test_every_kernel_is_reached(kind: str, shape: Any, permutation: Any, dtype: str, offset: int) -> None:
    """Also on targets that are not aligned to a cache line."""
    x = values(np.random.default_rng(1), shape, dtype).transpose(permutation)
    guarded = Guarded(x.shape, x.dtype, offset)
    steps = plan(x.shape, x.strides, guarded.array.strides, x.itemsize, 64)
    assert steps is not None and {step.kind for step in steps} == {kind}
    assert _copy.copy_into(guarded.array, x) is guarded.array
    assert np.array_equal(guarded.array, x) and guarded.intact()


@native
def test_long_axes_are_cut_into_short_tables() -> None:
    """The tables stay small whatever the axis, and the steps cover it."""
    cases = [((3 * MAX_TABLE + 5, 9), (1, 0)), ((20000, 2, 2), (0, 2, 1)), ((70001, 2, 3, 2), (3, 0, 2, 1))]
    for shape, permutation in cases:
        x = values(np.random.default_rng(2), shape, "float64").transpose(permutation)
        steps = plan(x.shape, x.strides, np.empty(x.shape).strides, 8, 64)
        assert steps and len(steps) > 1
        assert all(step.rows.count <= MAX_TABLE and step.columns.count <= MAX_TABLE for step in steps)
        assert np.array_equal(_copy.contiguous(x), x)


@native
def test_large_results_are_streamed() -> None:
    side = 1 << 12
    x = np.arange(side * side, dtype="float32").reshape(side, side).T
    steps = plan(x.shape, x.strides, np.empty(x.shape, x.dtype).strides, 4, 64)
    assert steps is not None and all(step.aligned for step in steps)
    assert np.array_equal(_copy.contiguous(x), x)


@pytest.mark.parametrize("shape", [(0, 300, 300), (300, 0), (200, 100), (2, 2)])
def test_contiguous(shape: Any) -> None:
    """A contiguous array is given back as it is; zero extents and small arrays are no special case for the caller."""
    x = np.arange(int(np.prod(shape)), dtype="float64").reshape(shape)
    assert _copy.contiguous(x) is x
    out = _copy.contiguous(x.T)
    assert out.flags.c_contiguous and np.array_equal(out, x.T)


def test_what_a_kernel_must_not_touch_is_left_to_numpy() -> None:
    """Overlap, another shape, dtype or byte order, read-only targets."""
    x = np.arange(250000.0).reshape(500, 500)
    expected = x.T.copy()
    same = x.copy()
    np.testing.assert_array_equal(_copy.copy_into(same, same.T), expected)
    single = np.empty((500, 500), "float32")
    np.testing.assert_array_equal(_copy.copy_into(single, x.T), expected.astype("float32"))
    swapped = np.empty((500, 500), ">f8")
    np.testing.assert_array_equal(_copy.copy_into(swapped, x.T), expected)
    frozen = np.empty((500, 500))
    frozen.flags.writeable = False
    with pytest.raises(ValueError, match="read-only"):
        _copy.copy_into(frozen, x.T)
    with pytest.raises(ValueError, match="broadcast"):
        _copy.copy_into(np.empty((400, 500)), x.T)
    odd = np.empty(8 * 250000 + 1, np.uint8)[1:].view("float64").reshape(500, 500)
    np.testing.assert_array_equal(_copy.copy_into(odd, x.T), expected)
    repeated = np.lib.stride_tricks.as_strided(np.empty(500), (500, 500), (0, 8))
    _copy.copy_into(repeated, x)  # the last row wins in any order that NumPy likes


def test_targets_with_strides() -> None:
    """A slice of a larger array is a target like any other."""
    rng = np.random.default_rng(3)
    x = rng.random((60, 70, 30)).transpose(2, 0, 1)
    whole = np.zeros((30, 130, 75))
    _copy.copy_into(whole[:, 10:70, :70], x)
    expected = np.zeros((30, 130, 75))
    expected[:, 10:70, :70] = x
    np.testing.assert_array_equal(whole, expected)


@native
def test_plans_are_bounded_and_forgotten() -> None:
    plans = _copy.CopyPlans(entries=4, nbytes=1 << 30)
    for n in range(100, 110):
        x = np.arange(100.0 * n).reshape(100, n).T
        out = np.empty(x.shape)
        assert np.array_equal(plans.find(x.shape, x.strides, out.strides, 8)(out, x), x)
        assert plans.stats()["size"] <= 4
    assert plans.stats()["nbytes"] > 0
    plans.clear()
    assert plans.stats() == {"size": 0, "bound": 4, "nbytes": 0}
    small = _copy.CopyPlans(entries=100, nbytes=1)
    for n in (100, 101):
        small.find((n, 100), (8, 8 * n), (800, 8), 8)
    assert small.stats()["size"] == 1


@native
def test_no_memory_is_lost() -> None:
    x = np.arange(4096.0).reshape(64, 64)
    out = np.empty((64, 64))
    copy = _copy.COPIES.find(x.T.shape, x.T.strides, out.strides, 8)
    references = sys.getrefcount(out), sys.getrefcount(x)
    tracemalloc.start()
    try:
        copy(out, x)
        before, _ = tracemalloc.get_traced_memory()
        for _ in range(100_000):
            copy(out, x)
        after, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert after - before < 1 << 16
    assert (sys.getrefcount(out), sys.getrefcount(x)) == references


@native
def test_an_allocation_fails() -> None:
    """A plan that cannot be built is a `MemoryError`, whichever allocation it was, and leaves nothing behind."""
    testcapi = pytest.importorskip("_testcapi")
    x = np.arange(4096.0).reshape(64, 64)
    (step,) = plan((64, 64), (8, 512), (512, 8), 8, VECTOR_BYTES) or ()
    failures = 0
    before = sys.getallocatedblocks()
    for n in range(60):
        copy = None
        testcapi.set_nomemory(n, n + 1)
        try:
            copy = _copy.built(step, False)
        except MemoryError:
            failures += 1
        finally:
            testcapi.remove_mem_hooks()
        if copy is not None:
            assert np.array_equal(copy(np.empty((64, 64)), x.T), x.T)
    del copy
    assert failures > 2
    gc.collect()
    assert sys.getallocatedblocks() - before < 100


@native
def test_arguments_are_checked() -> None:
    (step,) = plan((64, 64), (8, 512), (512, 8), 8, VECTOR_BYTES) or ()
    copy = _copy.built(step, False)
    with pytest.raises(TypeError, match="two arrays"):
        copy(np.empty(3), [1.0])  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="no kernel"):
        _copy.built(replace(step, item=3), False)
    with pytest.raises(ValueError, match="no kernel"):
        _copy.built(step, False, 24)
    with pytest.raises(ValueError, match="one number for each step"):
        _copy.built(replace(step, rows=replace(step.rows, count=5)), False)


@native
def test_many_threads() -> None:
    failures: list[Any] = []

    def work(seed: int) -> None:
        rng = np.random.default_rng(seed)
        for _ in range(20):
            shape = tuple(int(n) for n in rng.integers(2, 60, 3))
            x = rng.random(shape).transpose(rng.permutation(3))
            if not np.array_equal(_copy.contiguous(x), x):
                failures.append((shape, x.strides))

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(6)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not failures


GUARD_PAGES = """
import numpy as np
from tenferro_cpu.native.copying._copy import copy_into

for dtype in ("uint8", "float32", "float64", "complex128"):
    for shape, order in [((41, 57, 9), (2, 1, 0)), ((3, 6001), (1, 0)), ((6001, 3), (1, 0)),
                         ((5,) * 6, (3, 1, 5, 0, 2, 4)), ((30, 70, 11), (1, 0, 2)),
                         ((2,) * 15, (9, 2, 13, 4, 14, 5, 11, 0, 3, 6, 10, 8, 12, 7, 1))]:
        for at_end in (False, True):
            x = between_guards(shape, dtype, at_end)
            x.flat[:] = np.arange(x.size) % 97
            out = between_guards(tuple(shape[i] for i in order), dtype, at_end)
            copy_into(out, x.transpose(order))
            assert np.array_equal(out, x.transpose(order))
"""


@native
@pytest.mark.skipif(sys.platform != "linux", reason="guard pages are made by Linux calls")
def test_no_access_beyond_the_arrays() -> None:
    """Source and target lie against pages that may not be read or written."""
    require_inside(GUARD_PAGES)
