"""Functions of small arrays applied to slices of larger ones: along axes, over axes, and element by element.

They call the function once for all slices, with `vmap`.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Collection, Sequence
from functools import wraps
from typing import Any, Final, TypeVar

from tenferro_runtime.batching._vmap import vmap
from tenferro_runtime.control_flow._values import require_functions
from tenferro_tensor import Array, catalog
from tenferro_tensor.functions import asarray, broadcast_shapes, broadcast_to, expand_dims, moveaxis, reshape
from tenferro_tensor.operands import axes_of, axis_of
from tenferro_tensor_core import ArgumentError, DimLike, ShapeError, ask

F = TypeVar("F", bound=Callable[..., Any])

__all__ = ["apply_along_axis", "apply_over_axes", "vectorize"]


def __dir__() -> list[str]:
    return __all__.copy()


def apply_along_axis(function: Callable[..., Any], axis: int, x: Any, /, *args: Any, **kwargs: Any) -> Array:
    """Apply a function of vectors to every line of an array along an axis.

    Args:
        function: takes a vector and returns an array, whose axes replace the axis in the result.
        axis: the axis.
        x: the array.
        args: passed to the function after the vector.
        kwargs: passed to the function.

    Returns:
        The results, stacked over the other axes of `x`.

    >>> tr.apply_along_axis(lambda v: v[1:] - v[0], 1, tr.asarray([[1, 2, 4], [5, 6, 9]]))
    Tensor([[1, 3],
            [1, 4]])
    """
    require_functions("apply_along_axis", function)
    x = asarray(x)
    axis = axis_of("apply_along_axis", axis, x.spec.ndim)
    lines = moveaxis(x, axis, -1)
    *rest, extent = lines.spec.shape
    flat = catalog.reshape(lines, shape=(math.prod(rest), extent))
    out = vmap(lambda line: asarray(function(line, *args, **kwargs)))(flat)
    inner = out.spec.shape[1:]
    out = catalog.reshape(out, shape=(*rest, *inner))
    n, k = len(rest), len(inner)
    return moveaxis(out, tuple(range(n, n + k)), tuple(range(axis, axis + k))) if k else out


def apply_over_axes(function: Callable[[Any, int], Any], x: Any, /, axes: int | Sequence[int]) -> Array:
    """Apply a function of an array and an axis, such as a sum, over several axes in turn.

    Args:
        function: takes an array and an axis, and returns an array in which the axis is missing or has another extent.
        x: the array.
        axes: the axes.

    Returns:
        An array with as many axes as `x`.

    Raises:
        ShapeError: a result has neither as many axes as its operand nor one fewer.

    >>> tr.apply_over_axes(tr.sum, tr.ones((2, 3, 4)), (0, 2))
    Tensor([[[8.],
             [8.],
             [8.]]])
    """
    x = asarray(x)
    n = x.spec.ndim
    for axis in axes_of("apply_over_axes", axes, n):
        out = asarray(function(x, axis))
        if out.spec.ndim not in (n, n - 1):
            raise ShapeError(
                f"apply_over_axes needs results with {n} or {n - 1} axes, got {out.spec!r} along axis {axis}",
                shape=out.spec.shape,
            )
        x = out if out.spec.ndim == n else expand_dims(out, axis=axis)
    return x


def vectorize(function: F, *, excluded: Collection[int | str] = (), signature: str | None = None) -> F:
    """Make a function of scalars or small arrays a function of arrays whose leading axes broadcast.

    Args:
        function: takes and returns scalars (0-d arrays); with a signature, arrays of the named axes.
        excluded: positions and names of arguments that are passed on unchanged, as are all other named arguments.
        signature: the axes of operands and results, such as ``"(n,m),(m)->(n)"``.

    Returns:
        A function of arrays.

    Raises:
        ArgumentError: the signature cannot be parsed.

    >>> first = tr.vectorize(lambda a, b: tr.cond(a > b, lambda: a - b, lambda: a + b))
    >>> first(tr.asarray([1, 2, 3, 4]), 2)
    Tensor([3, 4, 1, 2])
    >>> tr.vectorize(tr.matmul, signature="(n,m),(m)->(n)")(tr.ones((5, 2, 3)), tr.ones(3)).shape
    (5, 2)
    """
    require_functions("vectorize", function)
    wanted = None if signature is None else _parsed(signature)

    @wraps(function)
    def vectorized(*args: Any, **kwargs: Any) -> Any:
        places = [i for i in range(len(args)) if i not in excluded]
        operands = [asarray(args[i]) for i in places]
        cores = [()] * len(operands) if wanted is None else wanted[0]
        if len(cores) != len(operands):
            raise ArgumentError(
                f"vectorize: the signature {signature!r} has {len(cores)} operands, but there are {len(operands)}"
            )
        extents: dict[str, DimLike] = {}
        leads = [_lead(x, core, extents, i) for i, (x, core) in enumerate(zip(operands, cores, strict=True))]
        shape = broadcast_shapes(*leads) if leads else ()

        def one(*parts: Any) -> Any:
            every = list(args)
            for i, part in zip(places, parts, strict=True):
                every[i] = part
            return function(*every, **kwargs)

        if not shape:
            return one(*operands)
        flat, axes = [], []
        for x, lead in zip(operands, leads, strict=True):
            core = x.spec.shape[len(lead) :]
            axes.append(0 if lead else None)
            wide = broadcast_to(x, (*shape, *core)) if lead else x
            flat.append(reshape(wide, (math.prod(shape), *core)) if lead else x)
        out = vmap(one, tuple(axes))(*flat)
        restored = [catalog.reshape(o, shape=(*shape, *o.spec.shape[1:])) for o in _several(out)]
        if wanted is not None:
            for i, (o, names) in enumerate(zip(restored, wanted[1], strict=True)):
                _require(o.spec.shape[len(shape) :], names, extents, f"result {i}")
        return tuple(restored) if isinstance(out, (tuple, list)) else restored[0]

    return vectorized  # type: ignore[return-value]


def _several(out: Any) -> Sequence[Any]:
    return out if isinstance(out, (tuple, list)) else (out,)


_NAMES: Final = r"\(\s*(?:\w+\s*(?:,\s*\w+\s*)*)?\)"
_SIGNATURE: Final = re.compile(rf"\s*(?:{_NAMES}\s*(?:,\s*{_NAMES}\s*)*)?->\s*{_NAMES}\s*(?:,\s*{_NAMES}\s*)*$")


def _parsed(signature: str) -> tuple[list[tuple[str, ...]], list[tuple[str, ...]]]:
    """The names of the axes of each operand and of each result."""
    if not isinstance(signature, str) or not _SIGNATURE.match(signature):
        raise ArgumentError(
            f"vectorize cannot read the signature {signature!r}; write the axes of operands and results as in "
            "'(n,m),(m)->(n)'"
        )
    before, after = (
        [tuple(re.findall(r"\w+", part)) for part in re.findall(_NAMES, side)] for side in signature.split("->")
    )
    return before, after


def _lead(x: Any, core: tuple[str, ...], extents: dict[str, DimLike], i: int) -> tuple[DimLike, ...]:
    """The leading extents of an operand, over which the function is mapped."""
    n = x.spec.ndim - len(core)
    if n < 0:
        raise ShapeError(f"vectorize: operand {i} needs at least the {len(core)} axes {core}, got {x.spec!r}")
    _require(x.spec.shape[n:], core, extents, f"operand {i}")
    return x.spec.shape[:n]


def _require(shape: tuple[DimLike, ...], core: tuple[str, ...], extents: dict[str, DimLike], what: str) -> None:
    """Raise unless extents are those that their names have elsewhere; numbers name themselves."""
    if len(shape) != len(core):
        raise ShapeError(f"vectorize: {what} has {len(shape)} axes of its own, the signature names {core}")
    for name, n in zip(core, shape, strict=True):
        known = extents.setdefault(name, int(name) if name.isdigit() else n)
        if not ask(known, "==", n):
            raise ShapeError(f"vectorize: axis {name} of {what} has extent {n}, and elsewhere {known}", extent=n)
