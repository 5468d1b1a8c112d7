"""Derivatives of primitives that apply a program inside, by their rule `Within`."""

from __future__ import annotations

from typing import Any, NamedTuple

from tenferro_ad._dual import JVP_RULES_BY_RULE, dual
from tenferro_ad._eager import wrap_many
from tenferro_ad._node import make_node
from tenferro_ad._partition import Split, split_forward, split_reverse
from tenferro_ad._record import RECORDERS_BY_RULE
from tenferro_ad._zeros import full
from tenferro_runtime.extension import Program, Within
from tenferro_runtime.ir import kept
from tenferro_tensor import Op, Spec
from tenferro_tensor.calls import Node

Role = tuple[str, int]


class _Divided(NamedTuple):
    """The parts of a derivative.

    Attributes:
        split: the program in parts.
        first: the op of the first part.
        slots: where each residual of the split comes from: an output of `first`, an operand, or another input of the
            program.
    """

    split: Split
    first: Op
    slots: tuple[Role, ...]


@kept
def _parts(program: Program, rule: Within, op: Op, count: int, need: tuple[int, ...], mode: str) -> _Divided:
    """The parts of the program of an op for its operands at `need`, among `count`."""
    leading = len(program.inputs) - count
    inside = tuple([i + leading for i in need])
    split = split_reverse(program, inside) if mode == "reverse" else split_forward(program, inside, {})
    return _without_operands(rule, op, split, leading)


def _without_operands(rule: Within, op: Op, split: Split, leading: int) -> _Divided:
    """The parts, without the residuals that are operands or inputs."""
    count, program = len(split.active), split.first
    kept: list[int] = []
    slots: list[Role] = []
    for v in program.output_ids[count:]:
        if v in program.input_ids:
            i = program.input_ids.index(v)
            slots.append(("operand", i - leading) if i >= leading else ("input", i))
        else:
            slots.append(("residual", len(kept)))
            kept.append(v)
    first = program.with_(output_ids=(*program.output_ids[:count], *kept))
    return _Divided(split, rule.first(op, first), tuple(slots))


@kept
def _second(program: Program, rule: Within, op: Op, first: Op, ins: tuple[Role, ...], outs: tuple[Role, ...]) -> Op:
    """The op of a second part."""
    second: Op = rule.second(op, first, program, ins, outs)
    return second


def _read(parts: _Divided, key: Any) -> list[Role]:
    return [parts.slots[j] for j in parts.split.seconds[key].residuals]


def _values(roles: list[Role], residuals: Any, operands: Any) -> list[Any]:
    return [residuals[i] if kind == "residual" else operands[i] for kind, i in roles if kind != "input"]


def record_within(rule: Within, op: Op, level: int, lower: list[Any], need: tuple[int, ...], parents: Any) -> Any:
    """Run the first part, and save the residuals and the operands that second parts read."""
    parts = _parts(op.params[rule.program], rule, op, len(lower), need, "reverse")
    active = parts.split.active
    if not any(active):
        return op(*lower)
    found = parts.first(*lower)
    count = len(active)
    outs, residuals = found[:count], found[count:]
    reads = sorted({i for kind, i in parts.slots if kind == "operand"})
    specs: list[Spec] = [z.spec for z in outs]

    def pull(gs: list[Any], saved: tuple[Any, ...]) -> list[Any]:
        there = tuple([g is not None for g in gs])
        results: list[Any] = [None] * len(need)
        if there not in parts.split.seconds:
            there = active
        second = parts.split.seconds[there]
        if not second.places:
            return results
        given = [k for k, wanted in enumerate(there) if wanted]
        cts = [full(specs[k], 0) if gs[k] is None else gs[k] for k in given]
        roles = _read(parts, there)
        held = dict(zip(reads, saved[len(residuals) :], strict=True))
        ins = (*[("output", k) for k in given], *roles)
        back = _second(second.program, rule, op, parts.first, ins, tuple([("operand", need[i]) for i in second.places]))
        for i, c in zip(second.places, back(*cts, *_values(roles, saved, held)), strict=True):
            results[i] = c
        return results

    pull.op = op  # type: ignore[attr-defined]
    node: Node = make_node(pull, parents, (*residuals, *[lower[i] for i in reads]))
    wrapped = wrap_many(outs, level, node)
    return tuple([w if there else z for w, z, there in zip(wrapped, outs, active, strict=True)])


def push_within(rule: Within, op: Op, level: int, lower: list[Any], need: tuple[int, ...], tangents: list[Any]) -> Any:
    """Run the part of the values, then the part of the tangents."""
    parts = _parts(op.params[rule.program], rule, op, len(lower), need, "forward")
    count = len(parts.split.active)
    found = parts.first(*lower)
    outs, residuals = found[:count], found[count:]
    second = parts.split.seconds[()]
    if not second.places:
        return outs
    roles = _read(parts, ())
    ins = (*[("operand", i) for i in need], *roles)
    moved = _second(second.program, rule, op, parts.first, ins, tuple([("output", k) for k in second.places]))
    slopes = dict(zip(second.places, moved(*tangents, *_values(roles, residuals, lower)), strict=True))
    return tuple([dual(z, slopes[k], level) if k in slopes else z for k, z in enumerate(outs)])


RECORDERS_BY_RULE[Within] = record_within
JVP_RULES_BY_RULE[Within] = push_within
