"""Reading by index: ``x[key]``, `take` and `take_along_axis`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np

from tenferro_tensor import catalog
from tenferro_tensor._primitive import Op
from tenferro_tensor._spec import Spec
from tenferro_tensor._steps import indexed
from tenferro_tensor.calls import ValueBase, key_parts
from tenferro_tensor.direct import ANY_SIZE, direct
from tenferro_tensor.functions import _forms
from tenferro_tensor.functions._composed_keys import BASIC, composed, is_basic
from tenferro_tensor.functions._key_plans import KeyPlan, form_of, planned, remember
from tenferro_tensor.functions._keys import Choose, Entry, Gap, Key, New, Pick, Range, Start, resolve
from tenferro_tensor.functions._starts import counted, is_counted, starts_of
from tenferro_tensor.identity import aliased, apart
from tenferro_tensor.operands import axis_of, converted, own, positions, value
from tenferro_tensor.promotion import broadcast_shapes, brought
from tenferro_tensor.tables import Table
from tenferro_tensor.views import linked
from tenferro_tensor_core import ArgumentError, Dim, DimLike, ShapeError, ask, dim_min, int64
from tenferro_tensor_core.tracebacks import hide_frames

if TYPE_CHECKING:
    from tenferro_tensor._array import Array

__all__ = ["take", "take_along_axis"]


def __dir__() -> list[str]:
    return __all__.copy()


_basic_ops: Final = Table("ops behind keys of integers and slices")


def getitem(x: Any, key: Any) -> Array:
    """``x[key]``, with the semantics of NumPy.

    Known indices are checked, also while tracing. Unknown ones (traced, or on an accelerator) are clamped to the axis,
    and a slice ``i : i + k`` with such bounds is moved inside the array: only the running kernel sees them, and it
    raises no errors.

    Args:
        x: the array.
        key: integers, slices, ellipsis, new axes, masks and integer arrays.

    Returns:
        The selected elements.

    Raises:
        AxisError: a known index is out of bounds.
    """
    given, spec = x, x.spec
    token = None if spec.symbolic else key_parts(key)
    if token is not None:
        ops = _basic_ops.get((spec, token))
        if ops is None:
            ops = _basic_ops.remember((spec, token), tuple(basic_ops(spec, resolve(spec.shape, key))))
        for op in ops:
            x = op(x)
        return x if ops else aliased(x)
    form = form_of(spec, key)
    found = None if form is None else planned(x, form)
    if found is not None:
        return found
    resolved = resolve(spec.shape, key)
    if resolved.shape != spec.shape:
        x = catalog.reshape(x, shape=resolved.shape)
    if any(isinstance(e, Start) for e in resolved.entries):
        x, resolved = _block(x, resolved)
    ops = basic_ops(x.spec, resolved)
    for op in ops:
        x = op(x)
    if not any(isinstance(e, Choose) for e in resolved.entries):
        return apart(given, x)
    axes, arrays, place = _arranged(resolved)
    extents = tuple([x.spec.shape[a] for a in axes])
    if form is not None and 0 not in extents:
        gather = _gather_op(x.spec.shape, axes, max(a.ndim for a in form.arrays), place)
        remember(spec, form, KeyPlan(tuple(ops), extents, gather))
    return gather_axes(x, axes, arrays, place)


def view_item(x: Any, key: Any) -> Array:
    """``x[key]`` as users write it: a key of integers, slices, new axes and an ellipsis gives a view of `x`.

    Args:
        x: the array.
        key: see `getitem`.

    Returns:
        The selected elements.
    """
    try:
        return _view_item(x, key)
    except Exception as error:
        hide_frames(error)
        raise


def _view_item(x: Any, key: Any) -> Any:
    if not is_basic(key):
        return getitem(x, key)
    kept, above = _kept(key), () if x._view is None else x._view[1]
    if above and all(step.asked is not None for step in above):
        base = x._view[0]
        shape = base.spec.shape
        whole = composed(shape, [*[step.args[0] for step in above], kept])
        # Sizes of one formula, so that they are known to be equal to those of other views.
        if whole is not None and resolve(shape, whole).lengths == resolve(x.spec.shape, kept).lengths:
            z = getitem(base, whole)
            return linked(base, z, indexed(whole, key, above)) if z.spec.ndim else z
    z = getitem(x, key)
    return linked(x, z, indexed(kept, key, above)) if z.spec.ndim else z


def _kept(part: Any) -> Any:
    """A key or its part with values that later assignments do not change."""
    if part.__class__ is tuple:
        return tuple([p if p.__class__ in BASIC and p.__class__ is not slice else _kept(p) for p in part])
    if part.__class__ is slice:
        return slice(_kept(part.start), _kept(part.stop), part.step)
    return part._alias() if isinstance(part, ValueBase) else part


def _block(x: Any, key: Key) -> tuple[Any, Key]:
    """The smallest block with all elements of a key, read at once, and the key into it."""
    shape = x.spec.shape
    starts: list[Any] = [0] * len(shape)
    sizes, entries = list(shape), list[Entry]()
    for e in key.entries:
        if isinstance(e, Start):
            starts[e.axis], sizes[e.axis] = e.at, e.length
            entries.append(Pick(e.axis, 0) if e.dropped else Range(e.axis, 0, e.length, 1))
        elif isinstance(e, Pick):
            starts[e.axis], sizes[e.axis] = e.at, 1
            entries.append(Pick(e.axis, 0))
        elif isinstance(e, Range) and e.step == 1:
            starts[e.axis], sizes[e.axis] = e.start, e.length
            entries.append(Range(e.axis, 0, e.length, 1))
        else:
            entries.append(e)
    block = catalog.dynamic_slice(x, *starts_of(x, starts), sizes=tuple(sizes))
    return block, Key(tuple(entries), tuple(sizes))


def basic_ops(spec: Spec, key: Key) -> list[Op]:
    """The ops for everything but index arrays: slice, then reverse, then reshape, each only if it has an effect."""
    start: list[DimLike] = [0] * spec.ndim
    limit: list[DimLike] = list(spec.shape)
    stride, reversed_axes = [1] * spec.ndim, []
    shape: list[DimLike] = []
    for e in key.entries:
        if isinstance(e, New):
            shape.append(1)
        elif isinstance(e, Pick):
            start[e.axis], limit[e.axis] = e.at, e.at + 1
        elif isinstance(e, Choose):
            shape.append(spec.shape[e.axis])
        elif isinstance(e, Range):
            shape.append(e.length)
            _slice_range(e, spec.shape[e.axis], start, limit, stride)
            if e.step < 0 and not (e.length.__class__ is int and e.length <= 1):
                reversed_axes.append(e.axis)
    ops = []
    if tuple(limit) != spec.shape or any(s != 0 for s in start) or any(s != 1 for s in stride):
        ops.append(catalog.slice_.op(start=tuple(start), limit=tuple(limit), stride=tuple(stride)))
    if reversed_axes:
        ops.append(catalog.reverse.op(axes=tuple(reversed_axes)))
    if any(isinstance(e, (New, Pick)) for e in key.entries):
        ops.append(catalog.reshape.op(shape=tuple(shape)))
    return ops


def _slice_range(e: Range, extent: DimLike, start: list[DimLike], limit: list[DimLike], stride: list[int]) -> None:
    if e.step in (1, -1) and (e.length is extent or e.length == extent):
        return
    if e.step > 0:
        start[e.axis], stride[e.axis] = e.start, e.step
        # Any limit up to one stride past the last element is equivalent; this one is simplest for symbolic lengths.
        limit[e.axis] = e.start + e.length if e.step == 1 else dim_min(e.start + e.length * e.step, extent)
    elif ask(e.length, "==", 0):
        limit[e.axis] = 0
    else:
        start[e.axis], stride[e.axis] = e.start + (e.length - 1) * e.step, -e.step
        limit[e.axis] = e.start + 1


def _arranged(key: Key) -> tuple[tuple[int, ...], list[Any], int]:
    """The axes of the index arrays after the rest of the key has been applied, the arrays, and where their axes go."""
    axes: list[int] = []
    group: list[int] = []
    place, axis = 0, 0
    arrays: list[Any] = []
    for i, e in enumerate(key.entries):
        if isinstance(e, (Choose, Pick)):
            place = place if group else axis
            group.append(i)
        if isinstance(e, Choose):
            axes.append(axis)
            arrays.append(e.indices)
        if not isinstance(e, (Pick, Gap)):
            axis += 1
    together = group[-1] - group[0] + 1 == len(group)
    return tuple(axes), arrays, place if together else 0


def gather_axes(x: Any, axes: tuple[int, ...], arrays: list[Any], place: int) -> Any:
    """The elements of `x` at index arrays for some axes; the broadcast axes of the arrays are inserted at `place`."""
    shape = x.spec.shape
    common = broadcast_shapes(*[a.shape for a in arrays])
    if any(shape[a] == 0 for a in axes):
        rest = [d for a, d in enumerate(shape) if a not in axes]
        return _from_nothing(x, (*rest[:place], *common, *rest[place:]))
    return _gather_op(shape, axes, len(common), place)(x, index_vectors(x, axes, arrays, common))


def _gather_op(shape: tuple[DimLike, ...], axes: tuple[int, ...], common: int, place: int) -> Op:
    """The op that takes the elements at index vectors arranged along `common` axes."""
    rest = len(shape) - len(axes)
    return catalog.gather.op(
        offset_dims=tuple([i if i < place else i + common for i in range(rest)]),
        collapsed_dims=tuple(sorted(axes)),
        start_index_map=axes,
        slice_sizes=tuple([1 if a in axes else d for a, d in enumerate(shape)]),
    )


def _from_nothing(x: Any, shape: tuple[DimLike, ...]) -> Any:
    if 0 not in shape:
        raise ShapeError(f"nothing can be taken from {x.spec!r}, which has no elements along an indexed axis")
    return catalog.reshape(x, shape=shape)


def index_vectors(x: Any, axes: tuple[int, ...], arrays: list[Any], common: tuple[DimLike, ...]) -> Any:
    """The index vectors of a gather or scatter: one array for each axis, broadcast and stacked along a last axis."""
    if all(isinstance(a, np.ndarray) for a in arrays):
        stacked = np.stack([np.broadcast_to(a, common) for a in arrays], axis=-1)  # type: ignore[arg-type]
        return own(stacked, x.spec.place)
    values = [own(a, x.spec.place) if isinstance(a, np.ndarray) else converted(a, int64) for a in arrays]
    together = len(common) == 0 and sum(not is_counted(v) for v in values) > 1
    extents = [x.spec.shape[axis] for axis in axes]
    if together and not any(isinstance(n, Dim) for n in extents):
        vector = catalog.concatenate(*[_column(v, common) for v in values], axis=0)
        below = catalog.add(vector, own(np.asarray(extents), x.spec.place))
        return catalog.select(catalog.lt(vector, 0), below, vector)
    columns = [_column(counted(x, axis, v), common) for axis, v in zip(axes, values, strict=True)]
    return columns[0] if len(columns) == 1 else catalog.concatenate(*columns, axis=len(common))


def _column(indices: Any, common: tuple[DimLike, ...]) -> Any:
    """One index array as a column of index vectors."""
    wide = brought(indices, indices.spec.with_(shape=common))
    return catalog.reshape(wide, shape=(*common, 1))


@direct(_forms.take, ANY_SIZE)
def take(x: Any, /, indices: Any, axis: int | None = None) -> Array:
    """Elements at integer indices along an axis.

    Known indices are checked; traced ones are clamped to the axis at run time.

    Args:
        x: array with at least one axis.
        indices: integer array of any shape.
        axis: axis to index; may be left out for a vector.

    Returns:
        Array of the dtype of `x`, with the axes of `indices` in place of the axis.

    Raises:
        AxisError: a known index is out of bounds, or the axis is out of range.
        ArgumentError: the axis is left out, and `x` is not a vector.

    See also:
        `take_along_axis`, with indices for each line.

    >>> tr.take(tr.asarray([10, 20, 30]), tr.asarray([2, 0]))
    Tensor([30, 10])
    """
    x = value(x)
    if axis is None:
        if x.spec.ndim != 1:
            raise ArgumentError(
                f"take needs an axis for an array with {x.spec.ndim} axes; pass axis=, or a vector (ravel)",
                ndim=x.spec.ndim,
            )
        axis = 0
    axis = axis_of("take", axis, x.spec.ndim)
    if isinstance(indices, (list, tuple)):
        indices = list(indices)
    elif not hasattr(indices, "spec"):
        indices = np.asarray(indices)
    return getitem(x, (slice(None),) * axis + (indices,))


@direct(_forms.take_along_axis, ANY_SIZE)
def take_along_axis(x: Any, /, indices: Any, axis: int = -1) -> Array:
    """Elements at separate indices for each line along an axis.

    Args:
        x: the array.
        indices: integer array with as many axes as `x`; the other axes broadcast.
        axis: axis to index.

    Returns:
        Array of the dtype of `x` with the broadcast shape.

    Raises:
        ShapeError: the numbers of axes differ, or other axes do not broadcast.
        AxisError: a known index is out of bounds.

    See also:
        `put_along_axis`, which writes; `take`.

    >>> tr.take_along_axis(tr.asarray([[1, 2], [3, 4]]), tr.asarray([[1], [0]]), axis=1)
    Tensor([[2],
            [3]])
    """
    x, indices = value(x), value(indices)
    n = x.spec.ndim
    if indices.spec.ndim != n:
        raise ShapeError(
            f"take_along_axis needs indices with the {n} axes of {x.spec!r}, got {indices.spec!r}; reshape them",
            shapes=(x.shape, indices.shape),
        )
    axis = axis_of("take_along_axis", axis, n)
    others = [a for a in range(n) if a != axis]
    goal = list(broadcast_shapes(*[tuple([s[a] for a in others]) for s in (x.spec.shape, indices.spec.shape)]))
    wide = brought(x, x.spec.with_(shape=(*goal[:axis], x.spec.shape[axis], *goal[axis:])))
    if 0 in goal:
        return catalog.reshape(wide, shape=(*goal[:axis], indices.spec.shape[axis], *goal[axis:]))
    return getitem(wide, tuple([indices if a == axis else positions(wide, a) for a in range(n)]))
