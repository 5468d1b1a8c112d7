"""`LoopWriter`: writes the statements of loop nests, and simplifies integer expressions.

Indices are affine in counters where possible, and counters have bounds, so that wrapping of negative indices and
clamping of windows are removed from loops where they have no effect.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Final, TypeVar

import numpy as np

from tenferro_runtime.ir._source import Source
from tenferro_tensor import Op, Spec, catalog, host_kernel
from tenferro_tensor.loop_ir import (
    INDEX,
    Affine,
    Buffer,
    Carried,
    For,
    Let,
    Literal,
    Load,
    Order,
    Position,
    Reg,
    Requirement,
    Role,
    Statement,
    Store,
    Value,
)
from tenferro_tensor_core import Dim, DimLike, decide

T = TypeVar("T")

BOOL: Final = np.dtype(np.bool_)

_COMPARISONS: Final = frozenset({catalog.lt, catalog.le, catalog.gt, catalog.ge})


@dataclass
class OpenLoop:
    """A loop that is being written: its index, and its carried values once they are set."""

    index: Reg
    inside: tuple[Reg, ...]
    following: tuple[Value, ...] = ()
    swaps: list[tuple[Buffer, Buffer]] = field(default_factory=list)
    results: tuple[Reg, ...] = ()


class LoopWriter:
    """Statements under construction.

    Attributes:
        statements: those of the innermost open block.
        function: those of the outermost one.
        buffers: the buffers so far, by role.
        next_buffer: number of the next buffer.
        source: the user's line to attribute statements to.
        sources: the user's lines by number of the register that was written for them.
        requires: conditions on the sizes without which a window does not fit its array.
    """

    statements: list[Statement]
    function: list[Statement]
    next_buffer: int

    def __init__(self) -> None:
        self.statements = self.function = list[Statement]()
        self._entered = 0
        self._made: dict[Hashable, Any] = {}
        self.buffers: dict[Role, list[Buffer]] = {role: [] for role in Role}
        self.next_buffer = self._registers = 0
        self.source: Source = None
        self.sources: dict[int, Source] = {}
        self.requires: dict[Requirement, None] = {}
        self._around: list[DimLike] = []
        self._affine: dict[int, Affine] = {}
        self._bounds: dict[int, tuple[DimLike | None, DimLike | None]] = {}
        self._known: list[dict[Any, Reg]] = [{}]
        self._loaded: list[dict[int, dict[Affine, Reg]]] = [{}]  # by the number of the buffer

    # -- registers and memory

    def reg(self, dtype: np.dtype[Any]) -> Reg:
        """A new register.

        Args:
            dtype: its dtype.

        Returns:
            The register.
        """
        if self.source is not None:
            self.sources[self._registers] = self.source
        self._registers += 1
        return Reg(self._registers - 1, dtype)

    @property
    def length(self) -> int:
        """Number of registers so far."""
        return self._registers

    def buffer(self, dtype: np.dtype[Any], shape: Sequence[DimLike], role: Role = Role.TEMPORARY) -> Buffer:
        """A new buffer.

        Args:
            dtype: its dtype.
            shape: its shape.
            role: its role: input, output, temporary or constant.

        Returns:
            The buffer.
        """
        found = Buffer(self.next_buffer, dtype, tuple(shape), role)
        self.next_buffer += 1
        self.buffers[role].append(found)
        return found

    def load(self, buffer: Buffer, at: Affine) -> Reg:
        """Load an element.

        Args:
            buffer: the buffer.
            at: offset of the element.

        Returns:
            The number.
        """
        loaded = self._loaded[-1].setdefault(buffer.number, {})  # not across the start of a loop that may write to it
        known = loaded.get(at)
        if known is None:
            known = loaded[at] = self.reg(buffer.dtype)
            self.statements.append(Load(known, buffer, at))
        return known

    def store(self, buffer: Buffer, at: Affine, value: Value) -> None:
        """Store a number.

        Args:
            buffer: the buffer.
            at: offset of the element.
            value: the number.
        """
        self.statements.append(Store(buffer, at, value))
        self.written(buffer)

    def written(self, *buffers: Buffer) -> None:
        """Forget values that were loaded from buffers, because these are written to.

        Args:
            buffers: the buffers.
        """
        for level in self._loaded:
            for buffer in buffers:
                level.pop(buffer.number, None)

    # -- numbers

    def let(self, op: Op, dtype: np.dtype[Any], *args: Value) -> Value:
        """Apply an element-wise op to numbers; folds literals, and keeps indices affine where possible.

        Args:
            op: the op.
            dtype: dtype of the result.
            args: the numbers.

        Returns:
            The result.
        """
        if all(isinstance(a, Literal) for a in args):
            return _folded(op, dtype, args)  # type: ignore[arg-type]
        found = self._of_indices(op, dtype, args)
        if found is not None:
            return found
        key = (op, args)
        known = self._remembered(key)
        if known is None:
            known = self._remember(key, self.reg(dtype))
            self.statements.append(Let(known, op, tuple(args)))
        return known

    def position(self, index: Affine) -> Value:
        """An index as a number.

        Args:
            index: the index.

        Returns:
            The number.
        """
        if not index.terms and isinstance(index.constant, int):
            return Literal(index.constant, INDEX)
        if index.constant.__class__ is int and index.constant == 0 and len(index.terms) == 1:
            reg, by = index.terms[0]
            if by.__class__ is int and by == 1:
                return reg
        known = self._remembered(index)
        if known is None:
            known = self._remember(index, self.reg(INDEX))
            self._affine[known.number] = index
            self.statements.append(Position(known, index))
        return known

    def index(self, value: Value) -> Affine:
        """An integer as an index.

        Args:
            value: an integer of any dtype.

        Returns:
            The index.
        """
        if isinstance(value, Literal):
            return Affine(int(value.value))  # type: ignore[arg-type]
        if value.dtype != INDEX:
            convert = catalog.convert.op(dtype=INDEX)
            return self.index(self.let(convert, INDEX, value))
        return self._affine.get(value.number) or Affine.of(value)

    def bounded(self, reg: Reg, low: DimLike | None, high: DimLike | None) -> None:
        """State bounds of a register.

        Args:
            reg: the register.
            low: lower bound.
            high: upper bound.
        """
        self._bounds[reg.number] = low, high

    def stands_for(self, reg: Reg, index: Affine) -> None:
        """State that a register equals an index.

        Args:
            reg: the register.
            index: the index.
        """
        self._affine[reg.number] = index

    def range_of(self, index: Affine) -> tuple[DimLike | None, DimLike | None]:
        """Bounds of an index that follow from those of its registers.

        Args:
            index: the index.

        Returns:
            The bounds.
        """
        low: DimLike | None = index.constant
        high: DimLike | None = index.constant
        for reg, by in index.terms:
            least, most = self._bounds.get(reg.number, (None, None))
            if not isinstance(by, int):
                return None, None
            if by < 0:
                least, most = most, least
            low = None if low is None or least is None else low + least * by
            high = None if high is None or most is None else high + most * by
        return low, high

    def within(self, index: Affine, low: DimLike, high: DimLike) -> bool:
        """Whether ``low <= index <= high`` is certain.

        Args:
            index: the index.
            low: lower bound.
            high: upper bound.

        Returns:
            True if it is.
        """
        least, most = self.range_of(index)
        return least is not None and most is not None and never_negative(least - low) and never_negative(high - most)

    def clamped(self, index: Affine, high: DimLike) -> Affine:
        """Clamp an index to the range from 0 to `high`; calls at sizes for which that is empty are refused.

        The memory of a larger array around the range might hide that there is no such index.

        Args:
            index: the index.
            high: upper bound.

        Returns:
            The index.
        """
        if not never_negative(high) and high + 1 not in self._around:
            self.requires[Requirement(high, tuple([n for n in self._around if isinstance(n, Dim)]))] = None
        if self.within(index, 0, high):
            return index
        value = self.position(index)
        value = self.let(catalog.maximum.op(), INDEX, value, Literal(0, INDEX))
        value = self.let(catalog.minimum.op(), INDEX, value, self.position(Affine(high)))
        return self.index(value)

    def inside(self, index: Affine, high: DimLike) -> Value:
        """The condition ``0 <= index <= high``.

        Args:
            index: the index.
            high: upper bound.

        Returns:
            A boolean number.
        """
        if self.within(index, 0, high):
            return Literal(True, BOOL)
        value = self.position(index)
        low = self.let(catalog.ge.op(), BOOL, value, Literal(0, INDEX))
        return self.both(low, self.let(catalog.le.op(), BOOL, value, self.position(Affine(high))))

    def both(self, x: Value, y: Value) -> Value:
        """The conjunction of two conditions.

        Args:
            x: a boolean number.
            y: a boolean number.

        Returns:
            A boolean number.
        """
        for a, b in ((x, y), (y, x)):
            if isinstance(a, Literal):
                return b if a.value else a
        return self.let(catalog.bitwise_and.op(), BOOL, x, y)

    def _of_indices(self, op: Op, dtype: np.dtype[Any], args: tuple[Value, ...]) -> Value | None:
        """Simplify sums and comparisons of 64-bit integers."""
        p = op.primitive
        if p is catalog.select and isinstance(args[0], Literal):
            return args[1] if args[0].value else args[2]
        if len(args) != 2 or any(a.dtype != INDEX for a in args):
            return None
        if p in (catalog.add, catalog.sub):
            x, y = map(self.index, args)
            return self.position(x + y if p is catalog.add else x - y)
        if p is catalog.mul and isinstance(args[1], Literal):
            return self.position(self.index(args[0]) * int(args[1].value))  # type: ignore[arg-type]
        if p in (catalog.eq, catalog.ne):
            low, high = self.range_of(self.index(args[0]) - self.index(args[1]))
            if (low is not None and never_negative(low - 1)) or (high is not None and never_negative(-1 - high)):
                return Literal(p is catalog.ne, BOOL)
            return None
        if p in _COMPARISONS or p in (catalog.maximum, catalog.minimum):
            low, high = self.range_of(self.index(args[0]) - self.index(args[1]))
            above = low is not None and never_negative(low)
            below = high is not None and never_negative(0 - high)
            if p in (catalog.maximum, catalog.minimum):
                if above or below:
                    return args[0] if above == (p is catalog.maximum) else args[1]
                return None
            if p is catalog.ge or p is catalog.lt:
                below = high is not None and never_negative(-1 - high)
            else:
                above = low is not None and never_negative(low - 1)
            if above:
                return Literal(p in (catalog.gt, catalog.ge), BOOL)
            if below:
                return Literal(p in (catalog.lt, catalog.le), BOOL)
        return None

    # -- loops

    @contextmanager
    def block(self) -> Iterator[list[Statement]]:
        """Collect statements in a separate list."""
        outer, self.statements = self.statements, []
        self._known.append({})
        self._loaded.append({})
        try:
            yield self.statements
        finally:
            self._known.pop()
            self._loaded.pop()
            self.statements = outer

    def once(self, key: Hashable, make: Callable[[], T]) -> T:
        """A value that is computed once, before all other statements, so that it may depend on sizes only.

        Args:
            key: identifies the value.
            make: writes the statements and returns the value.

        Returns:
            The value.
        """
        found: T | None = self._made.get(key)
        if found is None:
            outer, known, self.statements, self._known = self.statements, self._known, [], [{}]
            try:
                found = self._made[key] = make()
                self.function[self._entered : self._entered] = self.statements
                self._entered += len(self.statements)
            finally:
                self.statements, self._known = outer, known
        return found

    @contextmanager
    def resumed(self, statements: list[Statement]) -> Iterator[None]:
        """Context that appends to statements collected earlier.

        Args:
            statements: the statements.

        Returns:
            The context manager.
        """
        outer, self.statements = self.statements, statements
        self._known.append({})
        self._loaded.append({})
        try:
            yield
        finally:
            self._known.pop()
            self._loaded.pop()
            self.statements = outer

    @contextmanager
    def loop(self, extent: DimLike, first: Sequence[Value] = (), order: Order = Order.GIVEN) -> Iterator[OpenLoop]:
        """A counted loop with carried numbers; the body sets `following`.

        Args:
            extent: number of iterations.
            first: initial values of the carried numbers.
            order: order of the iterations.

        Returns:
            A context manager for the loop.
        """
        index = self.reg(INDEX)
        self.bounded(index, 0, extent - 1)
        loop = OpenLoop(index, tuple([self.reg(v.dtype) for v in first]))
        self._around.append(extent)
        try:
            with self.block() as body:
                yield loop
        finally:
            self._around.pop()
        loop.results = tuple([self.reg(v.dtype) for v in first])
        carries = tuple(map(Carried, loop.inside, first, loop.following, loop.results))
        self.statements.append(For(index, extent, tuple(body), carries, order, tuple(loop.swaps)))
        self.written(*[buffer for pair in loop.swaps for buffer in pair])

    def nest(self, shape: Sequence[DimLike], body: Callable[[tuple[Affine, ...]], None]) -> None:
        """Independent iterations over all elements of a shape.

        Args:
            shape: the shape.
            body: writes the statements for an index.
        """

        def level(k: int, index: tuple[Affine, ...]) -> None:
            if k == len(shape):
                body(index)
            elif shape[k].__class__ is int and shape[k] == 1:
                level(k + 1, (*index, Affine()))
            else:
                with self.loop(shape[k], order=Order.ANY) as loop:
                    level(k + 1, (*index, Affine.of(loop.index)))

        level(0, ())

    # -- equal numbers are computed once in a block

    def _remembered(self, key: Any) -> Reg | None:
        return next((level[key] for level in reversed(self._known) if key in level), None)

    def _remember(self, key: Any, reg: Reg) -> Reg:
        self._known[-1][key] = reg
        return reg


def never_negative(d: DimLike) -> bool:
    """Whether an extent, or the difference of two, is certainly at least 0."""
    if isinstance(d, Dim):
        return (d.lower is not None and d.lower >= 0) or decide(d, ">=", 0) is True
    return d >= 0


def _folded(op: Op, dtype: np.dtype[Any], args: tuple[Literal, ...]) -> Literal:
    """Fold an op of literals with the reference kernel."""
    specs = tuple([Spec((), a.dtype) for a in args])
    kernel = host_kernel(op, specs, (Spec((), dtype),))
    assert kernel is not None
    with np.errstate(all="ignore"):
        return Literal(np.asarray(kernel(*[np.asarray(a.value, a.dtype) for a in args])).astype(dtype).item(), dtype)
