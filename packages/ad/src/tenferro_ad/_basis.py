"""Applies a linear function to all unit vectors at once, in batches within a memory budget."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from tenferro_runtime import concat, eye, vmap
from tenferro_runtime.costs import plan_memory
from tenferro_runtime.extension import optimise
from tenferro_runtime.ir import here
from tenferro_runtime.tracing import staged
from tenferro_tensor import Spec, catalog
from tenferro_tensor_core import ArgumentError


def on_basis(f: Callable[[Any], list[Any]], spec: Spec, unit: complex, memory_budget: int | None) -> list[Any]:
    """The results of a linear function on the unit vectors of a spec, stacked along a new leading axis.

    Args:
        f: a linear function of a value of the spec to a list of values.
        spec: spec of its argument.
        unit: scale of the unit vectors: 1 or 1j.
        memory_budget: bytes that the values of one batch may take; ``None`` for all unit vectors at once.

    Raises:
        ArgumentError: there is a budget, but a size is symbolic.
    """
    if memory_budget is None:
        return vmap(f)(_unit_vectors(spec, unit, 0, spec.size))
    if spec.symbolic:
        raise ArgumentError(
            f"a memory_budget needs sizes that are numbers{here()}, but the basis is that of {spec!r}; leave the "
            "budget out, or trace with numbers for the sizes"
        )
    most = max(1, memory_budget // max(1, bytes_of_one(f, [spec])))
    count: Any = spec.size
    parts = [
        vmap(f)(_unit_vectors(spec, unit, start, min(most, count - start))) for start in range(0, max(count, 1), most)
    ]
    return parts[0] if len(parts) == 1 else [concat(column) for column in zip(*parts, strict=True)]


def _unit_vectors(spec: Spec, unit: complex, start: Any, count: Any) -> Any:
    matrix = eye(count, spec.size, k=start, dtype=spec.dtype, device=spec.place.device)
    vectors = matrix if spec.ndim == 1 else catalog.reshape(matrix, shape=(count, *spec.shape))
    return vectors if unit == 1 else vectors * unit


def bytes_of_one(f: Callable[..., list[Any]], specs: Sequence[Spec]) -> int:
    """Peak memory, in bytes, of the values of one run of a function on arguments of given specs."""
    program = optimise(staged(f, specs).program)
    return plan_memory(program).peak({}) + sum([_bytes(s) for s in (*specs, *program.outputs)])


def _bytes(spec: Spec) -> int:
    return spec.size * spec.dtype.itemsize  # type: ignore[return-value]
