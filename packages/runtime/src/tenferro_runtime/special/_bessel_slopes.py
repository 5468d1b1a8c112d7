"""Derivatives of Bessel functions as separate functions."""

from __future__ import annotations

from typing import Any

from tenferro_runtime.special._bessel import iv_, jv_, kv_, yv_
from tenferro_tensor import Array, catalog

__all__ = ["h1vp", "h2vp", "ivp", "jvp", "kvp", "yvp"]


def jvp(v: Any, x: Any, n: int = 1, /) -> Array:
    """Derivative of order `n`, with respect to `x`, of the Bessel function of the first kind.

    Args:
        v: order, real.
        x: real array.
        n: order of the derivative.

    Returns:
        Values of the broadcast shape, in the promoted floating-point dtype (float64 for integers).

    >>> tr.special.jvp(0, tr.asarray(2.0))
    Tensor(-0.57672481)
    """
    return jv_(v, x, orders=(0, n))  # type: ignore[no-any-return]


def yvp(v: Any, x: Any, n: int = 1, /) -> Array:
    """Derivative of order `n`, with respect to `x`, of the Bessel function of the second kind.

    Args:
        v: order, real.
        x: real array.
        n: order of the derivative.

    Returns:
        Values of the broadcast shape, in the promoted floating-point dtype (float64 for integers).

    >>> tr.special.yvp(0, tr.asarray(2.0))
    Tensor(0.10703243)
    """
    return yv_(v, x, orders=(0, n))  # type: ignore[no-any-return]


def ivp(v: Any, x: Any, n: int = 1, /) -> Array:
    """Derivative of order `n`, with respect to `x`, of the modified Bessel function of the first kind.

    Args:
        v: order, real.
        x: real array.
        n: order of the derivative.

    Returns:
        Values of the broadcast shape, in the promoted floating-point dtype (float64 for integers).

    >>> tr.special.ivp(0, tr.asarray(2.0))
    Tensor(1.59063685)
    """
    return iv_(v, x, orders=(0, n))  # type: ignore[no-any-return]


def kvp(v: Any, x: Any, n: int = 1, /) -> Array:
    """Derivative of order `n`, with respect to `x`, of the modified Bessel function of the second kind.

    Args:
        v: order, real.
        x: real array.
        n: order of the derivative.

    Returns:
        Values of the broadcast shape, in the promoted floating-point dtype (float64 for integers).

    >>> tr.special.kvp(0, tr.asarray(2.0))
    Tensor(-0.13986588)
    """
    return kv_(v, x, orders=(0, n))  # type: ignore[no-any-return]


def h1vp(v: Any, x: Any, n: int = 1, /) -> Array:
    """Derivative of order `n`, with respect to `x`, of the Hankel function of the first kind.

    Args:
        v: order, real.
        x: real array.
        n: order of the derivative.

    Returns:
        Complex values of the broadcast shape.

    >>> tr.special.h1vp(0, tr.asarray(2.0))
    Tensor(-0.57672481+0.10703243j)
    """
    return catalog.complex(jvp(v, x, n), yvp(v, x, n))  # type: ignore[no-any-return]


def h2vp(v: Any, x: Any, n: int = 1, /) -> Array:
    """Derivative of order `n`, with respect to `x`, of the Hankel function of the second kind.

    Args:
        v: order, real.
        x: real array.
        n: order of the derivative.

    Returns:
        Complex values of the broadcast shape.

    >>> tr.special.h2vp(0, tr.asarray(2.0))
    Tensor(-0.57672481-0.10703243j)
    """
    return catalog.complex(jvp(v, x, n), -yvp(v, x, n))  # type: ignore[no-any-return]
