"""Forms, equations, functions and structures of matrices by XLA: values and gradients of the CPU backend."""

import numpy as np
import pytest

import tenferro_linalg as tl
import tenferro_runtime as tr
from linalg_checks import total_of
from tenferro_ad import grad
from tenferro_runtime.extension import NumericalError
from tenferro_xla import XlaExecutor

XLA = XlaExecutor()
RNG = np.random.default_rng(5)


def draw(shape, dtype):
    x = RNG.standard_normal(shape)
    return (x + 1j * RNG.standard_normal(shape) if np.dtype(dtype).kind == "c" else x).astype(dtype)


def adjoint(x):
    return tr.conj(tr.matrix_transpose(x))


def positive(x):
    return x @ adjoint(x) + tr.eye(x.shape[-1], dtype=x.dtype)


def hermitian_band(a):
    main = tr.real(a[..., :1, :]) * 0.0 + 9.0
    return tr.concat([tr.astype(main, a.dtype), a[..., 1:3, :] * 0.5], axis=-2)


GROUPS = {
    "forms": lambda a: (
        *tl.schur(tr.astype(a, "complex128")),
        *map(tr.abs, tl.hessenberg(a)),
        tl.rank_revealing_qr(a).R,
        tl.eigh_trunc(positive(a), 2).eigenvalues,
        tl.qr_trunc(a, 2).R,
        tl.svd_random(a, 2).S,
    ),
    "equations": lambda a: (
        tl.solve_sylvester(a, positive(a[..., :3, :3]), a[..., :3]),
        tl.solve_lyapunov(a, a + 1.0),
        tl.solve_discrete_lyapunov(a * 0.3, a),
        tl.solve_continuous_are(a, a[..., :2], positive(a), positive(a[..., :2, :2])),
        tl.solve_discrete_are(a, a[..., :2], positive(a), positive(a[..., :2, :2])),
        tl.lstsq(a[..., :2], a).x,
    ),
    "functions": lambda a: (tl.sqrtm(positive(a) + a * 0.3), tl.logm(positive(a) + a * 0.3), tl.signm(a)),
    "structures": lambda a: (
        tl.solve_banded((1, 1), a, adjoint(a)),
        tl.solveh_banded(hermitian_band(a), a, lower=True),
        tl.solve_toeplitz((a[..., 0, :], a[..., 1, :]), a),
        tl.solve_circulant(a[..., 0, :], a),
        tl.eigvalsh_tridiagonal(tr.real(a[..., 0, :]), tr.real(a[..., 1, :-1])),
    ),
}


def agree(f, *arrays, tolerance):
    values = [tr.asarray(a) for a in arrays]
    program = tr.trace(f, *values)
    for got, want in zip(XLA.run(program, *values), program.run(*values), strict=True):
        assert got.spec is want.spec
        scale = max(1.0, float(np.abs(want.numpy()).max(initial=0)))
        np.testing.assert_allclose(got.numpy(), want.numpy(), rtol=tolerance, atol=tolerance * scale)


@pytest.mark.parametrize("name", GROUPS)
def test_values_and_gradients(name):
    """Real equations and functions, whose forms are complex; complex forms and structures, and in single precision."""
    f, x = GROUPS[name], draw((2, 3, 3), "float64" if name in ("equations", "functions") else "complex128")
    agree(lambda a: (*f(a), grad(total_of(f))(a)), x, tolerance=1e-8)
    agree(f, np.zeros((0, 3, 3)), tolerance=0)


def test_single_precision():
    f = lambda a: (tl.sqrtm(positive(a)), *tl.schur(a), tl.solve_sylvester(a, a, a), tl.solve_circulant(a[0], a[1]))
    agree(f, draw((3, 3), "complex64"), tolerance=1e-4)


def test_large_bands_with_exchanges():
    n = 60
    for dtype, (low, up) in (("float64", (3, 1)), ("complex128", (1, 0))):
        ab, b = draw((3, low + up + 1, n), dtype), draw((3, n, 2), dtype)
        agree(lambda ab, b, low=low, up=up: tl.solve_banded((low, up), ab, b), ab, b, tolerance=1e-9)


@pytest.mark.parametrize("dtype", ["float64", "complex128"])
def test_sparse_products(dtype):
    places = (np.array([0, 2, 2, 3, 0]), np.array([1, 0, 2, 2, 2]))
    build = lambda data: tl.coo_array((data, places), (5, 3))
    f = lambda data, x: (build(data) @ x, build(data) @ x[:, 0], build(data).T @ tr.ones(5, dtype=dtype))
    total = lambda data, x: sum(tr.sum(tr.abs(y) ** 2) for y in f(data, x))
    agree(lambda d, x: (*f(d, x), *grad(total, (0, 1))(d, x)), draw(5, dtype), draw((3, 2), dtype), tolerance=1e-13)


def test_functions_at_and_near_their_cuts():
    """Defective, of large norm, with roots on the upper side of the cut; singular ones have roots only."""
    defective = np.array([[2.0, 1.0, 0.0], [0.0, 2.0, 1.0], [0.0, 0.0, 2.0]])
    stack = np.stack([defective, defective * 1e150 + np.eye(3), -defective]).astype(complex)
    singular = np.diag([4.0, 0.0, 0.0])
    agree(lambda x, s: (tl.sqrtm(x), tl.logm(x), tl.sqrtm(s), tl.sqrtm(s * 0)), stack, singular, tolerance=1e-12)


FAILURES = {
    "sylvester": (lambda a: tl.solve_sylvester(a, -a, a), np.diag([1.0, 2.0]), "two eigenvalues"),
    "stein": (lambda a: tl.solve_discrete_lyapunov(a, a), np.eye(2), "the product 1"),
    "riccati": (lambda a: tl.solve_discrete_are(a, a * 0, a * 0, a), np.eye(2), "no stabilising solution"),
    "logarithm": (tl.logm, np.diag([1.0, -1.0]), "branch cut"),
    "singular logarithm": (tl.logm, np.diag([1.0, 0.0]), "is singular"),
    "root of a Jordan block": (tl.sqrtm, np.eye(2, k=1), "in a Jordan block"),
    "sign": (tl.signm, np.array([[0.0, 1.0], [-1.0, 0.0]]), "on the imaginary axis"),
    "band": (lambda a: tl.solve_banded((1, 1), a, tr.ones(3)), np.zeros((3, 3)), "is singular"),
    "indefinite band": (lambda a: tl.solveh_banded(a, tr.ones(3)), -np.ones((1, 3)), "not positive definite"),
    "circulant": (lambda a: tl.solve_circulant(a[0], tr.ones(3)), np.ones((3, 3)), "is singular"),
    "not finite": (lambda a: tl.schur(a), np.full((2, 2), np.nan), "contains nan"),
    "not converged": (lambda a: tl.cg(a, tr.ones(2), maxiter=1).x, np.diag([1.0, 5.0]), "has not converged"),
}


@pytest.mark.parametrize("name", FAILURES)
def test_failures_are_the_errors_of_the_cpu_backend(name):
    f, x, text = FAILURES[name]
    with pytest.raises(NumericalError, match=text):
        XLA.run(tr.trace(f, x), x)
