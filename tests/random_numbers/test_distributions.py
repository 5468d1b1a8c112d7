"""Distributions against SciPy's distribution functions; the keys are fixed, so nothing here depends on chance."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from scipy import stats

import tenferro_runtime as tr

N = 4000
LEAST = 1e-3
R = tr.random
Sample = Callable[[Any], Any]


def rng(key: Any) -> Any:
    return R.default_rng(key)


CONTINUOUS: dict[str, tuple[Sample, Any]] = {
    "uniform": (lambda k: R.uniform(k, (N,), None, -1.0, 2.0), stats.uniform(-1, 3)),
    "normal": (lambda k: R.normal(k, (N,)), stats.norm()),
    "normal of float32": (lambda k: R.normal(k, (N,), tr.float32), stats.norm()),
    "normal of complex": (lambda k: R.normal(k, (N,), tr.complex128).imag, stats.norm(scale=0.5**0.5)),
    "exponential": (lambda k: R.exponential(k, (N,)), stats.expon()),
    "gumbel": (lambda k: R.gumbel(k, (N,)), stats.gumbel_r()),
    "laplace": (lambda k: R.laplace(k, (N,)), stats.laplace()),
    "logistic": (lambda k: R.logistic(k, (N,)), stats.logistic()),
    "cauchy": (lambda k: R.cauchy(k, (N,)), stats.cauchy()),
    "pareto": (lambda k: R.pareto(k, 2.5, (N,)), stats.pareto(2.5)),
    "rayleigh": (lambda k: R.rayleigh(k, 2.0, (N,)), stats.rayleigh(scale=2)),
    "weibull": (lambda k: R.weibull(k, 2.0, 1.5, (N,)), stats.weibull_min(1.5, scale=2)),
    "lognormal": (lambda k: R.lognormal(k, 0.7, (N,)), stats.lognorm(0.7)),
    "maxwell": (lambda k: R.maxwell(k, (N,)), stats.maxwell()),
    "truncated_normal": (lambda k: R.truncated_normal(k, -0.5, 2.0, (N,)), stats.truncnorm(-0.5, 2)),
    "truncated_normal in a tail": (lambda k: R.truncated_normal(k, 9.0, np.inf, (N,)), stats.truncnorm(9, np.inf)),
    "gamma of 0.3": (lambda k: R.gamma(k, 0.3, (N,)), stats.gamma(0.3)),
    "gamma of 5": (lambda k: R.gamma(k, 5.0, (N,)), stats.gamma(5)),
    "beta": (lambda k: R.beta(k, 0.5, 2.0, (N,)), stats.beta(0.5, 2)),
    "dirichlet": (lambda k: R.dirichlet(k, tr.asarray([1.0, 2.0, 3.0]), (N,))[:, 1], stats.beta(2, 4)),
    "chisquare": (lambda k: R.chisquare(k, 3.0, (N,)), stats.chi2(3)),
    "noncentral_chisquare": (lambda k: R.noncentral_chisquare(k, 3.0, 2.0, (N,)), stats.ncx2(3, 2)),
    "noncentral_chisquare of 0.5": (lambda k: R.noncentral_chisquare(k, 0.5, 2.0, (N,)), stats.ncx2(0.5, 2)),
    "t": (lambda k: R.t(k, 2.5, (N,)), stats.t(2.5)),
    "f": (lambda k: R.f(k, 3.0, 5.0, (N,)), stats.f(3, 5)),
    "wald": (lambda k: R.wald(k, 2.0, (N,), scale=3.0), stats.invgauss(2 / 3, scale=3)),
    "triangular": (lambda k: R.triangular(k, -1.0, 0.5, 2.0, (N,)), stats.triang(0.5, loc=-1, scale=3)),
    "a coordinate of a sphere": (lambda k: R.unit_sphere(k, 3, (N,))[:, 0], stats.uniform(-1, 2)),
    "a radius of a ball": (lambda k: tr.linalg.vector_norm(R.ball(k, 3, (N,)), axis=-1), stats.powerlaw(3)),
    "an entry of orthogonal": (lambda k: R.orthogonal(k, 3, (N,))[:, 1, 2], stats.uniform(-1, 2)),
    "Generator.power": (lambda k: rng(k).power(2.5, N), stats.powerlaw(2.5)),
    "Generator.vonmises": (lambda k: rng(k).vonmises(0.0, 2.0, N), stats.vonmises(2.0)),
    "Generator.vonmises, flat": (lambda k: rng(k).vonmises(0.0, 1e-9, N), stats.uniform(-np.pi, 2 * np.pi)),
    "Generator.vonmises, narrow": (lambda k: rng(k).vonmises(0.0, 1e8, N), stats.norm(scale=1e-4)),
    "Generator.noncentral_f": (lambda k: rng(k).noncentral_f(3.0, 5.0, 1.0, N), stats.ncf(3, 5, 1)),
    "Generator.pareto": (lambda k: rng(k).pareto(3.0, N), stats.lomax(3)),
    "Generator.gamma": (lambda k: rng(k).gamma(2.0, 3.0, N), stats.gamma(2, scale=3)),
}

P = tr.asarray([0.1, 0.2, 0.3, 0.4])
OF_P = stats.rv_discrete(values=([0, 1, 2, 3], [0.1, 0.2, 0.3, 0.4]))
DISCRETE: dict[str, tuple[Sample, Any]] = {
    "randint": (lambda k: R.randint(k, (N,), -3, 9), stats.randint(-3, 9)),
    "rademacher": (lambda k: R.rademacher(k, (N,)), stats.rv_discrete(values=([-1, 1], [0.5, 0.5]))),
    "bernoulli": (lambda k: R.bernoulli(k, 0.3, (N,)), stats.bernoulli(0.3)),
    "poisson of 3": (lambda k: R.poisson(k, 3.0, (N,)), stats.poisson(3)),
    "poisson of 50": (lambda k: R.poisson(k, 50.0, (N,)), stats.poisson(50)),
    "binomial of 10": (lambda k: R.binomial(k, 10, 0.3, (N,)), stats.binom(10, 0.3)),
    "binomial of 100": (lambda k: R.binomial(k, 100, 0.7, (N,)), stats.binom(100, 0.7)),
    "hypergeometric": (lambda k: R.hypergeometric(k, 20, 30, 15, (N,)), stats.hypergeom(50, 20, 15)),
    "hypergeometric of 150": (lambda k: R.hypergeometric(k, 2000, 300, 150, (N,)), stats.hypergeom(2300, 2000, 150)),
    "geometric": (lambda k: R.geometric(k, 0.3, (N,)), stats.geom(0.3)),
    "negative_binomial": (lambda k: R.negative_binomial(k, 3.5, 0.4, (N,)), stats.nbinom(3.5, 0.4)),
    "logseries": (lambda k: R.logseries(k, 0.6, (N,)), stats.logser(0.6)),
    "zipf": (lambda k: R.zipf(k, 2.5, (N,)), stats.zipf(2.5)),
    "categorical": (lambda k: R.categorical(k, tr.log(P), shape=(N,)), OF_P),
    "categorical of rows": (lambda k: R.categorical(k, tr.log(tr.stack([P, P])), shape=(N, 2))[:, 1], OF_P),
    "choice": (lambda k: R.choice(k, 4, (N,), p=P), OF_P),
    "first of choice without replacement": (
        lambda k: tr.vmap(lambda k: R.choice(k, 4, (2,), replace=False, p=P)[0])(R.split(k, N)), OF_P,
    ),
    "first of a permutation": (lambda k: tr.vmap(lambda k: R.permutation(k, 5)[0])(R.split(k, N)), stats.randint(0, 5)),
    "multinomial": (lambda k: R.multinomial(k, 10, tr.asarray([0.2, 0.3, 0.5]), (N,))[:, 1], stats.binom(10, 0.3)),
    "multivariate_hypergeometric": (
        lambda k: R.multivariate_hypergeometric(k, tr.asarray([10, 20, 30]), 12, (N,))[:, 1],
        stats.hypergeom(60, 20, 12),
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", CONTINUOUS)
def test_continuous(name: str) -> None:
    sample, wanted = CONTINUOUS[name]
    assert stats.kstest(np.asarray(sample(R.key(123))), wanted.cdf).pvalue > LEAST


@pytest.mark.parametrize("name", DISCRETE)
def test_discrete(name: str) -> None:
    sample, wanted = DISCRETE[name]
    found = np.asarray(sample(R.key(123))).astype(int)
    numbers = np.unique(wanted.ppf(np.linspace(0.01, 0.99, 20)).astype(int))
    edges = np.concatenate([[-1e12], numbers + 0.5, [1e12]])
    expected = np.diff(np.concatenate([[0], wanted.cdf(numbers), [1]])) * len(found)
    kept = expected > 1
    seen = np.histogram(found, edges)[0]
    assert not seen[~kept].sum() or expected[~kept].sum() > 0.01
    assert stats.chisquare(seen[kept], expected[kept] * seen[kept].sum() / expected[kept].sum()).pvalue > LEAST


def test_covariance_of_multivariate_normal() -> None:
    cov, mean = np.array([[2.0, 0.6], [0.6, 0.5]]), np.array([1.0, -3.0])
    for method in ("cholesky", "eigh", "svd"):
        x = np.asarray(R.multivariate_normal(R.key(1), mean, cov, (20_000,), method=method))
        np.testing.assert_allclose(x.mean(0), mean, atol=0.04)
        np.testing.assert_allclose(np.cov(x.T), cov, atol=0.06)


def test_words_are_not_correlated() -> None:
    """Neighbouring positions, keys and bits."""
    words = np.asarray(R.bits(R.split(R.key(0), 64), (4096,), tr.uint64))
    unpacked = np.unpackbits(words.view(np.uint8)).astype(float) - 0.5
    n = unpacked.size
    for shift in (1, 2, 3, 8, 32, 64, 128, 64 * 4096):
        assert abs((unpacked[:-shift] * unpacked[shift:]).sum()) < 4 * 0.25 * n**0.5
    assert abs(unpacked.sum()) < 4 * 0.5 * n**0.5
