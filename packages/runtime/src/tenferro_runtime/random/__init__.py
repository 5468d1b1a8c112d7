"""Random numbers as functions of keys, under the names of ``jax.random``, and NumPy's generator over the same streams.

A key and a position give a number, whatever runs them: eager calls, compiled programs, batches, any number of threads,
and pieces of a stream by themselves. Bits and uniform numbers are those of JAX for the same key.
"""

from typing import TYPE_CHECKING

from tenferro_runtime._absent import PARTS
from tenferro_runtime.random._basic import bernoulli, bits, exponential, normal, rademacher, uniform
from tenferro_runtime.random._continuous import (
    beta,
    cauchy,
    chisquare,
    dirichlet,
    f,
    gamma,
    gumbel,
    laplace,
    loggamma,
    logistic,
    lognormal,
    maxwell,
    pareto,
    rayleigh,
    t,
    triangular,
    truncated_normal,
    wald,
    weibull,
)
from tenferro_runtime.random._discrete import (
    binomial,
    categorical,
    geometric,
    hypergeometric,
    logseries,
    multinomial,
    multivariate_hypergeometric,
    negative_binomial,
    poisson,
    randint,
    zipf,
)
from tenferro_runtime.random._generator import Generator, default_rng
from tenferro_runtime.random._keys import fold_in, key, key_data, split, wrap_key_data
from tenferro_runtime.random._multivariate import (
    ball,
    choice,
    multivariate_normal,
    orthogonal,
    permutation,
    unit_sphere,
)
from tenferro_runtime.random._noncentral import noncentral_chisquare
from tenferro_tensor_core.absent import absent_from

__all__ = [
    "Generator",
    "ball",
    "bernoulli",
    "beta",
    "binomial",
    "bits",
    "categorical",
    "cauchy",
    "chisquare",
    "choice",
    "default_rng",
    "dirichlet",
    "exponential",
    "f",
    "fold_in",
    "gamma",
    "geometric",
    "gumbel",
    "hypergeometric",
    "key",
    "key_data",
    "laplace",
    "loggamma",
    "logistic",
    "lognormal",
    "logseries",
    "maxwell",
    "multinomial",
    "multivariate_hypergeometric",
    "multivariate_normal",
    "negative_binomial",
    "noncentral_chisquare",
    "normal",
    "orthogonal",
    "pareto",
    "permutation",
    "poisson",
    "rademacher",
    "randint",
    "rayleigh",
    "split",
    "t",
    "triangular",
    "truncated_normal",
    "uniform",
    "unit_sphere",
    "wald",
    "weibull",
    "wrap_key_data",
    "zipf",
]


def __dir__() -> list[str]:
    return __all__.copy()


if not TYPE_CHECKING:
    __getattr__ = absent_from(__name__, PARTS["random"])
