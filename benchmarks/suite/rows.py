"""A row of the suite: one small function that any of the compared libraries can build a call from."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import Any, Literal

import numpy as np

Call = Callable[[], Any]
Kind = Literal["call", "first", "bytes", "import"]

GROUPS = (
    "imports", "calls", "indexing", "assignment", "reductions", "elementwise", "loops", "compiled", "first_calls",
    "derivatives", "batching", "contractions", "linear_algebra", "fourier", "random_numbers", "special", "sparse",
    "memory", "xla",
)  # fmt: skip
"""Modules of rows, in the order in which they run; imports are first, while nothing is imported."""


@dataclass(frozen=True)
class Row:
    """One benchmark.

    Attributes:
        group: the module that defines it.
        name: the function, with its size in brackets where it has several.
        title: a line about what is computed.
        make: builds the call for one library; compilation and input are not part of the call.
        peers: the libraries that take part beside tenferro.
        kind: a warm `call`; a `first` call, before which every cache is emptied; the peak of `bytes` that a call
            allocates; or an `import` by a fresh process.
        repeats: calls that are counted together, so that small ones weigh more than the counting.
        counted: whether instructions are counted; not where XLA or BLAS does the work, or callgrind takes minutes.
    """

    group: str
    name: str
    title: str
    make: Callable[[Any], Call]
    peers: tuple[str, ...]
    kind: Kind
    repeats: int
    counted: bool

    @property
    def key(self) -> str:
        """The name in records."""
        return f"{self.group}/{self.name}"


_REGISTERED: dict[str, Row] = {}


def row(
    *peers: str, sizes: Sequence[int] = (), kind: Kind = "call", repeats: int = 1, counted: bool = True
) -> Callable[[Callable[..., Call]], Callable[..., Call]]:
    """Register a function as a row, or as one row for each size: its second argument, and `{n}` in its docstring."""

    def register(make: Callable[..., Call]) -> Callable[..., Call]:
        group, title = make.__module__.rpartition(".")[2], (make.__doc__ or make.__name__).strip().rstrip(".")
        for size in sizes or (None,):
            name = make.__name__ if size is None else f"{make.__name__}[{size}]"
            bound = make if size is None else lambda xp, size=size: make(xp, size)
            label = title if size is None else title.replace("{n}", spelled(size))
            entry = Row(group, name, label, bound, peers, kind, repeats, counted and kind != "bytes")
            if _REGISTERED.setdefault(entry.key, entry) is not entry:
                raise ValueError(f"two rows are named {entry.key!r}")
        return make

    return register


def spelled(number: int) -> str:
    """A number of a title: 1000, 10 000."""
    return f"{number:,}".replace(",", " ") if number >= 10_000 else str(number)


def rows(chosen: Sequence[str] = ()) -> list[Row]:
    """All rows in order, or those whose key contains one of the texts."""
    for group in GROUPS:
        import_module(f"suite.{group}")
    return [r for r in _REGISTERED.values() if not chosen or any(text in r.key for text in chosen)]


def normal(xp: Any, *shapes: int | tuple[int, ...], seed: int = 0, scale: float = 1.0) -> list[Any]:
    """Arrays of a library with the same normal numbers for all libraries."""
    rng = np.random.default_rng(seed)
    return [xp.array_of(rng.standard_normal(shape) * scale) for shape in shapes]
