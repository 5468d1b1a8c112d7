"""Layout: merges, cancels or shrinks steps that only move, repeat or convert elements."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from tenferro_runtime.ir._program import Equation, Literal, Program
from tenferro_runtime.passes._blocks import BLOCKS
from tenferro_runtime.passes._kinds import Rearranging
from tenferro_runtime.passes._rewriting import Rewriting, Rules
from tenferro_tensor import Op, Primitive
from tenferro_tensor import catalog as c
from tenferro_tensor_core import finfo, is_inexact, is_narrow

SINKS: Final[frozenset[Primitive]] = frozenset(
    {
        c.add, c.sub, c.mul, c.div, c.neg, c.abs, c.conj, c.real, c.imag, c.complex, c.convert, c.select,
        c.maximum, c.minimum, c.eq, c.ne, c.lt, c.le, c.gt, c.ge, c.bitwise_and, c.bitwise_or, c.bitwise_not,
    }
)  # fmt: skip
"""Element-wise primitives with equal bits for one element and for many, unlike some vectorized functions."""


def simplify_layout(program: Program) -> Program:
    """Merge and cancel views of views; the memory layout does not change.

    Args:
        program: the program.

    Returns:
        The rewritten program.
    """
    return Rewriting(program, _VIEWS).run()


@Rearranging
def rearrange_layout(program: Program) -> Program:
    """Merge and cancel steps that move, repeat or convert elements, and compute before elements are repeated.

    Args:
        program: the program.

    Returns:
        The rewritten program.
    """
    return Rewriting(program, _RULES).run()


def _turned(work: Rewriting, eq: Equation) -> int | None:
    permutation: tuple[int, ...] = eq.op.params["permutation"]
    x, out = eq.operands[0], work.specs[eq.results[0]]
    if permutation == tuple(range(out.ndim)):
        return x  # type: ignore[return-value]
    before = work.maker(x, c.transpose)
    if before is None:
        return None
    first = before.op.params["permutation"]
    return work.emit(
        c.transpose.op(permutation=tuple([first[p] for p in permutation])), before.operands, out, eq.source
    )


def _transposed(work: Rewriting, eq: Equation) -> int | None:
    found = _turned(work, eq)
    if found is not None:
        return found
    permutation: tuple[int, ...] = eq.op.params["permutation"]
    x, out = eq.operands[0], work.specs[eq.results[0]]
    before = work.maker(x, c.broadcast_in_dim)
    if before is not None:
        dims = tuple([permutation.index(d) for d in before.op.params["dims"]])
        if list(dims) == sorted(dims):
            return work.emit(c.broadcast_in_dim.op(shape=out.shape, dims=dims), before.operands, out, eq.source)
    long = [p for p in permutation if work.specs[x].shape[p] != 1]  # type: ignore[index]
    if long == sorted(long):
        return work.emit(c.reshape.op(shape=out.shape), eq.operands, out, eq.source)
    return None


def _reshaped(work: Rewriting, eq: Equation) -> int | None:
    """A reshape of a reshape starts from the first operand; one of a single number becomes a broadcast."""
    x, out = eq.operands[0], work.specs[eq.results[0]]
    if work.specs[x] is out:  # type: ignore[index]
        return x  # type: ignore[return-value]
    before = work.maker(x, c.reshape)
    if before is not None:
        return work.emit(eq.op, before.operands, out, eq.source)
    before = work.maker(x, c.broadcast_in_dim)
    if before is not None and before.op.params["dims"] == ():
        return work.emit(c.broadcast_in_dim.op(shape=out.shape, dims=()), before.operands, out, eq.source)
    return None


def _broadcast(work: Rewriting, eq: Equation) -> int | None:
    x, out, dims = eq.operands[0], work.specs[eq.results[0]], eq.op.params["dims"]
    if work.specs[x] is out and dims == tuple(range(out.ndim)):  # type: ignore[index]
        return x  # type: ignore[return-value]
    before = work.maker(x, c.broadcast_in_dim)
    if before is None:
        return None
    composed = tuple([dims[d] for d in before.op.params["dims"]])
    return work.emit(c.broadcast_in_dim.op(shape=out.shape, dims=composed), before.operands, out, eq.source)


def _reversed(work: Rewriting, eq: Equation) -> int | None:
    x, out = eq.operands[0], work.specs[eq.results[0]]
    axes = {a for a in eq.op.params["axes"] if out.shape[a] != 1}
    before = work.maker(x, c.reverse)
    if before is not None:
        axes ^= set(before.op.params["axes"])
        x = before.operands[0]
    if not axes:
        return x  # type: ignore[return-value]
    op = c.reverse.op(axes=tuple(sorted(axes)))
    return None if op is eq.op and before is None else work.emit(op, (x,), out, eq.source)


def _sliced(work: Rewriting, eq: Equation) -> int | None:
    x, out = eq.operands[0], work.specs[eq.results[0]]
    if work.specs[x] is out and all(s == 1 for s in eq.op.params["stride"]):  # type: ignore[index]
        return x  # type: ignore[return-value]  # 0 <= start <= limit <= extent leaves nothing else
    before = work.maker(x, c.slice_)
    if before is None:
        return None
    start, limit, stride = [], [], []
    for a, b, s, a0, s0 in zip(
        *[eq.op.params[k] for k in ("start", "limit", "stride")],
        *[before.op.params[k] for k in ("start", "stride")],
        strict=True,
    ):
        if s0 == 1:
            start.append(a0 + a)
            limit.append(a0 + b)
        elif all(n.__class__ is int for n in (a, b, a0)):
            start.append(a0 + a * s0)
            limit.append(a0 + (b - 1) * s0 + 1 if b > a else a0 + a * s0)
        else:
            return None
        stride.append(s * s0)
    extent = work.specs[before.operands[0]].shape  # type: ignore[index]
    if any(n.__class__ is int and e.__class__ is int and n > e for n, e in zip(start, extent, strict=True)):
        return None  # an empty slice behind the last stride
    op = c.slice_.op(start=tuple(start), limit=tuple(limit), stride=tuple(stride))
    return work.emit(op, before.operands, out, eq.source)


def _converted(work: Rewriting, eq: Equation) -> int | None:
    """A conversion of a lossless conversion starts from the first operand."""
    x, out = eq.operands[0], work.specs[eq.results[0]]
    if x.__class__ is int and work.specs[x] is out:
        return x
    before = work.maker(x, c.convert)
    if before is not None and before.operands[0].__class__ is int:
        source = work.specs[before.operands[0]].dtype
        if _is_one_step(source, work.specs[x].dtype, out.dtype):  # type: ignore[index]
            return work.emit(eq.op, before.operands, out, eq.source)
    return _sunk(work, eq)


def _scaled(work: Rewriting, eq: Equation) -> int | None:
    """A contraction with a 0-d operand is an element-wise product, which its kernel computes anyway."""
    out = work.specs[eq.results[0]]
    x, y = eq.operands
    for number, other in ((x, y), (y, x)):
        if work.specs[number].ndim == 0 and work.specs[other] is out:  # type: ignore[index]
            if out.ndim:
                number = work.emit(c.broadcast_in_dim.op(shape=out.shape, dims=()), (number,), out, eq.source)
            return work.emit(c.mul.op(), (number, other) if other is y else (other, number), out, eq.source)
    return None


def _is_one_step(a: np.dtype[Any], b: np.dtype[Any], to: np.dtype[Any]) -> bool:
    """Whether converting a to b to c equals converting a to c, for all values."""
    if a.kind in "iu" and b.kind in "iu" and to.kind in "iu" and to.itemsize <= b.itemsize:
        return True  # modulo the smallest range
    # The conversion of an out-of-range float to an integer is undefined.
    return _is_exact(a, b) and (to.kind not in "iu" or b.kind in "iu" or _is_exact(a, to))


def _is_exact(a: np.dtype[Any], b: np.dtype[Any]) -> bool:
    """Whether b represents every number of a."""
    if a.kind == "b" or a == b:
        return True
    if is_inexact(b) and a.kind in "iu":
        digits = round(1 - np.log2(finfo(b).eps))
        return bool(a.itemsize * 8 - (a.kind == "i") <= digits)
    if is_narrow(a):
        return is_inexact(b) and not is_narrow(b)
    return not is_narrow(b) and np.can_cast(a, b, "safe")


def _sunk(work: Rewriting, eq: Equation) -> int | None:
    """Moves a broadcast behind an element-wise op whose operands are all broadcast in the same way."""
    common: Op | None = None
    sources = []
    shape: Any = None
    for v in eq.operands:
        if isinstance(v, Literal):
            sources.append(v)
            continue
        before = work.maker(v, c.broadcast_in_dim)
        if before is None or (common is not None and before.op is not common):
            return None
        common = before.op
        sources.append(before.operands[0])  # type: ignore[arg-type]
        source = work.specs[before.operands[0]]  # type: ignore[index]
        if shape is not None and shape != source.shape:
            return None
        shape = source.shape
    if common is None:
        return None
    out = work.specs[eq.results[0]]
    small = work.emit(eq.op, sources, out.with_(shape=shape), eq.source)
    return work.emit(common, (small,), out, eq.source)


_VIEWS: Final[Rules] = {
    c.transpose: (_turned,),
    c.reverse: (_reversed,),
    c.slice_: (_sliced,),
}

_RULES: Final[Rules] = {
    **_VIEWS,
    **BLOCKS,
    **dict.fromkeys(SINKS, (_sunk,)),
    c.transpose: (_transposed,),
    c.reshape: (_reshaped,),
    c.broadcast_in_dim: (_broadcast,),
    c.convert: (_converted,),
    c.dot_general: (_scaled,),
}
