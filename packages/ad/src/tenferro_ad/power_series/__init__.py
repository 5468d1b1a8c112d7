"""Taylor mode: propagates truncated power series through functions, to any order.

A `Series` is a value with the coefficients of a power series, a third kind of differentiated value besides `Dual` and
`EagerTensor`. The Taylor rule of a primitive is the first of these that applies:

1. a recurrence registered with ``REGISTRY.taylor`` or listed in ``power_series.rules``;
2. for primitives whose metadata are programs, the program on series;
3. for primitives whose derivative rule is linear, the primitive on each coefficient, or Cauchy products if it is
   linear in each of several operands;
4. the recurrence of its derivative rule, ``y' = J(x, y) x'``, solved coefficient by coefficient;
5. without a rule, its expansion on series.

`taylor_kind` tells which one. So every primitive with a derivative has a Taylor rule, of quadratic cost in the order.
"""

from tenferro_ad.power_series._kinds import taylor_kind
from tenferro_ad.power_series._laplacian import laplacian
from tenferro_ad.power_series._taylor import taylor

__all__ = ["laplacian", "taylor", "taylor_kind"]


def __dir__() -> list[str]:
    return __all__.copy()
