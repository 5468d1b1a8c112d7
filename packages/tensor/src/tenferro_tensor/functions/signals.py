"""Convolution and correlation of vectors.

Both are matrix products: the longer vector is cut into blocks, and the other one becomes banded matrices that map a
block to its contribution to the result. Contributions of neighbouring blocks overlap and are added. For ``n`` and
``k`` elements this takes ``n k`` multiplications and memory for about ``2 (n / b + b) k`` numbers, where ``b`` is the
extent of a block.
"""

from __future__ import annotations

from math import isqrt
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from tenferro_tensor import catalog
from tenferro_tensor.calls import state
from tenferro_tensor.direct import ANY_SIZE, direct
from tenferro_tensor.functions import _numpy_forms
from tenferro_tensor.functions._listed import listed
from tenferro_tensor.functions._span import span
from tenferro_tensor.functions.manipulation import flip
from tenferro_tensor.operands import alike, own
from tenferro_tensor_core import ArgumentError, Dim, DimLike, ShapeError, ask, bool_, floordiv, likely

if TYPE_CHECKING:
    from tenferro_tensor._array import Array

__all__ = ["convolve", "correlate"]


def __dir__() -> list[str]:
    return __all__.copy()


SYMBOLIC_BLOCK_SIZE: Final = 32
"""Extent of a block if extents are symbolic."""


@direct(_numpy_forms.convolve, ANY_SIZE)
def convolve(x: Any, /, v: Any, mode: str = "full") -> Array:
    """Convolution of two vectors, ``z[i] = sum_j x[j] v[i - j]``.

    Args:
        x: vector of n elements.
        v: vector of k elements.
        mode: ``"full"`` for all n + k - 1 results, ``"same"`` for the max(n, k) in the middle, ``"valid"`` for the
            max(n, k) - min(n, k) + 1 to which every element of the shorter vector contributes.

    Returns:
        Vector in the promoted dtype.

    Raises:
        ShapeError: an operand is not a vector, or is empty.
        ArgumentError: the mode is unknown.

    See also:
        `correlate`; `polymul`, the same on coefficients.

    >>> tr.convolve(tr.asarray([1, 2, 3]), tr.asarray([0, 1]))
    Tensor([0, 1, 2, 3])
    """
    x, v = _vectors("convolve", x, v, mode)
    return _convolved(x, v, mode)


@direct(_numpy_forms.correlate, ANY_SIZE)
def correlate(x: Any, /, v: Any, mode: str = "valid") -> Array:
    """Correlation of two vectors, ``z[i] = sum_j x[i + j] conj(v[j])``.

    Args:
        x: vector of n elements.
        v: vector of k elements.
        mode: as for `convolve`; ``"full"`` starts at ``i = -(k - 1)``.

    Returns:
        Vector in the promoted dtype.

    Raises:
        ShapeError: an operand is not a vector, or is empty.
        ArgumentError: the mode is unknown.

    See also:
        `convolve`.

    >>> tr.correlate(tr.asarray([1, 2, 3]), tr.asarray([0, 1]))
    Tensor([2, 3])
    """
    x, v = _vectors("correlate", x, v, mode)
    if x.__class__ is v.__class__ is state.tensor and x.spec.place.on_host:
        return own(np.correlate(x._concrete(), v._concrete(), mode), x.spec.place)  # type: ignore[call-overload]
    v = catalog.conj(v) if v.spec.cplx else v
    shorter = not ask(v.spec.shape[0], "<=", x.spec.shape[0])
    if shorter and mode == "same":  # for an even number of results, the middle is off by one in reverse
        return flip(_convolved(flip(x), v, mode), axis=0)
    return _convolved(x, flip(v), mode)


def _vectors(name: str, x: Any, v: Any, mode: str) -> list[Any]:
    if mode not in ("full", "same", "valid"):
        raise ArgumentError(f"{name} takes mode 'full', 'same' or 'valid', got {mode!r}", mode=mode)
    values = [listed(x), listed(v)]
    for i, each in enumerate(values):
        if each.spec.ndim == 0:
            each = values[i] = catalog.reshape(each, shape=(1,))
        if each.spec.ndim != 1 or ask(each.spec.shape[0], "==", 0):
            raise ShapeError(
                f"{name} takes vectors of at least one element, but operand {i} is {each.spec!r}; use vmap for stacks",
                shape=each.spec.shape,
            )
    return alike(*values)


def _convolved(x: Any, v: Any, mode: str) -> Any:
    if ask(x.spec.shape[0], "<", v.spec.shape[0]):
        x, v = v, x
    if x.__class__ is v.__class__ is state.tensor and x.spec.place.on_host:
        return own(np.convolve(x._concrete(), v._concrete(), mode), x.spec.place)  # type: ignore[call-overload]
    if x.spec.dtype is bool_:
        counts = _full(catalog.convert(x, dtype=np.dtype("float64")), catalog.convert(v, dtype=np.dtype("float64")))
        return _part(catalog.gt(counts, 0.5), x, v, mode)
    return _part(_full(x, v), x, v, mode)


def _part(full: Any, x: Any, v: Any, mode: str) -> Any:
    n, k = x.spec.shape[0], v.spec.shape[0]
    if mode == "same":
        return span(full, 0, floordiv(k - 1, 2), floordiv(k - 1, 2) + n)
    return span(full, 0, k - 1, n) if mode == "valid" else full


def _full(x: Any, v: Any) -> Any:
    """All ``n + k - 1`` results, for ``n >= k``."""
    n, k = x.spec.shape[0], v.spec.shape[0]
    b = min(k, max(16, isqrt(n))) if isinstance(n, int) and isinstance(k, int) else _symbolic_block(k)
    blocks, bands = floordiv(n + b - 1, b), floordiv(k + b - 1, b)
    rows = catalog.reshape(_padded(x, blocks * b), shape=(blocks, b))
    taps = catalog.reshape(_padded(v, bands * b), shape=(bands, b))
    # Row j of a band holds the taps shifted by j: a row longer by one than the stride shifts each row by one.
    wide = catalog.broadcast_in_dim(_padded(taps, 2 * b), shape=(bands, b, 2 * b), dims=(0, 2))
    banded = _leaning(catalog.transpose(wide, permutation=(1, 0, 2)))  # [j, band, offset]
    shares = catalog.dot_general(rows, banded, contract=((1,), (0,)), batch=((), ()))  # [block, band, offset]
    shares = _padded(shares, 2 * b)
    low, high = _gathered(span(shares, 2, 0, b)), _gathered(span(shares, 2, b, 2 * b))
    none = (0, 0)
    low = catalog.pad(low, 0, low=none, high=(1, 0), interior=none)
    high = catalog.pad(high, 0, low=(1, 0), high=none, interior=none)
    total = catalog.add(low, high)
    return span(catalog.reshape(total, shape=((blocks + bands) * b,)), 0, 0, n + k - 1)


def _symbolic_block(k: DimLike) -> int:
    return (
        1
        if isinstance(k, Dim) and likely(k, "==", 1)
        else SYMBOLIC_BLOCK_SIZE
        if isinstance(k, Dim)
        else min(k, SYMBOLIC_BLOCK_SIZE)
    )


def _padded(x: Any, extent: DimLike) -> Any:
    """Pad the last axis with zeros up to an extent."""
    none = (0,) * (x.spec.ndim - 1)
    return catalog.pad(x, 0, low=(*none, 0), high=(*none, extent - x.spec.shape[-1]), interior=(*none, 0))


def _leaning(x: Any) -> Any:
    """Shift row j of an array (j, c, m) by j along the last axis, whose second half is zeros; returns (j, c, m - 1)."""
    rows, others, m = x.spec.shape
    flat = catalog.reshape(catalog.transpose(x, permutation=(1, 0, 2)), shape=(others, rows * m))
    return catalog.transpose(
        catalog.reshape(span(flat, 1, 0, rows * (m - 1)), shape=(others, rows, m - 1)), permutation=(1, 0, 2)
    )


def _gathered(shares: Any) -> Any:
    """Sum the entries with equal block + band: maps (block, band, offset) to (block + band, offset)."""
    blocks, bands, b = shares.spec.shape
    if bands == 1:
        return catalog.reshape(shares, shape=(blocks, b))
    turned = catalog.transpose(shares, permutation=(1, 0, 2))
    none = (0, 0, 0)
    wide = catalog.pad(turned, 0, low=none, high=(0, bands, 0), interior=none)
    flat = catalog.reshape(wide, shape=(bands * (blocks + bands), b))
    rows = span(flat, 0, 0, bands * (blocks + bands - 1))
    return catalog.reduce_sum(catalog.reshape(rows, shape=(bands, blocks + bands - 1, b)), axes=(0,))
