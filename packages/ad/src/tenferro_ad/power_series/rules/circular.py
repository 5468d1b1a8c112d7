"""Circular and hyperbolic functions: sine and cosine together, tangents by their square."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from itertools import count
from typing import Any, Final

from tenferro_ad.power_series._coefficients import Coefficients, Term, cauchy, derivative, over
from tenferro_tensor import Primitive
from tenferro_tensor import catalog as c

Times = Callable[[Any, Any], Any]


def _pair(sine: Primitive, cosine: Primitive, sign: int, times: Times, which: int, x: Coefficients) -> Iterator[Term]:
    """``s' = c x'`` and ``c' = sign s x'``; yields the one that `which` selects."""
    found = [sine(x[0])], [cosine(x[0])]
    s, t = found
    yield found[which][0]
    slope = derivative(x)
    for k in count(1):
        first, second = over(cauchy(times, slope, t, k - 1), k), over(cauchy(times, slope, s, k - 1), k)
        s.append(first)
        t.append(second if sign > 0 or second is None else -second)
        yield found[which][k]


def _tangent(p: Primitive, sign: int, times: Times, x: Coefficients) -> Iterator[Term]:
    """``y' = w x'`` with ``w = 1 + sign y^2``."""
    y = [p(x[0])]
    yield y[0]
    slope, w = derivative(x), [1 + sign * (y[0] * y[0])]
    for k in count(1):
        y.append(over(cauchy(times, slope, w, k - 1), k))
        square = cauchy(c.mul, y, y, k)
        w.append(square if sign > 0 or square is None else -square)
        yield y[k]


RULES: Final[dict[Primitive, Any]] = {
    c.sin: partial(_pair, c.sin, c.cos, -1, c.mul, 0),
    c.cos: partial(_pair, c.sin, c.cos, -1, c.mul, 1),
    c.sinh: partial(_pair, c.sinh, c.cosh, 1, c.absorbing_mul, 0),
    c.cosh: partial(_pair, c.sinh, c.cosh, 1, c.absorbing_mul, 1),
    c.tan: partial(_tangent, c.tan, 1, c.absorbing_mul),
    c.tanh: partial(_tangent, c.tanh, -1, c.mul),
}
