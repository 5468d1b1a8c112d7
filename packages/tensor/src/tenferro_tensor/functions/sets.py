"""Distinct elements and membership. The sizes of results depend on the elements, which must be known.

Sorting finds equal elements; the values are then read from the operand, so that derivatives pass. NaNs are
distinct from each other.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np

from tenferro_tensor import catalog
from tenferro_tensor.calls import state
from tenferro_tensor.direct import ANY_SIZE, direct
from tenferro_tensor.functions import _line_forms
from tenferro_tensor.functions._line_forms import all_of, as_found, firsts, in_order, inverse_of, lengths
from tenferro_tensor.functions._span import span
from tenferro_tensor.functions.creation import full_like
from tenferro_tensor.functions.joining import concat
from tenferro_tensor.functions.manipulation import ravel
from tenferro_tensor.functions.reading import getitem
from tenferro_tensor.functions.scans import cumulative_sum, diff
from tenferro_tensor.functions.searching import nonzero
from tenferro_tensor.operands import AlongOps, alike, host_elements, own, require_concrete, value
from tenferro_tensor_core import bool_, int64

if TYPE_CHECKING:
    from tenferro_tensor._array import Array

__all__ = ["isin", "unique_all", "unique_counts", "unique_inverse", "unique_values"]


def __dir__() -> list[str]:
    return __all__.copy()


SORT_MAX_BYTES: Final = 1 << 11
"""Largest operand (in bytes) for NumPy's own stable argsort."""

COMPARED_MAX_SIZE: Final = 16
"""Largest set (in elements) that is searched by comparing with each of its elements; larger sets are sorted."""

_ARGSORT: Final = AlongOps("argsort", catalog.argsort, descending=False)


class UniqueAll(NamedTuple):
    """The result of `unique_all`."""

    values: Array
    indices: Array
    inverse_indices: Array
    counts: Array


class UniqueCounts(NamedTuple):
    """The result of `unique_counts`."""

    values: Array
    counts: Array


class UniqueInverse(NamedTuple):
    """The result of `unique_inverse`."""

    values: Array
    inverse_indices: Array


def _of_host(x: Any, host: np.ndarray[Any, Any]) -> UniqueAll:
    """`unique_all` of a value whose elements are known and in main memory."""
    place, flat = x.spec.place, host.reshape(-1)
    order = host_elements(_ARGSORT(own(flat, place), 0))
    values, where, inverse, counts = [own(part, place) for part in all_of(host, flat, order)]
    return UniqueAll(values if x.__class__ is state.tensor else getitem(ravel(x), where), where, inverse, counts)


def _all_form(x: np.ndarray[Any, Any], /) -> UniqueAll:
    flat = x.reshape(-1)
    return UniqueAll(*all_of(x, flat, flat.argsort(kind="stable")))


def _inverse_form(x: np.ndarray[Any, Any], /) -> UniqueInverse:
    flat = x.reshape(-1)
    order = flat.argsort(kind="stable")
    s = flat[order]
    first = firsts(s)
    return UniqueInverse(s[first], inverse_of(x, order, first))  # type: ignore[arg-type]


@direct(_all_form, SORT_MAX_BYTES)
def unique_all(x: Any, /) -> UniqueAll:
    """Distinct elements in ascending order, with indices, inverse and counts.

    Args:
        x: array of any shape and dtype.

    Returns:
        A named tuple of the values, the index of the first occurrence of each, the index into `values` of each element
        of `x` (of its shape), and the counts; indices and counts are int64.

    Raises:
        TracingError: the elements are unknown while tracing.

    See also:
        `unique`, which can return a given number of elements.

    >>> tr.unique_all(tr.asarray([3, 1, 3])).counts
    Tensor([1, 2])
    """
    x = value(x)
    require_concrete(x, "unique", "sort the elements and compare neighbours, which keeps the size")
    host = host_elements(x)
    if host is not None:
        return _of_host(x, host)
    flat = catalog.stop_gradient(ravel(x))
    n = flat.spec.size
    if n == 0:
        none = catalog.convert(flat, dtype=int64)
        return UniqueAll(ravel(x), none, catalog.reshape(none, shape=x.spec.shape), none)
    order = catalog.argsort(flat, axis=0, descending=False)
    s = getitem(flat, order)
    changes = catalog.ne(span(s, 0, 1, n), span(s, 0, 0, n - 1))
    first = concat([full_like(span(s, 0, 0, 1), True, dtype=bool_), changes])
    (starts,) = nonzero(first)
    indices = getitem(order, starts)
    rank = cumulative_sum(first) - 1
    inverse = catalog.reshape(getitem(rank, catalog.argsort(order, axis=0, descending=False)), shape=x.spec.shape)
    counts = diff(starts, append=full_like(span(starts, 0, 0, 1), n))
    return UniqueAll(getitem(ravel(x), indices), indices, inverse, counts)


def _counts_form(x: np.ndarray[Any, Any], /) -> UniqueCounts | None:
    if x.dtype.kind == "c":
        return None
    s, first = in_order(x)
    starts = first.nonzero()[0]
    return UniqueCounts(as_found(s[starts], x), lengths(starts, s.size))


@direct(_counts_form, ANY_SIZE)
def unique_counts(x: Any, /) -> UniqueCounts:
    """Distinct elements in ascending order, with counts.

    Args:
        x: array of any shape and dtype.

    Returns:
        A named tuple of the values and the counts, int64.

    Raises:
        TracingError: the elements are unknown while tracing.

    >>> tr.unique_counts(tr.asarray([3, 1, 3])).values
    Tensor([1, 3])
    """
    found = unique_all(x)
    return UniqueCounts(found.values, found.counts)


@direct(_inverse_form, SORT_MAX_BYTES)
def unique_inverse(x: Any, /) -> UniqueInverse:
    """Distinct elements in ascending order, with the inverse.

    Args:
        x: array of any shape and dtype.

    Returns:
        A named tuple of the values and the index into them of each element of `x`, int64.

    Raises:
        TracingError: the elements are unknown while tracing.

    >>> tr.unique_inverse(tr.asarray([3, 1, 3])).inverse_indices
    Tensor([1, 0, 1])
    """
    found = unique_all(x)
    return UniqueInverse(found.values, found.inverse_indices)


@direct(_line_forms.unique_values, ANY_SIZE)
def unique_values(x: Any, /) -> Array:
    """Distinct elements in ascending order.

    Args:
        x: array of any shape and dtype.

    Returns:
        Vector of the dtype of `x`.

    Raises:
        TracingError: the elements are unknown while tracing.

    >>> tr.unique_values(tr.asarray([3, 1, 3]))
    Tensor([1, 3])
    """
    return unique_all(x).values


@direct(_line_forms.isin, ANY_SIZE)
def isin(x1: Any, x2: Any, /, *, invert: bool = False) -> Array:
    """Whether each element is in a set.

    Args:
        x1: array of any shape.
        x2: elements of the set, of any shape.
        invert: whether each element is not in the set instead.

    Returns:
        Boolean array of the shape of `x1`.

    >>> tr.isin(tr.asarray([1, 2, 3]), tr.asarray([3, 1]))
    Tensor([ True, False,  True])
    """
    x1, x2 = alike(x1, np.asarray(x2) if isinstance(x2, (list, tuple)) else x2)
    known = ravel(x2)
    n = known.spec.size
    if isinstance(n, int) and n > COMPARED_MAX_SIZE and not x1.spec.cplx:
        x1, known = catalog.stop_gradient(x1), catalog.sort(catalog.stop_gradient(known), axis=0, descending=False)
        at = catalog.minimum(catalog.searchsorted(known, x1, side="left"), n - 1)
        among = catalog.eq(getitem(known, at), x1)
    else:
        each = catalog.reshape(x1, shape=(*x1.spec.shape, 1))
        among = catalog.reduce_any(catalog.eq(each, known), axes=(x1.spec.ndim,))
    return catalog.bitwise_not(among) if invert else among
