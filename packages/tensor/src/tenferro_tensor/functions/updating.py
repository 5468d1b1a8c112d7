"""Writing by index, as a function: ``x.at[key].set(values)`` is `x` with some elements replaced.

A key of integers and slices is updated as a slice. Any other key is split into windows and starts: whole axes and runs
of neighbours are axes of a window; integers, arrays and strided slices are starts of windows. One scatter then performs
the update.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np

from tenferro_tensor import catalog
from tenferro_tensor.calls import SCALARS, key_parts, updated
from tenferro_tensor.functions._keys import Choose, Gap, Key, New, Pick, Range, Start, resolve
from tenferro_tensor.functions._starts import is_inside, starts_of
from tenferro_tensor.functions.comparison import where
from tenferro_tensor.functions.reading import getitem, index_vectors
from tenferro_tensor.operands import converted, host_elements, number, own, value
from tenferro_tensor.promotion import broadcast_shapes, broadcasts_to, brought, common_dtype
from tenferro_tensor.tables import Table
from tenferro_tensor_core import DimLike, DTypeError, ShapeError, ask, bool_, can_convert, int64

if TYPE_CHECKING:
    from tenferro_tensor._array import Array

__all__ = ["At", "IndexUpdate"]


def __dir__() -> list[str]:
    return __all__.copy()


_COMBINED: Final = {"add": catalog.add, "mul": catalog.mul, "min": catalog.minimum, "max": catalog.maximum}

_basic_plans: Final = Table("updates behind keys of integers and slices")


class At:
    """The type of ``x.at``; ``x.at[key]`` refers to a part of `x`."""

    __slots__ = ("_x",)

    def __init__(self, x: Any) -> None:
        self._x = x

    def __getitem__(self, key: Any) -> IndexUpdate:
        return IndexUpdate(self._x, key)

    def __repr__(self) -> str:
        return f"<at of {self._x.spec!r}; index it, as in x.at[0].set(1.0)>"


class IndexUpdate:
    """A part of an array, and functions that return the array with this part changed; nothing changes in place.

    Updates at unknown indices (traced, or on an accelerator) that are out of bounds are dropped. Values broadcast to
    the part and are converted to the dtype of the array if nothing is lost. If index arrays address an element twice,
    `add`, `multiply`, `min` and `max` combine all values; of `set`, an unspecified one wins.
    """

    __slots__ = ("_key", "_x")

    def __init__(self, x: Any, key: Any) -> None:
        self._x, self._key = x, key

    def get(self) -> Array:
        """Return the part itself, ``x[key]``.

        Returns:
            The selected elements.
        """
        return getitem(self._x, self._key)

    def set(self, values: Any, /) -> Array:
        """Return the array with the part replaced.

        Args:
            values: array or number that broadcasts to the part.

        Returns:
            Array of the shape and dtype of the original.

        Raises:
            DTypeError: the values do not convert to the dtype of the array without loss.
            ShapeError: the values do not broadcast to the part.

        >>> tr.zeros(3).at[1].set(5.0)
        Tensor([0., 5., 0.])
        """
        found = updated(self._x, self._key, values)
        return _updated(self._x, self._key, values, "set") if found is None else found

    def add(self, values: Any, /) -> Array:
        """Return the array with values added to the part.

        Args:
            values: array or number that broadcasts to the part.

        Returns:
            Array of the shape and dtype of the original.

        Raises:
            DTypeError: the values do not convert to the dtype of the array without loss.
            ShapeError: the values do not broadcast to the part.

        >>> tr.zeros(3).at[[0, 0, 2]].add(1.0)
        Tensor([2., 0., 1.])
        """
        return _updated(self._x, self._key, values, "add")

    def subtract(self, values: Any, /) -> Array:
        """Return the array with values subtracted from the part.

        Args:
            values: array or number that broadcasts to the part.

        Returns:
            Array of the shape and dtype of the original.

        Raises:
            DTypeError: the values do not convert to the dtype of the array without loss.
            ShapeError: the values do not broadcast to the part.

        >>> tr.ones(2).at[0].subtract(3.0)
        Tensor([-2.,  1.])
        """
        return _updated(self._x, self._key, catalog.neg(admitted(self._x, values)), "add")

    def multiply(self, values: Any, /) -> Array:
        """Return the array with the part multiplied by values.

        Args:
            values: array or number that broadcasts to the part.

        Returns:
            Array of the shape and dtype of the original.

        Raises:
            DTypeError: the values do not convert to the dtype of the array without loss.
            ShapeError: the values do not broadcast to the part.

        >>> tr.ones(2).at[0].multiply(3.0)
        Tensor([3., 1.])
        """
        return _updated(self._x, self._key, values, "mul")

    def min(self, values: Any, /) -> Array:
        """Return the array with the elementwise minimum of the part and values.

        Args:
            values: array or number that broadcasts to the part.

        Returns:
            Array of the shape and dtype of the original.

        Raises:
            DTypeError: the values do not convert to the dtype of the array without loss.
            ShapeError: the values do not broadcast to the part.

        >>> tr.ones(2).at[:].min(tr.asarray([0.0, 2.0]))
        Tensor([0., 1.])
        """
        return _updated(self._x, self._key, values, "min")

    def max(self, values: Any, /) -> Array:
        """Return the array with the elementwise maximum of the part and values.

        Args:
            values: array or number that broadcasts to the part.

        Returns:
            Array of the shape and dtype of the original.

        Raises:
            DTypeError: the values do not convert to the dtype of the array without loss.
            ShapeError: the values do not broadcast to the part.

        >>> tr.ones(2).at[:].max(tr.asarray([0.0, 2.0]))
        Tensor([1., 2.])
        """
        return _updated(self._x, self._key, values, "max")


def admitted(x: Any, values: Any) -> Any:
    """The values in the dtype of `x`; an error if the kind or range does not fit."""
    dtype = x.spec.dtype
    literal = values.__class__ in SCALARS
    values = values if literal else value(values)
    adapts = type(values) if literal else values._number_class()
    if adapts is not None and common_dtype([x.spec, adapts]) == dtype:
        return own(np.asarray(values, dtype), x.spec.place) if literal else converted(values, dtype)
    if not literal and can_convert(values.spec.dtype, dtype):
        return converted(values, dtype)
    given = adapts.__name__ if adapts is not None else values.spec.dtype.name
    raise DTypeError(
        f"an update of type {given} does not fit into {x.spec!r} without loss; convert the values with "
        f"cast(values, {dtype.name}), or the array with astype first",
        source=given,
        target=dtype.name,
    )


def _updated(x: Any, key: Any, values: Any, mode: str) -> Any:
    if not x.spec.ndim:  # treat a 0-d array as a vector: scatter needs an axis
        whole = (0, *key) if isinstance(key, tuple) else (0, key)
        return catalog.reshape(_updated(catalog.reshape(x, shape=(1,)), whole, values, mode), shape=())
    values = admitted(x, values)
    masked = _masked(x, key, values, mode)
    if masked is not None:
        return masked
    shape = x.spec.shape
    token = None if x.spec.symbolic else key_parts(key)
    plan = None if token is None else _basic_plans.get((x.spec, token, mode))
    if plan is None:
        resolved = resolve(shape, key)
        if resolved.shape != shape:
            x = catalog.reshape(x, shape=resolved.shape)
        block = _block_updated(x, resolved, values, mode)
        if block is not None:
            return block
        plan = _Slices(resolved, mode) if _is_slice(resolved, mode) else _Windows(x, resolved)
        if token is not None:
            _basic_plans.remember((x.spec, token, mode), plan)
    part = _broadcast(values, plan.part_shape, x)
    if 0 in part.spec.shape or 0 in shape:
        return catalog.reshape(x, shape=shape) if x.spec.shape != shape else x
    if plan.part_shape != plan.update_shape:
        part = catalog.reshape(part, shape=plan.update_shape)
    out = plan.written(x, part, mode)
    return catalog.reshape(out, shape=shape) if out.spec.shape != shape else out


def _masked(x: Any, mask: Any, values: Any, mode: str) -> Any:
    """An update with one value for all true elements of a mask that is known only at run time.

    ``None`` for any other key or values.
    """
    if getattr(mask, "spec", None) is None or mask.spec.dtype is not bool_ or host_elements(mask) is not None:
        return None
    shape, leading = x.spec.shape, mask.spec.ndim
    fits = leading <= len(shape) and all(ask(n, "==", m) for n, m in zip(mask.spec.shape, shape))
    if not fits or not broadcasts_to(values.spec.shape, shape[leading:]):
        return None
    wide = catalog.reshape(mask, shape=(*mask.spec.shape, *(1,) * (len(shape) - leading)))
    return where(wide, values if mode == "set" else _COMBINED[mode](x, values), x)


def _block_updated(x: Any, key: Key, values: Any, mode: str) -> Any:
    """An update of one block whose traced starts are provably inside; ``None`` for any other key.

    Such an update drops no elements, and its derivative is that of a block update.
    """
    if not any(isinstance(e, Start) for e in key.entries):
        return None
    starts: list[Any] = [0] * x.spec.ndim
    sizes: list[DimLike] = [1] * x.spec.ndim
    part = list[DimLike]()
    for e in key.entries:
        if isinstance(e, New):
            part.append(1)
        elif isinstance(e, Pick):
            starts[e.axis] = e.at
        elif isinstance(e, Start) or (isinstance(e, Range) and e.step == 1):
            starts[e.axis], sizes[e.axis] = e.at if isinstance(e, Start) else e.start, e.length
            if not (isinstance(e, Start) and e.dropped):
                part.append(e.length)
        elif not isinstance(e, Gap):
            return None
    if 0 in part or not is_inside(x, starts, sizes):
        return None
    update = _broadcast(values, tuple(part), x)
    update = catalog.reshape(update, shape=tuple(sizes)) if update.spec.shape != tuple(sizes) else update
    at = starts_of(x, starts)
    if mode != "set":
        update = _COMBINED[mode](catalog.dynamic_slice(x, *at, sizes=tuple(sizes)), update)
    return catalog.dynamic_update_slice(x, update, *at)


def _broadcast(values: Any, part: tuple[DimLike, ...], x: Any) -> Any:
    shape = values.spec.shape
    extra = len(shape) - len(part)
    if extra > 0 and shape[:extra] == (1,) * extra:  # as in NumPy
        values = catalog.reshape(values, shape=shape[extra:])
        shape = shape[extra:]
    if not broadcasts_to(shape, part):
        raise ShapeError(
            f"values of shape {shape} do not broadcast to the indexed part, of shape {part}, of {x.spec!r}; "
            "align the axes at the right, with extents equal or 1",
            shape=shape,
            part=part,
        )
    return brought(values, values.spec.with_(shape=part))


def _is_slice(key: Key, mode: str) -> bool:
    return mode in ("set", "add") and all(isinstance(e, Range | Pick | New | Gap) for e in key.entries)


class _Slices:
    """The update metadata of a key of integers and slices.

    Attributes:
        part_shape: shape of the indexed part when read.
        update_shape: the same with exactly the axes of the operand.
    """

    def __init__(self, key: Key, mode: str) -> None:
        part, update = list[DimLike](), list[DimLike]()
        start, stride = list[DimLike](), list[int]()
        self._reversed: list[int] = []
        for e in key.entries:
            if isinstance(e, New):
                part.append(1)
            elif isinstance(e, Pick):
                update.append(1)
                start.append(e.at)
                stride.append(1)
            elif isinstance(e, Range):
                part.append(e.length)
                update.append(e.length)
                start.append(e.start if e.step > 0 else e.start + (e.length - 1) * e.step)
                stride.append(abs(e.step))
                self._reversed += [e.axis] * (e.step < 0)
        self.part_shape, self.update_shape = tuple(part), tuple(update)
        self._op = catalog.update_slice.op(start=tuple(start), stride=tuple(stride), mode=mode)

    def written(self, x: Any, update: Any, mode: str) -> Any:
        """`x` with the slice updated."""
        if self._reversed:
            update = catalog.reverse(update, axes=tuple(self._reversed))
        return self._op(x, update)


class _Windows:
    """A resolved key as the metadata of a scatter.

    Attributes:
        axes: axes of the operand that have starts.
        starts: the starts, as index vectors.
        part_shape: shape of the indexed part when read.
        update_shape: the same without new axes.
        window_dims: axes of the update that are axes of the window.
        inserted: axes of the operand that the window lacks.
    """

    def __init__(self, x: Any, key: Key) -> None:
        spec = x.spec
        group = [i for i, e in enumerate(key.entries) if isinstance(e, (Choose, Pick))]
        chosen = [e for e in key.entries if isinstance(e, Choose)]
        common = broadcast_shapes(*[e.indices.shape for e in chosen]) if chosen else ()
        together = bool(chosen) and group[-1] - group[0] + 1 == len(group)
        lead = bool(chosen) and not together
        self.part_shape: tuple[DimLike, ...] = tuple(common) if lead else ()
        update: list[tuple[DimLike, bool]] = [(d, False) for d in common] if lead else []
        starts: list[tuple[int, Any, int | None]] = []  # axis of x, host array or value, its axis in the update
        for i, e in enumerate(key.entries):
            if chosen and together and i == group[0]:
                self.part_shape += tuple(common)
                at = len(update)
                update.extend((d, False) for d in common)
            if isinstance(e, New):
                self.part_shape += (1,)
            elif isinstance(e, Range):
                self.part_shape += (e.length,)
                whole = e.step == 1
                if not whole:
                    starts.append((e.axis, _strided(x, e), len(update)))
                elif e.start != 0:
                    starts.append((e.axis, _start(x, e.start), None))
                update.append((e.length, whole))
            elif isinstance(e, Start):
                starts.append((e.axis, e.at, None))
                if not e.dropped:
                    self.part_shape += (e.length,)
                    update.append((e.length, True))
            elif isinstance(e, Pick):
                starts.append((e.axis, _start(x, e.at), None))
            elif isinstance(e, Choose):
                starts.append((e.axis, e.indices, -1))
        first = 0 if lead or not chosen else at
        self.update_shape = tuple([d for d, _ in update])
        self.window_dims = tuple([i for i, (_, window) in enumerate(update) if window])
        batch = [i for i, (_, window) in enumerate(update) if not window]
        self.axes = tuple([a for a, _, _ in starts])
        arrays = [_placed(s, axis, batch, first, len(common)) for _, s, axis in starts]
        windowed = {e.axis for e in key.entries if isinstance(e, Range) and e.step == 1}
        windowed.update([e.axis for e in key.entries if isinstance(e, Start) and not e.dropped])
        self.inserted = tuple([a for a in range(spec.ndim) if a not in windowed])
        if not self.axes:  # the whole value is a single window that starts at its first element
            self.axes, arrays = (0,), [np.zeros((), np.int64)]
        self.starts = index_vectors(x, self.axes, arrays, tuple([update[i][0] for i in batch]))

    def written(self, x: Any, update: Any, mode: str) -> Any:
        """`x` with the windows written."""
        return catalog.scatter(
            x,
            self.starts,
            update,
            update_window_dims=self.window_dims,
            inserted_dims=self.inserted,
            scatter_dims=self.axes,
            mode=mode,
        )


def _start(x: Any, at: DimLike) -> Any:
    """A start as a 0-d index array; a symbolic one becomes a value."""
    if isinstance(at, int):
        return np.asarray(at)
    return number(at, x.spec.place)


def _strided(x: Any, e: Range) -> Any:
    if isinstance(e.length, int) and isinstance(e.start, int):
        return np.arange(e.length) * e.step + e.start
    steps = catalog.iota(shape=(e.length,), dtype=int64, axis=0, place=x.spec.place)
    return catalog.add(catalog.mul(steps, e.step), number(e.start, x.spec.place))


def _placed(starts: Any, own: int | None, batch: list[int], first: int, width: int) -> Any:
    """Starts reshaped so that their axes align with the batch axes of the update."""
    if own is None:
        return starts
    if own == -1:
        after = len([i for i in batch if i >= first + width])
        return starts.reshape((*starts.shape, *(1,) * after)) if after else starts
    after = len([i for i in batch if i > own])
    return starts.reshape((*starts.shape, *(1,) * after))
