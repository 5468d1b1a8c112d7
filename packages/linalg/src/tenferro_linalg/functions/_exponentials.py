"""Exponential, circular and hyperbolic functions of matrices."""

from __future__ import annotations

from typing import Any, NamedTuple

from tenferro_linalg._algebra import im, re, to
from tenferro_linalg._operands import common, matrices, stacked
from tenferro_linalg._solve import solve
from tenferro_linalg.functions._terms import term
from tenferro_tensor import Array, broadcast_shapes
from tenferro_tensor_core import complex_of
from tenferro_tensor_core.tracebacks import boundary


class ExpmFrechetResult(NamedTuple):
    """Exponential and directional derivative.

    Attributes:
        exponential: the exponential.
        derivative: its derivative along the direction.
    """

    exponential: Array
    derivative: Array


@boundary
def expm(x: Any, /) -> Array:
    """Matrix exponential ``sum A**k / k!``, by scaling and squaring (Al-Mohy and Higham 2009).

    Derivatives are exact to any order at every matrix.

    Args:
        x: matrices (..., n, n), real or complex.

    Returns:
        Matrices (..., n, n) of the dtype of `x`.

    Raises:
        NumericalError: an entry is not finite, or the result overflows.
        ShapeError: the matrices are not square.

    See also: `expm_multiply` for the action on a vector, `expm_frechet`.

    >>> expm([[0.0, 1.0], [0.0, 0.0]])
    Tensor([[1., 1.],
            [0., 1.]])
    """
    return term("exp", matrices("expm", x, square=True))


@boundary
def matrix_exp(x: Any, /) -> Array:
    """Matrix exponential; `expm` under the name that PyTorch and TensorFlow use.

    Args:
        x: matrices (..., n, n), real or complex.

    Returns:
        Matrices (..., n, n) of the dtype of `x`.

    Raises:
        NumericalError: an entry is not finite, or the result overflows.
        ShapeError: the matrices are not square.

    >>> matrix_exp([[0.0, 2.0], [0.0, 0.0]])[0, 1]
    Tensor(2.)
    """
    return expm(x)


@boundary
def expm_frechet(x: Any, e: Any, /) -> ExpmFrechetResult:
    """Matrix exponential and its derivative along the directions `e` (Al-Mohy and Higham 2009).

    Args:
        x: matrices (..., n, n).
        e: matrices (..., n, n); batch axes broadcast.

    Returns:
        The exponential and its derivative, both (..., n, n) of the promoted dtype.

    Raises:
        NumericalError: an entry is not finite, or a result overflows.
        ShapeError: the extents do not match.

    >>> expm_frechet([[0.0, 0.0], [0.0, 0.0]], [[1.0, 2.0], [3.0, 4.0]]).derivative
    Tensor([[1., 2.],
            [3., 4.]])
    """
    x, e = common(matrices("expm_frechet", x, square=True), matrices("expm_frechet", e, square=True))
    batch = broadcast_shapes(x.spec.shape[:-2], e.spec.shape[:-2])
    x, e = stacked(x, batch), stacked(e, batch)
    return ExpmFrechetResult(term("exp", x), term("exp", x, e))


@boundary
def cosm(x: Any, /) -> Array:
    """Matrix cosine ``(exp(iA) + exp(-iA)) / 2``.

    Args:
        x: matrices (..., n, n), real or complex.

    Returns:
        Matrices (..., n, n) of the dtype of `x`.

    Raises:
        NumericalError: an entry is not finite, or the result overflows.
        ShapeError: the matrices are not square.

    >>> cosm([[0.0, 1.0], [0.0, 0.0]])
    Tensor([[1., 0.],
            [0., 1.]])
    """
    return _circular("cosm", x)[0]


@boundary
def sinm(x: Any, /) -> Array:
    """Matrix sine ``(exp(iA) - exp(-iA)) / 2i``.

    Args:
        x: matrices (..., n, n), real or complex.

    Returns:
        Matrices (..., n, n) of the dtype of `x`.

    Raises:
        NumericalError: an entry is not finite, or the result overflows.
        ShapeError: the matrices are not square.

    >>> sinm([[0.0, 1.0], [0.0, 0.0]])
    Tensor([[0., 1.],
            [0., 0.]])
    """
    return _circular("sinm", x)[1]


@boundary
def tanm(x: Any, /) -> Array:
    """Matrix tangent ``cos(A)**-1 sin(A)``.

    Args:
        x: matrices (..., n, n), real or complex.

    Returns:
        Matrices (..., n, n) of the dtype of `x`.

    Raises:
        NumericalError: an entry is not finite, or the cosine overflows or is singular.
        ShapeError: the matrices are not square.

    >>> tanm([[0.0, 1.0], [0.0, 0.0]])
    Tensor([[0., 1.],
            [0., 0.]])
    """
    cosine, sine = _circular("tanm", x)
    return solve(cosine, sine)


@boundary
def coshm(x: Any, /) -> Array:
    """Matrix hyperbolic cosine ``(exp(A) + exp(-A)) / 2``.

    Args:
        x: matrices (..., n, n), real or complex.

    Returns:
        Matrices (..., n, n) of the dtype of `x`.

    Raises:
        NumericalError: an entry is not finite, or the result overflows.
        ShapeError: the matrices are not square.

    >>> coshm([[0.0, 1.0], [0.0, 0.0]])
    Tensor([[1., 0.],
            [0., 1.]])
    """
    return _hyperbolic("coshm", x)[0]


@boundary
def sinhm(x: Any, /) -> Array:
    """Matrix hyperbolic sine ``(exp(A) - exp(-A)) / 2``.

    Args:
        x: matrices (..., n, n), real or complex.

    Returns:
        Matrices (..., n, n) of the dtype of `x`.

    Raises:
        NumericalError: an entry is not finite, or the result overflows.
        ShapeError: the matrices are not square.

    >>> sinhm([[0.0, 1.0], [0.0, 0.0]])
    Tensor([[0., 1.],
            [0., 0.]])
    """
    return _hyperbolic("sinhm", x)[1]


@boundary
def tanhm(x: Any, /) -> Array:
    """Matrix hyperbolic tangent ``cosh(A)**-1 sinh(A)``.

    Args:
        x: matrices (..., n, n), real or complex.

    Returns:
        Matrices (..., n, n) of the dtype of `x`.

    Raises:
        NumericalError: an entry is not finite, or the hyperbolic cosine overflows or is singular.
        ShapeError: the matrices are not square.

    >>> tanhm([[0.0, 1.0], [0.0, 0.0]])
    Tensor([[0., 1.],
            [0., 0.]])
    """
    cosine, sine = _hyperbolic("tanhm", x)
    return solve(cosine, sine)


def _circular(what: str, x: Any) -> tuple[Any, Any]:
    x = matrices(what, x, square=True)
    turned = to(x, complex_of(x.dtype)) * 1j
    ahead = term("exp", turned)
    if not x.spec.cplx:
        return re(ahead), im(ahead)
    back = term("exp", -turned)
    return (ahead + back) * 0.5, (ahead - back) * -0.5j


def _hyperbolic(what: str, x: Any) -> tuple[Any, Any]:
    x = matrices(what, x, square=True)
    ahead, back = term("exp", x), term("exp", -x)
    return (ahead + back) * 0.5, (ahead - back) * 0.5
