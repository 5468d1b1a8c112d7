"""Orthogonal polynomials of integer degree, differentiable with respect to the argument and real parameters.

Every derivative by the argument is a polynomial of the same or of Gegenbauer's family, of lower degree. The
polynomials are analytic in their parameters, and derivatives by those come from values around them.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from math import factorial
from typing import Any

import numpy as np

from tenferro_runtime.extension import Primitive
from tenferro_runtime.special._declared import partials
from tenferro_runtime.special._operands import degree
from tenferro_runtime.special._recurrences import rising
from tenferro_runtime.special._sampling import around
from tenferro_runtime.special._scipy import host_special
from tenferro_tensor import Array

__all__ = [
    "eval_chebyt",
    "eval_chebyu",
    "eval_gegenbauer",
    "eval_genlaguerre",
    "eval_hermite",
    "eval_hermitenorm",
    "eval_jacobi",
    "eval_laguerre",
    "eval_legendre",
]


def eval_legendre(n: Any, x: Any, /) -> Array:
    """Legendre polynomial of degree `n`.

    Definition: DLMF 18.3.

    Args:
        n: degree, integers of at least 0; not differentiable.
        x: real array.

    Returns:
        Values of the broadcast shape, in the promoted floating-point dtype (float64 for integers).

    Raises:
        DTypeError: `n` is not an integer.

    >>> tr.special.eval_legendre(2, tr.asarray([0.0, 0.5]))
    Tensor([-0.5  , -0.125])
    """
    return legendre_(degree("eval_legendre", "n", n, x), x)  # type: ignore[no-any-return]


def eval_chebyt(n: Any, x: Any, /) -> Array:
    """Chebyshev polynomial of the first kind of degree `n`.

    Definition: DLMF 18.3.

    Args:
        n: degree, integers of at least 0; not differentiable.
        x: real array.

    Returns:
        Values of the broadcast shape, in the promoted floating-point dtype (float64 for integers).

    Raises:
        DTypeError: `n` is not an integer.

    >>> tr.special.eval_chebyt(2, tr.asarray([0.0, 0.5]))
    Tensor([-1. , -0.5])
    """
    return chebyt_(degree("eval_chebyt", "n", n, x), x)  # type: ignore[no-any-return]


def eval_chebyu(n: Any, x: Any, /) -> Array:
    """Chebyshev polynomial of the second kind of degree `n`.

    Definition: DLMF 18.3.

    Args:
        n: degree, integers of at least 0; not differentiable.
        x: real array.

    Returns:
        Values of the broadcast shape, in the promoted floating-point dtype (float64 for integers).

    Raises:
        DTypeError: `n` is not an integer.

    >>> tr.special.eval_chebyu(2, tr.asarray([0.0, 0.5]))
    Tensor([-1.,  0.])
    """
    return chebyu_(degree("eval_chebyu", "n", n, x), x)  # type: ignore[no-any-return]


def eval_hermite(n: Any, x: Any, /) -> Array:
    """Physicists' Hermite polynomial of degree `n`.

    Definition: DLMF 18.3.

    Args:
        n: degree, integers of at least 0; not differentiable.
        x: real array.

    Returns:
        Values of the broadcast shape, in the promoted floating-point dtype (float64 for integers).

    Raises:
        DTypeError: `n` is not an integer.

    >>> tr.special.eval_hermite(2, tr.asarray([0.0, 0.5]))
    Tensor([-2., -1.])
    """
    return hermite_(degree("eval_hermite", "n", n, x), x)  # type: ignore[no-any-return]


def eval_hermitenorm(n: Any, x: Any, /) -> Array:
    """Probabilists' Hermite polynomial of degree `n`.

    Definition: DLMF 18.3.

    Args:
        n: degree, integers of at least 0; not differentiable.
        x: real array.

    Returns:
        Values of the broadcast shape, in the promoted floating-point dtype (float64 for integers).

    Raises:
        DTypeError: `n` is not an integer.

    >>> tr.special.eval_hermitenorm(2, tr.asarray([0.0, 0.5]))
    Tensor([-1.  , -0.75])
    """
    return hermitenorm_(degree("eval_hermitenorm", "n", n, x), x)  # type: ignore[no-any-return]


def eval_laguerre(n: Any, x: Any, /) -> Array:
    """Laguerre polynomial of degree `n`.

    Definition: DLMF 18.3.

    Args:
        n: degree, integers of at least 0; not differentiable.
        x: real array.

    Returns:
        Values of the broadcast shape, in the promoted floating-point dtype (float64 for integers).

    Raises:
        DTypeError: `n` is not an integer.

    >>> tr.special.eval_laguerre(2, tr.asarray([0.0, 0.5]))
    Tensor([1.   , 0.125])
    """
    return laguerre_(degree("eval_laguerre", "n", n, x), x)  # type: ignore[no-any-return]


def eval_genlaguerre(n: Any, alpha: Any, x: Any, /) -> Array:
    """Generalized Laguerre polynomial of degree `n`.

    Definition: DLMF 18.3.

    Args:
        n: degree, integers of at least 0; not differentiable.
        alpha: real array above -1.
        x: real array.

    Returns:
        Values of the broadcast shape, in the promoted floating-point dtype (float64 for integers).

    Raises:
        DTypeError: `n` is not an integer.

    >>> tr.special.eval_genlaguerre(2, 0.5, tr.asarray([0.0, 0.5]))
    Tensor([1.875, 0.75 ])
    """
    return genlaguerre_(degree("eval_genlaguerre", "n", n, x), alpha, x)  # type: ignore[no-any-return]


def eval_gegenbauer(n: Any, alpha: Any, x: Any, /) -> Array:
    """Gegenbauer polynomial of degree `n`.

    Definition: DLMF 18.3.

    Args:
        n: degree, integers of at least 0; not differentiable.
        alpha: real array above -1/2.
        x: real array.

    Returns:
        Values of the broadcast shape, in the promoted floating-point dtype (float64 for integers).

    Raises:
        DTypeError: `n` is not an integer.

    >>> tr.special.eval_gegenbauer(2, 0.5, tr.asarray([0.0, 0.5]))
    Tensor([-0.5  , -0.125])
    """
    return gegenbauer_(degree("eval_gegenbauer", "n", n, x), alpha, x)  # type: ignore[no-any-return]


def eval_jacobi(n: Any, alpha: Any, beta: Any, x: Any, /) -> Array:
    """Jacobi polynomial of degree `n`.

    Definition: DLMF 18.3.

    Args:
        n: degree, integers of at least 0; not differentiable.
        alpha: real array above -1.
        beta: real array above -1.
        x: real array.

    Returns:
        Values of the broadcast shape, in the promoted floating-point dtype (float64 for integers).

    Raises:
        DTypeError: `n` is not an integer.

    >>> tr.special.eval_jacobi(2, 0.5, 0.5, tr.asarray([0.0, 0.5]))
    Tensor([-0.625,  0.   ])
    """
    return jacobi_(degree("eval_jacobi", "n", n, x), alpha, beta, x)  # type: ignore[no-any-return]


def _lowered(n: Any, k: int, polynomial: Callable[[Any], Any], factor: Any = 1.0) -> Any:
    """``factor * polynomial(n - k)``, 0 where the degree would be negative."""
    if k == 0:
        return polynomial(n.astype(np.int64))
    m = (n - k).astype(np.int64)
    value = np.where(m < 0, 0.0, factor * polynomial(np.maximum(m, 0)))
    return np.where(n < 0, np.nan, value)


_SLOPES: dict[str, tuple[str, Callable[[int], tuple[float, ...]], Callable[[Any, int], Any]]] = {
    "chebyt": ("gegenbauer", lambda k: (float(k),), lambda n, k: 2.0 ** (k - 1) * factorial(k - 1) * n),
    "chebyu": ("gegenbauer", lambda k: (k + 1.0,), lambda n, k: 2.0**k * factorial(k)),
    "hermite": ("hermite", lambda k: (), lambda n, k: 2.0**k * rising(n, k, step=-1)),
    "hermitenorm": ("hermitenorm", lambda k: (), lambda n, k: rising(n, k, step=-1)),
    "laguerre": ("genlaguerre", lambda k: (float(k),), lambda n, k: (-1.0) ** k),
    "legendre": ("gegenbauer", lambda k: (k + 0.5,), lambda n, k: 2.0**k * rising(0.5, k)),
}
"""The derivative of order k of a polynomial of degree n: the family, its parameter, and a factor."""


def _without_parameter(name: str, orders: tuple[int, int], n: Any, x: Any) -> Any:
    special, k = host_special(), orders[1]
    if k == 0:
        return _lowered(n, 0, lambda m: getattr(special, f"eval_{name}")(m, x))
    family, parameter, factor = _SLOPES[name]
    return _lowered(n, k, lambda m: getattr(special, f"eval_{family}")(m, *parameter(k), x), factor(n, k))


def _radius(n: Any) -> Any:
    """Change of a parameter that changes the size of the polynomial some times, about ``n**parameter``."""
    return 2.0 / (1.0 + np.log1p(np.abs(n)))


def _genlaguerre(orders: tuple[int, int, int], n: Any, alpha: Any, x: Any) -> Any:
    special, k = host_special(), orders[2]
    if orders[1] == 0:
        return _lowered(n, k, lambda m: special.eval_genlaguerre(m, alpha + k, x), (-1.0) ** k)

    def f(a: Any) -> Any:
        return _lowered(n, k, lambda m: _laguerre_at(m, a + k, x), (-1.0) ** k)

    return around(f, (alpha,), (_radius(n),), orders[1:2])


def _laguerre_at(n: Any, alpha: Any, x: Any) -> Any:
    """The recurrence in the degree, which unlike SciPy's function also serves parameters up to -1."""
    before, value = np.zeros_like(x), np.ones_like(x)
    for i in range(int(n.max())):
        after = ((2 * i + 1 + alpha - x) * value - (i + alpha) * before) / (i + 1)
        before, value = value, np.where(i < n, after, value)
    return value


def _gegenbauer(orders: tuple[int, int, int], n: Any, alpha: Any, x: Any) -> Any:
    special, k = host_special(), orders[2]

    def f(a: Any) -> Any:
        return _lowered(n, k, lambda m: special.eval_gegenbauer(m, a + k, x), 2.0**k * rising(a, k))

    return around(f, (alpha,), (_radius(n),), orders[1:2])


def _jacobi(orders: tuple[int, int, int, int], n: Any, alpha: Any, beta: Any, x: Any) -> Any:
    special, k = host_special(), orders[3]

    def f(a: Any, b: Any) -> Any:
        factor = rising(n + a + b + 1, k) / 2.0**k
        return _lowered(n, k, lambda m: special.eval_jacobi(m, a + k, b + k, x), factor)

    radii = (_radius(n), _radius(n))
    return around(f, (alpha, beta), radii, orders[1:3])


def _plain(name: str, doc: str) -> Primitive:
    return partials(f"eval_{name}", "n x", doc, partial(_without_parameter, name), "n")


legendre_ = _plain("legendre", "Legendre polynomial.")
chebyt_ = _plain("chebyt", "Chebyshev polynomial of the first kind.")
chebyu_ = _plain("chebyu", "Chebyshev polynomial of the second kind.")
hermite_ = _plain("hermite", "Physicists' Hermite polynomial.")
hermitenorm_ = _plain("hermitenorm", "Probabilists' Hermite polynomial.")
laguerre_ = _plain("laguerre", "Laguerre polynomial.")
genlaguerre_ = partials("eval_genlaguerre", "n alpha x", "Generalized Laguerre polynomial.", _genlaguerre, "n")
gegenbauer_ = partials("eval_gegenbauer", "n alpha x", "Gegenbauer polynomial.", _gegenbauer, "n")
jacobi_ = partials("eval_jacobi", "n alpha beta x", "Jacobi polynomial.", _jacobi, "n")
