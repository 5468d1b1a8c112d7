"""Equations, solvers and reference solutions for the tests of implicit derivatives."""

from typing import Any

import numpy as np
import scipy.optimize
import scipy.sparse.linalg

import tenferro_runtime as tr
from tenferro_ad import custom_linear_solve, custom_root, fixed_point, grad, jacfwd
from tenferro_runtime.trees import flatten

DTYPES = ["float32", "float64", "complex64", "complex128"]
N = 4


def matrix(dtype: Any, n: int = N, seed: int = 0, scale: float = 0.25, shift: float = 0.0) -> Any:
    rng = np.random.default_rng(seed)
    found = rng.normal(size=(n, n)) * scale + shift * np.eye(n)
    if np.dtype(dtype).kind == "c":
        found = found + 1j * scale * rng.normal(size=(n, n))
    return tr.asarray(found.astype(dtype))


def vector(dtype: Any, n: int = N, seed: int = 1) -> Any:
    rng = np.random.default_rng(seed)
    found = rng.normal(size=n)
    return tr.asarray((found + 1j * rng.normal(size=n) if np.dtype(dtype).kind == "c" else found).astype(dtype))


def tolerance(dtype: Any) -> dict[str, float]:
    return {"rtol": 2e-3, "atol": 2e-3} if np.finfo(dtype).eps > 1e-10 else {"rtol": 1e-8, "atol": 1e-8}


def close(found: Any, expected: Any, rtol: float = 1e-8, atol: float = 1e-10) -> None:
    for a, b in zip(flatten(found)[0], flatten(expected)[0], strict=True):
        np.testing.assert_allclose(np.asarray(a), np.asarray(b), rtol, atol)


def size(x: Any) -> Any:
    return tr.sum(tr.real(x * tr.conj(x)))


def size_of(f: Any) -> Any:
    return lambda *args: size(f(*args))


A = tr.asarray([0.3, 0.8, 1.1])


def dense(f: Any, b: Any) -> Any:
    """NumPy's solver on the matrix of a function, column by column."""
    eye = np.eye(b.shape[0], dtype=b.numpy().dtype)
    return np.linalg.solve(np.stack([np.asarray(f(e)) for e in eye], axis=1), b.numpy())


def richardson(f: Any, b: Any) -> Any:
    """A loop that can be recorded, for matrices near twice the identity; its number of steps is not known."""

    def goes_on(state: Any) -> Any:
        _, r, k = state
        return (size(r) > 1e-30 * size(b)) & (k < 400)

    def step(state: Any) -> Any:
        x, r, k = state
        x = x + 0.4 * r
        return x, b - f(x), k + 1

    return tr.while_loop(goes_on, step, (tr.zeros_like(b), b, tr.asarray(0)))[0]


def scipy_gmres(f: Any, b: Any) -> Any:
    n = b.shape[0]
    a = scipy.sparse.linalg.LinearOperator((n, n), matvec=lambda v: np.array(f(v)), dtype=b.numpy().dtype)
    return scipy.sparse.linalg.gmres(a, b.numpy(), rtol=1e-13)[0]


def solved_by(solve: Any) -> Any:
    return lambda a, b: custom_linear_solve(lambda x: a @ x, b, solve, solve)


def explicit(a: Any, b: Any) -> Any:
    return tr.linalg.solve(a, b)


def jacobian(f: Any) -> Any:
    return lambda x: jacfwd(f, holomorphic=x.spec.cplx)(x)


def newton(f: Any, x: Any) -> Any:
    for _ in range(12):
        x = x - tr.linalg.solve(jacobian(f)(x), f(x))
    return x


def recorded_newton(f: Any, x: Any) -> Any:
    step = lambda s: (s[0] - tr.linalg.solve(jacobian(f)(s[0]), f(s[0])), s[1] + 1)
    return tr.while_loop(lambda s: (size(f(s[0])) > 1e-28) & (s[1] < 30), step, (x, tr.asarray(0)))[0]


def scipy_root(f: Any, x: Any) -> Any:
    return scipy.optimize.root(lambda v: np.array(f(v)), x.numpy(), tol=1e-13).x


def by_jacobian(g: Any, y: Any) -> Any:
    return tr.linalg.solve(jacobian(g)(y), y)


def system(p: Any, q: Any) -> Any:
    """A nonlinear system near the identity, with parameters of two shapes."""
    return lambda x: x + 0.2 * tr.sin(p @ x) - q


def root_of(p: Any, q: Any, solve: Any, *rest: Any) -> Any:
    return custom_root(system(p, q), tr.zeros_like(q), solve, *rest)


def unrolled(p: Any, q: Any) -> Any:
    x = q
    for _ in range(32):  # each divides the error by three at least
        x = q - 0.2 * tr.sin(p @ x)
    return x


def scalar_newton(f: Any, x: Any) -> Any:
    for _ in range(40):
        x = x - f(x) / grad(f)(x)
    return x


def relaxed(f: Any, z: Any) -> Any:
    for _ in range(90):
        z = z - 0.5 * f(z)
    return z


def contraction(x: Any, a: Any) -> Any:
    return 0.5 * tr.cos(a * x) + 0.1 * a


def limit(a: Any) -> Any:
    return fixed_point(contraction, tr.zeros_like(a), a)


def unrolled_limit(a: Any, steps: int = 40) -> Any:
    """The limit written out; with 40 steps, second derivatives are exact to rounding for numbers up to 1.2."""
    x = tr.zeros_like(a)
    for _ in range(steps):
        x = contraction(x, a)
    return x
