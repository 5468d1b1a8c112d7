"""Exponential and circular functions of matrices."""

from __future__ import annotations

from typing import Any, NamedTuple

from tenferro_linalg._algebra import im, re, to
from tenferro_linalg._operands import common, matrices, stacked
from tenferro_linalg._solve import solve
from tenferro_linalg.functions._terms import term
from tenferro_tensor import Array, broadcast_shapes
from tenferro_tensor_core import complex_of


class ExpmFrechetResult(NamedTuple):
    """The exponential, and its derivative in one direction."""

    exponential: Any
    derivative: Any


def expm(x: Any, /) -> Array:
    """Exponential of square matrices (..., n, n), ``sum A**k / k!``.

    By scaling and squaring (Al-Mohy and Higham 2009). Derivatives are exact to any order at every matrix.

    Raises:
        NumericalError: an entry is not finite, or the result overflows.

    >>> expm([[0.0, 1.0], [0.0, 0.0]])
    Tensor([[1., 1.],
            [0., 1.]])
    """
    return term("exp", matrices("expm", x, square=True))


def matrix_exp(x: Any, /) -> Array:
    """`expm` under the name that PyTorch and TensorFlow give it.

    >>> matrix_exp([[0.0, 2.0], [0.0, 0.0]])[0, 1]
    Tensor(2.)
    """
    return expm(x)


def expm_frechet(x: Any, e: Any, /) -> ExpmFrechetResult:
    """Exponential of square matrices, and its derivative in the directions `e` (Al-Mohy and Higham 2009).

    Args:
        x: matrices (..., n, n).
        e: matrices of the same size; batch axes broadcast.

    Raises:
        NumericalError: an entry is not finite, or a result overflows.

    >>> expm_frechet([[0.0, 0.0], [0.0, 0.0]], [[1.0, 2.0], [3.0, 4.0]]).derivative
    Tensor([[1., 2.],
            [3., 4.]])
    """
    x, e = common(matrices("expm_frechet", x, square=True), matrices("expm_frechet", e, square=True))
    batch = broadcast_shapes(x.spec.shape[:-2], e.spec.shape[:-2])
    x, e = stacked(x, batch), stacked(e, batch)
    return ExpmFrechetResult(term("exp", x), term("exp", x, e))


def cosm(x: Any, /) -> Array:
    """Cosine of square matrices (..., n, n), ``(exp(iA) + exp(-iA)) / 2``.

    Raises:
        NumericalError: an entry is not finite, or the result overflows.

    >>> cosm([[0.0, 1.0], [0.0, 0.0]])
    Tensor([[1., 0.],
            [0., 1.]])
    """
    return _circular("cosm", x)[0]


def sinm(x: Any, /) -> Array:
    """Sine of square matrices (..., n, n), ``(exp(iA) - exp(-iA)) / 2i``.

    Raises:
        NumericalError: an entry is not finite, or the result overflows.

    >>> sinm([[0.0, 1.0], [0.0, 0.0]])
    Tensor([[0., 1.],
            [0., 0.]])
    """
    return _circular("sinm", x)[1]


def tanm(x: Any, /) -> Array:
    """Tangent of square matrices (..., n, n), ``cos(A)**-1 sin(A)``.

    Raises:
        NumericalError: an entry is not finite, or the cosine overflows or is singular.

    >>> tanm([[0.0, 1.0], [0.0, 0.0]])
    Tensor([[0., 1.],
            [0., 0.]])
    """
    cosine, sine = _circular("tanm", x)
    return solve(cosine, sine)


def coshm(x: Any, /) -> Array:
    """Hyperbolic cosine of square matrices (..., n, n), ``(exp(A) + exp(-A)) / 2``.

    Raises:
        NumericalError: an entry is not finite, or the result overflows.

    >>> coshm([[0.0, 1.0], [0.0, 0.0]])
    Tensor([[1., 0.],
            [0., 1.]])
    """
    return _hyperbolic("coshm", x)[0]


def sinhm(x: Any, /) -> Array:
    """Hyperbolic sine of square matrices (..., n, n), ``(exp(A) - exp(-A)) / 2``.

    Raises:
        NumericalError: an entry is not finite, or the result overflows.

    >>> sinhm([[0.0, 1.0], [0.0, 0.0]])
    Tensor([[0., 1.],
            [0., 0.]])
    """
    return _hyperbolic("sinhm", x)[1]


def tanhm(x: Any, /) -> Array:
    """Hyperbolic tangent of square matrices (..., n, n), ``cosh(A)**-1 sinh(A)``.

    Raises:
        NumericalError: an entry is not finite, or the hyperbolic cosine overflows or is singular.

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
