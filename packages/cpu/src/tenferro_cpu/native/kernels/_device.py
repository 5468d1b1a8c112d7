"""The CPU as a device: renderer, compiler and programs over LLVM, memory from the pool."""

from collections.abc import Sequence
from functools import cache
from typing import Any, Final

import numpy as np

from tenferro_cpu.native.kernels._driver import Axis, drive
from tenferro_cpu.native.kernels._elementwise import access_of
from tenferro_cpu.native.kernels._render import entry_name, render_row, row_spec, supported
from tenferro_cpu.native.kernels._render_reduce import render_reduction
from tenferro_cpu.native.machine._jit import Engine, engine
from tenferro_cpu.native.memory._pool import MemoryPool, pool
from tenferro_tensor import Primitive
from tenferro_tensor.device_model import (
    Access,
    Allocator,
    CompiledSpec,
    Compiler,
    Device,
    KernelIR,
    Program,
    ProgramSpec,
    Renderer,
)
from tenferro_tensor_core import ArgumentError, ShapeError


class CpuRenderer(Renderer):
    """LLVM text with explicit vectors for one host."""

    def __init__(self, engine: Engine) -> None:
        self.host = engine.host

    def supports(self, primitive: Primitive, *dtypes: Any) -> bool:
        """As the contract says."""
        return supported(primitive, tuple(map(np.dtype, dtypes)), self.host)

    def render(self, kernel: KernelIR, name: str) -> ProgramSpec:
        """One variable, the length of a row; a reduction over rows has a second, their number."""
        name = entry_name(name)
        if kernel.reduction is None:
            return row_spec(kernel, name, render_row(kernel, name, self.host))
        return row_spec(kernel, name, render_reduction(kernel, name, self.host))


class CpuCompiler(Compiler):
    """Machine code of the engine; the code of a compiled spec is its address."""

    def __init__(self, engine: Engine) -> None:
        self.engine = engine

    def compile(self, spec: ProgramSpec) -> CompiledSpec:
        """As the contract says."""
        address = self.engine.function(spec.source, spec.entry)
        return CompiledSpec(spec, address, self.engine.key(spec.source, (spec.entry,)))


class CpuProgram(Program):
    """A kernel on NumPy arrays, which broadcast to `n` elements, or to `m` rows of `n` elements.

    The last strides must be those that the kernel was rendered for; results have `n` elements, or one for a row that
    is reduced.
    """

    def __init__(self, compiled: CompiledSpec) -> None:
        self.compiled = compiled

    def execute(self, buffers: Sequence[Any], values: Sequence[int]) -> None:
        """Refuse what does not reach exactly as far as the kernel would go, then run."""
        spec, address = self.compiled.spec, self.compiled.code
        assert isinstance(address, int)
        n, m = values[0], values[1] if len(values) > 1 else 1
        inner, rows = [], []
        for number, (x, operand) in enumerate(zip(buffers, spec.operands)):
            what = f"buffer {number} of {spec.entry}"
            written = number in spec.writes
            if not isinstance(x, np.ndarray) or x.dtype != operand.dtype or not x.flags.aligned:
                raise ArgumentError(
                    f"{what} is an aligned array of {operand.dtype}, got {getattr(x, 'dtype', type(x))}"
                )
            if written and not x.flags.writeable:
                raise ArgumentError(f"{what} is written to, and cannot be; pass a writable array")
            space = (1, 1 if operand.access is Access.FIXED else n) if written else (m, n)
            try:
                row, step = np.broadcast_to(x, space).strides
            except ValueError as cause:
                raise ShapeError(f"{what} of shape {x.shape} does not broadcast to {space}", buffer=number) from cause
            step = step if space[1] > 1 else x.itemsize if operand.access is Access.UNIT else 0
            if operand.access not in (Access.STRIDED, access_of(step, x.itemsize)):
                raise ShapeError(
                    f"{what} has strides {x.strides} over {n} elements, but the kernel was rendered for "
                    f"{operand.access.value} access; render it for these strides",
                    buffer=number,
                )
            inner.append(step)
            rows.append(row if m > 1 else 0)
        _require_apart(spec, buffers, inner)
        if n:
            pointers = [x.ctypes.data for x in buffers]
            drive(address, pointers, Axis(n, tuple(inner)), [], Axis(m, tuple(rows)))


OVERLAP_WORK: Final = 1000
"""Effort that the search for shared memory may take; what it does not decide is refused."""


def _require_apart(spec: ProgramSpec, buffers: Sequence[Any], steps: Sequence[int]) -> None:
    """Refuse buffers that share memory with one that is written.

    An operand may be written over where it lies exactly as the result does: element by element it is read first.
    """
    for written in spec.writes:
        y, by_element = buffers[written], spec.operands[written].access is not Access.FIXED
        for number, x in enumerate(buffers):
            if number == written:
                continue
            same = x.ctypes.data == y.ctypes.data and steps[number] == steps[written] and x.dtype == y.dtype
            in_place = by_element and len(spec.variables) == 1 and number not in spec.writes and same
            if not in_place and _share(x, y):
                raise ArgumentError(
                    f"buffer {number} of {spec.entry} shares memory with buffer {written}, which is written; "
                    "copy one of them, or let both be the same elements in the same order"
                )


def _share(x: np.ndarray[Any, Any], y: np.ndarray[Any, Any]) -> bool:
    try:
        return np.shares_memory(x, y, max_work=OVERLAP_WORK)  # type: ignore[arg-type]  # the stub knows 0 and -1 only
    except np.exceptions.TooHardError:
        return True


@cache
def device() -> Device:
    """The CPU as a device.

    Raises:
        BackendUnavailableError: native kernels cannot be had.
    """
    made = engine()
    memory: Allocator = pool() or MemoryPool(0)
    return Device("cpu", memory, CpuRenderer(made), CpuCompiler(made), CpuProgram)
