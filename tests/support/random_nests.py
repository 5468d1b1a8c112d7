"""Random `LoopFunction`s in which every index is inside and parallel loops are independent."""

import random
from collections.abc import Sequence
from typing import Any

from tenferro_tensor.catalog import arithmetic, bits, comparison, numbers
from tenferro_tensor.loop_ir import INDEX, Affine, Buffer, LoopFunction, Order, Reg
from tenferro_tensor_core import DimLike, dim
from whole_functions import Writing, literal

EDGE = 3
"""Rows and columns of a buffer beyond those that nests run over."""

FLOATS = [arithmetic.add, arithmetic.sub, arithmetic.maximum, arithmetic.minimum]
INTEGERS = [*FLOATS, arithmetic.mul, bits.bitwise_xor, bits.bitwise_and]


class RandomLoops:
    """One random function of two sizes, with buffers of ``(n + EDGE, m + EDGE)`` numbers.

    Args:
        seed: which.
    """

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.w = w = Writing("n", "m")
        open_sizes = self.random.random() < 0.5
        self.values = {"n": self.random.choice([0, 1, 3, 6]), "m": self.random.choice([0, 1, 2, 9, 40])}
        self.n: DimLike = dim("n") if open_sizes else self.values["n"]
        self.m: DimLike = dim("m") if open_sizes else self.values["m"]
        self.dtypes = self.random.choice([["f8"], ["f8", "i8"], ["f4", "i4"], ["f8", "i2", "u1"]])
        self.inputs = [w.input(self.dtype(), *self.shape) for _ in range(2)]
        outputs = [w.output(d, *self.shape) for d in self.dtypes]
        temporaries = [w.temporary(d, *self.shape) for d in self.dtypes for _ in range(2)]
        self.written = [*outputs, *temporaries]
        self.swappable = [
            (temporaries[2 * k], other)
            for k in range(len(self.dtypes))
            for other in (temporaries[2 * k + 1], outputs[k])
        ]
        for buffer in self.written:
            with w.loop(self.size(buffer)) as i:
                w.store(buffer, i, self.converted(w.let(bits.bitwise_and, i, literal(7, "i8")), buffer.dtype))

    @property
    def shape(self) -> tuple[Any, Any]:
        return self.n + EDGE, self.m + EDGE

    def dtype(self) -> str:
        return self.random.choice(self.dtypes)

    def size(self, buffer: Buffer) -> Any:
        return buffer.shape[0] * buffer.shape[1]

    def function(self) -> LoopFunction:
        """The function."""
        self.block(2, [literal(3, "i8")])
        return self.w.function()

    def converted(self, x: Any, dtype: Any) -> Any:
        return x if x.dtype == dtype else self.w.let(numbers.convert.op(dtype=dtype), x, dtype=dtype)

    def place(self, i: Any, j: Any) -> Affine:
        """An element near that of row i and column j."""
        r, width = self.random, self.m + EDGE
        row, column = Affine.of(i) + r.randrange(EDGE), Affine.of(j) + r.randrange(EDGE)
        if r.random() < 0.2:
            row = -row + (self.n + EDGE - 1)
        if r.random() < 0.2:
            column = -column + (self.m + EDGE - 1)
        return row * width + column

    def combined(self, values: Sequence[Any]) -> Any:
        """Numbers of one dtype combined by random ops."""
        total = values[0]
        for x in values[1:]:
            op = self.random.choice(FLOATS if x.dtype.kind == "f" else INTEGERS)
            total = self.w.let(op, total, x)
        if total.dtype.kind == "f":
            total = self.w.let(arithmetic.mul, total, literal(0.5, total.dtype))
        return total

    def value(self, dtype: Any, i: Any, j: Any, avoid: Buffer | None, known: Sequence[Any]) -> Any:
        """A number made of elements near row i and column j, of indices, and of known integers."""
        w, r = self.w, self.random
        values = []
        for _ in range(r.randrange(1, 4)):
            kind = r.random()
            if kind < 0.7:
                source = r.choice([b for b in [*self.inputs, *self.written] if b is not avoid])
                values.append(self.converted(w.load(source, self.place(i, j)), dtype))
            elif kind < 0.85:
                values.append(self.converted(w.position(Affine.of(i) * 2 + j), dtype))
            else:
                values.append(self.converted(r.choice(known), dtype))
        return self.combined(values)

    def block(self, depth: int, known: list[Any]) -> None:
        """A few statements."""
        kinds = [self.map, self.reduce, self.columns, self.scan, self.total]
        if depth:
            kinds += [self.repeat, self.whilst, self.choose]
        for _ in range(self.random.randrange(1, 4)):
            self.random.choice(kinds)(depth, known)

    def map(self, depth: int, known: list[Any]) -> None:
        """Every element of an inner part of a buffer."""
        w, target = self.w, self.random.choice(self.written)
        rows, columns = self.random.randrange(EDGE), self.random.randrange(EDGE)
        with w.loop(self.n) as i, w.loop(self.m) as j:
            at = (Affine.of(i) + rows) * (self.m + EDGE) + Affine.of(j) + columns
            old = [w.load(target, at)] if self.random.random() < 0.3 else []
            w.store(target, at, self.combined([*old, self.value(target.dtype, i, j, target, known)]))

    def reduce(self, depth: int, known: list[Any]) -> None:
        """A row of a buffer from reductions of other rows."""
        w, target = self.w, self.random.choice(self.written)
        op = self.random.choice([arithmetic.add, arithmetic.maximum, arithmetic.minimum])
        with w.loop(self.n) as i:
            first = literal(1, target.dtype)

            def step(j: Any, c: Any) -> list[Any]:
                return [w.let(op, c, self.value(target.dtype, i, j, target, known))]

            total = w.fold(self.m, [first], step, Order.GROUPED)[0]
            w.store(target, Affine.of(i) * (self.m + EDGE), self.combined([total, total]))

    def columns(self, depth: int, known: list[Any]) -> None:
        """Carries down all columns of a buffer, and perhaps a sum within each step."""
        w, r, target = self.w, self.random, self.random.choice(self.written)
        column, sums, stores = r.randrange(EDGE), r.random() < 0.3, r.random() < 0.5
        with w.loop(self.m) as j:

            def row(i: Any, a: Any, b: Any) -> list[Any]:
                def term(k: Any, c: Any) -> list[Any]:
                    return [w.let(arithmetic.maximum, c, self.value(target.dtype, k, j, target, known))]

                x = self.combined([a, self.value(target.dtype, i, j, target, known)])
                if sums:
                    x = w.fold(self.n, [x], term, Order.GROUPED)[0]
                if stores:
                    w.store(target, Affine.of(i) * (self.m + EDGE) + Affine.of(j) + column, x)
                return [b, x] if r.random() < 0.5 else [x, a]

            first = [w.load(self.inputs[0], self.place(0, j)), literal(2, target.dtype)]
            first = [self.converted(v, target.dtype) for v in first]
            a, b = w.fold(self.n, first, row)
            if not stores:
                w.store(target, Affine.of(j) + column, self.combined([a, b]))

    def scan(self, depth: int, known: list[Any]) -> None:
        """Carries along a row."""
        w, target = self.w, self.random.choice(self.written)

        def step(j: Any, a: Any, b: Any) -> list[Any]:
            x = self.combined([a, self.value(target.dtype, literal_index(w), j, target, known)])
            w.store(target, j, x)
            return [b, x] if self.random.random() < 0.5 else [x, a]

        first = [literal(k, target.dtype) for k in (1, 2)]
        for k, last in enumerate(w.fold(self.m, first, step)):
            w.store(target, k, last)

    def total(self, depth: int, known: list[Any]) -> None:
        """An integer that later statements use."""
        w = self.w

        def step(j: Any, c: Any) -> list[Any]:
            return [w.let(arithmetic.add, c, self.value(INDEX, literal_index(w), j, None, known))]

        found = w.fold(self.m, [self.random.choice(known)], step, Order.GROUPED)[0]
        known.append(w.let(bits.bitwise_and, found, literal(15, "i8")))

    def repeat(self, depth: int, known: list[Any]) -> None:
        """A loop in order, which may trade buffers."""
        w, r = self.w, self.random
        swaps = [r.choice(self.swappable)] if r.random() < 0.6 else []
        start = r.choice(known)

        def step(t: Reg, c: Any) -> list[Any]:
            inner = [*known, t, c]
            self.block(depth - 1, inner)
            return [r.choice(inner)]

        known.append(w.fold(r.choice([0, 1, 2, 3, self.n]), [start], step, Order.GIVEN, swaps)[0])

    def whilst(self, depth: int, known: list[Any]) -> None:
        """A loop with a condition, which may trade buffers."""
        w, r = self.w, self.random
        swaps = [r.choice(self.swappable)] if r.random() < 0.6 else []
        most = r.choice([None, 0, 2])

        def test(count: Any, _: Any) -> Any:
            return w.let(comparison.lt, count, literal(3, "i8"), dtype="bool")

        def step(t: Reg, count: Any, c: Any) -> list[Any]:
            inner = [*known, t, c]
            self.block(depth - 1, inner)
            return [w.let(arithmetic.add, count, literal(1, "i8")), r.choice(inner)]

        start = [literal(r.randrange(4), "i8"), r.choice(known)]
        known += w.loop_while(start, test, step, most, swaps)

    def choose(self, depth: int, known: list[Any]) -> None:
        """A branch by a known integer."""
        r = self.random

        def case() -> list[Any]:
            inner = list(known)
            self.block(depth - 1, inner)
            return [r.choice(inner)]

        index = self.w.let(bits.bitwise_and, r.choice(known), literal(3, "i8"))
        known += self.w.switch(index, *[case] * r.randrange(1, 4))


def literal_index(w: Writing) -> Reg:
    """The number 0 as an index."""
    return w.position(0)
