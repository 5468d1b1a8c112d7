"""The CPU as a device: LLVM or NumPy for kernels, memory from the pool or from NumPy."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any, Final

import numpy as np

from tenferro_cpu.native._host import Host
from tenferro_cpu.native.codegen.machine._jit import Engine, available, engine
from tenferro_cpu.native.codegen.operations._ops import supported
from tenferro_cpu.native.codegen.whole import LEVEL, loaded, render, with_outputs
from tenferro_cpu.native.memory._pool import memory
from tenferro_tensor import Op, Primitive, Spec, host_kernel
from tenferro_tensor.device_model import (
    CompiledSpec,
    CompileError,
    Compiler,
    Device,
    Program,
    ProgramSpec,
    Renderer,
    Toolchain,
)
from tenferro_tensor.loop_interpreter import interpret
from tenferro_tensor.loop_ir import LoopFunction, show
from tenferro_tensor_core import ArgumentError, UnsupportedError


class CpuRenderer(Renderer):
    """LLVM text for one host.

    Args:
        host: the processor.
    """

    device = "cpu"

    def __init__(self, host: Host) -> None:
        self.host = host

    def supports(self, primitive: Primitive, *dtypes: Any) -> bool:
        """See `Renderer.supports`."""
        return supported(primitive, tuple(map(np.dtype, dtypes)), self.host)

    def render(self, kernel: LoopFunction, name: str) -> ProgramSpec:
        """See `Renderer.render`.

        The text is written when it is first read, which takes longer than loading its machine code.
        """
        entry, whole = entry_name(name), with_outputs(kernel)
        text = lambda: render(whole, self.host, name=entry).text
        return ProgramSpec.of(kernel, entry, text, identity=show(whole, where=False))


def entry_name(text: str) -> str:
    """An identifier that LLVM accepts unquoted.

    >>> entry_name("a*b+c")
    'a_b_c'
    """
    return re.sub(r"\W", "_", text) or "kernel"


class CpuCompiler(Compiler):
    """Machine code of the engine; the code of a compiled spec is its address.

    Args:
        engine: compiles and loads.
    """

    def __init__(self, engine: Engine) -> None:
        self.engine = engine

    def compile(self, spec: ProgramSpec) -> CompiledSpec:
        """See `Compiler.compile`."""
        if isinstance(spec.text, str):
            address = self.engine.function(spec.text, spec.entry, level=LEVEL)
        else:
            address = self.engine.rendered(spec.identity, spec.entry, spec.text, LEVEL)
        return CompiledSpec(spec, address, self.engine.key(spec.identity, (spec.entry,), LEVEL))

    def at_hand(self, spec: ProgramSpec) -> bool:
        """See `Compiler.at_hand`."""
        return self.engine.at_hand(spec.identity, spec.entry)


class HostProgram(Program):
    """A function on NumPy arrays, which writes its outputs where they are given."""

    def __init__(self, compiled: CompiledSpec) -> None:
        if compiled.spec.kernel is None:
            raise CompileError(f"{compiled.spec.entry} was written by hand; the CPU runs kernels that were rendered")
        self.compiled, self.kernel = compiled, compiled.spec.kernel

    def execute(self, buffers: Sequence[Any], values: Sequence[int]) -> None:
        """Refuse buffers that must not be written, or share memory with one that is, then run."""
        spec = self.compiled.spec
        for number, x in enumerate(buffers):
            what = f"buffer {number} of {spec.entry}"
            if not isinstance(x, np.ndarray) or not x.flags.aligned:
                raise ArgumentError(f"{what} is an aligned array of NumPy, got {type(x).__name__}; copy it")
            if number in spec.writes and not x.flags.writeable:
                raise ArgumentError(f"{what} is written to, and cannot be; pass a writable array")
            for written in spec.writes:
                if number != written and _share(x, buffers[written]):
                    raise ArgumentError(
                        f"{what} shares memory with buffer {written}, which is written; copy one of them"
                    )
        self.run(buffers, values)

    def run(self, buffers: Sequence[Any], values: Sequence[int]) -> None:
        """Run on checked arrays, by plain Python: for tests, and without llvmlite."""
        inputs = len(self.kernel.inputs)
        given = [buffers[k] for k in self.compiled.spec.writes]
        for y, result in zip(given, interpret(self.kernel, buffers[:inputs], values), strict=True):
            y[...] = result


class CpuProgram(HostProgram):
    """Machine code."""

    def __init__(self, compiled: CompiledSpec) -> None:
        super().__init__(compiled)
        assert isinstance(compiled.code, int)
        self._call = loaded(with_outputs(self.kernel), compiled.code, _reference)

    def run(self, buffers: Sequence[Any], values: Sequence[int]) -> None:
        """See `HostProgram.run`."""
        self._call(tuple(map(int, values)), *buffers)


def _reference(op: Op, ins: tuple[Spec, ...], outs: tuple[Spec, ...]) -> Callable[..., Any]:
    run = host_kernel(op, ins, outs)
    if run is None:
        raise UnsupportedError(f"{op!r} has no kernel in main memory", primitive=op.primitive.name)
    return run


OVERLAP_WORK: Final = 1000
"""Maximum effort of the search for shared memory; undecided cases are refused."""


def _share(x: np.ndarray[Any, Any], y: np.ndarray[Any, Any]) -> bool:
    try:
        return np.shares_memory(x, y, max_work=OVERLAP_WORK)  # type: ignore[arg-type]  # the stub knows 0 and -1 only
    except np.exceptions.TooHardError:
        return True


class NumpyRenderer(Renderer):
    """Renders a function as its own description, for `NumpyCompiler`."""

    device = "cpu"

    def supports(self, primitive: Primitive, *dtypes: Any) -> bool:
        """See `Renderer.supports`: every element-wise primitive has a reference kernel."""
        return primitive.elementwise

    def render(self, kernel: LoopFunction, name: str) -> ProgramSpec:
        """See `Renderer.render`."""
        return ProgramSpec.of(kernel, entry_name(name), show(kernel))


class NumpyCompiler(Compiler):
    """Compiles nothing: the description is run."""

    def compile(self, spec: ProgramSpec) -> CompiledSpec:
        """See `Compiler.compile`."""
        return CompiledSpec(spec, spec.source, f"numpy {np.__version__} {spec.identity}")


@cache
def device() -> Device:
    """The CPU as a device: its memory, and its toolchains ``"llvm"`` and ``"numpy"``.

    The default is ``"llvm"`` where native kernels are available. ``"numpy"`` runs a function number by number.

    Returns:
        The device.

    >>> from tenferro_tensor.catalog import neg
    >>> from tenferro_tensor.loop_ir import Affine, Buffer, For, Let, Load, Order, Reg, Role, Store
    >>> from tenferro_tensor_core import dim
    >>> f8, n, i = np.dtype("float64"), dim("n"), Reg(0, np.dtype("int64"))
    >>> x, y = Buffer(0, f8, (n,), Role.INPUT), Buffer(1, f8, (n,), Role.OUTPUT)
    >>> a, b, at = Reg(1, f8), Reg(2, f8), Affine.of(i)
    >>> body = For(i, n, (Load(a, x, at), Let(b, neg.op(), (a,)), Store(y, at, b)), order=Order.ANY)
    >>> out = np.empty(3)
    >>> device().build(LoopFunction(("n",), (x,), (y,), (), (), (body,)), "minus", "numpy")([np.arange(3.0), out], [3])
    >>> out
    array([-0., -1., -2.])
    """
    ways = {
        "llvm": lambda: Toolchain(CpuRenderer(engine().host), CpuCompiler(engine()), CpuProgram),
        "numpy": lambda: Toolchain(NumpyRenderer(), NumpyCompiler(), HostProgram),
    }
    return Device("cpu", memory(), ways if available() else dict(reversed(ways.items())))
