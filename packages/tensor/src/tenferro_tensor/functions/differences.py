"""Derivatives and integrals of sampled functions, and phases without jumps."""

from __future__ import annotations

from math import pi
from typing import TYPE_CHECKING, Any, overload

from tenferro_tensor import catalog
from tenferro_tensor.calls import SCALARS
from tenferro_tensor.direct import direct
from tenferro_tensor.functions import _numpy_forms
from tenferro_tensor.functions._floating import floating
from tenferro_tensor.functions._listed import listed
from tenferro_tensor.functions._span import span
from tenferro_tensor.functions.creation import asarray
from tenferro_tensor.functions.manipulation import ravel
from tenferro_tensor.functions.scans import diff
from tenferro_tensor.operands import alike, axes_of, axis_of, converted
from tenferro_tensor_core import ArgumentError, ShapeError, ask, int64

if TYPE_CHECKING:
    from tenferro_tensor._array import Array

__all__ = ["cumulative_trapezoid", "ediff1d", "gradient", "trapezoid", "unwrap"]


def __dir__() -> list[str]:
    return __all__.copy()


@overload
def gradient(f: Any, /, *varargs: Any, axis: int, edge_order: int = ...) -> Array: ...
@overload
def gradient(f: Any, /, *varargs: Any, axis: Any = ..., edge_order: int = ...) -> Any: ...
@direct(_numpy_forms.gradient)
def gradient(f: Any, /, *varargs: Any, axis: Any = None, edge_order: int = 1) -> Any:
    """Derivative of a sampled function along axes, by central differences, one-sided at the ends.

    The interior error is of second order, also for variable spacing (B. Fornberg, 1988).

    Args:
        f: samples; integers are computed in float64.
        varargs: spacing: one distance for all axes, or for each axis a distance or a vector of coordinates; by default
            1.
        axis: axis or axes; by default all.
        edge_order: order of accuracy at the ends, 1 or 2.

    Returns:
        An array of the shape of `f`; for several axes a tuple of them.

    Raises:
        ArgumentError: there is not one spacing for each axis, or `edge_order` is neither 1 nor 2.
        ShapeError: an axis has fewer than ``edge_order + 1`` samples, or coordinates do not fit.

    >>> tr.gradient(tr.asarray([1.0, 2.0, 4.0, 7.0]))
    Tensor([1. , 1.5, 2.5, 3. ])
    """
    f = floating(listed(f))
    axes = axes_of("gradient", axis, f.spec.ndim)
    if edge_order not in (1, 2):
        raise ArgumentError(f"gradient takes edge_order 1 or 2, got {edge_order!r}", edge_order=edge_order)
    if len(varargs) not in (0, 1, len(axes)):
        raise ArgumentError(f"gradient needs one spacing for each of the {len(axes)} axes, got {len(varargs)}")
    given = varargs or (1.0,)
    if len(given) == 1 and len(axes) > 1:
        if hasattr(given[0], "__len__") and listed(given[0]).spec.ndim:
            raise ArgumentError(f"gradient needs coordinates for each of the {len(axes)} axes, got one vector")
        given = given * len(axes)
    found = tuple([_along(f, a, h, edge_order) for a, h in zip(axes, given, strict=True)])
    return found[0] if len(found) == 1 else found


def _along(f: Any, axis: int, spacing: Any, edge_order: int) -> Any:
    n = f.spec.shape[axis]
    if not ask(n, ">", edge_order):
        raise ShapeError(
            f"gradient needs at least {edge_order + 1} samples along axis {axis} of {f.spec!r}, got {n}", extent=n
        )
    h = spacing if spacing.__class__ in (int, float) else listed(spacing)
    if hasattr(h, "spec") and h.spec.ndim:
        return _between_coordinates(f, axis, h, edge_order)

    def at(start: Any, limit: Any) -> Any:
        return span(f, axis, start, limit)

    inner = catalog.div(catalog.sub(at(2, n), at(0, n - 2)), catalog.mul(2.0, h) if hasattr(h, "spec") else 2.0 * h)
    if edge_order == 1:
        first = catalog.div(catalog.sub(at(1, 2), at(0, 1)), h)
        last = catalog.div(catalog.sub(at(n - 1, n), at(n - 2, n - 1)), h)
    else:
        first, last = (
            catalog.div(catalog.add(catalog.add(catalog.mul(a, p), catalog.mul(b, q)), catalog.mul(c, r)), h)
            for (a, p), (b, q), (c, r) in (
                ((-1.5, at(0, 1)), (2.0, at(1, 2)), (-0.5, at(2, 3))),
                ((0.5, at(n - 3, n - 2)), (-2.0, at(n - 2, n - 1)), (1.5, at(n - 1, n))),
            )
        )
    return catalog.concatenate(first, inner, last, axis=axis)


def _between_coordinates(f: Any, axis: int, places: Any, edge_order: int) -> Any:
    n = f.spec.shape[axis]
    if places.spec.ndim != 1 or not ask(places.spec.shape[0], "==", n):
        raise ShapeError(
            f"gradient needs a distance or a vector of {n} coordinates for axis {axis}, got {places.spec!r}", extent=n
        )
    steps = diff(floating(places))
    steps = catalog.reshape(steps, shape=tuple([n - 1 if a == axis else 1 for a in range(f.spec.ndim)]))
    f, steps = alike(f, steps)

    def at(start: Any, limit: Any) -> Any:
        return span(f, axis, start, limit)

    def step(start: Any, limit: Any) -> Any:
        return span(steps, axis, start, limit)

    before, after = step(0, n - 2), step(1, n - 1)
    total = before + after
    inner = -after / (before * total) * at(0, n - 2) + (after - before) / (before * after) * at(1, n - 1)
    inner = inner + before / (after * total) * at(2, n)
    if edge_order == 1:
        first = (at(1, 2) - at(0, 1)) / step(0, 1)
        last = (at(n - 1, n) - at(n - 2, n - 1)) / step(n - 2, n - 1)
    else:
        h, k = step(0, 1), step(1, 2)
        first = -(2.0 * h + k) / (h * (h + k)) * at(0, 1) + (h + k) / (h * k) * at(1, 2)
        first = first - h / (k * (h + k)) * at(2, 3)
        h, k = step(n - 3, n - 2), step(n - 2, n - 1)
        last = k / (h * (h + k)) * at(n - 3, n - 2) - (h + k) / (h * k) * at(n - 2, n - 1)
        last = last + (2.0 * k + h) / (k * (h + k)) * at(n - 1, n)
    return catalog.concatenate(first, inner, last, axis=axis)


def _areas(name: str, y: Any, x: Any, dx: Any, axis: int) -> Any:
    """Areas of the trapezoids between neighbouring samples."""
    n = y.spec.shape[axis]
    if x is None:
        width = dx if dx.__class__ in (int, float) else listed(dx)
    else:
        x = listed(x)
        if x.spec.ndim == 1:
            width = diff(x)
            if not ask(x.spec.shape[0], "==", n):
                raise ShapeError(f"{name} needs {n} coordinates for axis {axis} of {y.spec!r}, got {x.spec!r}")
            width = catalog.reshape(
                width, shape=tuple([width.spec.size if a == axis else 1 for a in range(y.spec.ndim)])
            )
        else:
            width = diff(x, axis=axis)
    upper, lower = diff_parts(y, axis)
    return floating(catalog.div(catalog.mul(width, catalog.add(upper, lower)), 2.0))


def diff_parts(y: Any, axis: int) -> tuple[Any, Any]:
    """All but the first, and all but the last entries along an axis."""
    n = y.spec.shape[axis]
    if ask(n, "==", 0):
        return y, y
    return span(y, axis, 1, n), span(y, axis, 0, n - 1)


def trapezoid(y: Any, /, x: Any = None, dx: Any = 1.0, axis: int = -1) -> Array:
    """Integral of a sampled function along an axis, by the trapezoidal rule.

    Args:
        y: samples.
        x: their coordinates: a vector, or an array of the shape of `y`; by default they are `dx` apart.
        dx: spacing, if there are no coordinates.
        axis: axis to integrate along.

    Returns:
        Array without the axis, in the promoted floating-point dtype.

    Raises:
        ShapeError: there is not one coordinate for each sample.
        AxisError: the axis is out of range.

    See also:
        `cumulative_trapezoid`, the running integral.

    >>> tr.trapezoid(tr.asarray([1.0, 2.0, 3.0]), tr.asarray([4.0, 6.0, 8.0]))
    Tensor(8.)
    """
    y = listed(y)
    axis = axis_of("trapezoid", axis, y.spec.ndim)
    return catalog.reduce_sum(_areas("trapezoid", y, x, dx, axis), axes=(axis,))


def cumulative_trapezoid(y: Any, /, x: Any = None, dx: Any = 1.0, axis: int = -1, initial: Any = None) -> Array:
    """Running integral of a sampled function along an axis, by the trapezoidal rule.

    Args:
        y: samples.
        x: their coordinates: a vector, or an array of the shape of `y`; by default they are `dx` apart.
        dx: spacing, if there are no coordinates.
        axis: axis to integrate along.
        initial: value to prepend, usually 0.

    Returns:
        Array whose axis is shorter by 1, unless `initial` is given.

    Raises:
        ShapeError: there is not one coordinate for each sample.
        AxisError: the axis is out of range.

    See also:
        `trapezoid`, the whole integral.

    >>> tr.cumulative_trapezoid(tr.asarray([1.0, 2.0, 3.0]), initial=0)
    Tensor([0. , 1.5, 4. ])
    """
    y = listed(y)
    axis = axis_of("cumulative_trapezoid", axis, y.spec.ndim)
    out = catalog.cumsum(_areas("cumulative_trapezoid", y, x, dx, axis), axis=axis, reverse=False)
    if initial is None:
        return out
    none = (0,) * out.spec.ndim
    out, initial = alike(out, initial)
    return catalog.pad(
        out, initial, low=tuple([int(a == axis) for a in range(out.spec.ndim)]), high=none, interior=none
    )


@direct(_numpy_forms.ediff1d)
def ediff1d(x: Any, /, to_end: Any = None, to_begin: Any = None) -> Array:
    """Differences of neighbouring elements of the flattened array.

    Args:
        x: array of any shape.
        to_end: elements to append.
        to_begin: elements to prepend.

    Returns:
        Vector of the dtype of `x`.

    See also:
        `diff`, along an axis.

    >>> tr.ediff1d(tr.asarray([1, 4, 9]), to_begin=0)
    Tensor([0, 3, 5])
    """
    x = ravel(listed(x))
    parts = [
        None if p is None else ravel(asarray(p, dtype=x.dtype) if p.__class__ in SCALARS else _like(x, listed(p)))
        for p in (to_begin, to_end)
    ]
    joined = [p for p in (parts[0], diff(x), parts[1]) if p is not None]
    return joined[0] if len(joined) == 1 else catalog.concatenate(*alike(*joined), axis=0)


def _like(x: Any, y: Any) -> Any:
    """Elements to join with those of `x`, converted to its dtype if they are of the same kind."""
    kinds = y.spec.dtype.kind + x.spec.dtype.kind
    return converted(y, x.spec.dtype) if kinds in ("ff", "cc", "ii", "uu", "ui", "iu") else y


def unwrap(p: Any, /, discont: Any = None, axis: int = -1, *, period: Any = 2 * pi) -> Array:
    """Remove jumps from phases by adding multiples of the period.

    Jumps between neighbours that exceed `discont` are reduced to at most half a period. The derivative is that of the
    identity.

    Args:
        p: phases; integers with an integer period stay integers.
        discont: smallest jump to remove; by default half a period, and never less.
        axis: axis along which the phases vary.
        period: the period.

    Returns:
        Array of the shape of `p`.

    Raises:
        AxisError: the axis is out of range.

    >>> tr.unwrap(tr.asarray([0, 1, 2, -1, 0]), period=4)
    Tensor([0, 1, 2, 3, 4])
    """
    p = listed(p)
    axis = axis_of("unwrap", axis, p.spec.ndim)
    if period.__class__ is not int or p.spec.dtype.kind not in "iu":
        p = floating(p)
    whole = p.spec.dtype.kind in "iu"
    p = converted(p, int64) if p.spec.dtype.kind == "b" else p
    step = diff(p, axis=axis)
    high, odd = divmod(period, 2) if whole else (period / 2, 0)
    low = -high
    discont = period / 2 if discont is None else discont
    turned = catalog.add(catalog.remainder(catalog.sub(step, low), period), low)
    if not odd:  # a step of half a period keeps its sign
        turned = catalog.select(catalog.bitwise_and(catalog.eq(turned, low), catalog.gt(step, 0)), high, turned)
    correction = catalog.select(catalog.lt(catalog.abs(step), discont), 0, catalog.sub(turned, step))
    correction = catalog.cumsum(catalog.stop_gradient(correction), axis=axis, reverse=False)
    rest, _ = diff_parts(p, axis)
    if rest is p:
        return catalog.reshape(p, shape=p.spec.shape)
    return catalog.concatenate(span(p, axis, 0, 1), *alike(catalog.add(rest, correction)), axis=axis)
