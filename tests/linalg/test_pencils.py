"""Eigenvalues of two matrices and of tridiagonal ones: values, derivatives, where these do not exist."""

from typing import Any

import numpy as np
import pytest
import scipy.linalg

import tenferro_linalg as la
import tenferro_runtime as tr
from linalg_checks import DTYPES, adjoint, assert_derivatives, hermitian, inner, numbers
from tenferro_ad import check_grads, grad
from tenferro_linalg import DegenerateError, GaugeError
from tenferro_tensor import functions as fn
from tenferro_tensor import tensor
from tenferro_tensor_core import ArgumentError, NumericalError, ShapeError

KINDS = ("float64", "complex128")


def host(x: Any) -> Any:
    return x._concrete()


def positive(seed: int, shape: tuple[int, ...], dtype: str = "float64") -> Any:
    x = numbers(seed, shape, dtype)
    return x @ x.conj().swapaxes(-1, -2) + np.eye(shape[-1], dtype=dtype)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("kind", [1, 2, 3])
@pytest.mark.parametrize("lead", [(), (2, 3)])
def test_values(lead: tuple[int, ...], kind: int, dtype: str) -> None:
    a = numbers(1, (*lead, 4, 4), dtype)
    a, b = a + a.conj().swapaxes(-1, -2), positive(2, (4, 4), dtype)
    w, v = la.eigh(tensor(a), tensor(b), type=kind)
    w, v, slack = host(w), host(v), 1e-3 if np.dtype(dtype).char in "fF" else 1e-10
    assert v.dtype == dtype and w.dtype == v.real.dtype
    left, right = {1: (a, b @ v), 2: (a @ b, v), 3: (b @ a, v)}[kind]
    np.testing.assert_allclose(left @ v, right * w[..., None, :], atol=slack)
    gram = v.conj().swapaxes(-1, -2) @ (np.linalg.inv(b) if kind == 3 else b) @ v
    np.testing.assert_allclose(gram, np.broadcast_to(np.eye(4), gram.shape), atol=slack)
    np.testing.assert_allclose(host(la.eigvalsh(tensor(a), tensor(b), type=kind)), w, atol=slack)
    expected = [scipy.linalg.eigh(m, b, type=kind, eigvals_only=True) for m in a.reshape(-1, 4, 4)]
    np.testing.assert_allclose(w.reshape(-1, 4), expected, atol=slack)


@pytest.mark.parametrize("dtype", DTYPES)
def test_values_of_general_pencils(dtype: str) -> None:
    a, b = numbers(3, (2, 4, 4), dtype), numbers(4, (4, 4), dtype)
    w, v = la.eig(tensor(a), tensor(b))
    slack = 2e-3 if np.dtype(dtype).char in "fF" else 1e-11
    np.testing.assert_allclose(a @ host(v), b @ host(v) * host(w)[:, None, :], atol=slack)
    np.testing.assert_allclose(host(la.eigvals(tensor(a), tensor(b))), host(w), atol=slack)


@pytest.mark.parametrize("dtype", KINDS)
@pytest.mark.parametrize("kind", [1, 2, 3])
def test_derivatives(kind: int, dtype: str) -> None:
    a, b, c = numbers(5, (3, 3), dtype), positive(6, (3, 3), dtype), numbers(7, (3, 3), dtype)

    def loss(x: Any, y: Any) -> Any:
        w, v = la.eigh(x, y, type=kind)
        return inner(la.matmul(v * fn.expand_dims(fn.sin(w), axis=-2), adjoint(v)), c)

    values = lambda x, y: fn.sum(la.eigvalsh(x, y, type=kind) ** 3)
    for f in (loss, values):
        assert_derivatives(lambda x, f=f: f(x, tensor(b)), a, numbers(8, (3, 3), dtype), rtol=1e-6)
        assert_derivatives(lambda y, f=f: f(tensor(a), y), b, numbers(9, (3, 3), dtype), rtol=1e-6)


@pytest.mark.parametrize("dtype", KINDS)
def test_derivatives_of_general_pencils(dtype: str) -> None:
    a, b = numbers(10, (3, 3), dtype), numbers(11, (3, 3), dtype)
    values = lambda x, y: fn.sum(fn.real(la.eigvals(x, y) ** 2))
    assert_derivatives(lambda x: values(x, tensor(b)), a, numbers(12, (3, 3), dtype), rtol=1e-5)
    assert_derivatives(lambda y: values(tensor(a), y), b, numbers(13, (3, 3), dtype), rtol=1e-5)


def test_equal_values_of_a_pencil() -> None:
    """A multiplet counts all together; its members alone are refused, with the pair."""
    b = positive(14, (3, 3))
    root = np.linalg.cholesky(b)
    a = root @ hermitian([1.0, 1.0, 3.0], seed=15) @ root.T
    c = numbers(16, (3, 3))

    def projector(x: Any) -> Any:
        v = la.eigh(x, tensor(b)).eigenvectors[:, :2]
        return inner(la.matmul(v, adjoint(v)), c)

    g = host(grad(projector)(tensor(a)))
    d = numbers(17, (3, 3))
    step = 1e-4
    moved = [float(host(projector(tensor(a + s * step * (d + d.T))))) for s in (1, -1)]
    np.testing.assert_allclose((g * (d + d.T)).sum(), (moved[0] - moved[1]) / (2 * step), rtol=1e-5)
    with pytest.raises(DegenerateError, match=r"w\[0\] = 1 and w\[1\] = 1"):
        grad(lambda x: la.eigvalsh(x, tensor(b))[0])(tensor(a))
    with pytest.raises(GaugeError, match="the choice of the eigenvectors V"):
        grad(lambda x: fn.sum(la.eigh(x, tensor(b)).eigenvectors[:, 0] ** 2))(tensor(a))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("n", [1, 2, 7])
def test_tridiagonal_values(n: int, dtype: str) -> None:
    d, e = numbers(18, (2, 1, n), dtype), numbers(19, (3, n - 1), dtype)
    w, v = la.eigh_tridiagonal(tensor(d), tensor(e))
    slack = 1e-4 if dtype == "float32" else 1e-12
    assert w.shape == (2, 3, n) and v.shape == (2, 3, n, n) and w.dtype == v.dtype == dtype
    alone = host(la.eigvalsh_tridiagonal(tensor(d), tensor(e)))
    np.testing.assert_allclose(alone, host(w), atol=slack)
    for i, j in np.ndindex(2, 3):
        np.testing.assert_allclose(alone[i, j], scipy.linalg.eigvalsh_tridiagonal(d[i, 0], e[j]), atol=slack)


def test_tridiagonal_derivatives() -> None:
    d, e, c = numbers(20, (2, 4)), numbers(21, (2, 3)), numbers(22, (2, 4, 4))

    def loss(d: Any, e: Any) -> Any:
        w, v = la.eigh_tridiagonal(d, e)
        return inner(la.matmul(v * fn.expand_dims(fn.sin(w), axis=-2), adjoint(v)), c)

    values = lambda d, e: fn.sum(la.eigvalsh_tridiagonal(d, e) ** 3)
    for f in (loss, values, tr.compile(values)):
        assert_derivatives(lambda x, f=f: f(x, tensor(e)), d, numbers(23, (2, 4)), rtol=1e-6)
        assert_derivatives(lambda x, f=f: f(tensor(d), x), e, numbers(24, (2, 3)), rtol=1e-6)
    first = lambda d, e: la.eigvalsh_tridiagonal(d, e)[0]
    with pytest.raises(DegenerateError, match="eigenvalues"):
        grad(first)(tensor(np.ones(3)), tensor(np.zeros(2)))


def test_bad_input() -> None:
    one = tensor(np.eye(2))
    with pytest.raises(NumericalError, match=r"matrix \(1,\) of the stack is not positive definite"):
        la.eigh(one, tensor(np.stack([np.eye(2), -np.eye(2)])))
    with pytest.raises(NumericalError, match="singular"):
        la.eigvals(one, tensor(np.zeros((2, 2))))
    with pytest.raises(ShapeError, match=r"two matrices of one size, got shapes \(2, 2\) and \(3, 3\)"):
        la.eigvalsh(one, tensor(np.eye(3)))
    with pytest.raises(ArgumentError, match="eigh: type=4 is not one of 1, 2, 3"):
        la.eigh(one, one, type=4)
    with pytest.raises(ShapeError, match=r"got shapes \(2,\) and \(2,\)"):
        la.eigvalsh_tridiagonal(tensor(np.ones(2)), tensor(np.ones(2)))
    with pytest.raises(ArgumentError, match="takes real diagonals, got complex128"):
        la.eigh_tridiagonal(tensor(np.ones(2)), tensor(np.ones(1) * 1j))
    with pytest.raises(NumericalError, match=r"contains nan at index \(1,\)"):
        la.eigvalsh_tridiagonal(tensor(np.array([1.0, np.nan])), tensor(np.ones(1)))


def test_programs_and_lanes() -> None:
    a, b = tensor(numbers(25, (2, 3, 3))), tensor(positive(26, (2, 3, 3)))
    f = lambda a, b: fn.sum(la.eigvalsh(a, b) ** 2)
    expected = [host(g) for g in grad(f, (0, 1))(a, b)]
    for other in (tr.vmap(grad(f, (0, 1))), tr.compile(grad(f, (0, 1)))):
        for g, e in zip(other(a, b), expected, strict=True):
            np.testing.assert_allclose(host(g), e, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("triangle", ["L", "U"])
@pytest.mark.parametrize("dtype", ["float64", "complex128"])
def test_one_triangle(triangle: Any, dtype: str) -> None:
    """The other one, and imaginary parts of the diagonal, are not read."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(3, 4, 4)).astype(dtype)
    x = x + 1j * rng.normal(size=x.shape) if dtype == "complex128" else x
    wanted = np.linalg.eigvalsh(x, triangle)
    np.testing.assert_allclose(np.asarray(la.eigvalsh(x, UPLO=triangle)), wanted, atol=1e-13)
    w, v = la.eigh(tr.asarray(x), UPLO=triangle)
    np.testing.assert_allclose(np.asarray(w), wanted, atol=1e-13)
    half = np.tril(x, -1) if triangle == "L" else np.triu(x, 1)
    whole = half + half.conj().swapaxes(-1, -2) + np.real(x) * np.eye(4)
    np.testing.assert_allclose(np.asarray(v) * wanted[:, None, :], whole @ np.asarray(v), atol=1e-13)
    check_grads(lambda x: tr.sum(tr.sin(la.eigvalsh(x, UPLO=triangle))), (tr.asarray(x),), order=2)
    with pytest.raises(ArgumentError, match="UPLO='X' is not one of"):
        la.eigh(x, UPLO="X")
