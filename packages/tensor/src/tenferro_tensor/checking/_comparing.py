"""Comparison of arrays, and arrays in unusual memory layouts."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final

import numpy as np

from tenferro_tensor_core import is_narrow, kind_of

Elements = np.ndarray[Any, Any]

_RTOL: Final = {2: 1e-2, 4: 1e-4, 8: 1e-9}
"""Allowed difference between ways to compute, relative to the largest entry, by bytes per real number."""


def close(got: Elements, want: Elements, rtol: float | None = None) -> bool:
    """Whether results agree up to rounding.

    Args:
        got: the result.
        want: what it should be.
        rtol: allowed difference relative to the largest entry; by default 1e-9 in double and 1e-4 in single precision.

    Returns:
        True if shapes and dtypes are equal, and the elements near or equal.

    >>> close(np.array([1.0, np.nan]), np.array([1.0 + 1e-12, np.nan])), close(np.ones(1), np.ones(1, "float32"))
    (True, False)
    """
    if got.shape != want.shape or got.dtype != want.dtype:
        return False
    if kind_of(got.dtype) not in "fc":
        return np.array_equal(got, want)
    if is_narrow(got.dtype):
        limit, got, want = _RTOL[2], got.astype("float32"), want.astype("float32")
    else:
        limit = _RTOL[got.real.dtype.itemsize]
    limit = limit if rtol is None else rtol
    scale = float(np.max(np.abs(want[np.isfinite(want)]), initial=0.0))
    return bool(np.allclose(got, want, rtol=limit, atol=limit * scale, equal_nan=True))


def identical(got: Elements, want: Elements) -> bool:
    """Whether results have the same bits.

    Args:
        got: the result.
        want: what it should be.

    Returns:
        True if shapes, dtypes and bytes are equal.

    >>> identical(np.array(0.0), np.array(-0.0))
    False
    """
    return got.shape == want.shape and got.dtype == want.dtype and got.tobytes() == want.tobytes()


def copied(x: Any) -> Elements:
    """The elements of a concrete tensor.

    Args:
        x: the tensor.

    Returns:
        A row-major copy in main memory.
    """
    return np.array(x._concrete(), order="C")


def shown(array: Elements) -> str:
    """An array in a few words, for messages.

    Args:
        array: the array.

    Returns:
        Dtype, shape and the first and last elements.

    >>> shown(np.arange(3.0))
    'float64[3] [0. 1. 2.]'
    """
    text = np.array2string(array, precision=6, threshold=8, edgeitems=2).replace("\n", "")
    return f"{array.dtype}{list(array.shape)} {text:.80}"


def laid_out(arrays: Sequence[Elements]) -> Iterator[tuple[str, list[Elements]]]:
    """Equal elements in other memory layouts, each with its name; broadcast arrays repeat their first row.

    Args:
        arrays: the arrays, which are not changed.

    Yields:
        The name of a layout, and the arrays in it.

    >>> [name for name, _ in laid_out([np.ones((2, 3))])]
    ['read-only', 'reversed', 'strided', 'broadcast', 'column-major']
    """
    yield "read-only", [_read_only(a.copy()) for a in arrays]
    if any(a.ndim for a in arrays):
        yield "reversed", [a[::-1].copy()[::-1] if a.ndim else a for a in arrays]
        yield "strided", [_spread(a) if a.ndim else a for a in arrays]
        yield "broadcast", [np.broadcast_to(a[:1], a.shape) if a.ndim and a.size else a for a in arrays]
    if any(a.ndim > 1 for a in arrays):
        yield "column-major", [np.asfortranarray(a) if a.ndim else a for a in arrays]


def _spread(a: Elements) -> Elements:
    memory = np.empty(tuple([2 * n for n in a.shape]), a.dtype)
    view = memory[tuple([slice(None, None, 2)] * a.ndim)]
    view[...] = a
    return view


def _read_only(a: Elements) -> Elements:
    a.flags.writeable = False
    return a
