"""Orthogonal polynomials on other intervals, and with other scales."""

from __future__ import annotations

from typing import Any

from tenferro_runtime.special._operands import real_floating
from tenferro_runtime.special._polynomials import eval_chebyt, eval_chebyu, eval_legendre
from tenferro_tensor import Array

__all__ = ["eval_chebyc", "eval_chebys", "eval_sh_chebyt", "eval_sh_chebyu", "eval_sh_legendre"]


def eval_chebyc(n: Any, x: Any, /) -> Array:
    """Chebyshev polynomial of the first kind on [-2, 2], ``2 T(x / 2)``.

    Args:
        n: degree, integers of at least 0; not differentiable.
        x: real array.

    Returns:
        Values of the broadcast shape, in the promoted floating-point dtype (float64 for integers).

    Raises:
        DTypeError: `n` is not an integer.

    >>> tr.special.eval_chebyc(2, tr.asarray([0.0, 1.0]))
    Tensor([-2., -1.])
    """
    return 2.0 * eval_chebyt(n, 0.5 * real_floating("eval_chebyc", x))


def eval_chebys(n: Any, x: Any, /) -> Array:
    """Chebyshev polynomial of the second kind on [-2, 2], ``U(x / 2)``.

    Args:
        n: degree, integers of at least 0; not differentiable.
        x: real array.

    Returns:
        Values of the broadcast shape, in the promoted floating-point dtype (float64 for integers).

    Raises:
        DTypeError: `n` is not an integer.

    >>> tr.special.eval_chebys(2, tr.asarray([0.0, 1.0]))
    Tensor([-1.,  0.])
    """
    return eval_chebyu(n, 0.5 * real_floating("eval_chebys", x))


def eval_sh_chebyt(n: Any, x: Any, /) -> Array:
    """Chebyshev polynomial of the first kind on [0, 1].

    Args:
        n: degree, integers of at least 0; not differentiable.
        x: real array.

    Returns:
        Values of the broadcast shape, in the promoted floating-point dtype (float64 for integers).

    Raises:
        DTypeError: `n` is not an integer.

    >>> tr.special.eval_sh_chebyt(2, tr.asarray([0.5, 0.75]))
    Tensor([-1. , -0.5])
    """
    return eval_chebyt(n, 2.0 * real_floating("eval_sh_chebyt", x) - 1.0)


def eval_sh_chebyu(n: Any, x: Any, /) -> Array:
    """Chebyshev polynomial of the second kind on [0, 1].

    Args:
        n: degree, integers of at least 0; not differentiable.
        x: real array.

    Returns:
        Values of the broadcast shape, in the promoted floating-point dtype (float64 for integers).

    Raises:
        DTypeError: `n` is not an integer.

    >>> tr.special.eval_sh_chebyu(2, tr.asarray([0.5, 0.75]))
    Tensor([-1.,  0.])
    """
    return eval_chebyu(n, 2.0 * real_floating("eval_sh_chebyu", x) - 1.0)


def eval_sh_legendre(n: Any, x: Any, /) -> Array:
    """Legendre polynomial on [0, 1].

    Args:
        n: degree, integers of at least 0; not differentiable.
        x: real array.

    Returns:
        Values of the broadcast shape, in the promoted floating-point dtype (float64 for integers).

    Raises:
        DTypeError: `n` is not an integer.

    >>> tr.special.eval_sh_legendre(2, tr.asarray([0.5, 0.75]))
    Tensor([-0.5  , -0.125])
    """
    return eval_legendre(n, 2.0 * real_floating("eval_sh_legendre", x) - 1.0)
