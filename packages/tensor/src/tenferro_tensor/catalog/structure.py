"""Shape and order: broadcasting, reshaping, transposing, padding, joining, slices and updates of slices."""

from tenferro_tensor._primitive import primitive
from tenferro_tensor._spec import Spec
from tenferro_tensor.catalog._axes import (
    require_axes,
    require_axis,
    require_length,
    require_same_dtype,
    require_sizes,
    same,
    show,
)
from tenferro_tensor_core import ArgumentError, DimLike, ShapeError, ask, dim_max, floordiv

__all__ = ["broadcast_in_dim", "concatenate", "pad", "reshape", "reverse", "slice_", "transpose", "update_slice"]


def __dir__() -> list[str]:
    return __all__.copy()


@primitive
def broadcast_in_dim(x: Spec, *, shape: tuple[DimLike, ...], dims: tuple[int, ...]) -> Spec:
    """Repeat `x` along new axes: axis ``i`` of `x` becomes axis ``dims[i]`` of the result.

    An axis of extent 1 is never stretched (reshape it away first), so that the transpose is a plain sum over the new
    axes.

    Args:
        x: array to repeat.
        shape: extents of the result.
        dims: axis of the result for each axis of `x`, of the same extent.

    Returns:
        Spec of the result.

    Raises:
        ShapeError: the extents of mapped axes differ.
        AxisError: an axis is out of range or repeated.
    """
    name = "broadcast_in_dim"
    require_sizes(name, shape, "shape")
    require_length(name, dims, x, "dims")
    require_axes(name, dims, len(shape), shape, "dims")
    for i, d in enumerate(dims):
        if not same(x.shape[i], shape[d]):
            raise ShapeError(
                f"{name} maps axis {i} of {x!r} to axis {d} of {show(shape)}, but {x.shape[i]} != {shape[d]}; "
                "an axis is not stretched: reshape axes of extent 1 away first",
                shapes=(x.shape, shape),
            )
    return x.with_(shape=shape)


@primitive
def reshape(x: Spec, *, shape: tuple[DimLike, ...]) -> Spec:
    """The same elements, in row-major order, in another shape.

    Args:
        x: array to reshape.
        shape: extents of the result.

    Returns:
        Spec of the result.

    Raises:
        ShapeError: the number of elements differs.
    """
    require_sizes("reshape", shape, "shape")
    out = x.with_(shape=shape)
    if not same(x.size, out.size):
        raise ShapeError(
            f"reshape cannot arrange the {x.size} elements of {x!r} as {show(shape)}, which has {out.size}; "
            "give a shape with the same number of elements",
            shapes=(x.shape, shape),
        )
    return out


@primitive
def transpose(x: Spec, *, permutation: tuple[int, ...]) -> Spec:
    """Permute the axes: axis ``i`` of the result is axis ``permutation[i]`` of `x`.

    Args:
        x: array to permute.
        permutation: each axis once.

    Returns:
        Spec of the result.

    Raises:
        AxisError: an axis is out of range or repeated.
        ShapeError: an axis is missing.
    """
    require_length("transpose", permutation, x, "permutation")
    require_axes("transpose", permutation, x.ndim, x, "permutation")
    return x.with_(shape=tuple([x.shape[p] for p in permutation]))


@primitive
def pad(
    x: Spec, value: Spec, *, low: tuple[DimLike, ...], high: tuple[DimLike, ...], interior: tuple[int, ...]
) -> Spec:
    """Insert a value around and between the elements of `x`.

    Interior padding is applied first; a negative `low` or `high` then removes elements.

    Args:
        x: array to pad.
        value: 0-d array of the same dtype.
        low: number of values before each axis.
        high: number of values after each axis.
        interior: number of values between neighbours of each axis.

    Returns:
        Spec of the result.

    Raises:
        ShapeError: there is not one number for each axis, or more elements are removed than there are.
        ArgumentError: `interior` is negative.
    """
    require_same_dtype("pad", x, value)
    if value.ndim:
        raise ShapeError(f"pad takes a value without axes, got {value!r}; reshape it to ()", shape=value.shape)
    for what, given in (("low", low), ("high", high), ("interior", interior)):
        require_length("pad", given, x, what)
    shape = []
    for i, (n, lo, hi, gap) in enumerate(zip(x.shape, low, high, interior, strict=True)):
        if ask(gap, "<", 0):
            raise ArgumentError(f"pad: interior {show(interior)} has a negative entry; only low and high crop", axis=i)
        # As transposes of slices write it, so that symbolic sizes cancel.
        extent = lo + (dim_max(n * (gap + 1) - gap, 0) if gap else n) + hi
        if ask(extent, "<", 0):
            raise ShapeError(
                f"pad takes {-(lo + hi)} elements away from axis {i} of {x!r}, which has only {extent - lo - hi}; "
                "crop less",
                shape=x.shape,
                axis=i,
            )
        shape.append(extent)
    return x.with_(shape=tuple(shape))


@primitive
def concatenate(*xs: Spec, axis: int) -> Spec:
    """Join operands along an existing axis.

    Args:
        *xs: arrays of one dtype, whose other extents are equal.
        axis: axis to join along, counted from 0.

    Returns:
        Spec of the result.

    Raises:
        ShapeError: other extents differ.
        AxisError: the axis is out of range.
    """
    if not xs:
        raise ArgumentError("concatenate needs at least one operand, got none; pass the arrays to join")
    first = xs[0]
    require_same_dtype("concatenate", *xs)
    require_axis("concatenate", axis, first)
    total: DimLike = 0
    for i, x in enumerate(xs):
        if x.ndim != first.ndim:
            raise ShapeError(
                f"concatenate needs operands with one number of axes, got {', '.join(map(repr, xs))}; "
                "reshape them first",
                shapes=tuple(s.shape for s in xs),
            )
        for k in range(x.ndim):
            if k != axis and not same(x.shape[k], first.shape[k]):
                raise ShapeError(
                    f"concatenate along axis {axis} needs equal extents elsewhere, but on axis {k} operand 0 has "
                    f"{first.shape[k]} and operand {i} has {x.shape[k]} ({', '.join(map(repr, xs))})",
                    shapes=tuple(s.shape for s in xs),
                )
        total = total + x.shape[axis]
    return first.with_(shape=(*first.shape[:axis], total, *first.shape[axis + 1 :]))


@primitive
def reverse(x: Spec, *, axes: tuple[int, ...]) -> Spec:
    """Reverse the order of the elements along `axes`.

    Args:
        x: array to reverse.
        axes: axes to reverse, counted from 0.

    Returns:
        Spec of `x`.

    Raises:
        AxisError: an axis is out of range or repeated.
    """
    require_axes("reverse", axes, x.ndim, x)
    return x


@primitive
def slice_(x: Spec, *, start: tuple[DimLike, ...], limit: tuple[DimLike, ...], stride: tuple[int, ...]) -> Spec:
    """Elements ``start, start + stride, ...`` below `limit` along each axis.

    Args:
        x: array to slice.
        start: first index of each axis.
        limit: end of each axis: ``0 <= start <= limit <= extent``.
        stride: step of each axis, at least 1.

    Returns:
        Spec of the result.

    Raises:
        ShapeError: bounds are out of range.
        ArgumentError: a stride is less than 1.
    """
    for what, given in (("start", start), ("limit", limit), ("stride", stride)):
        require_length("slice", given, x, what)
    shape = []
    for i, (n, a, b, s) in enumerate(zip(x.shape, start, limit, stride, strict=True)):
        if ask(s, "<", 1):
            raise ArgumentError(f"slice: stride {show(stride)} has an entry below 1; reverse the axis instead", axis=i)
        if ask(a, "<", 0) or ask(a, ">", b) or ask(b, ">", n):
            raise ShapeError(
                f"slice needs 0 <= start <= limit <= extent on each axis, but axis {i} of {x!r} has extent {n}, "
                f"start {a} and limit {b}; clip them to the extent",
                shape=x.shape,
                axis=i,
            )
        shape.append(b - a if s == 1 else floordiv(b - a + (s - 1), s))
    return x.with_(shape=tuple(shape))


@primitive(widens=True)
def update_slice(x: Spec, update: Spec, *, start: tuple[DimLike, ...], stride: tuple[int, ...], mode: str) -> Spec:
    """`x` with elements ``start, start + stride, ...`` of each axis, as many as `update` has, replaced or added to.

    Args:
        x: array to update.
        update: array with as many axes, of the dtype of `x`.
        start: first index of each axis.
        stride: step of each axis, at least 1.
        mode: ``"set"`` or ``"add"``.

    Returns:
        Spec of `x`.

    Raises:
        ShapeError: the elements are not all inside `x`.
        ArgumentError: the mode is unknown, or a stride is less than 1.
    """
    name = "update_slice"
    if mode not in ("set", "add"):
        raise ArgumentError(f"{name} has no mode {mode!r}; use 'set' or 'add'", mode=mode)
    require_same_dtype(name, x, update)
    if update.ndim != x.ndim:
        raise ShapeError(
            f"{name} needs an update with the {x.ndim} axes of {x!r}, got {update!r}; reshape it",
            shapes=(x.shape, update.shape),
        )
    for what, given in (("start", start), ("stride", stride)):
        require_length(name, given, x, what)
    for i, (n, a, m, s) in enumerate(zip(x.shape, start, update.shape, stride, strict=True)):
        if ask(s, "<", 1):
            raise ArgumentError(f"{name}: stride {show(stride)} has an entry below 1; reverse the update", axis=i)
        if ask(a, "<", 0) or ask(a, ">", n) or ask(a + (m - 1) * s + 1, ">", n):
            raise ShapeError(
                f"{name}: {m} elements from {a} on, {s} apart, do not fit axis {i} of {x!r}, which has extent {n}; "
                "make the update smaller",
                shape=x.shape,
                axis=i,
            )
    return x
