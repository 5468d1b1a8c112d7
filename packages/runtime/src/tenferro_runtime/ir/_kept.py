"""`kept`: functions whose results are kept with a program."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import TYPE_CHECKING, Concatenate, ParamSpec, TypeVar

if TYPE_CHECKING:
    from tenferro_runtime.ir._program import Program

P = ParamSpec("P")
T = TypeVar("T")


def kept(f: Callable[Concatenate[Program, P], T]) -> Callable[Concatenate[Program, P], T]:
    """Keep the results of a function of a program in the memo of the program, by its other arguments.

    Args:
        f: a function of a program and of hashable values, whose result is not ``None``.

    Returns:
        The function, which computes each result once.
    """

    @wraps(f)
    def found(program: Program, /, *args: P.args, **kwargs: P.kwargs) -> T:
        key = (f, *args, *kwargs.items())
        result: T | None = program.memo.get(key)
        return program.memo.setdefault(key, f(program, *args, **kwargs)) if result is None else result  # type: ignore[no-any-return]

    return found
