"""Host data in and out: NumPy arrays, the buffer protocol, DLPack, and explicit memory order.

`copy` means the same everywhere: None copies only where sharing is impossible, True always copies,
False never does. Views keep their strides, read-only data stays read-only.
"""

import sys
from collections.abc import Sequence
from typing import Any, Final, TypeAlias

import numpy as np

from ._dtypes import dtype
from ._errors import DTypeError, HostAdapterError, LayoutError, MissingDTypeError, ShapeError
from ._layout import Layout

HostArray: TypeAlias = np.ndarray[Any, np.dtype[Any]]
"""A NumPy array."""

_DLPACK_HOSTS: Final = {1, 3, 11}  # pageable memory, and memory pinned for CUDA or ROCm
_DLPACK_DEVICES: Final = {2: "cuda", 4: "opencl", 7: "vulkan", 8: "metal", 10: "rocm", 13: "cuda managed"}


def from_numpy(a: HostArray, *, copy: bool | None = None) -> HostArray:
    """Return a NumPy array as a base-class array of a supported dtype, sharing memory where possible.

    Data in foreign byte order, unaligned data, and fields of structured arrays whose strides are not
    multiples of the element size need a copy.

    Args:
        a: an array of any shape, or a NumPy scalar.
        copy: None copies only where sharing is impossible, True always, False never.

    Returns:
        An array of the same shape and values, in native byte order.

    Raises:
        DTypeError: the dtype is not supported.
        HostAdapterError: `a` is not a NumPy array, is masked, or needs a copy that `copy=False` forbids.

    >>> a = np.arange(6.0)[::-2]
    >>> np.shares_memory(from_numpy(a), a), from_numpy(np.array([1], ">i4")).dtype
    (True, dtype('int32'))
    """
    if isinstance(a, np.generic):
        # Scalars are immutable: sharing and copying cannot be distinguished, whatever `copy` says.
        a = np.asarray(a)
    if not isinstance(a, np.ndarray):
        raise HostAdapterError(
            f"from_numpy takes a NumPy array, got {_kind(a)}; use to_numpy, from_buffer or from_dlpack",
            given=type(a),
        )
    if a.__class__ is not np.ndarray and _is_masked(a):
        raise HostAdapterError(
            "from_numpy cannot carry the mask of a masked array; fill it with a.filled(value) first",
            given=type(a),
        )
    native = dtype(a.dtype if a.dtype.isnative else a.dtype.newbyteorder("="))
    reason = _why_copy(a)
    if reason and copy is False:
        raise HostAdapterError(
            f"from_numpy cannot share an array {reason}, and copy=False forbids a copy; pass copy=None",
            dtype=a.dtype,
            strides=a.strides,
        )
    if copy or reason:
        return np.array(a, dtype=native, order="K", copy=True, subok=False)
    # On some platforms two C types have one format: the view has the canonical dtype.
    return np.asarray(a) if a.dtype is native else np.asarray(a).view(native)


def _is_masked(a: HostArray) -> bool:
    # NumPy imports numpy.ma on first use, because that is slow: before, no masked array exists.
    module = sys.modules.get("numpy.ma")
    return module is not None and isinstance(a, module.MaskedArray)


def _why_copy(a: HostArray) -> str:
    if not a.dtype.isnative:
        return f"in foreign byte order ({a.dtype.str!r})"
    if not a.flags.aligned:
        return "at an address that is not aligned to its element type"
    if a.flags.c_contiguous:
        return ""  # fast path for most arrays
    try:
        Layout.of(a)
    except LayoutError:
        return f"whose byte strides {a.strides} are not multiples of its element size {a.itemsize}"
    return ""


def from_buffer(obj: Any, *, copy: bool | None = None) -> HostArray:
    """Return the data of an object with the buffer protocol as an array.

    Args:
        obj: an object that exports a buffer.
        copy: None copies only where sharing is impossible, True always, False never.

    Returns:
        An array of the buffer's shape and format.

    Raises:
        DTypeError: the buffer's format is not a supported dtype.
        HostAdapterError: the object exports no buffer, or needs a copy that `copy=False` forbids.

    >>> import array
    >>> from_buffer(array.array("d", [1.0, 2.0])), from_buffer(b"ab")
    (array([1., 2.]), array([97, 98], dtype=uint8))
    """
    try:
        exported = memoryview(obj)
        found = np.asarray(exported)
    except (TypeError, ValueError, BufferError, RuntimeError, NotImplementedError) as error:
        raise HostAdapterError(
            f"from_buffer cannot read {_kind(obj)}: {error}; pass an object with the buffer protocol "
            "and a numeric format",
            given=type(obj),
        ) from error
    return from_numpy(found, copy=copy)


def from_dlpack(x: Any, *, copy: bool | None = None) -> HostArray:
    """Return the data of a DLPack producer in host memory as an array.

    Args:
        x: an object with `__dlpack__` and `__dlpack_device__`.
        copy: None copies only where sharing is impossible, True always, False never.

    Returns:
        An array of the producer's shape and dtype.

    Raises:
        DTypeError: the dtype is not supported.
        HostAdapterError: the producer is on another device, refuses to export, or needs a copy
            that `copy=False` forbids.

    >>> a = np.arange(4.0)[::-1]
    >>> np.shares_memory(from_dlpack(a), a)
    True
    """
    if isinstance(x, np.ndarray):
        # Bypasses DLPack: NumPy 2.0 cannot export read-only arrays.
        return from_numpy(x, copy=copy)
    if not (hasattr(x, "__dlpack__") and hasattr(x, "__dlpack_device__")):
        raise HostAdapterError(
            f"from_dlpack takes an object with __dlpack__ and __dlpack_device__, got {_kind(x)}; "
            "use from_numpy or from_buffer",
            given=type(x),
        )
    # A producer is foreign code: whatever it raises becomes one typed error that quotes it.
    try:
        kind, number = map(int, x.__dlpack_device__())
    except Exception as error:
        raise _refused(x, error) from error
    if kind not in _DLPACK_HOSTS:
        device = f"{_DLPACK_DEVICES.get(kind, f'DLPack device type {kind}')}:{number}"
        raise HostAdapterError(
            f"from_dlpack reads host memory, got {_kind(x)} on {device}; "
            "copy it to the host first, or hand it to the backend of its device",
            device=(kind, number),
        )
    try:
        # NumPy 2.0 has no copy argument: pass it only where it matters.
        found = np.from_dlpack(x) if copy is not False else np.from_dlpack(x, copy=False)
    except Exception as error:
        bits = _bfloat16_of(x)
        if bits is None:
            raise _refused(x, error) from error
        found = bits
    return from_numpy(found, copy=copy)


def _bfloat16_of(x: Any) -> HostArray | None:
    """The data of a producer whose dtype NumPy rejected, if that is bfloat16; else None."""
    from ._dlpack import BitsProducer  # deferred: it loads ctypes

    bits = BitsProducer(x)
    try:
        return bits.read(np.from_dlpack(bits))
    except MissingDTypeError:
        raise
    except Exception:
        return None  # the caller raises the first error


def _refused(x: Any, error: Exception) -> HostAdapterError:
    return HostAdapterError(
        f"from_dlpack cannot read {_kind(x)}: {error}; detach or copy it in its own library first",
        given=type(x),
    )


def to_numpy(x: Any, *, copy: bool | None = None) -> HostArray:
    """Return any host data as a NumPy array of a supported dtype.

    Args:
        x: a NumPy array or scalar, a DLPack producer, a buffer, an object with `__array__`, a Python
            number, or nested sequences of numbers.
        copy: None copies only where sharing is impossible, True always, False never.

    Returns:
        An array of the shape and values of `x`.

    Raises:
        DTypeError: the elements are not of a supported dtype.
        ShapeError: nested sequences are ragged.
        HostAdapterError: the data is on another device, or needs a copy that `copy=False` forbids.

    >>> to_numpy([[1, 2], [3, 4]]).dtype, to_numpy(2.5).shape
    (dtype('int64'), ())
    """
    if isinstance(x, np.ndarray | np.generic):
        return from_numpy(x, copy=copy)  # type: ignore[arg-type]
    if hasattr(x, "__dlpack__"):
        return from_dlpack(x, copy=copy)
    if _exports_buffer(x):
        return from_buffer(x, copy=copy)
    if not (hasattr(x, "__array__") or isinstance(x, bool | int | float | complex | Sequence)):
        raise DTypeError(f"{_kind(x)} holds no numbers; pass numbers, nested lists of them, or an array", given=type(x))
    if hasattr(x, "__array__"):
        # Foreign code, as in from_dlpack.
        try:
            found = np.asarray(x, copy=False if copy is False else None)
        except Exception as error:
            raise HostAdapterError(
                f"to_numpy cannot read {_kind(x)}: {error}; convert it in its own library first", given=type(x)
            ) from error
        return from_numpy(found, copy=copy)
    if copy is False:
        raise HostAdapterError(
            f"to_numpy cannot share the memory of {_kind(x)}, and copy=False forbids a copy; pass copy=None",
            given=type(x),
        )
    try:
        found = np.asarray(x)
    except (ValueError, OverflowError) as error:
        raise ShapeError(
            f"{_kind(x)} does not form an array: {error}; make all rows equally long", given=type(x)
        ) from error
    return from_numpy(found)


def _exports_buffer(x: Any) -> bool:
    try:
        memoryview(x).release()
    except (TypeError, ValueError, BufferError):
        return False
    return True


def row_major(a: HostArray) -> HostArray:
    """Return an array in row-major (C) order: itself if it already is, else a copy.

    Args:
        a: an array of any shape.

    Returns:
        An array of the same shape and dtype whose last axis varies fastest in memory.

    >>> a = np.zeros((2, 3), order="F")
    >>> row_major(a).flags.c_contiguous, row_major(a.T) is a
    (True, False)
    """
    # ascontiguousarray would make a vector of a zero-dimensional array.
    return np.asarray(from_numpy(a), order="C")


def column_major(a: HostArray) -> HostArray:
    """Return an array in column-major (Fortran) order: itself if it already is, else a copy.

    Args:
        a: an array of any shape.

    Returns:
        An array of the same shape and dtype whose first axis varies fastest in memory.

    >>> a = np.zeros((2, 3))
    >>> column_major(a).strides, np.shares_memory(column_major(a.T), a)
    ((8, 16), True)
    """
    return np.asarray(from_numpy(a), order="F")


def _kind(x: Any) -> str:
    return f"an object of type {type(x).__module__}.{type(x).__qualname__}"
