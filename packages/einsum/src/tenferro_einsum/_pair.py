"""Contraction of two operands by the simplest single primitive.

Elementwise products and matrix products are core primitives, which every pass and rule knows. A contraction that needs
more than one of these (transposes, diagonals, sums, scattered axes) is one `contract`, and so is a batch of inner
products, for which the engine has a kernel.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tenferro_einsum._contract import contract
from tenferro_einsum._pairwise import Binary, Extents, Labels, aligned_product
from tenferro_einsum._tree import numbered
from tenferro_runtime.extension import BoundedCache
from tenferro_tensor import catalog

PAIRS: BoundedCache[Any, Any] = BoundedCache("tenferro_einsum: contractions of two", 2048, recency=False)
"""Ops by the labels of two operands and of the result."""


def pair(x: Any, lx: Labels, y: Any, ly: Labels, out: Labels) -> Any:
    """Contract two values; labels missing in `out` are summed, and `out` has each label once.

    Values with many axes may have any memory layout, so a matrix product would start with copies.
    """
    found = PAIRS.table.get((lx, ly, out))
    if found is None:
        plain = _product(lx, ly, out) if len(lx) < 3 and len(ly) < 3 else None
        found = PAIRS.get_or_make((lx, ly, out), lambda: plain or _contraction(lx, ly, out))
    return found(x, y)


def core_pair(lx: Labels, ly: Labels, out: Labels, extents: Extents) -> Binary | None:
    """Core ops that contract two operands whose labels have `extents`, or ``None`` if more is needed."""
    found: Binary | None = _product(lx, ly, out)
    if found is not None:
        # Engines are faster at sums over several axes to a number, and programs must match concrete calls bitwise.
        return found if out or len(lx) < 2 else None
    if {*out} == {*lx, *ly} and len(out) == len({*out}) and all(len({*t}) == len(t) for t in (lx, ly)):
        run, made = aligned_product(lx, ly, extents)
        if made == out and _keeps_order(ly, out):
            return run
    return None


def _contraction(lx: Labels, ly: Labels, out: Labels) -> Binary:
    inputs, output = numbered((lx, ly), out)
    return contract.op(inputs=inputs, output=output, steps=((0, 1),))


def _keeps_order(labels: Labels, out: Labels) -> bool:
    return [x for x in out if x in labels] == list(labels)


def _product(lx: Labels, ly: Labels, out: Labels) -> Any:
    """The op of a core primitive, or ``None`` if one does not suffice."""
    if lx == ly == out and len({*out}) == len(out):
        return catalog.mul.op()
    if len({*lx}) < len(lx) or len({*ly}) < len(ly) or any((x not in ly) and (x not in out) for x in lx):
        return None
    if any((x not in lx) and (x not in out) for x in ly):
        return None
    shared = [x for x in lx if x in ly]
    summed = [x for x in shared if x not in out]
    batch = [x for x in shared if x in out]
    free_x, free_y = [x for x in lx if x not in ly], [x for x in ly if x not in lx]
    if not summed or (*batch, *free_x, *free_y) != out or (batch and out == tuple(batch)):
        return None  # a batch of inner products is not a matrix product
    if not (_is_matrix(lx, batch, free_x, summed) and _is_matrix(ly, batch, free_y, summed)):
        return None
    return catalog.dot_general.op(
        contract=(tuple([lx.index(x) for x in summed]), tuple([ly.index(x) for x in summed])),
        batch=(tuple([lx.index(x) for x in batch]), tuple([ly.index(x) for x in batch])),
    )


def _is_matrix(labels: Labels, batch: Sequence[Any], free: Sequence[Any], summed: Sequence[Any]) -> bool:
    """Whether axes are laid out as a stack of matrices, possibly transposed."""
    return [*batch, *free, *summed] == list(labels) or [*batch, *summed, *free] == list(labels)
