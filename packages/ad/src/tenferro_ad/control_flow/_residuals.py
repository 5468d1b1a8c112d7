"""The two parts of a loop's step: the forward part with its residuals, and the backward part.

Loop invariants are computed and saved once, before the loop.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any, NamedTuple

from tenferro_ad._partition import Split, split_reverse
from tenferro_ad._zeros import zeros_beside
from tenferro_ad.control_flow._deferring import Deferred, deferred
from tenferro_ad.control_flow._free_operands import free_operands_of, in_a_loop
from tenferro_ad.control_flow._selection import selected
from tenferro_ad.control_flow._undoing import CarryChain, versions, with_logs
from tenferro_runtime.control_flow import hoisted, invariants
from tenferro_runtime.extension import Program, optimise
from tenferro_runtime.ir import applied, kept
from tenferro_runtime.passes.accumulate import accumulate_in_body
from tenferro_runtime.runtime import how_of
from tenferro_runtime.tracing import staged


class LoopForward(NamedTuple):
    """The first part of a loop, and the sources of its residuals.

    Attributes:
        split: the two parts of the body.
        need: positions of operands that carry derivatives, in order, including those reached through the carry.
        once: program from the constants to the loop invariants.
        body: maps the constants, the results of `once`, the carry and the slices to carry, rows and stacked residuals.
        sources: source of each residual of the body: ``("once", i)``, ``("row", i)`` among rows and stacked
            residuals, ``("operand", i)``, ``("carry", i)`` for a carry that the backward pass restores step by step, or
            ``("constant", v)`` for a constant of the first part.
        restored: indices of the carries that the second part restores, as its last outputs.
    """

    split: Split
    need: tuple[int, ...]
    once: Program
    body: Program
    sources: tuple[tuple[str, int], ...]
    restored: tuple[int, ...]


@kept
def forward_of(body: Program, consts: int, carry: int, need: tuple[int, ...]) -> LoopForward:
    """The first part of a loop.

    Args:
        body: the body of a scan.
        consts: number of constants.
        carry: number of carries.
        need: positions of operands that carry derivatives.
    """
    free = {*invariants(body, consts), *body.input_ids[consts + carry :]}
    while True:
        with in_a_loop(), free_operands_of(body, {*free, *versions(body, consts, carry)}):
            split = split_reverse(body, need, whole=True, thin=False)
        spread = {*need, *[consts + j for j in range(carry) if split.active[j]]}
        if len(spread) == len(need):
            break
        need = tuple(sorted(spread))
    count = len(body.output_ids)
    split, used = _selected(split, consts, carry, count, range(carry))
    first = split.first
    ends = {chain.versions[-1]: chain.carry for chain in used}
    once, rest, names = hoisted(first, consts)
    sources: list[tuple[str, int]] = []
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
    return LoopForward(split, need, once, optimise(rest), tuple(sources), tuple([chain.carry for chain in used]))


def _selected(
    split: Split, consts: int, carry: int, count: int, which: Collection[int]
) -> tuple[Split, tuple[CarryChain, ...]]:
    """The parts of a step with the cheapest set of residuals, and the carries that the second part restores."""
    first, chains = with_logs(split.first, consts, carry, which)
    there = {*invariants(first, consts), *first.input_ids[consts + carry :]}
    found, used = selected(split._replace(first=first), count, there, first.output_ids[carry:count], chains)
    restoring = [chain.carry for chain in used if chain.restores]
    if len(restoring) < sum(bool(chain.restores) for chain in chains):
        return _selected(split, consts, carry, count, restoring)  # without the logs of the other carries
    return found, used


class LoopBackward(NamedTuple):
    """The second part of a loop, for a subset of cotangents.

    Attributes:
        body: the body of the backward scan. Constants: the sources in `reads`. Carry: the cotangents of the carry, the
            cotangent sums of constants, and the restored carries. Slices: the cotangents of rows, and `sliced`.
        reads: sources that are constants of the backward scan, as ``(kind, i)``.
        sliced: sources that are slices of the backward scan.
        sums: constants whose cotangents are summed over the steps, in the order of their carries.
        slices: operands whose cotangents are its first rows.
        deferred: sums of products that are computed after the loop.
    """

    body: Program
    reads: tuple[tuple[str, int], ...]
    sliced: tuple[tuple[str, int], ...]
    sums: tuple[int, ...]
    slices: tuple[int, ...]
    deferred: tuple[Deferred, ...]


@kept
def backward_of(
    body: Program, consts: int, carry: int, need: tuple[int, ...], there: tuple[bool, ...], defer: bool
) -> LoopBackward:
    """The second part of a loop.

    Args:
        body: the body of the scan.
        consts: number of constants.
        carry: number of carries.
        need: positions of operands that carry derivatives.
        there: which rows have cotangents.
        defer: whether sums of products may be computed after the loop.
    """
    forward = forward_of(body, consts, carry, need)
    split, need, _, _, sources, restored = forward
    inputs, outputs = split.first.inputs, split.first.outputs
    sliced = [s for s in dict.fromkeys(sources) if s[0] == "row" or (s[0] == "operand" and s[1] >= consts)]
    reads = [s for s in dict.fromkeys(sources) if s not in sliced and s[0] not in ("constant", "carry")]
    second = split.seconds.get(split.active)
    reached = () if second is None else [need[k] for k in second.places]
    moving = [i for i in need if consts <= i < consts + carry]
    sums = tuple([i for i in reached if i < consts])
    slices = tuple([i for i in need if i >= consts + carry and i in reached])
    specs = {
        **{(kind, i): (forward.once.outputs if kind == "once" else inputs)[i] for kind, i in reads},
        **{("cotangent", i - consts): inputs[i] for i in moving},
        **{("sum", i): inputs[i] for i in sums},
        **{("carry", j): inputs[consts + j] for j in restored},
        **{("cotangent", carry + k): outputs[carry + k] for k, g in enumerate(there) if g},
        **{(kind, i): (forward.body.outputs[carry:] if kind == "row" else inputs)[i] for kind, i in sliced},
    }

    def pulled(*xs: Any) -> list[Any]:
        found: dict[tuple[str, int], Any] = dict(zip(specs, xs))
        found.update({s: split.first.constants[s[1]] for s in sources if s[0] == "constant"})
        results: dict[int, Any] = {}
        before: tuple[Any, ...] = ()
        if second is not None:
            cts = [("cotangent", k) for k, active in enumerate(split.active) if active]
            given = [found[ct] if ct in found else zeros_beside(xs[0], outputs[ct[1]]) for ct in cts]
            outs = applied(second.program, [*given, *[found[sources[r]] for r in second.residuals]])
            results, before = dict(zip(reached, outs)), outs[len(reached) :]
        carried = [results[i] if i in results else zeros_beside(xs[0], inputs[i]) for i in moving]
        return [*carried, *[found["sum", i] + results[i] for i in sums], *before, *[results[i] for i in slices]]

    # Accumulate into the sums in place, so that a step costs only what it reads.
    exact = how_of(split.first).exact
    body = optimise(staged(pulled, [*specs.values()]).program)
    body = optimise(accumulate_in_body(body, in_turn=exact))
    late: tuple[Deferred, ...] = ()
    if defer and not exact:
        outs = len(body.output_ids) - len(slices)
        body, late = deferred(body, len(reads), outs, range(len(moving), len(moving) + len(sums)))
    return LoopBackward(body, tuple(reads), tuple(sliced), sums, slices, late)
