"""The executable specification of `LoopIR`: tests run it on every function, and after every pass over one.

1. Buffers are declared once, each in the list of its role; all sizes that occur are named.
2. A register is assigned by one statement, before it is read and in an enclosing scope of the reader.
3. Dtypes are those that inference returns; those of carries, cases and stores agree. Indices have dtype `INDEX`.
4. Only outputs and temporaries are written or swapped. Swapped buffers have one size and dtype, and each is in one pair
   of a loop.
5. The test of a `While` writes only temporaries that no other statement mentions.
6. Iterations of parallel and grouped loops do not depend on each other; carries of grouped loops accumulate.
7. Every access is certain to be inside its buffer, for all sizes that the function accepts (see `_bounds`).
8. Operands and results of a `Call` match its op; results are contiguous and share no memory. Views that a `Foreign`
   writes share no memory with its other arguments.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any, NoReturn

import numpy as np

from tenferro_tensor._spec import Spec
from tenferro_tensor.loop_ir._accumulation import accumulates
from tenferro_tensor.loop_ir._affine import INDEX, Affine, Reg
from tenferro_tensor.loop_ir._bounds import unproved
from tenferro_tensor.loop_ir._errors import LoopIRError
from tenferro_tensor.loop_ir._function import LoopFunction
from tenferro_tensor.loop_ir._independence import Bounds, dependent, overlapping
from tenferro_tensor.loop_ir._nodes import (
    Buffer,
    Call,
    Carried,
    For,
    Foreign,
    Let,
    Literal,
    Load,
    Order,
    Position,
    Role,
    Statement,
    Store,
    Switch,
    Value,
    View,
    While,
)
from tenferro_tensor.loop_ir._text import declared, head
from tenferro_tensor.loop_ir._traversal import everything, swapped, touch, touches
from tenferro_tensor_core import Dim, DimLike, TenferroError, decide

WRITABLE = (Role.OUTPUT, Role.TEMPORARY)


def verify(function: LoopFunction, *, bounded: bool = True) -> LoopFunction:
    """Check a function against the specification of the IR.

    Args:
        function: the function.
        bounded: whether to check that accesses are inside their buffers, which the last pass brings about.

    Returns:
        The function.

    Raises:
        LoopIRError: it violates the specification; the text names the statement and the reason.
    """
    checker = _Checker(function)
    checker.declarations()
    checker.block(function.body, {})
    for found in unproved(function) if bounded else ():
        raise LoopIRError(f"{found}", statement=head(found.touch.statement))
    return function


class _Checker:
    """Checks one function.

    Attributes:
        declared: buffers by number.
        given: numbers of the donated inputs, which are outputs as well.
        set: the registers assigned by any statement so far.
    """

    def __init__(self, function: LoopFunction) -> None:
        self.function = function
        self.declared: dict[int, Buffer] = {}
        self.given: set[int] = set()
        self.set: set[int] = set()
        self.bounds = Bounds.of(everything(function.body), function.clamps)

    def declarations(self) -> None:
        f = self.function
        lists = (f.inputs, Role.INPUT), (f.outputs, Role.OUTPUT), (f.temporaries, Role.TEMPORARY)
        given = frozenset(f.inputs)
        for buffers, role in (*lists, ([b for b, _ in f.constants], Role.CONSTANT)):
            for buffer in buffers:
                if role is Role.OUTPUT and buffer in given and buffer.number not in self.given:
                    self.given.add(buffer.number)
                    continue
                if buffer.role is not role:
                    raise LoopIRError(f"{declared(buffer)} stands among the {role.value}s")
                if buffer.number in self.declared:
                    raise LoopIRError(f"{declared(buffer)} is declared twice")
                self.declared[buffer.number] = buffer
                for extent in buffer.shape:
                    if decide(extent, "<", 0) or not self.named(extent):
                        raise LoopIRError(f"{declared(buffer)}: {extent} is no extent of sizes {list(f.sizes)}")
        for buffer, array in f.constants:
            if array.shape != buffer.shape or array.dtype != buffer.dtype:
                raise LoopIRError(f"{declared(buffer)} holds {array.dtype.name}{list(array.shape)}")

    def named(self, d: DimLike) -> bool:
        return not isinstance(d, Dim) or d.variables <= set(self.function.sizes)

    def block(self, statements: Sequence[Statement], scope: dict[int, Reg]) -> dict[int, Reg]:
        """Check statements in a scope of registers by number; returns the scope after them."""
        scope = dict(scope)
        for s in statements:
            try:
                self.one(s, scope)
            except LoopIRError:
                raise
            except TenferroError as cause:
                self.broken(s, f"inference refuses it: {cause}", cause)
        return scope

    def broken(self, s: Statement, why: str, cause: BaseException | None = None) -> NoReturn:
        raise LoopIRError(f"{head(s)} breaks the law: {why}", statement=head(s)) from cause

    def one(self, s: Statement, scope: dict[int, Reg]) -> None:
        match s:
            case Let():
                self.element(s, scope)
            case Position(result, index):
                self.index(s, index, scope)
                self.define(s, result, INDEX, scope)
            case Load(result, buffer, at):
                self.known(s, buffer)
                self.index(s, at, scope)
                self.define(s, result, buffer.dtype, scope)
            case Store(buffer, at, value):
                self.writable(s, buffer)
                self.index(s, at, scope)
                self.typed(s, value, buffer.dtype, scope, f"what {declared(buffer)} holds")
            case For():
                self.count(s, scope)
            case While():
                self.repeat(s, scope)
            case Switch():
                self.choose(s, scope)
            case Call():
                self.call(s, scope)
            case Foreign():
                self.foreign(s, scope)

    def define(self, s: Statement, reg: Reg, dtype: np.dtype[Any], scope: dict[int, Reg]) -> None:
        if reg.dtype != dtype:
            self.broken(s, f"{reg} is {reg.dtype.name}, but its value is {dtype.name}")
        if reg.number in self.set:
            self.broken(s, f"{reg} is set twice")
        self.set.add(reg.number)
        scope[reg.number] = reg

    def read(self, s: Statement, value: Value, scope: dict[int, Reg]) -> np.dtype[Any]:
        """The dtype of a value, which must be defined where it is read."""
        if isinstance(value, Literal):
            if not _fits(value):
                self.broken(s, f"{value.value!r} is no {value.dtype.name}")
        elif scope.get(value.number) != value:
            seen = scope.get(value.number)
            self.broken(s, f"{value} is {'not set there' if seen is None else f'{seen.dtype.name} there'}")
        return value.dtype

    def typed(self, s: Statement, value: Value, dtype: np.dtype[Any], scope: dict[int, Reg], what: str) -> None:
        found = self.read(s, value, scope)
        if found != dtype:
            self.broken(s, f"{value} is {found.name}, but {what} is {dtype.name}")

    def index(self, s: Statement, index: Affine, scope: dict[int, Reg]) -> None:
        for reg, _ in index.terms:
            self.typed(s, reg, INDEX, scope, "an index")
        numbers = [reg.number for reg, _ in index.terms]
        if numbers != sorted(set(numbers)) or any(by.__class__ is int and by == 0 for _, by in index.terms):
            self.broken(s, f"{index} is not canonical: registers ascend, and no coefficient is 0")
        self.extents(s, (index.constant, *[by for _, by in index.terms]))

    def extents(self, s: Statement, extents: Iterable[DimLike]) -> None:
        for d in extents:
            if not self.named(d):
                self.broken(s, f"{d} has sizes besides {list(self.function.sizes)}")

    def known(self, s: Statement, buffer: Buffer) -> None:
        if self.declared.get(buffer.number) != buffer:
            self.broken(s, f"{declared(buffer)} is not declared")

    def writable(self, s: Statement, buffer: Buffer) -> None:
        self.known(s, buffer)
        if buffer.role not in WRITABLE and buffer.number not in self.given:
            self.broken(s, f"{declared(buffer)} is read only")

    def element(self, s: Let, scope: dict[int, Reg]) -> None:
        if not s.op.primitive.elementwise:
            self.broken(s, f"{s.op.primitive.name} is not element-wise")
        out = s.op.infer(*[Spec((), self.read(s, v, scope)) for v in s.args])
        if not isinstance(out, Spec):
            self.broken(s, f"{s.op.primitive.name} has several outputs")
        self.define(s, s.result, out.dtype, scope)

    def begin(self, s: For | While, scope: dict[int, Reg]) -> dict[int, Reg]:
        """The scope inside a loop."""
        for c in s.carries:
            self.typed(s, c.first, c.inside.dtype, scope, f"the carry {c.inside}")
        inside = dict(scope)
        self.define(s, s.index, INDEX, inside)
        for c in s.carries:
            self.define(s, c.inside, c.inside.dtype, inside)
        return inside

    def end(self, s: For | While, inside: dict[int, Reg], scope: dict[int, Reg]) -> None:
        for c in s.carries:
            self.typed(s, c.following, c.inside.dtype, inside, f"the carry {c.inside}")
            self.define(s, c.result, c.inside.dtype, scope)
        seen: set[int] = set()
        for a, b in s.swaps:
            self.writable(s, a)
            self.writable(s, b)
            if not decide(math.prod(a.shape), "==", math.prod(b.shape)) or a.dtype != b.dtype:
                self.broken(s, f"{declared(a)} and {declared(b)} are swapped, but differ")
            if a.number == b.number or {a.number, b.number} & seen:
                self.broken(s, f"{a} or {b} is swapped twice in one iteration")
            seen |= {a.number, b.number}

    def count(self, s: For, scope: dict[int, Reg]) -> None:
        self.extents(s, [s.extent])
        if decide(s.extent, "<", 0):
            self.broken(s, f"its extent {s.extent} is negative")
        self.end(s, self.block(s.body, self.begin(s, scope)), scope)
        if s.order is Order.GIVEN:
            return
        moved = next(swapped([s]), None)
        if moved is not None:
            self.broken(s, f"iterations in any order swap {moved[1][0]} and {moved[1][1]}")
        met = dependent(s, self.bounds)
        if met is not None:
            first, second = (head(t.statement) for t in met)
            self.broken(s, f"iterations may depend on each other by '{first}' and '{second}'")
        for c in s.carries:
            self.accumulating(s, c)

    def accumulating(self, s: For, c: Carried) -> None:
        if s.order is Order.ANY:
            self.broken(s, f"iterations in any order carry {c.inside}")
        if not decide(s.extent, "<=", 1) and not accumulates(c, s.body):
            self.broken(s, f"{c.inside} is not accumulated by one associative op")

    def repeat(self, s: While, scope: dict[int, Reg]) -> None:
        if s.most is not None:
            self.extents(s, [s.most])
            if decide(s.most, "<", 0):
                self.broken(s, f"at most {s.most} iterations")
        tested = self.block(s.test, self.begin(s, scope))
        self.typed(s, s.condition, np.dtype(bool), tested, "a condition")
        self.private(s)
        self.end(s, self.block(s.body, tested), scope)

    def private(self, s: While) -> None:
        """Check rule 5 for a test."""
        if any(True for _ in swapped(s.test)):
            self.broken(s, "its test swaps buffers")
        written = {t.buffer.number: t.buffer for t in touches(s.test) if t.writes}
        inside = {id(t.statement) for t in touches(s.test)} if written else set()
        for t in touches(self.function.body) if written else ():
            if t.buffer.number in written and id(t.statement) not in inside:
                self.broken(s, f"its test writes {t.buffer}, which '{head(t.statement)}' mentions as well")
        for buffer in written.values():
            if buffer.role is not Role.TEMPORARY:
                self.broken(s, f"its test writes {declared(buffer)}")
        for _, pair in swapped(self.function.body) if written else ():
            if {b.number for b in pair} & set(written):
                self.broken(s, f"its test writes {pair[0]} or {pair[1]}, which are swapped")

    def choose(self, s: Switch, scope: dict[int, Reg]) -> None:
        if self.read(s, s.index, scope).kind not in "biu":
            self.broken(s, f"{s.index} is {s.index.dtype.name}, neither an integer nor a boolean")
        if not s.cases:
            self.broken(s, "it has no case")
        for k, case in enumerate(s.cases):
            inside = self.block(case.body, scope)
            if len(case.values) != len(s.results):
                self.broken(s, f"case {k} has {len(case.values)} values for {len(s.results)} results")
            for value, result in zip(case.values, s.results):
                self.typed(s, value, result.dtype, inside, f"the result {result}")
        for result in s.results:
            self.define(s, result, result.dtype, scope)

    def call(self, s: Call, scope: dict[int, Reg]) -> None:
        inferred = s.op.infer(*s.ins)
        outs = (inferred,) if isinstance(inferred, Spec) else inferred
        for what, views, specs in (("operands", s.operands, s.ins), ("results", s.results, outs)):
            if len(views) != len(specs):
                self.broken(s, f"it has {len(views)} {what} for {len(specs)} of the op")
            for view, spec in zip(views, specs):
                self.view(s, view, scope)
                if view.buffer.dtype != spec.dtype or not _may_equal(view.shape, spec.shape):
                    self.broken(s, f"one of its {what}, {view.buffer}, is not {spec!r}")
        for k, view in enumerate(s.results):
            self.writable(s, view.buffer)
            if not _gapless(view):
                self.broken(s, f"its result in {view.buffer} has gaps")
            for other in (*s.operands, *s.results[:k]):
                if overlapping(touch(s, view, True), touch(s, other, False), self.bounds):
                    self.broken(s, f"its result in {view.buffer} shares memory with another view of it")

    def foreign(self, s: Foreign, scope: dict[int, Reg]) -> None:
        views = {k: a for k, a in enumerate(s.arguments) if isinstance(a, View)}
        for a in s.arguments:
            if isinstance(a, View):
                self.view(s, a, scope)
            elif not isinstance(a, str):
                self.read(s, a, scope)
        for k in s.written:
            if k not in views:
                self.broken(s, f"argument {k} is written to, and is no memory")
            self.writable(s, views[k].buffer)
            for j, other in views.items():
                if j != k and overlapping(touch(s, views[k], True), touch(s, other, False), self.bounds):
                    self.broken(s, f"argument {k}, which is written to, shares memory with argument {j}")
        if s.info is not None:
            self.define(s, s.info, INDEX, scope)

    def view(self, s: Statement, view: View, scope: dict[int, Reg]) -> None:
        self.known(s, view.buffer)
        self.index(s, view.at, scope)
        self.extents(s, (*view.shape, *view.strides))
        if len(view.shape) != len(view.strides):
            self.broken(s, f"its view of {view.buffer} has {len(view.strides)} strides for {len(view.shape)} axes")


def _fits(literal: Literal) -> bool:
    """Whether a number is representable in its dtype."""
    value, dtype = literal.value, literal.dtype
    if dtype.kind == "b" or isinstance(value, bool):
        return dtype.kind == "b" and isinstance(value, bool)
    if dtype.kind in "iu":
        return isinstance(value, int) and np.iinfo(dtype).min <= value <= np.iinfo(dtype).max
    return isinstance(value, int | float) or dtype.kind == "c"


def _may_equal(a: tuple[DimLike, ...], b: tuple[DimLike, ...]) -> bool:
    """Whether shapes are equal for some sizes; the guards of a program may imply that they are for all its sizes."""
    return len(a) == len(b) and all(decide(m, "==", n) is not False for m, n in zip(a, b))


def _gapless(view: View) -> bool:
    distance: DimLike = 1
    for extent, by in zip(reversed(view.shape), reversed(view.strides)):
        if not (decide(extent, "<=", 1) or decide(by, "==", distance)):
            return False
        distance = distance * extent
    return True
