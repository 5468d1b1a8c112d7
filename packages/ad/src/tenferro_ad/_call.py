"""Derivatives of `call`: one node in reverse mode, two calls in forward mode."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tenferro_ad._dual import JVP_RULES, dual
from tenferro_ad._eager import wrap_many
from tenferro_ad._node import make_node
from tenferro_ad._partition import Second, Split, split_forward, split_reverse
from tenferro_ad._record import RECORDERS
from tenferro_ad._zeros import full
from tenferro_runtime.extension import call
from tenferro_runtime.ir import chosen, filled, named, sizes_for
from tenferro_tensor import Op
from tenferro_tensor.calls import Node
from tenferro_tensor_core import DimLike

Sizes = Mapping[str, DimLike]


def record_call(op: Op, level: int, lower: list[Any], need: tuple[int, ...], parents: tuple[Node, ...]) -> Any:
    """Run the forward part and save the residuals for the backward part."""
    program = op.params["program"]
    sizes: Sizes = named(program, sizes_for(program, [x.spec for x in lower], op.params["sizes"]))
    split = split_reverse(program, need, sizes)
    outs, residuals, sizes = run_first(split, lower, sizes)
    if not any(split.active):
        return outs

    def pull(gs: list[Any], saved: tuple[Any, ...]) -> list[Any]:
        return pull_second(split, gs, saved, len(need), sizes)

    pull.op = op  # type: ignore[attr-defined]
    node = make_node(pull, parents, residuals)
    wrapped = wrap_many(outs, level, node)
    return tuple([w if there else z for w, z, there in zip(wrapped, outs, split.active)])


def run_first(split: Split, lower: list[Any], sizes: Sizes) -> tuple[Any, Any, Sizes]:
    """Run the first part: its outputs, its residuals, and all sizes including the data-dependent ones."""
    count, late = len(split.active), len(split.active) + len(split.late)
    if not split.late:
        found = call(*lower, program=split.first, sizes=chosen(split.first, sizes))
    else:
        found = split.first.run(*lower)
        values = zip(split.late, found[count:late], strict=True)
        sizes = {**sizes, **{str(d): value._as_extent(d.upper) for d, value in values}}
    return found[:count], found[late:], sizes


def pull_second(split: Split, gs: list[Any], residuals: tuple[Any, ...], count: int, sizes: Sizes) -> list[Any]:
    mask = tuple([g is not None for g in gs])
    second = split.seconds.get(mask)
    if second is None:
        # There is no backward program for this subset of cotangents: use the full one and pass zeros.
        second = split.seconds[split.active]
        specs = iter(second.program.inputs)
        gs = [
            full(spec.with_(shape=filled(spec.shape, sizes)), 0) if g is None else g
            for g, spec in zip(_those(gs, split.active), specs)
        ]
    return run_second(second, [g for g in gs if g is not None], residuals, count, sizes)


def _those(values: list[Any], chosen: tuple[bool, ...]) -> list[Any]:
    return [v for v, there in zip(values, chosen) if there]


def run_second(second: Second, given: list[Any], residuals: tuple[Any, ...], count: int, sizes: Sizes) -> list[Any]:
    """Run the second part; results that are zero are ``None``."""
    if not second.places:
        return [None] * count
    program = second.program
    operands = [*given, *[residuals[i] for i in second.residuals]]
    found = call(*operands, program=program, sizes=chosen(program, sizes))
    results: list[Any] = [None] * count
    for i, value in zip(second.places, found):
        results[i] = value
    return results


def push_call(op: Op, level: int, lower: list[Any], need: tuple[int, ...], tangents: list[Any]) -> Any:
    """Run the program of the values, then the program of the tangents."""
    program = op.params["program"]
    sizes: Sizes = named(program, sizes_for(program, [x.spec for x in lower], op.params["sizes"]))
    split = split_forward(program, need, sizes)
    outs, residuals, sizes = run_first(split, lower, sizes)
    pushed = run_second(split.seconds[()], tangents, residuals, len(outs), sizes)
    return tuple([z if t is None else dual(z, t, level) for z, t in zip(outs, pushed)])


RECORDERS[call] = record_call
JVP_RULES[call] = push_call
