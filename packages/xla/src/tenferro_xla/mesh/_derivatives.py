"""Derivatives of programs of one device, and of the collectives in them.

The law: a program of one device is a function of the values of all devices, and its derivatives are those of this
function. Hence the cotangent of a replicated operand is the sum of the cotangents of all devices; of a result that is
equal on all devices, each device receives an equal share of the cotangent. `psum` of equal values is a product with the
number of devices, without communication.
"""

from __future__ import annotations

from typing import Any

from tenferro_runtime.batching import Shared, batched_body
from tenferro_runtime.extension import (
    General,
    Linear,
    Op,
    Program,
    Registry,
    Spec,
    Within,
    catalog,
    optimise,
)
from tenferro_runtime.ir import applied
from tenferro_runtime.tracing import staged
from tenferro_xla.mesh import collectives
from tenferro_xla.mesh._cheaper import cheaper
from tenferro_xla.mesh._shard_map import entering, on_devices
from tenferro_xla.mesh._spec import MeshAxes, Split
from tenferro_xla.mesh._varying import outputs

Role = tuple[str, int]


def first(op: Op, program: Program) -> Op:
    """Return the forward part: residuals are outputs, concatenated along the mesh axes over which they differ."""
    mesh, ins, outs = op.params["mesh"], op.params["in_splits"], op.params["out_splits"]
    kinds = outputs(program, entering(mesh, ins))
    along = [tuple([n for n, _ in mesh if n in kind]) for kind in kinds]
    residuals = [
        (axes, *empty) if axes else empty
        for axes, spec in zip(along[len(outs) :], program.outputs[len(outs) :])
        for empty in [((),) * spec.ndim]
    ]

    def stacked(*xs: Any) -> list[Any]:
        found = applied(program, xs)
        return [
            catalog.reshape(y, shape=(1, *y.spec.shape)) if axes and j >= len(outs) else y
            for j, (axes, y) in enumerate(zip(along, found))
        ]

    body = optimise(staged(stacked, program.inputs).program)
    return on_devices.op(body=body, mesh=mesh, in_splits=ins, out_splits=(*outs, *residuals))


def second(op: Op, first: Op, program: Program, ins: tuple[Role, ...], outs: tuple[Role, ...]) -> Op:
    """Return the backward part."""
    mesh: MeshAxes = op.params["mesh"]
    body = op.params["body"]
    results = len(op.params["out_splits"])
    splits_of = {
        "operand": op.params["in_splits"],
        "output": op.params["out_splits"],
        "residual": first.params["out_splits"][results:],
    }
    given = [(kind, splits_of[kind][i], s) for (kind, i), s in zip(ins, program.inputs, strict=True) if kind != "input"]
    splits = [split for _, split, _ in given]

    def devices(*xs: Any) -> list[Any]:
        values = iter([_entering(*each, x, mesh) for each, x in zip(given, xs[len(mesh) :], strict=True)])
        found = list(applied(program, [xs[i] if kind == "input" else next(values) for kind, i in ins]))
        for k, (kind, i) in enumerate(outs):
            rest = _others(op.params["in_splits"][i], mesh) if kind == "operand" else ()
            if rest:
                found[k] = collectives.sum_devices(found[k], xs[0], axes=rest)
        return found

    specs = [s.with_(shape=(1, *s.shape)) if _is_stacked(kind, split, s) else s for kind, split, s in given]
    out_splits = tuple([op.params["in_splits" if kind == "operand" else "out_splits"][i] for kind, i in outs])
    made = optimise(staged(devices, [*body.inputs[: len(mesh)], *specs]).program)
    return on_devices.op(
        body=cheaper(made, entering(mesh, tuple(splits))), mesh=mesh, in_splits=tuple(splits), out_splits=out_splits
    )


def _is_stacked(kind: str, split: Split, spec: Spec) -> bool:
    return kind == "residual" and len(split) > spec.ndim


def _entering(kind: str, split: Split, spec: Spec, x: Any, mesh: MeshAxes) -> Any:
    if _is_stacked(kind, split, spec):
        return catalog.reshape(x, shape=spec.shape)
    return _share(x, split, mesh) if kind == "output" else x


def _others(split: Split, mesh: MeshAxes) -> MeshAxes:
    """Return the mesh axes along which an array is replicated."""
    return tuple([(n, k) for n, k in mesh if k > 1 and all(n not in part for part in split)])


def _share(g: Any, split: Split, mesh: MeshAxes) -> Any:
    n = collectives.size_of(_others(split, mesh))
    return g if n == 1 else g / n


def _extremum(primals: Any, tangents: Any, outs: Any, *, axes: MeshAxes, kind: str) -> Any:
    """Devices with the same extremum share its derivative."""
    (x, place), (t, _), out = primals, tangents, outs[0]
    if t is None:
        return (None,)
    there = catalog.convert(catalog.eq(x, out), dtype=t.spec.dtype)
    number = collectives.sum_devices(there, place, axes=axes)
    return (collectives.sum_devices(there * t, place, axes=axes) / number,)


def _unpermuted(g: Any, place: Any, axes: MeshAxes, pairs: Any) -> Any:
    return collectives.permute_devices(g, place, axes=axes, pairs=tuple([(b, a) for a, b in pairs]))


def _on_batches(
    size: Any, values: Any, batched: Any, *, body: Program, mesh: MeshAxes, in_splits: Any, out_splits: Any
) -> Any:
    made = batched_body(body, (*[False] * len(mesh), *batched), size)
    lanes = tuple([((), *split) if there else split for split, there in zip(in_splits, batched, strict=True)])
    splits = tuple([((), *split) if there else split for split, there in zip(out_splits, made.batched, strict=True)])
    found = on_devices(*values, body=made.program, mesh=mesh, in_splits=lanes, out_splits=splits)
    return tuple([y if there else Shared(y) for y, there in zip(found, made.batched, strict=True)])


def _shifted(primitive: Any, *names: str) -> Any:
    """Return the batching rule of a collective whose parameters `names` are axes of the array."""

    def rule(size: Any, values: Any, batched: Any, /, **params: Any) -> Any:
        return primitive(*values, **{**params, **{n: params[n] + 1 for n in names}})

    return rule


def register(registry: Registry) -> None:
    """Register derivatives and batching rules."""
    c = collectives
    registry.rule(on_devices, Within("body", first, second))
    registry.rule(c.sum_devices, Linear(x=lambda g, place, axes: c.sum_devices(g, place, axes=axes)))
    registry.rule(c.extreme_device, General(jvp=_extremum))
    registry.rule(c.gather_parts, Linear(x=lambda g, place, axes, axis: c.sum_parts(g, place, axes=axes, axis=axis)))
    registry.rule(c.sum_parts, Linear(x=lambda g, place, axes, axis: c.gather_parts(g, place, axes=axes, axis=axis)))
    registry.rule(c.permute_devices, Linear(x=_unpermuted))
    registry.rule(
        c.exchange_parts,
        Linear(
            x=lambda g, place, axes, split, joined: c.exchange_parts(g, place, axes=axes, split=joined, joined=split)
        ),
    )
    registry.batching(on_devices, _on_batches)
    registry.batching(c.sum_devices, _shifted(c.sum_devices))
    registry.batching(c.extreme_device, _shifted(c.extreme_device))
    registry.batching(c.gather_parts, _shifted(c.gather_parts, "axis"))
    registry.batching(c.sum_parts, _shifted(c.sum_parts, "axis"))
    registry.batching(c.permute_devices, _shifted(c.permute_devices))
    registry.batching(c.exchange_parts, _shifted(c.exchange_parts, "split", "joined"))
