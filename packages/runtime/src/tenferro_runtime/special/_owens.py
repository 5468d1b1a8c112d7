"""Owen's T function."""

from __future__ import annotations

from math import pi, sqrt
from typing import Any

from tenferro_runtime.special._declared import from_scipy
from tenferro_tensor import Array, catalog
from tenferro_tensor_core import finfo

__all__ = ["owens_t"]


def owens_t(h: Any, a: Any, /) -> Array:
    """Owen's T function: the probability of ``X > h`` and ``0 < Y < a X`` for independent standard normal X and Y.

    Definition: D. Owen, "Tables for Computing Bivariate Normal Probabilities", 1956.

    Args:
        h: real array.
        a: real array.

    Returns:
        Values of the broadcast shape, in the promoted floating-point dtype (float64 for integers).

    >>> tr.special.owens_t(tr.asarray([0.0, 1.0]), 0.5)
    Tensor([0.07379181, 0.04306469])
    """
    return owens_t_(h, a)  # type: ignore[no-any-return]


def _by_height(h: Any, a: Any) -> Any:
    return catalog.exp(-0.5 * (h * h)) * catalog.erf(a * h * sqrt(0.5)) * (-0.25 * sqrt(2 / pi))


def _by_slope(h: Any, a: Any) -> Any:
    square = 1.0 + a * a
    return catalog.exp(-0.5 * (h * h) * square) / (2 * pi * square)


def _lowering(e: Any, xs: Any, outs: Any) -> Any:
    """JAX's function, which takes no infinite slopes; it is flat there."""
    h, a = xs
    most = float(finfo(a.spec.dtype).max)
    low, high = e.constant(-most, a.spec), e.constant(most, a.spec)
    return e.jax_function("owens_t", (h, e.op("clamp", (low, a, high), a.spec)), outs[0])


owens_t_ = from_scipy(
    "owens_t", "h a", "Owen's T function.", lowering=_lowering, singular=False, h=_by_height, a=_by_slope
)
