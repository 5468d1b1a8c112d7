"""Operands of branches that the backward pass of an enclosing loop has for free, so that branches need not save them.

These are the constants and slices of the loop, and the carries that it restores step by step.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Final

from tenferro_runtime.extension import Program
from tenferro_tensor import Op

_FREE: Final[ContextVar[Mapping[Op, frozenset[int]]]] = ContextVar("operands that are free", default={})  # noqa: B039


@contextmanager
def free_operands_of(program: Program, free: Collection[int]) -> Iterator[None]:
    """Scope of differentiating a program: its variables `free` are available to the backward pass."""
    found: dict[Op, frozenset[int]] = {}
    for eq in program.equations:
        if eq.op.primitive.name == "cond":
            mine = frozenset([i for i, v in enumerate(eq.operands[1:]) if v in free])
            found[eq.op] = found.get(eq.op, mine) & mine
    token = _FREE.set(found)
    try:
        yield
    finally:
        _FREE.reset(token)


def free_operands(op: Op) -> frozenset[int]:
    """The operands of a `cond` that the backward pass has for free, by position after the index."""
    return _FREE.get().get(op, frozenset())


_LOOPS: Final[ContextVar[bool]] = ContextVar("whether a body is being differentiated", default=False)


@contextmanager
def in_a_loop() -> Iterator[None]:
    """Scope of differentiating the body of a loop, where saved values are stacked over all steps."""
    token = _LOOPS.set(True)
    try:
        yield
    finally:
        _LOOPS.reset(token)


def inside_a_loop() -> bool:
    """Whether the operations being recorded belong to the body of a loop."""
    return _LOOPS.get()
