"""Matrices of numbers with a name, as SciPy has them."""

from typing import Any

import numpy as np

from tenferro_linalg._operands import integer
from tenferro_runtime.extension import ArgumentError, library
from tenferro_tensor import Array, tensor


def hilbert(n: int, /) -> Array:
    """The Hilbert matrix ``1 / (i + j + 1)`` of size n.

    >>> hilbert(2).round(3)
    Tensor([[1.   , 0.5  ],
            [0.5  , 0.333]])
    """
    return _constant("hilbert", n)


def invhilbert(n: int, /) -> Array:
    """The inverse of the Hilbert matrix of size n, exact up to n = 14.

    >>> invhilbert(2)
    Tensor([[ 4., -6.],
            [-6., 12.]])
    """
    return _constant("invhilbert", n)


def hadamard(n: int, /) -> Array:
    """The Hadamard matrix of Sylvester of size n, a power of 2, of integers.

    >>> hadamard(2)
    Tensor([[ 1,  1],
            [ 1, -1]])
    """
    return _constant("hadamard", n)


def pascal(n: int, /, kind: str = "symmetric") -> Array:
    """The Pascal matrix of binomial coefficients of size n: ``"symmetric"``, or a ``"lower"`` or ``"upper"`` triangle.

    >>> pascal(3)
    Tensor([[1., 1., 1.],
            [1., 2., 3.],
            [1., 3., 6.]])
    """
    return _constant("pascal", n, kind=kind, exact=False)


def invpascal(n: int, /, kind: str = "symmetric") -> Array:
    """The inverse of the Pascal matrix of size n.

    >>> invpascal(2)
    Tensor([[ 2., -1.],
            [-1.,  1.]])
    """
    return _constant("invpascal", n, kind=kind, exact=False)


def helmert(n: int, /, full: bool = False) -> Array:
    """The Helmert matrix of size n, an orthogonal one; without `full`, its first row is left out.

    >>> helmert(2).round(3)
    Tensor([[ 0.707, -0.707]])
    """
    return _constant("helmert", n, full=full)


def dft(n: int, /, scale: str | None = None) -> Array:
    """The matrix of the discrete Fourier transform of size n, ``exp(-2 pi i j k / n)``.

    Args:
        n: the size.
        scale: ``"sqrtn"`` to divide by the root of n, ``"n"`` to divide by n.

    >>> dft(2).real.round(3)
    Tensor([[ 1.,  1.],
            [ 1., -1.]])
    """
    return _constant("dft", n, scale=scale)


def _constant(name: str, n: Any, **options: Any) -> Array:
    n = integer(name, "n", n)
    if n < 0:
        raise ArgumentError(f"{name}: n={n} is negative", n=n)
    try:
        made = getattr(library("scipy.linalg"), name)(n, **options)
    except ValueError as cause:
        raise ArgumentError(f"{name}: {cause}", n=n) from None
    return tensor(made.astype(np.int64) if made.dtype.kind in "iu" else made)
