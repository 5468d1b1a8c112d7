"""NumPy's `r_` and `c_`: arrays and ranges written as an index key, joined."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from tenferro_tensor.functions._listed import listed
from tenferro_tensor.functions.creation import arange, asarray, linspace
from tenferro_tensor.functions.dtypes import result_type
from tenferro_tensor.functions.joining import concat
from tenferro_tensor.functions.manipulation import permute_dims, reshape
from tenferro_tensor_core import ArgumentError

if TYPE_CHECKING:
    from tenferro_tensor._array import Array

__all__ = ["c_", "r_"]
__dir__ = __all__.copy


class JoiningKey:
    """An object whose index keys are joined: arrays, numbers, and slices, which are ranges.

    Args:
        axis: axis to join along.
        ndmin: number of axes that every part has at least.
        start: where the axes of a part with fewer axes go among them; -1 for last.
    """

    def __init__(self, axis: int, ndmin: int, start: int) -> None:
        self._form = axis, ndmin, start

    def __getitem__(self, key: Any, /) -> Array:
        """Join the parts of a key.

        A slice ``a:b:c`` is ``arange(a, b, c)``, and with an imaginary step ``a:b:5j`` is ``linspace(a, b, 5)``. A
        string in front replaces the numbers of the constructor: ``r_["0,2", x, y]``.
        """
        parts = key if key.__class__ is tuple else (key,)
        axis, ndmin, start = self._form
        if parts and isinstance(parts[0], str):
            axis, ndmin, start = _numbers(parts[0], (0, 1, -1))
            parts = parts[1:]
        arrays = [part if _is_number(part) else _part(part) for part in parts]
        common = result_type(*arrays) if any(map(_is_number, arrays)) and arrays else None
        arrays = [asarray(a, dtype=common) if _is_number(a) else a for a in arrays]
        return concat([_with_axes(a, ndmin, start) for a in arrays], axis=axis)

    def __repr__(self) -> str:
        return "tr.c_" if self is c_ else "tr.r_"


def _is_number(part: Any) -> bool:
    return isinstance(part, (int, float, complex))


def _part(part: Any) -> Any:
    if not isinstance(part, slice):
        return listed(part)
    first = 0 if part.start is None else part.start
    if isinstance(part.step, complex):
        return linspace(first, part.stop, int(abs(part.step)))
    return arange(first, part.stop, 1 if part.step is None else part.step)


def _with_axes(x: Any, ndmin: int, start: int) -> Any:
    missing = ndmin - x.spec.ndim
    if missing <= 0:
        return x
    at = start if start >= 0 else start + missing + 1
    order = range(ndmin)
    wide = reshape(x, (1,) * missing + tuple(x.shape))
    return permute_dims(wide, (*order[:at], *order[missing:], *order[at:missing]))


def _numbers(text: str, usual: tuple[int, int, int]) -> tuple[int, int, int]:
    """The numbers of a string in front of a key."""
    try:
        given = tuple([int(number) for number in text.split(",")])
    except ValueError:
        given = ()
    if not 0 < len(given) <= len(usual):
        raise ArgumentError(
            f'the string in front of the parts is "axis", "axis,ndmin" or "axis,ndmin,start", not {text!r}; '
            "matrices are arrays with two axes: reshape the result",
            given=text,
        )
    axis, ndmin, start = given + usual[len(given) :]
    return axis, ndmin, start


r_: Final = JoiningKey(0, 1, -1)
"""Join the parts of a key along the first axis, as NumPy's `r_` does.

>>> tr.r_[tr.asarray([1, 2]), 0, 4:6]
Tensor([1, 2, 0, 4, 5])
"""

c_: Final = JoiningKey(-1, 2, 0)
"""Join the parts of a key along the last axis, vectors as columns, as NumPy's `c_` does.

>>> tr.c_[tr.asarray([1, 2]), tr.asarray([3, 4])]
Tensor([[1, 3],
        [2, 4]])
"""
