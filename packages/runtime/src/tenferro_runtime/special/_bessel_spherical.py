"""Spherical Bessel functions of integer order, differentiable with respect to the argument."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from tenferro_runtime.extension import Primitive
from tenferro_runtime.special._declared import partials
from tenferro_runtime.special._operands import degree
from tenferro_runtime.special._recurrences import combined
from tenferro_runtime.special._scipy import host_special
from tenferro_tensor import Array

__all__ = ["spherical_in", "spherical_jn", "spherical_kn", "spherical_yn"]


def spherical_jn(n: Any, x: Any, /, derivative: bool = False) -> Array:
    """Spherical Bessel function of the first kind, ``sqrt(pi / (2 x)) jv(n + 1/2, x)``, or its derivative.

    Definition: DLMF 10.47.

    Args:
        n: order, an integer array.
        x: real array.
        derivative: whether to return the derivative with respect to `x`.

    Returns:
        Values of the broadcast shape, in the promoted floating-point dtype (float64 for integers).

    Raises:
        DTypeError: `n` is not an integer.

    >>> tr.special.spherical_jn(1, tr.asarray([0.0, 2.0]))
    Tensor([0.        , 0.43539777])
    """
    return jn_(degree("spherical_jn", "n", n, x), x, orders=(0, int(derivative)))  # type: ignore[no-any-return]


def spherical_yn(n: Any, x: Any, /, derivative: bool = False) -> Array:
    """Spherical Bessel function of the second kind, ``sqrt(pi / (2 x)) yv(n + 1/2, x)``, or its derivative.

    Definition: DLMF 10.47.

    Args:
        n: order, an integer array.
        x: real array.
        derivative: whether to return the derivative with respect to `x`.

    Returns:
        Values of the broadcast shape, in the promoted floating-point dtype (float64 for integers).

    Raises:
        DTypeError: `n` is not an integer.

    >>> tr.special.spherical_yn(1, tr.asarray(2.0))
    Tensor(-0.350612)
    """
    return yn_(degree("spherical_yn", "n", n, x), x, orders=(0, int(derivative)))  # type: ignore[no-any-return]


def spherical_in(n: Any, x: Any, /, derivative: bool = False) -> Array:
    """Modified spherical Bessel function of the first kind, ``sqrt(pi / (2 x)) iv(n + 1/2, x)``, or its derivative.

    Definition: DLMF 10.47.

    Args:
        n: order, an integer array.
        x: real array.
        derivative: whether to return the derivative with respect to `x`.

    Returns:
        Values of the broadcast shape, in the promoted floating-point dtype (float64 for integers).

    Raises:
        DTypeError: `n` is not an integer.

    >>> tr.special.spherical_in(1, tr.asarray([0.0, 2.0]))
    Tensor([0.        , 0.97438274])
    """
    return in_(degree("spherical_in", "n", n, x), x, orders=(0, int(derivative)))  # type: ignore[no-any-return]


def spherical_kn(n: Any, x: Any, /, derivative: bool = False) -> Array:
    """Modified spherical Bessel function of the second kind, ``sqrt(pi / (2 x)) kv(n + 1/2, x)``, or its derivative.

    Definition: DLMF 10.47.

    Args:
        n: order, an integer array.
        x: real array.
        derivative: whether to return the derivative with respect to `x`.

    Returns:
        Values of the broadcast shape, in the promoted floating-point dtype (float64 for integers).

    Raises:
        DTypeError: `n` is not an integer.

    >>> tr.special.spherical_kn(1, tr.asarray(2.0))
    Tensor(0.15943812)
    """
    return kn_(degree("spherical_kn", "n", n, x), x, orders=(0, int(derivative)))  # type: ignore[no-any-return]


_SIGNS = {"spherical_jn": (1, -1), "spherical_yn": (1, -1), "spherical_in": (1, 1), "spherical_kn": (-1, -1)}


def _compute(name: str, orders: tuple[int, int], n: Any, x: Any) -> Any:
    """``f' = (n f[n - 1] +- (n + 1) f[n + 1]) / (2 n + 1)``, which has no quotient by `x`, applied repeatedly."""
    function, (below, above) = getattr(host_special(), name), _SIGNS[name]

    def neighbours(shift: int, factor: Any) -> Any:
        m = n + shift
        yield shift - 1, below * factor * m / (2 * m + 1)
        yield shift + 1, above * factor * (m + 1) / (2 * m + 1)

    total: Any = 0.0
    for shift, factor in combined({0: np.ones_like(n)}, orders[1], neighbours).items():
        m = (n + shift).astype(np.int64)
        # The function of order -1 always has the factor 0.
        total = total + np.where(m < 0, 0.0, factor * function(np.maximum(m, 0), x))
    return total


def _spherical(name: str, doc: str) -> Primitive:
    return partials(name, "n x", doc, partial(_compute, name), "n")


jn_ = _spherical("spherical_jn", "Spherical Bessel function of the first kind.")
yn_ = _spherical("spherical_yn", "Spherical Bessel function of the second kind.")
in_ = _spherical("spherical_in", "Modified spherical Bessel function of the first kind.")
kn_ = _spherical("spherical_kn", "Modified spherical Bessel function of the second kind.")
