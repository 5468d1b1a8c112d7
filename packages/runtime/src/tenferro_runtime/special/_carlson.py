"""Carlson's symmetric elliptic integrals of real arguments."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from tenferro_runtime.special._declared import from_scipy, partials
from tenferro_runtime.special._sampling import circled
from tenferro_runtime.special._scipy import host_special
from tenferro_tensor import Array, catalog

__all__ = ["elliprc", "elliprd", "elliprf", "elliprg", "elliprj"]


def elliprc(x: Any, y: Any, /) -> Array:
    """Carlson's degenerate elliptic integral RC, the principal value for negative `y`.

    Definition: DLMF 19.16.

    Args:
        x: real array, at least 0.
        y: real array.

    Returns:
        Values of the broadcast shape, in the promoted floating-point dtype (float64 for integers).

    >>> tr.special.elliprc(tr.asarray(1.0), 2.0)
    Tensor(0.78539816)
    """
    return elliprc_(x, y)  # type: ignore[no-any-return]


def elliprd(x: Any, y: Any, z: Any, /) -> Array:
    """Carlson's elliptic integral of the second kind, RD.

    Definition: DLMF 19.16.

    Args:
        x: real array, at least 0.
        y: real array, at least 0.
        z: real array, at least 0.

    Returns:
        Values of the broadcast shape, in the promoted floating-point dtype (float64 for integers).

    >>> tr.special.elliprd(tr.asarray(0.0), 2.0, 1.0)
    Tensor(1.79721035)
    """
    return elliprd_(x, y, z)  # type: ignore[no-any-return]


def elliprf(x: Any, y: Any, z: Any, /) -> Array:
    """Carlson's elliptic integral of the first kind, RF.

    Definition: DLMF 19.16.

    Args:
        x: real array, at least 0.
        y: real array, at least 0.
        z: real array, at least 0.

    Returns:
        Values of the broadcast shape, in the promoted floating-point dtype (float64 for integers).

    >>> tr.special.elliprf(tr.asarray(1.0), 2.0, 0.0)
    Tensor(1.31102878)
    """
    return elliprf_(x, y, z)  # type: ignore[no-any-return]


def elliprg(x: Any, y: Any, z: Any, /) -> Array:
    """Carlson's symmetric elliptic integral of the second kind, RG.

    Definition: DLMF 19.16.

    Args:
        x: real array, at least 0.
        y: real array, at least 0.
        z: real array, at least 0.

    Returns:
        Values of the broadcast shape, in the promoted floating-point dtype (float64 for integers).

    >>> tr.special.elliprg(tr.asarray(0.0), 16.0, 16.0)
    Tensor(3.14159265)
    """
    return elliprg_(x, y, z)  # type: ignore[no-any-return]


def elliprj(x: Any, y: Any, z: Any, p: Any, /) -> Array:
    """Carlson's elliptic integral of the third kind, RJ; its derivatives exist for positive `p` only.

    Definition: DLMF 19.16.

    Args:
        x: real array, at least 0.
        y: real array, at least 0.
        z: real array, at least 0.
        p: real array.

    Returns:
        Values of the broadcast shape, in the promoted floating-point dtype (float64 for integers).

    >>> tr.special.elliprj(tr.asarray(0.0), 1.0, 2.0, 3.0)
    Tensor(0.77688624)
    """
    return elliprj_(x, y, z, p)  # type: ignore[no-any-return]


def _compute(name: str, orders: tuple[int, ...], *operands: Any) -> Any:
    value = _circles(getattr(host_special(), name), operands, orders)
    pole: Any = False
    for x, order in zip(operands, orders, strict=True):
        pole = pole | ((x == 0) & bool(order))
    value = np.where(pole, np.inf * (-1) ** sum(orders), value) if any(orders) else value
    if name == "elliprj" and any(orders):  # the principal value for negative p is no analytic continuation
        value = np.where(operands[3] > 0, value, np.nan)
    return value


def _circles(f: Any, at: tuple[Any, ...], orders: tuple[int, ...]) -> Any:
    """A mixed derivative, by a circle for each operand by which it is taken."""
    for i, order in enumerate(orders):
        if order:
            rest = (*orders[:i], 0, *orders[i + 1 :])
            inner = partial(_inner, f, at, rest, i)
            return circled(inner, at[i], 0.25 * at[i].real, order)
    return f(*at)


def _inner(f: Any, at: tuple[Any, ...], rest: tuple[int, ...], i: int, z: Any) -> Any:
    # The other circles lie around points that the first one makes complex, so that they are visited as a whole.
    moved = tuple(z if j == i else x + 0j for j, x in enumerate(at))
    return _circles(f, moved, rest)


def _degenerate_by_x(x: Any, y: Any, out: Any) -> Any:
    positive = catalog.gt(y, 0)
    near = catalog.select(positive, y, 1.0)
    regular = elliprd_(near, near, x) * (-1 / 6)
    return catalog.select(positive, regular, (out - catalog.rsqrt(x)) / (2.0 * (catalog.select(positive, -1.0, y) - x)))


def _degenerate_by_y(x: Any, y: Any, out: Any) -> Any:
    positive = catalog.gt(y, 0)
    near, below = catalog.select(positive, y, 1.0), catalog.select(positive, -1.0, y)
    by_x = (out - catalog.rsqrt(x)) / (2.0 * (below - x))
    return catalog.select(
        positive,
        elliprd_(x, near, near) * (-1 / 3),
        (-0.5 * out - catalog.select(catalog.eq(x, 0), 0.0, x * by_x)) / below,
    )


def _second_slope(x: Any, y: Any, z: Any) -> Any:
    at_zero, alone = catalog.eq(x, 0), catalog.bitwise_and(catalog.eq(y, 0), catalog.eq(z, 0))
    y = catalog.select(alone, 1.0, y)
    rest = x * elliprd_(y, z, catalog.select(at_zero, 1.0, x)) * (1 / 12)
    return catalog.select(alone, 0.25 * catalog.rsqrt(x), elliprf_(x, y, z) * 0.25 - rest)


elliprd_ = partials("elliprd", "x y z", "Carlson's integral of the second kind.", partial(_compute, "elliprd"))
elliprj_ = partials("elliprj", "x y z p", "Carlson's integral of the third kind.", partial(_compute, "elliprj"))
elliprc_ = from_scipy("elliprc", "x y", "Carlson's degenerate integral.", x=_degenerate_by_x, y=_degenerate_by_y)
elliprf_ = from_scipy(
    "elliprf",
    "x y z",
    "Carlson's integral of the first kind.",
    x=lambda x, y, z: elliprd_(y, z, x) * (-1 / 6),
    y=lambda x, y, z: elliprd_(x, z, y) * (-1 / 6),
    z=lambda x, y, z: elliprd_(x, y, z) * (-1 / 6),
)
elliprg_ = from_scipy(
    "elliprg",
    "x y z",
    "Carlson's symmetric integral of the second kind.",
    x=lambda x, y, z: _second_slope(x, y, z),
    y=lambda x, y, z: _second_slope(y, x, z),
    z=lambda x, y, z: _second_slope(z, x, y),
)
