"""Contractions: folds transpositions into the axis numbers of their readers, and turns sums of products into products.

A matrix product reads a transposed matrix at no cost, while a separate transposition costs a call. A sum over products
of broadcast arrays never needs the array of products. Kernels may sum in a different order than before.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

from tenferro_runtime.ir._program import Equation, Literal, Operand, Program
from tenferro_runtime.passes._kinds import Rounding
from tenferro_runtime.passes._rewriting import Rewriting, Rules
from tenferro_tensor import Primitive, Spec
from tenferro_tensor import catalog as c
from tenferro_tensor_core import complex64, complex128, float32, float64

Ints = tuple[int, ...]

BLAS: Final = frozenset({float32, float64, complex64, complex128})
"""Dtypes with fast matrix products."""


@Rounding
def fold_into_contractions(program: Program) -> Program:
    """Fold transpositions and conjugations into `dot_general` and sums, and contract sums of products.

    Args:
        program: the program.

    Returns:
        The rewritten program.
    """
    return Rewriting(program, _RULES).run()


def _operand_of_dot(work: Rewriting, eq: Equation) -> int | None:
    """``dot(transpose(x), y)`` reads the axes of x directly if that preserves the order of the free axes."""
    contract, batch = eq.op.params["contract"], eq.op.params["batch"]
    out = work.specs[eq.results[0]]
    for side in (0, 1):
        before = work.maker(eq.operands[side], c.transpose)
        if before is None:
            continue
        permutation: Ints = before.op.params["permutation"]
        bound = {*contract[side], *batch[side]}
        free = [permutation[i] for i in range(len(permutation)) if i not in bound]
        if free != sorted(free):
            continue
        pairs = {
            name: _with(pair, side, tuple([permutation[i] for i in pair[side]]))
            for name, pair in (("contract", contract), ("batch", batch))
        }
        operands = _with(eq.operands, side, before.operands[0])
        return work.emit(c.dot_general.op(**pairs), operands, out, eq.source)
    return _conjugated_operands(work, eq)


def _with(pair: Any, side: int, value: Any) -> Any:
    return (value, pair[1]) if side == 0 else (pair[0], value)


def _conjugated_operands(work: Rewriting, eq: Equation) -> int | None:
    """``dot(conj(x), conj(y))`` is ``conj(dot(x, y))``: one conjugation instead of two."""
    x, y = eq.operands
    left, right = work.maker(x, c.conj), work.maker(y, c.conj)
    out = work.specs[eq.results[0]]
    if left is None or right is None or not out.cplx:
        return None
    if not (work.used_once(x) and work.used_once(y)):  # type: ignore[arg-type]
        return None
    product = work.emit(eq.op, (left.operands[0], right.operands[0]), out, eq.source)
    return work.emit(c.conj.op(), (product,), out, eq.source)


def _transposed(work: Rewriting, eq: Equation) -> int | None:
    """``transpose(dot(x, y))`` is ``dot(y, x)``, or has its batch axes in another order, if it has no other reader."""
    x, out = eq.operands[0], work.specs[eq.results[0]]
    before = work.maker(x, c.transpose)
    permutation: Ints = eq.op.params["permutation"]
    if before is not None:  # two transpositions that this pass has brought together
        first = before.op.params["permutation"]
        permutation = tuple([first[p] for p in permutation])
        if permutation == tuple(range(out.ndim)):
            return before.operands[0]  # type: ignore[return-value]
        return work.emit(c.transpose.op(permutation=permutation), before.operands, out, eq.source)
    before = work.maker(x, c.dot_general)
    if before is None or not work.used_once(x):  # type: ignore[arg-type]
        return None
    contract, batch = before.op.params["contract"], before.op.params["batch"]
    n, ends = len(batch[0]), out.ndim
    free_x = work.specs[before.operands[0]].ndim - n - len(contract[0])  # type: ignore[index]
    of_x, of_y = tuple(range(n, n + free_x)), tuple(range(n + free_x, ends))
    if sorted(permutation[:n]) != list(range(n)):
        return None
    batch = tuple([tuple([axes[p] for p in permutation[:n]]) for axes in batch])
    operands = before.operands
    if permutation[n:] == of_y + of_x and of_x and of_y:
        contract, batch, operands = contract[::-1], batch[::-1], operands[::-1]
    elif permutation[n:] != of_x + of_y:
        return None
    return work.emit(c.dot_general.op(contract=contract, batch=batch), operands, out, eq.source)


def _lifted(work: Rewriting, eq: Equation) -> int | None:
    """Moves a transposition behind an element-wise op whose operands are all transposed in the same way."""
    common = None
    sources: list[Operand] = []
    for v in eq.operands:
        if isinstance(v, Literal):
            sources.append(v)
            continue
        before = work.maker(v, c.transpose)
        if before is None or (common is not None and before.op is not common):
            return None
        common = before.op
        sources.append(before.operands[0])
    if common is None:
        return None
    out = work.specs[eq.results[0]]
    source = next(work.specs[v] for v in sources if v.__class__ is int)
    value = work.emit(eq.op, sources, out.with_(shape=source.shape), eq.source)
    return work.emit(common, (value,), out, eq.source)


def _summed(work: Rewriting, eq: Equation) -> int | None:
    """Rewrites a sum over a transposed array, over a sum, or over a product whose factors have different axes."""
    x, axes, out = eq.operands[0], eq.op.params["axes"], work.specs[eq.results[0]]
    before = work.maker(x, c.transpose)
    if before is not None:
        permutation: Ints = before.op.params["permutation"]
        kept = [p for i, p in enumerate(permutation) if i not in axes]
        if kept == sorted(kept):
            op = c.reduce_sum.op(axes=tuple(sorted([permutation[a] for a in axes])))
            return work.emit(op, before.operands, out, eq.source)
    before = work.maker(x, c.reduce_sum)
    if before is not None and work.used_once(x):  # type: ignore[arg-type]
        gone = before.op.params["axes"]
        left = [i for i in range(work.specs[before.operands[0]].ndim) if i not in gone]  # type: ignore[index]
        op = c.reduce_sum.op(axes=tuple(sorted((*gone, *[left[a] for a in axes]))))
        return work.emit(op, before.operands, out, eq.source)
    before = work.maker(x, c.mul)
    if before is not None and out.dtype in BLAS and axes and work.used_once(x):  # type: ignore[arg-type]
        return _contracted(work, eq, before)
    return None


class _Factor(NamedTuple):
    """A factor of a product: the array before broadcasting, and the product's axis for each of its axes."""

    variable: int
    axes: Ints


def _factor(work: Rewriting, v: Operand) -> _Factor | None:
    if isinstance(v, Literal):
        return None
    before = work.maker(v, c.broadcast_in_dim)
    if before is not None:
        return _Factor(before.operands[0], before.op.params["dims"])  # type: ignore[arg-type]
    return _Factor(v, tuple(range(work.specs[v].ndim)))


def _contracted(work: Rewriting, eq: Equation, product: Equation) -> int | None:
    """``sum(x * y)`` as a contraction, if both factors have all summed axes and share no kept axis.

    The contraction is then one product of matrices or vectors. With shared kept axes it would be many small products,
    which a loop over elements computes faster; and an inner product of element-wise results is fused into that loop.
    """
    factors = [_factor(work, v) for v in product.operands]
    x, y = factors
    if x is None or y is None:
        return None
    summed: Ints = eq.op.params["axes"]
    kept_x = [a for a in x.axes if a not in summed]
    kept_y = [a for a in y.axes if a not in summed]
    if not {*summed} <= {*x.axes} & {*y.axes} or {*kept_x} & {*kept_y}:
        return None
    if not kept_x and not kept_y and (_elementwise(work, x.variable) or _elementwise(work, y.variable)):
        return None
    rank = work.specs[product.results[0]].ndim
    if len(kept_x) + len(kept_y) + len(summed) != rank:
        return None  # an axis of neither factor repeats the result
    if kept_x and kept_y and kept_x[0] > kept_y[0]:
        x, y, kept_x, kept_y = y, x, kept_y, kept_x
    contract = tuple([x.axes.index(a) for a in summed]), tuple([y.axes.index(a) for a in summed])
    order = [*kept_x, *kept_y]
    spec = work.specs[product.results[0]]
    made = Spec(tuple([spec.shape[a] for a in order]), spec.dtype, spec.place)
    op = c.dot_general.op(contract=contract, batch=((), ()))
    found = work.emit(op, (x.variable, y.variable), made, eq.source)
    permutation = tuple([order.index(a) for a in sorted(order)])
    if permutation == tuple(range(len(order))):
        return found
    return work.emit(c.transpose.op(permutation=permutation), (found,), work.specs[eq.results[0]], eq.source)


def _elementwise(work: Rewriting, v: Operand) -> bool:
    eq = work.made_by(v)
    return eq is not None and eq.op.primitive.elementwise


_ELEMENTWISE: Final = tuple([p for p in vars(c).values() if isinstance(p, Primitive) and p.elementwise])

_RULES: Final[Rules] = {
    **dict.fromkeys(_ELEMENTWISE, (_lifted,)),
    c.dot_general: (_operand_of_dot,),
    c.transpose: (_transposed,),
    c.reduce_sum: (_summed,),
}
