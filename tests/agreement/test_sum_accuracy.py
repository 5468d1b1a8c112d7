"""Sums are as accurate as NumPy's pairwise ones: over any axis, of any layout, one by one and in compiled programs."""

import math
from collections.abc import Callable, Iterator
from functools import lru_cache
from typing import Any

import numpy as np
import pytest

import tenferro_runtime as tr
from tenferro_einsum import einsum
from tenferro_runtime.running import fusion

Array = np.ndarray[Any, Any]

SAMPLES: dict[str, Callable[[np.random.Generator, int], Array]] = {
    "around 1e8": lambda rng, n: rng.uniform(0.5e8, 1.5e8, n),
    "far from zero": lambda rng, n: 1e8 + 1e3 * rng.standard_normal(n),
    "all equal": lambda rng, n: np.full(n, rng.uniform(0.5, 1.5)),
    "over many magnitudes": lambda rng, n: np.exp(3 * rng.standard_normal(n)),
    "few large": lambda rng, n: np.where(rng.random(n) < 0.01, 1e6, 1e-3) * rng.random(n),
    "both signs": lambda rng, n: rng.standard_normal(n),
    "nearly cancelling": lambda rng, n: np.where(np.arange(n) % 2, -1, 1) * (1e4 + rng.random(n)),
}

LAYOUTS: dict[str, Callable[[Array], tuple[Array, tuple[int, ...]]]] = {
    "one row": lambda x: (x, (0,)),
    "steps": lambda x: (np.repeat(x, 3)[::3], (0,)),
    "backwards": lambda x: (x[::-1].copy()[::-1], (0,)),
    "rows": lambda x: (np.stack([x, x[::-1]]), (1,)),
    "columns": lambda x: (np.stack([x, x[::-1]], axis=1), (0,)),
    "many columns": lambda x: (np.stack([x, x[::-1]] * 8, axis=1), (0,)),
    "columns of a larger array": lambda x: (np.stack([x] * 5, axis=1)[:, 1:3], (0,)),
    "transposed columns": lambda x: (np.stack([x, x[::-1]], axis=1).T, (1,)),
    "two axes": lambda x: (x[: x.size // 20 * 20].reshape(-1, 4, 5).transpose(1, 0, 2), (0, 1, 2)),
    "first and last": lambda x: (x.reshape(-1, 2, 10), (0, 2)),
    "broadcast": lambda x: (np.broadcast_to(x[:, None], (x.size, 2)), (0,)),
}


def parts(x: Array) -> Iterator[Array]:
    yield x.real
    if x.dtype.kind == "c":
        yield x.imag


def summed(terms: Array) -> float:
    """The exact sum; of float32 in float64, which takes less time and is exact beside an error of theirs."""
    return float(np.sum(terms, dtype="float64")) if terms.dtype == "float32" else math.fsum(terms.tolist())


def check(x: Array, axes: tuple[int, ...], *results: Any) -> None:
    """The error of each part of each sum beside NumPy's of the same elements in one row, and beside what is usual."""
    unit = float(np.finfo(x.dtype).eps) / 2
    rows = np.moveaxis(x, axes, range(x.ndim - len(axes), x.ndim))
    rows = rows.reshape(*rows.shape[: x.ndim - len(axes)], -1)
    found = np.stack([np.asarray(result) for result in results])
    assert {np.asarray(result).dtype for result in results} == {x.dtype} and found.shape[1:] == rows.shape[:-1]
    for index in list(np.ndindex(found.shape[1:]))[:3]:
        for terms, sums in zip(parts(np.ascontiguousarray(rows[index])), parts(found[:, *index]), strict=True):
            terms = np.ascontiguousarray(terms)
            exact, size = summed(terms), summed(np.abs(terms))
            pairwise = abs(float(np.sum(terms)) - exact)
            usual = (2 + math.log2(terms.size) / 4) * unit * size
            few = 8 * unit * size if terms.size <= 64 else 0  # NumPy may add them one after the other
            assert max(abs(float(each) - exact) for each in sums) <= max(pairwise, usual, few), (index, terms.size)


@lru_cache(maxsize=16)
def sample(name: str, dtype: str, n: int) -> Array:
    rng = np.random.default_rng(n)
    x = SAMPLES[name](rng, n)
    if np.dtype(dtype).kind == "c":
        x = x + 1j * SAMPLES[name](rng, n)
    return x.astype(dtype)


@pytest.mark.parametrize("dtype", ["float32", "complex64", "float64", "complex128"])
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("name", SAMPLES)
def test_eager_sums(name: str, layout: str, dtype: str) -> None:
    for n in (20, 300, 3000, 40_000):
        x, axes = LAYOUTS[layout](sample(name, dtype, n))
        check(x, axes, tr.sum(tr.asarray(x, copy=False), axis=axes).data)


@pytest.mark.parametrize("layout", ["one row", "steps", "columns", "many columns", "transposed columns", "two axes"])
@pytest.mark.parametrize("name", SAMPLES)
def test_sums_of_a_million(name: str, layout: str) -> None:
    x, axes = LAYOUTS[layout](sample(name, "float32", 1_000_000))
    check(x, axes, tr.sum(tr.asarray(x, copy=False), axis=axes).data)


def fused_sum(axes: tuple[int, ...]) -> Callable[[Any], Any]:
    return lambda x: tr.sum(tr.maximum(x, -x) * 2.0 - x, axis=axes)


@pytest.mark.parametrize("layout", [layout for layout in LAYOUTS if layout != "first and last"])
@pytest.mark.parametrize("n", [3000, 300_000])
def test_sums_in_compiled_programs(n: int, layout: str) -> None:
    """One program of each kind adds all samples."""
    laid = {name: LAYOUTS[layout](sample(name, "float32", n)) for name in SAMPLES}
    axes = next(iter(laid.values()))[1]
    functions = [tr.compile(fused_sum(axes), deterministic=deterministic) for deterministic in (False, True)]
    for x, _ in laid.values():
        operand, results = tr.asarray(x, copy=False), []
        for f in functions:
            f(operand)
            fusion.wait()
            results += [f(operand).data for _ in range(3)]
        check(np.maximum(x, -x) * np.float32(2) - x, axes, *results)


@pytest.mark.parametrize("name", SAMPLES)
def test_sums_over_axes_around_another_one(name: str) -> None:
    """Compiled, they are added one after the other along the first axis."""
    x, axes = LAYOUTS["first and last"](sample(name, "float32", 30_000))
    f, wanted = tr.compile(fused_sum(axes)), fused_sum(axes)(tr.asarray(x.astype("float64"))).numpy()
    for _ in range(3):
        found = f(tr.asarray(x, copy=False)).numpy()
        fusion.wait()
    size = 3 * np.abs(x).sum(axes)
    assert np.all(np.abs(found - wanted) <= 2.0**-24 * x.shape[0] * size)


@pytest.mark.parametrize("name", SAMPLES)
def test_means_contractions_and_loops(name: str) -> None:
    x = sample(name, "float32", 100_000)
    unit, exact, size = 2.0**-24, summed(x), summed(np.abs(x))
    operand = tr.asarray(x)
    rows = tr.asarray(np.stack([x] * 3, axis=1))

    def in_a_loop(rows: Any) -> Any:
        return tr.scan(lambda total, x: (total + tr.sum(x), None), 0.0, rows.mT)[0] / 3

    for found in (
        tr.mean(operand) * x.size,
        tr.mean(rows, axis=0)[1] * x.size,
        einsum("i->", operand),
        einsum("ij->j", rows)[2],
        tr.compile(in_a_loop)(rows),
        in_a_loop(rows),
    ):
        assert abs(float(found) - exact) <= 12 * unit * size
