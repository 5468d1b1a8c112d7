"""`with_sharding`: a sharding constraint on a value inside a program."""

from __future__ import annotations

from typing import Any

from tenferro_runtime.extension import ArgumentError, AxisError, Linear, Registry, Spec, primitive
from tenferro_runtime.ir import here
from tenferro_tensor import Array
from tenferro_tensor.functions import asarray
from tenferro_xla.mesh import _region
from tenferro_xla.mesh._spec import PartitionSpec, Split, names_of, require_spec

UNCONSTRAINED = ("?",)
"""The entry of an axis that XLA may split in any way."""


@primitive(family="tenferro-xla.split_as.v1", extension="xla")
def split_as(x: Spec, *, split: Split) -> Spec:
    """The operand; on a mesh it is split along the named axes."""
    if len(split) != x.ndim:
        raise AxisError(f"the split {split} has {len(split)} entries, but {x!r} has {x.ndim} axes")
    return x


def with_sharding(x: Any, spec: PartitionSpec) -> Array:
    """Constrain how an intermediate value is split when the program runs on a mesh; elsewhere return it unchanged.

    XLA chooses the splits of intermediate values from those of the arguments and results; a constraint overrides its
    choice.

    Args:
        x: an array of any shape and dtype.
        spec: how to split it over the axes of the mesh that the program is compiled for.

    Returns:
        The array, of the same shape and dtype.

    Raises:
        ArgumentError: the call is inside a function passed to `shard_map`, where an array is the part of one device.
        AxisError: the spec has more entries than the array has axes.

    >>> import numpy as np
    >>> from tenferro_xla.mesh import P
    >>> with_sharding(np.arange(2.0), P("data"))
    Tensor([0., 1.])
    """
    if _region.current() is not None:
        raise ArgumentError(
            f"with_sharding is called{here()} inside a function passed to shard_map, where an array is the part of "
            "one device; split arguments and results with in_specs and out_specs"
        )
    value = asarray(x)
    if len(require_spec(spec).entries) > value.spec.ndim:
        raise AxisError(f"{spec!r} has {len(spec.entries)} entries{here()}, but the array is {value.spec!r}")
    found = [names_of(e) for e in spec.entries]
    return split_as(value, split=(*found, *[()] * (value.spec.ndim - len(found))))


def _on_batches(size: Any, values: Any, batched: Any, *, split: Split) -> Any:
    return split_as(values[0], split=(UNCONSTRAINED, *split))


def _alias(x: Any, split: Split) -> Any:
    return x._alias()


def register(registry: Registry) -> None:
    """Register the rules: its derivative is itself; without a mesh it is its operand."""
    registry.expansion(split_as, _alias)
    registry.rule(split_as, Linear(x=lambda g, split: split_as(g, split=split)))
    registry.batching(split_as, _on_batches)
