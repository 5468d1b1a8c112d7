"""The host code of a function: launches of kernels, calls of libraries, and loops and branches around them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from tenferro_gpu.rendering import NestKernel
from tenferro_tensor.loop_ir import Buffer, Call, Reg, Value
from tenferro_tensor_core import DimLike


@dataclass(frozen=True, slots=True)
class KernelLaunch:
    """One launch.

    Attributes:
        kernel: index of the kernel.
        rows: extents of the loops whose iterations its work items or groups share.
        parts: extents of the loop that is split into parts; empty if none is.
    """

    kernel: int
    rows: tuple[DimLike, ...]
    parts: tuple[DimLike, ...]


@dataclass(frozen=True, slots=True)
class HostLoop:
    """A counted loop that the host runs."""

    index: Reg
    extent: DimLike
    body: tuple[HostStep, ...]
    swaps: tuple[tuple[Buffer, Buffer], ...]


@dataclass(frozen=True, slots=True)
class HostWhile:
    """A loop with a condition that the host runs, which reads the condition back."""

    test: tuple[HostStep, ...]
    condition: Value
    index: Reg
    body: tuple[HostStep, ...]
    most: DimLike | None
    swaps: tuple[tuple[Buffer, Buffer], ...]


@dataclass(frozen=True, slots=True)
class HostSwitch:
    """A branch that the host takes, which reads the index back."""

    index: Value
    cases: tuple[tuple[HostStep, ...], ...]


HostStep: TypeAlias = KernelLaunch | HostLoop | HostWhile | HostSwitch | Call
"""What a host program consists of."""


@dataclass(frozen=True, slots=True)
class LaunchSequence:
    """A function as kernels and host code around them.

    Attributes:
        steps: the steps, in order.
        places: offsets of numbers that outlive a kernel, by register.
        counters: registers that the host knows.
        kernels: all kernels.
    """

    steps: tuple[HostStep, ...]
    places: dict[int, int]
    counters: frozenset[int]
    kernels: tuple[NestKernel, ...]
