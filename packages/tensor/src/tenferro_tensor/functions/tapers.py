"""Symmetric windows that taper a signal at its ends."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tenferro_tensor.backends import place_of
from tenferro_tensor.operands import own, size_of
from tenferro_tensor.origins import noted
from tenferro_tensor_core import specialise

if TYPE_CHECKING:
    from tenferro_tensor._array import Array

__all__ = ["bartlett", "blackman", "hamming", "hanning", "kaiser"]


def __dir__() -> list[str]:
    return __all__.copy()


def _window(name: str, n: Any, *parameters: Any) -> Any:
    points = specialise(size_of(name, "number of points", n), f"{name}(n)")
    return noted(own(getattr(np, name)(points, *parameters), place_of(None)))


def bartlett(n: Any, /) -> Array:
    """Bartlett (triangular) window, 0 at both ends.

    Args:
        n: number of points.

    Returns:
        float64 vector of `n` elements, symmetric.

    >>> tr.bartlett(5)
    Tensor([0. , 0.5, 1. , 0.5, 0. ])
    """
    return _window("bartlett", n)


def blackman(n: Any, /) -> Array:
    """Blackman window ``0.42 - 0.5 cos(2 pi t) + 0.08 cos(4 pi t)``, t from 0 to 1.

    Args:
        n: number of points.

    Returns:
        float64 vector of `n` elements, symmetric.

    >>> tr.round(tr.blackman(5) * 100)
    Tensor([ -0.,  34., 100.,  34.,  -0.])
    """
    return _window("blackman", n)


def hamming(n: Any, /) -> Array:
    """Hamming window ``0.54 - 0.46 cos(2 pi t)``, t from 0 to 1.

    Args:
        n: number of points.

    Returns:
        float64 vector of `n` elements, symmetric.

    >>> tr.hamming(5)
    Tensor([0.08, 0.54, 1.  , 0.54, 0.08])
    """
    return _window("hamming", n)


def hanning(n: Any, /) -> Array:
    """Hann window ``0.5 - 0.5 cos(2 pi t)``, t from 0 to 1.

    Args:
        n: number of points.

    Returns:
        float64 vector of `n` elements, symmetric.

    >>> tr.hanning(5)
    Tensor([0. , 0.5, 1. , 0.5, 0. ])
    """
    return _window("hanning", n)


def kaiser(n: Any, /, beta: float) -> Array:
    """Kaiser window ``I0(beta sqrt(1 - s**2)) / I0(beta)``, s from -1 to 1 (J. F. Kaiser, 1974).

    Args:
        n: number of points.
        beta: shape parameter: 0 is a rectangle, 5 is close to the Hamming window, 8.6 to the Blackman window.

    Returns:
        float64 vector of `n` elements, symmetric.

    >>> tr.kaiser(3, 0.0)
    Tensor([1., 1., 1.])
    """
    return _window("kaiser", n, float(beta))
