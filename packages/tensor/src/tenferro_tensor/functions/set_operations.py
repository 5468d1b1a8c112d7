"""NumPy's functions of distinct elements, and operations on sets as ascending vectors of distinct elements.

Sizes of results depend on the elements, which must be known; `unique` and `union1d` also accept a size. Derivatives
pass to the elements in the result; among equal elements, to the first.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, overload

import numpy as np

from tenferro_tensor import catalog
from tenferro_tensor.calls import SCALARS
from tenferro_tensor.direct import ANY_SIZE, direct
from tenferro_tensor.functions import _numpy_forms
from tenferro_tensor.functions._listed import listed
from tenferro_tensor.functions.creation import full_like
from tenferro_tensor.functions.flat_indices import first_true
from tenferro_tensor.functions.joining import concat
from tenferro_tensor.functions.manipulation import ravel
from tenferro_tensor.functions.reading import take
from tenferro_tensor.operands import alike, axis_of, own, positions, require_concrete
from tenferro_tensor_core import UnsupportedError, bool_, int64

if TYPE_CHECKING:
    from tenferro_tensor._array import Array

__all__ = ["intersect1d", "setdiff1d", "setxor1d", "union1d", "unique"]


def __dir__() -> list[str]:
    return __all__.copy()


_WAY_OUT = "sort the elements and compare neighbours, which keeps the size"


@direct(_numpy_forms.unique, ANY_SIZE)
def unique(
    x: Any,
    /,
    return_index: bool = False,
    return_inverse: bool = False,
    return_counts: bool = False,
    axis: int | None = None,
    *,
    equal_nan: bool = True,
    size: Any = None,
    fill_value: Any = None,
) -> Array:
    """Distinct elements, or distinct entries along an axis, in ascending order.

    Args:
        x: array of any shape and dtype.
        return_index: also return the index of the first occurrence of each.
        return_inverse: also return the index into the result of each element of `x`.
        return_counts: also return the number of occurrences of each.
        axis: axis whose entries are compared; by default the flattened array.
        equal_nan: treat all NaNs as equal.
        size: number of results, which makes the extent known to a trace and to `vmap`; without axis only.
        fill_value: fills missing results; by default the smallest element.

    Returns:
        The distinct elements; with further results, a tuple of them in the order of the arguments.

    Raises:
        TracingError: the elements are unknown, and there is no `size`.
        UnsupportedError: both `size` and an axis were given.

    See also:
        `unique_values`, `unique_counts`, `unique_inverse` and `unique_all`, of the Array API.

    >>> tr.unique(tr.asarray([3, 1, 3]), return_counts=True)
    (Tensor([1, 3]), Tensor([1, 2]))
    """
    x = listed(x)
    wanted = (return_index, return_inverse, return_counts)
    if size is not None:
        if axis is not None and x.spec.ndim != 1:
            raise UnsupportedError("unique with size= takes all elements, got axis= as well; use vmap for stacks")
        return _chosen(_sized(x, size, fill_value, equal_nan, axis), wanted)
    require_concrete(x, "unique", f"give size=, or {_WAY_OUT}")
    axis = None if axis is None else axis_of("unique", axis, x.spec.ndim)
    _, index, inverse, counts = np.unique(x._concrete(), True, True, True, axis, equal_nan=equal_nan)
    values = take(ravel(x), index) if axis is None else take(x, index, axis=axis)
    return _chosen((values, *[own(np.asarray(f), x.spec.place) for f in (index, inverse, counts)]), wanted)


def _chosen(found: tuple[Any, ...], wanted: tuple[bool, ...]) -> Any:
    rest = [f for f, w in zip(found[1:], wanted, strict=True) if w]
    return (found[0], *rest) if rest else found[0]


def _sized(x: Any, size: Any, fill_value: Any, equal_nan: bool, axis: int | None) -> tuple[Any, ...]:
    """The first `size` distinct elements, their first positions, the index of each element in them, and counts."""
    flat = ravel(x)
    n = flat.spec.shape[0]
    order = catalog.argsort(flat, axis=0, descending=False)
    in_order = take(flat, order) if n != 0 else flat
    first = _first_of_run(in_order, equal_nan)
    rank = catalog.sub(catalog.cumsum(catalog.convert(first, dtype=int64), axis=0, reverse=False), 1)
    starts = first_true(first, size, -1)
    missing = catalog.lt(starts, 0)
    starts = catalog.select(missing, 0, starts)
    if n == 0:
        values = full_like(starts, 0 if fill_value is None else fill_value, dtype=flat.spec.dtype)
        none = full_like(starts, 0)
        return values, none, catalog.reshape(rank, shape=x.spec.shape), none
    values, index = take(in_order, starts), take(order, starts)
    if fill_value is not None:
        values = catalog.select(missing, *alike(fill_value, values))
    inverse = take(rank, catalog.argsort(order, axis=0, descending=False))
    same = catalog.eq(catalog.reshape(rank, shape=(n, 1)), positions(starts, 0))
    counts = catalog.reduce_sum(catalog.convert(same, dtype=int64), axes=(0,))
    return values, index, catalog.reshape(inverse, shape=x.spec.shape), catalog.select(missing, 0, counts)


def _first_of_run(in_order: Any, equal_nan: bool) -> Any:
    """A mask of the elements of a sorted vector that differ from the one before."""
    n = in_order.spec.shape[0]
    least = n if isinstance(n, int) and n < 1 else 1
    upper, lower = (
        catalog.slice_(in_order, start=s, limit=e, stride=(1,)) for s, e in (((least,), (n,)), ((0,), (n - least,)))
    )
    changes = catalog.ne(upper, lower)
    if equal_nan and in_order.spec.inexact:
        both = catalog.bitwise_and(catalog.ne(upper, upper), catalog.ne(lower, lower))
        changes = catalog.bitwise_and(changes, catalog.bitwise_not(both))
    true = full_like(catalog.slice_(in_order, start=(0,), limit=(least,), stride=(1,)), True, dtype=bool_)
    return catalog.concatenate(true, changes, axis=0)


@direct(_numpy_forms.union1d, ANY_SIZE)
def union1d(x: Any, y: Any, /, *, size: Any = None, fill_value: Any = None) -> Array:
    """Distinct elements of two arrays, in ascending order.

    Args:
        x, y: arrays of any shapes.
        size: number of results, which makes the extent known to a trace and to `vmap`.
        fill_value: fills missing results; by default the smallest element.

    Returns:
        Vector of the promoted dtype.

    Raises:
        TracingError: the elements are unknown, and there is no `size`.

    >>> tr.union1d(tr.asarray([3, 1]), tr.asarray([2, 3]))
    Tensor([1, 2, 3])
    """
    vectors = [ravel(v) for v in alike(*[v if v.__class__ in SCALARS else listed(v) for v in (x, y)])]
    return unique(concat(vectors), size=size, fill_value=fill_value)


def _both(name: str, x: Any, y: Any) -> tuple[Any, Any, np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    """Both arrays as vectors of one dtype, and their concrete elements."""
    x, y = alike(ravel(listed(x)), ravel(listed(y)))
    for v in (x, y):
        require_concrete(v, name, _WAY_OUT)
    return x, y, x._concrete(), y._concrete()


@overload
def intersect1d(x: Any, y: Any, /, assume_unique: bool = ..., return_indices: Literal[False] = ...) -> Array: ...
@overload
def intersect1d(
    x: Any, y: Any, /, assume_unique: bool = ..., *, return_indices: Literal[True]
) -> tuple[Array, Array, Array]: ...
@direct(_numpy_forms.intersect1d, ANY_SIZE)
def intersect1d(
    x: Any, y: Any, /, assume_unique: bool = False, return_indices: bool = False
) -> Array | tuple[Array, Array, Array]:
    """Distinct elements that both arrays contain, in ascending order.

    Args:
        x, y: arrays of any shapes.
        assume_unique: skip the removal of duplicates in the arguments.
        return_indices: also return the indices of the elements in `x` and in `y`.

    Returns:
        Vector of the promoted dtype; with `return_indices`, a tuple with two int64 vectors.

    Raises:
        TracingError: the elements are unknown while tracing.

    >>> tr.intersect1d(tr.asarray([1, 3, 4, 3]), tr.asarray([3, 1, 2]))
    Tensor([1, 3])
    """
    x, y, of_x, of_y = _both("intersect1d", x, y)
    _, at_x, at_y = np.intersect1d(of_x, of_y, assume_unique, return_indices=True)
    values = take(x, at_x)
    return (values, own(at_x, x.spec.place), own(at_y, x.spec.place)) if return_indices else values


@direct(_numpy_forms.setdiff1d, ANY_SIZE)
def setdiff1d(x: Any, y: Any, /, assume_unique: bool = False) -> Array:
    """Distinct elements of `x` that are not in `y`.

    Args:
        x, y: arrays of any shapes.
        assume_unique: skip the removal of duplicates in the arguments.

    Returns:
        Vector of the dtype of `x`.

    Raises:
        TracingError: the elements are unknown while tracing.

    >>> tr.setdiff1d(tr.asarray([1, 3, 2, 4]), tr.asarray([3]))
    Tensor([1, 2, 4])
    """
    x = ravel(listed(x))
    _, _, of_x, of_y = _both("setdiff1d", x, y)
    at = np.arange(of_x.size) if assume_unique else np.unique(of_x, return_index=True)[1]
    return take(x, at[np.isin(of_x[at], of_y, invert=True)])


@direct(_numpy_forms.setxor1d, ANY_SIZE)
def setxor1d(x: Any, y: Any, /, assume_unique: bool = False) -> Array:
    """Distinct elements that exactly one of two arrays contains.

    Args:
        x, y: arrays of any shapes.
        assume_unique: skip the removal of duplicates in the arguments.

    Returns:
        Vector of the promoted dtype.

    Raises:
        TracingError: the elements are unknown while tracing.

    >>> tr.setxor1d(tr.asarray([1, 3, 2]), tr.asarray([3, 4]))
    Tensor([1, 2, 4])
    """
    x, y, of_x, of_y = _both("setxor1d", x, y)
    if not assume_unique:
        at_x, at_y = (np.unique(v, return_index=True)[1] for v in (of_x, of_y))
        x, y, of_x, of_y = take(x, at_x), take(y, at_y), of_x[at_x], of_y[at_y]
    joined = np.concatenate([of_x, of_y])
    order = joined.argsort(kind="stable")
    changes = np.concatenate([[True], joined[order][1:] != joined[order][:-1], [True]])
    alone = order[changes[1:] & changes[:-1]] if joined.size else order
    return take(concat([x, y]), alone)
