"""Power series and sparsity patterns of what equations define."""

from typing import Any

import numpy as np
import pytest
import scipy.optimize

import tenferro_runtime as tr
from equations import (
    close,
    explicit,
    limit,
    matrix,
    recorded_newton,
    richardson,
    root_of,
    size_of,
    solved_by,
    unrolled,
    unrolled_limit,
    vector,
)
from tenferro_ad import (
    custom_linear_solve,
    custom_root,
    grad,
    hessian,
    jacfwd,
    laplacian,
    sparse_hessian,
    sparse_jacobian,
    sparsity,
    taylor,
)


@pytest.mark.stepwise
@pytest.mark.parametrize("compiled", [False, True])
def test_power_series_of_solutions(compiled):
    a, b = matrix("float64", shift=2.0), vector("float64")
    p, q = matrix("float64"), vector("float64", seed=4)
    cases = [
        (lambda b: limit(tr.sin(b)), lambda b: unrolled_limit(tr.sin(b))),
        (lambda b: root_of(p + b * q[:, None], q * b, recorded_newton), lambda b: unrolled(p + b * q[:, None], q * b)),
        (
            lambda b: solved_by(richardson)(a + tr.sin(b)[:, None] * q, b * b),
            lambda b: explicit(a + tr.sin(b)[:, None] * q, b * b),
        ),
        (lambda b: solved_by(richardson)(a, b), lambda b: explicit(a, b)),
    ]
    series = lambda f: lambda b: taylor(f, (b,), ((q, b, -q, b * q),))
    for f, expected in cases:
        g = tr.compile(series(f)) if compiled else series(f)
        close(g(0.3 * b), series(expected)(0.3 * b), rtol=1e-7, atol=1e-7)
    close(laplacian(size_of(limit))(b), laplacian(size_of(unrolled_limit))(b))


def test_power_series_through_a_solver_that_runs_on_elements():
    def kepler(e: Any) -> Any:
        f = lambda x: x - e * tr.sin(x) - 1.0
        return custom_root(f, 1.0, lambda f, x: scipy.optimize.brentq(lambda x: float(f(x)), 0, 7, xtol=1e-15))

    found = taylor(kepler, (0.3,), ((1.0, 0.0, 0.0, 0.0),))[1]
    f = kepler
    for term in found:
        f = grad(f)
        close(term, f(0.3))


def pattern(f: Any, a: Any) -> Any:
    return sparsity(f, a).matrix().toarray()


@pytest.mark.stepwise
def test_patterns_come_from_the_equation():
    a = tr.linspace(0.5, 1.0, 6)
    eye = np.eye(6, dtype=bool)
    assert np.array_equal(pattern(limit, a), eye)
    shifted = lambda x: tr.concat([x[1:], x[:1] * 0.0])
    upper = lambda a: custom_root(lambda x: x * a + 0.1 * shifted(x) - 1.0, a, lambda f, x: tr.ones(6))
    assert pattern(upper, a)[np.triu_indices(6)].all()  # though the solver returns a constant
    divided = lambda b: custom_linear_solve(lambda x: (1 + a) * x, b, lambda f, b: b / (1 + a), symmetric=True)
    assert np.array_equal(pattern(divided, a), eye)
    close(sparse_jacobian(limit)(a).toarray(), jacfwd(limit)(a))
    close(sparse_hessian(size_of(limit))(a).toarray(), hessian(size_of(limit))(a))
