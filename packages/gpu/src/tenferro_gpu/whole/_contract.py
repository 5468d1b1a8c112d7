"""`KernelTarget`: what a sequence of kernels asks of the devices of a kind."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol

import numpy as np

from tenferro_tensor import Op, Spec

Functions = Sequence[Callable[[tuple[int], tuple[int], tuple[Any, ...]], Any]]


class KernelTarget(Protocol):
    """The operations that a sequence uses of the devices of a kind."""

    def functions(self, source: str, entries: Sequence[str]) -> Callable[[int], Functions]:
        """Compile kernels; the result gives their functions on a device, by number, which must be current."""

    def start(self, run: Callable[[int, Sequence[Any]], Any], raws: Sequence[Any]) -> Any:
        """Call a function with the number of the device of the arrays, and the arrays, with that device current."""

    def empty(self, shape: tuple[int, ...], dtype: np.dtype[Any]) -> Any:
        """An array on the current device."""

    def lying(self, raw: Any) -> Any:
        """An array without gaps, in row-major order: itself, or a copy on the current device."""

    def address(self, raw: Any) -> int:
        """Where an array is."""

    def viewed(self, flat: Any, at: int, shape: tuple[int, ...], strides: tuple[int, ...]) -> Any:
        """Elements of an array with one axis from a place on, with these distances between neighbours."""

    def kernel(self, op: Op, ins: tuple[Spec, ...], outs: tuple[Spec, ...], device: int) -> Callable[..., Any]:
        """The kernel of an op on arrays of a device."""

    def require_kernel(self, op: Op) -> None:
        """Check that an op has a kernel on devices of the kind.

        Raises:
            UnsupportedError: it has none.
        """

    def uploaded(self, array: np.ndarray[Any, Any], device: int) -> Any:
        """The array on a device."""

    def downloaded(self, raw: Any, device: int) -> np.ndarray[Any, Any]:
        """The array in main memory, when all work before is done."""
