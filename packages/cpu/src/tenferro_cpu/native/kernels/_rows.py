"""Kernels of one op as loop functions over rows, whose strides are sizes (`whole/_row.py`)."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import count
from typing import Any, Final

import numpy as np

from tenferro_cpu.native.codegen.whole._cascade import GROUP
from tenferro_cpu.native.kernels._forms import Access
from tenferro_tensor import Op, Spec
from tenferro_tensor.catalog import arithmetic, bits, comparison
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
    Position,
    Reg,
    Role,
    Statement,
    Store,
    Value,
)
from tenferro_tensor_core import DimLike, dim, dim_max, dim_min, floordiv

ROWS_PER_BAND: Final = 16
"""Rows combined in registers before the result in memory is read."""

GROUPS_PER_BAND: Final = 8
"""Groups of rows that are added in registers, before the result in memory is read."""

_N: Final = dim("n")
_M: Final = dim("m")


class _Numbering:
    """Registers with numbers of their own."""

    def __init__(self) -> None:
        self._numbers = count()

    def new(self, dtype: np.dtype[Any] = INDEX) -> Reg:
        return Reg(next(self._numbers), dtype)


def _along(index: Reg, access: Access, number: int) -> Affine:
    """Position of an iteration in buffer `number`."""
    step: dict[Access, DimLike] = {Access.UNIT: 1, Access.FIXED: 0, Access.STRIDED: dim(f"s{number}")}
    return Affine.of(index) * step[access]


def _reach(access: Access, number: int) -> DimLike:
    """Elements from the first to the last of a row; of a negative stride, from the last to the first."""
    if access is Access.STRIDED:
        return dim_max(_N - 1, 0) * dim(f"s{number}") + 1
    return _N if access is Access.UNIT else 1


def _sizes(accesses: Sequence[Access], *others: str) -> tuple[str, ...]:
    return ("n", *others, *[f"s{k}" for k, access in enumerate(accesses) if access is Access.STRIDED])


def mapped_row(op: Op, dtypes: Sequence[np.dtype[Any]], accesses: Sequence[Access]) -> LoopFunction:
    """An element-wise op.

    Args:
        op: the op.
        dtypes: dtypes of its operands.
        accesses: accesses of its operands and of the result.

    >>> from tenferro_tensor.catalog import add
    >>> f8 = np.dtype("float64")
    >>> print(mapped_row(add.op(), (f8, f8), (Access.UNIT, Access.FIXED, Access.STRIDED)))
    function(n, s2)
      input b0: float64[n]
      input b1: float64[1]
      output b2: float64[max(0, n - 1)*s2 + 1]
      for r0 < n parallel:
        r1: float64 = b0[r0]
        r2: float64 = b1[0]
        r3: float64 = add(r1, r2)
        b2[r0*s2] = r3
    """
    out = op.infer(*[Spec((), d) for d in dtypes])
    assert isinstance(out, Spec)
    registers = _Numbering()
    i = registers.new()
    buffers = [
        Buffer(k, d, (_reach(access, k),), Role.OUTPUT if k == len(dtypes) else Role.INPUT)
        for k, (d, access) in enumerate(zip((*dtypes, out.dtype), accesses, strict=True))
    ]
    values = [registers.new(d) for d in dtypes]
    places = [_along(i, access, k) for k, access in enumerate(accesses)]
    loads = [Load(x, buffer, at) for x, buffer, at in zip(values, buffers, places)]  # the result is last
    result = registers.new(out.dtype)
    body: list[Statement] = [*loads, Let(result, op, tuple(values)), Store(buffers[-1], places[-1], result)]
    loop = For(i, _N, tuple(body), order=Order.ANY)
    return LoopFunction(_sizes(accesses), tuple(buffers[:-1]), (buffers[-1],), (), (), (loop,))


def combining(kind: str, dtype: np.dtype[Any]) -> Op:
    """The op that combines two elements."""
    if dtype.kind == "b":
        return (bits.bitwise_or if kind in ("sum", "max") else bits.bitwise_and).op()
    ops = {"sum": arithmetic.add, "prod": arithmetic.mul, "max": arithmetic.maximum, "min": arithmetic.minimum}
    return ops[kind].op()


def _neutral(kind: str, dtype: np.dtype[Any]) -> Literal:
    if dtype.kind == "b":
        return Literal(kind in ("prod", "min"), dtype)
    if kind in ("sum", "prod"):
        return Literal(dtype.type(kind == "prod").item(), dtype)
    if dtype.kind == "f":
        return Literal(float("-inf" if kind == "max" else "inf"), dtype)
    info = np.iinfo(dtype)
    return Literal(int(info.min if kind == "max" else info.max), dtype)


class _Reduction:
    """A reduction under construction."""

    def __init__(self, kind: str, dtype: np.dtype[Any]) -> None:
        self.dtype, self.op, self.neutral = dtype, combining(kind, dtype), _neutral(kind, dtype)
        self.rounds = kind in ("sum", "prod") and dtype.kind in "fc"
        self._registers = _Numbering()

    def new(self, dtype: np.dtype[Any] = INDEX) -> Reg:
        return self._registers.new(dtype)

    def both(self, body: list[Statement], x: Value, y: Value) -> Reg:
        """Two elements, combined."""
        result = self.new(self.dtype)
        body.append(Let(result, self.op, (x, y)))
        return result

    def positive(self, body: list[Statement], number: Affine) -> Reg:
        """Whether a number is positive."""
        value, flag = self.new(), self.new(np.dtype(bool))
        body += [Position(value, number), Let(flag, comparison.gt.op(), (value, Literal(0, INDEX)))]
        return flag

    def chosen(self, body: list[Statement], flag: Value, x: Value, y: Value) -> Reg:
        """`x` if the flag holds, otherwise `y`."""
        result = self.new(self.dtype)
        body.append(Let(result, comparison.select.op(), (flag, x, y)))
        return result

    def load(self, body: list[Statement], buffer: Buffer, at: Affine) -> Reg:
        result = self.new(self.dtype)
        body.append(Load(result, buffer, at))
        return result

    def over(self, body: list[Statement], index: Reg, extent: DimLike, term: list[Statement], value: Value) -> Reg:
        """The values that `term` computes, combined."""
        inside, result = self.new(self.dtype), self.new(self.dtype)
        following = self.both(term, inside, value)
        carry = Carried(inside, self.neutral, following, result)
        body.append(For(index, extent, tuple(term), (carry,), Order.GROUPED))
        return result


def reduced_row(kind: str, dtype: np.dtype[Any], access: Access) -> LoopFunction:
    """A row as one element.

    Args:
        kind: ``"sum"``, ``"prod"``, ``"max"`` or ``"min"``; of booleans ``"max"`` is any and ``"min"`` is all.
        dtype: dtype of the elements.
        access: access of the row.
    """
    r = _Reduction(kind, dtype)
    x, y = Buffer(0, dtype, (_reach(access, 0),), Role.INPUT), Buffer(1, dtype, (1,), Role.OUTPUT)
    body: list[Statement] = []
    term: list[Statement] = []
    i = r.new()
    total = r.over(body, i, _N, term, r.load(term, x, _along(i, access, 0)))
    body.append(Store(y, Affine(), total))
    return LoopFunction(_sizes((access,)), (x,), (y,), (), (), tuple(body))


def short_rows(kind: str, dtype: np.dtype[Any], length: int, access: Access) -> LoopFunction:
    """Rows of a known short length, each as one element: neighbours are combined first.

    Args:
        kind: as for `reduced_row`.
        dtype: dtype of the elements.
        length: elements of a row.
        access: of all rows together: contiguous, or one element for all.
    """
    r = _Reduction(kind, dtype)
    unit = access is Access.UNIT
    x, y = Buffer(0, dtype, (_N, length) if unit else (1,), Role.INPUT), Buffer(1, dtype, (_N,), Role.OUTPUT)
    body: list[Statement] = []
    i = r.new()
    values = [r.load(body, x, Affine.of(i) * length + k if unit else Affine()) for k in range(length)]
    while len(values) > 1:
        last = values[len(values) & -2 :]
        values = [r.both(body, a, b) for a, b in zip(values[::2], values[1::2], strict=False)] + last
    body.append(Store(y, Affine.of(i), values[0]))
    return LoopFunction(("n",), (x,), (y,), (), (), (For(i, _N, tuple(body), order=Order.ANY),))


def combined_rows(kind: str, dtype: np.dtype[Any], read: Access, write: Access) -> LoopFunction:
    """Rows combined element by element, a band of rows at a time so that they stream; there is at least one.

    Args:
        kind: as for `reduced_row`.
        dtype: dtype of the elements.
        read: access of the rows.
        write: access of the result.
    """
    r = _Reduction(kind, dtype)
    far = dim("d0")
    x = Buffer(0, dtype, (dim_max(_M - 1, 0) * far + _reach(read, 0),), Role.INPUT)
    y = Buffer(1, dtype, (_reach(write, 1),), Role.OUTPUT)

    def over_columns(band: list[Statement], start: Affine, rows: DimLike, before: Affine, extent: DimLike) -> None:
        """Combine some rows with the result, of which there is one unless `before` is 0."""
        j, inner = r.new(), list[Statement]()
        again, at = r.positive(band, before), _along(j, write, 1)
        total = of_rows(inner, j, start, rows)
        both = r.both(inner, r.load(inner, y, at), total)
        inner.append(Store(y, at, r.chosen(inner, again, both, total)))
        band.append(For(j, extent, tuple(inner), order=Order.ANY))

    def of_rows(into: list[Statement], j: Reg, start: Affine, rows: DimLike) -> Reg:
        if not r.rounds:
            return some(into, j, start, rows)
        g, group = r.new(), list[Statement]()
        groups = floordiv(rows, GROUP)
        part = some(group, j, start + Affine.of(g) * GROUP, GROUP)
        total = r.over(into, g, groups, group, part)
        rest = rows - groups * GROUP
        if rest.__class__ is int and rest == 0:
            return total
        more = r.positive(into, Affine(rest))
        both = r.both(into, total, some(into, j, start + groups * GROUP, rest))
        return r.chosen(into, more, both, total)

    def some(into: list[Statement], j: Reg, first: Affine, extent: DimLike) -> Reg:
        k, term = r.new(), list[Statement]()
        return r.over(into, k, extent, term, r.load(term, x, (first + k) * far + _along(j, read, 0)))

    size = GROUP * GROUPS_PER_BAND if r.rounds else ROWS_PER_BAND
    bands, b, band = floordiv(_M, size), r.new(), list[Statement]()
    over_columns(band, Affine.of(b) * size, size, Affine.of(b), _N)
    rest = _M - bands * size
    body: list[Statement] = [For(b, bands, tuple(band), order=Order.GIVEN)]
    over_columns(body, Affine(bands * size), rest, Affine(bands), _N * dim_min(rest, 1))
    return LoopFunction(_sizes((read, write), "m", "d0"), (x,), (y,), (), (), tuple(body))
