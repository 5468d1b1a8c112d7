"""`kept`: functions whose results are kept with a program."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import TYPE_CHECKING, TypeVar, TypeVarTuple

if TYPE_CHECKING:
    from tenferro_runtime.ir._program import Program

A = TypeVarTuple("A")
T = TypeVar("T")


def kept(f: Callable[[Program, *A], T]) -> Callable[[Program, *A], T]:
    """Keep the results of a function of a program in the memo of the program, by its other arguments.

    Args:
        f: a function of a program and of hashable values, whose result is not ``None``.

    Returns:
        The function, which computes each result once.
    """

    @wraps(f)
    def found(program: Program, /, *args: *A) -> T:
        key = (f, *args)
        result: T | None = program.memo.get(key)
        return program.memo.setdefault(key, f(program, *args)) if result is None else result

    return found
