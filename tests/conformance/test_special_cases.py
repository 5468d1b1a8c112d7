"""Infinities, NaN and signed zeros: every kind of tensor gives what the standard's tables of special cases say."""

import itertools
import math
from functools import partial
from typing import Any

import numpy as np
import pytest

import tenferro_runtime as tr
from array_api_special import BINARY, COMPLEX, CONJUGATE, PARITY, TURNED, UNARY, agrees, collected
from array_kinds import KINDS, plain

Array = np.ndarray[Any, Any]
pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")

GRID = [0.0, -0.0, math.inf, -math.inf, math.nan, 1.0, -1.0, 0.4, -2.5]


REAL = {d: collected(d, UNARY, BINARY) for d in ("float32", "float64")}
ALL = {**REAL, **{d: collected(d, COMPLEX) for d in ("complex64", "complex128")}}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("dtype", ALL)
def test_functions(dtype: str, kind: str) -> None:
    bad = {}
    for name, cases in ALL[dtype].items():
        if wrong := cases.wrong(plain(KINDS[kind](getattr(tr, name), *cases.arrays()))):
            bad[name] = wrong
    assert not bad, "\n".join(f"{name}: {case}" for name, cases in bad.items() for case in cases)


def grid(dtype: str) -> Array:
    z = np.empty(len(GRID) ** 2, dtype)
    z.real, z.imag = np.array(list(itertools.product(GRID, GRID))).T
    return z


def alike(got: Array, want: Array) -> bool:
    """Parts agree; beside a NaN the sign of the other part is open, and with it that of zeros of which one is."""
    blurred = np.isnan(want.real) | np.isnan(want.imag)
    parts = [(got.real, want.real), (got.imag, want.imag)]
    return bool(np.all([agrees(g, w, blurred) for g, w in parts]))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
def test_symmetries_of_complex_functions(dtype: str, kind: str) -> None:
    z = grid(dtype)

    def value(name: str, at: Array) -> Array:
        return plain(KINDS[kind](getattr(tr, name), at))

    for name in CONJUGATE:
        assert alike(value(name, z.conj()), value(name, z).conj()), name
    for name, parity in PARITY.items():
        at = value(name, z)
        assert alike(value(name, -z), -at if parity < 0 else at), name
    turned = np.empty_like(z)
    turned.real, turned.imag = -z.imag, z.real
    for name, other in TURNED.items():
        want = value(other, turned)
        if name != "cos":
            back = np.empty_like(want)
            back.real, back.imag = want.imag, -want.real
            want = back
        assert alike(value(name, z), want), name


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("dtype", ALL)
def test_functions_defined_by_others(dtype: str, kind: str) -> None:
    x, run = (grid(dtype) if dtype[0] == "c" else np.array(GRID, dtype)), KINDS[kind]
    for f, other in (
        (tr.square, lambda x: x * x),
        (tr.reciprocal, lambda x: 1.0 / x),
        (lambda x: x - x[::-1], lambda x: x + -x[::-1]),
        (lambda x: tr.cumulative_sum(tr.stack([x, x[::-1]]), axis=0)[1], lambda x: x + x[::-1]),
        (lambda x: tr.cumulative_prod(tr.stack([x, x[::-1]]), axis=0)[1], lambda x: x * x[::-1]),
    ):
        assert alike(plain(run(f, x)), plain(run(other, x))), f
    natural = plain(run(tr.log, x))
    for base, f in ((2, tr.log2), (10, tr.log10)):
        other = natural.copy()
        parts = [natural.real, natural.imag] if dtype[0] == "c" else [natural]
        for part, whole in zip([other.real, other.imag] if dtype[0] == "c" else [other], parts, strict=True):
            part[...] = whole / math.log(base)
        assert alike(plain(run(f, x)), other), f


@pytest.mark.parametrize("kind", KINDS)
def test_reductions_let_nan_through(kind: str) -> None:
    for dtype, nan in (("float32", math.nan), ("float64", math.nan), ("complex128", complex(math.nan, 1.0))):
        x = np.array([1.0, nan, 2.0], dtype)
        names = ["sum", "prod", "mean"] + ["max", "min", "std", "var"] * (dtype[0] == "f")
        for name in names:
            assert np.isnan(plain(KINDS[kind](getattr(tr, name), x))), name
        empty = np.zeros(0, dtype)
        want = {"sum": 0, "prod": 1, "mean": math.nan}
        for name, value in want.items():
            got = plain(KINDS[kind](getattr(tr, name), empty))
            assert got.dtype == np.dtype(dtype) and agrees(got.real, np.array(value), np.array(False)), name


@pytest.mark.parametrize("kind", KINDS)
def test_clip_lets_nan_through(kind: str) -> None:
    nothing = np.array([math.nan])
    for x, low in itertools.product((np.array([0.5]), nothing), (np.array([0.0]), nothing)):
        got = plain(KINDS[kind](tr.clip, x, low, np.array([1.0])))
        assert np.isnan(got) == np.isnan(x + low)
        got = plain(KINDS[kind](tr.clip, x, np.array([0.0]), low + 1))
        assert np.isnan(got) == np.isnan(x + low)


@pytest.mark.parametrize("kind", KINDS)
def test_rounding_takes_the_even_neighbour(kind: str) -> None:
    x = np.array([0.5, 1.5, 2.5, -0.5, -1.5, 2.4, -2.6])
    np.testing.assert_array_equal(plain(KINDS[kind](tr.round, x)), [0, 2, 2, -0.0, -2, 2, -3])
    z = x + 1j * x[::-1]
    got = plain(KINDS[kind](tr.round, z))
    np.testing.assert_array_equal(got.real, np.round(x))
    np.testing.assert_array_equal(got.imag, np.round(x[::-1]))


@pytest.mark.parametrize("kind", KINDS)
def test_variances_of_too_few_elements_are_nan(kind: str) -> None:
    x = np.array([[1.0, 2.0], [4.0, 8.0]])
    for correction in (2, 2.5, 3):
        for f in (tr.var, tr.std):
            got = plain(KINDS[kind](partial(f, axis=0, correction=correction), x))
            assert got.shape == (2,) and np.isnan(got).all()
    got = plain(KINDS[kind](lambda x: tr.var(x, axis=0, correction=1.5), x))
    np.testing.assert_allclose(got, [9.0, 36.0])


def test_variances_of_too_few_elements_are_nan_at_any_size() -> None:
    program = tr.trace(lambda x: tr.var(x, correction=2), tr.Spec((tr.dim("n"),), tr.float64))
    assert math.isnan(float(program.run(tr.asarray([1.0, 2.0]))[0]))
    assert float(program.run(tr.asarray([1.0, 2.0, 3.0]))[0]) == 2.0
