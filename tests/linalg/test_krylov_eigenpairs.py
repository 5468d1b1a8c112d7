"""Eigenpairs of operators that are only multiplied with: values, multiplets, derivatives, and what has none."""

import numpy as np
import pytest

import tenferro_runtime as tr
from tenferro_ad import check_grads, grad, jvp
from tenferro_linalg import ConvergenceError, DegenerateError, GaugeError
from tenferro_runtime.extension import ArgumentError, ShapeError

RNG = np.random.default_rng(3)
N = 12


def hermitian(a):
    return (a + tr.conj(tr.matrix_transpose(a))) / 2


def matrix(values, dtype="float64"):
    """A Hermitian matrix with given eigenvalues."""
    n = len(values)
    a = RNG.normal(size=(n, n)) + (1j * RNG.normal(size=(n, n)) if dtype.startswith("complex") else 0)
    q = np.linalg.qr(a)[0]
    return (q * values @ q.conj().T).astype(dtype)


@pytest.mark.parametrize(("which", "dtype"), [("SA", "float64"), ("LM", "complex64")])
def test_pairs(which, dtype):
    """Eigenvalues, and orthonormal vectors with small residuals, of a matrix and of a function."""
    n, k, tight = 60, 3, 200 * np.finfo(dtype).eps
    values = np.r_[np.linspace(-4, 3, n - 3), 5.0, 6.0, -7.0]
    a = matrix(values, dtype)
    expected = {"SA": np.sort(values)[:k], "LA": np.sort(values)[-k:], "LM": np.array([-7.0, 5.0, 6.0])}[which]
    for operand, v0 in ((a, None), (lambda x: tr.asarray(a) @ x, np.ones(n, dtype))):
        w, v = tr.linalg.eigsh(operand, k, which=which, v0=v0)
        assert w.dtype == np.finfo(dtype).dtype and v.dtype == np.dtype(dtype)
        assert np.allclose(w, expected, atol=10 * tight)
        assert np.allclose(a @ v.numpy(), v.numpy() * w.numpy(), atol=10 * tight)
        assert np.allclose(v.numpy().conj().T @ v.numpy(), np.eye(k), atol=10 * tight)


@pytest.mark.stepwise
@pytest.mark.parametrize("seed", range(2))
def test_multiplets_are_complete(seed):
    """Equal eigenvalues are found as often as they occur, though one start reaches one vector of each multiplet."""
    values = np.r_[-3.0, -3.0, -3.0, -1.0, -1.0, np.linspace(0, 5, 15)]
    w = tr.linalg.eigsh(
        matrix(values), 5, which="SA", ncv=8, v0=np.random.default_rng(seed).normal(size=20)
    ).eigenvalues
    assert np.allclose(w, values[:5], atol=1e-10)


@pytest.mark.stepwise
def test_few_unknowns():
    """A space that is no larger than the basis; a single unknown; containers."""
    a = matrix(np.array([1.0, 2.0, 2.0, 4.0]))
    assert np.allclose(tr.linalg.eigsh(a, 4, return_eigenvectors=False), [1, 2, 2, 4])
    assert np.allclose(tr.linalg.eigsh(np.array([[3.0]]), 1).eigenvalues, [3])
    start = {"u": np.ones(2), "v": [np.ones((1, 2))]}
    w, v = tr.linalg.eigsh(lambda t: {"u": 3 * t["u"], "v": [2 * t["v"][0]]}, 2, which="SA", v0=start)
    assert np.allclose(w, [2, 2]) and v["u"].shape == (2, 2) and v["v"][0].shape == (1, 2, 2)


@pytest.mark.parametrize("dtype", [pytest.param("float64", marks=pytest.mark.stepwise), "complex128"])
def test_derivatives(dtype):
    """Values and functions of vectors that do not depend on their phases, to second order."""
    a = tr.asarray(matrix(np.linspace(-2.0, 3.0, 6) ** 3, dtype))
    start = np.ones(6, dtype)

    def f(a):
        w, v = tr.linalg.eigsh(lambda x: hermitian(a) @ x, 2, which="SA", ncv=4, v0=start)
        return tr.sum(w**2 * tr.asarray([1.0, 2.0])) + tr.sum(tr.abs(v) ** 4)

    check_grads(f, (a,), order=2 if dtype == "float64" else 1)


def test_derivative_of_a_matrix_in_lanes_and_programs():
    """A matrix goes through a program that is kept; its derivative is that of `eigh`."""
    stack = np.stack([matrix(np.linspace(-2.0, 3.0, N)), matrix(np.linspace(-1.0, 5.0, N))])

    def few(a):
        w, v = tr.linalg.eigsh(hermitian(a), 2, which="SA", ncv=6)
        return tr.sum(tr.exp(w)) + tr.sum(v[0] ** 2 * tr.asarray([1.0, 3.0]))

    def lanes(a):
        w, v = tr.linalg.eigsh(lambda x: hermitian(a) @ x, 2, which="SA", ncv=6, v0=np.ones(N))
        return tr.sum(tr.exp(w)) + tr.sum(v[0] ** 2 * tr.asarray([1.0, 3.0]))

    def dense(a):
        w, v = tr.linalg.eigh(hermitian(a))
        return tr.sum(tr.exp(w[:2])) + tr.sum(v[0, :2] ** 2 * tr.asarray([1.0, 3.0]))

    expected = np.stack([grad(dense)(a).numpy() for a in stack])
    assert np.allclose(grad(few)(tr.asarray(stack[1])), expected[1], atol=1e-8)
    assert np.allclose(tr.vmap(grad(lanes))(stack), expected, atol=1e-8)


@pytest.mark.stepwise
def test_derivatives_within_multiplets():
    """A function of the subspace has a derivative where eigenvalues in it are equal; else a typed error says why."""
    values = np.r_[-3.0, -3.0, -3.0, -1.0, np.linspace(0, 5, N - 4)]
    a, direction, weights = tr.asarray(matrix(values)), *map(tr.asarray, RNG.normal(size=(2, N, N)))

    def of(f, k):
        return lambda a: f(*tr.linalg.eigsh(lambda x: hermitian(a) @ x, k, which="SA", ncv=8, v0=np.ones(N)))

    def projected(w, v):
        return tr.sum((v @ tr.matrix_transpose(v)) * weights) + tr.sum(tr.exp(w))

    def dense(t):
        w, v = np.linalg.eigh((lambda b: (b + b.T) / 2)(a.numpy() + t * direction.numpy()))
        return np.sum((v[:, :3] @ v[:, :3].T) * weights.numpy()) + np.sum(np.exp(w[:3]))

    slope = (dense(1e-5) - dense(-1e-5)) / 2e-5
    assert np.isclose(tr.sum(grad(of(projected, 3))(a) * direction).item(), slope, rtol=1e-7)
    assert np.isclose(jvp(of(projected, 3), (a,), (direction,))[1].item(), slope, rtol=1e-7)
    with pytest.raises(DegenerateError, match="w\\[0\\]"):
        grad(of(lambda w, v: w[0], 3))(a)
    with pytest.raises(GaugeError, match="depends on the choice"):
        grad(of(lambda w, v: tr.sum(v[:, 0] ** 4), 3))(a)
    with pytest.raises(DegenerateError, match="the derivative of eigsh does not exist"):
        grad(of(lambda w, v: tr.sum(w), 2))(a)


@pytest.mark.stepwise
def test_failures():
    """No convergence, entries that are not finite, and arguments that do not fit."""
    a = matrix(np.linspace(-2.0, 3.0, 60))
    with pytest.raises(ConvergenceError, match="eigsh has not converged"):
        tr.linalg.eigsh(a, 2, maxiter=1)
    with pytest.raises((ConvergenceError, tr.linalg.ConvergenceError, ArithmeticError, ValueError)):
        tr.linalg.eigsh(np.full((60, 60), np.nan), 2)
    with pytest.raises(ShapeError, match="lower k"):
        tr.linalg.eigsh(np.eye(3), 4)
    with pytest.raises(ArgumentError, match="pass an initial vector"):
        tr.linalg.eigsh(lambda x: x, 1)
    with pytest.raises(ArgumentError, match="which="):
        tr.linalg.eigsh(a, 1, which="LR")
    with pytest.raises(ArgumentError, match="above k=3 as ncv"):
        tr.linalg.eigsh(a, 3, ncv=3)
