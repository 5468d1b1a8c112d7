"""Results whose extent depends on data: the first entries of an axis, and those that a mask selects.

For concrete values the extent is a number. For traced ones it is a new symbolic size, known only at run time; before,
only its bounds are known, so one program serves all its values.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tenferro_tensor import catalog
from tenferro_tensor.functions._span import span
from tenferro_tensor.functions.manipulation import ravel
from tenferro_tensor.functions.reading import take
from tenferro_tensor.operands import axis_of, size_of, value
from tenferro_tensor_core import ArgumentError, Dim, DimLike, ShapeError, ask, bool_, dim_min, int64
from tenferro_tensor_core import assume as rely

if TYPE_CHECKING:
    from tenferro_tensor._array import Array

__all__ = ["assume", "compress", "truncate"]


def __dir__() -> list[str]:
    return __all__.copy()


def truncate(x: Any, k: Any, /, *, axis: int = 0, max: Any = None) -> Array:
    """First `k` entries along an axis, or all if there are fewer.

    A traced `k` makes a data-dependent extent: one program serves all of its values.

    Args:
        x: array with at least one axis.
        k: number of entries: an integer, a size, or a 0-d integer array, which may be traced.
        axis: axis to truncate.
        max: upper bound of `k`, which must hold; without it, `k` may exceed the extent.

    Returns:
        Array of the dtype of `x`, with at most `k` entries along the axis.

    Raises:
        ArgumentError: `k` is negative, larger than `max`, or not an integer.
        AxisError: the axis is out of range.

    >>> tr.truncate(tr.asarray([5, 7, 9]), tr.asarray(2))
    Tensor([5, 7])
    """
    x = value(x)
    axis = axis_of("truncate", axis, x.spec.ndim)
    n = x.spec.shape[axis]
    most = n if max is None else size_of("truncate", "max", max)
    if hasattr(k, "spec"):
        if k.spec.ndim or k.spec.dtype.kind not in "iu":
            raise ArgumentError(f"truncate takes a 0-d integer array as k, got {k.spec!r}; sum or convert it first")
        count = k._as_extent(None if max is None else most)
    else:
        count = size_of("truncate", "k", k)
    if max is not None and isinstance(count, Dim) and isinstance(most, Dim):
        rely(count, "<=", most)
    if not ask(count, ">=", 0) or (max is not None and not ask(count, "<=", most)):
        raise ArgumentError(f"truncate keeps at least 0 and at most {most} entries, got k={count}", k=count)
    return span(x, axis, 0, dim_min(count, n))


def compress(x: Any, mask: Any, /, *, axis: int | None = None, max: Any = None) -> Array:
    """Entries along an axis where a mask is true, in order.

    A traced mask makes a data-dependent extent.

    Args:
        x: the array.
        mask: booleans, one for each index of the axis; without axis, one for each element of `x`.
        axis: axis to select from; by default the flattened array.
        max: upper bound of the number of true entries; by default the extent.

    Returns:
        Array of the dtype of `x`, with as many entries along the axis as the mask has true ones.

    Raises:
        ShapeError: the shape of the mask does not match.
        ArgumentError: the mask is not boolean, or has more than `max` true entries.
        AxisError: the axis is out of range.

    See also:
        `where`, which keeps the shape.

    >>> tr.compress(tr.asarray([5, 7, 9]), tr.asarray([True, False, True]))
    Tensor([5, 9])
    """
    x, mask = value(x), value(mask)
    if mask.spec.dtype is not bool_:
        raise ArgumentError(f"compress takes booleans as mask, got {mask.spec!r}; compare with something")
    if axis is None:
        fits = mask.spec.ndim == x.spec.ndim and all(map(_same, mask.spec.shape, x.spec.shape))
        at = 0
    else:
        at = axis_of("compress", axis, x.spec.ndim)
        fits = mask.spec.ndim == 1 and _same(mask.spec.shape[0], x.spec.shape[at])
    if not fits:
        wanted = "the shape of the array" if axis is None else f"one entry for each index of axis {axis}"
        raise ShapeError(f"compress needs a mask with {wanted}, {x.spec!r}, got {mask.spec!r}; broadcast it first")
    if axis is None:
        x, mask = ravel(x), ravel(mask)
    count = catalog.reduce_sum(catalog.convert(mask, dtype=int64), axes=(0,))
    # A stable sort puts the true entries first.
    order = catalog.argsort(catalog.bitwise_not(mask), axis=0, descending=False)
    return take(x, truncate(order, count, max=x.spec.shape[at] if max is None else max), axis=at)


def _same(a: DimLike, b: DimLike) -> bool:
    return ask(a, "==", b)


def assume(condition: Any, /) -> None:
    """State a condition on data-dependent sizes, such as ``assume(u.shape[1] >= 1)``.

    The trace relies on it, and the program checks it at run time.

    Args:
        condition: a comparison of sizes.

    Raises:
        ShapeError: the condition does not hold.

    >>> tr.assume(tr.zeros(3).shape[0] >= 1)
    """
    if hasattr(condition, "assumed"):
        condition.assumed()
    elif not condition:
        raise ShapeError("assume: the condition does not hold; correct it, or the sizes of the arguments")
