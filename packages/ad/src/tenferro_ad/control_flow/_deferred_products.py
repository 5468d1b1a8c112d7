"""Sums of products over the steps of a loop, computed after the loop by one product of stacked factors.

The cotangent of a matrix that every step multiplies by is such a sum: each step would form a matrix and add it to
another. Stacking the factors moves less memory, and one large product is faster than many thin ones.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

from tenferro_runtime.extension import Program
from tenferro_runtime.passes import remove_dead_code
from tenferro_runtime.passes.schedule import weight
from tenferro_tensor import catalog as c

PRODUCT_TO_FACTORS_MIN: Final = 4
"""Minimum ratio of the product's size to that of its stacked factors for deferring the product."""


class DeferredProduct(NamedTuple):
    """A sum of products of stacked factors.

    Attributes:
        operand: position of the operand whose cotangent it is.
        factors: source of each stacked factor: ``("slice", i)`` among the slices of the body, or ``("row", i)`` among
            its rows.
        contract: the axes that a step contracts.
    """

    operand: int
    factors: tuple[tuple[str, int], tuple[str, int]]
    contract: tuple[tuple[int, ...], tuple[int, ...]]

    def formed(self, slices: Sequence[Any], rows: Sequence[Any]) -> Any:
        """Compute the sum from stacked slices and rows."""
        a, b = [(slices if kind == "slice" else rows)[i] for kind, i in self.factors]
        left, right = [(0, *[axis + 1 for axis in axes]) for axes in self.contract]
        return c.dot_general(a, b, contract=(left, right), batch=((), ()))


def with_deferred_products(
    body: Program, consts: int, carry: int, sums: Mapping[int, int]
) -> tuple[Program, tuple[DeferredProduct, ...]]:
    """A body that stacks factors instead of summing products, and the deferred sums.

    Args:
        body: the body of a loop.
        consts: number of inputs before the carry.
        carry: number of carries.
        sums: by index of each carry that starts from zero and is only read after the loop: its operand.
    """
    made = {v: eq for eq in body.equations for v in eq.results}
    uses = Counter([v for eq in body.equations for v in eq.variables])
    uses.update(body.output_ids)
    slices = body.input_ids[consts + carry :]
    fixed = {*body.input_ids[:consts], *body.constants}
    rows = list(body.output_ids[carry:])
    found: dict[int, DeferredProduct] = {}
    for j, operand in sums.items():
        total, end = body.input_ids[consts + j], body.output_ids[j]
        add = made.get(end)
        if add is None or add.op.primitive is not c.add or total not in add.operands or {uses[total], uses[end]} != {1}:
            continue
        product = made.get(next((v for v in add.variables if v != total), total))
        if product is None or product.op.primitive is not c.dot_general or any(product.op.params["batch"]):
            continue
        factors = product.variables
        if len(factors) != 2 or any(v in fixed or not body.specs[v].shape for v in factors):
            continue
        stacked = sum([weight(body.specs[v], body.examples) for v in {*factors} - {*slices, *rows}])
        if PRODUCT_TO_FACTORS_MIN * stacked > weight(body.specs[total], body.examples):
            continue
        rows += [v for v in dict.fromkeys(factors) if v not in slices and v not in rows]
        left, right = [("slice", slices.index(v)) if v in slices else ("row", rows.index(v)) for v in factors]
        found[j] = DeferredProduct(operand, (left, right), product.op.params["contract"])
    if not found:
        return body, ()
    inputs = [v for i, v in enumerate(body.input_ids) if i - consts not in found]
    outputs = [v for i, v in enumerate(body.output_ids[:carry]) if i not in found]
    body = remove_dead_code(body.with_(input_ids=tuple(inputs), output_ids=(*outputs, *rows)))
    return body, tuple(found.values())
