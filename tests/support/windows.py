"""Every way in which code outside the library can access the memory of a value."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from tenferro_tensor import Tensor


class Old:
    """A consumer's view of a producer of DLPack as it was before version 1.0."""

    def __init__(self, x: Any, **options: Any) -> None:
        self.x, self.options = x, options

    def __dlpack__(self, **_: Any) -> Any:
        return self.x.__dlpack__(**self.options)

    def __dlpack_device__(self) -> tuple[int, int]:
        return self.x.__dlpack_device__()


EXPORTS: dict[str, Callable[[Tensor], Any]] = {
    "asarray": np.asarray,
    "asanyarray": np.asanyarray,
    "array": np.array,
    "array without a copy": lambda t: np.array(t, copy=None),
    "array of its dtype": lambda t: np.asarray(t, dtype=t.dtype),
    "array of another dtype": lambda t: np.asarray(t, dtype=np.complex128),
    "ascontiguousarray": np.ascontiguousarray,
    "__array__": lambda t: t.__array__(),
    "__array__ with a copy": lambda t: t.__array__(copy=True),
    "numpy": lambda t: t.numpy(),
    "data": lambda t: t.data,
    "data of a copy": lambda t: copy.copy(t).data,
    "DLPack": np.from_dlpack,
    "DLPack without a copy": lambda t: np.from_dlpack(t, copy=False),
    "DLPack with a copy": lambda t: np.from_dlpack(t, copy=True),
    "old DLPack": lambda t: np.from_dlpack(Old(t)),
    "old DLPack without a copy": lambda t: np.from_dlpack(Old(t, copy=False)),
    "memoryview": lambda t: np.asarray(memoryview(np.asarray(t))),  # type: ignore[arg-type]
    "the buffer itself": lambda t: np.asarray(memoryview(t)),
    "pickle": lambda t: t.__reduce__()[1][0],
    "transposed": lambda t: np.asarray(t.transpose()),
    "view of an export": lambda t: np.asarray(t)[...].T.view(np.ndarray),
    "export of a view": lambda t: (t[..., None]).numpy(),
    "real": lambda t: t.real.data,
    "imaginary": lambda t: t.imag.data,
    "reshaped": lambda t: t.reshape(-1).numpy(),
    "strided": lambda t: np.lib.stride_tricks.as_strided(np.asarray(t), (max(t.size, 1) and t.size,)),
    "items": lambda t: np.stack([np.asarray(x) for x in t]) if t.ndim and len(t) else np.asarray(t),
    "recarray": lambda t: np.asarray(t).view(np.recarray),
}  # fmt: skip


def windows(t: Tensor) -> Iterator[tuple[str, np.ndarray[Any, Any]]]:
    """Arrays that somebody outside gets of a value, and what these are views of."""
    for name, export in EXPORTS.items():
        try:
            array = export(t)
        except (BufferError, TypeError, ValueError):  # refused: there is no window
            continue
        depth = 0
        while isinstance(array, np.ndarray):
            yield f"{name}{', base' * depth}", array
            array, depth = array.base, depth + 1


def break_in(t: Tensor) -> list[str]:
    """Write to a value through every window; the names of those that let it happen."""
    before, broken = t._data.tobytes(), []
    for name, array in windows(t):
        if array.size == 0:
            continue
        try:
            if not array.flags.writeable and ", base" not in name:
                array.flags.writeable = True
        except ValueError:
            pass
        try:
            array[...] = 77 if array.dtype != bool else ~array
        except ValueError:
            continue
        if t._data.tobytes() != before:
            broken.append(name)
            before = t._data.tobytes()
    return broken
