"""Taylor mode: truncated power series through functions, to any order.

A `Series` is a value with the coefficients of a power series, a kind of value beside `Dual` and `EagerTensor`. How a
primitive acts on it is one of these, in this order:

1. what is registered with ``REGISTRY.taylor``, or stands in ``power_series.rules``: a recurrence;
2. for the primitives whose metadata are programs, the program on series;
3. where the primitive is linear by its derivative rule, the primitive on each coefficient; where it is linear in
   several operands, Cauchy products;
4. the recurrence that its derivative rule is: ``y' = J(x, y) x'``, solved coefficient by coefficient;
5. where it has no rule, its expansion on series.

`taylor_kind` says which. So every primitive with a derivative has a Taylor rule, of quadratic cost in the order.
"""

from tenferro_ad.power_series._kinds import taylor_kind
from tenferro_ad.power_series._laplacian import laplacian
from tenferro_ad.power_series._taylor import taylor

__all__ = ["laplacian", "taylor", "taylor_kind"]
