"""Contractions: an additional batch axis if both operands have lanes, else an additional free axis."""

from __future__ import annotations

from typing import Any

from tenferro_runtime.batching._records import Flags, Values, shifted
from tenferro_tensor import Registry, catalog
from tenferro_tensor_core import DimLike

Pair = tuple[tuple[int, ...], tuple[int, ...]]


def _dot_general(size: DimLike, values: Values, batched: Flags, *, contract: Pair, batch: Pair) -> Any:
    x, y = values
    if all(batched):
        stacks = ((0, *shifted(batch[0])), (0, *shifted(batch[1])))
        return catalog.dot_general(x, y, contract=(shifted(contract[0]), shifted(contract[1])), batch=stacks)
    if batched[0]:
        out = catalog.dot_general(
            x, y, contract=(shifted(contract[0]), contract[1]), batch=(shifted(batch[0]), batch[1])
        )
        return _lanes_first(out, len(batch[0]))
    shared, free = len(batch[0]), x.spec.ndim - len(batch[0]) - len(contract[0])
    own = y.spec.ndim - 1 - len(batch[1]) - len(contract[1])
    # With the lanes as rows of the product, and no axis of y after them, no transposition is needed.
    out = catalog.dot_general(y, x, contract=(shifted(contract[1]), contract[0]), batch=(shifted(batch[1]), batch[0]))
    lanes, before = shared, range(shared)
    of_y, of_x = range(lanes + 1, lanes + 1 + own), range(lanes + 1 + own, lanes + 1 + own + free)
    return _transposed(out, (lanes, *before, *of_x, *of_y))


def _lanes_first(x: Any, axis: int) -> Any:
    return _transposed(x, (axis, *range(axis), *range(axis + 1, x.spec.ndim)))


def _transposed(x: Any, order: tuple[int, ...]) -> Any:
    return x if order == tuple(range(len(order))) else catalog.transpose(x, permutation=order)


def register(registry: Registry) -> None:
    """Register them."""
    registry.batching(catalog.dot_general, _dot_general)
