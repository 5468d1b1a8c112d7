"""`Executables`: the executables that a compiler made of one program, by sizes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from tenferro_runtime._caches import BoundedCache
from tenferro_runtime._counters import COUNTERS
from tenferro_runtime.compilers import MAX_EXECUTABLES, ProgramCompiler, find_compiler
from tenferro_runtime.ir._call import instance
from tenferro_runtime.ir._data_sizes import definitions
from tenferro_runtime.ir._program import Program
from tenferro_runtime.ir._sizes import OPEN, filled, variables
from tenferro_runtime.running._prepared import Prepare, PreparedProgram
from tenferro_runtime.runtime import how_of
from tenferro_tensor import Spec, falling_back, get_backend
from tenferro_tensor.results import ANY, Maker, Results, foreign, owner_of
from tenferro_tensor_core import RegistryError, UnsupportedError

Steps = Callable[[Program], Callable[..., tuple[Any, ...]]]
"""Returns a function of raw arrays for a program with concrete sizes."""

_FORMS: Final = "executables"
"""Key of a program's memo: its executables, by form of the result and donated inputs."""


class Executables:
    """A program that a compiler runs as a whole: an executable for each combination of sizes, in a bounded cache.

    Args:
        compiler: the compiler.
        program: the program.
        bare: return the only output itself instead of a tuple.
        donated: positions of donated inputs.
        by_steps: makes a function that runs the steps, for devices that `host_fallback` completes by the CPU.

    Attributes:
        made: the executables by values of the symbolic sizes.
    """

    def __init__(
        self, compiler: ProgramCompiler, program: Program, bare: bool, donated: tuple[int, ...], by_steps: Steps
    ) -> None:
        self.compiler, self.program, self.bare, self.donated = compiler, program, bare, donated
        self._by_steps = by_steps
        self.made: BoundedCache[tuple[int, ...], Callable[..., tuple[Any, ...]]] = BoundedCache(
            f"{compiler.name}: sizes of {program!r}", MAX_EXECUTABLES
        )
        self._last: tuple[Any, Any] = None, None
        """The sizes of the last call, compared by identity, and their executable."""

    def prepare(self, sizes: tuple[int, ...]) -> PreparedProgram:
        """Prepare the program for sizes; it is compiled when it runs."""
        COUNTERS.binds += 1
        return PreparedProgram(self._only if self.bare else self._all, sizes, self._outputs(sizes), None)

    def _outputs(self, sizes: tuple[int, ...]) -> tuple[Spec, ...]:
        if not sizes:
            return self.program.outputs
        known = dict(zip(variables(self.program), sizes, strict=True))
        return tuple([s.with_(shape=filled(s.shape, known)) for s in self.program.outputs])

    def _all(self, sizes: tuple[int, ...], *raws: Any) -> tuple[Any, ...]:
        last = self._last
        return (last[1] if last[0] is sizes else self._found(sizes))(*raws)

    def _only(self, sizes: tuple[int, ...], *raws: Any) -> Any:
        last = self._last
        return (last[1] if last[0] is sizes else self._found(sizes))(*raws)[0]

    def _found(self, sizes: tuple[int, ...]) -> Callable[..., tuple[Any, ...]]:
        run = self.made.get(sizes)
        if run is None:
            run = self.made.put(sizes, self._made(instance(self.program, sizes) if sizes else self.program))
        self._last = sizes, run
        return run

    def _made(self, program: Program) -> Callable[..., tuple[Any, ...]]:
        try:
            return checked(self.compiler, program, self.compiler.executable(program, self.donated), self.donated)
        except UnsupportedError:
            if how_of(self.program).compiler is not None or not falling_back():
                raise
            return self._by_steps(program)


def checked(
    compiler: ProgramCompiler, program: Program, run: Callable[..., Any], donated: tuple[int, ...]
) -> Callable[..., tuple[Any, ...]]:
    """The executable of a compiler; that of a third party cannot write to operands, and its results are checked.

    Args:
        compiler: the compiler.
        program: the program that it compiled.
        run: the executable.
        donated: positions of the inputs that it may write to.

    Returns:
        A function of raw arrays.
    """
    if not foreign(compiler):
        return run
    text, owner = f"the executable of the compiler {compiler.name!r}", owner_of(compiler)
    if not callable(run):
        raise RegistryError(f"{text} is {run!r:.80}, which is not callable; correct {owner}", compiler=compiler.name)
    maker = Maker(text, "the outputs of the program are", lambda: f"correct {owner}", {"compiler": compiler.name})
    shapes = [s.shape if all(isinstance(n, int) for n in s.shape) else ANY for s in program.outputs]
    return Results(maker, program.inputs, program.outputs, True).checked(run, shapes, donated)


def compiled_form(program: Program, bare: bool, donated: tuple[int, ...], by_steps: Steps) -> Prepare | None:
    """The function that prepares a program for a compiler of whole programs; ``None`` if its steps run as kernels."""
    compiler = compiler_of(program)
    if compiler is None:
        return None
    forms = program.memo.setdefault(_FORMS, {})
    found: Executables | None = forms.get((bare, donated))
    if found is None:
        found = forms.setdefault((bare, donated), Executables(compiler, program, bare, donated, by_steps))
    return found.prepare


def compiler_of(program: Program) -> ProgramCompiler | None:
    """The compiler that a program was made for, or that of the one device in whose memory all its values are."""
    how = how_of(program)
    if how.compiler is not None or how.exact:
        return how.compiler
    home = next((s.place for s in program.specs.values() if not s.place.on_host), None)
    if home is None or any(s.place is not home for s in program.specs.values()) or definitions(program):
        return None
    name = get_backend(home.device.kind).compiler(home.device)
    return None if name is None else find_compiler(name)


def how(program: Program) -> str:
    """A description of the compiler that runs a program, and of the compiled sizes; empty if there is none."""
    compiler = compiler_of(program)
    if compiler is None:
        return ""
    opened = program
    while OPEN in opened.memo:
        opened, _ = opened.memo[OPEN]
    forms: list[Executables] = list(opened.memo.get(_FORMS, {}).values())
    text = f"runs as one executable of {compiler.name}; flops and bytes are those of its steps"
    if not opened.symbolic:
        return text
    held = dict.fromkeys([sizes for form in forms for sizes in tuple(form.made.table)])
    names = variables(opened)
    shown = "; ".join([", ".join(f"{n} = {k}" for n, k in zip(names, sizes, strict=True)) for sizes in held])
    return f"{text}\ncompiled for {len(held)} of at most {MAX_EXECUTABLES} sizes{f': {shown}' if held else ''}"
