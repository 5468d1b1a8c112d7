"""Whether iterations of two loops may access the same memory."""

from __future__ import annotations

from collections.abc import Mapping, Set
from typing import TypeAlias

from tenferro_tensor.loop_ir import Affine, Reg
from tenferro_tensor_core import Dim, DimLike, always

Extents: TypeAlias = Mapping[int, DimLike]
"""Extents of counted loops, by number of their index."""


def meet_elsewhere(a: Affine, b: Affine, index: Reg, inside: Set[int], extents: Extents) -> bool:
    """Whether one address may equal another one in a different iteration.

    Args:
        a: an address.
        b: another address.
        index: the index of both loops.
        inside: numbers of registers whose values differ between iterations.
        extents: extents of loops.
    """
    step, other = a.coefficient(index), b.coefficient(index)
    rest = _range(a, b, index, inside, extents)
    if rest is None:
        return True
    low, high = rest
    if step == other and not (step.__class__ is int and step == 0):
        if not _at_least(step, 0):
            step = -step
        if _at_least(step, 0) and _at_least(step - 1, high) and _at_least(low, 1 - step):
            return False
    return not apart(a, b, {*inside, index.number}, extents)


def apart(a: Affine, b: Affine, inside: Set[int], extents: Extents) -> bool:
    """Whether two addresses always differ, for all values of the registers inside."""
    rest = _range(a, b, None, inside, extents)
    return rest is not None and (_at_least(rest[0], 1) or _at_least(-1, rest[1]))


def _range(
    a: Affine, b: Affine, index: Reg | None, inside: Set[int], extents: Extents
) -> tuple[DimLike, DimLike] | None:
    """Bounds of the difference of two addresses, without the terms of the index."""
    low: DimLike = a.constant - b.constant
    high = low
    outside = a - b
    terms = [(reg, by) for reg, by in outside.terms if reg.number not in inside]
    terms += [(reg, by) for reg, by in a.terms if reg.number in inside]
    terms += [(reg, -by) for reg, by in b.terms if reg.number in inside]
    for reg, by in terms:
        if index is not None and reg.number == index.number:
            continue
        extent = extents.get(reg.number)
        if extent is None:
            return None
        if _at_least(by, 0):
            high = high + (extent - 1) * by
        elif _at_least(0, by):
            low = low + (extent - 1) * by
        else:
            return None
    return low, high


def _at_least(a: DimLike, b: DimLike) -> bool:
    """Whether an extent is certainly at least another one."""
    d = a - b
    if not isinstance(d, Dim):
        return d >= 0
    return (d.lower is not None and d.lower >= 0) or always(d, ">=", 0)
