"""`Runtime`: the owner of defaults and the view on all caches; one per process, replaceable in a scope."""

from __future__ import annotations

from contextvars import ContextVar
from copy import copy
from typing import Any, Final, NamedTuple

from tenferro_runtime._caches import caches
from tenferro_runtime.compilers import ProgramCompiler
from tenferro_runtime.ir._program import Program
from tenferro_runtime.ir._spec_check import check_program
from tenferro_runtime.ir._tools import above
from tenferro_runtime.passes import PASSES, Pass, keeping_layout
from tenferro_tensor import REGISTRY, clear_plans, plan_stats
from tenferro_tensor_core import ArgumentError
from tenferro_tensor_core.forks import new_lock

__all__ = ["FUSION", "How", "Runtime", "current_runtime", "how_of", "optimised_like", "promised_like"]

FUSION: Final = "fusion"
"""Under this name a program remembers `How` it is run."""

CHANGES: Final = "changes"
"""Under this name it remembers the passes that changed the number of its steps, with that number before and after."""


class How(NamedTuple):
    """How a program is run.

    Attributes:
        fusion: whether its steps are fused.
        exact: whether it gives the bits of single operations.
        overwriting: whether results may take the memory of operands that nobody needs any more.
        placement: what places steps that name no device on CPU pools: a cost model, ``"auto"`` for the usual one, or
            ``None`` where nobody asked for it.
        compiler: what runs it as a whole, or ``None``: kernels of its devices.
    """

    fusion: bool
    exact: bool
    overwriting: bool
    placement: Any = None
    compiler: ProgramCompiler | None = None


class Runtime:
    """Defaults for tracing and compiling, and the caches of the process.

    Functions compiled inside ``with Runtime(...):`` keep its defaults.

    Args:
        passes: passes that programs go through, in order.
        check: run the executable specification of programs after tracing and after each pass, and that of plans for
            several devices when they are made.
        deterministic: leave out the passes that may round results in another way (`tenferro_runtime.passes.Rounding`):
            a compiled function then gives the bits that its operations give one by one, with any number of threads.
        fusion: run several element-wise steps as one kernel where the backend has it; a deterministic runtime fuses
            only what gives the same bits.
        overwriting: let results take the memory of operands that nobody needs any more; changes no bits.
        programs_per_function: number of programs that one compiled function keeps.
        kinds_per_function: number of argument kinds that take the fast path into a compiled function.
        strict_sizes: refuse ``int(n)`` and ``range(n)`` of a symbolic size `n`, which make a program for each value.
        unroll: which loops of Python stay written out; see `compile`.

    >>> with Runtime(check=True, programs_per_function=2) as runtime:
    ...     current_runtime() is runtime
    True
    """

    def __init__(
        self,
        *,
        passes: tuple[Pass, ...] = PASSES,
        check: bool = False,
        deterministic: bool = False,
        fusion: bool = True,
        overwriting: bool = True,
        programs_per_function: int = 64,
        kinds_per_function: int = 1024,
        strict_sizes: bool = False,
        unroll: bool | int | None = None,
    ) -> None:
        if programs_per_function < 1 or kinds_per_function < 1:
            raise ArgumentError(f"bounds are at least 1, got {programs_per_function=} and {kinds_per_function=}")
        self.passes, self.check, self.deterministic, self.fusion = passes, check, deterministic, fusion
        self.overwriting = overwriting
        self.programs_per_function, self.kinds_per_function = programs_per_function, kinds_per_function
        self.strict_sizes, self.unroll = strict_sizes, unroll
        self.compiler: ProgramCompiler | None = None

    def with_deterministic(self, deterministic: bool) -> Runtime:
        """This runtime, or one that differs from it in that."""
        if deterministic == self.deterministic:
            return self
        other = copy(self)
        other.deterministic = deterministic
        return other

    def with_unroll(self, unroll: bool | int) -> Runtime:
        """This runtime with another `unroll`."""
        other = copy(self)
        other.unroll = unroll
        return other

    def with_compiler(self, compiler: ProgramCompiler) -> Runtime:
        """This runtime for functions whose programs a compiler runs."""
        other = copy(self)
        other.compiler = compiler
        return other

    def optimise(self, program: Program, *, placement: Any = None) -> Program:
        """The program after the passes; checked before and after each of them if `check` is set.

        Args:
            program: any program.
            placement: see `compile`.
        """
        if self.check:
            check_program(program)
        if self.unroll is not True:
            program = above("rolling").roll(program, self.unroll, self.optimise, exact=self.deterministic)
            if self.check:
                check_program(program)
        changes = []
        for run in keeping_layout(self.passes) if self.deterministic else self.passes:
            before, program = len(program.equations), run(program)
            if len(program.equations) != before:
                changes.append((getattr(run, "__name__", repr(run)), before, len(program.equations)))
            if self.check:
                check_program(program)
        program.memo[CHANGES] = tuple(changes)
        program.memo[FUSION] = How(self.fusion, self.deterministic, self.overwriting, placement, self.compiler)
        return program

    def stats(self) -> list[dict[str, Any]]:
        """Owner, size and bound of every cache of the process, and counters of those that count."""
        return [cache.stats() for cache in caches()] + plan_stats()

    def clear(self) -> None:
        """Empty every cache of the process; what is needed again is made again."""
        _clear_caches()
        clear_plans()

    def __enter__(self) -> Runtime:
        _open.set((*_open.get(), self))
        return self

    def __exit__(self, *_: object) -> None:
        scopes = _open.get()
        if scopes and scopes[-1] is self:  # a generator may be closed in another context, which never entered
            _open.set(scopes[:-1])

    def __repr__(self) -> str:
        return f"<Runtime: {len(self.passes)} passes, check={self.check}, deterministic={self.deterministic}>"


def optimised_like(program: Program, model: Program) -> Program:
    """A program that was derived from another one, after the standard passes that were allowed for that one."""
    for run in keeping_layout(PASSES) if how_of(model).exact else PASSES:
        program = run(program)
    return promised_like(program, model)


def how_of(program: Program) -> How:
    """How a program is run; one that no runtime has optimised, as the current runtime says."""
    found: How | None = program.memo.get(FUSION)
    if found is None:
        runtime = current_runtime()
        found = How(runtime.fusion, runtime.deterministic, runtime.overwriting)
    return found


def promised_like(program: Program, model: Program) -> Program:
    """The program, with what was promised about the bits of the other one."""
    if FUSION in model.memo:
        program.memo[FUSION] = model.memo[FUSION]
    return program


def _clear_caches() -> None:
    for cache in caches():
        cache.clear()


REGISTRY.changed.append(_clear_caches)

_open: Final[ContextVar[tuple[Runtime, ...]]] = ContextVar("tenferro runtimes", default=())
"""The runtimes whose scopes are open here, from the outside in."""
_default: list[Runtime] = []
_lock = new_lock()


def current_runtime() -> Runtime:
    """The runtime of the enclosing scope, else the one of the process."""
    scopes = _open.get()
    if scopes:
        return scopes[-1]
    if not _default:
        with _lock:
            if not _default:
                _default.append(Runtime())
    return _default[0]
