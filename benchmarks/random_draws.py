"""Draws of many distributions: by methods of NumPy's generators, and by functions of JAX's `random` and a key."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

GENERATORS: Final[dict[str, Callable[[Any, int], Any]]] = {
    "random": lambda g, n: g.random(n),
    "standard_normal": lambda g, n: g.standard_normal(n),
    "normal": lambda g, n: g.normal(1.0, 2.0, n),
    "exponential": lambda g, n: g.exponential(2.0, n),
    "integers": lambda g, n: g.integers(0, 1000, n),
    "gamma": lambda g, n: g.standard_gamma(2.5, n),
    "beta": lambda g, n: g.beta(2.0, 3.0, n),
    "standard_t": lambda g, n: g.standard_t(3.0, n),
    "gumbel": lambda g, n: g.gumbel(0.0, 1.0, n),
    "laplace": lambda g, n: g.laplace(0.0, 1.0, n),
    "vonmises": lambda g, n: g.vonmises(0.0, 2.0, n),
    "poisson(4)": lambda g, n: g.poisson(4.0, n),
    "poisson(100)": lambda g, n: g.poisson(100.0, n),
    "binomial": lambda g, n: g.binomial(50, 0.4, n),
    "permutation": lambda g, n: g.permutation(n),
}
KEYS: Final[dict[str, Callable[[Any, Any, int], Any]]] = {
    "random": lambda random, k, n: random.uniform(k, (n,)),
    "standard_normal": lambda random, k, n: random.normal(k, (n,)),
    "normal": lambda random, k, n: 1.0 + 2.0 * random.normal(k, (n,)),
    "exponential": lambda random, k, n: 2.0 * random.exponential(k, (n,)),
    "integers": lambda random, k, n: random.randint(k, (n,), 0, 1000),
    "gamma": lambda random, k, n: random.gamma(k, 2.5, (n,)),
    "beta": lambda random, k, n: random.beta(k, 2.0, 3.0, (n,)),
    "standard_t": lambda random, k, n: random.t(k, 3.0, (n,)),
    "gumbel": lambda random, k, n: random.gumbel(k, (n,)),
    "laplace": lambda random, k, n: random.laplace(k, (n,)),
    "poisson(4)": lambda random, k, n: random.poisson(k, 4.0, (n,)),
    "poisson(100)": lambda random, k, n: random.poisson(k, 100.0, (n,)),
    "binomial": lambda random, k, n: random.binomial(k, 50, 0.4, (n,)),
    "permutation": lambda random, k, n: random.permutation(k, n),
}
