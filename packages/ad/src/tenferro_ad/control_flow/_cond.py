"""Derivatives of `cond`: a `cond` over the derivatives of the branches."""

from __future__ import annotations

from typing import Any, Final, NamedTuple

from tenferro_ad._dual import JVP_RULES, dual
from tenferro_ad._eager import wrap_many
from tenferro_ad._node import make_node
from tenferro_ad._partition import Split, split_reverse
from tenferro_ad._record import RECORDERS
from tenferro_ad._zeros import zeros_in
from tenferro_ad.control_flow._branch_slots import in_slots, shared_slots
from tenferro_ad.control_flow._forward_program import forward_program, outranked
from tenferro_ad.control_flow._free_operands import differentiating, free_operands
from tenferro_ad.control_flow._selection import selected
from tenferro_runtime.control_flow.primitives import cond
from tenferro_runtime.extension import Builder, Program, optimise
from tenferro_runtime.ir import applied, without_effects
from tenferro_runtime.passes.schedule import weight
from tenferro_tensor import Op
from tenferro_tensor.calls import Node

CHEAP_OPERAND_MAX_BYTES: Final = 16
"""Operands up to this size count as free: the backward pass saves them instead of values derived from them."""


class _Choice(NamedTuple):
    """The branches in two parts.

    Attributes:
        splits: the parts of each branch.
        firsts: first parts, from the operands to the outputs, then the values of the slots that branches share.
        active: which outputs carry a derivative in some branch.
        kept: positions of the operands that second parts read.
        residuals: for each branch, the index of each residual among the slots, then the kept operands.
    """

    splits: tuple[Split, ...]
    firsts: tuple[Program, ...]
    active: tuple[bool, ...]
    kept: tuple[int, ...]
    residuals: tuple[tuple[int, ...], ...]


def _choice(branches: tuple[Program, ...], need: tuple[int, ...], free: frozenset[int]) -> _Choice:
    memo, key = branches[0].memo, ("cond", branches, need, free)
    found: _Choice | None = memo.get(key)
    return memo.setdefault(key, _split(branches, need, free)) if found is None else found


def _split(branches: tuple[Program, ...], need: tuple[int, ...], free: frozenset[int]) -> _Choice:
    splits = tuple([_split_branch(branch, need, free) for branch in branches])
    count = len(branches[0].output_ids)
    active = tuple([any(split.active[k] for split in splits) for k in range(count)])
    positions = [{v: i for i, v in enumerate(split.first.input_ids)} for split in splits]
    residuals = [split.first.output_ids[count:] for split in splits]
    kept = tuple(sorted({at[v] for at, vs in zip(positions, residuals) for v in vs if v in at}))
    stored = [[v for v in vs if v not in at] for at, vs in zip(positions, residuals)]
    specs, slots = shared_slots([[split.first.specs[v] for v in vs] for split, vs in zip(splits, stored)])
    firsts, indices = [], []
    for split, at, vs, mine, places in zip(splits, positions, residuals, stored, slots):
        first = split.first.with_(output_ids=(*split.first.output_ids[:count], *mine))
        firsts.append(in_slots(first, count, places, specs))
        slot_of = dict(zip(mine, places))
        indices.append(tuple([len(specs) + kept.index(at[v]) if v in at else slot_of[v] for v in vs]))
    return _Choice(splits, tuple(firsts), active, kept, tuple(indices))


def _split_branch(branch: Program, need: tuple[int, ...], free: frozenset[int]) -> Split:
    """The parts of a branch, with the cheapest set of residuals.

    Only `free` and small operands count as free: an enclosing loop would have to stack the others.
    """
    with differentiating(branch, {*branch.constants, *[branch.input_ids[i] for i in free]}):
        split = split_reverse(branch, need, whole=True, thin=False)
    first = split.first
    small = [v for v in first.input_ids if weight(first.specs[v], first.examples) <= CHEAP_OPERAND_MAX_BYTES]
    return selected(split, len(branch.output_ids), {*small, *[first.input_ids[i] for i in free]})[0]


def _backward(
    branches: tuple[Program, ...], need: tuple[int, ...], free: frozenset[int], there: tuple[bool, ...]
) -> tuple[tuple[Program, ...], tuple[int, ...]]:
    """The second parts of the branches, for a subset of cotangents, and the index in `need` of each of their outputs.

    They are programs of the slots, the kept operands, and the cotangents.
    """
    memo, key = branches[0].memo, ("cond backward", branches, need, free, there)
    found: tuple[tuple[Program, ...], tuple[int, ...]] | None = memo.get(key)
    if found is None:
        choice = _choice(branches, need, free)
        opened = [_second(choice, k, there) for k in range(len(branches))]
        places = tuple(sorted({i for _, cts in opened for i in cts}))
        specs = [branches[0].inputs[need[i]] for i in places]
        programs = [
            optimise(builder.close([cts[i] if i in cts else zeros_in(builder, s) for i, s in zip(places, specs)]))
            for builder, cts in opened
        ]
        found = memo.setdefault(key, (tuple(programs), places))
    return found


def _second(choice: _Choice, k: int, there: tuple[bool, ...]) -> tuple[Builder, dict[int, Any]]:
    """The builder of the second part of branch `k`, and its cotangents by index in `need`."""
    split, outputs = choice.splits[k], choice.firsts[k].outputs
    builder = Builder()
    kept = [split.first.inputs[i] for i in choice.kept]
    values = [builder.input(s) for s in (*outputs[len(there) :], *kept)]
    given = {i: builder.input(outputs[i]) for i, g in enumerate(there) if g}
    mine = [i for i, active in enumerate(split.active) if active]
    if not any(i in given for i in mine):
        return builder, {}
    second = split.seconds[split.active]
    cts = [given[i] if i in given else zeros_in(builder, outputs[i]) for i in mine]
    residuals = [values[choice.residuals[k][r]] for r in second.residuals]
    return builder, dict(zip(second.places, applied(second.program, [*cts, *residuals])))


def _record(op: Op, level: int, lower: list[Any], need: tuple[int, ...], parents: tuple[Node, ...]) -> Any:
    """Run the first parts; save the index, the slots and the kept operands."""
    branches = op.params["branches"]
    wanted = tuple([i - 1 for i in need])  # the index is an integer or a boolean, and never differentiated
    free = free_operands(op)
    choice = _choice(branches, wanted, free)
    if not any(choice.active):
        return op(*lower)
    found = cond(*lower, branches=choice.firsts)
    count = len(choice.active)
    saved = (lower[0], *found[count:], *[lower[1 + i] for i in choice.kept])

    def vjp(gs: list[Any], saved: tuple[Any, ...]) -> list[Any]:
        seconds, places = _backward(branches, wanted, free, tuple([g is not None for g in gs]))
        cts = cond(*saved, *[g for g in gs if g is not None], branches=seconds) if places else ()
        results = dict(zip(places, cts))
        return [results.get(k) for k in range(len(need))]

    vjp.op = op  # type: ignore[attr-defined]
    wrapped = wrap_many(found[:count], level, make_node(vjp, parents, saved))
    return tuple([w if active else z for w, z, active in zip(wrapped, found, choice.active)])


def _jvp(op: Op, level: int, lower: list[Any], need: tuple[int, ...], tangents: list[Any]) -> Any:
    """A `cond` over branches of values and tangents."""
    branches, apart = op.params["branches"], outranked(lower, tangents)
    if apart:
        branches = tuple([without_effects(branch) for branch in branches])
    wanted = tuple([i - 1 for i in need])
    active = {k for branch in branches for k in forward_program(branch, wanted).active}
    forced = tuple(sorted(active))
    programs = tuple([forward_program(branch, wanted, forced).program for branch in branches])
    found = cond(*lower, *tangents, branches=programs)
    count = len(branches[0].output_ids)
    outs = op(*lower) if apart else found[:count]
    moved = dict(zip(forced, found[count:]))
    return tuple([dual(z, moved[k], level) if k in moved else z for k, z in enumerate(outs)])


RECORDERS[cond] = _record
JVP_RULES[cond] = _jvp
