"""Batching rules and their parts.

A rule is a function ``rule(size, values, batched, **metadata)``. `size` is the number of lanes, `values` are the
operands, and `batched` states which of them have a lane axis, always the leading one. It returns the output or the
tuple of outputs, each with a lane axis, or wrapped in `Shared` if it is the same for all lanes. Rules consist of
operations, so that they can be traced and differentiated.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from itertools import count
from typing import Any

from tenferro_tensor import Array, Primitive, Spec, catalog
from tenferro_tensor_core import ArgumentError, Dim, DimLike, dim

Values = tuple[Any, ...]
Flags = tuple[bool, ...]
Shape = tuple[DimLike, ...]
BatchingRule = Callable[..., Any]


class Shared:
    """A result of a batching rule that is the same in all lanes and has no lane axis.

    Attributes:
        value: the result of one lane.
    """

    __slots__ = ("value",)
    value: Any

    def __init__(self, value: Any) -> None:
        self.value = value


_count = count().__next__


def open_number_of_lanes() -> Dim:
    """A new size for the number of lanes of one program; batches may be nested."""
    return dim(f"lanes{_count()}")


@lru_cache(maxsize=4096)
def lane_of(spec: Spec) -> Spec:
    """The spec of one lane of a batch."""
    return spec.with_(shape=spec.shape[1:])


@lru_cache(maxsize=4096)
def batch_of(spec: Spec, size: DimLike) -> Spec:
    """The spec of a batch of lanes of a spec."""
    return spec.with_(shape=(size, *spec.shape))


def lane_specs(values: Values, batched: Flags) -> list[Spec]:
    """The specs of operands in one lane."""
    return [lane_of(v.spec) if lanes else v.spec for v, lanes in zip(values, batched, strict=True)]


def with_lanes(size: DimLike, value: Any) -> Array:
    """Repeat a value that is the same for all lanes.

    Args:
        size: number of lanes.
        value: the value.

    Returns:
        The value with a lane axis.
    """
    shape = value.spec.shape
    return catalog.broadcast_in_dim(value, shape=(size, *shape), dims=tuple(range(1, len(shape) + 1)))  # type: ignore[no-any-return]


def all_with_lanes(size: DimLike, values: Values, batched: Flags) -> list[Any]:
    """Give all operands a lane axis.

    Args:
        size: number of lanes.
        values: the operands.
        batched: which of them have a lane axis already.

    Returns:
        The operands.
    """
    return [v if lanes else with_lanes(size, v) for v, lanes in zip(values, batched, strict=True)]


def on_stacks(primitive: Primitive) -> BatchingRule:
    """The batching rule of a primitive that maps over leading axes shared by all operands, as `inv` does.

    Args:
        primitive: the primitive; none of its metadata counts axes from the front.

    Returns:
        The rule.
    """

    def rule(size: DimLike, values: Values, batched: Flags, /, **metadata: Any) -> Any:
        return primitive(*all_with_lanes(size, values, batched), **metadata)

    return rule


def shifting(primitive: Primitive, *names: str) -> BatchingRule:
    """The batching rule of a primitive whose metadata `names` are axes counted from the front, which it increments.

    Args:
        primitive: the primitive.
        names: metadata that are an axis or a tuple of axes.

    Returns:
        The rule.

    Raises:
        ArgumentError: the primitive has no metadata of a name.
    """
    if unknown := [name for name in names if name not in primitive.metadata]:
        raise ArgumentError(f"shifting: {primitive.signature} has no metadata {', '.join(unknown)}", unknown=unknown)

    def rule(size: DimLike, values: Values, batched: Flags, /, **metadata: Any) -> Any:
        moved = {name: shifted(metadata[name]) for name in names}
        return primitive(*all_with_lanes(size, values, batched), **{**metadata, **moved})

    return rule


def shifted(axes: Any) -> Any:
    """An axis or a tuple of axes after insertion of a lane axis.

    Args:
        axes: the axes.

    Returns:
        The axes, incremented by 1.
    """
    return tuple([a + 1 for a in axes]) if axes.__class__ is tuple else axes + 1
