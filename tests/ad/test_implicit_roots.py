"""custom_root against unrolled solvers, closed forms and finite differences."""

from typing import Any

import numpy as np
import pytest

import tenferro_runtime as tr
from equations import (
    DTYPES,
    by_jacobian,
    close,
    matrix,
    newton,
    recorded_newton,
    relaxed,
    root_of,
    scalar_newton,
    scipy_root,
    size,
    size_of,
    tolerance,
    unrolled,
    vector,
)
from tenferro_ad import check_grads, custom_root, fixed_point, grad, hessian, jacfwd, jacrev, jvp


@pytest.mark.stepwise
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("rest", [(), (by_jacobian,)])
def test_roots_have_the_derivative_of_the_implicit_function(dtype, rest):
    p, q = matrix(dtype), vector(dtype)
    how = tolerance(dtype)
    f = lambda p, q: root_of(p, q, recorded_newton, *rest)
    ways: list[Any] = [
        lambda f: f(p, q), lambda f: jvp(f, (p, q), (p, q)), lambda f: grad(size_of(f), (0, 1))(p, q)
    ]  # fmt: skip
    expected = [way(unrolled) for way in ways]
    for other in (f, tr.compile(f)):
        close([way(other) for way in ways], expected, **how)


@pytest.mark.parametrize("solve", [newton, recorded_newton, scipy_root])
def test_roots_by_any_solver_to_second_order(solve):
    p, q = matrix("float64"), vector("float64")
    f = lambda q: size(root_of(p, q, solve))
    close(hessian(f)(q), hessian(lambda q: size(unrolled(p, q)))(q), rtol=1e-7)
    close(jacrev(jacrev(f))(q), hessian(f)(q))


@pytest.mark.parametrize("where", ["eager", "inside", "outside"])
def test_roots_to_third_order(where):
    def cube_root(a: Any) -> Any:
        step = lambda x: x - (x**3 - a) / (3 * x * x)
        solve = lambda f, x: tr.while_loop(lambda x: tr.abs(f(x)) > 1e-13, step, x)
        return custom_root(lambda x: x**3 - a, 1.0, solve, lambda g, y: y / g(1.0))

    f = tr.compile(cube_root) if where == "inside" else cube_root
    third = grad(grad(grad(f)))
    third = tr.compile(third) if where == "outside" else third
    close(third(8.0), 10 / 27 * 8 ** (-8 / 3))
    close(jvp(grad(lambda a: jvp(f, (a,), (1.0,))[1]), (8.0,), (1.0,))[1], 10 / 27 * 8 ** (-8 / 3))
    close(jacfwd(jacfwd(jacfwd(jacrev(f))))(8.0), -80 / 81 * 8 ** (-11 / 3))


def test_a_tangent_solver_that_knows_the_matrix_is_transposed():
    a = tr.asarray([[2.0, 1.0], [0.0, 3.0]])
    rest = lambda g, y: tr.linalg.solve(a, y)  # of tangents; J^H is another matrix
    f = lambda b: custom_root(lambda x: a @ x - b, tr.zeros(2), lambda f, x: tr.linalg.solve(a, -f(x)), rest)
    b = tr.asarray([1.0, 2.0])
    close(jacfwd(f)(b), tr.linalg.inv(a))
    close(jacrev(f)(b), tr.linalg.inv(a))
    close(tr.compile(jacrev(f))(b), tr.linalg.inv(a))


def test_derivatives_reach_closures_of_every_level():
    f = lambda a, x: custom_root(lambda y: y**3 + a * y - x, 1.0, lambda f, y: scalar_newton(f, y))
    both = lambda a: grad(lambda x: f(a, x * a) ** 2)(2.0)
    cubic = lambda a, x: (lambda d: tr.cbrt(x / 2 + d) - tr.cbrt(d - x / 2))(tr.sqrt(x * x / 4 + a**3 / 27))
    expected = lambda a: grad(lambda x: cubic(a, x * a) ** 2)(2.0)
    close(both(1.5), expected(1.5))
    close(grad(both)(1.5), grad(expected)(1.5), rtol=1e-7)
    close(jvp(both, (1.5,), (1.0,)), jvp(expected, (1.5,), (1.0,)), rtol=1e-7)


def test_the_first_guess_has_no_derivative():
    f = lambda x0: custom_root(lambda x: x * x - 2.0, x0, scalar_newton)
    assert float(grad(f)(1.0)) == 0
    assert float(jvp(f, (1.0,), (1.0,))[1]) == 0
    assert float(tr.compile(grad(lambda x0: fixed_point(lambda x: 0.5 * (x + 2 / x), x0)))(1.0)) == 0


def test_roots_of_systems_that_conjugate():
    f = lambda a: custom_root(
        lambda z: z + 0.3 * tr.conj(z) - a + 0.1 * z * tr.abs(z) ** 2, 0j, lambda f, z: relaxed(f, z)
    )
    check_grads(f, (1.0 + 0.5j,), order=3)


@pytest.mark.parametrize("n", [40, 300])
@pytest.mark.parametrize("compiled", [False, True])
def test_the_default_solver_for_many_unknowns(n, compiled):
    rng = np.random.default_rng(n)
    shift = 0.0 if n <= 256 else 2.0 * np.sqrt(n)  # beyond that GMRES restarts, and has to converge
    a = tr.asarray(rng.normal(size=(n, n)) + shift * np.eye(n))
    f = lambda b: size(custom_root(lambda x: a @ x - b, tr.zeros(n), lambda f, x: tr.linalg.solve(a, -f(x))))
    b = tr.asarray(rng.normal(size=n))
    close((tr.compile(grad(f)) if compiled else grad(f))(b), grad(lambda b: size(tr.linalg.solve(a, b)))(b), rtol=1e-7)
