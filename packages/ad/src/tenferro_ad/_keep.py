"""What a node saves, picked from operands and output by small functions made once per choice."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any


@cache
def keeper(count: int, save: tuple[int, ...]) -> Callable[..., tuple[Any, ...]]:
    """The function of ``count`` operands and then the outputs that returns those at positions `save`.

    >>> keeper(2, (0, 2))("x", "y", "out")
    ('x', 'out')
    """
    names = [f"x{i}" for i in range(count)]
    chosen = "".join(f"{names[i] if i < count else f'outs[{i - count}]'}, " for i in save)
    keep: Callable[..., tuple[Any, ...]] = eval(f"lambda {', '.join([*names, '*outs'])}: ({chosen})")
    return keep
