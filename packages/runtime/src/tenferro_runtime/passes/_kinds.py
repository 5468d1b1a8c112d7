"""Kinds of passes, by what they promise about the bits of results."""

from __future__ import annotations

from collections.abc import Callable
from functools import update_wrapper
from typing import ClassVar, Final

from tenferro_runtime.ir._program import Program
from tenferro_runtime.ir._widen import computes_narrow

Pass = Callable[[Program], Program]


class _Marked:
    """A pass of a kind that deterministic runtimes leave out."""

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
    """A pass that may change how results are rounded: the order of a sum, or a product instead of a power.

    All other passes keep every bit of what they rewrite (NaN payloads aside); a deterministic runtime leaves these out.
    They wait until the steps on narrow floats are widened, for each of these rounds its result.
    """

    kind = "rounding"

    def __call__(self, program: Program) -> Program:
        return program if computes_narrow(program) else self.run(program)


class Rearranging(_Marked):
    """A pass that keeps the bits of what it rewrites, but may let results lie in memory in another way.

    Sums and products of matrices that read them may round otherwise for that, so a deterministic runtime leaves these
    passes out as well.
    """

    kind = "rearranging"


def keeping_bits(passes: tuple[Pass, ...]) -> tuple[Pass, ...]:
    """Those of the passes that keep every bit of what they rewrite."""
    return tuple([p for p in passes if not isinstance(p, Rounding)])


def keeping_layout(passes: tuple[Pass, ...]) -> tuple[Pass, ...]:
    """Those of the passes that also keep how results lie in memory, so that every bit of every program stays."""
    return tuple([p for p in passes if not isinstance(p, (Rounding, Rearranging))])
