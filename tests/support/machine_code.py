"""Machine code of whole programs in tests: without LLVM's optimiser, and made only where a test asks for it.

Tests that carry the mark `optimised` have the optimiser: without it, compiling takes a fifth of the time. Rendered text
is the same, and so are kernels of single operations, which no optimiser changes.

Tests that carry the mark `background` have the thread that compiles programs after some calls: elsewhere its work would
end at some later time, in another test. Loops that are worth waiting for and ``warm`` compile as ever, and so does
`fusion.wait` what the same test has called: programs of earlier tests are forgotten.

Tests that carry the mark `stepwise` do not wait for the compiler of loops either: each loop is run a few times, and is
not the subject.
"""

import sys
from collections.abc import Callable, Sequence
from typing import Any, Final

from tenferro_cpu.native.codegen.machine import _jit
from tenferro_runtime.lowering.native._program import TieredProgram
from tenferro_runtime.running.rendering import _tiers
from thorough import THOROUGH

UNOPTIMISED: Final = -1
"""Level of code that neither the optimiser nor the code generator improves; objects on disk are its own."""

_optimised = [True]


def optimise(wanted: bool) -> None:
    """Choose for programs that are compiled from now on; a thorough run optimises all of them."""
    _optimised[0] = wanted or THOROUGH


CALLS_BEFORE_COMPILING: Final = _tiers.CALLS_BEFORE_COMPILING


def compile_in_background(wanted: bool) -> None:
    """Choose whether programs are compiled after some calls, or only on request."""
    _tiers.CALLS_BEFORE_COMPILING = CALLS_BEFORE_COMPILING if wanted or THOROUGH else sys.maxsize  # type: ignore[misc]


_is_worth_waiting: Final = TieredProgram._is_worth_waiting


def wait_for_loops(wanted: bool) -> None:
    """Choose whether programs that take long step by step are compiled before their first run."""
    TieredProgram._is_worth_waiting = _is_worth_waiting if wanted or THOROUGH else _never  # type: ignore[assignment, method-assign]


def _never(whole: TieredProgram, sizes: tuple[int, ...]) -> bool:
    return False


def forget_programs() -> None:
    """Let `fusion.wait` compile only what runs from now on."""
    _tiers._CALLED.clear()


def level_of(usual: int) -> int:
    """The level to compile with where users have the level `usual`."""
    return usual if _optimised[0] or usual == 0 else UNOPTIMISED


class TestedEngine(_jit.Engine):
    """The engine of a process that tests."""

    _quick: Any = None

    def rendered(self, what: str, name: str, render: Callable[[], str], level: int = 0) -> int:
        # Background threads may compile while the next test begins: it is decided here, once for each program.
        chosen = level_of(level)
        return super().rendered(f"unoptimised {what}" if chosen == UNOPTIMISED else what, name, render, chosen)

    def _compile(self, key: str, text: str, names: Sequence[str], level: int) -> bytes:
        if level != UNOPTIMISED:
            return super()._compile(key, text, names, level)
        compiler = self._compiler
        if self._quick is None:
            target = compiler.llvm.Target.from_triple(compiler.host.triple)
            self._quick = target.create_target_machine(
                cpu=compiler.host.cpu, features=compiler.host.features, opt=0, jit=True, codemodel="jitdefault"
            )
        usual, compiler.machine = compiler.machine, self._quick
        try:
            return super()._compile(key, text, names, 0)
        finally:
            compiler.machine = usual


def install() -> None:
    """Make `TestedEngine` the engine that this process will create."""
    _jit.Engine = TestedEngine  # type: ignore[misc]


def unoptimised() -> None:
    """Have a process of its own, before it creates an engine, compile as most tests do."""
    install()
    optimise(False)
