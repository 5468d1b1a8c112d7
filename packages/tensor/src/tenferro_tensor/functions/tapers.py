"""Windows that taper a signal at its ends, symmetric and of a number of points."""

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


def _window(name: str, n: Any, *parameters: Any) -> Any:
    points = specialise(size_of(name, "number of points", n), f"{name}(n)")
    return noted(own(getattr(np, name)(points, *parameters), place_of(None)))


def bartlett(n: Any, /) -> Array:
    """The triangular window, 0 at both ends.

    >>> tr.bartlett(5)
    Tensor([0. , 0.5, 1. , 0.5, 0. ])
    """
    return _window("bartlett", n)


def blackman(n: Any, /) -> Array:
    """Blackman's window, a sum of three cosines: ``0.42 - 0.5 cos(2 pi t) + 0.08 cos(4 pi t)`` for t from 0 to 1.

    >>> tr.round(tr.blackman(5) * 100)
    Tensor([ -0.,  34., 100.,  34.,  -0.])
    """
    return _window("blackman", n)


def hamming(n: Any, /) -> Array:
    """Hamming's window, a raised cosine: ``0.54 - 0.46 cos(2 pi t)`` for t from 0 to 1.

    >>> tr.hamming(5)
    Tensor([0.08, 0.54, 1.  , 0.54, 0.08])
    """
    return _window("hamming", n)


def hanning(n: Any, /) -> Array:
    """Von Hann's window, a raised cosine: ``0.5 - 0.5 cos(2 pi t)`` for t from 0 to 1.

    >>> tr.hanning(5)
    Tensor([0. , 0.5, 1. , 0.5, 0. ])
    """
    return _window("hanning", n)


def kaiser(n: Any, beta: float, /) -> Array:
    """Kaiser's window: Bessel functions of order 0, ``I0(beta sqrt(1 - s**2)) / I0(beta)`` for s from -1 to 1.

    `beta` is a number: 0 gives a rectangle, 5 is near Hamming's window, 8.6 near Blackman's.

    >>> tr.kaiser(3, 0.0)
    Tensor([1., 1., 1.])
    """
    return _window("kaiser", n, float(beta))
