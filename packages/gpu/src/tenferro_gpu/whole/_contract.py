"""`KernelTarget`: the operations that a sequence of kernels requires of the devices of a kind."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol, TypeVar

import numpy as np

from tenferro_tensor import Op, Spec

R = TypeVar("R")

Functions = Sequence[Callable[[tuple[int], tuple[int], tuple[Any, ...]], Any]]


class KernelTarget(Protocol):
    """The device operations that a sequence uses.

    Methods take:
        source, entries: source text, and the names of its kernels.
        run, raws: a function, and its arrays.
        raw, flat: an array; a one-dimensional array.
        array: a host array.
        at, shape, strides: first element, extents, and strides in elements.
        shape, dtype: shape and dtype of an array.
        op, ins, outs: an op, and the specs of its operands and results.
        device: number of the device.

    Methods return:
        As their summary says.
    """

    def functions(self, source: str, entries: Sequence[str]) -> Callable[[int], Functions]:
        """Compile kernels; returns a function from a (current) device's number to its loaded kernels."""

    def start(self, run: Callable[[int, Sequence[Any]], R], raws: Sequence[Any]) -> R:
        """Call a function with the device number of the arrays, and the arrays, with that device current."""

    def empty(self, shape: tuple[int, ...], dtype: np.dtype[Any]) -> Any:
        """Allocate an array on the current device."""

    def lying(self, raw: Any) -> Any:
        """A contiguous, row-major array: the array itself, or a copy on the current device."""

    def address(self, raw: Any) -> int:
        """Address of an array."""

    def viewed(self, flat: Any, at: int, shape: tuple[int, ...], strides: tuple[int, ...]) -> Any:
        """A strided view of a one-dimensional array."""

    def kernel(self, op: Op, ins: tuple[Spec, ...], outs: tuple[Spec, ...], device: int) -> Callable[..., Any]:
        """The kernel of an op on arrays of a device."""

    def require_kernel(self, op: Op) -> None:
        """Check that an op has a kernel on devices of the kind.

        Raises:
            UnsupportedError: it has none.
        """

    def stream(self) -> int:
        """A number of the current stream."""

    def recorded(self, run: Callable[[], None]) -> Callable[[], None]:
        """Record the launches of a function, which does nothing else, instead of enqueuing them; returns a function
        that enqueues all of them on the current stream.
        """

    def uploaded(self, array: np.ndarray[Any, Any], device: int) -> Any:
        """Copy an array to a device."""

    def downloaded(self, raw: Any, device: int) -> np.ndarray[Any, Any]:
        """Copy an array to main memory, after all earlier work."""
