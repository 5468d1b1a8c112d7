"""Kernel tables, and makers of kernels that need no specialisation."""

from collections.abc import Callable
from typing import Any, TypeAlias, TypeVar

from tenferro_tensor._primitive import Primitive
from tenferro_tensor._registry import KernelMaker
from tenferro_tensor._spec import Spec

Kernel: TypeAlias = Callable[..., Any]
Table: TypeAlias = dict[Primitive, KernelMaker]
Special: TypeAlias = Callable[[], Any]
"""Loads the module of special functions on first call."""


Ints: TypeAlias = tuple[int, ...]


def extents(spec: Spec) -> Ints:
    """The shape of a concrete spec."""
    return spec.shape  # type: ignore[return-value]


def unchanged(x: Any) -> Any:
    """The identity kernel, for operations without effect."""
    return x


Maker = TypeVar("Maker", bound=Callable[..., Any])


def any_size(make: Maker) -> Maker:
    """Mark a maker that does not use extents, so its kernels serve all sizes."""
    make.any_size = True  # type: ignore[attr-defined]
    return make


def with_sizes(sizes: Callable[..., tuple[Any, ...] | None]) -> Callable[[Maker], Maker]:
    """Mark a maker whose kernels for symbolic specs take the values that `sizes` returns as trailing arguments."""

    def mark(make: Maker) -> Maker:
        make.sizes = sizes  # type: ignore[attr-defined]
        return make

    return mark


def always(kernel: Kernel) -> KernelMaker:
    """A maker that returns one kernel for all shapes, dtypes and metadata."""

    @any_size
    def make(ins: tuple[Spec, ...], outs: tuple[Spec, ...], **params: Any) -> Kernel:
        return kernel

    return make


def scalar_or(on_arrays: Kernel, on_scalars: Kernel) -> KernelMaker:
    """A maker that returns `on_arrays`, or the operator `on_scalars` if no operand has axes.

    Python's operators on NumPy scalars are eight times as fast as ufuncs. Integers use the ufunc all the same, since
    the operators warn when integers wrap.
    """

    @any_size
    def make(ins: tuple[Spec, ...], outs: tuple[Spec, ...]) -> Kernel:
        return on_scalars if not outs[0].shape and ins[0].inexact else on_arrays

    return make
