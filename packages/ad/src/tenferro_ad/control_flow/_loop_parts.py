"""The two parts of a loop's step: the forward part with its residuals, and the backward part.

Loop invariants are computed and saved once, before the loop.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any, NamedTuple

from tenferro_ad._attribution import blamed
from tenferro_ad._eager import wrap_many
from tenferro_ad._node import Vjp, make_node
from tenferro_ad._partition import Split, split_reverse
from tenferro_ad._zeros import zeros_in
from tenferro_ad.control_flow._deferred_products import DeferredProduct, with_deferred_products
from tenferro_ad.control_flow._free_operands import differentiating
from tenferro_ad.control_flow._loop import Loop
from tenferro_ad.control_flow._selection import selected
from tenferro_ad.control_flow._undo_log import UndoLog, versions, with_logs
from tenferro_runtime.control_flow import hoisted, invariants
from tenferro_runtime.extension import Builder, Program, optimise
from tenferro_runtime.ir import applied
from tenferro_runtime.passes.accumulate import accumulate_in_body
from tenferro_runtime.runtime import how_of
from tenferro_tensor.calls import Node

Source = tuple[str, int]
"""Where the backward part finds a residual.

``("once", i)`` among loop invariants, ``("row", i)`` among rows and stacked residuals, ``("operand", i)``,
``("carry", i)`` for a carry that it restores step by step, or ``("constant", v)`` for a constant of the first part.
"""


class ForwardPart(NamedTuple):
    """The first part of a step, and the sources of its residuals.

    Attributes:
        split: the two parts of the body.
        need: positions of operands that carry derivatives, in order, including those reached through the carry.
        active: which results of the loop carry a derivative.
        once: program from the constants to the loop invariants.
        body: maps the constants, the results of `once`, the carry and the slices to carry, rows and stacked residuals.
        sources: the source of each residual.
        restored: indices of the carries that the second part restores, as its last outputs.
    """

    split: Split
    need: tuple[int, ...]
    active: tuple[bool, ...]
    once: Program
    body: Program
    sources: tuple[Source, ...]
    restored: tuple[int, ...]


def forward_part(loop: Loop, need: tuple[int, ...]) -> ForwardPart:
    """The first part of a step for the derivatives of the operands at `need`; cached with the body."""
    memo, key = loop.body.memo, ("forward part", need, loop.consts, loop.carry)
    found: ForwardPart = memo.get(key) or memo.setdefault(key, _forward_part(loop, need))
    return found


def _forward_part(loop: Loop, need: tuple[int, ...]) -> ForwardPart:
    body, consts, carry = loop.body, loop.consts, loop.carry
    free = {*invariants(body, consts), *body.input_ids[consts + carry :], *versions(body, consts, carry)}
    while True:
        with differentiating(body, free, loop=True):
            split = split_reverse(body, need, whole=True, thin=False)
        spread = tuple(sorted({*need, *[consts + j for j in range(carry) if split.active[j]]}))
        if spread == need:
            break
        need = spread
    count = len(body.output_ids)
    split, used = _selected(split, consts, carry, count, range(carry))
    first = split.first
    ends = {log.versions[-1]: log.carry for log in used}
    once, rest, names = hoisted(first, consts)
    sources: list[Source] = []
    rows = list(rest.output_ids[carry:count])
    for old in first.output_ids[count:]:
        if old in ends:
            sources.append(("carry", ends[old]))
        elif old in first.input_ids and not consts <= first.input_ids.index(old) < consts + carry:
            sources.append(("operand", first.input_ids.index(old)))
        elif old in names:
            sources.append(("once", names[old]))
        elif old in first.constants:
            sources.append(("constant", old))
        else:
            if old not in rows:
                rows.append(old)
            sources.append(("row", rows.index(old)))
    rest = rest.with_(output_ids=(*rest.output_ids[:carry], *rows))
    # With zero steps the carry is returned unchanged, so a differentiated carry is active whatever the body does.
    active = (*[consts + k in need for k in range(carry)], *split.active[carry:])
    return ForwardPart(split, need, active, once, optimise(rest), tuple(sources), tuple([log.carry for log in used]))


def _selected(
    split: Split, consts: int, carry: int, count: int, which: Collection[int]
) -> tuple[Split, tuple[UndoLog, ...]]:
    """The parts of a step with the cheapest set of residuals, and the logs of carries that the second part restores."""
    first, logs = with_logs(split.first, consts, carry, which)
    there = {*invariants(first, consts), *first.input_ids[consts + carry :]}
    found, used = selected(split._replace(first=first), count, there, first.output_ids[carry:count], logs)
    restoring = [log.carry for log in used if log.restores]
    if len(restoring) < sum(bool(log.restores) for log in logs):
        return _selected(split, consts, carry, count, restoring)  # without the logs of the other carries
    return found, used


def by_source(**kinds: Sequence[Any]) -> dict[Source, Any]:
    """Values by source, from those of each kind."""
    return {(kind, i): v for kind, values in kinds.items() for i, v in enumerate(values)}


def recorded(
    loop: Loop, forward: ForwardPart, vjp: Vjp, outs: Sequence[Any], level: int, parents: tuple[Node, ...],
    saved: tuple[Any, ...],
) -> tuple[Any, ...]:  # fmt: skip
    """The results of a loop, of which those that carry a derivative are wrapped."""
    vjp.op = loop.op  # type: ignore[attr-defined]
    outs = tuple(outs[: len(forward.active)])
    wrapped = wrap_many(outs, level, make_node(blamed(vjp, outs[0]), parents, saved))
    return tuple([w if active else z for w, z, active in zip(wrapped, outs, forward.active)])


class BackwardPart(NamedTuple):
    """The second part of a step, for a subset of cotangents.

    Attributes:
        body: the body of the backward scan. Constants: the sources in `reads`. Carry: the cotangents of the carries in
            `moving`, the sums, and the restored carries. Slices: the cotangents of rows, and `sliced`.
        reads: sources that are constants of the backward scan.
        sliced: sources that are slices of the backward scan.
        moving: operands whose cotangents move from step to step.
        sums: constants whose cotangents are summed over the steps.
        slices: operands whose cotangents are its first rows.
        deferred: the other sums, which are computed after the loop.
    """

    body: Program
    reads: tuple[Source, ...]
    sliced: tuple[Source, ...]
    moving: tuple[int, ...]
    sums: tuple[int, ...]
    slices: tuple[int, ...]
    deferred: tuple[DeferredProduct, ...]


def backward_part(forward: ForwardPart, loop: Loop, there: tuple[bool, ...], *, defer: bool) -> BackwardPart:
    """The second part of a step, for the results of the loop marked by `there`; cached with the body.

    With `defer`, sums of products may be computed after the loop.
    """
    consts, carry = loop.consts, loop.carry
    memo, key = loop.body.memo, ("backward part", forward.need, consts, carry, there[carry:], defer)
    found: BackwardPart = memo.get(key) or memo.setdefault(key, _backward_part(forward, consts, carry, there, defer))
    return found


def _backward_part(forward: ForwardPart, consts: int, carry: int, there: tuple[bool, ...], defer: bool) -> BackwardPart:
    split, need, sources = forward.split, forward.need, tuple(dict.fromkeys(forward.sources))
    inputs, outputs = split.first.inputs, split.first.outputs
    sliced = tuple([s for s in sources if s[0] == "row" or (s[0] == "operand" and s[1] >= consts)])
    reads = tuple([s for s in sources if s not in sliced and s[0] not in ("constant", "carry")])
    specs = by_source(once=forward.once.outputs, operand=inputs, row=forward.body.outputs[carry:])
    second = split.seconds.get(split.active)
    reached = () if second is None else [need[k] for k in second.places]
    moving = tuple([i for i in need if consts <= i < consts + carry])
    builder = Builder()
    found: dict[Source, Any] = {s: split.first.constants[s[1]] for s in sources if s[0] == "constant"}
    found.update((s, builder.input(specs[s])) for s in reads)
    cts = {i - consts: builder.input(inputs[i]) for i in moving}
    sums = {i: builder.input(inputs[i]) for i in reached if i < consts}
    found.update((("carry", j), builder.input(inputs[consts + j])) for j in forward.restored)
    cts.update((k, builder.input(outputs[k])) for k, g in enumerate(there) if g and k >= carry)
    found.update((s, builder.input(specs[s])) for s in sliced)
    results: dict[int, Any] = {}
    before: tuple[Any, ...] = ()
    if second is not None:
        given = [cts[k] if k in cts else zeros_in(builder, outputs[k]) for k, a in enumerate(split.active) if a]
        pulled = applied(second.program, [*given, *[found[forward.sources[r]] for r in second.residuals]])
        results = dict(zip(reached, pulled))
        before = pulled[len(reached) :]
    slices = tuple([i for i in need if i >= consts + carry and i in results])
    outs = [results[i] if i in results else zeros_in(builder, inputs[i]) for i in moving]
    outs += [total + results[i] for i, total in sums.items()]
    outs += before
    # Accumulate into the sums in place, so that a step costs only what it reads.
    exact = how_of(split.first).exact
    body = optimise(builder.close([*outs, *[results[i] for i in slices]]))
    body = optimise(accumulate_in_body(body, in_turn=exact))
    deferred: tuple[DeferredProduct, ...] = ()
    if defer and not exact:
        body, deferred = with_deferred_products(body, len(reads), len(outs), dict(enumerate(sums, len(moving))))
    for product in deferred:
        del sums[product.operand]
    return BackwardPart(body, reads, sliced, moving, tuple(sums), slices, deferred)
