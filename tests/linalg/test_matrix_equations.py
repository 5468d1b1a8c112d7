"""Sylvester, Lyapunov and Riccati equations: residuals, derivatives of any order, bad input."""

from typing import Any

import numpy as np
import pytest
import scipy.linalg

import tenferro_linalg as la
import tenferro_runtime as tr
from linalg_checks import DTYPES, assert_derivatives, inner, numbers
from tenferro_ad import grad, jvp
from tenferro_tensor import Spec, tensor
from tenferro_tensor_core import NumericalError, ShapeError

KINDS = ("float64", "complex128")
JORDAN = np.array([[0.5, 1.0, 0.0], [0.0, 0.5, 1.0], [0.0, 0.0, 0.5]])
ROTATION = np.array([[0.1, 2.0, 0.3], [-2.0, 0.1, 0.1], [0.2, 0.0, 0.4]])


def host(x: Any) -> Any:
    return x._concrete()


def adjoint(x: Any) -> Any:
    return x.conj().swapaxes(-1, -2)


def slack(dtype: str) -> float:
    return 2e-4 if np.dtype(dtype).char in "fF" else 1e-11


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("batch", [((), (), ()), ((2,), (), (3, 1)), ((2, 3), (3,), ())])
@pytest.mark.parametrize("size", [(1, 1), (4, 3), (2, 5), (40, 35)])
def test_sylvester(size: tuple[int, int], batch: Any, dtype: str) -> None:
    m, n = size
    a, b, c = (numbers(k, (*lead, *s), dtype) for k, (lead, s) in enumerate(zip(batch, [(m, m), (n, n), (m, n)])))
    x = la.solve_sylvester(tensor(a), tensor(b), tensor(c))
    assert x.dtype == dtype
    x = host(x)
    residual = np.abs(a @ x + x @ b - c).max()
    assert residual <= slack(dtype) * max(1, np.abs(x).max()) * m * n
    if dtype == "float64" and batch[0] == ():
        np.testing.assert_allclose(x, scipy.linalg.solve_sylvester(a, b, c), atol=1e-9 * np.abs(x).max())


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("lead", [(), (2, 2)])
def test_lyapunov(lead: tuple[int, ...], dtype: str) -> None:
    a, q = numbers(1, (*lead, 4, 4), dtype), numbers(2, (4, 4), dtype)
    x = host(la.solve_continuous_lyapunov(tensor(a), tensor(q)))
    assert x.dtype == dtype
    assert np.abs(a @ x + x @ adjoint(a) - q).max() <= slack(dtype) * max(1, np.abs(x).max())
    np.testing.assert_array_equal(host(la.solve_lyapunov(tensor(a), tensor(q))), x)
    y = host(la.solve_discrete_lyapunov(tensor(a), tensor(q)))
    assert y.dtype == dtype
    assert np.abs(a @ y @ adjoint(a) - y + q).max() <= 10 * slack(dtype) * max(1, np.abs(y).max())


CASES: dict[str, tuple[Any, Any]] = {
    "sylvester": (la.solve_sylvester, (JORDAN, ROTATION[:2, :2] + np.eye(2), numbers(3, (3, 2)))),
    "sylvester, complex": (
        la.solve_sylvester,
        (numbers(4, (2, 2), "complex128"), numbers(5, (3, 3), "complex128"), numbers(6, (2, 3), "complex128")),
    ),
    "lyapunov": (la.solve_lyapunov, (JORDAN, numbers(7, (3, 3)))),
    "lyapunov, complex": (la.solve_lyapunov, (ROTATION + 0.3j * JORDAN, numbers(8, (3, 3), "complex128"))),
    "lyapunov, stack": (la.solve_lyapunov, (numbers(9, (2, 2, 2)), numbers(10, (2, 2, 2)))),
    "discrete": (la.solve_discrete_lyapunov, (JORDAN, numbers(7, (3, 3)))),
    "discrete, rotation": (la.solve_discrete_lyapunov, (ROTATION, numbers(7, (3, 3)))),
    "discrete, complex": (la.solve_discrete_lyapunov, (ROTATION + 0.3j, numbers(8, (3, 3), "complex128"))),
    "discrete, stack": (la.solve_discrete_lyapunov, (numbers(9, (2, 2, 2)), numbers(10, (2, 2, 2)))),
}

STABLE = -np.eye(3) + 0.4 * numbers(20, (3, 3))
INPUT, WEIGHT, COST = numbers(21, (3, 2)), np.array([[2.0, 0.5], [0.5, 1.0]]), np.diag([1.0, 2.0, 3.0])
CASES |= {
    "continuous Riccati": (la.solve_continuous_are, (STABLE, INPUT, COST, WEIGHT)),
    "continuous Riccati, complex": (la.solve_continuous_are, (STABLE + 0.2j, INPUT * 1j, COST + 0j, WEIGHT + 0j)),
    "continuous Riccati, all": (
        la.solve_continuous_are,
        (STABLE, INPUT, COST, WEIGHT, np.eye(3) + 0.1 * STABLE, 0.1 * INPUT),
    ),
    "discrete Riccati": (la.solve_discrete_are, (STABLE, INPUT, COST, WEIGHT)),
    "discrete Riccati, complex": (la.solve_discrete_are, (STABLE + 0.2j, INPUT * 1j, COST + 0j, WEIGHT + 0j)),
    "discrete Riccati, stack": (la.solve_discrete_are, (np.stack([STABLE, JORDAN]), INPUT, COST, WEIGHT)),
    "discrete Riccati, all": (
        la.solve_discrete_are,
        (STABLE, INPUT, COST, WEIGHT, np.eye(3) + 0.1 * STABLE, 0.1 * INPUT),
    ),
}


@pytest.mark.parametrize("case", [name for name in CASES if "Riccati" in name])
def test_riccati(case: str) -> None:
    f, operands = CASES[case]
    expected = getattr(scipy.linalg, f.__name__)
    for dtype in ("float32", "float64") if operands[0].dtype.kind == "f" else ("complex64", "complex128"):
        given = [x.astype(dtype) for x in operands]
        found = f(*map(tensor, given))
        assert found.dtype == dtype
        first = [x[0] if x.ndim > 2 else x for x in operands]
        want = expected(*first)
        got = host(found)[0] if found.ndim > 2 else host(found)
        np.testing.assert_allclose(got, want, atol=slack(dtype) * np.abs(want).max())


@pytest.mark.parametrize("case", CASES)
def test_derivatives(case: str) -> None:
    f, operands = CASES[case]
    shape = host(f(*map(tensor, operands))).shape
    for k, x in enumerate(operands):
        loss = lambda y, k=k: inner(
            f(*[y if i == k else tensor(o) for i, o in enumerate(operands)]), numbers(11, shape, operands[-1].dtype)
        )
        assert_derivatives(loss, x, numbers(12 + k, x.shape, x.dtype), rtol=1e-6)


@pytest.mark.parametrize("shape", [(0, 0), (2, 0, 0), (0, 2, 2)])
def test_zero_extents(shape: tuple[int, ...]) -> None:
    x = tensor(np.zeros(shape))
    for f in (la.solve_lyapunov, la.solve_discrete_lyapunov, lambda a, q: la.solve_sylvester(a, a, q)):
        assert f(x, x).shape == shape
        assert grad(lambda y, f=f: tr.sum(f(y, y)))(x).shape == shape


def test_programs_lanes_and_open_sizes() -> None:
    a, b, c = (tensor(numbers(k, (2, 3, 3))) for k in range(3))
    n = tr.dim("n")
    for f in (la.solve_sylvester, lambda a, b, c: la.solve_discrete_lyapunov(a, c) + la.solve_lyapunov(b, c)):
        loss = lambda *x, f=f: tr.sum(tr.sin(f(*x)))
        by = grad(loss, (0, 1, 2))
        expected = [host(g) for g in by(a, b, c)]
        for other in (tr.vmap(by), tr.compile(by), grad(tr.compile(loss), (0, 1, 2))):
            for g, e in zip(other(a, b, c), expected, strict=True):
                np.testing.assert_allclose(host(g), e, rtol=1e-11, atol=1e-11)
        spec = Spec((n, n), np.dtype("float64"))
        program = tr.trace(lambda *x, loss=loss: [loss(*x), *grad(loss, (0, 1, 2))(*x)], spec, spec, spec)
        for x in ([a[0], b[0], c[0]], [y[1, :2, :2] for y in (a, b, c)]):
            pushed = jvp(loss, tuple(x), tuple([y * y for y in x]))[1]
            value, *found = program.run(*x)
            np.testing.assert_allclose(host(value), host(loss(*x)), rtol=1e-12)
            total = sum((host(g) * host(y) ** 2).sum() for g, y in zip(found, x))
            np.testing.assert_allclose(total, host(pushed), rtol=1e-10, atol=1e-12)


def test_bad_input() -> None:
    one = np.eye(2)
    with pytest.raises(NumericalError, match=r"solve_sylvester: the equation of matrix \(1,\) .* singular"):
        la.solve_sylvester(tensor(np.stack([one, -one])), tensor(one), tensor(one))
    with pytest.raises(NumericalError, match="solve_continuous_lyapunov: the solution for the matrix overflows"):
        la.solve_continuous_lyapunov(tensor(1e-200 * one), tensor(1e200 * one))
    with pytest.raises(NumericalError, match="solve_continuous_lyapunov: the equation of the matrix is singular"):
        la.solve_continuous_lyapunov(tensor(np.diag([1.0, -1.0])), tensor(one))
    with pytest.raises(NumericalError, match=r"solve_discrete_lyapunov: the .* is singular: .* the product 1"):
        la.solve_discrete_lyapunov(tensor(np.diag([2.0, 0.5])), tensor(one))
    with pytest.raises(ShapeError, match=r"of shapes \(2, 2\) and \(2, 2\) need .* got shape \(2, 3\)"):
        la.solve_sylvester(tensor(one), tensor(one), tensor(np.zeros((2, 3))))
    for f, name in ((la.solve_continuous_are, "continuous"), (la.solve_discrete_are, "discrete")):
        a = np.stack([np.eye(2) * 0.5, np.eye(2) * 2.0])
        with pytest.raises(NumericalError, match=rf"solve_{name}_are: no stabilising solution .* matrix \(1,\) of"):
            f(tensor(a * (-1 if name == "continuous" else 1) ** np.arange(1, 3)[:, None, None]),
              tensor(np.zeros((2, 1))), tensor(one), tensor(np.eye(1)))  # fmt: skip
        with pytest.raises(ShapeError, match=rf"solve_{name}_are takes matrices \(n, n\), \(n, m\)"):
            f(tensor(one), tensor(one), tensor(one), tensor(np.eye(3)))
    for place in range(3):
        x = [np.stack([one, one]) for _ in range(3)]
        x[place][1, 0, 0] = np.inf
        with pytest.raises(NumericalError, match=r"contains inf at index \(1, 0, 0\)"):
            la.solve_sylvester(*map(tensor, x))


def test_riccati_equations_of_ill_conditioned_systems_are_refused() -> None:
    """SciPy refuses half of these, and returns solutions of the others whose closed loops are far from stable."""
    rng = np.random.default_rng(0)
    for _ in range(6):
        a, b = rng.standard_normal((60, 60)) / np.sqrt(15), rng.standard_normal((60, 1))
        with pytest.raises(NumericalError, match=r"no stabilising solution was found for the matrix"):
            la.solve_discrete_are(tensor(a), tensor(b), tensor(np.eye(60)), tensor(np.eye(1)))


def test_riccati_equations_without_inputs_are_lyapunov_equations() -> None:
    a, none, q = np.array([[-0.5, 0.3], [0.0, -0.2]]), np.zeros((2, 0)), np.array([[2.0, 0.5], [0.5, 1.0]])
    x = np.asarray(la.solve_continuous_are(tensor(a), tensor(none), tensor(q), tensor(np.zeros((0, 0)))))
    np.testing.assert_allclose(a.T @ x + x @ a, -q, atol=1e-12)
    x = np.asarray(la.solve_discrete_are(tensor(a), tensor(none), tensor(q), tensor(np.zeros((0, 0)))))
    np.testing.assert_allclose(x - a.T @ x @ a, q, atol=1e-12)


def test_costs_are_those_of_the_factors() -> None:
    """A derivative costs no new factors; sizes may be open."""
    n = tr.dim("n")
    spec = Spec((n, n), np.dtype("float64"))
    program = tr.trace(lambda a, q: [la.solve_lyapunov(a, q)], spec, spec)
    pulled = tr.trace(lambda a, q: [grad(lambda q: tr.sum(la.solve_lyapunov(a, q)))(q)], spec, spec)
    names = [eq.op.primitive.name for eq in pulled.equations]
    assert names.count("schur_factors") == 1
    assert [eq.op.primitive.name for eq in program.equations].count("schur_factors") == 1
