"""Shapes, concatenation and created arrays."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from tenferro_runtime.extension import HOST, catalog
from tenferro_xla.importing._reader import Handler, ModuleReader, ValueScope, on_arrays, out_spec, unknown
from tenferro_xla.importing._values import Splat, Value, as_array, known_integers


def integers(op: Any, name: str) -> tuple[int, ...]:
    """Return the integers of an attribute."""
    return tuple([int(n) for n in op.attributes[name]])


def integer(op: Any, name: str) -> int:
    """Return the integer of an attribute."""
    return int(op.attributes[name].value)


def broadcast(x: Value, shape: tuple[int, ...], dims: tuple[int, ...]) -> Value:
    """Broadcast `x` with its axes at `dims`; axes of extent 1 are repeated."""
    if isinstance(x, Splat):
        return Splat(x.element, x.spec.with_(shape=shape))
    kept = [i for i, d in enumerate(dims) if x.spec.shape[i] == shape[d]]
    if len(kept) < len(dims):
        x = catalog.reshape(x, shape=tuple([x.spec.shape[i] for i in kept]))
    found = [dims[i] for i in kept]
    if found == list(range(len(shape))) and x.spec.shape == shape:
        return x
    return catalog.broadcast_in_dim(x, shape=shape, dims=tuple(found))  # type: ignore[no-any-return]


def _broadcast_in_dim(reader: ModuleReader, op: Any, xs: list[Value], scope: ValueScope) -> Value:
    return broadcast(xs[0], out_spec(op).shape, integers(op, "broadcast_dimensions"))


def _broadcast(reader: ModuleReader, op: Any, xs: list[Value], scope: ValueScope) -> Value:
    shape = out_spec(op).shape
    return broadcast(xs[0], shape, tuple(range(len(shape) - xs[0].spec.ndim, len(shape))))


def _reshape(reader: ModuleReader, op: Any, xs: list[Value], scope: ValueScope) -> Value:
    x, shape = xs[0], out_spec(op).shape
    if isinstance(x, Splat):
        return Splat(x.element, x.spec.with_(shape=shape))
    return catalog.reshape(x, shape=shape)  # type: ignore[no-any-return]


def _transpose(op: Any, x: Any) -> Any:
    return catalog.transpose(x, permutation=integers(op, "permutation"))


def _slice(op: Any, x: Any) -> Any:
    start, limit, stride = (integers(op, name) for name in ("start_indices", "limit_indices", "strides"))
    return catalog.slice_(x, start=start, limit=limit, stride=stride)


def _pad(op: Any, x: Any, value: Any) -> Any:
    low, high = integers(op, "edge_padding_low"), integers(op, "edge_padding_high")
    return catalog.pad(x, value, low=low, high=high, interior=integers(op, "interior_padding"))


def _concatenate(op: Any, *xs: Any) -> Any:
    return catalog.concatenate(*xs, axis=integer(op, "dimension"))


def _reverse(op: Any, x: Any) -> Any:
    return catalog.reverse(x, axes=integers(op, "dimensions"))


def _iota(reader: ModuleReader, op: Any, xs: list[Value], scope: ValueScope) -> Value:
    spec = out_spec(op)
    return catalog.iota(  # type: ignore[no-any-return]
        shape=spec.shape, dtype=spec.dtype, axis=integer(op, "iota_dimension"), place=HOST
    )


def _same(reader: ModuleReader, op: Any, xs: list[Value], scope: ValueScope) -> list[Value]:
    return xs


def _dimension_size(reader: ModuleReader, op: Any, xs: list[Value], scope: ValueScope) -> Value:
    extent = xs[0].spec.shape[integer(op, "dimension")]
    return Splat(np.asarray(extent, "int32"), out_spec(op))


def _known(op: Any, x: Value, what: str) -> tuple[int, ...]:
    found = known_integers(x)
    if found is None:
        raise unknown(op, f"its {what} depend on data")
    return found


def _dynamic_pad(reader: ModuleReader, op: Any, xs: list[Value], scope: ValueScope) -> Value:
    low, high, interior = (_known(op, x, "paddings") for x in xs[2:])
    return catalog.pad(as_array(xs[0]), as_array(xs[1]), low=low, high=high, interior=interior)  # type: ignore[no-any-return]


def _real_dynamic_slice(reader: ModuleReader, op: Any, xs: list[Value], scope: ValueScope) -> Value:
    start, limit, stride = (_known(op, x, "bounds") for x in xs[1:])
    return catalog.slice_(as_array(xs[0]), start=start, limit=limit, stride=stride)  # type: ignore[no-any-return]


STRUCTURE: Final[dict[str, Handler]] = {
    "stablehlo.broadcast": _broadcast,
    "stablehlo.broadcast_in_dim": _broadcast_in_dim,
    "stablehlo.dynamic_broadcast_in_dim": _broadcast_in_dim,
    "stablehlo.reshape": _reshape,
    "stablehlo.dynamic_reshape": _reshape,
    "stablehlo.transpose": on_arrays(_transpose),
    "stablehlo.slice": on_arrays(_slice),
    "stablehlo.real_dynamic_slice": _real_dynamic_slice,
    "stablehlo.pad": on_arrays(_pad),
    "stablehlo.dynamic_pad": _dynamic_pad,
    "stablehlo.concatenate": on_arrays(_concatenate),
    "stablehlo.reverse": on_arrays(_reverse),
    "stablehlo.iota": _iota,
    "stablehlo.dynamic_iota": _iota,
    "stablehlo.get_dimension_size": _dimension_size,
    "stablehlo.optimization_barrier": _same,
}
"""Operations on shapes; dynamic shapes must be constants of the module."""
