"""The CPU as a device: LLVM or NumPy for kernels, memory from the pool or from NumPy.

Eager kernels and fused regions obtain their machine code through `llvm`, whose parts the public device shares.
"""

from abc import abstractmethod
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any, Final

import numpy as np

from tenferro_cpu.native.kernels._driver import Axis, drive
from tenferro_cpu.native.kernels._fixed import fixed_row
from tenferro_cpu.native.kernels._forms import Short, access_of
from tenferro_cpu.native.kernels._identity import identity
from tenferro_cpu.native.kernels._render import entry_name, render_row, row_spec, supported
from tenferro_cpu.native.kernels._render_reduce import render_reduction
from tenferro_cpu.native.kernels._render_short import render_short
from tenferro_cpu.native.machine._host import Host
from tenferro_cpu.native.machine._jit import Engine, available, engine
from tenferro_cpu.native.memory._pool import memory
from tenferro_tensor import Op, Primitive, Spec, host_kernel
from tenferro_tensor.device_model import (
    Access,
    CompiledSpec,
    CompileError,
    Compiler,
    Device,
    KernelIR,
    Over,
    Program,
    ProgramSpec,
    Renderer,
    Toolchain,
)
from tenferro_tensor_core import ArgumentError, ShapeError, UnsupportedError


class CpuRenderer(Renderer):
    """LLVM text with explicit vectors for one host.

    Args:
        host: the processor.
        stream: whether to write results past the caches.
        short: whether to reduce short rows, many at once.
    """

    device = "cpu"

    def __init__(self, host: Host, stream: bool = False, short: Short | None = None) -> None:
        self.host, self.stream, self.short = host, stream, short

    def supports(self, primitive: Primitive, *dtypes: Any) -> bool:
        """See `Renderer.supports`."""
        return supported(primitive, tuple(map(np.dtype, dtypes)), self.host)

    def render(self, kernel: KernelIR, name: str) -> ProgramSpec:
        """See `Renderer.render`; the variable is the length of a row, followed for combined rows by their number.

        The text is written when it is first read, which takes longer than loading its machine code.
        """
        name = entry_name(name)
        known = identity(kernel, self.stream, self.short)
        return row_spec(kernel, name, lambda: self._text(kernel, name), known)

    def _text(self, kernel: KernelIR, name: str) -> str:
        if self.short is not None:
            return render_short(kernel, name, self.host, self.short)
        if kernel.reduction is not None:
            return render_reduction(kernel, name, self.host)
        return render_row(kernel, name, self.host, self.stream)


class CpuCompiler(Compiler):
    """Machine code of the engine, or compiled ahead of time; the code of a compiled spec is its address.

    Args:
        engine: compiles and loads.
        fixed: whether code compiled ahead of time may be used.
    """

    def __init__(self, engine: Engine, fixed: bool = True) -> None:
        self.engine, self.fixed = engine, fixed

    def _fixed(self, spec: ProgramSpec) -> int:
        return fixed_row(spec.kernel, self.engine.host) if self.fixed and spec.kernel is not None else 0

    def compile(self, spec: ProgramSpec) -> CompiledSpec:
        """See `Compiler.compile`."""
        fixed = self._fixed(spec)
        if fixed:
            return CompiledSpec(spec, fixed, f"fixed {self.engine.host.level} {spec.identity}")
        if isinstance(spec.text, str):
            address = self.engine.function(spec.text, spec.entry)
        else:
            address = self.engine.rendered(spec.identity, spec.entry, spec.text)
        return CompiledSpec(spec, address, self.engine.key(spec.identity, (spec.entry,)))

    def at_hand(self, spec: ProgramSpec) -> bool:
        """See `Compiler.at_hand`."""
        return bool(self._fixed(spec)) or self.engine.at_hand(spec.identity, spec.entry)


class HostProgram(Program):
    """A kernel on NumPy arrays that broadcast to `n` elements, or to `m` rows of `n` elements.

    The last strides must be those that the kernel was rendered for; results have `n` elements, or one per reduced row.
    """

    def __init__(self, compiled: CompiledSpec) -> None:
        self.compiled = compiled

    def execute(self, buffers: Sequence[Any], values: Sequence[int]) -> None:
        """Check that the buffers cover exactly the range that the kernel accesses, then run."""
        spec = self.compiled.spec
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
            self.run(buffers, Axis(n, tuple(inner)), Axis(m, tuple(rows)))

    @abstractmethod
    def run(self, buffers: Sequence[Any], row: Axis, rows: Axis) -> None:
        """Run on checked arrays, with their strides along a row and from row to row."""


class CpuProgram(HostProgram):
    """Machine code."""

    def run(self, buffers: Sequence[Any], row: Axis, rows: Axis) -> None:
        """See `HostProgram.run`."""
        assert isinstance(self.compiled.code, int)
        drive(self.compiled.code, [x.ctypes.data for x in buffers], row, [], rows)


OVERLAP_WORK: Final = 1000
"""Maximum effort of the search for shared memory; undecided cases are refused."""


def _require_apart(spec: ProgramSpec, buffers: Sequence[Any], steps: Sequence[int]) -> None:
    """Refuse buffers that share memory with one that is written.

    An operand may be overwritten in place if it has the layout of the result: each element is read before it is
    written.
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


class NumpyRenderer(Renderer):
    """Renders a kernel as its own description, for `NumpyCompiler`."""

    device = "cpu"

    def supports(self, primitive: Primitive, *dtypes: Any) -> bool:
        """See `Renderer.supports`: every element-wise primitive has a reference kernel."""
        return primitive.elementwise

    def render(self, kernel: KernelIR, name: str) -> ProgramSpec:
        """See `Renderer.render`; the variables are those of `CpuRenderer`."""
        return row_spec(kernel, entry_name(name), str(kernel))


class NumpyCompiler(Compiler):
    """Checks that there is a description to run; compiles nothing."""

    def compile(self, spec: ProgramSpec) -> CompiledSpec:
        """See `Compiler.compile`."""
        if spec.kernel is None:
            raise CompileError(f"{spec.entry} was written by hand, and NumPy runs kernels that were rendered")
        return CompiledSpec(spec, spec.source, f"numpy {np.__version__} {spec.identity}")


class NumpyProgram(HostProgram):
    """Runs a kernel op by op with the reference kernels, for tests and without llvmlite."""

    def run(self, buffers: Sequence[Any], row: Axis, rows: Axis) -> None:
        """See `HostProgram.run`."""
        kernel, space = self.compiled.spec.kernel, (rows.extent, row.extent)
        assert kernel is not None
        inputs = [np.broadcast_to(x, space) for x in buffers[: len(kernel.inputs)]]
        with np.errstate(all="ignore"):
            values = kernel.interpret(_reference, *inputs)
            results = [np.array(np.broadcast_to(y, space)) for y in values]  # copies, for some may be inputs
            if kernel.reduction is not None:
                axis = 0 if kernel.reduction.over is Over.LEADING else 1
                results = [_REDUCED[kernel.reduction.kind](y, axis) for y in results]
        for x, y in zip(buffers[len(kernel.inputs) :], results):
            x[...] = y.reshape(x.shape)


def _reference(op: Op, ins: tuple[Spec, ...], out: Spec) -> Callable[..., Any]:
    run = host_kernel(op, ins, (out,))
    if run is None:
        raise UnsupportedError(f"{op!r} has no kernel in main memory", primitive=op.primitive.name)
    return run


_REDUCED: Final[dict[str, Any]] = {
    "sum": lambda y, axis: np.add.reduce(y, axis, y.dtype),
    "prod": lambda y, axis: np.multiply.reduce(y, axis, y.dtype),
    "max": np.maximum.reduce,
    "min": np.minimum.reduce,
    "argmax": np.argmax,
    "argmin": np.argmin,
}


def llvm(engine: Engine, stream: bool = False, short: Short | None = None) -> Toolchain:
    """The toolchain from kernels to machine code of an engine.

    Args:
        engine: compiles and loads.
        stream: whether to write results past the caches.
        short: whether to reduce short rows, many at once.
    """
    renderer = CpuRenderer(engine.host, stream, short)
    return Toolchain(renderer, CpuCompiler(engine, not stream and short is None), CpuProgram)


def _numpy() -> Toolchain:
    return Toolchain(NumpyRenderer(), NumpyCompiler(), NumpyProgram)


@cache
def device() -> Device:
    """The CPU as a device: its memory, and its toolchains ``"llvm"`` and ``"numpy"``.

    The default is ``"llvm"`` where native kernels are available; its kernels are those of eager calls and fused
    regions. ``"numpy"`` runs a kernel op by op.

    Returns:
        The device.

    >>> from tenferro_tensor.catalog import mul
    >>> from tenferro_tensor.device_model import Apply, Operand, Reduction
    >>> f8 = Operand(np.dtype("float64"))
    >>> dot = KernelIR((f8, f8), (Apply(mul.op(), (0, 1)),), (2,), reduction=Reduction("sum"))
    >>> x, total = np.arange(4.0), np.zeros(1)
    >>> device().build(dot, "dot", using="numpy")([x, x, total], [4])
    >>> total
    array([14.])
    """
    ways = {"llvm": lambda: llvm(engine()), "numpy": _numpy}
    return Device("cpu", memory(), ways if available() else dict(reversed(ways.items())))
