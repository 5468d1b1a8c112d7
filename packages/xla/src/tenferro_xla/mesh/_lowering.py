"""Lowers programs of one device, collectives and sharding constraints to StableHLO with Shardy annotations.

On a mesh every device runs the module of whole arrays, and XLA's partitioner splits it. A program of one device is a
region that the partitioner does not change.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tenferro_runtime.extension import ArgumentError, AxisError, Op, Program, Registry, Spec, UnsupportedError
from tenferro_runtime.tracing.expanding import expansion_of
from tenferro_tensor_core import bool_
from tenferro_xla._emitter import HloEmitter, HloValue
from tenferro_xla.mesh import collectives
from tenferro_xla.mesh._constraint import UNCONSTRAINED, split_as
from tenferro_xla.mesh._shard_map import on_devices
from tenferro_xla.mesh._spec import MeshAxes, Split, shown

_INT64 = np.dtype("int64")


def _sharding(split: Split, mesh: MeshAxes) -> str:
    """Return the text of a sharding with an inline mesh."""
    sizes = ", ".join(f'"{n}"={k}' for n, k in mesh)
    entries = [", ".join(["?"] if part == UNCONSTRAINED else [f'"{n}"' for n in part]) for part in split]
    dims = ", ".join(f"{{{entry}}}" for entry in entries)
    return f"<mesh<[{sizes}]>, [{dims}]>"


def _split_as(e: HloEmitter, xs: Sequence[HloValue], outs: Sequence[Spec], *, split: Split) -> HloValue:
    mesh = e.functions.mesh
    if mesh is None:
        return xs[0]
    known = dict(mesh)
    for part in split:
        for name in part:
            if name not in known and part != UNCONSTRAINED:
                raise AxisError(
                    f"with_sharding names the mesh axis {name!r}, but the program is compiled for {shown(mesh)}",
                    axis=name,
                )
    return e.op("sdy.sharding_constraint", xs, outs[0], f"sharding = #sdy.sharding{_sharding(split, mesh)}")


def _on_devices(
    e: HloEmitter,
    xs: Sequence[HloValue],
    outs: Sequence[Spec],
    **params: Any,
) -> Sequence[HloValue]:
    mesh: MeshAxes = params["mesh"]
    if e.functions.mesh not in (None, mesh):
        raise ArgumentError(
            f"the program has a shard_map on {shown(mesh)}, but is compiled for {shown(e.functions.mesh)}; use the "
            "same mesh"
        )
    if e.functions.mesh is None or collectives.size_of(mesh) == 1:  # XLA does not partition for one device
        return _by_expansion(e, xs, on_devices.op(**params))
    body: Program = params["body"]
    splits = list(params["out_splits"])
    results = list(outs)
    local = body.inputs[len(mesh) :]

    def inside(inner: HloEmitter, *own: HloValue) -> list[HloValue]:
        return inner.inline(body, [*_coordinates(inner, mesh), *own])

    checked = e.can_fail(local, inside)
    flag = Spec((collectives.size_of(mesh),), bool_)
    if checked:
        splits.append((tuple([n for n, _ in mesh]),))
        results.append(flag)

    def whole(inner: HloEmitter, *own: HloValue) -> list[HloValue]:
        found = inside(inner, *own)
        if checked:
            found.append(inner.op("reshape", (inner.failed(),), flag.with_(shape=(1,))))
        return found

    ins = ", ".join(_sharding(s, mesh) for s in params["in_splits"])
    to = ", ".join(_sharding(s, mesh) for s in splits)
    names = ", ".join(f'"{n}"' for n, _ in mesh)
    found = list(
        e.ops(
            "sdy.manual_computation",
            xs,
            results,
            f"in_shardings = #sdy.sharding_per_value<[{ins}]>, out_shardings = #sdy.sharding_per_value<[{to}]>, "
            f"manual_axes = #sdy<manual_axes{{{names}}}>",
            (e.region(local, whole, "sdy.return"),),
        )
    )
    if checked:
        e.fail(found.pop())
    return found


def _by_expansion(e: HloEmitter, xs: Sequence[HloValue], op: Op) -> Sequence[HloValue]:
    program = expansion_of(op, tuple([v.spec for v in xs]))
    if program is None:
        raise UnsupportedError("a shard_map with symbolic sizes cannot be lowered; trace the function for fixed sizes")
    return e.inline(program, xs)


def _coordinates(e: HloEmitter, mesh: MeshAxes) -> list[HloValue]:
    """Return the index of the device along each axis, from its number in row-major order."""
    number = e.convert(e.op("partition_id", (), Spec((), np.dtype("uint32"))), _INT64)
    found, behind = [], collectives.size_of(mesh)
    for _, n in mesh:
        behind //= n
        major = e.op("divide", (number, e.constant(behind, number.spec)), number.spec)
        found.append(e.op("remainder", (major, e.constant(n, number.spec)), number.spec))
    return found


def _groups(e: HloEmitter, axes: MeshAxes) -> np.ndarray[Any, Any]:
    """Return the numbers of the devices that communicate, one row per group, in the order of `axes`."""
    mesh = e.functions.mesh
    assert mesh is not None, "exchanges are in programs of devices"
    names = [n for n, _ in mesh]
    along = [names.index(n) for n, _ in axes]
    numbers = np.arange(collectives.size_of(mesh)).reshape([n for _, n in mesh])
    rest = [k for k in range(len(mesh)) if k not in along]
    return numbers.transpose([*rest, *along]).reshape(-1, collectives.size_of(axes))


def _exchange(e: HloEmitter, axes: MeshAxes) -> str:
    groups = _groups(e, axes)
    rows = ", ".join(f"[{', '.join(map(str, row))}]" for row in groups.tolist())
    return (
        f"replica_groups = dense<[{rows}]> : tensor<{groups.shape[0]}x{groups.shape[1]}xi64>, {_channel(e)}, "
        "use_global_device_ids"
    )


def _channel(e: HloEmitter) -> str:
    e.functions.channels += 1
    return f"channel_handle = #stablehlo.channel_handle<handle = {e.functions.channels}, type = 1>"


def _reduce(e: HloEmitter, x: HloValue, axes: MeshAxes, kind: str) -> HloValue:
    s = x.spec.with_(shape=())
    body = e.region((s, s), lambda inner, a, b: (inner.op(kind, (a, b), s),))
    return e.op("all_reduce", (x,), x.spec, _exchange(e, axes), (body,))


def _sum_devices(e: HloEmitter, xs: Any, outs: Any, *, axes: MeshAxes) -> HloValue:
    return _reduce(e, xs[0], axes, "add")


def _extreme_device(e: HloEmitter, xs: Any, outs: Any, *, axes: MeshAxes, kind: str) -> HloValue:
    return _reduce(e, xs[0], axes, kind)


def _gather_parts(e: HloEmitter, xs: Any, outs: Any, *, axes: MeshAxes, axis: int) -> HloValue:
    return e.op("all_gather", (xs[0],), outs[0], f"all_gather_dim = {axis} : i64, {_exchange(e, axes)}")


def _sum_parts(e: HloEmitter, xs: Any, outs: Any, *, axes: MeshAxes, axis: int) -> HloValue:
    s = outs[0].with_(shape=())
    body = e.region((s, s), lambda inner, a, b: (inner.op("add", (a, b), s),))
    return e.op("reduce_scatter", (xs[0],), outs[0], f"scatter_dimension = {axis} : i64, {_exchange(e, axes)}", (body,))


def _permute_devices(e: HloEmitter, xs: Any, outs: Any, *, axes: MeshAxes, pairs: Any) -> HloValue:
    found = [(int(row[a]), int(row[b])) for row in _groups(e, axes) for a, b in pairs]
    if not found:
        return e.constant(0, outs[0])
    rows = ", ".join(f"[{a}, {b}]" for a, b in found)
    attributes = f"source_target_pairs = dense<[{rows}]> : tensor<{len(found)}x2xi64>, {_channel(e)}"
    return e.op("collective_permute", (xs[0],), outs[0], attributes)


def _exchange_parts(e: HloEmitter, xs: Any, outs: Any, *, axes: MeshAxes, split: int, joined: int) -> HloValue:
    groups = _groups(e, axes)
    rows = ", ".join(f"[{', '.join(map(str, row))}]" for row in groups.tolist())
    attributes = (
        f"split_dimension = {split} : i64, concat_dimension = {joined} : i64, split_count = {groups.shape[1]} : i64, "
        f"replica_groups = dense<[{rows}]> : tensor<{groups.shape[0]}x{groups.shape[1]}xi64>, {_channel(e)}"
    )
    return e.op("all_to_all", (xs[0],), outs[0], attributes)


def register(registry: Registry) -> None:
    """Register the lowerings."""
    c = collectives
    registry.lowering(split_as, _split_as)
    registry.lowering(on_devices, _on_devices)
    registry.lowering(c.sum_devices, _sum_devices)
    registry.lowering(c.extreme_device, _extreme_device)
    registry.lowering(c.gather_parts, _gather_parts)
    registry.lowering(c.sum_parts, _sum_parts)
    registry.lowering(c.permute_devices, _permute_devices)
    registry.lowering(c.exchange_parts, _exchange_parts)
