"""Implicit derivatives where something is wrong: typed errors that say what to do next."""

from typing import Any

import numpy as np
import pytest

import tenferro_runtime as tr
from tenferro_ad import custom_linear_solve, custom_root, fixed_point, grad, jvp
from tenferro_runtime import StructureError
from tenferro_tensor_core import ArgumentError, GradientError, NumericalError, TracingError, UnsupportedError

X = tr.ones(3)
NO_FUNCTION: Any = 3


def start(f: Any, x: Any) -> Any:
    return x


def scaled_root(a: Any, *rest: Any) -> Any:
    return custom_root(lambda x: a * x - 1.0, 1.0, lambda f, x: 1.0, *rest)


@pytest.mark.parametrize(
    ("call", "kind", "text"),
    [
        (
            lambda: custom_root(lambda x: (x,), X, start),
            StructureError,
            r"structure \(\*,\), but the first guess has \*",
        ),
        (
            lambda: custom_root(lambda x: x[:2], X, start),
            StructureError,
            r"float64\[2\] at result, but the first guess",
        ),
        (
            lambda: custom_root(lambda x: x, X, lambda f, x: [x]),
            StructureError,
            r"solve of custom_root .* structure \[\*\]",
        ),
        (
            lambda: custom_root(lambda x: x, X, lambda f, x: x[0]),
            StructureError,
            r"float64\[\] at result, but the unknown",
        ),
        (
            lambda: custom_linear_solve(lambda x: x, X, lambda f, b: b.astype("float32")),
            StructureError,
            r"float32\[3\] at result, but the unknown has float64\[3\] there; convert it",
        ),
        (lambda: custom_linear_solve(lambda x: tr.sum(x), X, start), StructureError, r"matvec .* returned float64\[\]"),
        (lambda: fixed_point(lambda x: (x, x), X), StructureError, "function of fixed_point .* the start has"),
        (
            lambda: grad(lambda a: scaled_root(a, lambda g, y: (y,)))(1.0),
            StructureError,
            r"tangent_solve of custom_root .* structure \(\*,\)",
        ),
        (
            lambda: custom_root(lambda x: x, X, start, has_aux=True),
            ArgumentError,
            r"pair \(x, aux\) with has_aux=True",
        ),
        (lambda: custom_root(lambda x: x, X, NO_FUNCTION), ArgumentError, "needs a function as solve"),
        (
            lambda: custom_linear_solve(lambda x: x, X, start, NO_FUNCTION),
            ArgumentError,
            "needs a function as transpose_solve",
        ),
        (lambda: custom_linear_solve(lambda x: x, X, start, convention="x"), ArgumentError, "or 'jax' for"),
        (lambda: fixed_point(lambda x: x, X, max_steps=-1), ArgumentError, "max_steps of at least 0"),
        (lambda: custom_root(lambda x: x, np.array([1, 2]), start), GradientError, "first guess x is int64.*astype"),
        (lambda: custom_root(lambda x: x + tr.sum(tr.compress(x, x > 0)), X, start), UnsupportedError, "mask"),
        (
            lambda: custom_linear_solve(lambda x: x, X, lambda f, b: f((b,))),
            StructureError,
            r"called .* with \(\*,\), but takes \*",
        ),
        (lambda: custom_linear_solve(lambda x: x, X, lambda f, b: f(b[:2])), StructureError, "convert the argument"),
    ],
)
def test_errors_say_what_is_wrong(call, kind, text):
    with pytest.raises(kind, match=text):
        call()


def test_what_comes_beside_a_solution_is_known_when_the_solver_is_recorded():
    with pytest.raises(TracingError, match="float\\(\\) was requested"):
        tr.compile(lambda a: custom_root(lambda x: x * a - 1, 1.0, lambda f, x: (float(f(x)), 1), None, True))(2.0)


def test_a_solver_cannot_read_elements_past_the_equation():
    with pytest.raises(TracingError, match="used .* after the trace .* had ended"):
        tr.compile(lambda a: custom_root(lambda x: x - a, 1.0, lambda f, x: float(a)))(2.0)


@pytest.mark.parametrize("rest", [(), (lambda g, y: tr.where(g(1.0) == 0, float("inf"), y / g(1.0)),)])
def test_a_singular_derivative(rest):
    f = lambda a: custom_root(lambda x: x * x - a, 0.0, start, *rest)
    with np.errstate(divide="ignore"):
        for derivative in (grad(f), lambda a: jvp(f, (a,), (1.0,))):
            with pytest.raises(NumericalError, match="its linear part is singular"):
                derivative(0.0)
        assert not np.isfinite(float(tr.compile(grad(f))(0.0)))


def test_a_solution_that_is_not_finite():
    with pytest.raises(NumericalError, match="solve of custom_linear_solve .* not finite, at x"):
        custom_linear_solve(lambda x: x, X, lambda f, b: b * np.nan)


@pytest.mark.parametrize("n", [1, 2, 5])
def test_a_singular_matrix_of_rank_one_less(n):
    a = tr.asarray(np.diag([0.0, *range(1, n)]))
    f = lambda b: tr.sum(custom_root(lambda x: a @ x - b * 0.0 - b, tr.zeros(n), lambda f, x: x))
    with pytest.raises(NumericalError, match="singular"):
        grad(f)(tr.zeros(n))


def test_an_iteration_that_does_not_converge():
    f = lambda a, **how: fixed_point(lambda x, a: 2 * x + a, 1.0, a, max_steps=20, **how)
    for call in (f, grad(f)):
        with pytest.raises(NumericalError, match="has not converged after 20 steps.*has_status=True") as caught:
            call(1.0)
        assert caught.value.payload["steps"] == 20
    assert np.isnan(float(tr.compile(f)(1.0)))
    for g in (f, tr.compile(f, static_argnames="has_status")):
        x, status = g(1.0, has_status=True)
        assert float(x) == 2.0**21 - 1
        assert (bool(status.converged), int(status.steps)) == (False, 20)
    x, status = fixed_point(lambda x: 0.5 * x, 1.0, has_status=True)
    assert bool(status.converged) and abs(float(x)) < 1e-11
    with pytest.raises(NumericalError, match="has not converged after"):  # NaN ends the iteration
        fixed_point(lambda x: x * float("nan"), 1.0)


def test_a_solver_leaves_nothing_behind():
    import gc
    import weakref

    class Solver:
        def __call__(self, f: Any, x: Any) -> Any:
            return 1.0

    solvers = [Solver() for _ in range(3)]
    seen = [weakref.ref(s) for s in solvers]
    for s in solvers:
        grad(grad(lambda a, s=s: custom_root(lambda x: x - a, 1.0, s)))(1.0)
    del solvers, s
    gc.collect()
    assert [r() for r in seen] == [None] * 3


def test_python_numbers_take_the_dtype_of_the_equation():
    a = tr.asarray(np.float32(2))
    step = lambda f, x: x - f(x)
    for f in (
        lambda a: fixed_point(lambda x, a: 0.5 * (x + a / x), 1, a),
        lambda a: custom_root(lambda x: x - a, 1, step),
    ):
        for g in (f, tr.compile(f), grad(f), tr.compile(grad(f))):
            assert g(a).dtype == np.float32
            assert g(2.0).dtype == np.float64


def test_lanes_that_do_not_converge():
    f = lambda r, **how: fixed_point(lambda x: r * x + 1.0, 0.0, max_steps=200, **how)
    rates = tr.asarray([0.5, 2.0, 3.0])
    with pytest.raises(NumericalError, match="in 2 of 3 lanes"):
        tr.vmap(f)(rates)
    found = tr.compile(tr.vmap(f))(rates)
    assert np.isnan(np.asarray(found)).tolist() == [False, True, True]
    _, status = tr.vmap(lambda r: f(r, has_status=True))(rates)
    assert status.converged.tolist() == [True, False, False]
