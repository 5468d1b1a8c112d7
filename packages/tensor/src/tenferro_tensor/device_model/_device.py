"""The parts of a device, as contracts."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any

from tenferro_tensor import dispatch
from tenferro_tensor._primitive import Op, Primitive
from tenferro_tensor.device_model._expansions import expansion
from tenferro_tensor.device_model._kernel_ir import Apply, KernelIR, Literal
from tenferro_tensor.device_model._program_spec import CompiledSpec, ProgramSpec
from tenferro_tensor_core import ArgumentError, UnsupportedError


class Renderer(ABC):
    """Writes kernels in one language for one kind of device."""

    @property
    @abstractmethod
    def device(self) -> str:
        """The kind of device that it writes for, as in `Device.kind`."""

    @abstractmethod
    def supports(self, primitive: Primitive, *dtypes: Any) -> bool:
        """Whether `render` takes an application of the primitive to operands of these dtypes."""

    @abstractmethod
    def render(self, kernel: KernelIR, name: str) -> ProgramSpec:
        """The kernel's source, its entry point called `name`; the text may be written when it is first read.

        Raises:
            UnsupportedError: a primitive or dtype cannot be rendered; `supports` and `decompose` tell beforehand.
        """

    def decompose(self, op: Op, *operands: Any) -> KernelIR | None:
        """An equal kernel of supported primitives for an op that is not, where there is one.

        Args:
            op: what is applied.
            operands: the dtype of each operand, or a `Literal` where it is a number that the kernel knows. They are
                the inputs of the kernel, in order; it has one output.
        """
        dtypes = [o.dtype if isinstance(o, Literal) else o for o in operands]
        found = None if self.supports(op.primitive, *dtypes) else expansion(op, *operands)
        if found is None:
            return None
        lines = [line for line in found.lines if isinstance(line, Apply)]
        able = all(self.supports(line.op.primitive, *[found.dtypes[i] for i in line.args]) for line in lines)
        return found if able else None


class Compiler(ABC):
    """Turns source into code for one kind of device; equal sources are compiled once."""

    @abstractmethod
    def compile(self, spec: ProgramSpec) -> CompiledSpec:
        """The compiled kernel.

        A compiler that keeps code on disk finds it by `ProgramSpec.identity`, without reading the source.

        Raises:
            CompileError: the compiler refuses the source.
        """

    def at_hand(self, spec: ProgramSpec) -> bool:
        """Whether `compile` only has to load code that was compiled before."""
        return False


class Program(ABC):
    """A kernel that is ready to run.

    Attributes:
        compiled: what it runs.
    """

    compiled: CompiledSpec

    def __call__(self, buffers: Sequence[Any], values: Sequence[int]) -> None:
        """Run on buffers, with one integer per variable.

        Raises:
            ArgumentError: a wrong number of buffers or values.
            ShapeError: a value is out of its bounds, or a buffer is too small for the values.
        """
        self.compiled.spec.check(buffers, values)
        self.execute(buffers, values)

    @abstractmethod
    def execute(self, buffers: Sequence[Any], values: Sequence[int]) -> None:
        """Run on buffers and values whose number and bounds were checked; what they may touch is checked here."""


class Allocator(ABC):
    """Hands out memory of one memory space and takes it back when nothing refers to it."""

    @abstractmethod
    def allocate(self, nbytes: int) -> Any:
        """A block of at least `nbytes`; freed when the last reference goes, views included."""

    @abstractmethod
    def stats(self) -> dict[str, int]:
        """Counts and bytes, by name."""

    @abstractmethod
    def clear(self) -> None:
        """Give unused blocks back to the system."""

    def serving(self) -> AbstractContextManager[Any]:
        """A context manager: results of operations come from here, as in ``compute_context`` of a context that has this
        allocator.

        Raises:
            UnsupportedError: it hands out blocks to those who ask for them, and serves no operations.
        """
        raise UnsupportedError(f"{type(self).__name__} serves no operations; call its allocate(nbytes)")


@dataclass(frozen=True, slots=True)
class Toolchain:
    """One way from a kernel to a program.

    Attributes:
        renderer: kernel to source.
        compiler: source to code.
        program: code to something that runs.
    """

    renderer: Renderer
    compiler: Compiler
    program: Callable[[CompiledSpec], Program]

    def compiled(self, kernel: KernelIR, name: str = "kernel") -> CompiledSpec:
        """Render and compile."""
        return self.compiler.compile(self.renderer.render(kernel, name))

    def at_hand(self, kernel: KernelIR, name: str = "kernel") -> bool:
        """Whether `compiled` takes a moment only, because the code was compiled before."""
        return self.compiler.at_hand(self.renderer.render(kernel, name))

    def build(self, kernel: KernelIR, name: str = "kernel") -> Program:
        """Render, compile and load."""
        return self.program(self.compiled(kernel, name))


@dataclass(frozen=True, slots=True)
class Device:
    """What computes: where memory comes from, and how a kernel becomes a program.

    Attributes:
        kind: kind of device; compiled kernels are shared by all devices of one kind.
        allocator: memory, where no open context has an allocator of its own.
        toolchains: functions that give the toolchains, by name, each called when it is asked for; the first is the
            default. They raise `BackendUnavailableError` where something is not installed.

    >>> class Nothing(Allocator):
    ...     def allocate(self, nbytes): return bytearray(nbytes)
    ...     def stats(self): return {}
    ...     def clear(self): pass
    >>> abacus = Device("abacus", Nothing(), {"beads": lambda: "the toolchain", "knots": lambda: "another one"})
    >>> abacus.toolchain(), abacus.toolchain("knots")
    ('the toolchain', 'another one')
    >>> abacus.toolchain("llvm")
    Traceback (most recent call last):
    tenferro_tensor_core._errors.ArgumentError: abacus has no toolchain 'llvm'; it has beads, knots
    """

    kind: str
    allocator: Allocator
    toolchains: Mapping[str, Callable[[], Toolchain]]

    def toolchain(self, using: str | None = None) -> Toolchain:
        """The toolchain of a name, the default one without.

        Raises:
            ArgumentError: there is none of that name.
            BackendUnavailableError: it needs what is not installed; the text says what to do.
        """
        name = next(iter(self.toolchains)) if using is None else using
        if name not in self.toolchains:
            raise ArgumentError(
                f"{self.kind} has no toolchain {using!r}; it has {', '.join(self.toolchains)}", using=using
            )
        return self.toolchains[name]()

    @property
    def renderer(self) -> Renderer:
        """Kernel to source, of the default toolchain."""
        return self.toolchain().renderer

    @property
    def compiler(self) -> Compiler:
        """Source to code, of the default toolchain."""
        return self.toolchain().compiler

    @property
    def memory(self) -> Allocator:
        """The allocator of the open `compute_context`, where that is one of this kind of device and has one; else
        `allocator`."""
        context = dispatch.scoped_context()
        chosen: Allocator | None = getattr(context, "allocator", None)
        return self.allocator if chosen is None or context.device.kind != self.kind else chosen  # type: ignore[union-attr]

    def build(self, kernel: KernelIR, name: str = "kernel", using: str | None = None) -> Program:
        """Render, compile and load by the toolchain of a name.

        Raises:
            ArgumentError: there is no toolchain of that name.
            BackendUnavailableError: it needs what is not installed.
            UnsupportedError: its renderer does not take the kernel.
        """
        return self.toolchain(using).build(kernel, name)
