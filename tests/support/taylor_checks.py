"""Taylor mode against nested `jvp`, which it must equal at any order."""

from collections.abc import Callable, Sequence
from functools import reduce
from math import factorial
from typing import Any, Final

import numpy as np

from tenferro_ad import jvp, taylor
from tenferro_runtime.extension import flatten
from tenferro_tensor import tensor
from thorough import tries


def random_terms(x: np.ndarray, order: int, seed: int) -> list[np.ndarray]:
    """Derivatives of a curve through a value, of its dtype."""
    rng = np.random.default_rng(seed)
    terms = []
    for _ in range(order):
        term = rng.normal(size=x.shape)
        if x.dtype.kind == "c":
            term = term + 1j * rng.normal(size=x.shape)
        terms.append(term.astype(x.dtype))
    return terms


def nested(f: Callable[..., Any], xs: Sequence[Any], series: Sequence[Sequence[Any]], order: int) -> list[list[Any]]:
    """Value and derivatives of ``f`` along curves, the leaves of each, by `jvp` of `jvp` of a function of time."""

    curves = [
        [tensor(np.asarray(term / factorial(k), term.dtype)) for k, term in enumerate((np.asarray(x), *terms))]
        for x, terms in zip(xs, series, strict=True)
    ]

    def along(t: Any) -> Any:
        return f(*[reduce(lambda sum, c: sum * t.astype(c.dtype) + c, reversed(curve)) for curve in curves])

    g: Callable[[Any], list[Any]] = lambda t: [along(t)]
    for _ in range(order):
        g = _pushed(g)
    return [[leaf.numpy() for leaf in flatten(out)[0] if leaf is not None] for out in g(tensor(0.0))]


def _pushed(g: Callable[[Any], list[Any]]) -> Callable[[Any], list[Any]]:
    """What a function returns, and the derivative of the last of it: all orders are found by one call."""

    def values_and_slope(t: Any) -> list[Any]:
        values, slopes = jvp(g, (t,), (1.0,))
        return [*values, slopes[-1]]

    return values_and_slope


ORDER: Final = tries(5, 6)
"""The highest order that is compared; each order doubles the time of nested `jvp`."""


def check_taylor(
    f: Callable[..., Any], xs: Sequence[np.ndarray], order: int = ORDER, *, seed: int = 0, rtol: float = 1e-9
) -> None:
    """Raise unless `taylor` equals nested `jvp` along random curves, to an order."""
    series = [random_terms(np.asarray(x), order, seed + i) for i, x in enumerate(xs)]
    value, derivatives = taylor(f, tuple(map(tensor, xs)), series)
    want = nested(f, xs, series, order)
    for k, (got, leaves) in enumerate(zip([value, *derivatives], want, strict=True)):
        found = [leaf.numpy() for leaf in flatten(got)[0] if leaf is not None]
        for a, b in zip(found, leaves, strict=True):
            scale = np.abs(b).max(initial=1e-300)
            assert a.dtype == b.dtype
            np.testing.assert_allclose(a, b, rtol=rtol, atol=rtol * scale, err_msg=f"order {k}")
