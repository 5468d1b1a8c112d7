"""`vmap`: a function of one lane as a function of a batch of them."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from numbers import Integral
from typing import Any, TypeVar

from tenferro_runtime.batching._batched import Batched, batched
from tenferro_runtime.batching._records import with_lanes
from tenferro_runtime.control_flow._values import require_functions
from tenferro_runtime.ir._source import here
from tenferro_runtime.trees._tree import TreeDef, flatten, parts_like, unflatten
from tenferro_tensor import SCALARS, next_level
from tenferro_tensor.functions import asarray, moveaxis
from tenferro_tensor.identity import handed
from tenferro_tensor_core import ArgumentError, AxisError, DimLike, ShapeError, as_size, ask
from tenferro_tensor_core.tracebacks import boundary, hiding

F = TypeVar("F", bound=Callable[..., Any])
Axis = int | None


@boundary
def vmap(f: F, in_axes: Any = 0, out_axes: Any = 0, *, axis_size: DimLike | None = None) -> F:
    """Vectorize a function: apply it to all lanes of a batch at once.

    Inside `f`, an array has the shape of one lane. The result equals that of a loop over the lanes, even if they branch
    or loop on their own values: `cond` evaluates a branch on the lanes that take it, and `while_loop` ends for each
    lane at its own step. `vmap` composes with every other transform, inside and outside.

    Args:
        f: a function from arrays to arrays, in any containers.
        in_axes: the lane axis of each positional argument: an integer for all of them, or a tuple with an entry for
            each, which is an integer, ``None`` for an argument without lanes, or a container of these that matches the
            upper levels of the argument. The lane axis of keyword arguments is 0; 0-d arrays have no lanes.
        out_axes: the lane axis of the results, in the same form; ``None`` for a result that is the same in all lanes.
        axis_size: number of lanes, if it does not follow from an argument.

    Returns:
        A function of the same arguments, each with its lane axis.

    Raises:
        ArgumentError: the containers do not match, no argument has lanes, or `out_axes` is ``None`` for a result that
            differs between lanes.
        AxisError: an argument does not have the axis.
        ShapeError: the numbers of lanes differ.

    >>> dots = tr.vmap(lambda x, y: tr.sum(x * y), in_axes=(0, None))
    >>> dots(tr.asarray([[1.0, 2.0], [3.0, 4.0]]), tr.asarray([1.0, 10.0]))
    Tensor([21., 43.])
    """
    require_functions("vmap", f)
    if isinstance(in_axes, list):
        in_axes = tuple(in_axes)

    @hiding
    @wraps(f)
    def mapped(*args: Any, **kwargs: Any) -> Any:
        leaves, tree = flatten(args)
        axes = _axes_of(args, tree, in_axes)
        named: list[Any] = []
        if kwargs:
            named, named_tree = flatten(kwargs)
            axes += [0 if getattr(x, "ndim", 0) else None for x in named]

        def path(i: int) -> str:
            shape, at, of = (tree, i, "args") if i < tree.size else (named_tree, i - tree.size, "kwargs")
            return of + list(shape.paths())[at]

        values = [
            x if axis is None else _lanes_first(x, axis, path, i)
            for i, (x, axis) in enumerate(zip([*leaves, *named], axes, strict=True))
        ]
        size = _number_of_lanes(values, axes, path, axis_size)
        level = next_level()
        inside = [handed(x if axis is None else batched(x, level)) for x, axis in zip(values, axes, strict=True)]
        if kwargs:
            result = f(*unflatten(tree, inside[: tree.size]), **unflatten(named_tree, inside[tree.size :]))
        else:
            result = f(*unflatten(tree, inside))
        outs, out_tree = flatten(result)
        placed = spread(out_axes, out_tree, "out_axes", "the result")
        return unflatten(out_tree, [_result(x, axis, level, size) for x, axis in zip(outs, placed, strict=True)])

    return mapped  # type: ignore[return-value]


def spread(prefix: Any, tree: TreeDef, name: str, what: str) -> list[Axis]:
    """An axis for each leaf of a tree, from a prefix tree of axes.

    Args:
        prefix: the axes; ``None`` for no axis.
        tree: the structure.
        name: the argument that holds the axes, for errors.
        what: the object with this structure, for errors.

    Raises:
        ArgumentError: the containers do not match, or an axis is not an integer.
    """
    if prefix is None:
        return [None] * tree.size
    if isinstance(prefix, Integral) and not isinstance(prefix, bool):
        return [int(prefix)] * tree.size
    shape = flatten(prefix)[1]
    if shape.kind is None:
        raise ArgumentError(f"{name} of vmap holds axes, integers or None{here()}, not {prefix!r:.60}")
    parts = parts_like(tree, prefix)
    if parts is None:
        raise ArgumentError(
            f"{name}={prefix!r:.80} of vmap does not fit {what}{here()}, which is {tree.show()}; give one axis for a "
            "container, or the same container with an axis for each part"
        )
    return [axis for part, child in zip(parts, tree.children, strict=True) for axis in spread(part, child, name, what)]


def _axes_of(args: tuple[Any, ...], tree: TreeDef, in_axes: Any) -> list[Axis]:
    if in_axes.__class__ is tuple and len(in_axes) != len(args):
        raise ArgumentError(
            f"in_axes of vmap has {len(in_axes)} entries{here()}, but the function was called with {len(args)} "
            "positional arguments; give one entry for each, or one integer for all"
        )
    return spread(in_axes, tree, "in_axes", "the arguments")


def _lanes_first(x: Any, axis: int, path: Callable[[int], str], i: int) -> Any:
    if x.__class__ in SCALARS or not (value := asarray(x)).spec.ndim:
        raise AxisError(
            f"{path(i)} has no axis for the lanes of vmap{here()}: it is {x!r:.60}; say None for it in in_axes, as in "
            "in_axes=(0, None), or pass an array of one entry for each lane"
        )
    if not -value.spec.ndim <= axis < value.spec.ndim:
        raise AxisError(
            f"in_axes of vmap puts the lanes of {path(i)} along axis {axis}{here()}, but it is {value.spec!r}; its "
            f"axes go from {-value.spec.ndim} to {value.spec.ndim - 1}",
            axis=axis,
            ndim=value.spec.ndim,
        )
    return moveaxis(value, axis, 0) if axis else value


def _number_of_lanes(values: list[Any], axes: list[Axis], path: Callable[[int], str], axis_size: Any) -> DimLike:
    size = None if axis_size is None else as_size(axis_size)
    told: int | None = None
    for i, (x, axis) in enumerate(zip(values, axes, strict=True)):
        if axis is None:
            continue
        n = x.spec.shape[0]
        if size is None:
            size, told = n, i
        elif size is not n and not ask(size, "==", n):
            first = "axis_size" if told is None else path(told)
            raise ShapeError(
                f"vmap needs one number of lanes{here()}, but {first} has {size} and {path(i)} has {n} along its axis "
                f"{axis}; correct in_axes, or the shapes",
                sizes=(str(size), str(n)),
            )
    if size is None:
        raise ArgumentError(
            f"no argument of the function under vmap has lanes{here()}; give an axis in in_axes, or axis_size="
        )
    return size  # type: ignore[no-any-return]


def _result(x: Any, axis: Axis, level: int, size: DimLike) -> Any:
    if x.__class__ is Batched and x.level == level:
        if axis is None:
            raise ArgumentError(
                f"out_axes of vmap is None for a result that differs between lanes{here()}, {x.spec!r}; give the axis "
                "where the lanes go",
                spec=repr(x.spec),
            )
        return _placed(x.value, axis)
    value = asarray(x)._alias()
    return value if axis is None else _placed(with_lanes(size, value), axis)


def _placed(value: Any, axis: int) -> Any:
    """Move the lane axis of an array from the front to the position in `out_axes`."""
    if not axis:
        return value
    if not -value.spec.ndim <= axis < value.spec.ndim:
        raise AxisError(
            f"out_axes of vmap puts the lanes along axis {axis}{here()} of a result which has {value.spec.ndim} axes "
            f"with theirs; say an axis from {-value.spec.ndim} to {value.spec.ndim - 1}",
            axis=axis,
            ndim=value.spec.ndim,
        )
    return moveaxis(value, 0, axis)
