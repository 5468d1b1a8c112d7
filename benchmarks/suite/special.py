"""Special functions, eager, of 10 000 numbers; NumPy's column is SciPy's."""

from __future__ import annotations

from typing import Any

import numpy as np

from suite.rows import Call, row


def special(name: str, title: str, *columns: tuple[float, float]) -> None:
    """Register a function of arguments that lie between two bounds each."""

    def make(xp: Any) -> Call:
        if xp.library == "numpy":
            from scipy import special
        elif xp.library == "jax":
            from jax.scipy import special
        else:
            special = xp.special
        f, rng = getattr(special, name), np.random.default_rng(0)
        given = [xp.array_of(rng.uniform(low, high, 10_000)) for low, high in columns]
        return lambda: f(*given)

    make.__name__, make.__module__, make.__doc__ = name, __name__, f"{title}, 10 000"
    row("numpy", "jax")(make)


special("erf", "error function", (-3.0, 3.0))
special("gammaln", "logarithm of the gamma function", (0.1, 30.0))
special("digamma", "digamma", (0.1, 30.0))
special("ndtri", "quantiles of the normal distribution", (0.001, 0.999))
special("i0", "modified Bessel function", (0.0, 20.0))
special("betainc", "incomplete beta function", (0.5, 5.0), (0.5, 5.0), (0.01, 0.99))
