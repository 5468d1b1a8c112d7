"""What an enclosing loop or branch means for the operations that are being differentiated inside it.

A loop would stack what they save over all steps. Its backward pass has its constants and slices for free, and the
carries that it restores step by step, so branches need not save these operands.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Final

from tenferro_runtime.extension import Program
from tenferro_tensor import Op

_SCOPE: Final[ContextVar[tuple[bool, Mapping[Op, frozenset[int]]]]] = ContextVar("scope", default=(False, {}))
"""Whether the body of a loop is being differentiated, and the operands that are free."""


@contextmanager
def differentiating(program: Program, free: Collection[int], *, loop: bool = False) -> Iterator[None]:
    """Scope of differentiating a branch, or the body of a loop: the backward pass has the variables `free`."""
    found: dict[Op, frozenset[int]] = {}
    for eq in program.equations:
        if eq.op.primitive.name == "cond":
            mine = frozenset([i for i, v in enumerate(eq.operands[1:]) if v in free])
            found[eq.op] = found.get(eq.op, mine) & mine
    token = _SCOPE.set((loop or inside_a_loop(), found))
    try:
        yield
    finally:
        _SCOPE.reset(token)


def free_operands(op: Op) -> frozenset[int]:
    """The operands of a `cond` that the backward pass has for free, by position after the index."""
    return _SCOPE.get()[1].get(op, frozenset())


def inside_a_loop() -> bool:
    """Whether the operations being recorded belong to the body of a loop."""
    return _SCOPE.get()[0]
