"""Bessel functions of fixed and of integer order, differentiable with respect to the argument."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from tenferro_runtime.extension import Primitive
from tenferro_runtime.special._bessel import jv_, neighbours, scaled_slope
from tenferro_runtime.special._declared import partials
from tenferro_runtime.special._operands import degree
from tenferro_runtime.special._scipy import host_special, in_library
from tenferro_tensor import Array, functions

__all__ = ["bessel_jn", "i0", "i0e", "i1", "i1e", "j0", "j1", "k0", "k0e", "k1", "k1e", "kn", "y0", "y1", "yn"]


def j0(x: Any, /) -> Array:
    """Bessel function of the first kind of order 0.

    Definition: DLMF 10.2.

    Args:
        x: real array.

    Returns:
        Values of the shape of `x`, in its floating-point dtype (float64 for integers).

    >>> tr.special.j0(tr.asarray([0.0, 2.0]))
    Tensor([1.        , 0.22389078])
    """
    return j0_(x)  # type: ignore[no-any-return]


def j1(x: Any, /) -> Array:
    """Bessel function of the first kind of order 1.

    Definition: DLMF 10.2.

    Args:
        x: real array.

    Returns:
        Values of the shape of `x`, in its floating-point dtype (float64 for integers).

    >>> tr.special.j1(tr.asarray([0.0, 2.0]))
    Tensor([0.        , 0.57672481])
    """
    return j1_(x)  # type: ignore[no-any-return]


def y0(x: Any, /) -> Array:
    """Bessel function of the second kind of order 0.

    Definition: DLMF 10.2.

    Args:
        x: real array.

    Returns:
        Values of the shape of `x`, in its floating-point dtype (float64 for integers).

    >>> tr.special.y0(tr.asarray(2.0))
    Tensor(0.51037567)
    """
    return y0_(x)  # type: ignore[no-any-return]


def y1(x: Any, /) -> Array:
    """Bessel function of the second kind of order 1.

    Definition: DLMF 10.2.

    Args:
        x: real array.

    Returns:
        Values of the shape of `x`, in its floating-point dtype (float64 for integers).

    >>> tr.special.y1(tr.asarray(2.0))
    Tensor(-0.10703243)
    """
    return y1_(x)  # type: ignore[no-any-return]


def i0(x: Any, /) -> Array:
    """Modified Bessel function of the first kind of order 0.

    Definition: DLMF 10.25.

    Args:
        x: real array.

    Returns:
        Values of the shape of `x`, in its floating-point dtype (float64 for integers).

    >>> tr.special.i0(tr.asarray([0.0, 2.0]))
    Tensor([1.        , 2.2795853])
    """
    return i0_(x)  # type: ignore[no-any-return]


def i1(x: Any, /) -> Array:
    """Modified Bessel function of the first kind of order 1.

    Definition: DLMF 10.25.

    Args:
        x: real array.

    Returns:
        Values of the shape of `x`, in its floating-point dtype (float64 for integers).

    >>> tr.special.i1(tr.asarray([0.0, 2.0]))
    Tensor([0.        , 1.59063685])
    """
    return i1_(x)  # type: ignore[no-any-return]


def k0(x: Any, /) -> Array:
    """Modified Bessel function of the second kind of order 0.

    Definition: DLMF 10.25.

    Args:
        x: real array.

    Returns:
        Values of the shape of `x`, in its floating-point dtype (float64 for integers).

    >>> tr.special.k0(tr.asarray(2.0))
    Tensor(0.11389387)
    """
    return k0_(x)  # type: ignore[no-any-return]


def k1(x: Any, /) -> Array:
    """Modified Bessel function of the second kind of order 1.

    Definition: DLMF 10.25.

    Args:
        x: real array.

    Returns:
        Values of the shape of `x`, in its floating-point dtype (float64 for integers).

    >>> tr.special.k1(tr.asarray(2.0))
    Tensor(0.13986588)
    """
    return k1_(x)  # type: ignore[no-any-return]


def i0e(x: Any, /) -> Array:
    """`i0` times ``exp(-abs(x))``; its derivative at 0 is 0, the mean of the two one-sided derivatives.

    Args:
        x: real array.

    Returns:
        Values of the shape of `x`, in its floating-point dtype (float64 for integers).

    >>> tr.special.i0e(tr.asarray([0.0, 1e4]))
    Tensor([1.        , 0.00398947])
    """
    return i0e_(x)  # type: ignore[no-any-return]


def i1e(x: Any, /) -> Array:
    """`i1` times ``exp(-abs(x))``.

    Args:
        x: real array.

    Returns:
        Values of the shape of `x`, in its floating-point dtype (float64 for integers).

    >>> tr.special.i1e(tr.asarray([0.0, 1e4]))
    Tensor([0.        , 0.00398927])
    """
    return i1e_(x)  # type: ignore[no-any-return]


def k0e(x: Any, /) -> Array:
    """`k0` times ``exp(x)``.

    Args:
        x: real array.

    Returns:
        Values of the shape of `x`, in its floating-point dtype (float64 for integers).

    >>> tr.special.k0e(tr.asarray(1e4))
    Tensor(0.01253298)
    """
    return k0e_(x)  # type: ignore[no-any-return]


def k1e(x: Any, /) -> Array:
    """`k1` times ``exp(x)``.

    Args:
        x: real array.

    Returns:
        Values of the shape of `x`, in its floating-point dtype (float64 for integers).

    >>> tr.special.k1e(tr.asarray(1e4))
    Tensor(0.01253361)
    """
    return k1e_(x)  # type: ignore[no-any-return]


def yn(n: Any, x: Any, /) -> Array:
    """Bessel function of the second kind of integer order; `yv` is differentiable in the order.

    Definition: DLMF 10.2.

    Args:
        n: order, an integer array.
        x: real array.

    Returns:
        Values of the broadcast shape, in the promoted floating-point dtype (float64 for integers).

    Raises:
        DTypeError: `n` is not an integer.

    >>> tr.special.yn(2, tr.asarray(2.0))
    Tensor(-0.6174081)
    """
    return yn_(degree("yn", "n", n, x), x)  # type: ignore[no-any-return]


def kn(n: Any, x: Any, /) -> Array:
    """Modified Bessel function of the second kind of integer order; `kv` is differentiable in the order.

    Definition: DLMF 10.25.

    Args:
        n: order, an integer array.
        x: real array.

    Returns:
        Values of the broadcast shape, in the promoted floating-point dtype (float64 for integers).

    Raises:
        DTypeError: `n` is not an integer.

    >>> tr.special.kn(2, tr.asarray(2.0))
    Tensor(0.25375975)
    """
    return kn_(degree("kn", "n", n, x), x)  # type: ignore[no-any-return]


def bessel_jn(z: Any, /, *, v: int) -> Array:
    """Bessel functions of the first kind of the orders 0 to `v`, along a new first axis.

    Args:
        z: real array.
        v: highest order, at least 0.

    Returns:
        Values of shape (v + 1, *z.shape).

    >>> tr.special.bessel_jn(tr.asarray([0.0, 2.0]), v=1)
    Tensor([[1.        , 0.22389078],
            [0.        , 0.57672481]])
    """
    low = [j0_(z), j1_(z)][: v + 1]
    return functions.stack([*low, *[jv_(n, z) for n in range(2, v + 1)]])


_FIXED = {"j": ("jv", "j0", "j1"), "y": ("yv", "y0", "y1"), "i": ("iv", "i0", "i1"), "k": ("kv", "k0", "k1")}


def _compute_fixed(name: str, orders: tuple[int], x: Any) -> Any:
    special, kind = host_special(), name[0]
    if orders == (0,):
        return getattr(special, name)(x)
    n = int(name[1])
    if name.endswith("e"):
        return scaled_slope(_scaled_base(kind), kind, n, x, orders[0], (-1.0) ** n)
    return neighbours(_base(kind), kind, n, x, orders[0])


def _base(kind: str) -> Any:
    special = host_special()
    general, zeroth, first = (getattr(special, f) for f in _FIXED[kind])
    sign = -1 if kind in "jy" else 1

    def base(n: int, x: Any) -> Any:
        if n in (-1, 0, 1):
            value = (first if n else zeroth)(x)
            return sign * value if n < 0 else value
        if kind == "k":
            return special.kn(abs(n), x)
        if kind == "y":
            return special.yn(n, x)
        return general(n, x)

    return base


def _scaled_base(kind: str) -> Any:
    special = host_special()
    general, zeroth, first = (getattr(special, f + "e") for f in _FIXED[kind])

    def base(n: int, x: Any) -> Any:
        if n in (-1, 0, 1) and not np.iscomplexobj(x):
            return (first if n else zeroth)(x)
        return general(n, x)

    return base


def _compute_integer(name: str, orders: tuple[int, int], n: Any, x: Any) -> Any:
    function = getattr(host_special(), name)

    def base(at: Any, x: Any) -> Any:
        return function(at.astype(np.int64), x)

    return neighbours(base, name[0], n, x, orders[1])


def _to_first(after: Primitive, sign: int) -> Callable[..., Any]:
    """The derivative of the function of order 0, which accelerators can compute too: that of order 1."""

    def slope(x: Any, orders: tuple[int]) -> Any:
        value = after(x, orders=orders)
        return value if sign > 0 else -value

    return slope


def _fixed(name: str, doc: str, **how: Any) -> Primitive:
    return partials(name, "x", doc, partial(_compute_fixed, name), **how)


j1_ = _fixed("j1", "Bessel function of the first kind of order 1.")
y1_ = _fixed("y1", "Bessel function of the second kind of order 1.")
i1_ = _fixed("i1", "Modified Bessel function of the first kind of order 1.", jax="i1", most=1)
k1_ = _fixed("k1", "Modified Bessel function of the second kind of order 1.")
j0_ = _fixed("j0", "Bessel function of the first kind of order 0.", x=_to_first(j1_, -1))
y0_ = _fixed("y0", "Bessel function of the second kind of order 0.", x=_to_first(y1_, -1))
i0_ = _fixed("i0", "Modified Bessel function of the first kind of order 0.", jax="i0", most=1, x=_to_first(i1_, 1))
k0_ = _fixed("k0", "Modified Bessel function of the second kind of order 0.", x=_to_first(k1_, -1))
i0e_ = _fixed("i0e", "`i0` times ``exp(-abs(x))``.", jax="i0e", most=1)
i1e_ = _fixed("i1e", "`i1` times ``exp(-abs(x))``.", jax="i1e", most=1)
k0e_ = _fixed("k0e", "`k0` times ``exp(x)``.")
k1e_ = _fixed("k1e", "`k1` times ``exp(x)``.")
yn_ = partials(
    "yn",
    "n x",
    "Bessel function of the second kind of integer order.",
    partial(_compute_integer, "yn"),
    "n",
    library=in_library("yn"),
)
kn_ = partials(
    "kn", "n x", "Modified Bessel function of the second kind of integer order.", partial(_compute_integer, "kn"), "n"
)
