"""Banded, Toeplitz and circulant equations and matrices: values of SciPy, derivatives by differences."""

import numpy as np
import pytest
import scipy.linalg as sl

import tenferro_linalg as la
from linalg_checks import DTYPES, assert_derivatives, inner, numbers
from tenferro_tensor import functions as fn
from tenferro_tensor_core import ArgumentError, NumericalError, ShapeError, TenferroError

KINDS = ["float64", "complex128"]


def close(x, y, dtype="float64"):
    tol = 2e-4 if dtype in ("float32", "complex64") else 1e-9
    np.testing.assert_allclose(np.asarray(x), y, rtol=tol, atol=tol)


def dominant(seed, lower, upper, n, dtype):
    ab = numbers(seed, (lower + upper + 1, n), dtype)
    ab[upper] += np.asarray(5 * (lower + upper + 1), dtype)
    return ab


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(("lower", "upper", "n"), [(1, 1, 5), (2, 1, 5), (0, 2, 4), (1, 0, 4), (0, 0, 3), (1, 2, 1)])
def test_banded_equations_have_the_solutions_of_scipy(lower, upper, n, dtype):
    ab, b = dominant(1, lower, upper, n, dtype), numbers(2, (n, 2), dtype)
    if n > 1:
        close(la.solve_banded((lower, upper), ab, b), sl.solve_banded((lower, upper), ab, b), dtype)
    dense = np.zeros((n, n), dtype)
    for i in range(n):
        for j in range(max(0, i - lower), min(n, i + upper + 1)):
            dense[i, j] = ab[upper + i - j, j]
    close(
        la.solve_banded((lower, upper), np.stack([ab, 2 * ab]), b[:, 0])[1], np.linalg.solve(2 * dense, b[:, 0]), dtype
    )


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("width", [0, 1, 2])
def test_positive_banded_equations_have_the_solutions_of_scipy(width, dtype):
    n = 5
    upper, lower, b = dominant(3, 0, width, n, dtype), dominant(4, width, 0, n, dtype), numbers(5, (n, 2), dtype)
    upper[-1], lower[0] = abs(upper[-1]), abs(lower[0])
    upper[-1] += 30
    close(la.solveh_banded(upper, b), sl.solveh_banded(upper, b), dtype)
    close(la.solveh_banded(lower, b, lower=True), sl.solveh_banded(lower, b, lower=True), dtype)


@pytest.mark.parametrize("dtype", KINDS)
def test_derivatives_of_banded_equations(dtype):
    b, w = numbers(6, (4, 2), dtype), numbers(7, (4, 2), dtype)
    for lower, upper in ((1, 2), (2, 0)):
        ab, v = dominant(8, lower, upper, 4, dtype), numbers(9, (lower + upper + 1, 4), dtype)
        assert_derivatives(lambda y, k=(lower, upper): inner(la.solve_banded(k, y, b) ** 2, w), ab, v)
        assert_derivatives(lambda y, k=(lower, upper), a=ab: inner(la.solve_banded(k, a, y) ** 2, w), b, w)
    for low in (False, True):
        ab, v = dominant(10, 2, 0, 4, dtype), numbers(11, (3, 4), dtype)
        ab = ab if low else ab[::-1].copy()
        assert_derivatives(lambda y, low=low: inner(la.solveh_banded(y, b, lower=low) ** 2, w), ab, v)


@pytest.mark.parametrize("dtype", DTYPES)
def test_toeplitz_and_circulant_equations_have_the_solutions_of_scipy(dtype):
    c, r, b = numbers(12, (5,), dtype), numbers(13, (5,), dtype), numbers(14, (5, 2), dtype)
    c[0] = 6
    close(la.solve_toeplitz((c, r), b), sl.solve_toeplitz((c, r), b), dtype)
    close(la.solve_toeplitz(c, b[:, 0]), sl.solve_toeplitz(c, b[:, 0]), dtype)
    close(la.solve_toeplitz(np.stack([c, 2 * c]), b)[1], sl.solve_toeplitz(2 * c, b), dtype)
    close(la.solve_circulant(c, b), sl.solve_circulant(c, b), dtype)
    close(la.solve_circulant(np.stack([c, 2 * c]), b[:, 0])[1], sl.solve_circulant(2 * c, b[:, 0]), dtype)
    assert la.solve_toeplitz(c[:0], b[:0]).shape == la.solve_circulant(c[:0], b[:0]).shape == (0, 2)


def test_levinson_gives_way_to_lu_where_it_breaks_down():
    for c in ([0.0, 1.0, 2.0], [1e-9, 1.0, 2.0]):
        close(la.solve_toeplitz(c, [1.0, 2.0, 3.0]), np.linalg.solve(sl.toeplitz(c), [1.0, 2.0, 3.0]))


@pytest.mark.parametrize("dtype", KINDS)
def test_derivatives_of_toeplitz_and_circulant_equations(dtype):
    b, w = numbers(15, (4, 2), dtype), numbers(16, (4, 2), dtype)
    c, v = numbers(17, (2, 4), dtype), numbers(18, (2, 4), dtype)
    c[:, 0] = 6
    assert_derivatives(lambda y: inner(la.solve_toeplitz((y[0], y[1]), b), w), c, v)
    assert_derivatives(lambda y: inner(la.solve_toeplitz(c, y) ** 2, w), b, w)
    assert_derivatives(lambda y: inner(la.solve_circulant(y, b), w), c, v)
    assert_derivatives(lambda y: inner(la.solve_circulant(c, y) ** 2, w), b, w)


@pytest.mark.parametrize("dtype", [*DTYPES, "int64"])
def test_matrices_are_those_of_scipy(dtype):
    c, r = (numbers(i, (n,), dtype) if dtype != "int64" else np.arange(n) + i for i, n in ((19, 4), (20, 3)))
    blocks = (c, 3, np.ones((2, 1), dtype), r[:, None])
    for found, wanted in (
        (la.toeplitz(c), sl.toeplitz(c)),
        (la.toeplitz(c, r), sl.toeplitz(c, r)),
        (la.hankel(c), sl.hankel(c)),
        (la.hankel(c, r), sl.hankel(c, r)),
        (la.circulant(c), sl.circulant(c)),
        (la.companion(c), sl.companion(c)),
        (la.block_diag(*blocks), sl.block_diag(*blocks)),
        *[(la.convolution_matrix(c, n, m), sl.convolution_matrix(c, n, m))
          for m in ("full", "same", "valid") for n in (2, 6)],
    ):  # fmt: skip
        close(found, wanted, dtype)
        assert found.dtype == wanted.dtype
    stack = np.stack([c, 2 * c])
    for f in (la.toeplitz, la.hankel, la.circulant, la.companion, la.block_diag):
        one, two = (f(x[None, :] if f is la.block_diag else x) for x in stack)
        close(f(stack[:, None, :] if f is la.block_diag else stack)[1], two.numpy(), dtype)
        assert one.shape == two.shape


@pytest.mark.parametrize("name", ["hilbert", "invhilbert", "hadamard", "pascal", "invpascal", "helmert", "dft"])
def test_constant_matrices_are_those_of_scipy(name):
    np.testing.assert_allclose(getattr(la, name)(4), getattr(sl, name)(4))
    with pytest.raises(ArgumentError, match="n=-1 is negative"):
        getattr(la, name)(-1)


@pytest.mark.parametrize("dtype", KINDS)
def test_derivatives_of_matrices(dtype):
    c, v, w = numbers(21, (3,), dtype), numbers(22, (3,), dtype), numbers(23, (5, 5), dtype)

    def f(y):
        z = fn.sin(y)
        return (
            inner(la.toeplitz(z, z[:2]), w[:3, :2]) + inner(la.hankel(z), w[:3, :3]) + inner(la.circulant(z), w[:3, :3])
            + inner(la.block_diag(z, y[:, None]), w[:4, :4]) + inner(la.convolution_matrix(z, 3), w[:5, :3])
            + inner(la.companion(z), w[:2, :2])
        )  # fmt: skip

    assert_derivatives(f, c, v)


def test_failures_are_typed():
    zero = np.zeros((2, 3, 4))
    zero[0, 1] = 1
    with pytest.raises(NumericalError, match=r"solve_banded: matrix \(1,\) of the stack is singular"):
        la.solve_banded((1, 1), zero, np.ones(4))
    with pytest.raises(NumericalError, match=r"solveh_banded: matrix \(1,\) of the stack is not positive definite"):
        la.solveh_banded(zero[:, 1:], np.ones(4), lower=True)
    for f in (la.solve_toeplitz, la.solve_circulant):
        with pytest.raises(NumericalError, match=rf"{f.__name__}: matrix \(1,\) of the stack is singular"):
            f(np.asarray([[1.0, 0.0], [1.0, 1.0]]), np.ones(2))
        with pytest.raises(NumericalError, match=f"{f.__name__}: the operand contains nan"):
            f([np.nan, 1.0], np.ones(2))
        with pytest.raises(ShapeError):
            f(np.ones(3), np.ones(2))
    with pytest.raises(ShapeError, match="needs 3 diagonals"):
        la.solve_banded((1, 1), np.ones((2, 3)), np.ones(3))
    for bad, given in (
        (la.hadamard, (3,)),
        (la.companion, ([1.0],)),
        (la.toeplitz, (3.0,)),
        (la.convolution_matrix, ([1.0], 2, "odd")),
    ):
        with pytest.raises(TenferroError, match=bad.__name__):
            bad(*given)
