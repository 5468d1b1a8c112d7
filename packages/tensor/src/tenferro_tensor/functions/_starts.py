"""Starts of blocks, which may be known only at run time: counted from 0, in one dtype."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from tenferro_tensor import catalog
from tenferro_tensor.operands import converted, extent, number, own
from tenferro_tensor_core import Dim, DimLike, decide, int64


def starts_of(x: Any, starts: Sequence[Any]) -> list[Any]:
    """Integers, sizes and 0-d values, one for each axis of `x`, as the starts of a dynamic slice.

    Negative values count from the end; integers and sizes already count from 0.
    """
    values = [s for s in starts if hasattr(s, "spec")]
    dtypes = {s.spec.dtype for s in values}
    narrow = len(dtypes) == 1 and all(is_counted(s) for s in values) and not any(isinstance(s, Dim) for s in starts)
    dtype = dtypes.pop() if narrow else int64
    if any(s.__class__ is int and s > np.iinfo(dtype).max for s in starts):
        dtype = int64
    return [
        counted(x, axis, converted(s, dtype)) if hasattr(s, "spec") else _known(s, dtype, x)
        for axis, s in enumerate(starts)
    ]


def _known(start: DimLike, dtype: Any, x: Any) -> Any:
    return own(np.asarray(start, dtype), x.spec.place) if start.__class__ is int else number(start, x.spec.place)


def is_counted(indices: Any) -> bool:
    """Whether provably no index is negative."""
    return bool(indices.spec.dtype.kind == "u" or indices._interval().at_least(0))


def counted(x: Any, axis: int, indices: Any) -> Any:
    """Convert indices of an axis, of which negative ones count from the end, to indices from 0."""
    if is_counted(indices):
        return indices
    below = catalog.add(indices, extent(x, axis))
    high = indices._interval().high
    if high is not None and decide(high, "<", 0):
        return below
    return catalog.select(catalog.lt(indices, 0), below, indices)


def is_inside(x: Any, starts: Sequence[Any], sizes: Sequence[DimLike]) -> bool:
    """Whether a block is provably inside `x`."""
    return all(
        s._interval().within(0, n - size) if hasattr(s, "spec") else decide(s, "<=", n - size)
        for s, n, size in zip(starts, x.spec.shape, sizes, strict=True)
    )
