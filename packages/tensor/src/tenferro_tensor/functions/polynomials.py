"""Polynomials as vectors of their coefficients, of the highest power first.

Leading zeros of products and remainders are dropped if the coefficients are known, as in NumPy; in a trace they are
kept. ``trim_leading_zeros`` selects one behaviour for both.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from tenferro_tensor import catalog
from tenferro_tensor.calls import SCALARS
from tenferro_tensor.direct import direct
from tenferro_tensor.functions import _numpy_forms
from tenferro_tensor.functions._floating import floating
from tenferro_tensor.functions._listed import listed
from tenferro_tensor.functions._span import span
from tenferro_tensor.functions.creation import full_like
from tenferro_tensor.functions.signals import convolve
from tenferro_tensor.operands import alike, converted, host_elements, positions, size_of, whole
from tenferro_tensor_core import (
    ArgumentError,
    Dim,
    ShapeError,
    TracingError,
    ask,
    bool_,
    dim_max,
    int64,
    specialise,
)

if TYPE_CHECKING:
    from tenferro_tensor._array import Array

__all__ = ["polyadd", "polyder", "polydiv", "polyint", "polymul", "polysub", "polyval", "vander"]


def __dir__() -> list[str]:
    return __all__.copy()


def coefficients(name: str, p: Any) -> Any:
    """The vector of coefficients; a number is a polynomial of degree 0."""
    p = listed(p)
    if not p.spec.ndim:
        p = catalog.reshape(p, shape=(1,))
    if p.spec.ndim != 1:
        raise ShapeError(f"{name} takes a vector of coefficients, got {p.spec!r}; use vmap for stacks")
    return converted(p, int64) if p.spec.dtype is bool_ else p


def trimmed(name: str, p: Any, trim: bool | None, tolerance: float = 0.0) -> Any:
    """Drop leading zeros if the coefficients are known, unless `trim` is False; always keep the last coefficient."""
    known = host_elements(p) if trim is not False else None
    if known is None:
        if trim:
            raise TracingError(
                f"{name} drops leading zeros of coefficients that are known; pass trim_leading_zeros=False"
            )
        return p
    large = (np.abs(known) > tolerance).nonzero()[0]
    first = int(large[0]) if large.size else max(known.size - 1, 0)
    return span(p, 0, first, known.size) if first else p


@direct(_numpy_forms.polyadd)
def polyadd(p: Any, q: Any, /) -> Array:
    """Sum of two polynomials.

    Args:
        p, q: vectors of coefficients, highest power first.

    Returns:
        Vector of coefficients.

    Raises:
        ShapeError: an operand is not a vector.

    >>> tr.polyadd(tr.asarray([1, 2]), tr.asarray([9, 5, 4]))
    Tensor([9, 6, 6])
    """
    return catalog.add(*_aligned("polyadd", p, q))


@direct(_numpy_forms.polysub)
def polysub(p: Any, q: Any, /) -> Array:
    """Difference of two polynomials.

    Args:
        p, q: vectors of coefficients, highest power first.

    Returns:
        Vector of coefficients.

    Raises:
        ShapeError: an operand is not a vector.

    >>> tr.polysub(tr.asarray([2, 10]), tr.asarray([1, 2, 3]))
    Tensor([-1,  0,  7])
    """
    return catalog.sub(*_aligned("polysub", p, q))


def _aligned(name: str, p: Any, q: Any) -> list[Any]:
    given = alike(*[v if v.__class__ in SCALARS else coefficients(name, v) for v in (p, q)])
    p, q = [coefficients(name, v) for v in given]
    n = dim_max(p.spec.shape[0], q.spec.shape[0])
    return [catalog.pad(v, 0, low=(n - v.spec.shape[0],), high=(0,), interior=(0,)) for v in (p, q)]


def polymul(p: Any, q: Any, /, *, trim_leading_zeros: bool | None = None) -> Array:
    """Product of two polynomials.

    Args:
        p, q: vectors of coefficients, highest power first.
        trim_leading_zeros: whether to remove leading zeros of the result; by default only if they are known.

    Returns:
        Vector of coefficients.

    Raises:
        ShapeError: an operand is not a vector.

    See also:
        `convolve`, the same on vectors.

    >>> tr.polymul(tr.asarray([1, 2]), tr.asarray([1, 3]))
    Tensor([1, 5, 6])
    """
    p, q = (trimmed("polymul", coefficients("polymul", v), trim_leading_zeros) for v in (p, q))
    return convolve(p, q)


def polydiv(u: Any, /, v: Any, *, trim_leading_zeros: bool | None = None) -> tuple[Array, Array]:
    """Quotient and remainder of two polynomials.

    Args:
        u: coefficients of the dividend, highest power first.
        v: coefficients of the divisor.
        trim_leading_zeros: whether to remove leading zeros of the result; by default only if they are known.

    Returns:
        A tuple of the coefficients of the quotient and of the remainder.

    Raises:
        ShapeError: an operand is not a vector, or has no coefficients.

    >>> tr.polydiv(tr.asarray([3.0, 5.0, 2.0]), tr.asarray([2.0, 1.0]))
    (Tensor([1.5 , 1.75]), Tensor([0.25]))
    """
    u, v = alike(floating(coefficients("polydiv", u)), floating(coefficients("polydiv", v)))
    m, n = (specialise(x.spec.shape[0], "polydiv") for x in (u, v))
    if not m or not n:
        raise ShapeError(f"polydiv needs at least one coefficient of each polynomial, got {m} and {n}")
    lead = catalog.reshape(span(v, 0, 0, 1), shape=())
    quotient, rest = [], u
    for k in range(m - n + 1):
        factor = catalog.div(catalog.reshape(span(rest, 0, k, k + 1), shape=()), lead)
        quotient.append(catalog.reshape(factor, shape=(1,)))
        taken = catalog.pad(catalog.mul(factor, v), 0.0, low=(k,), high=(m - n - k,), interior=(0,))
        rest = catalog.sub(rest, taken)
        # The coefficients divided so far are exactly 0, despite rounding.
        rest = catalog.select(catalog.le(positions(rest, 0), k), 0, rest)
    q = catalog.concatenate(*quotient, axis=0) if quotient else full_like(span(u, 0, 0, 1), 0)
    return q, trimmed("polydiv", rest, trim_leading_zeros, 1e-8)


@direct(_numpy_forms.polyval)
def polyval(p: Any, /, x: Any) -> Array:
    """Evaluate a polynomial by Horner's rule.

    Args:
        p: vector of coefficients, highest power first.
        x: points, of any shape.

    Returns:
        Array of the shape of `x`, in the promoted dtype.

    Raises:
        ShapeError: `p` is not a vector.

    >>> tr.polyval(tr.asarray([3, 0, 1]), tr.asarray([5, 2]))
    Tensor([76, 13])
    """
    p, x = coefficients("polyval", p), listed(x)
    out = full_like(x, 0)
    for k in range(specialise(p.spec.shape[0], "polyval")):
        out = catalog.add(catalog.mul(out, x), catalog.reshape(span(p, 0, k, k + 1), shape=()))
    return out


def polyder(p: Any, /, m: int = 1) -> Array:
    """Derivative of a polynomial.

    Args:
        p: vector of coefficients, highest power first.
        m: order of the derivative.

    Returns:
        Vector of coefficients.

    Raises:
        ArgumentError: `m` is negative.
        ShapeError: `p` is not a vector.

    >>> tr.polyder(tr.asarray([1, 1, 1, 1]))
    Tensor([3, 2, 1])
    """
    p, m = coefficients("polyder", p), whole("polyder", "m", m)
    if m < 0:
        raise ArgumentError(f"polyder takes an order of at least 0, got {m}; use polyint", m=m)
    for _ in range(m):
        n = p.spec.shape[0]
        if ask(n, "<=", 1):
            return span(p, 0, 0, 0)
        p = catalog.mul(span(p, 0, 0, n - 1), _powers(p, n, 1))
    return p if m else catalog.reshape(p, shape=p.spec.shape)


def _powers(p: Any, n: Any, least: int) -> Any:
    """The exponents of the coefficients before the last one, in the dtype of the coefficients."""
    up = catalog.iota(shape=(n - 1,), dtype=int64, axis=0, place=p.spec.place)
    down = catalog.reverse(catalog.add(up, least), axes=(0,))
    return converted(down, p.spec.dtype)


def polyint(p: Any, /, m: int = 1, k: Any = None) -> Array:
    """Antiderivative of a polynomial.

    Args:
        p: vector of coefficients, highest power first.
        m: number of integrations.
        k: constants of integration, one for each integration in order, or one for all; 0 by default.

    Returns:
        Vector of coefficients.

    Raises:
        ArgumentError: `m` is negative, or there are too few constants.
        ShapeError: `p` is not a vector.

    >>> tr.polyint(tr.asarray([6.0, 2.0, 1.0]), k=4.0)
    Tensor([2., 1., 1., 4.])
    """
    p, m = floating(coefficients("polyint", p)), whole("polyint", "m", m)
    if m < 0:
        raise ArgumentError(f"polyint takes an order of at least 0, got {m}; use polyder", m=m)
    constants = _constants(k, m)
    for c in constants:
        p, c = alike(p, c)
        n = p.spec.shape[0]
        p = catalog.div(p, _powers(p, n + 1, 1))
        p = catalog.concatenate(p, catalog.reshape(c, shape=(1,)), axis=0)
    return p if m else catalog.reshape(p, shape=p.spec.shape)


def _constants(k: Any, m: int) -> Sequence[Any]:
    if k is None:
        return [0.0] * m
    if k.__class__ in (int, float, complex):
        given: Any = [k] * m if m > 1 else [k]
    else:
        found = coefficients("polyint", k)
        n = specialise(found.spec.shape[0], "polyint(k)")
        given = [span(found, 0, i, i + 1) for i in range(n)]
        given = given * m if n == 1 and m > 1 else given
    if len(given) < m:
        raise ArgumentError(f"polyint needs one constant, or one for each of {m} times, got {len(given)}", m=m)
    return given[:m]


@direct(_numpy_forms.vander)
def vander(x: Any, /, n: Any = None, increasing: bool = False) -> Array:
    """Vandermonde matrix: column j is ``x**(n - 1 - j)``, or ``x**j`` if `increasing`.

    Args:
        x: vector.
        n: number of columns; by default the extent of `x`.
        increasing: sort the powers in ascending order.

    Returns:
        Array of shape (extent of x, n).

    Raises:
        ShapeError: `x` is not a vector.
        ArgumentError: `n` is negative.

    >>> tr.vander(tr.asarray([1, 2, 3]), 3)
    Tensor([[1, 1, 1],
            [4, 2, 1],
            [9, 3, 1]])
    """
    x = listed(x)
    if x.spec.ndim != 1:
        raise ShapeError(f"vander takes a vector, got {x.spec!r}; use vmap for stacks", shape=x.spec.shape)
    if x.spec.dtype.kind in "iub":
        x = converted(x, int64)
    rows = x.spec.shape[0]
    cols = rows if n is None else size_of("vander", "n", n)
    if isinstance(cols, int) and cols < 0:
        raise ArgumentError(f"vander makes at least 0 columns, got {cols}", n=cols)
    if not isinstance(cols, Dim) and cols == 0:
        return catalog.broadcast_in_dim(full_like(span(x, 0, 0, 0), 1), shape=(rows, 0), dims=(1,))
    wide = catalog.broadcast_in_dim(x, shape=(rows, dim_max(cols - 1, 0)), dims=(0,))
    ones = catalog.reshape(full_like(x, 1), shape=(rows, 1))
    powers = catalog.cumprod(catalog.concatenate(ones, wide, axis=1), axis=1, reverse=False)
    powers = span(powers, 1, 0, cols)
    return powers if increasing else catalog.reverse(powers, axes=(1,))
