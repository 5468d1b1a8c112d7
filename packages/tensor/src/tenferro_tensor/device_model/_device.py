"""The parts of a device, as contracts."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from tenferro_tensor._primitive import Op, Primitive
from tenferro_tensor.device_model._expansions import expansion
from tenferro_tensor.device_model._kernel_ir import Apply, KernelIR, Literal
from tenferro_tensor.device_model._program_spec import CompiledSpec, ProgramSpec


class Renderer(ABC):
    """Writes kernels in one language for one kind of device."""

    @abstractmethod
    def supports(self, primitive: Primitive, *dtypes: Any) -> bool:
        """Whether `render` takes an application of the primitive to operands of these dtypes."""

    @abstractmethod
    def render(self, kernel: KernelIR, name: str) -> ProgramSpec:
        """The kernel's source, its entry point called `name`.

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

        Raises:
            CompileError: the compiler refuses the source.
        """


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


@dataclass(frozen=True, slots=True)
class Device:
    """What computes: where memory comes from, and how a kernel becomes a program.

    Attributes:
        kind: kind of device; compiled kernels are shared by all devices of one kind.
        allocator: memory.
        renderer: kernel to source.
        compiler: source to code.
        program: code to something that runs.
    """

    kind: str
    allocator: Allocator
    renderer: Renderer
    compiler: Compiler
    program: Callable[[CompiledSpec], Program]

    def build(self, kernel: KernelIR, name: str = "kernel") -> Program:
        """Render, compile and load."""
        return self.program(self.compiler.compile(self.renderer.render(kernel, name)))
