"""Square roots, ``y_0 y_k = (x_k - sum_(0<j<k) y_j y_(k-j)) / 2``; other roots by the recurrence of powers.

``k x_0 y_k = sum_(j>0) (r j - (k - j)) x_j y_(k-j)`` for the power r, from ``x y' = r y x'``.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from itertools import count
from typing import Any, Final

from tenferro_ad.power_series._coefficients import Coefficients, Term, cauchy, difference, total
from tenferro_tensor import Primitive
from tenferro_tensor import catalog as c


def _sqrt(x: Coefficients) -> Iterator[Term]:
    y = [c.sqrt(x[0])]
    yield y[0]
    half = 0.5 / y[0]
    for k in count(1):
        term = difference(x[k], cauchy(c.mul, y, y, k, start=1, stop=k))
        y.append(None if term is None else c.absorbing_mul(term, half))
        yield y[k]


def _power(p: Primitive, r: float, x: Coefficients) -> Iterator[Term]:
    y = [p(x[0])]
    yield y[0]
    inverse = 1 / x[0]
    for k in count(1):
        pairs = [(r * j / k - (k - j) / k, x[j], y[k - j]) for j in range(1, k + 1)]
        term = total([c.absorbing_mul(a * n, b) for n, a, b in pairs if a is not None and b is not None])
        y.append(None if term is None else c.absorbing_mul(term, inverse))
        yield y[k]


RULES: Final[dict[Primitive, Any]] = {
    c.sqrt: _sqrt,
    c.rsqrt: partial(_power, c.rsqrt, -1 / 2),
    c.cbrt: partial(_power, c.cbrt, 1 / 3),
}
