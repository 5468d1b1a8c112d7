"""Products with logarithms, entropies, and Huber's losses."""

from __future__ import annotations

import math
from typing import Any

from tenferro_runtime.special._declared import composed
from tenferro_runtime.special._operands import real_floating
from tenferro_tensor import Array, catalog

__all__ = ["entr", "huber", "kl_div", "pseudo_huber", "rel_entr", "xlog1py", "xlogy"]


def xlogy(x: Any, y: Any, /) -> Array:
    """``x * log(y)``, and 0 where `x` is 0, whatever number `y` is.

    There the derivative by `y` is 0; that by `x` is ``log(y)`` everywhere.

    Args:
        x: real array.
        y: real array.

    Returns:
        Values of the broadcast shape, in the promoted floating-point dtype (float64 for integers).

    >>> tr.special.xlogy(tr.asarray([0.0, 2.0]), tr.asarray([0.0, 1.0]))
    Tensor([0., 0.])
    """
    return xlogy_(x, y)  # type: ignore[no-any-return]


def xlog1py(x: Any, y: Any, /) -> Array:
    """``x * log(1 + y)``, and 0 where `x` is 0, whatever `y` is; see `xlogy`.

    Args:
        x: real array.
        y: real array.

    Returns:
        Values of the broadcast shape, in the promoted floating-point dtype (float64 for integers).

    >>> tr.special.xlog1py(tr.asarray([0.0, 2.0]), tr.asarray([-1.0, 1e-20]))
    Tensor([0.e+00, 2.e-20])
    """
    return xlog1py_(x, y)  # type: ignore[no-any-return]


def entr(x: Any, /) -> Array:
    """Entropy of a probability, ``-x * log(x)``: 0 at 0, where its derivative is infinite; minus infinity below 0.

    Definition: C. Shannon, "A Mathematical Theory of Communication", 1948.

    Args:
        x: real array.

    Returns:
        Values of the shape of `x`, in its floating-point dtype (float64 for integers).

    >>> tr.special.entr(tr.asarray([0.0, 0.5, 1.0]))
    Tensor([0.        , 0.34657359, 0.        ])
    """
    return entr_(x)  # type: ignore[no-any-return]


def rel_entr(x: Any, y: Any, /) -> Array:
    """Relative entropy, ``x * log(x / y)``: 0 where `x` is 0 and `y` is not negative; infinite outside the domain.

    Definition: S. Kullback, R. Leibler, "On Information and Sufficiency", 1951.

    Args:
        x: real array.
        y: real array.

    Returns:
        Values of the broadcast shape, in the promoted floating-point dtype (float64 for integers).

    >>> tr.special.rel_entr(tr.asarray([0.0, 0.5]), tr.asarray([0.5, 0.25]))
    Tensor([0.        , 0.34657359])
    """
    return rel_entr_(x, y)  # type: ignore[no-any-return]


def kl_div(x: Any, y: Any, /) -> Array:
    """``x * log(x / y) - x + y``, which is convex and not negative; infinite outside the domain.

    Definition: S. Kullback, R. Leibler, "On Information and Sufficiency", 1951.

    Args:
        x: real array.
        y: real array.

    Returns:
        Values of the broadcast shape, in the promoted floating-point dtype (float64 for integers).

    >>> tr.special.kl_div(tr.asarray([0.0, 0.5]), tr.asarray([0.5, 0.5]))
    Tensor([0.5, 0. ])
    """
    x, y = real_floating("kl_div", x), real_floating("kl_div", y)
    entropy = rel_entr(x, y)
    # The entropy is infinite where the difference must not count.
    outside = catalog.eq(entropy, math.inf)
    return entropy + catalog.select(outside, 0.0, y - x)  # type: ignore[no-any-return]


def huber(delta: Any, r: Any, /) -> Array:
    """Huber loss: ``r**2 / 2`` up to `delta`, ``delta * (abs(r) - delta / 2)`` beyond; infinite for negative `delta`.

    Definition: P. Huber, "Robust Estimation of a Location Parameter", 1964.

    Args:
        delta: where the loss becomes linear, a real array.
        r: residual, a real array.

    Returns:
        Values of the broadcast shape, in the promoted floating-point dtype (float64 for integers).

    >>> tr.special.huber(1.0, tr.asarray([0.5, -3.0]))
    Tensor([0.125, 2.5  ])
    """
    delta, r = real_floating("huber", delta), real_floating("huber", r)
    size = catalog.abs(r)
    loss = catalog.select(catalog.le(size, delta), 0.5 * r * r, delta * (size - 0.5 * delta))
    return catalog.select(catalog.lt(delta, 0), math.inf, loss)  # type: ignore[no-any-return]


def pseudo_huber(delta: Any, r: Any, /) -> Array:
    """Smooth Huber loss, ``delta**2 * (sqrt(1 + (r / delta)**2) - 1)``; infinite for negative `delta`.

    Args:
        delta: where the loss becomes linear, a real array.
        r: residual, a real array.

    Returns:
        Values of the broadcast shape, in the promoted floating-point dtype (float64 for integers).

    >>> tr.special.pseudo_huber(1.0, tr.asarray([0.0, 1.0]))
    Tensor([0.        , 0.41421356])
    """
    delta, r = real_floating("pseudo_huber", delta), real_floating("pseudo_huber", r)
    # Without the quotient by delta, derivatives by it are right at 0 too; r is divided before it is squared.
    zero = catalog.bitwise_and(catalog.eq(delta, 0), catalog.eq(r, 0))
    share = r / catalog.select(zero, 1.0, delta + catalog.hypot(delta, r))
    loss = delta * (r * share)
    return catalog.select(catalog.lt(delta, 0), math.inf, loss)  # type: ignore[no-any-return]


def _absorbs(x: Any, y: Any) -> Any:
    return catalog.bitwise_and(catalog.eq(x, 0), catalog.eq(y, y))


def _over(x: Any, y: Any) -> Any:
    """``x / y``, 0 where x is, whatever y is; there the derivative by x is ``1 / y`` unless y is 0 or NaN."""
    absorbed = catalog.bitwise_and(catalog.eq(x, 0), catalog.bitwise_or(catalog.eq(y, 0), catalog.is_nan(y)))
    return catalog.select(absorbed, 0.0, x / catalog.select(absorbed, 1.0, y))


def _entr(x: Any) -> Any:
    found = 0.0 - x * catalog.log(catalog.select(catalog.le(x, 0), 1.0, x))
    return catalog.select(catalog.lt(x, 0), -math.inf, found)


def _inside(x: Any, y: Any) -> Any:
    return catalog.bitwise_or(_positive(x, y), catalog.bitwise_and(catalog.eq(x, 0), catalog.ge(y, 0)))


def _nan(x: Any, y: Any) -> Any:
    return catalog.bitwise_or(catalog.is_nan(x), catalog.is_nan(y))


def _positive(x: Any, y: Any) -> Any:
    return catalog.bitwise_and(catalog.gt(x, 0), catalog.gt(y, 0))


def _rel_entr(x: Any, y: Any) -> Any:
    positive = _positive(x, y)
    ratio = catalog.select(positive, x, 1.0) / catalog.select(positive, y, 1.0)
    found = catalog.select(positive, x * catalog.log(ratio), 0.0)
    found = catalog.select(_inside(x, y), found, math.inf)
    return catalog.select(_nan(x, y), math.nan, found)


def _rel_entr_by_x(x: Any, y: Any) -> Any:
    positive, inside = _positive(x, y), _inside(x, y)
    ratio = catalog.select(positive, x, 1.0) / catalog.select(positive, y, 1.0)
    # At x = 0 the logarithm of the quotient would lose its derivative by y.
    at_zero = catalog.log(catalog.select(positive, 1.0, x)) - catalog.log(catalog.select(catalog.gt(y, 0), y, 1.0))
    slope = catalog.select(positive, catalog.log(ratio), catalog.select(inside, at_zero, 0.0)) + 1.0
    return catalog.select(inside, slope, 0.0)


def _rel_entr_by_y(x: Any, y: Any) -> Any:
    inside = _inside(x, y)
    return catalog.select(inside, -_over(catalog.select(inside, x, 0.0), catalog.select(inside, y, 1.0)), 0.0)


def _entr_slope(x: Any) -> Any:
    below = catalog.lt(x, 0)
    return catalog.select(below, 0.0, -catalog.log(catalog.select(below, 1.0, x)) - 1.0)


xlogy_ = composed(
    "xlogy",
    "x y",
    "``x * log(y)``, 0 where x is 0.",
    lambda x, y: x * catalog.log(catalog.select(_absorbs(x, y), 1.0, y)),
    domain="inexact",
    x=lambda y: catalog.log(y),
    y=_over,
)
xlog1py_ = composed(
    "xlog1py",
    "x y",
    "``x * log(1 + y)``, 0 where x is 0.",
    lambda x, y: x * catalog.log1p(catalog.select(_absorbs(x, y), 0.0, y)),
    domain="inexact",
    x=lambda y: catalog.log1p(y),
    y=lambda x, y: _over(x, 1.0 + y),
)
entr_ = composed("entr", "x", "``-x * log(x)``, 0 at 0.", _entr, x=_entr_slope)
rel_entr_ = composed(
    "rel_entr", "x y", "``x * log(x / y)``, 0 where x is 0.", _rel_entr, x=_rel_entr_by_x, y=_rel_entr_by_y
)
