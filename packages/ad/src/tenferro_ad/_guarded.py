"""Slopes that may be infinite or undefined, multiplied so that an exact zero stays an exact zero.

``select(x > 0, sqrt(x), 0)`` sends the cotangent 0 to ``sqrt`` where `x` is not positive, and there the slope is
infinite or NaN. The function does not depend on `x` there, so its derivative exists and is 0; plain multiplication
would give NaN. Rules whose slope can be non-finite at finite operands are therefore ``Slopes(..., singular=True)``.
"""

from __future__ import annotations

from typing import Any

from tenferro_tensor import catalog


def times(t: Any, slope: Any) -> Any:
    """``t * slope``, but 0 where `t` is exactly 0 and `slope` is not finite.

    Where the slope is finite this *is* the product, not only equal to it at `t`: so derivatives of it, that is higher
    derivatives of the function, are right also where `t` happens to vanish.

    >>> from tenferro_tensor import tensor
    >>> times(tensor([0.0, 0.0, 2.0]), tensor([float("inf"), 3.0, 3.0]))
    Tensor([0., 0., 6.])
    """
    counts = catalog.bitwise_or(catalog.ne(t, 0), catalog.is_finite(slope))
    return t * catalog.select(counts, slope, 0)
