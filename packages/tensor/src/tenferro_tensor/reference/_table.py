"""What a table of kernels is, and the makers of kernels that need no specialisation."""

from collections.abc import Callable
from typing import Any, TypeAlias

from tenferro_tensor._primitive import Primitive
from tenferro_tensor._registry import KernelMaker
from tenferro_tensor._spec import Spec

Kernel: TypeAlias = Callable[..., Any]
Table: TypeAlias = dict[Primitive, KernelMaker]
Special: TypeAlias = Callable[[], Any]
"""Loads the module of special functions on first call."""


Ints: TypeAlias = tuple[int, ...]


def extents(spec: Spec) -> Ints:
    """The shape of a concrete spec; kernels are never made for symbolic ones."""
    return spec.shape  # type: ignore[return-value]


def unchanged(x: Any) -> Any:
    """The kernel of an operation that has nothing to do."""
    return x


def always(kernel: Kernel) -> KernelMaker:
    """The maker of one kernel for every shape, dtype and metadata."""
    return lambda ins, outs, **params: kernel


def scalar_or(on_arrays: Kernel, on_scalars: Kernel) -> KernelMaker:
    """The maker of `on_arrays`, or of the operator `on_scalars` where no operand has axes.

    Python's operators on NumPy scalars are eight times as fast as ufuncs. They warn where integers wrap, which
    ufuncs do not: integers keep to the ufunc.
    """

    def make(ins: tuple[Spec, ...], outs: tuple[Spec, ...]) -> Kernel:
        return on_scalars if not outs[0].shape and ins[0].inexact else on_arrays

    return make
