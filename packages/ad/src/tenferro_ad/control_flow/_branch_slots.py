"""Slots for values that branches return in addition to their outputs: branches share the slots of equal specs."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from tenferro_ad._zeros import zeros_in
from tenferro_runtime.extension import Builder, Program, optimise
from tenferro_runtime.ir import applied
from tenferro_tensor import Spec


def shared_slots(branches: Iterable[Sequence[Spec]]) -> tuple[list[Spec], list[tuple[int, ...]]]:
    """The specs of the slots, and for each branch the slots of its values.

    Args:
        branches: for each branch, the specs of its values.
    """
    specs: list[Spec] = []
    slots = []
    for values in branches:
        mine: list[int] = []
        for spec in values:
            slot = next((s for s, other in enumerate(specs) if other is spec and s not in mine), len(specs))
            if slot == len(specs):
                specs.append(spec)
            mine.append(slot)
        slots.append(tuple(mine))
    return specs, slots


def in_slots(branch: Program, count: int, slots: Sequence[int], specs: Sequence[Spec]) -> Program:
    """The branch with its values after `count` outputs in slots, and zeros in the slots of other branches."""
    builder = Builder()
    outs = applied(branch, [builder.input(s) for s in branch.inputs])
    held = dict(zip(slots, outs[count:]))
    rest = [held[s] if s in held else zeros_in(builder, spec) for s, spec in enumerate(specs)]
    return optimise(builder.close([*outs[:count], *rest]))
