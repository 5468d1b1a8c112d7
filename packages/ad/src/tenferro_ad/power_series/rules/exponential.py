"""Exponentials: ``k y_k = sum_j j x_j y_(k-j)`` from ``y' = y x'``."""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import partial
from itertools import count
from typing import Any, Final

from tenferro_ad.power_series._coefficients import Coefficients, Term, cauchy, derivative, over
from tenferro_tensor import Primitive
from tenferro_tensor import catalog as c


def _exponential(p: Primitive, factor: float, x: Coefficients) -> Iterator[Term]:
    y = [p(x[0])]
    yield y[0]
    slope = derivative(x)
    for k in count(1):
        term = over(cauchy(c.absorbing_mul, slope, y, k - 1), k)
        y.append(term if term is None or factor == 1 else term * factor)
        yield y[k]


RULES: Final[dict[Primitive, Any]] = {
    c.exp: partial(_exponential, c.exp, 1.0),
    c.exp2: partial(_exponential, c.exp2, math.log(2)),
}
