"""SciPy's solvers with functions of tensors: roots, minima, fits, integrals and differential equations."""

from typing import Any

import numpy as np
import pytest
from scipy import integrate, optimize

import tenferro_runtime as tr
from tenferro_ad import grad, hessian, hvp, jacfwd, value_and_grad

COSINE = 0.7390851332151607
TIMES = np.linspace(0.0, 3.0, 20)
DATA = 2.0 * np.exp(-0.7 * TIMES)


def cosine(x: Any) -> Any:
    return tr.cos(x) - x


def rosen(x: Any) -> Any:
    return tr.sum(100.0 * (x[1:] - x[:-1] ** 2) ** 2 + (1.0 - x[:-1]) ** 2)


def system(x: Any) -> Any:
    return tr.stack([x[0] + 0.5 * (x[0] - x[1]) ** 3 - 1.0, 0.5 * (x[1] - x[0]) ** 3 + x[1]])


def residuals(p: Any) -> Any:
    return decay(TIMES, p[0], p[1]) - DATA


def decay(t: Any, a: Any, b: Any) -> Any:
    return a * tr.exp(-b * t)


def rotation(t: float, y: Any) -> Any:
    return tr.stack([y[1], -y[0]])


@pytest.mark.parametrize("name", ["brentq", "brenth", "ridder", "bisect", "toms748"])
def test_roots_between_bounds(name: str) -> None:
    find = getattr(optimize, name)
    assert find(cosine, 0.0, 1.0) == pytest.approx(COSINE)
    assert find(cosine, tr.asarray(0.0), tr.asarray(1.0)) == pytest.approx(COSINE)


def test_roots_by_newton() -> None:
    assert float(optimize.newton(cosine, 0.5)) == pytest.approx(COSINE)
    assert float(optimize.newton(cosine, 0.5, fprime=grad(cosine), fprime2=grad(grad(cosine)))) == pytest.approx(COSINE)
    several = optimize.newton(cosine, np.asarray([0.5, 0.9]))
    np.testing.assert_allclose(np.asarray(several), COSINE)
    found = optimize.root_scalar(value_and_grad(cosine), x0=0.5, fprime=True)
    assert float(found.root) == pytest.approx(COSINE)


@pytest.mark.parametrize("method", ["hybr", "lm", "broyden1"])
@pytest.mark.parametrize("start", [np.zeros(2), tr.zeros(2)], ids=["array", "tensor"])
def test_roots_of_systems(method: str, start: Any) -> None:
    jac = None if method == "broyden1" else jacfwd(system)
    found = optimize.root(system, start, jac=jac, method=method)
    np.testing.assert_allclose(np.asarray(found.x), [0.8411639, 0.1588361], atol=1e-4)


GRADIENT = ("BFGS", "L-BFGS-B", "CG", "TNC", "SLSQP")
CURVATURE = ("Newton-CG", "trust-ncg", "trust-krylov", "trust-exact", "dogleg", "trust-constr")


@pytest.mark.parametrize("method", GRADIENT + CURVATURE)
def test_minima(method: str) -> None:
    more = {"hess": hessian(rosen)} if method in CURVATURE else {}
    found = optimize.minimize(value_and_grad(rosen), np.full(3, 1.1), jac=True, method=method, **more)
    np.testing.assert_allclose(np.asarray(found.x), 1.0, atol=2e-2)


def test_minima_of_compiled_functions_and_tensors() -> None:
    step = tr.compile(value_and_grad(rosen))
    for start in (np.full(3, 1.1), tr.full(3, 1.1)):
        found = optimize.minimize(step, start, jac=True, method="L-BFGS-B")
        np.testing.assert_allclose(np.asarray(found.x), 1.0, atol=1e-3)
    found = optimize.minimize(
        rosen, np.full(3, 1.1), jac=grad(rosen), hessp=lambda x, p: hvp(rosen, (x,), (p,)), method="Newton-CG"
    )
    np.testing.assert_allclose(np.asarray(found.x), 1.0, atol=1e-3)


def test_minima_under_constraints() -> None:
    total = lambda x: tr.sum(x) - 1.0
    found = optimize.minimize(
        value_and_grad(rosen), np.full(3, 0.2), jac=True, method="SLSQP",
        constraints={"type": "eq", "fun": total, "jac": grad(total)},
    )  # fmt: skip
    assert float(np.sum(found.x)) == pytest.approx(1.0)
    assert float(optimize.minimize_scalar(lambda x: (tr.sin(x) - 0.5) ** 2, bounds=(0, 1)).x) == pytest.approx(
        np.pi / 6, abs=1e-3
    )


@pytest.mark.parametrize("method", ["trf", "dogbox", "lm"])
def test_least_squares(method: str) -> None:
    for start in (np.ones(2), tr.ones(2)):
        found = optimize.least_squares(residuals, start, jac=jacfwd(residuals), method=method)
        np.testing.assert_allclose(np.asarray(found.x), [2.0, 0.7], rtol=1e-6)


def test_curve_fit() -> None:
    slopes = lambda t, a, b: jacfwd(lambda p: decay(t, p[0], p[1]))(np.array([a, b]))
    for jac in (None, slopes):
        fit, _ = optimize.curve_fit(decay, TIMES, DATA, jac=jac)
        np.testing.assert_allclose(fit, [2.0, 0.7], rtol=1e-6)
    fit, _ = optimize.curve_fit(decay, tr.asarray(TIMES), tr.asarray(DATA), p0=tr.ones(2))
    np.testing.assert_allclose(fit, [2.0, 0.7], rtol=1e-6)


@pytest.mark.parametrize("method", ["RK45", "DOP853", "Radau", "BDF", "LSODA"])
def test_differential_equations(method: str) -> None:
    jac = {"jac": lambda t, y: jacfwd(lambda y: rotation(t, y))(y)} if method in ("Radau", "BDF", "LSODA") else {}
    found = integrate.solve_ivp(rotation, (0.0, 1.0), [1.0, 0.0], method=method, rtol=1e-6, **jac)
    np.testing.assert_allclose(np.asarray(found.y[:, -1]), [np.cos(1.0), -np.sin(1.0)], atol=1e-4)


def test_integrals() -> None:
    bell = lambda x: tr.exp(-x * x)
    assert integrate.quad(bell, 0.0, tr.asarray(1.0))[0] == pytest.approx(0.746824132812427)
    assert integrate.quad(bell, -np.inf, np.inf)[0] == pytest.approx(np.sqrt(np.pi))
    assert integrate.dblquad(lambda y, x: tr.sin(x) * y, 0, 1, 0, 1)[0] == pytest.approx((1 - np.cos(1)) / 2)
    several, _ = integrate.quad_vec(lambda x: tr.exp(-x * tr.asarray([1.0, 2.0])), 0.0, 1.0)
    np.testing.assert_allclose(np.asarray(several), [1 - np.exp(-1), (1 - np.exp(-2)) / 2])
    found = integrate.odeint(lambda y, t: rotation(t, y), [1.0, 0.0], [0.0, 1.0])
    np.testing.assert_allclose(found[-1], [np.cos(1.0), -np.sin(1.0)], atol=1e-6)
