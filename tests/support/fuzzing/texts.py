"""Functions given as the text of an expression of `a`, `b`, ...: read once for NumPy and once for the library."""

from collections.abc import Callable
from functools import lru_cache
from typing import Any

from fuzzing.reference import SCOPE, library

NAMES = "abcdefgh"


@lru_cache(4096)
def pair(text: str, count: int) -> tuple[Callable[..., Any], Callable[..., Any]]:
    """The function over NumPy and the function over the library."""
    source = f"lambda {', '.join(NAMES[:count])}: {text}"
    return eval(source, dict(SCOPE)), eval(source, library())
