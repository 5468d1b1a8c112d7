"""Elementary functions that stay accurate where the obvious formulas cancel, and power transforms."""

from __future__ import annotations

import math
from typing import Any, Final

from tenferro_runtime.special._declared import from_scipy
from tenferro_runtime.special._operands import real_floating
from tenferro_runtime.special._removable import exprel, log1p_quotient
from tenferro_tensor import Array, catalog
from tenferro_tensor.functions import cbrt, exp2, expm1, log1p

__all__ = [
    "boxcox",
    "boxcox1p",
    "cbrt",
    "cosm1",
    "exp10",
    "exp2",
    "expm1",
    "inv_boxcox",
    "inv_boxcox1p",
    "log1p",
    "powm1",
]

_LN10: Final = math.log(10)


def exp10(x: Any, /) -> Array:
    """Power of ten, ``10 ** x``.

    Args:
        x: real array.

    Returns:
        Values of the shape of `x`, in its floating-point dtype (float64 for integers).

    >>> tr.special.exp10(tr.asarray([0.0, 3.0]))
    Tensor([   1., 1000.])
    """
    return exp10_(x)  # type: ignore[no-any-return]


def cosm1(x: Any, /) -> Array:
    """``cos(x) - 1``, accurate near 0.

    Args:
        x: real array.

    Returns:
        Values of the shape of `x`, in its floating-point dtype (float64 for integers).

    >>> tr.special.cosm1(tr.asarray([0.0, 1e-10]))
    Tensor([-0.e+00, -5.e-21])
    """
    half = catalog.sin(0.5 * real_floating("cosm1", x))
    return -2.0 * half * half  # type: ignore[no-any-return]


def powm1(x: Any, y: Any, /) -> Array:
    """``x ** y - 1``, accurate where the power is close to 1.

    Args:
        x: base, a real array.
        y: exponent, a real array.

    Returns:
        Values of the broadcast shape, in the promoted floating-point dtype (float64 for integers).

    >>> tr.special.powm1(tr.asarray([2.0, 1.0 + 1e-10]), 3.0)
    Tensor([7.00000000e+00, 3.00000025e-10])
    """
    return powm1_(x, y)  # type: ignore[no-any-return]


def boxcox(x: Any, lmbda: Any, /) -> Array:
    """Box-Cox transform, ``(x ** lmbda - 1) / lmbda``; ``log(x)`` where `lmbda` is 0.

    Definition: G. Box, D. Cox, "An Analysis of Transformations", 1964.

    Args:
        x: positive real array.
        lmbda: exponent, a real array.

    Returns:
        Values of the broadcast shape, in the promoted floating-point dtype (float64 for integers).

    >>> tr.special.boxcox(tr.asarray([2.0, 2.0]), tr.asarray([0.0, 1.0]))
    Tensor([0.69314718, 1.        ])
    """
    x = real_floating("boxcox", x)
    end = _at_end(x, 0, lmbda)
    return _boxcox(catalog.log(catalog.select(end, 1.0, x)), lmbda, end, x)  # type: ignore[no-any-return]


def boxcox1p(x: Any, lmbda: Any, /) -> Array:
    """Box-Cox transform of ``1 + x``.

    Args:
        x: real array above -1.
        lmbda: exponent, a real array.

    Returns:
        Values of the broadcast shape, in the promoted floating-point dtype (float64 for integers).

    >>> tr.special.boxcox1p(tr.asarray([1.0, 1.0]), tr.asarray([0.0, 1.0]))
    Tensor([0.69314718, 1.        ])
    """
    x = real_floating("boxcox1p", x)
    end = _at_end(x, -1, lmbda)
    return _boxcox(catalog.log1p(catalog.select(end, 0.0, x)), lmbda, end, 1.0 + x)  # type: ignore[no-any-return]


def _at_end(x: Any, end: int, lmbda: Any) -> Any:
    at_end = catalog.eq(x, end)
    return catalog.bitwise_and(at_end, lmbda > 0) if hasattr(lmbda, "spec") else at_end if lmbda > 0 else x != x


def _boxcox(log: Any, lmbda: Any, end: Any, x: Any) -> Any:
    """The transform of `x` by its logarithm; by the power itself at the `end` of the domain, where that is infinite."""
    by_log = catalog.mul(log, exprel(catalog.mul(lmbda, log)))
    power, base = catalog.select(end, lmbda, 1.0), catalog.select(end, x, 1.0)
    return catalog.select(end, (catalog.pow(base, power) - 1.0) / power, by_log)


def inv_boxcox(y: Any, lmbda: Any, /) -> Array:
    """Inverse of `boxcox`: the x for which ``boxcox(x, lmbda)`` is `y`.

    Args:
        y: real array.
        lmbda: exponent, a real array.

    Returns:
        Values of the broadcast shape, in the promoted floating-point dtype (float64 for integers).

    >>> tr.special.inv_boxcox(tr.asarray([1.0, 1.0]), tr.asarray([0.0, 1.0]))
    Tensor([2.71828183, 2.        ])
    """
    return catalog.exp(_log_inverse(real_floating("inv_boxcox", y), lmbda))  # type: ignore[no-any-return]


def inv_boxcox1p(y: Any, lmbda: Any, /) -> Array:
    """Inverse of `boxcox1p`: the x for which ``boxcox1p(x, lmbda)`` is `y`.

    Args:
        y: real array.
        lmbda: exponent, a real array.

    Returns:
        Values of the broadcast shape, in the promoted floating-point dtype (float64 for integers).

    >>> tr.special.inv_boxcox1p(tr.asarray([1.0, 1.0]), tr.asarray([0.0, 1.0]))
    Tensor([1.71828183, 1.        ])
    """
    return catalog.expm1(_log_inverse(real_floating("inv_boxcox1p", y), lmbda))  # type: ignore[no-any-return]


def _log_inverse(y: Any, lmbda: Any) -> Any:
    return y * log1p_quotient(catalog.mul(y, lmbda))


def _expand_powm1(x: Any, y: Any) -> Any:
    close = catalog.bitwise_and(catalog.gt(x, 0), catalog.lt(catalog.abs(y * (x - 1.0)), 0.5 * catalog.abs(x)))
    exponent = y * catalog.log(catalog.select(close, x, 1.0))
    return catalog.select(close, catalog.expm1(exponent), catalog.pow(x, y) - 1.0)


exp10_ = from_scipy("exp10", "x", "Power of ten.", expansion=lambda x: catalog.pow(10.0, x), x=lambda out: _LN10 * out)
powm1_ = from_scipy(
    "powm1",
    "x y",
    "``x ** y - 1``.",
    expansion=_expand_powm1,
    x=lambda x, y: y * catalog.pow(x, y - 1.0),
    y=lambda x, y: catalog.absorbing_mul(catalog.pow(x, y), catalog.log(x)),
)
