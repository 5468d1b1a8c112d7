"""Kinds of passes, by what they guarantee about the bits of results."""

from __future__ import annotations

from collections.abc import Callable
from functools import update_wrapper
from typing import ClassVar, Final

from tenferro_runtime.ir._program import Program
from tenferro_runtime.ir._widen import computes_narrow

Pass = Callable[[Program], Program]


class _Marked:
    """A pass of a kind that deterministic runtimes omit."""

    __name__: str
    kind: ClassVar[str]

    def __init__(self, run: Pass) -> None:
        self.run: Final = run
        update_wrapper(self, run)

    def __call__(self, program: Program) -> Program:
        return self.run(program)

    def __repr__(self) -> str:
        return f"<{self.kind} pass {self.__name__}>"


class Rounding(_Marked):
    """A pass that may change rounding: the order of a sum, or a product instead of a power.

    All other passes preserve every bit (except NaN payloads); a deterministic runtime omits these. They run after steps
    on narrow floats are widened, because each of those steps rounds its result.
    """

    kind = "rounding"

    def __call__(self, program: Program) -> Program:
        return program if computes_narrow(program) else self.run(program)


class Rearranging(_Marked):
    """A pass that preserves bits but may change the memory layout of results.

    Sums and matrix products that read them may then round differently, so a deterministic runtime omits these passes as
    well.
    """

    kind = "rearranging"


def keeping_bits(passes: tuple[Pass, ...]) -> tuple[Pass, ...]:
    """The passes that preserve every bit of the equations that they rewrite.

    Args:
        passes: any passes.

    Returns:
        Those that are not `Rounding`.
    """
    return tuple([p for p in passes if not isinstance(p, Rounding)])


def keeping_layout(passes: tuple[Pass, ...]) -> tuple[Pass, ...]:
    """The passes that also preserve the memory layout of results, hence every bit of every program.

    Args:
        passes: any passes.

    Returns:
        Those that are neither `Rounding` nor `Rearranging`.
    """
    return tuple([p for p in passes if not isinstance(p, (Rounding, Rearranging))])
