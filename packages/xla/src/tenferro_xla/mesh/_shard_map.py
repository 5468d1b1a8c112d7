"""`shard_map`: a function of the parts on one device as a function of whole arrays."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

import numpy as np

from tenferro_runtime.control_flow.primitives import ProgramHolding
from tenferro_runtime.extension import (
    HOST,
    ArgumentError,
    Op,
    Program,
    ProgramError,
    Spec,
    UnsupportedError,
    flatten,
    optimise,
    unflatten,
)
from tenferro_runtime.ir import definitions, here
from tenferro_runtime.passes.dead_code import with_outputs
from tenferro_runtime.tracing import staged
from tenferro_tensor.functions import asarray
from tenferro_xla.mesh import _region
from tenferro_xla.mesh._cheaper import cheaper
from tenferro_xla.mesh._compile import spread_arguments, spread_specs
from tenferro_xla.mesh._spec import (
    MeshAxes,
    PartitionSpec,
    Split,
    axes_of,
    global_shape,
    local_shape,
    shown,
    spec_of,
)
from tenferro_xla.mesh._varying import Axes, outputs


def _infer_shard_map(
    *xs: Spec, body: Program, mesh: MeshAxes, in_splits: tuple[Split, ...], out_splits: tuple[Split, ...]
) -> tuple[Spec, ...]:
    """Apply a program of one device to the parts of the operands on every device of a mesh, and join its results.

    The first inputs of the program are the coordinates of the device, one for each axis of the mesh. `in_splits` and
    `out_splits` name the mesh axes along which each axis of an operand or a result is split.
    """
    expected = body.inputs[len(mesh) :]
    local = tuple([x.with_(shape=local_shape(x.shape, split, mesh)) for x, split in zip(xs, in_splits, strict=True)])
    if local != expected:
        raise ProgramError(
            f"the program of one device takes ({', '.join(map(repr, expected))}), but its parts of the operands are "
            f"({', '.join(map(repr, local))})"
        )
    return tuple(
        [y.with_(shape=global_shape(y.shape, split, mesh)) for y, split in zip(body.outputs, out_splits, strict=True)]
    )


_infer_shard_map.__name__ = "on_devices"
on_devices = ProgramHolding(_infer_shard_map, family="tenferro-xla.on_devices.v1", extension="xla")


def shard_map(f: Callable[..., Any], mesh: Any, in_specs: Any, out_specs: Any) -> Callable[..., Any]:
    """Convert a function that every device runs on its parts to a function of whole arrays.

    Inside `f` an array has the shape of the part, and the functions of `tenferro_xla.mesh.collectives` communicate
    between devices. The result is an ordinary function, which can be differentiated, vmapped, traced and compiled. On a
    mesh (`compile_on`) the devices run it; elsewhere the devices are the lanes of one batch, with the same results.

    Values that `f` closes over are replicated. A result that `out_specs` does not split along a mesh axis must be equal
    on all devices along it, which is checked; `psum`, `pmean`, `pmax` and `all_gather` make it so.

    The derivative is that of the function of whole arrays. A gradient taken inside `f` is the gradient of the sum of
    the results of all devices with respect to the values of this device; without communication it is the gradient of
    the device's own result.

    Args:
        f: a function of arrays to arrays, both in any containers.
        mesh: a `Mesh`, or the sizes of its axes by name.
        in_specs: how to split the arguments: one `PartitionSpec` for all, or a tuple with an entry for each argument,
            which may be a container of specs.
        out_specs: how to split the results, in the same form.

    Returns:
        The function of whole arrays. It raises the errors below when it is called.

    Raises:
        AxisError: a spec names an axis that the mesh or the array does not have.
        ShapeError: an extent is not divisible by the number of parts.
        ArgumentError: the containers do not fit, or a result that is not split differs between devices.
        UnsupportedError: only some devices may reach a collective.

    See also:
        `compile_on`, for functions written for whole arrays.

    >>> import tenferro_runtime as tr
    >>> from tenferro_xla.mesh import P, psum
    >>> mean = shard_map(lambda x: psum(tr.sum(x), "data") / 4, {"data": 2}, P("data"), P())
    >>> mean(tr.asarray([1.0, 2.0, 3.0, 6.0]))
    Tensor(3.)
    """
    axes = axes_of(mesh)
    if not callable(f):
        raise ArgumentError(f"shard_map takes a function, got {f!r:.80}")

    @wraps(f)
    def mapped(*args: Any) -> Any:
        if _region.current() is not None:
            raise ArgumentError(f"shard_map is called{here()} inside a function passed to shard_map; use its axes")
        leaves, tree = flatten(args)
        values = [asarray(x) for x in leaves]
        given = [PartitionSpec() if p is None else p for p in spread_arguments(in_specs, args, tree)]
        paths = [f"args{path}, {x.spec!r}," for x, path in zip(values, tree.paths(), strict=True)]
        ins = tuple([p.split(x.spec.ndim, axes, w) for x, p, w in zip(values, given, paths, strict=True)])
        parts = [
            x.spec.with_(shape=local_shape(x.spec.shape, split, axes, w))
            for x, split, w in zip(values, ins, paths, strict=True)
        ]
        out_tree: Any = None

        def own(*xs: Any) -> list[Any]:
            nonlocal out_tree
            with _region.recorded(_region.DeviceRegion(axes, xs[: len(axes)])):
                results, out_tree = flatten(f(*unflatten(tree, list(xs[len(axes) :]))))
                return [asarray(y) for y in results]

        coordinate = Spec((), np.dtype("int64"), values[0].spec.place if values else HOST)
        program, captured, _ = staged(own, [*[coordinate] * len(axes), *parts], alone=True)
        if definitions(program):
            raise UnsupportedError(
                f"a function passed to shard_map has sizes that depend on data{here()}; mask elements instead"
            )
        ins = (*ins, *[((),) * v.spec.ndim for v in captured])
        wanted = [
            PartitionSpec() if p is None else p for p in spread_specs(out_specs, out_tree, "out_specs", "the result")
        ]
        outs = tuple(
            [p.split(y.ndim, axes, f"result {i}, {y!r},") for i, (p, y) in enumerate(zip(wanted, program.outputs))]
        )
        _require_alike(program, axes, ins, outs)
        body = cheaper(optimise(program), entering(axes, ins))
        op = on_devices.op(body=body, mesh=axes, in_splits=ins, out_splits=outs)
        return unflatten(out_tree, list(op(*values, *captured)))

    return mapped


def entering(mesh: MeshAxes, ins: tuple[Split, ...]) -> list[Axes]:
    """Return the mesh axes over which the inputs of a body differ: of its coordinates, then of its operands."""
    return [*[frozenset({n}) for n, _ in mesh], *[frozenset(n for part in split for n in part) for split in ins]]


def _require_alike(body: Program, mesh: MeshAxes, ins: tuple[Split, ...], outs: tuple[Split, ...]) -> None:
    for i, (axes, split) in enumerate(zip(outputs(body, entering(mesh, ins)), outs, strict=True)):
        more = sorted(axes.difference(*split))
        if more:
            raise ArgumentError(
                f"result {i} of a function passed to shard_map may differ between the devices along "
                f"{' and '.join(map(repr, more))} ({shown(mesh)}){here()}, but its spec {spec_of(split)!r} requires "
                "equal values; sum it with psum, or name the axis in out_specs",
                result=i,
                axes=tuple(more),
            )


def pruned(op: Op, used: tuple[bool, ...]) -> tuple[Op, tuple[int | None, ...]]:
    """Return the op without its unused results."""
    body, kept = op.params["body"], [i for i, there in enumerate(used) if there]
    outs = tuple([op.params["out_splits"][i] for i in kept])
    return on_devices.op(**{**op.params, "body": with_outputs(body, used), "out_splits": outs}), tuple(
        [kept.index(i) if there else None for i, there in enumerate(used)]
    )
