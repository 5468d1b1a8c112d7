"""Finds runs of equations that repeat with a period, in nearly linear time."""

from __future__ import annotations

from itertools import count
from typing import Any, Final, NamedTuple

import numpy as np

from tenferro_runtime.ir._program import Program
from tenferro_runtime.ir._structure import structural
from tenferro_runtime.passes.schedule import VIEWS
from tenferro_tensor import Op, catalog

WINDOWS: Final = (1, 2, 4, 8, 16, 32, 64)
"""Lengths of windows; the distance of equal windows is a candidate period."""

MAX_PROPOSED: Final = 6
"""Largest number of candidate periods from windows of one length."""

_MIXER: Final = np.uint64(0x9E3779B97F4A7C15)

_ALONE: Final = frozenset({catalog.define_size, catalog.dim_value, catalog.transfer})
"""Primitives that must not be moved into a loop."""


class Stretch(NamedTuple):
    """A run of equations, each of which has the key of the one `period` equations later.

    Attributes:
        start: position of the first equation.
        period: the distance.
        length: number of equations.
    """

    start: int
    period: int
    length: int

    @property
    def saved(self) -> int:
        """Number of equations that a loop saves."""
        return (self.length // self.period - 1) * self.period


def keys_of(program: Program) -> np.ndarray:
    """A key for each equation, equal for equations that differ only in variables, positions and values of literals.

    Positions are the starts of slices and updates, and the shifts of pads.
    """
    kinds: dict[Op, Any] = {}
    table: dict[Any, int] = {}
    specs, alone = program.specs, count(-1, -1)
    found = []
    for eq in program.equations:
        op = eq.op
        kind = kinds.get(op)
        if kind is None:
            kind = kinds[op] = next(alone) if op.primitive in _ALONE else _kind(op)
        key = (
            kind,
            tuple([id(specs[v]) if v.__class__ is int else v.value.__class__ for v in eq.operands]),  # type: ignore[union-attr]
            tuple([id(specs[v]) for v in eq.results]),
        )
        found.append(table.setdefault(key, len(table)))
    return np.array(found, dtype=np.int64)


def _kind(op: Op) -> Any:
    params = op.params
    if op.primitive is catalog.slice_:
        return (catalog.slice_, params["stride"], *map(_extent, params["start"], params["limit"]))
    if op.primitive is catalog.pad and all(n.__class__ is int for n in params["low"]):
        return (catalog.pad, params["interior"])  # the shapes determine the padding at the end
    if op.primitive is catalog.update_slice:
        open_starts = tuple([None if n.__class__ is int else n for n in params["start"]])
        return (catalog.update_slice, params["stride"], params["mode"], open_starts)
    return structural(op)


def _extent(start: Any, limit: Any) -> Any:
    return limit - start if start.__class__ is int and limit.__class__ is int else (start, limit)


def runs_in(program: Program, keys: np.ndarray, min_steps: int, min_saved: int) -> list[Stretch]:
    """The runs with at least `min_steps` periods, those that save most first; they may overlap.

    Runs that consist of views only are excluded, since they are read as rows of an array.
    """
    works = np.array([eq.op.primitive not in VIEWS for eq in program.equations], dtype=np.int64)
    before = np.concatenate([[0], np.cumsum(works)])
    found: dict[tuple[int, int], Stretch] = {}
    for period in sorted(_proposed(keys, min_steps)):
        same = np.zeros(len(keys) - period + 2, dtype=np.int8)
        same[1:-1] = keys[period:] == keys[:-period]
        change = np.flatnonzero(np.diff(same))
        for start, end in zip(change[::2].tolist(), change[1::2].tolist(), strict=True):
            run = Stretch(start, period, end - start + period)
            enough = run.length >= min_steps * period and run.saved >= min_saved
            if enough and before[start + period] > before[start]:
                found[start, period] = run
    return sorted(found.values(), key=lambda run: (-run.saved, run.period))


def _proposed(keys: np.ndarray, min_steps: int) -> set[int]:
    """The most frequent distances between equal windows."""
    found: set[int] = set()
    most = len(keys) // min_steps
    hashes, width = (keys.astype(np.uint64) + np.uint64(1)) * _MIXER, 1
    for window in WINDOWS:
        while width < window and len(hashes) > width:
            hashes = (hashes[:-width] ^ (hashes[:-width] >> np.uint64(29))) * _MIXER + hashes[width:]
            width *= 2
        if width < window or len(hashes) < 2:
            break
        order = np.argsort(hashes, kind="stable")
        again = hashes[order[1:]] == hashes[order[:-1]]
        distances = (order[1:] - order[:-1])[again]
        counts = np.bincount(distances[distances <= most])
        best = np.argsort(counts)[::-1][:MAX_PROPOSED]
        found.update([int(d) for d in best if d and counts[d]])
    return found
