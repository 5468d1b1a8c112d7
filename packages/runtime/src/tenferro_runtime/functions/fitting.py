"""Roots of polynomials, polynomials with given roots, and least-squares fits, by means of the linalg family."""

from __future__ import annotations

import warnings
from typing import Any, Literal, overload

import numpy as np

from tenferro_runtime._namespace import export
from tenferro_tensor import Array, catalog, functions
from tenferro_tensor.functions import (
    asarray,
    concat,
    conj,
    count_nonzero,
    full_like,
    matmul,
    matrix_transpose,
    outer,
    zeros,
)
from tenferro_tensor.operands import alike, converted, host_elements, number, value, whole
from tenferro_tensor_core import (
    ArgumentError,
    ShapeError,
    TracingError,
    ask,
    complex_of,
    inexact_of,
    real_of,
    specialise,
)

__all__ = ["poly", "polyfit", "roots"]


def __dir__() -> list[str]:
    return __all__.copy()


def _inexact(x: Any) -> Any:
    x = asarray(x) if isinstance(x, (list, tuple)) else value(x)
    return converted(x, inexact_of(x.spec.dtype))


def roots(p: Any, /, *, strip_zeros: bool | None = None) -> Array:
    """The roots of a polynomial, the eigenvalues of its companion matrix, in an unspecified order.

    The derivative exists where the roots are simple.

    Args:
        p: coefficients, highest power first, a vector.
        strip_zeros: drop leading zeros, and return a root 0 for each trailing zero; by default if the coefficients are
            known. A traced polynomial must not begin with 0.

    Returns:
        Complex vector of the roots.

    Raises:
        MissingFamilyError: the linalg functions are not installed.
        ShapeError: `p` is not a vector.
        TracingError: zeros are to be stripped from coefficients that are not known.

    >>> tr.imag(tr.roots(tr.asarray([1.0, 0.0, 1.0])))
    Tensor([ 1., -1.])
    """
    p = _inexact(p)
    if p.spec.ndim != 1:
        raise ShapeError(f"roots takes a vector of coefficients, got {p.spec!r}; use vmap for stacks")
    n = specialise(p.spec.shape[0], "roots")
    known = host_elements(p) if strip_zeros is not False else None
    if known is None and strip_zeros:
        raise TracingError("roots can strip zeros only from known coefficients; pass strip_zeros=False")
    at_zero = 0
    if known is not None:
        places = known.nonzero()[0]
        first, last = (int(places[0]), int(places[-1]) + 1) if places.size else (0, 0)
        at_zero, p, n = n - last if places.size else 0, p[first:last], last - first
    place, dtype = p.spec.place, complex_of(p.spec.dtype)
    none = zeros(at_zero, dtype=dtype, device=place.device)
    if n < 2:
        return none
    row = catalog.div(catalog.neg(p[1:]), p[0])
    companion = concat([row[None, :], asarray(np.eye(n - 2, n - 1, dtype=p.spec.dtype), device=place.device)])
    found = export("linalg").eigvals(companion)
    return concat([found, none]) if at_zero else found


def poly(x: Any, /) -> Array:
    """The polynomial with given roots, or the characteristic polynomial of a matrix; its leading coefficient is 1.

    Args:
        x: roots (n,), or a matrix (n, n).

    Returns:
        Coefficients (n + 1,), highest power first; real for real roots and for known complex conjugate pairs.

    Raises:
        MissingFamilyError: `x` is a matrix, and the linalg functions are not installed.
        ShapeError: `x` is neither a vector nor a square matrix.

    >>> tr.poly(tr.asarray([1.0, 2.0]))
    Tensor([ 1., -3.,  2.])
    """
    x = _inexact(x)
    real = x.spec.ndim == 2 and not x.spec.cplx
    if x.spec.ndim == 2 and ask(x.spec.shape[0], "==", x.spec.shape[1]):
        x = export("linalg").eigvals(x)
    elif x.spec.ndim == 0:
        x = catalog.reshape(x, shape=(1,))
    if x.spec.ndim != 1:
        raise ShapeError(f"poly takes a vector of roots or a square matrix, got {x.spec!r}", shape=x.spec.shape)
    out = full_like(x[:1], 1) if ask(x.spec.shape[0], ">", 0) else asarray(np.ones(1, x.spec.dtype))
    for k in range(specialise(x.spec.shape[0], "poly")):
        root = x[k : k + 1]
        out = functions.convolve(out, concat([full_like(root, 1), catalog.neg(root)]))
    if not x.spec.cplx:
        return out
    if not real:
        known = host_elements(x)
        real = known is not None and bool(np.all(np.sort(known) == np.sort(known.conj())))
    return catalog.real(out) if real else out


@overload
def polyfit(
    x: Any, y: Any, deg: int, rcond: Any = ..., full: Literal[False] = ..., w: Any = ..., cov: Literal[False] = ...
) -> Array: ...
@overload
def polyfit(
    x: Any, y: Any, deg: int, rcond: Any = ..., full: bool = ..., w: Any = ..., cov: bool | str = ...
) -> Any: ...
def polyfit(
    x: Any,
    y: Any,
    deg: int,
    rcond: Any = None,
    full: bool = False,
    w: Any = None,
    cov: bool | str = False,
) -> Any:
    """The least-squares fit of a polynomial to points.

    Differentiable with respect to `x`, `y` and `w` where the points determine the polynomial.

    Args:
        x: abscissas (m,).
        y: values (m,), or (m, k) for k fits.
        deg: degree of the polynomial.
        rcond: singular values of the scaled Vandermonde matrix up to `rcond` times the largest are treated as 0; by
            default the number of points times the rounding unit.
        full: also return residuals, rank, singular values and `rcond`.
        w: weights (m,) of the residuals before squaring.
        cov: also return the covariance matrix of the coefficients, scaled by the residuals; ``"unscaled"`` for the
            inverse of the normal matrix alone.

    Returns:
        The coefficients (deg + 1,) or (deg + 1, k), highest power first; with `full` or `cov` a tuple.

    Raises:
        MissingFamilyError: the linalg functions are not installed.
        ArgumentError: the degree is negative, or there are too few points for a covariance.
        ShapeError: the points do not fit together.

    >>> tr.round(tr.polyfit(tr.asarray([0.0, 1.0, 2.0]), tr.asarray([1.0, 3.0, 5.0]), 1))
    Tensor([2., 1.])
    """
    order = whole("polyfit", "deg", deg) + 1
    x, y = alike(_inexact(x), _inexact(y))
    if order < 1:
        raise ArgumentError(f"polyfit takes a degree of at least 0, got {deg}", deg=deg)
    if x.spec.ndim != 1 or y.spec.ndim not in (1, 2) or not ask(x.spec.shape[0], "==", y.spec.shape[0]):
        raise ShapeError(f"polyfit needs a vector x, and as many values y, got {x.spec!r} and {y.spec!r}")
    if ask(x.spec.shape[0], "==", 0):
        raise ShapeError("polyfit needs at least one point, got none")
    linalg = export("linalg")
    left, right = functions.vander(x, order), y
    if w is not None:
        w, left, right = alike(_inexact(w), left, right)
        if w.spec.ndim != 1 or not ask(w.spec.shape[0], "==", x.spec.shape[0]):
            raise ShapeError(f"polyfit needs one weight for each point, got {w.spec!r} for {x.spec!r}")
        left = catalog.mul(left, w[:, None])
        right = catalog.mul(right, w[:, None] if right.spec.ndim == 2 else w)
    scale = catalog.sqrt(catalog.reduce_sum(_squares(left), axes=(0,)))
    left = catalog.div(left, scale)
    found = matmul(linalg.pinv(left, rtol=rcond), right)
    coefficients = catalog.div(found, scale[:, None] if found.spec.ndim == 2 else scale)
    n = x.spec.shape[0]
    unit = float(np.finfo(real_of(x.spec.dtype)).eps)
    points = number(n, x.spec.place)
    cut = points * unit if rcond is None else rcond
    known = host_elements(left)
    if known is not None and not full and isinstance(cut, float) and np.linalg.matrix_rank(known, rtol=cut) < order:
        warnings.warn("the points hardly determine the polynomial of polyfit", np.exceptions.RankWarning, stacklevel=2)
    misfit = catalog.sub(matmul(left, found), right)
    residuals = catalog.reduce_sum(_squares(misfit), axes=(0,))
    if full:
        s = linalg.svdvals(left)
        rank = count_nonzero(s > cut * s[0])
        residuals = catalog.reshape(residuals, shape=(residuals.spec.size,))
        enough = ask(n, ">", order)
        return coefficients, residuals if enough else residuals[:0], rank, s, cut
    if not cov:
        return coefficients
    base = linalg.inv(matmul(conj(matrix_transpose(left)), left))
    base = catalog.div(base, outer(scale, scale))
    base = base[:, :, None] if found.spec.ndim == 2 else base
    if cov == "unscaled":
        return coefficients, base
    if not ask(n, ">", order):
        raise ArgumentError(f"polyfit needs more than {order} points to scale the covariance, got {n}", points=str(n))
    factor = catalog.div(residuals, points - order)
    return coefficients, catalog.mul(base, factor)


def _squares(x: Any) -> Any:
    return catalog.real(catalog.mul(x, conj(x))) if x.spec.cplx else catalog.mul(x, x)
