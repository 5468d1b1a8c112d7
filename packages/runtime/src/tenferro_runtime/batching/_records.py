"""What batching rules are made of: the axis of the lanes in front of all others.

A rule is a function ``rule(size, values, batched, **metadata)``. `size` is the number of lanes, `values` are the
operands, and `batched` says which of them have the axis of the lanes, always the leading one. It returns the output, or
the tuple of outputs, each with that axis, or wrapped in `Shared` where it is the same for all lanes. Rules are written
with operations, so that they can be traced and differentiated.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from itertools import count
from typing import Any

from tenferro_tensor import Primitive, Spec, catalog
from tenferro_tensor_core import Dim, DimLike, dim

Values = tuple[Any, ...]
Flags = tuple[bool, ...]
Shape = tuple[DimLike, ...]
BatchingRule = Callable[..., Any]


class Shared:
    """A result of a batching rule that is the same in all lanes, hence has no axis for them.

    Attributes:
        value: the result of one lane.
    """

    __slots__ = ("value",)

    def __init__(self, value: Any) -> None:
        self.value = value


_count = count().__next__


def open_number_of_lanes() -> Dim:
    """A size that is the number of lanes of one program, and of no other: a program of lanes may get lanes itself."""
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
    """The specs of operands as one lane has them."""
    return [lane_of(v.spec) if lanes else v.spec for v, lanes in zip(values, batched, strict=True)]


def with_lanes(size: DimLike, value: Any) -> Any:
    """A value that is the same for all lanes, repeated for each of them."""
    shape = value.spec.shape
    return catalog.broadcast_in_dim(value, shape=(size, *shape), dims=tuple(range(1, len(shape) + 1)))


def all_with_lanes(size: DimLike, values: Values, batched: Flags) -> list[Any]:
    """The operands, all of them with the axis of the lanes."""
    return [v if lanes else with_lanes(size, v) for v, lanes in zip(values, batched, strict=True)]


def on_stacks(primitive: Primitive) -> BatchingRule:
    """The rule of a primitive that maps itself over leading axes, which all its operands share, as `inv` does.

    Args:
        primitive: the primitive; none of its metadata counts axes from the front.
    """

    def rule(size: DimLike, values: Values, batched: Flags, /, **metadata: Any) -> Any:
        return primitive(*all_with_lanes(size, values, batched), **metadata)

    return rule


def shifting(primitive: Primitive, *names: str) -> BatchingRule:
    """The rule of a primitive whose metadata `names` are axes, counted from the front; those move up by one.

    Args:
        primitive: the primitive.
        names: metadata that are an axis or a tuple of axes.
    """

    def rule(size: DimLike, values: Values, batched: Flags, /, **metadata: Any) -> Any:
        moved = {name: shifted(metadata[name]) for name in names}
        return primitive(*all_with_lanes(size, values, batched), **{**metadata, **moved})

    return rule


def shifted(axes: Any) -> Any:
    """An axis, or a tuple of axes, behind the one of the lanes."""
    return tuple([a + 1 for a in axes]) if axes.__class__ is tuple else axes + 1
