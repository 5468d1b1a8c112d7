"""Square roots, logarithms, powers and signs of matrices."""

from __future__ import annotations

from typing import Any

from tenferro_linalg._algebra import to
from tenferro_linalg._compositions import matrix_power
from tenferro_linalg._operands import inexact, matrices, stacked, value
from tenferro_linalg.functions._terms import term
from tenferro_tensor import Array, broadcast_shapes
from tenferro_tensor.catalog import broadcast_in_dim, reshape
from tenferro_tensor_core import promote
from tenferro_tensor_core.tracebacks import boundary


@boundary
def sqrtm(x: Any, /) -> Array:
    """Principal square root of square matrices: ``X @ X = A``, where no eigenvalue of X has a negative real part.

    Real matrices have real roots; convert real matrices with negative eigenvalues to a complex dtype first. Negative
    eigenvalues have their roots on the positive imaginary axis. Derivatives are exact to any order at every invertible
    matrix.

    Args:
        x: matrices (..., n, n), real or complex.

    Returns:
        Matrices (..., n, n) of the dtype of `x`.

    Raises:
        NumericalError: an entry is not finite, a real matrix has a negative eigenvalue, or the eigenvalue zero is in a
            Jordan block.
        DegenerateError: (gradient) zero is an eigenvalue.

    >>> sqrtm([[4.0, 5.0], [0.0, 9.0]])
    Tensor([[2., 1.],
            [0., 3.]])
    """
    return term("sqrt", matrices("sqrtm", x, square=True))


@boundary
def logm(x: Any, /) -> Array:
    """Principal logarithm of invertible matrices: ``expm(logm(A)) = A`` with imaginary parts up to pi.

    Real matrices have real logarithms; convert real matrices with negative eigenvalues to a complex dtype first.
    Derivatives are exact to any order at every matrix (Al-Mohy, Higham and Relton 2013).

    Args:
        x: matrices (..., n, n), real or complex.

    Returns:
        Matrices (..., n, n) of the dtype of `x`.

    Raises:
        NumericalError: an entry is not finite, a real matrix has a negative eigenvalue, or a matrix is singular.

    >>> logm([[1.0, 2.0], [0.0, 1.0]])
    Tensor([[0., 2.],
            [0., 0.]])
    """
    return term("log", matrices("logm", x, square=True))


@boundary
def signm(x: Any, /) -> Array:
    """Sign of square matrices: eigenvalues with positive real part become 1, those with negative real part -1 (Higham
    2008).

    Args:
        x: matrices (..., n, n), real or complex.

    Returns:
        Matrices (..., n, n) of the dtype of `x`.

    Raises:
        NumericalError: an entry is not finite, or an eigenvalue is imaginary.

    >>> signm([[2.0, 1.0], [0.0, -3.0]])
    Tensor([[ 1. ,  0.4],
            [ 0. , -1. ]])
    """
    return term("sign", matrices("signm", x, square=True))


@boundary
def fractional_matrix_power(x: Any, t: Any, /) -> Array:
    """Principal power ``A**t = exp(t log A)`` of square matrices, differentiable with respect to `t` too.

    Args:
        x: matrices (..., n, n); convert real ones with negative eigenvalues to a complex dtype first.
        t: a number, or an array that broadcasts with the batch axes. Integers and half-integers accept singular
            matrices too.

    Returns:
        Matrices (..., n, n) of the promoted dtype.

    Raises:
        NumericalError: an entry is not finite, a real matrix has a negative eigenvalue, or a matrix is singular.
        DegenerateError: (gradient) the power is a half-integer and zero is an eigenvalue.

    >>> fractional_matrix_power([[8.0, 0.0], [0.0, 27.0]], 1 / 3)[1, 1].round()
    Tensor(3.)
    """
    x = matrices("fractional_matrix_power", x, square=True)
    if isinstance(t, (int, float)) and float(2 * t).is_integer():
        whole = int(t // 1)
        root = term("sqrt", x) if t != whole else None
        if root is None or whole == 0:
            return matrix_power(x, whole) if root is None else root
        return matrix_power(x, whole) @ root
    log = term("log", x)
    if isinstance(t, (int, float, complex)):
        return term("exp", log * t)
    t = value(t)
    t = inexact(t) if not t.spec.inexact else t
    dtype = promote(log.dtype, t.dtype)
    batch = broadcast_shapes(log.spec.shape[:-2], t.spec.shape)
    log, t = stacked(to(log, dtype), batch), to(t, dtype)
    t = stacked(reshape(t, shape=(*t.spec.shape, 1, 1)), batch)
    t = broadcast_in_dim(reshape(t, shape=batch), shape=log.spec.shape, dims=tuple(range(len(batch))))
    return term("exp", log * t)
