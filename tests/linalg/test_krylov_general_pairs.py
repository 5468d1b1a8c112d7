"""Eigenpairs of general operators that are only multiplied with: values, multiplets, derivatives, and what has none."""

import numpy as np
import pytest

import tenferro_runtime as tr
from tenferro_ad import check_grads, grad, jvp
from tenferro_linalg import ConvergenceError, DegenerateError, GaugeError, LinearOperator
from tenferro_runtime.extension import ArgumentError, ShapeError

RNG = np.random.default_rng(5)


def matrix(values, dtype="float64"):
    """A matrix with given eigenvalues, pairs of conjugate ones for a real matrix, that is not normal."""
    n = len(values)
    inner = np.diag(np.asarray(values, complex))
    if not dtype.startswith("complex"):
        inner = np.diag(np.real(values))
        for i in np.flatnonzero(np.imag(values) > 0):
            inner[i, i + 1], inner[i + 1, i] = np.imag(values[i]), -np.imag(values[i])
    a = RNG.normal(size=(n, n)) + (1j * RNG.normal(size=(n, n)) if dtype.startswith("complex") else 0)
    q = np.linalg.qr(a)[0] @ (np.eye(n) + 0.3 * np.triu(RNG.uniform(-1, 1, size=(n, n)), 1))
    return (q @ inner @ np.linalg.inv(q)).astype(dtype)


def ordered(w):
    """Eigenvalues in an order that rounding does not change."""
    return np.sort_complex(np.round(w, 3))


PAIRS = np.r_[6.0, -5.5, 3 + 4j, 3 - 4j, -2 + 4.5j, -2 - 4.5j, np.linspace(-2, 2, 24)]


@pytest.mark.parametrize(("which", "dtype"), [("LM", "float64"), ("SR", "complex128"), ("LI", "float32")])
def test_pairs(which, dtype):
    """Wanted eigenvalues, and vectors of norm 1 with small residuals, of a matrix and of a function."""
    tight = 2e3 * np.finfo(dtype).eps
    a = matrix(PAIRS, dtype)
    expected = {"LM": [6, -5.5, 3 + 4j, 3 - 4j], "SR": [-5.5, -2 + 4.5j, -2 - 4.5j, -2], "LI": PAIRS[[4, 5, 2, 3]]}
    for operand, v0 in ((a, None), (lambda x: tr.asarray(a) @ x, np.ones(len(a), dtype))):
        w, v = tr.linalg.eigs(operand, 4, which=which, ncv=12, v0=v0)
        assert w.dtype == v.dtype == np.result_type(dtype, np.complex64)
        assert np.allclose(ordered(w.numpy()), ordered(expected[which]), atol=2e-3)
        assert np.allclose(a @ v.numpy(), v.numpy() * w.numpy(), atol=10 * tight)
        assert np.allclose(np.linalg.norm(v.numpy(), axis=0), 1, atol=tight)


def test_conjugate_pair_at_the_end():
    """A number of values that takes one of a conjugate pair, and a basis as small as possible."""
    a = matrix(PAIRS)
    w, v = tr.linalg.eigs(a, 3, ncv=6)
    assert np.allclose(a @ v.numpy(), v.numpy() * w.numpy(), atol=1e-10)
    assert np.allclose(np.abs(w), [6, 5.5, 5]) and np.isclose(np.abs(w[2].numpy().imag), 4)


def test_multiplets_are_complete():
    """Equal eigenvalues are found as often as they have vectors, though one start reaches one of each."""
    a = matrix(np.r_[-4.0, -4.0, -4.0, -3 + 1j, -3 - 1j, np.linspace(0, 2, 15)])
    w, v = tr.linalg.eigs(a, 5, which="SR", ncv=10)
    assert np.allclose(ordered(w.numpy()), [-4, -4, -4, -3 - 1j, -3 + 1j], atol=1e-8)
    assert np.linalg.matrix_rank(v.numpy(), tol=1e-6) == 5


@pytest.mark.stepwise
def test_few_unknowns():
    """A space that is no larger than the basis; a single unknown; containers."""
    a = matrix([1 + 2j, 1 - 2j, 2.0, 4.0])
    w = tr.linalg.eigs(a, 4, which="LR", return_eigenvectors=False).numpy()
    assert np.allclose(w[:2], [4, 2]) and np.allclose(ordered(w[2:]), [1 - 2j, 1 + 2j])
    assert np.allclose(tr.linalg.eigs(np.array([[3.0]]), 1).eigenvalues, [3])
    start = {"u": np.ones(2), "v": [np.ones((1, 2))]}

    def turned(t):
        return {"u": 3 * tr.flip(t["u"]) * tr.asarray([1.0, -1.0]), "v": [t["v"][0]]}

    w, v = tr.linalg.eigs(turned, 2, v0=start)
    assert np.allclose(ordered(w.numpy()), [-3j, 3j]) and v["u"].shape == (2, 2) and v["v"][0].shape == (1, 2, 2)
    assert np.allclose(v["u"] / v["u"][0], [[1, 1], w.numpy() / 3])  # type: ignore[arg-type]


@pytest.mark.parametrize("dtype", [pytest.param("float64", marks=pytest.mark.stepwise), "complex128"])
def test_derivatives(dtype):
    """Values, and functions of vectors that do not depend on their phases, to second order."""
    a = tr.asarray(matrix([5.0, -4 + 1j, -4 - 1j, 1.0, 0.3, -0.5], dtype))

    def f(a):
        w, v = tr.linalg.eigs(lambda x: a @ x, 3, ncv=5, v0=np.ones(6, dtype))
        return tr.real(tr.sum(w**3)) + tr.sum(tr.abs(v) ** 4)

    check_grads(f, (a,), order=1)
    if dtype == "float64":
        direction = tr.asarray(RNG.normal(size=(6, 6)))
        slope = grad(lambda t: f(a + t * direction))
        assert np.isclose(grad(slope)(0.0).item(), (slope(1e-5) - slope(-1e-5)).item() / 2e-5, rtol=1e-6)


@pytest.mark.stepwise
def test_derivatives_in_lanes_programs_and_by_a_known_adjoint():
    """Derivatives are those of `eig`, of a matrix through a kept program, of lanes, and with an adjoint given."""
    stack = np.stack(
        [matrix(np.r_[5.0, -4.0, np.linspace(-1, 1, 10)]), matrix(np.r_[3.0, -6.0, np.linspace(-1, 1, 10)])]
    )

    def loss(w, v):
        return tr.sum(tr.real(tr.exp(w))) + tr.sum(tr.abs(v[0]) ** 2)

    def few(a):
        return loss(*tr.linalg.eigs(a, 2, ncv=6))

    def lanes(a):
        operator = LinearOperator(lambda x: a @ x, lambda y: tr.matrix_transpose(a) @ y)
        return loss(*tr.linalg.eigs(operator, 2, ncv=6, v0=np.ones(12)))

    def dense(a):
        w, v = tr.linalg.eig(a)
        first = tr.argsort(-tr.abs(tr.stop_gradient(w)))[:2]
        return loss(tr.take(w, first), tr.take(v, first, axis=1))

    expected = np.stack([grad(dense)(a).numpy() for a in stack])
    assert np.allclose(grad(few)(tr.asarray(stack[1])), expected[1], atol=1e-7)
    assert np.allclose(tr.vmap(grad(lanes))(stack), expected, atol=1e-7)


@pytest.mark.stepwise
def test_derivatives_within_multiplets():
    """The trace over a multiplet has a derivative; single values, phases, and a part of the multiplet have none."""
    a, direction = tr.asarray(matrix(np.r_[-4.0, -4.0, -3.0, np.linspace(0, 2, 7)])), RNG.normal(size=(10, 10))

    def of(f, k):
        return lambda a: f(*tr.linalg.eigs(lambda x: a @ x, k, which="SR", ncv=8, v0=np.ones(10)))

    def trace(w, v):
        return tr.real(tr.sum(w**2))

    def dense(t):
        w = np.linalg.eigvals(a.numpy() + t * direction)
        return np.sum(w[np.argsort(w.real)[:3]] ** 2).real

    slope = (dense(1e-5) - dense(-1e-5)) / 2e-5
    assert np.isclose(np.sum(grad(of(trace, 3))(a).numpy() * direction), slope, rtol=1e-6)
    assert np.isclose(jvp(of(trace, 3), (a,), (tr.asarray(direction),))[1].item(), slope, rtol=1e-6)
    with pytest.raises(DegenerateError):
        grad(of(lambda w, v: tr.real(w[0]), 3))(a)
    with pytest.raises(GaugeError, match="phase"):
        grad(of(lambda w, v: tr.imag(v[0, 0]), 1))(tr.asarray(matrix(np.r_[-5.0, np.linspace(0, 2, 9)])))
    with pytest.raises(DegenerateError, match="the derivative of eigs does not exist"):
        grad(of(trace, 1))(a)


@pytest.mark.stepwise
def test_failures():
    """No convergence, vectors that are dependent, entries that are not finite, and arguments that do not fit."""
    a = matrix(PAIRS)
    with pytest.raises(ConvergenceError, match="eigs has not converged"):
        tr.linalg.eigs(a, 2, maxiter=1)
    jordan = np.diag(np.r_[5.0, 5.0, 5.0, np.linspace(0, 2, 47)])
    jordan[0, 1] = jordan[1, 2] = 1.0  # three vectors in one direction: with two, rounding decides whether they differ
    with pytest.raises(ConvergenceError, match="eigs has not converged"):
        tr.linalg.eigs(jordan, 3)
    with pytest.raises(ArithmeticError):
        tr.linalg.eigs(np.full((60, 60), np.nan), 2)
    with pytest.raises(ShapeError, match="lower k"):
        tr.linalg.eigs(np.eye(3), 4)
    with pytest.raises(ArgumentError, match="pass an initial vector"):
        tr.linalg.eigs(lambda x: x, 1)
    with pytest.raises(ArgumentError, match="which="):
        tr.linalg.eigs(a, 1, which="SA")
    with pytest.raises(ArgumentError, match="at least k \\+ 2 = 5 as ncv"):
        tr.linalg.eigs(a, 3, ncv=4)
