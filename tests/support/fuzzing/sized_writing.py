"""Random programs whose arrays have the symbolic extents n and m: loops, updates and accesses by traced indices.

A line is valid for all n and m of at least 1; extents of 0 make some accesses refuse. Every value has bounded elements,
whatever the sizes, so that rounding stays small.
"""

import random
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

Shape = tuple[str, ...]

LARGEST = 1e4
"""Bound of elements; larger ones are not written."""

STEPS = 17
"""Most steps of a loop, for bounds."""


@dataclass(frozen=True)
class Value:
    """A name of the program.

    Attributes:
        name: the name.
        shape: extents, as expressions of n and m.
        kind: ``"f"`` for data, ``"i"`` for indices.
        largest: a bound of the elements.
        exact: equal in every way to compute it, so that it may be compared and ordered.
        below: of an index in bounds: the extent that it is below.
    """

    name: str
    shape: Shape
    kind: str = "f"
    largest: float = 1.0
    exact: bool = False
    below: str = ""


class Line(NamedTuple):
    """An expression and what is known of it; `after` are assignments to its elements."""

    text: str
    shape: Shape
    largest: float
    exact: bool = False
    kind: str = "f"
    after: str = ""


class Writer:
    """Lines of one program.

    Args:
        rng: makes all choices.
        inputs: the values of the arguments.
        smooth: the program is differentiated: where elements tie, rounding must not decide on its derivative.
    """

    def __init__(self, rng: random.Random, inputs: list[Value], smooth: bool) -> None:
        self.rng, self.smooth, self.inputs = rng, smooth, inputs
        self.values = list(inputs)
        self.lines: list[tuple[str, Line]] = []

    def write(self, count: int) -> None:
        """Add so many lines."""
        attempts = 0
        while len(self.lines) < count and attempts < 20 * count:
            attempts += 1
            line = self.rng.choices(DRAWS, WEIGHTS)[0](self)
            if line is None or line.largest > LARGEST or any(line.text == x.text for _, x in self.lines):
                continue
            name = f"v{len(self.values)}"
            self.lines.append((name, line))
            self.values.append(Value(name, line.shape, line.kind, line.largest, line.exact))

    # Choices

    def one(self, *texts: str) -> str:
        """One of some texts."""
        return self.rng.choice(texts)

    def pick(self, test: Callable[[Value], bool] = lambda v: True, kind: str = "f") -> Value | None:
        """A value that passes a test, rather a recent one."""
        found = [v for v in self.values if v.kind == kind and test(v)]
        if not found:
            return None
        return self.rng.choice(found[-4:] if self.rng.random() < 0.6 else found)

    def array(self, least: int = 1) -> Value | None:
        """Data with at least so many axes."""
        return self.pick(lambda v: len(v.shape) >= least)

    def like(self, x: Value) -> Value:
        """Data of the shape of other data, often the same."""
        found = self.pick(lambda v: v.shape == x.shape)
        return x if found is None or self.rng.random() < 0.35 else found

    def scalar(self) -> Value:
        """A traced integer among the arguments."""
        return self.rng.choice([v for v in self.inputs if v.kind == "i" and not v.shape])

    def index(self, of: str, axis: int, extent: str, counter: str = "", within: str = "") -> str:
        """An index of an axis.

        Args:
            of: expression of the array.
            axis: its axis.
            extent: the extent of that.
            counter: name of the counter of an enclosing loop.
            within: extent that the counter is below.
        """
        s, size = self.scalar(), f"{of}.shape[{axis}]"
        forms = [f"{s.name} % {size}"] * 3 + [f"({s.name} + 1) % {size}", f"{size} - 1 - {s.name} % {size}"]
        forms += [f"tr.clip({s.name}, 0, {size} - 1)", f"({s.name} - 3) % {size}"]
        if s.below == extent:
            forms += [s.name] * 4
        if counter:
            forms += [f"{counter} % {size}"] * 6 + [f"({counter} + 1) % {size}"] * 3
            forms += [f"({counter} + {s.name}) % {size}", f"{size} - 1 - {counter} % {size}"]
            if within == extent:
                forms += [counter] * 8 + [f"{size} - 1 - {counter}"] * 4
        else:
            forms += [self.one("0", "-1")]
            v = self.pick(lambda v: v.shape == (extent,) and v.exact)
            if v:
                forms += [f"tr.argmax({v.name})"]
            v = self.pick(lambda v: len(v.shape) == 1 and v.exact)
            if v:
                forms += [f"tr.searchsorted(tr.sort({v.name}), 0.25) % {size}"]
        return self.rng.choice(forms)

    def start(self, x: Value) -> str:
        """The initial value of a carry: a value itself, or another one that may turn out to be the same array."""
        n = x.name
        return self.rng.choice(
            [n] * 6 + [f"{n} * 1.0"] * 3
            + [f"{n} + 0.0", f"{n}[:]", f"-(-{n})", f"tr.reshape({n}, {n}.shape)", f"tr.copy({n})",
               f"tr.zeros_like({n})", f"tr.flip(tr.flip({n}, axis=0), axis=0)", f"{n} * 0.5"]
        )  # fmt: skip

    # What a step of a loop does

    def body(self, c: str, x: Value, counter: str = "", within: str = "", depth: int = 0) -> tuple[str, float]:
        """The next carry, from a carry with the shape of a value; and how much its elements grow in a step.

        Args:
            c: expression of the carry.
            x: the value that the loop begins with.
            counter: name of the counter.
            within: extent that the counter is below.
            depth: how many loops are around.
        """
        v, rank = self.like(x), len(x.shape)
        n, rows = v.name, x.shape[0]

        def at(of: str, axis: int = 0) -> str:
            return self.index(of, axis, x.shape[axis], counter, within)

        def corner(of: str) -> str:
            return f"({at(of)}, 0)" if rank == 2 else f"({at(of)},)"

        grown = v.largest
        row_of = f"(1, {n}.shape[1])" if rank == 2 else "(1,)"
        forms: list[tuple[str, float]] = [
            (f"{c}.at[{at(c)}].add({n}[{at(n)}] * 0.5)", grown), (f"{c}.at[{at(c)}].add({n}[{at(n)}] * 0.5)", grown),
            (f"{c}.at[{at(c)}].set({n}[{at(n)}])", grown), (f"{c}.at[{at(c)}].set({n}[{at(n)}])", grown),
            (f"{c}.at[{at(c)}].set({c}[{at(c)}] * 0.5)", 0.0), (f"{c} * 0.5 + {n}", grown),
            (f"{c}.at[{at(c)}].multiply(0.5)", 0.0), (f"tr.tanh({c}) * {n}", grown),
            (f"{c} * 0.5 - 0.25 * {c}[{at(c)}]", 0.0), (f"tr.flip({c}, axis=0) * 0.5 + {n}", grown),
            (f"{c}.at[{at(c)}].set(tr.sum({n}, axis=0) * 0.1)", 2 * grown),
            (f"tr.dynamic_update_slice({c}, {n}[{at(n)}][None], {corner(c)})", grown),
            (f"tr.dynamic_update_slice({c}, tr.dynamic_slice({n}, {corner(n)}, {row_of}) * 0.5, {corner(c)})", grown),
            (f"tr.take({c}, (tr.arange({c}.shape[0]) + {counter or self.scalar().name}) % {c}.shape[0], axis=0)", 0.0),
            (f"tr.roll({c}, {self.one('1', '-1', counter or '2')}, axis=0)", 0.0),
        ]  # fmt: skip
        if not self.smooth:
            forms += [(f"{c}.at[{at(c)}].min({n}[{at(n)}])", grown), (f"tr.maximum({c}, {n})", grown),
                      (f"tr.sort({c}, axis=0)", 0.0)]  # fmt: skip
        if counter:
            forms += [(f"tr.where({counter} % 2 == 0, {c}, {n} * 0.5)", grown)] * 2
        if rank == 2:
            forms += [(f"{c}.at[:, {at(c, 1)}].add({n}[:, {at(n, 1)}] * 0.5)", grown),
                      (f"{c}.at[:, {at(c, 1)}].set({n}[:, {at(n, 1)}])", grown),
                      (f"{c}.at[{at(c)}, {at(c, 1)}].add({n}[{at(n)}, {at(n, 1)}])", grown),
                      (f"{c}.at[{at(c)}, {at(c, 1)}].set(0.5)", 0.5)]  # fmt: skip
        row = self.pick(lambda y: y.shape == x.shape[1:])
        if row:
            forms += [(f"{c}.at[{at(c)}].set({row.name})", row.largest), (f"{c} * 0.5 + {row.name}", row.largest)]
        other = self.pick(lambda y: len(y.shape) == rank and y.shape[1:] == x.shape[1:] and y.shape[0] != rows)
        if other:
            there = self.index(other.name, 0, other.shape[0], counter, within)
            forms += [(f"{c}.at[{at(c)}].add({other.name}[{there}])", other.largest)] * 3
        many = self.pick(lambda y: len(y.shape) == 1, "i")
        if many:
            forms += [(f"{c}.at[{many.name} % {c}.shape[0]].add(0.5)", 5.0)]
        if depth < 1:
            inner = self.body("d", x, "l", "", depth + 1)
            forms += [(f"tr.fori_loop(0, 2, lambda l, d: {inner[0]}, {c})", 2 * inner[1])]
            p = f"{counter} > 1" if counter else f"{self.scalar().name} > 1"
            yes, no = self.body("a", x, counter, within, depth + 1), self.body("a", x, counter, within, depth + 1)
            forms += [(f"tr.cond({p}, lambda a: {yes[0]}, lambda a: {no[0]}, {c})", max(yes[1], no[1]))]
        return self.rng.choice(forms)

    def end(self) -> tuple[str, str]:
        """The number of steps of a loop, and that as an extent."""
        v = self.array()
        if v and self.rng.random() < 0.5:
            axis = self.rng.randrange(len(v.shape))
            return f"{v.name}.shape[{axis}]", v.shape[axis]
        if self.rng.random() < 0.45:
            s = self.scalar().name
            return self.one(s, f"{s} + 1"), ""
        return self.one("0", "1", "2", "3", "4", "4", "5"), ""


def _small(x: Value) -> bool:
    """Whether loops over it are short and its elements few: extents that are n, m or numbers."""
    return all(d in ("n", "m") or d.isdigit() for d in x.shape)


def _start(w: Writer) -> Value | None:
    return w.pick(lambda v: 1 <= len(v.shape) <= 2 and _small(v))


def _elementwise(w: Writer) -> Line | None:
    x = w.pick()
    if x is None:
        return None
    n = x.name
    text, largest = w.rng.choice(
        ((f"tr.tanh({n})", 1.0), (f"tr.sin({n})", 1.0), (f"{n} * 0.5", x.largest / 2), (f"-{n}", x.largest),
         (f"{n} * 1.0", x.largest), (f"{n} * 2.0 - {n} * 0.5", 2 * x.largest), (f"{n} / (1.0 + {n} * {n})", 1.0),
         (f"tr.where({w.scalar().name} > 1, {n}, {n} * 0.5)", x.largest))
    )  # fmt: skip
    return Line(text, x.shape, largest, x.exact and "tr." not in text and "/" not in text)


def _binary(w: Writer) -> Line | None:
    x = w.pick()
    if x is None:
        return None
    shape = x.shape
    y = w.pick(lambda v: v.shape == shape or v.shape == shape[1:] or not v.shape)
    if y is None:
        return None
    op = w.one("+", "-", "*")
    largest = x.largest * y.largest if op == "*" else x.largest + y.largest
    if not w.smooth and w.rng.random() < 0.2:
        return Line(f"tr.{w.one('maximum', 'minimum')}({x.name}, {y.name})", shape, max(x.largest, y.largest),
                    x.exact and y.exact)  # fmt: skip
    return Line(f"{x.name} {op} {y.name}", shape, largest)


def _reduce(w: Writer) -> Line | None:
    x = w.array()
    if x is None:
        return None
    axis = w.rng.randrange(len(x.shape))
    keep = w.rng.random() < 0.3
    shape = tuple([("1" if keep else "") if k == axis else d for k, d in enumerate(x.shape)])
    name = w.one("sum", "sum", "sum", "max", "min")
    if name != "sum" and w.smooth and not x.exact:
        name = "sum"
    text = f"tr.{name}({x.name}, axis={axis}{', keepdims=True' if keep else ''})"
    return Line(text, tuple([d for d in shape if d]), x.largest * (STEPS if name == "sum" else 1), False)


def _read(w: Writer) -> Line | None:
    x = w.array()
    if x is None:
        return None
    rank, n = len(x.shape), x.name
    axis = w.rng.randrange(rank)
    before, i = ":, " * axis, w.index(n, axis, x.shape[axis])
    left = x.shape[:axis] + x.shape[axis + 1 :]
    lone = x.shape[:axis] + ("1",) + x.shape[axis + 1 :]
    starts = ", ".join([i if k == axis else "0" for k in range(rank)]) + ","
    extents = ", ".join(["1" if k == axis else f"{n}.shape[{k}]" for k in range(rank)]) + ","
    forms: list[tuple[str, Shape]] = [(f"{n}[{before}{i}]", left)] * 5
    forms += [(f"tr.dynamic_slice({n}, ({starts}), ({extents}))", lone)] * 2
    s = w.scalar().name
    forms += [(f"tr.take({n}, (tr.arange(3) + {s}) % {n}.shape[{axis}], axis={axis})",
               x.shape[:axis] + ("3",) + x.shape[axis + 1 :])]  # fmt: skip
    many = w.pick(lambda v: len(v.shape) == 1, "i")
    if many:
        forms += [(f"tr.take({n}, {many.name} % {n}.shape[{axis}], axis={axis})",
                   x.shape[:axis] + many.shape + x.shape[axis + 1 :]),
                  (f"{n}[{before}{many.name} % {n}.shape[{axis}]]",
                   x.shape[:axis] + many.shape + x.shape[axis + 1 :])]  # fmt: skip
    if x.exact:
        forms += [(f"tr.take_along_axis({n}, tr.argsort({n}, axis={axis}), axis={axis})", x.shape)]
    if rank == 2:
        forms += [(f"{n}[{w.index(n, 0, x.shape[0])}, {w.index(n, 1, x.shape[1])}]", ())]
    text, shape = w.rng.choice(forms)
    return Line(text, shape, x.largest, x.exact)


def _update(w: Writer) -> Line | None:
    x = w.array()
    if x is None:
        return None
    rank, n = len(x.shape), x.name
    axis = w.rng.randrange(rank)
    y = w.like(x)
    i, j = w.index(n, axis, x.shape[axis]), w.index(y.name, axis, x.shape[axis])
    before = ":, " * axis
    value = w.rng.choice([f"{y.name}[{before}{j}]"] * 2 + ["0.5", "7.0"])
    largest = x.largest + max(7.0, y.largest)
    name = w.one("set", "set", "add", "multiply" if value == "0.5" else "add", "set" if w.smooth else "min")
    if w.rng.random() < 0.25:
        return Line(f"tr.copy({n})", x.shape, largest, False, "f", f"[{before}{i}] = {value}")
    starts = ", ".join([i if k == axis else "0" for k in range(rank)]) + ","
    extents = ", ".join(["1" if k == axis else f"{n}.shape[{k}]" for k in range(rank)]) + ","
    forms = [f"{n}.at[{before}{i}].{name}({value})"] * 5
    forms += [f"tr.dynamic_update_slice({n}, tr.ones(({extents})), ({starts}))"]
    many = w.pick(lambda v: len(v.shape) == 1, "i")
    if many:
        forms += [f"{n}.at[{before}{many.name} % {n}.shape[{axis}]].add(0.5)"] * 2
    return Line(w.rng.choice(forms), x.shape, largest * 3)


def _join(w: Writer) -> Line | None:
    x = w.array()
    if x is None:
        return None
    axis = w.rng.randrange(len(x.shape))
    others = x.shape[:axis], x.shape[axis + 1 :]
    y = w.pick(lambda v: len(v.shape) == len(x.shape) and (v.shape[:axis], v.shape[axis + 1 :]) == others) or x
    if w.rng.random() < 0.3:
        y = w.like(x)
        return Line(f"tr.stack([{x.name}, {y.name}])", ("2", *x.shape), max(x.largest, y.largest))
    d = f"({x.shape[axis]} + {y.shape[axis]})"
    text = f"tr.concat([{x.name}, {y.name}], axis={axis})"
    return Line(text, others[0] + (d,) + others[1], max(x.largest, y.largest), x.exact and y.exact)


def _move(w: Writer) -> Line | None:
    x = w.array()
    if x is None:
        return None
    n, rank, shape = x.name, len(x.shape), x.shape
    axis = w.rng.randrange(rank)
    colons = ":, " * axis
    d = shape[axis]

    def cut(to: str) -> Shape:
        return shape[:axis] + (to,) + shape[axis + 1 :]

    forms: list[tuple[str, Shape]] = [
        (f"tr.flip({n}, axis={axis})", shape), (f"{n}[{colons}:2]", cut(f"min({d}, 2)")),
        (f"tr.roll({n}, {w.one('1', '-2', w.scalar().name)}, axis={axis})", shape),
        (f"tr.reshape({n}, (-1,))", ("*".join(f"({e})" for e in shape),)), (f"{n}[{colons}::-1]", shape),
        (f"{n}[{colons}1:]", cut(f"max({d} - 1, 0)")), (f"{n}[{colons}::2]", cut(f"(({d}) + 1) // 2")),
        (f"tr.expand_dims({n}, axis={axis})", shape[:axis] + ("1",) + shape[axis:]),
        (f"tr.pad({n}, ({', '.join(['(1, 0)'] * rank)},))", tuple([f"({e} + 1)" for e in shape])),
        (f"tr.broadcast_to({n}, (2, {', '.join(f'{n}.shape[{k}]' for k in range(rank))}))", ("2", *shape)),
        (f"tr.repeat({n}, 2, axis={axis})", cut(f"2 * ({d})")),
    ]  # fmt: skip
    if rank == 2:
        forms += [(f"tr.matrix_transpose({n})", shape[::-1])] * 2
    text, made = w.rng.choice(forms)
    return Line(text, made, x.largest, x.exact)


def _order(w: Writer) -> Line | None:
    x = w.pick(lambda v: len(v.shape) >= 1 and (v.exact or not w.smooth))
    if x is None:
        return None
    axis = w.rng.randrange(len(x.shape))
    n = x.name
    forms = [f"tr.sort({n}, axis={axis})", f"tr.cumulative_sum({n}, axis={axis})"]
    if x.exact:
        forms += [f"tr.argsort({n}, axis={axis})"]
        if len(x.shape) == 1:
            forms += [f"tr.searchsorted(tr.sort({n}), {n})"]
    text = w.rng.choice(forms)
    if "argsort" in text or "searchsorted" in text:
        return Line(text, x.shape, 1.0, True, "i")
    return Line(text, x.shape, x.largest * (STEPS if "sum" in text else 1), x.exact and "sum" not in text)


def _product(w: Writer) -> Line | None:
    x = w.pick(lambda v: len(v.shape) == 2)
    if x is None:
        return None
    y = w.pick(lambda v: 1 <= len(v.shape) <= 2 and v.shape[0] == x.shape[1])
    if y is None:
        return Line(f"{x.name} @ tr.matrix_transpose({x.name})", (x.shape[0], x.shape[0]), x.largest**2 * STEPS)
    return Line(f"{x.name} @ {y.name}", (x.shape[0], *y.shape[1:]), x.largest * y.largest * STEPS)


def _loop(w: Writer) -> Line | None:
    x = _start(w)
    if x is None:
        return None
    end, within = w.end()
    first = w.one("0", "0", "0", "1")
    kind = w.rng.random()
    start = w.start(x)
    if kind < 0.5:
        body, growth = w.body("c", x, "k", within)
        text = f"tr.fori_loop({first}, {end}, lambda k, c: {body}, {start})"
    elif kind < 0.75:
        body, growth = w.body("c[0]", x, "k", within)
        y = w.like(x)
        second, more = w.body("c[1]", y, "k", within)
        growth = 2 * (growth + more + y.largest)
        if w.rng.random() < 0.4:
            second = "c[0] * 0.5"
        text = f"tr.fori_loop({first}, {end}, lambda k, c: ({body}, {second}), ({start}, {w.start(y)}))"
        text += w.one("[0]", "[1]")
    else:
        body, growth = w.body("c[1]", x, "c[0]", within)
        text = f"tr.while_loop(lambda c: c[0] < {end}, lambda c: (c[0] + 1, {body}), (tr.asarray(0), {start}))[1]"
        if w.smooth:
            text = text.replace("))[1]", "), max_steps=20)[1]")
    return Line(text, x.shape, x.largest + STEPS * growth)


def _scan(w: Writer) -> Line | None:
    x, xs = _start(w), _start(w)
    if x is None or xs is None:
        return None
    end = f"{xs.name}.shape[0]"
    counted = w.rng.random() < 0.4
    body, growth = w.body("c", x, "r" if counted else "", xs.shape[0] if counted else "")
    row: list[tuple[str, Shape]] = [("c * 0.5", x.shape), (f"c[{w.index('c', 0, x.shape[0])}]", x.shape[1:])]
    if not counted:
        row += [("r * 0.5", xs.shape[1:]), ("r", xs.shape[1:])]
        if xs.shape[1:] == x.shape[1:] and w.rng.random() < 0.5:
            body, growth = f"c.at[{w.index('c', 0, x.shape[0])}].add(r)", xs.largest
        if xs.shape == x.shape and w.rng.random() < 0.3:
            body, growth = f"tr.tanh({xs.name}) + 0.1 * c.at[0].set(tr.sum({xs.name}, axis=0))", 3 * xs.largest
    out, shape = w.rng.choice(row)
    largest = x.largest + STEPS * growth + xs.largest
    over = f"tr.arange({end})" if counted else xs.name
    text = f"tr.scan(lambda c, r: ({body}, {out}), {w.start(x)}, {over})"
    if w.rng.random() < 0.5:
        return Line(f"{text}[0]", x.shape, largest)
    return Line(f"{text}[1]", (xs.shape[0], *shape), largest)


def _branch(w: Writer) -> Line | None:
    x = _start(w)
    if x is None:
        return None
    s = w.scalar().name
    yes, no = w.body("a", x), w.body("a", x)
    largest = x.largest + max(yes[1], no[1])
    if w.rng.random() < 0.2:
        return Line(
            f"tr.switch({s}, [lambda a: {yes[0]}, lambda a: {no[0]}, lambda a: a * 0.5], {w.start(x)})",
            x.shape,
            largest,
        )
    return Line(f"tr.cond({s} > 1, lambda a: {yes[0]}, lambda a: {no[0]}, {w.start(x)})", x.shape, largest)


def _lanes(w: Writer) -> Line | None:
    x = w.pick(lambda v: len(v.shape) == 2 and _small(v))
    if x is None:
        return None
    n, s = x.name, w.scalar().name
    row = Value("r", x.shape[1:], "f", x.largest)
    around = [v for v in w.values if (v.kind == "i" and v.shape == ()) or (v.shape == row.shape and v.kind == "f")]
    inner = Writer(w.rng, [*around, row], w.smooth)
    many = w.pick(lambda v: v.shape == x.shape[:1], "i")
    form = w.rng.random()
    if form < 0.3:
        return Line(f"tr.vmap(lambda r: r[{inner.index('r', 0, x.shape[1])}])({n})", x.shape[:1], x.largest)
    if form < 0.45 and many:
        return Line(f"tr.vmap(lambda r, j: r[j % r.shape[0]])({n}, {many.name})", x.shape[:1], x.largest)
    if form < 0.6 and many:
        return Line(
            f"tr.vmap(lambda r, j: r.at[j % r.shape[0]].add(r[{s} % r.shape[0]]))({n}, {many.name})",
            x.shape,
            2 * x.largest,
        )
    if form < 0.8:
        body, growth = inner.body("r", row)
        return Line(f"tr.vmap(lambda r: {body})({n})", x.shape, x.largest + growth)
    end, within = w.end()
    body, growth = inner.body("c", row, "k", within)
    text = f"tr.vmap(lambda r: tr.fori_loop(0, {end}, lambda k, c: {body}, {inner.start(row)}))({n})"
    return Line(text, x.shape, x.largest + STEPS * growth)


_ALL = ((8, _elementwise), (14, _binary), (8, _reduce), (14, _read), (12, _update), (4, _join), (7, _move), (5, _order),
        (2, _product), (16, _loop), (7, _scan), (4, _branch), (5, _lanes))  # fmt: skip
WEIGHTS = [weight for weight, _ in _ALL]
DRAWS = [draw for _, draw in _ALL]
