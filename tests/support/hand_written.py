"""Loop functions of one op or one reduction, written by hand."""

from collections.abc import Callable, Sequence
from itertools import count
from typing import Any

import numpy as np

from tenferro_tensor import Op, Spec
from tenferro_tensor.catalog import arithmetic
from tenferro_tensor.loop_ir import (
    INDEX,
    Affine,
    Buffer,
    Carried,
    For,
    Let,
    Literal,
    Load,
    LoopFunction,
    Order,
    Reg,
    Role,
    Statement,
    Store,
    Value,
)
from tenferro_tensor_core import DimLike, dim

Compute = Callable[["Writing", list[Value]], list[Value]]

OPS = {"sum": arithmetic.add, "prod": arithmetic.mul, "max": arithmetic.maximum, "min": arithmetic.minimum}


class Writing:
    """Statements under construction."""

    def __init__(self) -> None:
        self._numbers = count()
        self.body: list[Statement] = []

    def new(self, dtype: Any = INDEX) -> Reg:
        return Reg(next(self._numbers), np.dtype(dtype))

    def let(self, op: Op, *args: Value) -> Reg:
        out = op.infer(*[Spec((), a.dtype) for a in args])
        assert isinstance(out, Spec)
        result = self.new(out.dtype)
        self.body.append(Let(result, op, args))
        return result


def mapped(dtypes: Sequence[Any], compute: Compute, fixed: Sequence[int] = ()) -> LoopFunction:
    """What `compute` makes of one element of each input, for `n` elements; `fixed` inputs have one element."""
    w, n = Writing(), dim("n")
    i, inputs, values = w.new(), list[Buffer](), list[Value]()
    for k, dtype in enumerate(map(np.dtype, dtypes)):
        inputs.append(Buffer(k, dtype, (1,) if k in fixed else (n,), Role.INPUT))
        x = w.new(dtype)
        values.append(x)
        w.body.append(Load(x, inputs[-1], Affine() if k in fixed else Affine.of(i)))
    results = compute(w, values)
    outputs = [Buffer(len(inputs) + k, x.dtype, (n,), Role.OUTPUT) for k, x in enumerate(results)]
    w.body += [Store(y, Affine.of(i), x) for y, x in zip(outputs, results, strict=True)]
    loop = For(i, n, tuple(w.body), order=Order.ANY)
    return LoopFunction(("n",), tuple(inputs), tuple(outputs), (), (), (loop,))


def of_op(op: Op, *dtypes: Any) -> LoopFunction:
    """One op on contiguous arrays."""
    return mapped(dtypes, lambda w, xs: [w.let(op, *xs)])


def of_literals(literals: Sequence[Literal]) -> LoopFunction:
    """Numbers, written for each element of an array."""
    return mapped(["int8"], lambda w, xs: list(literals))


def reducing(kind: str, dtype: Any, kept: int, gone: int, *, leading: bool = False) -> LoopFunction:
    """A reduction of a contiguous array with these numbers of axes, the last ones or the first ones."""
    w, dtype = Writing(), np.dtype(dtype)
    names = [f"n{k}" for k in range(kept + gone)]
    extents = [dim(name) for name in names]
    axes = [w.new() for _ in extents]
    at, step = Affine(), 1
    for index, extent in reversed(list(zip(axes, extents, strict=True))):
        at, step = at + Affine.of(index) * step, extent * step  # type: ignore[assignment]
    lost = range(gone) if leading else range(kept, kept + gone)
    stay = [k for k in range(kept + gone) if k not in lost]
    x = Buffer(0, dtype, tuple(extents), Role.INPUT)
    y = Buffer(1, dtype, tuple([extents[k] for k in stay]), Role.OUTPUT)
    first = Literal(neutral(kind, dtype), dtype)

    def level(left: Sequence[int], inside: Value) -> tuple[list[Statement], Value]:
        if not left:
            term, total = w.new(dtype), w.new(dtype)
            return [Load(term, x, at), Let(total, OPS[kind].op(), (inside, term))], total
        own, result = w.new(dtype), w.new(dtype)
        body, following = level(left[1:], own)
        carry = Carried(own, inside, following, result)
        return [For(axes[left[0]], extents[left[0]], tuple(body), (carry,), Order.GROUPED)], result

    body, result = level(list(lost), first)
    to, step = Affine(), 1
    for k in reversed(stay):
        to, step = to + Affine.of(axes[k]) * step, extents[k] * step  # type: ignore[assignment]
    body.append(Store(y, to, result))
    for k in reversed(stay):
        body = [For(axes[k], extents[k], tuple(body), order=Order.ANY)]
    return LoopFunction(tuple(names), (x,), (y,), (), (), tuple(body))


def neutral(kind: str, dtype: np.dtype[Any]) -> Any:
    """The result for no elements."""
    if kind in ("sum", "prod"):
        return dtype.type(kind == "prod").item()
    if dtype.kind == "b":
        return kind == "min"
    if dtype.kind == "f":
        return -np.inf if kind == "max" else np.inf
    info: DimLike = getattr(np.iinfo(dtype), "min" if kind == "max" else "max")
    return int(info)  # type: ignore[arg-type]
