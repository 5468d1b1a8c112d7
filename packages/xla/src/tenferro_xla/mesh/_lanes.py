"""Programs of one device without a mesh: the values of all devices are the lanes of one batch.

A collective mixes lanes, so it is not a function of one lane. Here it is replaced by `mix_lanes`, which only has a
batching rule.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import tenferro_runtime as tr
from tenferro_runtime.batching import Shared, with_lanes
from tenferro_runtime.control_flow import primitives as control
from tenferro_runtime.extension import Equation, Op, Primitive, Program, Registry, Spec, UnsupportedError, interpret
from tenferro_runtime.extension import primitive as define
from tenferro_runtime.ir import Literal, inner_programs, kept
from tenferro_xla.mesh import collectives
from tenferro_xla.mesh._spec import MeshAxes, Split, count


@define(family="tenferro-xla.mix_lanes.v1", extension="xla")
def mix_lanes(x: Spec, place: Spec, *, name: str, mesh: MeshAxes, params: tuple[Any, ...]) -> Spec:
    """The collective of a name, between devices that are the lanes of a batch."""
    found = _COLLECTIVES[name].infer(x, place, **dict(params))
    assert found.__class__ is Spec, "collectives have one result"
    return found


@define(family="tenferro-xla.agreed.v1", extension="xla")
def agreed(x: Spec) -> Spec:
    """The operand, which is equal on all devices: the value of the first lane."""
    return x


@kept
def on_lanes(program: Program, mesh: MeshAxes) -> Program:
    """Return the program with `mix_lanes` for its collectives, also in loops and branches.

    All devices take the same branches and iterations of control flow that contains collectives, so its conditions are
    evaluated once, not per lane.
    """
    return _LaneMixer(program, mesh).run()


class _LaneMixer:
    def __init__(self, program: Program, mesh: MeshAxes) -> None:
        self.program, self.mesh = program, mesh
        self.specs = dict(program.specs)
        self.equations: list[Equation] = []

    def run(self) -> Program:
        for eq in self.program.equations:
            operands = eq.operands
            if eq.op.primitive is control.cond and _has_collective(eq.op):
                operands = (self.agreed(operands[0]), *operands[1:])
            self.equations.append(Equation(self.op(eq.op), operands, eq.results, eq.source))
        return self.program.with_(equations=tuple(self.equations), specs=self.specs)

    def agreed(self, v: Any) -> Any:
        if isinstance(v, Literal):
            return v
        new = max(self.specs) + 1
        self.specs[new] = self.specs[v]
        self.equations.append(Equation(agreed.op(), (v,), (new,)))
        return new

    def op(self, op: Op) -> Op:
        if op.primitive in _COLLECTIVES.values():
            return mix_lanes.op(name=op.primitive.name, mesh=self.mesh, params=tuple(op.params.items()))
        if not inner_programs(op.params):
            return op
        params = {k: _mixing_inside(v, self.mesh) for k, v in op.params.items()}
        if op.primitive is control.while_loop and _has_collective(op):
            inner = _LaneMixer(params["cond"], self.mesh)
            inner.equations = list(inner.program.equations)
            params["cond"] = inner.program.with_(
                output_ids=(inner.agreed(inner.program.output_ids[0]),),
                equations=tuple(inner.equations),
                specs=inner.specs,
            )
        return op.primitive.op(**params)


def _has_collective(op: Op) -> bool:
    """Return whether an op is or contains a collective."""
    return op.primitive in _COLLECTIVES.values() or any(
        _has_collective(eq.op) for program in inner_programs(op.params) for eq in program.equations
    )


def _mixing_inside(value: Any, mesh: MeshAxes) -> Any:
    if isinstance(value, Program):
        return on_lanes(value, mesh)
    return tuple([_mixing_inside(v, mesh) for v in value]) if value.__class__ is tuple else value


def reference(
    *xs: Any, body: Program, mesh: MeshAxes, in_splits: tuple[Split, ...], out_splits: tuple[Split, ...]
) -> Any:
    """Evaluate a `shard_map` without devices: one lane of a batch for each device."""
    sizes = tuple([n for _, n in mesh])
    total = collectives.size_of(mesh)
    places = [_coordinates(k, sizes, body.inputs[k].place.device) for k in range(len(mesh))]
    values = [_stacked(x, split, mesh) if any(split) else x for x, split in zip(xs, in_splits, strict=True)]
    axes = (*[0] * len(mesh), *[0 if any(split) else None for split in in_splits])
    program = on_lanes(body, mesh)
    found = tr.vmap(lambda *own: interpret(program, own), in_axes=axes, axis_size=total)(*places, *values)
    return tuple([_joined(x, split, mesh) for x, split in zip(found, out_splits, strict=True)])


def _coordinates(k: int, sizes: tuple[int, ...], device: Any) -> Any:
    """Return the index along mesh axis `k` of every lane."""
    along = tr.reshape(tr.arange(sizes[k], device=device), tuple([n if i == k else 1 for i, n in enumerate(sizes)]))
    return tr.reshape(tr.broadcast_to(along, sizes), (-1,))


def _stacked(x: Any, split: Split, mesh: MeshAxes) -> Any:
    """Return the parts of an array, one for each device in row-major order."""
    sizes, names = dict(mesh), [n for part in split for n in part]
    cut: list[Any] = []
    local: list[int] = []
    where_: dict[str, int] = {}
    for n, part in zip(x.shape, split, strict=True):
        for name in part:
            where_[name] = len(cut)
            cut.append(sizes[name])
        local.append(len(cut))
        cut.append(n // count(part, mesh))
    order = [where_[n] for n, _ in mesh if n in names]
    y = tr.permute_dims(tr.reshape(x, tuple(cut)), (*order, *local))
    inner = y.shape[len(order) :]
    y = tr.reshape(y, (*[n if name in names else 1 for name, n in mesh], *inner))
    return tr.reshape(tr.broadcast_to(y, (*[n for _, n in mesh], *inner)), (collectives.size_of(mesh), *inner))


def _joined(x: Any, split: Split, mesh: MeshAxes) -> Any:
    """Join the parts of an array; of equal parts, take that of the first device."""
    y = tr.reshape(x, (*[n for _, n in mesh], *x.shape[1:]))
    for k in reversed([k for k, (n, _) in enumerate(mesh) if all(n not in part for part in split)]):
        y = tr.take(y, 0, axis=k)
    left = [n for n, _ in mesh if any(n in part for part in split)]
    order: list[int] = []
    for i, part in enumerate(split):
        order += [*[left.index(n) for n in part], len(left) + i]
    shape = tuple([n * count(part, mesh) for n, part in zip(x.shape[1:], split, strict=True)])
    return tr.reshape(tr.permute_dims(y, tuple(order)), shape)


def _mix(size: Any, values: Any, batched: Any, *, name: str, mesh: MeshAxes, params: tuple[Any, ...]) -> Any:
    if size != collectives.size_of(mesh):
        raise UnsupportedError(f"{name} mixes {collectives.size_of(mesh)} devices, but is applied to {size} lanes")
    x = values[0] if batched[0] else with_lanes(size, values[0])
    given = dict(params)
    axes = given.pop("axes")
    sizes = [n for _, n in mesh]
    there = [[n for n, _ in mesh].index(name) for name, _ in axes]
    # The devices that communicate become the last axis of the lanes.
    rest = [k for k in range(len(mesh)) if k not in there]
    order = [*rest, *there]
    y = tr.reshape(x, (*sizes, *x.shape[1:]))
    local = tuple(range(len(mesh), y.ndim))
    grouped = tr.permute_dims(y, (*order, *local))
    groups = collectives.size_of(tuple([mesh[k] for k in rest]))
    found, alike = _RULES[name](tr.reshape(grouped, (groups, size // groups, *x.shape[1:])), **given)
    if alike and not rest:
        return Shared(tr.reshape(found, found.shape[2:]))
    found = tr.broadcast_to(found, (groups, size // groups, *found.shape[2:]))
    found = tr.reshape(found, (*[sizes[k] for k in order], *found.shape[2:]))
    back = sorted(range(len(order)), key=lambda k: order[k])
    found = tr.permute_dims(found, (*back, *range(len(order), found.ndim)))
    return tr.reshape(found, (size, *found.shape[len(order) :]))


def _summed(x: Any) -> tuple[Any, bool]:
    return tr.sum(x, axis=1, keepdims=True, dtype=x.dtype), True


def _extreme(x: Any, *, kind: str) -> tuple[Any, bool]:
    return (tr.max if kind == "maximum" else tr.min)(x, axis=1, keepdims=True), True


def _gathered(x: Any, *, axis: int) -> tuple[Any, bool]:
    groups, n, *shape = x.shape
    y = tr.moveaxis(x, 1, axis + 1)
    return tr.reshape(y, (groups, 1, *[d * n if i == axis else d for i, d in enumerate(shape)])), True


def _scattered(x: Any, *, axis: int) -> tuple[Any, bool]:
    return _cut(_summed(x)[0], axis, x.shape[1]), False


def _cut(x: Any, axis: int, n: int) -> Any:
    """Split one value per group, ``(groups, 1, ...)``, along an axis into a part for each device."""
    groups, _, *shape = x.shape
    y = tr.reshape(x, (groups, *shape[:axis], n, shape[axis] // n, *shape[axis + 1 :]))
    return tr.moveaxis(y, axis + 1, 1)


def _permuted(x: Any, *, pairs: tuple[tuple[int, int], ...]) -> tuple[Any, bool]:
    n = x.shape[1]
    sources = {target: source for source, target in pairs}
    moved = tr.take(x, tr.asarray([sources.get(k, 0) for k in range(n)]), axis=1)
    there = tr.reshape(tr.asarray([k in sources for k in range(n)]), (1, n, *[1] * (x.ndim - 2)))
    return tr.where(there, moved, tr.zeros_like(moved)), False


def _exchanged(x: Any, *, split: int, joined: int) -> tuple[Any, bool]:
    groups, n, *shape = x.shape
    y = tr.reshape(x, (groups, n, *shape[:split], n, shape[split] // n, *shape[split + 1 :]))
    y = tr.moveaxis(y, split + 2, 1)  # axis 1: the target device; axis 2: the source device
    y = tr.moveaxis(y, 2, joined + 2)
    parts = [d // n if i == split else d for i, d in enumerate(shape)]
    return tr.reshape(y, (groups, n, *[d * n if i == joined else d for i, d in enumerate(parts)])), False


_COLLECTIVES: Final[dict[str, Primitive]] = {
    p.name: p
    for p in (
        collectives.sum_devices,
        collectives.extreme_device,
        collectives.gather_parts,
        collectives.sum_parts,
        collectives.permute_devices,
        collectives.exchange_parts,
    )
}
_RULES: Final[dict[str, Callable[..., tuple[Any, bool]]]] = {
    "sum_devices": _summed,
    "extreme_device": _extreme,
    "gather_parts": _gathered,
    "sum_parts": _scattered,
    "permute_devices": _permuted,
    "exchange_parts": _exchanged,
}


def _first_lane(size: Any, values: Any, batched: Any) -> Any:
    return Shared(values[0][0])


def _no_device(name: str) -> Any:
    """Make a kernel that raises: outside `shard_map` there are no devices to communicate with."""

    def run(*_: Any) -> Any:
        raise UnsupportedError(f"{name} communicates between the devices of a mesh; call it inside a shard_map")

    return lambda ins, outs, **_: run


def register(registry: Registry) -> None:
    """Register the batching rules."""
    registry.batching(mix_lanes, _mix)
    registry.batching(agreed, _first_lane)
    registry.expansion(agreed, lambda x: x._alias())
    for p in (mix_lanes, *_COLLECTIVES.values()):
        registry.kernel(p, "*", _no_device(p.name))
