"""Reading and writing at indices computed at run time.

An index vector is a row along the last axis of an integer array. A window is a block of an operand that
starts at an index vector. `gather` and `scatter` follow StableHLO, except that the index vector dimension is always
last and there are no batching dimensions.
"""

from tenferro_tensor._primitive import primitive
from tenferro_tensor._spec import Spec
from tenferro_tensor.catalog._axes import (
    require_axes,
    require_kind,
    require_length,
    require_same_dtype,
    same,
    show,
)
from tenferro_tensor_core import ArgumentError, Dim, DimLike, ShapeError, ask

__all__ = ["SCATTER_MODES", "dynamic_slice", "dynamic_update_slice", "gather", "scatter"]


def __dir__() -> list[str]:
    return __all__.copy()


SCATTER_MODES = ("set", "add", "mul", "min", "max")
"""How `scatter` combines an update with the present element."""


@primitive
def gather(
    x: Spec,
    indices: Spec,
    *,
    offset_dims: tuple[int, ...],
    collapsed_dims: tuple[int, ...],
    start_index_map: tuple[int, ...],
    slice_sizes: tuple[DimLike, ...],
) -> Spec:
    """Collect the windows of `x` at index vectors.

    Entry ``k`` of an index vector is the start of the window along axis ``start_index_map[k]`` of `x`; the other axes
    start at 0. Starts are clamped so that each window is inside `x`. The result has the axes `offset_dims` for the
    window; its other axes are those of `indices` without the last.

    Args:
        x: array to read.
        indices: integers; index vectors are along the last axis.
        offset_dims: axes of the result that are window axes, ascending.
        collapsed_dims: axes of extent 1 to drop from the window, ascending.
        start_index_map: axis of `x` for each entry of an index vector.
        slice_sizes: extents of the window, one for each axis of `x`.

    Returns:
        Spec of the result, in the dtype of `x`.

    Raises:
        ShapeError: extents do not match, or a window does not fit.
        AxisError: an axis is out of range or repeated.
    """
    _require_indices("gather", indices, len(start_index_map), "start_index_map")
    require_axes("gather", start_index_map, x.ndim, x, "start_index_map")
    require_length("gather", slice_sizes, x, "slice_sizes")
    _require_ascending("gather", collapsed_dims, x.ndim, x, "collapsed_dims")
    for d in collapsed_dims:
        if not same(slice_sizes[d], 1):
            raise ShapeError(
                f"gather collapses axis {d}, whose slice size must be 1, but slice_sizes is {show(slice_sizes)}; "
                "keep the axis in offset_dims",
                axis=d,
                slice_sizes=slice_sizes,
            )
    window = [n for d, n in enumerate(slice_sizes) if d not in collapsed_dims]
    _require_window_dims("gather", offset_dims, len(window), indices.ndim - 1, "offset_dims")
    batch, kept = iter(indices.shape[:-1]), iter(window)
    shape = [next(kept if i in offset_dims else batch) for i in range(len(window) + indices.ndim - 1)]
    _require_window("gather", x, slice_sizes, free=0 in shape)
    return x.with_(shape=tuple(shape))


@primitive(widens=True)
def scatter(
    x: Spec,
    indices: Spec,
    updates: Spec,
    *,
    update_window_dims: tuple[int, ...],
    inserted_dims: tuple[int, ...],
    scatter_dims: tuple[int, ...],
    mode: str,
) -> Spec:
    """`x` with each window of `updates` combined into it at an index vector.

    The axes `update_window_dims` of `updates` are the window, one for each axis of `x` that is not in `inserted_dims`
    (whose extent in the window is 1); the other axes are those of `indices` without the last. Entry ``k`` of an index
    vector is the start along axis ``scatter_dims[k]`` of `x`. Windows that are not entirely inside `x` are dropped.
    Where windows overlap, ``"set"`` keeps an unspecified one, and the other modes combine all of them in an unspecified
    order.

    Args:
        x: array to update.
        indices: integers; index vectors are along the last axis.
        updates: windows, of the dtype of `x`.
        update_window_dims: axes of `updates` that are window axes, ascending.
        inserted_dims: axes of `x` that the window lacks, ascending.
        scatter_dims: axis of `x` for each entry of an index vector.
        mode: ``"set"``, ``"add"``, ``"mul"``, ``"min"`` or ``"max"``.

    Returns:
        Spec of `x`.

    Raises:
        ShapeError: extents do not match, or a window does not fit.
        AxisError: an axis is out of range or repeated.
        ArgumentError: the mode is unknown.
    """
    if mode not in SCATTER_MODES:
        raise ArgumentError(f"scatter has no mode {mode!r}; use one of {', '.join(SCATTER_MODES)}", mode=mode)
    require_same_dtype("scatter", x, updates)
    if mode in ("min", "max"):
        require_kind(f"scatter with mode {mode!r}", x, "biuf", "real numbers, which are ordered")
    _require_indices("scatter", indices, len(scatter_dims), "scatter_dims")
    require_axes("scatter", scatter_dims, x.ndim, x, "scatter_dims")
    _require_ascending("scatter", inserted_dims, x.ndim, x, "inserted_dims")
    kept = [d for d in range(x.ndim) if d not in inserted_dims]
    if updates.ndim != len(kept) + indices.ndim - 1:
        raise ShapeError(
            f"scatter needs updates with {indices.ndim - 1} axes of indices {indices!r} and {len(kept)} window axes, "
            f"got {updates!r}; reshape it, or change inserted_dims={inserted_dims}",
            shapes=(x.shape, indices.shape, updates.shape),
        )
    _require_window_dims("scatter", update_window_dims, len(kept), indices.ndim - 1, "update_window_dims")
    batch = [i for i in range(updates.ndim) if i not in update_window_dims]
    for i, (axis, n) in enumerate(zip(batch, indices.shape[:-1], strict=True)):
        if not same(updates.shape[axis], n):
            raise ShapeError(
                f"scatter needs axis {axis} of updates {updates!r} to match axis {i} of indices {indices!r}: "
                f"{updates.shape[axis]} != {n}; transpose or reshape the updates",
                shapes=(indices.shape, updates.shape),
            )
    _require_window("scatter", x, _window_of(x, updates, update_window_dims, inserted_dims), free=0 in updates.shape)
    return x


def _window_of(x: Spec, updates: Spec, window: tuple[int, ...], inserted: tuple[int, ...]) -> tuple[DimLike, ...]:
    """Extents of the window along each axis of `x`."""
    sizes = iter([updates.shape[a] for a in window])
    return tuple([1 if d in inserted else next(sizes) for d in range(x.ndim)])


@primitive
def dynamic_slice(x: Spec, *starts: Spec, sizes: tuple[DimLike, ...]) -> Spec:
    """Block of `x` that begins at `starts`, which are clamped so that it is inside `x`.

    Args:
        x: array to read.
        *starts: 0-d integers of one dtype, one for each axis.
        sizes: extents of the block.

    Returns:
        Spec of the block.

    Raises:
        ShapeError: there is not one start and size for each axis, or the block does not fit.
        DTypeError: the starts are not integers of one dtype.
    """
    require_length("dynamic_slice", sizes, x, "sizes")
    _require_starts("dynamic_slice", x, starts)
    _require_window("dynamic_slice", x, sizes)
    return x.with_(shape=sizes)


@primitive
def dynamic_update_slice(x: Spec, update: Spec, *starts: Spec) -> Spec:
    """`x` with the block that begins at `starts` replaced; starts are clamped so that it is inside `x`.

    Args:
        x: array to update.
        update: the block, of the dtype of `x`.
        *starts: 0-d integers of one dtype, one for each axis.

    Returns:
        Spec of `x`.

    Raises:
        ShapeError: there is not one start for each axis, or the block does not fit.
        DTypeError: the dtypes differ, or the starts are not integers of one dtype.
    """
    require_same_dtype("dynamic_update_slice", x, update)
    if update.ndim != x.ndim:
        raise ShapeError(
            f"dynamic_update_slice needs an update with the {x.ndim} axes of {x!r}, got {update!r}; reshape it",
            shapes=(x.shape, update.shape),
        )
    _require_starts("dynamic_update_slice", x, starts)
    _require_window("dynamic_update_slice", x, update.shape)
    return x


def _require_indices(name: str, indices: Spec, entries: int, what: str) -> None:
    require_kind(f"{name} at positions", indices, "iu", "integers")
    if not indices.ndim:
        raise ShapeError(f"{name} needs index vectors along the last axis of indices, got {indices!r}; reshape to (1,)")
    if not same(indices.shape[-1], entries):
        raise ShapeError(
            f"{name} needs index vectors of the {entries} entries of {what}, but the last axis of indices {indices!r} "
            f"has extent {indices.shape[-1]}; add an axis of extent 1 for single indices",
            shape=indices.shape,
        )


def _require_starts(name: str, x: Spec, starts: tuple[Spec, ...]) -> None:
    if len(starts) != x.ndim or any(s.ndim for s in starts):
        raise ShapeError(
            f"{name} needs {x.ndim} starts without axes, one for each axis of {x!r}, got "
            f"{', '.join(map(repr, starts)) or 'none'}; index a vector of starts to get its entries",
            shapes=(x.shape, *[s.shape for s in starts]),
        )
    if starts:
        require_kind(f"{name} at positions", starts[0], "iu", "integers")
        require_same_dtype(name, *starts)


def _require_window(name: str, x: Spec, sizes: tuple[DimLike, ...], *, free: bool = False) -> None:
    """Check that a window fits. On an empty axis a window of one element is harmless if nothing is read (`free`).

    Does not ask whether a symbolic extent is nonzero: that would specialise programs at size 0.
    """
    for d, (size, extent) in enumerate(zip(sizes, x.shape, strict=True)):
        if size == 1 and (free or isinstance(extent, Dim)):
            continue
        if ask(size, "<", 0) or ask(size, ">", extent):
            raise ShapeError(
                f"{name}: a window of extents {show(sizes)} does not fit {x!r}: {size} on axis {d}, "
                f"which has extent {extent}; make the window smaller",
                shape=x.shape,
                axis=d,
            )


def _require_ascending(name: str, axes: tuple[int, ...], ndim: int, of: Spec | str, what: str) -> None:
    require_axes(name, axes, ndim, of, what)
    if list(axes) != sorted(axes):
        raise ArgumentError(f"{name} takes {what} in ascending order, got {axes}; sort them", primitive=name)


def _require_window_dims(name: str, dims: tuple[int, ...], window: int, batch: int, what: str) -> None:
    _require_ascending(name, dims, window + batch, f"{batch} axes of indices and {window} window axes", what)
    if len(dims) != window:
        raise ShapeError(f"{name} needs {window} entries in {what}, one for each window axis, got {dims}", dims=dims)
