"""Actions of exponentials, projections on Krylov spaces, and singular values of operators."""

import numpy as np
import pytest
import scipy.linalg
import scipy.sparse as sp

import tenferro_runtime as tr
from tenferro_ad import check_grads, grad
from tenferro_linalg import DegenerateError, LinearOperator
from tenferro_runtime.extension import ArgumentError

RNG = np.random.default_rng(11)
A, B = RNG.normal(size=(6, 6)), RNG.normal(size=6)


@pytest.mark.parametrize("t", [1.0, -7.3, 2j, 0.5 - 1j, 0.0])
def test_exponential_actions(t):
    """Real and complex times, of matrices dense and sparse and of functions."""
    expected = scipy.linalg.expm(t * A) @ B
    for operand in (A, sp.csr_array(A), lambda x: tr.asarray(A) @ x):
        found = tr.linalg.expm_multiply(operand, tr.asarray(B), t)
        np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-13 * np.abs(expected).max())


def test_exponential_actions_at_several_times():
    """A state for each time, in any containers, and a bound of the norm."""
    times = np.array([0.0, 0.5, 2.0])
    found = tr.linalg.expm_multiply(lambda s: {"x": s["v"], "v": -4 * s["x"]}, {"x": np.ones(1), "v": np.zeros(1)},
                                    times, norm=4.0)  # fmt: skip
    np.testing.assert_allclose(found["x"][:, 0], np.cos(2 * times), atol=1e-13)


def test_derivatives_of_exponential_actions():
    """By operator, state and time, eager and compiled."""

    def f(a, b, t):
        return tr.sum(tr.linalg.expm_multiply(a, b, t) ** 2)

    arguments = tr.asarray(A / 4), tr.asarray(B), tr.asarray(0.7)
    check_grads(f, arguments, order=1)
    np.testing.assert_allclose(tr.compile(grad(f))(*arguments), grad(f)(*arguments), atol=1e-12)
    y = scipy.linalg.expm(0.7 * A / 4) @ B
    assert np.isclose(grad(f, 2)(*arguments).item(), 2 * y @ (A / 4) @ y)


def test_projections():
    """The relations of Arnoldi and Lanczos, their derivative, and an invariant space."""
    basis, matrix = tr.linalg.arnoldi(A, tr.asarray(B), 4)
    np.testing.assert_allclose(A @ basis.numpy()[:4].T, basis.numpy().T @ matrix.numpy(), atol=1e-13)
    np.testing.assert_allclose(basis.numpy() @ basis.numpy().T, np.eye(5), atol=1e-13)
    h = A + A.T + 1j * (np.triu(A, 1) - np.triu(A, 1).T)
    q, d, e = (x.numpy() for x in tr.linalg.lanczos(h, tr.asarray(B), 4))
    np.testing.assert_allclose(h @ q[:4].T, q[:4].T @ (np.diag(d) + np.diag(e[:3], 1) + np.diag(e[:3], -1))
                               + e[3] * np.outer(q[4], np.eye(4)[3]), atol=1e-13)  # fmt: skip
    check_grads(lambda a, b: tr.sum(tr.linalg.arnoldi(a, b, 2).matrix ** 3), (tr.asarray(A), tr.asarray(B)), order=1)
    assert np.array_equal(tr.linalg.arnoldi(2 * np.eye(3), np.ones(3), 2).matrix[1:], np.zeros((2, 2)))
    with pytest.raises(ArgumentError, match="at least 1 as m"):
        tr.linalg.lanczos(A, B, 0)


@pytest.mark.stepwise
@pytest.mark.parametrize("shape", [(12, 7), (7, 12)])
def test_singular_triplets(shape):
    """The largest values with their vectors, of matrices and of functions with their adjoint."""
    u, v = (np.linalg.qr(RNG.normal(size=(n, 7)) + 1j * RNG.normal(size=(n, 7)))[0] for n in shape)
    a = u * np.array([5.0, 3.0, 3.0, 1.0, 0.5, 0.2, 0.1]) @ v.conj().T
    operator = LinearOperator(lambda x: tr.asarray(a) @ x, lambda y: tr.asarray(a.conj().T) @ y)
    for operand, start in ((a, None), (operator, np.ones(shape[1], complex))):
        left, s, right = (x.numpy() for x in tr.linalg.svds(operand, 3, v0=start))
        np.testing.assert_allclose(s, [5, 3, 3], atol=1e-12)
        np.testing.assert_allclose(a @ right.conj().T, left * s, atol=1e-10)
        np.testing.assert_allclose(left.conj().T @ left, np.eye(3), atol=1e-12)
    with pytest.raises(ArgumentError, match="needs the adjoint"):
        tr.linalg.svds(lambda x: x, 1)


@pytest.mark.stepwise
def test_derivatives_of_singular_values():
    """Of values, and of a projector on singular vectors."""
    a = tr.asarray(RNG.normal(size=(6, 5)))
    weights = tr.asarray(RNG.normal(size=(5, 5)))

    def few(a):
        operator = LinearOperator(lambda x: a @ x, lambda y: tr.matrix_transpose(a) @ y)
        _, s, vh = tr.linalg.svds(operator, 2, v0=np.ones(5), ncv=4)
        return tr.sum(s**3) + tr.sum((tr.matrix_transpose(vh) @ vh) * weights)

    def dense(a):
        _, s, vh = tr.linalg.svd(a, full_matrices=False)
        return tr.sum(s[:2] ** 3) + tr.sum((tr.matrix_transpose(vh[:2]) @ vh[:2]) * weights)

    np.testing.assert_allclose(grad(few)(a), grad(dense)(a), atol=1e-8)
    with pytest.raises(DegenerateError, match="the derivative of svds does not exist"):
        grad(few)(tr.asarray(np.eye(6, 5) * [3.0, 2.0, 2.0, 1.0, 1.0]))
