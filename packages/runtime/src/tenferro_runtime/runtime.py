"""`Runtime`: the defaults of tracing and compiling, and all caches; one per process, replaceable in a scope."""

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
from tenferro_runtime.progress import counting
from tenferro_tensor import REGISTRY, clear_plans, plan_stats
from tenferro_tensor_core import ArgumentError
from tenferro_tensor_core.forks import new_lock

__all__ = ["FUSION", "How", "Runtime", "current_runtime", "how_of", "optimised_like", "promised_like"]


def __dir__() -> list[str]:
    return __all__.copy()


FUSION: Final = "fusion"
"""Key of a program's memo: `How` it is run."""

CHANGES: Final = "changes"
"""Under this name it remembers the passes that changed the number of its steps, with that number before and after."""


class How(NamedTuple):
    """How a program is run.

    Attributes:
        fusion: whether its parts are native functions where the program as a whole is none.
        exact: whether its results are bitwise equal to those of single operations.
        overwriting: whether results may reuse the memory of dead operands.
        placement: the cost model that places steps on CPU pools, ``"auto"`` for the default one, or ``None``.
        compiler: the compiler that runs it as a whole, or ``None``.
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
        passes: the passes that programs go through, in order.
        check: run the executable specification of programs after tracing and after each pass, and that of plans for
            several devices when they are made.
        deterministic: omit the passes that may change rounding (`tenferro_runtime.passes.Rounding`): the results of a
            compiled function are then bitwise equal to those of its operations one by one, with any number of threads.
        fusion: run the parts of a program that cannot become one native function as native functions; those of a
            deterministic program have the bits of their steps.
        overwriting: let results reuse the memory of dead operands; changes no bits.
        programs_per_function: number of programs that a compiled function caches.
        kinds_per_function: number of argument kinds that take the fast path into a compiled function.
        strict_sizes: raise an error for ``int(n)`` and ``range(n)`` of a symbolic size `n`, which would make a program
            for each value.
        unroll: which Python loops stay unrolled; see `compile`.

    >>> with Runtime(check=True, programs_per_function=2) as runtime:
    ...     current_runtime() is runtime
    True
    """

    passes: tuple[Pass, ...]
    check: bool
    deterministic: bool
    fusion: bool
    programs_per_function: int
    kinds_per_function: int
    strict_sizes: bool
    unroll: bool | int | None

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
        """This runtime with another `deterministic`.

        Args:
            deterministic: the new value.

        Returns:
            This runtime if nothing changes, else a copy.
        """
        if deterministic == self.deterministic:
            return self
        other = copy(self)
        other.deterministic = deterministic
        return other

    def with_unroll(self, unroll: bool | int) -> Runtime:
        """This runtime with another `unroll`.

        Args:
            unroll: the new value; see `compile`.

        Returns:
            A copy.
        """
        other = copy(self)
        other.unroll = unroll
        return other

    def with_compiler(self, compiler: ProgramCompiler) -> Runtime:
        """This runtime for functions whose programs a compiler runs.

        Args:
            compiler: the compiler.

        Returns:
            A copy.
        """
        other = copy(self)
        other.compiler = compiler
        return other

    def optimise(self, program: Program, *, placement: Any = None) -> Program:
        """Run the passes on a program; check it before and after each of them if `check` is set.

        Args:
            program: any program.
            placement: see `compile`.

        Returns:
            The optimized program.
        """
        if self.check:
            check_program(program)
        if self.unroll is not True:
            program = above("lowering.rolling").roll(program, self.unroll, self.optimise, exact=self.deterministic)
            if self.check:
                check_program(program)
        changes = []
        passes = keeping_layout(self.passes) if self.deterministic else self.passes
        with counting(f"passes on {len(program.equations)} steps", len(passes)) as done:
            for run in passes:
                before, program = len(program.equations), run(program)
                if len(program.equations) != before:
                    changes.append((getattr(run, "__name__", repr(run)), before, len(program.equations)))
                if self.check:
                    check_program(program)
                done()
        program.memo[CHANGES] = tuple(changes)
        program.memo[FUSION] = How(self.fusion, self.deterministic, self.overwriting, placement, self.compiler)
        return program

    def stats(self) -> list[dict[str, Any]]:
        """Owner, size, bound and counters of every cache of the process."""
        return [cache.stats() for cache in caches()] + plan_stats()

    def clear(self) -> None:
        """Clear every cache of the process."""
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
    """Run the standard passes that were allowed for another program on a program derived from it.

    Args:
        program: the derived program.
        model: the other program.

    Returns:
        The optimized program.
    """
    for run in keeping_layout(PASSES) if how_of(model).exact else PASSES:
        program = run(program)
    return promised_like(program, model)


def how_of(program: Program) -> How:
    """How a program is run; by default as the current runtime says.

    Args:
        program: the program.

    Returns:
        The `How` of its runtime.
    """
    found: How | None = program.memo.get(FUSION)
    if found is None:
        runtime = current_runtime()
        found = How(runtime.fusion, runtime.deterministic, runtime.overwriting)
    return found


def promised_like(program: Program, model: Program) -> Program:
    """Give a program the `How` of another one, without running passes.

    Args:
        program: the program.
        model: the other program.

    Returns:
        The program.
    """
    if FUSION in model.memo:
        program.memo[FUSION] = model.memo[FUSION]
    return program


def _clear_caches() -> None:
    for cache in caches():
        cache.clear()


REGISTRY.changed.append(_clear_caches)

_open: Final[ContextVar[tuple[Runtime, ...]]] = ContextVar("tenferro runtimes", default=())
"""The runtimes of the open scopes, outermost first."""
_default: list[Runtime] = []
_lock = new_lock()


def current_runtime() -> Runtime:
    """The runtime of the enclosing scope, or the default of the process.

    Returns:
        The runtime.

    >>> with Runtime(check=True) as runtime:
    ...     current_runtime() is runtime
    True
    """
    scopes = _open.get()
    if scopes:
        return scopes[-1]
    if not _default:
        with _lock:
            if not _default:
                _default.append(Runtime())
    return _default[0]
