"""Whether NumPy shows the elements of a view in another shape, or copies them: values of every kind follow that rule.

A stand-in with the strides of a base in row-major order, but one element of memory, takes the steps of the view.
Symbolic extents are large numbers there, with little in common.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from contextlib import suppress
from typing import Any, Final

import numpy as np
from numpy.lib.stride_tricks import as_strided

from tenferro_tensor.calls import ValueBase
from tenferro_tensor_core import Dim, decisions, learned

__all__ = ["is_shown"]

_FACTORS: Final = (720, 12, 1)
"""Factors of all extents that stand for symbolic ones, tried in turn.

With a large one, parts of extents are whole numbers; with a small one, arrays of many axes are not too large.
"""


class _Extents(dict[str, int]):
    """Extents by name, chosen when they are first asked for: a factor times different primes."""

    def __init__(self, factor: int, known: Mapping[str, int] | None = None) -> None:
        super().__init__(known or {})
        self.factor = factor

    def __missing__(self, name: str) -> int:
        n = max(self.values(), default=6 * self.factor) // self.factor + 1
        while any(n % k == 0 for k in range(2, int(n**0.5) + 1)):
            n += 1
        self[name] = n * self.factor
        return self[name]

    def of(self, x: Any) -> Any:
        """Arguments of a step with numbers in place of symbols and of values."""
        if isinstance(x, (tuple, list)):
            return type(x)([self.of(part) for part in x])
        if isinstance(x, slice):
            return slice(self.of(x.start), self.of(x.stop), self.of(x.step))
        if hasattr(x, "__dim__"):
            x = x.__dim__()
        if isinstance(x, Dim):
            x = learned(x)
        if isinstance(x, Dim):
            return self.number(x)
        return 0 if isinstance(x, ValueBase) else x

    def number(self, d: Dim) -> int:
        """A number in place of a size."""
        return d.evaluate({name: self[name] for name in sorted(d.variables)})


def is_shown(x: Any, z: Any, contiguous: bool) -> bool:
    """Whether `z` shows the elements of `x`, a value that is not in memory, in another shape.

    Args:
        x: value.
        z: its elements in row-major order, in another shape.
        contiguous: whether elements are shown only if they follow each other in memory, as by `ravel`.

    Returns:
        True if NumPy copies nothing.
    """
    if x._view is None or (x.spec.ndim == 1 and not contiguous):  # one stride, which each shape shows
        return True
    given = decisions()
    for extents in (*map(_Extents, _FACTORS), _Extents(1, {} if given is None else given.examples)):
        with suppress(ValueError):  # an array is too large, or shapes fit for some sizes only, as those of the example
            return _is_shown(x, z, contiguous, extents)
    return False


def _is_shown(x: Any, z: Any, contiguous: bool, extents: _Extents) -> bool:
    base, steps = x._view
    raw = _stand_in(extents.of(base.spec.shape), base.spec.cplx)
    for step in steps:
        raw = step.raw(raw, *extents.of(step.args), **{k: extents.of(v) for k, v in step.named.items()})
    if contiguous or not raw.size:
        return bool(raw.flags.c_contiguous)
    if _fits(raw, (-1,)):  # elements at equal distances, which each shape shows
        return True
    shape = extents.of(z.spec.shape)
    if math.prod(shape) != raw.size:
        raise ValueError(f"{raw.shape} has not the size of {shape}")
    return _fits(raw, shape)


def _fits(raw: Any, shape: tuple[int, ...]) -> bool:
    try:
        np.reshape(raw, shape, copy=False)
    except ValueError:
        return False
    return True


def _stand_in(shape: tuple[int, ...], cplx: bool) -> Any:
    one = np.empty(1, np.complex64 if cplx else np.int8)
    strides, reach = [], one.itemsize
    for n in reversed(shape):
        strides.append(reach)
        reach *= max(n, 1)
    return as_strided(one, shape, strides[::-1])
