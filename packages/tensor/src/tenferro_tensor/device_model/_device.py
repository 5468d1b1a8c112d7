"""The contracts of a device and its parts: renderer, compiler, program, allocator and toolchain."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tenferro_tensor import dispatch
from tenferro_tensor._primitive import Primitive
from tenferro_tensor.device_model._allocator import Allocator
from tenferro_tensor.device_model._offered import chosen_toolchain, offered_toolchain
from tenferro_tensor.device_model._program_spec import CompiledSpec, ProgramSpec

if TYPE_CHECKING:
    from tenferro_tensor.loop_ir import LoopFunction


class Renderer(ABC):
    """Writes kernels as source code in one language for one kind of device."""

    @property
    @abstractmethod
    def device(self) -> str:
        """The kind of device, as in `Device.kind`."""

    @abstractmethod
    def supports(self, primitive: Primitive, *dtypes: Any) -> bool:
        """Whether there is a form of a primitive; of others `render` writes the `expansion`, if there is one.

        Args:
            primitive: the primitive.
            dtypes: dtypes of its operands.

        Returns:
            True if it does.
        """

    @abstractmethod
    def render(self, kernel: LoopFunction, name: str) -> ProgramSpec:
        """Render a kernel; the text may be written when it is first read.

        Args:
            kernel: the kernel.
            name: name of the entry point.

        Returns:
            The program spec.

        Raises:
            UnsupportedError: a primitive or dtype cannot be rendered; check with `supports`.
        """


class Compiler(ABC):
    """Compiles source code for one kind of device; equal sources are compiled once."""

    @abstractmethod
    def compile(self, spec: ProgramSpec) -> CompiledSpec:
        """Compile a program.

        A compiler that caches code on disk finds it by `ProgramSpec.identity`, without reading the source.

        Args:
            spec: the program.

        Returns:
            The compiled kernel.

        Raises:
            CompileError: the compiler rejects the source.
        """

    def at_hand(self, spec: ProgramSpec) -> bool:
        """Whether `compile` only loads code that was compiled before.

        Args:
            spec: the program.

        Returns:
            True if the code is cached.
        """
        return False


class Program(ABC):
    """A loaded kernel.

    Attributes:
        compiled: the compiled kernel.
    """

    compiled: CompiledSpec

    def __call__(self, buffers: Sequence[Any], values: Sequence[int]) -> None:
        """Run on buffers, with one integer for each variable.

        Raises:
            ArgumentError: the number of buffers or values is wrong.
            ShapeError: a value is out of bounds, or a buffer is too small.
        """
        self.compiled.spec.check(buffers, values)
        self.execute(buffers, values)

    @abstractmethod
    def execute(self, buffers: Sequence[Any], values: Sequence[int]) -> None:
        """Run on buffers and values whose number and bounds are checked; implementations check buffer sizes.

        Args:
            buffers: the buffers.
            values: values of the variables.
        """


@dataclass(frozen=True, slots=True)
class Toolchain:
    """A way to compile a kernel to a program.

    Attributes:
        renderer: kernel to source.
        compiler: source to code.
        program: code to a loaded kernel.
    """

    renderer: Renderer
    compiler: Compiler
    program: Callable[[CompiledSpec], Program]

    def compiled(self, kernel: LoopFunction, name: str = "kernel") -> CompiledSpec:
        """Render and compile.

        Args:
            kernel: the kernel.
            name: name of the entry point.

        Returns:
            The compiled kernel.
        """
        return self.compiler.compile(self.renderer.render(kernel, name))

    def at_hand(self, kernel: LoopFunction, name: str = "kernel") -> bool:
        """Whether `compiled` only loads code that was compiled before.

        Args:
            kernel: the kernel.
            name: name of the entry point.

        Returns:
            True if the code is cached.
        """
        return self.compiler.at_hand(self.renderer.render(kernel, name))

    def build(self, kernel: LoopFunction, name: str = "kernel") -> Program:
        """Render, compile and load.

        Args:
            kernel: the kernel.
            name: name of the entry point.

        Returns:
            The program.
        """
        return self.program(self.compiled(kernel, name))


@dataclass(frozen=True, slots=True)
class Device:
    """A kind of device: its memory, and the toolchains that compile kernels for it.

    Attributes:
        kind: kind of device; compiled kernels are shared by all devices of one kind.
        allocator: memory, unless the open context has its own allocator.
        toolchains: functions that return the toolchains, by name; the first is the default. They raise
            `BackendUnavailableError` if something is not installed.

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
        """Return a toolchain.

        Args:
            using: its name, also that of an entry point ``tenferro.toolchains``; by default the one that
                ``TENFERRO_<KIND>_TOOLCHAIN`` names, else the first one.

        Returns:
            The toolchain.

        Raises:
            ArgumentError: there is none of that name for this kind of device.
            RegistryError: that of an entry point cannot be loaded.
            BackendUnavailableError: it needs something that is not installed; the text says what to do.
        """
        name = using or chosen_toolchain(self.kind) or next(iter(self.toolchains))
        if name in self.toolchains:
            return self.toolchains[name]()
        offered: Toolchain = offered_toolchain(self.kind, name, self.toolchains)
        return offered

    @property
    def renderer(self) -> Renderer:
        """The renderer of the default toolchain."""
        return self.toolchain().renderer

    @property
    def compiler(self) -> Compiler:
        """The compiler of the default toolchain."""
        return self.toolchain().compiler

    @property
    def memory(self) -> Allocator:
        """The allocator of the open `compute_context` if that is one of this kind of device and has one; else
        `allocator`.
        """
        context = dispatch.scoped_context()
        chosen: Allocator | None = getattr(context, "allocator", None)
        return self.allocator if chosen is None or context.device.kind != self.kind else chosen  # type: ignore[union-attr]

    def build(self, kernel: LoopFunction, name: str = "kernel", using: str | None = None) -> Program:
        """Render, compile and load a kernel.

        Args:
            kernel: the kernel.
            name: name of the entry point.
            using: name of the toolchain; by default the first one.

        Returns:
            The program.

        Raises:
            ArgumentError: there is no toolchain of that name.
            BackendUnavailableError: it needs something that is not installed.
            UnsupportedError: its renderer does not support the kernel.
        """
        return self.toolchain(using).build(kernel, name)
