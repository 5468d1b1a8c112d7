"""Derivatives by the parameters of distributions."""

from collections.abc import Callable
from typing import Any

import pytest
from scipy import special

import tenferro_runtime as tr
from tenferro_ad import grad, jvp

KEY = tr.random.key(17)
PATHS: dict[str, tuple[Callable[..., Any], tuple[float, ...]]] = {
    "uniform": (lambda a, b: tr.random.uniform(KEY, (5,), None, a, b), (0.5, 2.0)),
    "pareto": (lambda b: tr.random.pareto(KEY, b, (5,)), (2.5,)),
    "rayleigh": (lambda s: tr.random.rayleigh(KEY, s, (5,)), (2.0,)),
    "weibull": (lambda s, c: tr.random.weibull(KEY, s, c, (5,)), (2.0, 1.5)),
    "lognormal": (lambda s: tr.random.lognormal(KEY, s, (5,)), (0.7,)),
    "truncated_normal": (lambda a, b: tr.random.truncated_normal(KEY, a, b, (5,)), (-0.5, 2.0)),
    "wald": (lambda m: tr.random.wald(KEY, m, (5,)), (2.0,)),
    "triangular": (lambda a, c, b: tr.random.triangular(KEY, a, c, b, (5,)), (-1.0, 0.5, 2.0)),
    "multivariate_normal": (
        lambda m, s: tr.random.multivariate_normal(KEY, tr.stack([m, m]), tr.eye(2) * s, (3,)), (0.5, 2.0),
    ),
    "Generator.normal": (lambda m, s: tr.random.default_rng(KEY).normal(m, s, 5), (0.5, 2.0)),
}  # fmt: skip


@pytest.mark.parametrize("name", PATHS)
def test_paths(name: str) -> None:
    """Numbers of fixed keys are differentiable functions of the parameters."""
    f, at = PATHS[name]

    def loss(*p: Any) -> Any:
        return tr.sum(tr.sin(f(*p)))

    values = [tr.asarray(v) for v in at]
    for k in range(len(at)):
        step = 1e-6
        moved = [[v + step * d * (i == k) for i, v in enumerate(at)] for d in (1, -1)]
        wanted = (float(loss(*map(tr.asarray, moved[0]))) - float(loss(*map(tr.asarray, moved[1])))) / (2 * step)
        assert float(grad(loss, k)(*values)) == pytest.approx(wanted, rel=1e-6, abs=1e-8)
        tangents = tuple(tr.asarray(float(i == k)) for i in range(len(at)))
        assert float(jvp(loss, tuple(values), tangents)[1]) == pytest.approx(wanted, rel=1e-6, abs=1e-8)


@pytest.mark.parametrize("a", [1e-3, 0.1, 0.7, 1.0, 3.5, 40.0, 1000.0])
def test_gamma_numbers_move_along_their_quantiles(a: float) -> None:
    mpmath = pytest.importorskip("mpmath")
    x = float(tr.random.loggamma(KEY, a))
    found = float(grad(lambda a: tr.random.loggamma(KEY, a))(tr.asarray(a)))
    mpmath.mp.dps = 40
    number = mpmath.exp(mpmath.mpf(x))
    below = mpmath.diff(lambda a: mpmath.gammainc(a, 0, number, regularized=True), a)
    density = number**a * mpmath.exp(-number) / mpmath.gamma(a)
    assert found == pytest.approx(float(-below / density), rel=1e-8)


def test_second_derivative_of_gamma_numbers() -> None:
    """Quantiles are functions of the parameter: SciPy's, with differences."""
    f = lambda a: tr.random.gamma(KEY, a)
    a, h = 2.3, 1e-3
    p = special.gammainc(a, float(f(tr.asarray(a))))
    values = [special.gammaincinv(a + d, p) for d in (-h, 0, h)]
    assert float(grad(f)(tr.asarray(a))) == pytest.approx((values[2] - values[0]) / (2 * h), rel=1e-6)
    second = (values[2] - 2 * values[1] + values[0]) / h**2
    assert float(grad(grad(f))(tr.asarray(a))) == pytest.approx(second, rel=1e-4)


@pytest.mark.parametrize(
    ("sample", "mean"),
    [
        (lambda a: tr.random.gamma(tr.random.key(3), a, (20_000,)), lambda a: 1.0),
        (lambda a: tr.random.beta(tr.random.key(3), a, 3.0, (20_000,)), lambda a: 3.0 / (a + 3.0) ** 2),
        (
            lambda a: tr.random.dirichlet(tr.random.key(3), tr.stack([a, tr.asarray(3.0)]), (20_000,))[:, 0],
            lambda a: 3.0 / (a + 3.0) ** 2,
        ),
    ],
    ids=["gamma", "beta", "dirichlet"],
)
def test_mean_derivatives(sample: Callable[[Any], Any], mean: Callable[[float], float]) -> None:
    a = 1.7
    assert float(grad(lambda a: tr.mean(sample(a)))(tr.asarray(a))) == pytest.approx(mean(a), rel=0.02)


def test_integers_have_no_derivative() -> None:
    assert (
        float(grad(lambda m: tr.sum(tr.astype(tr.random.poisson(KEY, m, (3,)), tr.float64)) + m)(tr.asarray(3.0)))
        == 1.0
    )
