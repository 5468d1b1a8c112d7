"""Operands of branches that the way back of a surrounding loop has anyway: branches need not keep parts of them.

Constants and slices of the loop are such operands, and carries that it restores step by step.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Final

from tenferro_runtime.extension import Program
from tenferro_tensor import Op

_THERE: Final[ContextVar[Mapping[Op, frozenset[int]]]] = ContextVar("operands that are there", default={})  # noqa: B039


@contextmanager
def operands_there(program: Program, free: Collection[int]) -> Iterator[None]:
    """While a program is differentiated, say of its variables `free` that the way back has them."""
    found: dict[Op, frozenset[int]] = {}
    for eq in program.equations:
        if eq.op.primitive.name == "cond":
            mine = frozenset([i for i, v in enumerate(eq.operands[1:]) if v in free])
            found[eq.op] = found.get(eq.op, mine) & mine
    token = _THERE.set(found)
    try:
        yield
    finally:
        _THERE.reset(token)


def there(op: Op) -> frozenset[int]:
    """Which operands of branches the way back has, by position behind the index."""
    return _THERE.get().get(op, frozenset())


_LOOPS: Final[ContextVar[bool]] = ContextVar("whether a body is being differentiated", default=False)


@contextmanager
def in_a_loop() -> Iterator[None]:
    """While the body of a loop is differentiated: what it saves is stacked for all steps."""
    token = _LOOPS.set(True)
    try:
        yield
    finally:
        _LOOPS.reset(token)


def inside_a_loop() -> bool:
    """Whether the operations that are recorded now belong to the body of a loop."""
    return _LOOPS.get()
