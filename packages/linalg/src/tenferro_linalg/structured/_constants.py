"""Named constant matrices, as in SciPy."""

from typing import Any

import numpy as np

from tenferro_linalg._operands import integer
from tenferro_runtime.extension import ArgumentError, library
from tenferro_tensor import Array, tensor
from tenferro_tensor_core.tracebacks import boundary


@boundary
def hilbert(n: int, /) -> Array:
    """Hilbert matrix ``1 / (i + j + 1)``.

    Args:
        n: size of the matrix.

    Returns:
        float64 matrix (n, n).

    Raises:
        ArgumentError: `n` is negative or not an integer.

    >>> hilbert(2).round(3)
    Tensor([[1.   , 0.5  ],
            [0.5  , 0.333]])
    """
    return _constant("hilbert", n)


@boundary
def invhilbert(n: int, /) -> Array:
    """Inverse of the Hilbert matrix, exact up to n = 14.

    Args:
        n: size of the matrix.

    Returns:
        float64 matrix (n, n).

    Raises:
        ArgumentError: `n` is negative or not an integer.

    >>> invhilbert(2)
    Tensor([[ 4., -6.],
            [-6., 12.]])
    """
    return _constant("invhilbert", n)


@boundary
def hadamard(n: int, /) -> Array:
    """Hadamard matrix of Sylvester.

    Args:
        n: size of the matrix, a power of 2.

    Returns:
        int64 matrix (n, n) of entries 1 and -1.

    Raises:
        ArgumentError: `n` is not a power of 2.

    >>> hadamard(2)
    Tensor([[ 1,  1],
            [ 1, -1]])
    """
    return _constant("hadamard", n)


@boundary
def pascal(n: int, /, kind: str = "symmetric") -> Array:
    """Pascal matrix of binomial coefficients.

    Args:
        n: size of the matrix.
        kind: ``"symmetric"``, or the triangular factor ``"lower"`` or ``"upper"``.

    Returns:
        float64 matrix (n, n).

    Raises:
        ArgumentError: `n` is negative or not an integer, or `kind` is none of the three.

    >>> pascal(3)
    Tensor([[1., 1., 1.],
            [1., 2., 3.],
            [1., 3., 6.]])
    """
    return _constant("pascal", n, kind=kind, exact=False)


@boundary
def invpascal(n: int, /, kind: str = "symmetric") -> Array:
    """Inverse of the Pascal matrix.

    Args:
        n: size of the matrix.
        kind: ``"symmetric"``, ``"lower"`` or ``"upper"``, as for `pascal`.

    Returns:
        float64 matrix (n, n).

    Raises:
        ArgumentError: `n` is negative or not an integer, or `kind` is none of the three.

    >>> invpascal(2)
    Tensor([[ 2., -1.],
            [-1.,  1.]])
    """
    return _constant("invpascal", n, kind=kind, exact=False)


@boundary
def helmert(n: int, /, full: bool = False) -> Array:
    """Helmert matrix, which is orthogonal.

    Args:
        n: size of the matrix.
        full: include the first row, which is constant.

    Returns:
        float64 matrix (n, n), or (n - 1, n) without the first row.

    Raises:
        ArgumentError: `n` is negative or not an integer.

    >>> helmert(2).round(3)
    Tensor([[ 0.707, -0.707]])
    """
    return _constant("helmert", n, full=full)


@boundary
def dft(n: int, /, scale: str | None = None) -> Array:
    """Matrix of the discrete Fourier transform, ``exp(-2 pi i j k / n)``.

    Args:
        n: size of the matrix.
        scale: ``"sqrtn"`` to divide by the square root of n, ``"n"`` to divide by n.

    Returns:
        complex128 matrix (n, n).

    Raises:
        ArgumentError: `n` is negative or not an integer, or `scale` is neither of the two.

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
