"""Products and quotients: ``z_k = sum_j x_j y_(k-j)``."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count
from typing import Any, Final

from tenferro_ad.power_series._coefficients import Coefficients, Term, cauchy, difference
from tenferro_tensor import SCALARS, Primitive
from tenferro_tensor import catalog as c


def _mul(x: Coefficients, y: Coefficients) -> Iterator[Term]:
    for k in count():
        yield cauchy(c.mul, x, y, k)


def _absorbing_mul(x: Coefficients, y: Coefficients) -> Iterator[Term]:
    """Values of `y` absorbed where `x` is 0 are absorbed in every coefficient, as in the derivative rule."""
    first = c.absorbing_mul(x[0], y[0])
    yield first
    counts = c.bitwise_or(c.ne(x[0], 0), c.is_finite(y[0]))
    for k in count(1):
        left = None if y[k] is None else c.absorbing_mul(x[0], y[k])
        right = cauchy(lambda a, b: a * c.select(counts, b, 0), x, y, k, start=1)
        yield left if right is None else right if left is None else left + right


def _div(x: Coefficients, y: Coefficients) -> Iterator[Term]:
    """``z_k = (x_k - sum_(j<k) z_j y_(k-j)) / y_0``; an exact zero over zero is zero, as in the derivative rule."""
    z = [c.div(x[0], y[0])]
    yield z[0]
    number = y[0].__class__ in SCALARS
    inverse: Any = None
    for k in count(1):
        term = difference(x[k], cauchy(_absorbed, z, y, k, stop=k))
        if term is not None:
            if number:
                term = term / y[0]
            else:
                inverse = 1 / y[0] if inverse is None else inverse
                term = c.absorbing_mul(term, inverse)
        z.append(term)
        yield term


def _absorbed(z: Any, y: Any) -> Any:
    return c.absorbing_mul(y, z)


RULES: Final[dict[Primitive, Any]] = {c.mul: _mul, c.absorbing_mul: _absorbing_mul, c.div: _div}
