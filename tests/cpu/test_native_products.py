"""Matrix products in machine code against the reference kernel: every dtype, order of memory and size."""

import gc
import itertools
import sys
import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kernel_check import spec_of
from native_rooms import compiled
from tenferro_cpu.native.codegen.machine import _jit
from tenferro_cpu.native.contraction._kernel import CpuContraction
from tenferro_cpu.native.kernels.products import _products
from tenferro_tensor import catalog as c
from tenferro_tensor.reference import kernels

native = pytest.mark.skipif(compiled is None, reason="needs the C extension")
engine = pytest.mark.skipif(not _jit.available(), reason="needs the contraction engine")

KINDS = "fdFD"
TOLERANCE = {"f": 1e-4, "F": 1e-4, "d": 1e-12, "D": 1e-12}
NONE: Any = ((), ())
REFERENCE = kernels(np, lambda: None)[c.dot_general]


class Own(np.ndarray[Any, Any]):
    """A subclass of arrays, which may compute in its own way."""


def sample(rng: np.random.Generator, kind: str, *shape: int) -> Any:
    x = rng.normal(size=shape)
    return (x + 1j * rng.normal(size=shape) if kind in "FD" else x).astype(kind)


def both(x: Any, y: Any, contract: Any, batch: Any = NONE) -> tuple[Callable[..., Any], Callable[..., Any], list[Any]]:
    """The kernel under test, the reference, and the calls that the first has handed to its fallback."""
    ins = (spec_of(x), spec_of(y))
    out: Any = c.dot_general.infer(*ins, contract=contract, batch=batch)
    reference = REFERENCE(ins, (out,), contract=contract, batch=batch)
    seen: list[Any] = []

    def fallback(*arrays: Any) -> Any:
        seen.append(arrays)
        return reference(*arrays)

    return _products.dot_general(fallback, ins, (out,), contract, batch), reference, seen


def agree(kind: str, actual: Any, expected: Any) -> None:
    assert actual.dtype == expected.dtype and actual.shape == expected.shape
    scale = np.abs(expected).max(initial=1.0)
    np.testing.assert_allclose(actual, expected, rtol=TOLERANCE[kind], atol=TOLERANCE[kind] * scale)


@native
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("n", [1, 2, 3, 7, 8, 9, 17, 64, 70])
def test_square_matrices_in_either_order_of_memory(kind: str, n: int) -> None:
    rng = np.random.default_rng(n)
    x, y = sample(rng, kind, n, n), sample(rng, kind, n, n)
    for left, right in itertools.product((0, 1), (0, 1)):
        kernel, reference, seen = both(x, y, ((left,), (right,)))
        agree(kind, kernel(x, y), reference(x, y))
        assert not seen, "arrays in C order go to the machine code"
        for a, b in ((np.asfortranarray(x), y), (x, np.asfortranarray(y)), (x.T.copy().T, np.asfortranarray(y))):
            agree(kind, kernel(a, b), reference(a, b))
        assert not seen or n <= 8


@engine
@pytest.mark.parametrize("kind", KINDS)
def test_large_products_by_turned_matrices_are_contracted(kind: str) -> None:
    """The engine takes what BLAS would have to turn; other single products are left to BLAS."""
    rng = np.random.default_rng(0)
    for swap_x, swap_y in itertools.product((0, 1), (0, 1)):
        x = sample(rng, kind, *((101, 110) if swap_x else (110, 101)))
        y = sample(rng, kind, *((103, 101) if swap_y else (101, 103)))
        kernel, reference, _ = both(x, y, ((1 - swap_x,), (swap_y,)), ((), ()))
        assert isinstance(kernel, CpuContraction) == bool(swap_y)
        if swap_y:
            agree(kind, kernel(x, y), reference(x, y))


@engine
@pytest.mark.parametrize("kind", KINDS)
def test_stacks_of_large_matrices_are_contracted(kind: str) -> None:
    """The engine takes them, in every order of memory; threads share them."""
    rng = np.random.default_rng(0)
    for swap_x, swap_y in itertools.product((0, 1), (0, 1)):
        x = sample(rng, kind, 2, 3, *((101, 110) if swap_x else (110, 101)))
        y = sample(rng, kind, 2, 3, *((103, 101) if swap_y else (101, 103)))
        kernel, reference, seen = both(x, y, ((3 - swap_x,), (2 + swap_y,)), ((0, 1), (0, 1)))
        assert isinstance(kernel, CpuContraction)
        for a, b in ((x, y), (np.asfortranarray(x), y), (x[:, ::-1], y.swapaxes(0, 1).copy().swapaxes(0, 1))):
            agree(kind, kernel(a, b), reference(a, b))
        assert not seen


@native
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("m, k, n", [(1, 8, 5), (5, 1, 3), (8, 3, 1), (4, 4, 4), (2, 9, 3), (20, 3, 4), (3, 40, 9)])
def test_stacks(kind: str, m: int, k: int, n: int) -> None:
    rng = np.random.default_rng(k)
    for swap_x, swap_y in itertools.product((0, 1), (0, 1)):
        x = sample(rng, kind, 3, 2, *((k, m) if swap_x else (m, k)))
        y = sample(rng, kind, 3, 2, *((n, k) if swap_y else (k, n)))
        kernel, reference, _ = both(x, y, ((2 if swap_x else 3,), (3 if swap_y else 2,)), ((0, 1), (0, 1)))
        agree(kind, kernel(x, y), reference(x, y))


@native
def test_merged_axes_are_not_copied() -> None:
    """Neighbouring axes are one in memory; no operand needs to be rearranged."""
    rng = np.random.default_rng(0)
    x, y = sample(rng, "d", 3, 4, 5, 6), sample(rng, "d", 5, 6, 2, 7)
    kernel, reference, seen = both(x, y, ((2, 3), (0, 1)))
    agree("d", kernel(x, y), reference(x, y))
    kernel, reference, also = both(y, y, ((1, 0), (1, 0)))
    agree("d", kernel(y, y + 1), reference(y, y + 1))
    assert not seen and not also


@given(seed=st.integers(0, 2**32 - 1))
@settings(max_examples=30, deadline=None)
def test_any_axes(seed: int) -> None:
    rng = np.random.default_rng(seed)
    kind = KINDS[rng.integers(4)]
    nb, nk, nx, ny = (int(v) for v in rng.integers(0, 3, 4))
    shared = rng.integers(1, 5, nb + nk).tolist()
    x_shape, y_shape = shared + rng.integers(0, 6, nx).tolist(), shared + rng.integers(0, 6, ny).tolist()
    px, py = (rng.permutation(len(s)) if rng.integers(2) else np.arange(len(s)) for s in (x_shape, y_shape))
    x, y = sample(rng, kind, *(x_shape[p] for p in px)), sample(rng, kind, *(y_shape[p] for p in py))
    at_x, at_y = (np.argsort(p).tolist() for p in (px, py))
    batch = tuple(at_x[:nb]), tuple(at_y[:nb])
    contract = tuple(at_x[nb : nb + nk]), tuple(at_y[nb : nb + nk])
    kernel, reference, _ = both(x, y, contract, batch)
    agree(kind, kernel(x, y), reference(x, y))
    gap = np.zeros((*x.shape[:-1], 2 * x.shape[-1]) if x.ndim else (), kind)[..., ::2] if x.ndim else x
    if x.ndim:
        gap[...] = x
        agree(kind, kernel(gap, y), reference(x, y))


@native
def test_what_the_payload_does_not_name_goes_to_the_fallback() -> None:
    rng = np.random.default_rng(1)
    for n in (4, 20):
        x, y = sample(rng, "d", n, n), sample(rng, "d", n, n)
        kernel, _, seen = both(x, y, ((1,), (0,)))
        wide = np.zeros((n, 2 * n))[:, ::2]
        wide[...] = x
        byte_order = x.astype(x.dtype.newbyteorder())
        for a, b in ((wide, y), (x, y[::-1]), (byte_order, y), (x.astype("f"), y), (x.view(Own), y)):
            before = len(seen)
            np.testing.assert_allclose(kernel(a, b), np.asarray(a, "d") @ b, rtol=1e-4, atol=1e-4)
            assert len(seen) == before + 1
        with pytest.raises(TypeError):
            kernel(x)
        with pytest.raises(AttributeError):
            kernel(None, y)
        with pytest.raises(ValueError):
            kernel(x, y[:-1])


@native
def test_unaligned_operands() -> None:
    rng = np.random.default_rng(1)
    for n in (4, 20):
        x = sample(rng, "d", n, n)
        buffer = bytearray(x.nbytes + 1)
        odd: Any = np.frombuffer(buffer, "float64", n * n, offset=1).reshape(n, n)
        odd[...] = x
        kernel, reference, seen = both(x, x, ((1,), (0,)))
        agree("d", kernel(odd, x), reference(x, x))
        assert len(seen) == 1


@native
def test_a_matrix_times_its_own_transpose_is_symmetric() -> None:
    """NumPy computes one triangle and mirrors it; the entry leaves that case to it."""
    x = sample(np.random.default_rng(2), "d", 40, 30)
    kernel, _, seen = both(x, x, ((1,), (1,)))
    y = kernel(x, x)
    assert len(seen) == 1 and (y == y.T).all()


@native
@pytest.mark.parametrize("kind", KINDS)
def test_special_values(kind: str) -> None:
    """NaN and infinities spread as they do in NumPy."""
    for n in (3, 12):
        x, y = np.eye(n, dtype=kind), np.ones((n, n), kind)
        y[0, 0], y[1, 1] = np.nan, np.inf
        kernel, _, _ = both(x, y, ((1,), (0,)))
        with np.errstate(all="ignore"):
            z, expected = kernel(x, y), x.dot(y)
        np.testing.assert_array_equal(np.isnan(z), np.isnan(expected))
        np.testing.assert_array_equal(np.isinf(z.real) & ~np.isnan(z), np.isinf(expected.real) & ~np.isnan(expected))


def terms_in_order(x: Any, y: Any) -> Any:
    """A first product and then fused additions, in the order of the terms; parts of complex numbers apart."""
    import math

    rows, inner, columns = len(x), len(y), y.shape[1]
    wide = x.real.dtype.char == "d"

    def fused(a: Any, b: Any, c: Any) -> Any:
        if not wide:  # a product of single numbers is exact in double
            return np.float32(np.float64(a) * np.float64(b) + np.float64(c))
        return math.fma(a, b, c)  # type: ignore[attr-defined,unused-ignore]

    out = np.empty((rows, columns), x.dtype)
    for i, j in itertools.product(range(rows), range(columns)):
        sums = []
        for left, right in itertools.product(*[(z.real, z.imag) if z.dtype.kind == "c" else (z,) for z in (x, y)]):
            total = left[i, 0] * right[0, j]
            for k in range(1, inner):
                total = fused(left[i, k], right[k, j], total)
            sums.append(total)
        if len(sums) == 1:
            out[i, j] = sums[0]
        else:
            out[i, j] = complex(fused(sums[3], -1.0, sums[0]), fused(sums[2], 1.0, sums[1]))
    return out


@native
@pytest.mark.parametrize("kind", KINDS)
def test_small_products_of_any_form_have_the_same_bits(kind: str) -> None:
    """Alone, in stacks, with either operand stored as its transpose, and with symbolic sizes."""
    import math

    rng = np.random.default_rng(3)
    for m, k, n in itertools.product((1, 2, 3, 4, 5, 8), (1, 2, 5), (1, 2, 3, 5, 7, 8)):
        x, y = sample(rng, kind, 3, m, k), sample(rng, kind, 3, k, n)
        stack = both(x, y, ((2,), (1,)), ((0,), (0,)))[0](x, y)
        xt, yt = x.swapaxes(1, 2).copy(), y.swapaxes(1, 2).copy()
        turned = both(xt, yt, ((1,), (2,)), ((0,), (0,)))[0](xt, yt)
        np.testing.assert_array_equal(turned, stack)
        for a, b, expected in zip(x, y, stack):
            np.testing.assert_array_equal(both(a, b, ((1,), (0,)))[0](a, b), expected)
            if kind in "fF" or hasattr(math, "fma"):
                np.testing.assert_array_equal(terms_in_order(a, b), expected)


@native
def test_an_allocation_fails() -> None:
    """It is a `MemoryError`, whichever allocation it was, and nothing is lost."""
    testcapi = pytest.importorskip("_testcapi")
    for shape in ((4, 4), (4,), (20, 20)):
        x = np.ones(shape)
        kernel, _, seen = both(x, x, ((x.ndim - 1,), (0,)))
        y, failures, held = x + 1, 0, [(n, n + 1000) for n in range(1000)]
        expected = kernel(x, y)
        before = sys.getrefcount(x), sys.getrefcount(x.dtype)
        for n in range(10):
            testcapi.set_nomemory(n, n + 1)
            try:
                held.append(kernel(x, y))
            except MemoryError:
                failures += 1
            finally:
                testcapi.remove_mem_hooks()
        assert failures > 0
        np.testing.assert_array_equal(kernel(x, y), expected)
        held.clear()
        assert not seen and (sys.getrefcount(x), sys.getrefcount(x.dtype)) == before


@native
def test_what_is_no_product_is_refused() -> None:
    good: Any = {"axes": (2, 2), "stack": 0, "contracted": 1, "swap": (False, False), "shapes": b"", "gemm": 0}
    good |= dict.fromkeys(("integer_bytes", "most_work", "one_thread", "per_thread", "unlocked"), 8)
    compiled.Product(len, np.dtype("d"), **good)
    for changed in ({"axes": (9, 2)}, {"contracted": 0}, {"stack": 2}, {"per_thread": 0}, {"shapes": b"x"}):
        with pytest.raises(ValueError, match="no such product"):
            compiled.Product(len, np.dtype("d"), **(good | changed))
    for dtype in ("i4", ">f8", "O"):
        with pytest.raises(ValueError, match="no such product"):
            compiled.Product(len, np.dtype(dtype), **good)


@native
def test_no_leak() -> None:
    """References to the dtype, the operands and the results stay what they were over many calls."""
    for n in (4, 12):
        x, y = np.ones((n, n)), np.full((n, n), 2.0)
        kernel, _, _ = both(x, y, ((1,), (0,)))
        kernel(x, y)
        gc.collect()
        before = [sys.getrefcount(o) for o in (x, y, x.dtype, kernel, np.ndarray)] + [sys.getallocatedblocks()]
        for _ in range(20_000):
            kernel(x, y)
        gc.collect()
        after = [sys.getrefcount(o) for o in (x, y, x.dtype, kernel, np.ndarray)] + [sys.getallocatedblocks()]
        assert max(b - a for a, b in zip(before, after)) < 20


@native
def test_results_live_on_their_own() -> None:
    x = np.ones((4, 4))
    kernel, _, _ = both(x, x, ((1,), (0,)))
    first = kernel(x, x)
    second = kernel(x, x)
    first[...] = 0
    assert first.flags.owndata and first.flags.writeable and second.sum() == 64
    del kernel
    gc.collect()
    assert second.sum() == 64


@native
def test_many_threads() -> None:
    rng = np.random.default_rng(5)
    work = []
    for n in (3, 12, 90):
        x, y = sample(rng, "d", n, n), sample(rng, "d", n, n)
        kernel, reference, _ = both(x, y, ((1,), (0,)))
        work.append((kernel, x, y, reference(x, y)))
    wrong: list[int] = []

    def run() -> None:
        for _ in range(200):
            for kernel, x, y, expected in work:
                if not np.allclose(kernel(x, y), expected, rtol=1e-10):
                    wrong.append(len(x))

    pool = [threading.Thread(target=run) for _ in range(8)]
    for t in pool:
        t.start()
    for t in pool:
        t.join()
    assert not wrong


@native
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("m, k, n", [(3, 4, None), (None, 4, 5), (None, 6, None), (8, 1, None), (None, 1, None)])
def test_small_vectors_need_no_numpy(kind: str, m: int | None, k: int, n: int | None) -> None:
    rng = np.random.default_rng(k)
    x, y = (sample(rng, kind, *[e for e in shape if e is not None]) for shape in ((m, k), (k, n)))
    kernel, reference, seen = both(x, y, ((x.ndim - 1,), (0,)))
    result = kernel(x, y)
    agree(kind, result, reference(x, y))
    assert isinstance(result, np.ndarray if m or n else np.generic)
    assert not seen


@native
def test_stacks_of_vectors() -> None:
    rng = np.random.default_rng(1)
    x, y, z = sample(rng, "d", 5, 3), sample(rng, "d", 5, 3), sample(rng, "d", 5, 3, 2)
    for a, b in ((x, y), (x, z), (z.swapaxes(1, 2).copy(), x)):
        kernel, reference, seen = both(a, b, ((a.ndim - 1,), (1,)), ((0,), (0,)))
        agree("d", kernel(a, b), reference(a, b))
        assert not seen
