"""Derivatives of `cond`: a `cond` over the derivatives of the branches."""

from __future__ import annotations

from typing import Any, Final, NamedTuple

from tenferro_ad._dual import JVP_RULES, dual
from tenferro_ad._eager import wrap_many
from tenferro_ad._node import make_node
from tenferro_ad._partition import Second, Split, split_reverse
from tenferro_ad._record import RECORDERS
from tenferro_ad._zeros import zeros_beside
from tenferro_ad.control_flow._free_operands import free_operands, free_operands_of
from tenferro_ad.control_flow._pushed import outranked, pushed_program
from tenferro_ad.control_flow._selection import selected
from tenferro_runtime.control_flow.primitives import cond
from tenferro_runtime.extension import Program, optimise
from tenferro_runtime.ir import applied, kept, without_effects
from tenferro_runtime.passes.schedule import weight
from tenferro_runtime.tracing import staged
from tenferro_tensor import Op, Spec
from tenferro_tensor.calls import Node

CHEAP_OPERAND_MAX_BYTES: Final = 16
"""Operands up to this size count as free: the backward pass saves them instead of values derived from them."""


class _Choice(NamedTuple):
    """The branches in two parts.

    Attributes:
        firsts: first parts, from the operands to the outputs, then the residuals.
        active: which outputs carry a derivative in some branch.
        splits: the parts of each branch.
        slots: for each branch, the index in `firsts` of each of its residuals; a negative number ``~i`` means operand
            ``i``.
    """

    firsts: tuple[Program, ...]
    active: tuple[bool, ...]
    splits: tuple[Split, ...]
    slots: tuple[tuple[int, ...], ...]


@kept
def _split(_: Program, branches: tuple[Program, ...], need: tuple[int, ...], free: frozenset[int]) -> _Choice:
    splits = tuple([_split_branch(branch, need, free) for branch in branches])
    count = len(branches[0].output_ids)
    # Branches share the slots of residuals of equal spec; operands need no slots.
    specs: list[Spec] = []
    slots: list[tuple[int, ...]] = []
    for split in splits:
        unused = list(range(len(specs)))
        mine = []
        for v in split.first.output_ids[count:]:
            if v in split.first.input_ids:
                mine.append(~split.first.input_ids.index(v))
                continue
            spec = split.first.specs[v]
            slot = next((i for i in unused if specs[i] is spec), None)
            if slot is None:
                slot = len(specs)
                specs.append(spec)
            else:
                unused.remove(slot)
            mine.append(slot)
        slots.append(tuple(mine))
    firsts = tuple([_first(split, count, mine, specs) for split, mine in zip(splits, slots)])
    active = tuple([any(split.active[k] for split in splits) for k in range(count)])
    return _Choice(firsts, active, splits, tuple(slots))


def _split_branch(branch: Program, need: tuple[int, ...], free: frozenset[int]) -> Split:
    """The parts of a branch, with the cheapest set of residuals.

    Only `free` and small operands count as free: an enclosing loop would have to stack the others.
    """
    with free_operands_of(branch, {*branch.constants, *[branch.input_ids[i] for i in free]}):
        split = split_reverse(branch, need, whole=True, thin=False)
    first = split.first
    small = [v for v in first.input_ids if weight(first.specs[v], first.examples) <= CHEAP_OPERAND_MAX_BYTES]
    return selected(split, len(branch.output_ids), {*small, *[first.input_ids[i] for i in free]})[0]


def _first(split: Split, count: int, slots: tuple[int, ...], specs: list[Spec]) -> Program:
    """The first part of a branch with its residuals in the shared slots, and zeros in the other slots."""

    def outputs(*xs: Any) -> list[Any]:
        found = applied(split.first, xs)
        residuals = {slot: value for slot, value in zip(slots, found[count:]) if slot >= 0}
        rest = [residuals[i] if i in residuals else zeros_beside(xs[0], spec) for i, spec in enumerate(specs)]
        return [*found[:count], *rest]

    return optimise(staged(outputs, split.first.inputs).program)


class _Backward(NamedTuple):
    """The second parts of the branches for a subset of cotangents.

    Attributes:
        branches: programs of the residuals, the operands at `kept`, and the cotangents.
        kept: positions of the operands that they read.
        places: index in `need` of each of their outputs.
    """

    branches: tuple[Program, ...]
    kept: tuple[int, ...]
    places: tuple[int, ...]


@kept
def _backward(
    first: Program,
    branches: tuple[Program, ...],
    need: tuple[int, ...],
    free: frozenset[int],
    there: tuple[bool, ...],
) -> _Backward:
    choice = _split(first, branches, need, free)
    kept = tuple(sorted({~slot for slots in choice.slots for slot in slots if slot < 0}))
    at = [i for i, g in enumerate(there) if g]
    pulling = [split.seconds[split.active] if any(split.active[i] for i in at) else None for split in choice.splits]
    places = tuple(sorted({i for second in pulling if second is not None for i in second.places}))
    inputs, outputs = choice.firsts[0].inputs, choice.firsts[0].outputs

    def program(split: Split, slots: tuple[int, ...], second: Second | None) -> Program:
        def pulled(*xs: Any) -> list[Any]:
            residuals, operands = xs[: len(outputs) - len(there)], dict(zip(kept, xs[len(outputs) - len(there) :]))
            given, found = dict(zip(at, xs[len(xs) - len(at) :])), {}
            if second is not None:
                mine = [i for i, active in enumerate(split.active) if active]
                cts = [given[i] if i in given else zeros_beside(xs[0], outputs[i]) for i in mine]
                read = [slots[r] for r in second.residuals]
                rest = [residuals[slot] if slot >= 0 else operands[~slot] for slot in read]
                found = dict(zip(second.places, applied(second.program, [*cts, *rest])))
            return [found[i] if i in found else zeros_beside(xs[0], inputs[need[i]]) for i in places]

        specs = [*outputs[len(there) :], *[inputs[i] for i in kept], *[outputs[i] for i in at]]
        return optimise(staged(pulled, specs).program)

    return _Backward(tuple(map(program, choice.splits, choice.slots, pulling)), kept, places)


def _record(op: Op, level: int, lower: list[Any], need: tuple[int, ...], parents: tuple[Node, ...]) -> Any:
    """Run the first parts; save the index, the residuals and the operands that second parts read."""
    branches = op.params["branches"]
    index, *operands = lower
    wanted = tuple([i - 1 for i in need])  # the index is an integer or a boolean, and never differentiated
    free = free_operands(op)
    choice = _split(branches[0], branches, wanted, free)
    if not any(choice.active):
        return op(*lower)
    found = cond(index, *operands, branches=choice.firsts)
    count = len(choice.active)
    outs, residuals = found[:count], found[count:]
    kept = sorted({~slot for slots in choice.slots for slot in slots if slot < 0})
    saved = (index, *residuals, *[operands[i] for i in kept])

    def pull(gs: list[Any], saved: tuple[Any, ...]) -> list[Any]:
        back = _backward(branches[0], branches, wanted, free, tuple([g is not None for g in gs]))
        results: list[Any] = [None] * len(need)
        if back.places:
            cts = cond(*saved, *[g for g in gs if g is not None], branches=back.branches)
            for i, c in zip(back.places, cts):
                results[i] = c
        return results

    pull.op = op  # type: ignore[attr-defined]
    wrapped = wrap_many(outs, level, make_node(pull, parents, saved))
    return tuple([w if active else z for w, z, active in zip(wrapped, outs, choice.active)])


def _push(op: Op, level: int, lower: list[Any], need: tuple[int, ...], tangents: list[Any]) -> Any:
    """A `cond` over branches of values and tangents."""
    branches, apart = op.params["branches"], outranked(lower, tangents)
    if apart:
        branches = tuple([without_effects(branch) for branch in branches])
    wanted = tuple([i - 1 for i in need])
    active = {k for branch in branches for k in pushed_program(branch, wanted).active}
    forced = tuple(sorted(active))
    programs = tuple([pushed_program(branch, wanted, forced).program for branch in branches])
    found = cond(*lower, *tangents, branches=programs)
    count = len(branches[0].output_ids)
    outs = op(*lower) if apart else found[:count]
    moved = dict(zip(forced, found[count:]))
    return tuple([dual(z, moved[k], level) if k in moved else z for k, z in enumerate(outs)])


RECORDERS[cond] = _record
JVP_RULES[cond] = _push
