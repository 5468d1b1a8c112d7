"""Norms of vectors and matrices.

For ``n = (sum |x_i|^p)^(1/p)``: ``dn = sum sign(x_i)* (|x_i| / n)^(p - 1) dx_i``. Ratios to the norm keep everything
in range; the kernels divide by the largest element first, so neither 1e200 nor 1e-200 overflows or underflows.

A norm has a kink where it is 0; its derivatives of every order are defined as 0 there, like those of `hypot`. The same
holds for derivatives with respect to a zero element where they do not exist; for even powers they always exist.
"""

from functools import partial
from typing import Any, Final

import numpy as np

from tenferro_linalg._algebra import cj, re, to
from tenferro_linalg._operands import inexact, integer, matrices
from tenferro_linalg._svd import svdvals
from tenferro_runtime import cond
from tenferro_runtime.extension import ArgumentError, AxisError, General, Registry, ShapeError, Spec, primitive
from tenferro_tensor import Array
from tenferro_tensor.catalog import abs as absolute
from tenferro_tensor.catalog import (
    broadcast_in_dim,
    convert,
    eq,
    gt,
    is_finite,
    lt,
    ne,
    pad,
    pow,
    reduce_all,
    reduce_max,
    reduce_min,
    reduce_sum,
    reshape,
    select,
    sign,
    slice_,
    sqrt,
)
from tenferro_tensor.functions import abs2, full_like, moveaxis
from tenferro_tensor_core import real_of
from tenferro_tensor_core.tracebacks import boundary

inf = float("inf")


@boundary
def vector_norm(
    x: Any, /, *, axis: int | tuple[int, ...] | None = None, keepdims: bool = False, ord: float = 2
) -> Array:
    """Vector norm ``(sum |x_i|^ord)^(1/ord)`` over one or more axes.

    Args:
        x: array of any shape, real or complex.
        axis: an axis, several, or ``None`` for all.
        keepdims: keep the reduced axes with extent 1.
        ord: any real number; inf and -inf for the largest and smallest absolute value, 0 for the number of nonzero
            elements (which has no gradient).

    Returns:
        Real array of the precision of `x`, without the reduced axes.

    Raises:
        ArgumentError: `ord` is not a real number.
        AxisError: an axis is out of range or repeated.
        ShapeError: `ord` is inf or -inf and there are no elements.

    >>> vector_norm([3.0, 4.0])
    Tensor(5.)
    """
    x = inexact(x)
    axes = _axes("vector_norm", x, axis)
    out = _vector_norm(x, axes, ord)
    return _kept(out, x, axes) if keepdims else out


@boundary
def matrix_norm(x: Any, /, *, keepdims: bool = False, ord: float | str | None = "fro") -> Array:
    """Norm of matrices.

    Args:
        x: matrices (..., m, n), real or complex.
        keepdims: keep the last two axes with extent 1.
        ord: ``"fro"``, ``"nuc"`` (sum of singular values), 2 or -2 (largest or smallest singular value), 1 or -1
            (largest or smallest absolute column sum), inf or -inf (of row sums).

    Returns:
        Real numbers (...) of the precision of `x`.

    Raises:
        ArgumentError: `ord` is none of these.
        DegenerateError: (gradient of ``"nuc"``, 2, -2) equal or zero singular values create a kink.

    >>> matrix_norm([[3.0, 0.0], [0.0, 4.0]], ord="nuc")
    Tensor(7.)
    """
    x = matrices("matrix_norm", x)
    m, n = x.ndim - 2, x.ndim - 1
    if ord in ("fro", None):
        out = _vector_norm(x, (m, n), 2)
    elif ord == "nuc":
        out = reduce_sum(svdvals(x), axes=(m,))
    elif ord in (2, -2):
        # An entry, not an extremum: it has no gradient at equal values, as the rule of svdvals reports.
        s = svdvals(x)
        k = s.spec.shape[-1]
        a, b = (0, 1) if ord == 2 else (k - 1, k)
        batch = s.spec.shape[:-1]
        out = reshape(slice_(s, start=(*(0,) * m, a), limit=(*batch, b), stride=(1,) * (m + 1)), shape=batch)
    elif ord in (1, -1, inf, -inf):
        summed = m if ord in (1, -1) else n
        sums = reduce_sum(absolute(x), axes=(summed,))
        out = (reduce_max if ord in (1, inf) else reduce_min)(sums, axes=(m,))
    else:
        raise ArgumentError(
            f"matrix_norm: ord={ord!r} is not one of 'fro', 'nuc', 1, -1, 2, -2, inf, -inf; "
            "vector_norm takes other powers over any axes",
            ord=repr(ord),
        )
    return _kept(out, x, (m, n)) if keepdims else out


@boundary
def norm(
    x: Any, /, ord: float | str | None = None, axis: int | tuple[int, ...] | None = None, keepdims: bool = False
) -> Array:
    """Norm of vectors or matrices, with NumPy's conventions.

    Args:
        x: array, real or complex.
        ord: as for `vector_norm` if there is one axis, as for `matrix_norm` if there are two; by default the Euclidean
            norm over all axes.
        axis: the axis of vectors, or the two axes of matrices; by default all axes, at most two if `ord` is given.
        keepdims: keep the reduced axes with extent 1.

    Returns:
        Real array of the precision of `x`, without the reduced axes.

    Raises:
        ArgumentError: `ord` is not defined for the number of axes.
        AxisError: `axis` is neither one axis nor two, or one is out of range.
        ShapeError: `ord` is given without `axis` for an array of more than two axes.

    >>> norm([[3.0, 0.0], [0.0, 4.0]]), norm([[3.0, 0.0], [0.0, 4.0]], axis=0), norm([[3.0, 0.0], [0.0, 4.0]], 1)
    (Tensor(5.), Tensor([3., 4.]), Tensor(4.))
    """
    x = inexact(x)
    if axis is None and ord is None:
        return vector_norm(x, keepdims=keepdims)
    axes = _axes("norm", x, axis)
    if axis is None and len(axes) > 2:
        raise ShapeError(
            f"norm: ord={ord!r} is defined for vectors and matrices, got an array of shape {x.spec.shape}; "
            "name the axes of the vectors or matrices with axis=",
            shape=x.spec.shape,
        )
    if len(axes) == 1:
        power = 2 if ord is None else ord
        if isinstance(power, str):
            raise ArgumentError(f"norm: ord={ord!r} is a matrix norm, but one axis is given", ord=repr(ord))
        return vector_norm(x, axis=axes, keepdims=keepdims, ord=power)
    if len(axes) != 2:
        raise AxisError(f"norm: axis={axis} must be one axis (vectors) or two (matrices)", axis=axis)
    out = matrix_norm(moveaxis(x, axes, (-2, -1)), ord=ord)
    return _kept(out, x, axes) if keepdims else out


def _vector_norm(x: Any, axes: tuple[int, ...], ord: float) -> Any:
    if not isinstance(ord, (int, float)) or ord != ord:
        raise ArgumentError(f"vector_norm: ord={ord!r} is not a real number, inf or -inf", ord=repr(ord))
    if not axes:
        return absolute(x) if ord else to(convert(ne(x, 0), dtype=real_of(x.dtype)), real_of(x.dtype))
    if ord == inf:
        return reduce_max(absolute(x), axes=axes)
    if ord == -inf:
        return reduce_min(absolute(x), axes=axes)
    if ord == 0:
        return reduce_sum(convert(ne(x, 0), dtype=real_of(x.dtype)), axes=axes)
    if ord == 1:
        return reduce_sum(absolute(x), axes=axes)
    return power_norm_(x, axes=axes, p=float(ord))


def _axes(what: str, x: Any, axis: int | tuple[int, ...] | None) -> tuple[int, ...]:
    if axis is None:
        return tuple(range(x.ndim))
    given = [integer(what, "axis", a) for a in (axis if isinstance(axis, (tuple, list)) else (axis,))]
    axes = tuple(a + x.ndim if a < 0 else a for a in given)
    if any(not 0 <= a < x.ndim for a in axes) or len(set(axes)) < len(axes):
        raise AxisError(
            f"{what}: axis={axis} does not name different axes of an array of shape {x.spec.shape}; "
            f"axes run from {-x.ndim} to {x.ndim - 1}",
            axis=axis,
        )
    return axes


def _kept(out: Any, x: Any, axes: tuple[int, ...]) -> Any:
    return reshape(out, shape=tuple(1 if i in axes else d for i, d in enumerate(x.spec.shape)))


@primitive(family="tenferro-linalg.power_norm.v1", extension="linalg", widens=True)
def power_norm_(x: Spec, *, axes: tuple[int, ...], p: float) -> Spec:
    """``(sum |x|^p)^(1/p)`` over `axes`, without overflow or underflow."""
    if not x.inexact:
        raise ShapeError(f"power_norm takes floating point or complex values, got {x!r}")
    return x.with_(shape=tuple(d for i, d in enumerate(x.shape) if i not in axes), dtype=real_of(x.dtype))


SQUARES: Final = {
    dtype: (float(info.tiny / info.eps**2), float(info.max * info.eps))
    for dtype, info in [(np.dtype(name), np.finfo(name)) for name in ("float32", "float64")]
}
"""Sums of squares that lost nothing to underflow or overflow."""


def power_kernel(la: Any, ins: Any, outs: Any, *, axes: tuple[int, ...], p: float) -> Any:
    xp, dtype, ndim = la.xp, outs[0].dtype, ins[0].ndim

    def run(x: Any) -> Any:
        if p == 2 and xp is np and x.size:
            with np.errstate(over="ignore"):
                squares = x.real * x.real + x.imag * x.imag if x.dtype.kind == "c" else x * x
                found = squares.sum(axis=axes, dtype=dtype)
            low, high = SQUARES[dtype]
            if low < found < high if len(axes) == ndim else low < found.min() and found.max() < high:
                return np.sqrt(found)
        size = xp.abs(x)
        shape = tuple([x.shape[i] for i in range(ndim) if i not in axes])
        if not x.size:
            return xp.zeros(shape, dtype)[()]
        # The smallest element dominates negative powers.
        unit = size.max(axis=axes, keepdims=True) if p > 0 else size.min(axis=axes, keepdims=True)
        plain = (unit > 0) & xp.isfinite(unit)  # otherwise the norm equals the unit: 0, inf or nan
        ratio = xp.where(plain, size, 1) / xp.where(plain, unit, 1)
        total = xp.where(plain, unit, 1) * (ratio**p).sum(axis=axes, keepdims=True) ** (1 / p)
        return xp.where(plain, total, unit).reshape(shape).astype(dtype)[()]

    return run


def _power_norm(x: Any, *, axes: tuple[int, ...], p: float) -> Any:
    if p != 2:
        return _in_units(x, axes, p)
    squares = reduce_sum(abs2(x), axes=axes)
    low, high = SQUARES[squares.dtype]
    inside = reduce_all(gt(squares, low) & lt(squares, high), axes=tuple(range(squares.ndim)))
    return cond(inside, lambda: sqrt(squares), lambda: _rescaled(x, squares, axes))


def _rescaled(x: Any, squares: Any, axes: tuple[int, ...]) -> Any:
    """The Euclidean norm after multiplication by a power of two that brings the squares into the range of the dtype."""
    small, large = (2.0**600, 2.0**-540) if squares.dtype.itemsize == 8 else (2.0**90, 2.0**-80)
    kept = tuple(i for i in range(x.ndim) if i not in axes)
    scale = select(lt(squares, 1.0), full_like(squares, small), large)
    wide = broadcast_in_dim(scale, shape=x.spec.shape, dims=kept)
    return sqrt(reduce_sum(abs2(x * to(wide, x.dtype)), axes=axes)) / scale


def _in_units(x: Any, axes: tuple[int, ...], p: float) -> Any:
    """In units of the largest element (for negative powers, of the smallest); the norm itself if that is 0, inf or NaN.

    A bound beside the elements serves arrays without any.
    """
    size, kept = absolute(x), tuple(i for i in range(x.ndim) if i not in axes)
    none, beside = (0,) * x.ndim, tuple(int(i in axes) for i in range(x.ndim))
    bounded = pad(size, 0.0 if p > 0 else inf, low=none, high=beside, interior=none)
    unit = (reduce_max if p > 0 else reduce_min)(bounded, axes=axes)
    plain = gt(unit, 0.0) & is_finite(unit)
    wide = partial(broadcast_in_dim, shape=x.spec.shape, dims=kept)
    total = reduce_sum(pow(select(wide(plain), size, 1.0) / wide(select(plain, unit, 1.0)), p), axes=axes)
    found = select(plain, unit * pow(total, 1 / p), unit)
    return found if p > 0 else select(eq(total, 0.0), 0.0, found)  # without elements; one power is 1


def _weights(x: Any, n: Any, axes: tuple[int, ...], p: float) -> Any:
    """Derivative of the norm with respect to ``|x|`` times the sign of x; see the module's text for zeros."""
    kept = tuple(i for i in range(x.ndim) if i not in axes)
    wide = partial(broadcast_in_dim, shape=x.spec.shape, dims=kept)
    zero = eq(n, 0.0)
    ratio = x / to(wide(select(zero, 1.0, n)), x.dtype)
    if p == 2:
        found = ratio
    elif p > 2 and p % 2 == 0:
        found = ratio * to(pow(abs2(ratio), p / 2 - 1), x.dtype)
    else:
        size = absolute(ratio)
        at_zero = eq(size, 0.0)
        powers = pow(select(at_zero, 1.0, size), p - 1)
        found = sign(x) * to(select(at_zero, 0.0, powers), x.dtype)
    return select(wide(zero), 0.0, found)


def _jvp(primals: Any, tangents: Any, outs: Any, *, axes: tuple[int, ...], p: float) -> tuple[Any]:
    return (reduce_sum(re(cj(_weights(primals[0], outs[0], axes, p)) * tangents[0]), axes=axes),)


def _vjp(primals: Any, outs: Any, cotangents: Any, *, axes: tuple[int, ...], p: float) -> tuple[Any]:
    x, n = primals[0], outs[0]
    kept = tuple(i for i in range(x.ndim) if i not in axes)
    return (_weights(x, n, axes, p) * to(broadcast_in_dim(cotangents[0], shape=x.spec.shape, dims=kept), x.dtype),)


def _square(x: Any, *, axes: tuple[int, ...], p: float) -> Any:
    """The square of a Euclidean norm, which is smooth; those of other powers are not."""
    return reduce_sum(abs2(x), axes=axes) if p == 2 else None


def register(registry: Registry) -> None:
    """Kernel and rule of the primitive of this module."""
    from tenferro_linalg._providers import kernels

    kernels(registry, power_norm_, power_kernel, blas=False)
    registry.expansion(power_norm_, _power_norm, keep=True)
    registry.rule(power_norm_, General(jvp=_jvp, vjp=_vjp, square=_square))
