"""When two results agree: one structure, one dtype and shape, equal or near elements."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from fuzzing.area import Mismatch

Array = np.ndarray[Any, Any]
RTOL = {"float32": 4e-6, "complex64": 8e-6, "float64": 4e-14, "complex128": 8e-14}


def leaves(value: Any) -> list[Any]:
    """All arrays in tuples and lists."""
    if isinstance(value, (tuple, list)):
        return [x for part in value for x in leaves(part)]
    return [value]


def raw(value: Any) -> Array:
    """The elements of a value of the library, recorded or not."""
    while value.level:
        value = value.detach()
    return np.asarray(value.numpy())


def bitwise(got: Any, want: Any, what: str) -> None:
    """Equal bits in all elements, but for the sign and payload of NaNs."""
    for g, w in zip(_pairs(got, want, what), leaves(want)):
        x, y = raw(g), raw(w)
        _same_kind(x, y, what)
        if x.tobytes() != y.tobytes() and not _equal_bits(x, y):
            raise Mismatch(f"{what}: bits differ at {_first(~_equal(x, y), x, y)}")


def near(got: Any, want: Any, what: str, rtol: float = 1.0, scale: Sequence[Any] | None = None) -> None:
    """Results of the library and of NumPy agree up to rounding.

    Args:
        got: values of the library.
        want: arrays of NumPy in the same structure.
        what: for the text.
        rtol: multiple of the usual tolerance of the dtype.
        scale: for each array of `want`, what the tolerance is relative to; by default its elements.
    """
    for k, (g, w) in enumerate(zip(_pairs(got, want, what), leaves(want))):
        w = np.asarray(w)
        if g.shape != w.shape or g.dtype != w.dtype:
            raise Mismatch(f"{what}: expected {w.dtype}{list(w.shape)}, seen {g.dtype}{list(g.shape)}")
        x = raw(g)
        _same_kind(x, w, f"{what}: the data of the result")
        good = _equal(x, w)
        if good.all():
            continue
        if w.dtype.kind in "fc":
            good |= _close(x, w, rtol * RTOL[w.dtype.name], None if scale is None else np.asarray(scale[k]))
        if not good.all():
            raise Mismatch(f"{what}: {_first(~good, x, w)}")


def _pairs(got: Any, want: Any, what: str) -> list[Any]:
    a, b = leaves(got), leaves(want)
    if len(a) != len(b):
        raise Mismatch(f"{what}: expected {len(b)} arrays, seen {len(a)}")
    return a


def _same_kind(x: Array, y: Array, what: str) -> None:
    if x.dtype != y.dtype or x.shape != y.shape:
        raise Mismatch(f"{what}: expected {y.dtype}{list(y.shape)}, seen {x.dtype}{list(x.shape)}")


def _equal(x: Array, y: Array) -> Any:
    """Equal, or both NaN; a complex number is NaN if either part is."""
    return np.asarray((x == y) | ((x != x) & (y != y)))


def _equal_bits(x: Array, y: Array) -> bool:
    parts = [(x, y)] if x.dtype.kind != "c" else [(x.real, y.real), (x.imag, y.imag)]
    for a, b in parts:
        both = (a != a) & (b != b)
        if not np.all(both | ((a == b) & (np.signbit(a) == np.signbit(b)) if a.dtype.kind == "f" else a == b)):
            return False
    return True


def _close(x: Array, y: Array, rtol: float, scale: Array | None) -> Any:
    with np.errstate(all="ignore"):
        reference = np.abs(y) if scale is None else np.maximum(np.abs(y), scale)
        least = np.finfo(y.dtype).tiny  # subnormal results have fewer digits
        return np.isfinite(x) & np.isfinite(y) & (np.abs(x - y) <= rtol * np.maximum(reference, least))


def _first(bad: Any, x: Array, y: Array) -> str:
    at = tuple(map(int, np.argwhere(bad)[0])) if bad.any() else ()
    return f"{int(bad.sum())} of {bad.size} elements, first at {at}: expected {y[at]!r}, seen {x[at]!r}"
