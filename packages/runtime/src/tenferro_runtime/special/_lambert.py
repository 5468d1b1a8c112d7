"""Solutions of equations with exponentials: Lambert's W and Wright's omega function."""

from __future__ import annotations

from math import e, inf
from typing import Any

import numpy as np

from tenferro_runtime.special._declared import from_host, from_scipy
from tenferro_runtime.special._scipy import host_special
from tenferro_tensor import Array, catalog
from tenferro_tensor.functions import asarray
from tenferro_tensor_core import complex_of, float64, kind_of

__all__ = ["lambertw", "wrightomega"]


def lambertw(z: Any, /, k: int = 0) -> Array:
    """Branch `k` of the Lambert W function, ``w * exp(w) == z``.

    The derivative is infinite at the branch points: at ``-exp(-1)`` for the branches 0 and -1, and at 0 for all
    branches but 0.

    Definition: DLMF 4.13.

    Args:
        z: real or complex array.
        k: branch.

    Returns:
        Complex values of the shape of `z`.

    >>> tr.special.lambertw(tr.asarray([0.0, 1.0]))
    Tensor([0.        +0.j, 0.56714329+0.j])
    """
    z = asarray(z)
    if kind_of(z.dtype) != "c":
        z = z.astype(complex_of(z.dtype if kind_of(z.dtype) == "f" else float64))
    return lambertw_(z, k=int(k))  # type: ignore[no-any-return]


def wrightomega(z: Any, /) -> Array:
    """Wright omega function, ``w + log(w) == z``.

    Definition: R. Corless, D. Jeffrey, "The Wright omega function", 2002.

    Args:
        z: real or complex array.

    Returns:
        Values of the shape of `z`, in its floating-point dtype (float64 for integers).

    >>> tr.special.wrightomega(tr.asarray([-800.0, 1.0]))
    Tensor([0., 1.])
    """
    return wrightomega_(z)  # type: ignore[no-any-return]


_E_INVERSE = (0.36787944117144233, -1.2428753672788614e-17)
"""``exp(-1)`` as a sum of two numbers."""

_NEAR_BRANCH = (-1.0, 1.0, -1 / 3, 11 / 72, -43 / 540, 769 / 17280, -221 / 8505)
"""Coefficients in ``sqrt(2 (1 + e z))`` at the branch point."""


def _lambertw(z: Any, k: int) -> Any:
    value = host_special().lambertw(z, k)
    return _near_branch(z, k, value) if k in (-1, 0, 1) else value


def _near_branch(z: Any, k: int, value: Any) -> Any:
    """`value`, or near ``-exp(-1)``, where SciPy is inaccurate or NaN, the series at the branch point."""
    p = np.sqrt(2 * e * ((z + _E_INVERSE[0]) + _E_INVERSE[1]))
    near = np.abs(p) < 5e-3
    if k:
        near = near & ((z.imag < 0) == (k == 1))
    if not near.any():
        return value
    return np.where(near, np.polynomial.polynomial.polyval(p if k == 0 else -p, _NEAR_BRANCH), value)


def _lambertw_slope(z: Any, out: Any, k: int) -> Any:
    """``exp(-w) / (1 + w)``; off the main branch ``w / (z (1 + w))``, as the exponential may overflow there."""
    at_branch = catalog.eq(out, -1)
    w = catalog.select(at_branch, 0.0, out)
    if k == 0:
        return catalog.select(at_branch, inf, catalog.exp(-w) / (1.0 + w))
    at_zero = catalog.eq(z, 0)
    w = catalog.select(at_zero, 0.0, w)
    slope = w / (catalog.select(at_zero, 1.0, z) * (1.0 + w))
    return catalog.select(catalog.bitwise_or(at_zero, at_branch), inf, slope)


lambertw_ = from_host(
    "lambertw",
    "z",
    "Branch `k` of Lambert's W function of complex numbers.",
    _lambertw,
    domain="inexact",
    metadata=("k",),
    z=_lambertw_slope,
)
wrightomega_ = from_scipy(
    "wrightomega", "z", "Wright's omega function.", domain="inexact", z=lambda out: out / (1.0 + out)
)
