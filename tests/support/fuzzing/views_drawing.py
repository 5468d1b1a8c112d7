"""Draws programs of views, writes and exports: each line is tried on NumPy's arrays before it is taken."""

import copy
import random
from collections.abc import Callable
from types import CodeType
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]
Scope = dict[str, Any]


class Writable:
    """NumPy, but for `diagonal`, which may be written to as in the library."""

    def __getattr__(self, name: str) -> Any:
        return getattr(np, name)

    def diagonal(self, x: Array) -> Array:
        made = np.diagonal(x)
        made.flags.writeable = True
        return made


NUMPY: Scope = {"np": np, "xp": Writable(), "copy": copy}


def loopless(name: str) -> bool:
    """Whether a name is one of the program's arrays."""
    return name[0] in "xwv" and name != "xp"


class Drawing:
    """One program in the making.

    Attributes:
        scopes: the names over NumPy, one scope for each set of sizes.
        lines: what was taken so far.
        recorded: all values are differentiated: no step of another slope than that of its text, and floats.
        traced: elements are not known: no sizes that follow from them.
        index: the name of an integer below every extent, where there is one.
        exports: memory is handed out to NumPy.
        stops: an error ends the program, so there is none.
    """

    def __init__(
        self,
        rng: random.Random,
        scopes: list[Scope],
        traced: bool,
        recorded: bool,
        index: str,
        exports: bool,
        stops: bool,
    ) -> None:
        self.rng, self.scopes, self.lines, self.count = rng, scopes, list[str](), 0
        self.traced, self.recorded, self.index, self.exports = traced, recorded, index, exports
        self.stops, self.refusing = stops, False
        self.start = [{k: v.copy() if isinstance(v, np.ndarray) else v for k, v in s.items()} for s in scopes]

    def names(self, kinds: str = "biufc", least: int = 0, exported: bool = False) -> list[str]:
        """Arrays of some kinds with so many axes; those of NumPy where that is asked for."""
        found = []
        for name, x in self.scopes[0].items():
            if not (loopless(name) or (exported and name[0] == "e")) or not isinstance(x, np.ndarray):
                continue
            if x.dtype.kind in kinds and x.ndim >= least:
                found.append(name)
        return found

    def new(self) -> str:
        self.count += 1
        return f"v{self.count}"

    def shapes(self, text: str) -> list[tuple[int, ...]] | None:
        """The shapes of an expression without effects in all scopes."""
        try:
            return [np.shape(evaluated(text, s)) for s in self.scopes]
        except (ValueError, IndexError):
            return None

    # Keys

    def key(self, text: str, advanced: bool = False, least: int = 0) -> str:
        """A key of the array of an expression."""
        shapes = self.shapes(text) or [()]
        extents = [min(d) for d in zip(*shapes, strict=True)]
        rng, parts = self.rng, list[str]()
        fixed = all(s == shapes[0] for s in shapes)
        if advanced and fixed and shapes[0] and rng.random() < 0.2:
            return f"np.asarray({[rng.random() < 0.5 for _ in range(extents[0])]}, bool)"
        array = advanced and rng.random() < 0.6
        for n in extents[: rng.randint(least, len(extents))]:
            chance = rng.random()
            if array and n:
                some = rng.sample(range(n), rng.randint(1, min(n, 3)))
                parts.append(f"np.asarray({[k - n if rng.random() < 0.2 and fixed else k for k in some]})")
                array = False
            elif n and chance < 0.3:
                parts.append(str(rng.randint(-n, n - 1)))
            elif n > 2 and chance < 0.5 and self.index:
                parts.append(self.index)
            else:
                parts.append(self.slice(n))
        full = len(parts) == len(extents)
        if rng.random() < 0.12:
            parts.insert(rng.randint(0, len(parts)), "None")
        if not parts or rng.random() < 0.15:
            parts.insert(rng.randint(0, len(parts)) if full else len(parts), "...")
        return ", ".join(parts)

    def slice(self, n: int) -> str:
        rng = self.rng

        def bound() -> str:
            return rng.choice(("", "", str(rng.randint(-n, n))))

        return rng.choice((":", "::-1", "1:", ":-1", "::2", f"{bound()}:{bound()}:{rng.choice(('', '', '2', '-1'))}"))

    # Expressions

    def number(self, kind: str) -> str:
        rng = self.rng
        if kind == "b":
            return rng.choice(("True", "False"))
        if kind in "iu":
            return str(rng.randint(0 if kind == "u" else -3, 3))
        return rng.choice(("0.5", "-1.25", "0.75", "1.5", "-0.3")) + (rng.choice(("", "j")) if kind == "c" else "")

    def view(self, v: str) -> str:
        """An expression that is a view of an array."""
        rng, ndim = self.rng, self.scopes[0][v].ndim
        kind = self.scopes[0][v].dtype.kind
        if rng.random() < 0.35:
            return f"{v}[{self.key(v)}]"
        order = list(range(ndim))
        rng.shuffle(order)
        a, b = rng.randrange(-ndim, ndim), rng.randrange(-ndim, ndim)
        k = rng.randrange(min(s[v].shape[a] for s in self.scopes) or 1)
        ways = [
            f"{v}.transpose({', '.join(map(str, order))})", f"xp.permute_dims({v}, {tuple(order)})",
            f"xp.moveaxis({v}, {a}, {b})", f"{v}.swapaxes({a}, {b})", f"xp.swapaxes({v}, {a}, {b})",
            f"xp.expand_dims({v}, axis={a})", f"xp.squeeze({v}[None], axis=0)", f"xp.flip({v}, axis={a})",
            f"xp.unstack({v}, axis={a})[{k}]", f"list({v})[0]",
            f"xp.split({v}, [{rng.randint(1, 2)}], axis={a})[{rng.randrange(2)}]",
        ]  # fmt: skip
        if ndim == 2:
            ways += [f"{v}.T", f"{v}.T", f"xp.diagonal({v})"]
        if ndim >= 2:
            ways += [f"{v}.mT", f"xp.matrix_transpose({v})"]
        if self.plain(v):
            ways += [f"xp.reshape({v}, (-1,))", f"{v}.reshape(-1)", f"xp.ravel({v})", f"{v}.ravel()"] * 2
            ways += [f"xp.reshape({v}, ({v}.shape[{a}], -1))", f"{v}.reshape(1, -1)"]
        if kind == "c":
            ways += [f"{v}.real", f"{v}.imag"] * 3
        return rng.choice(ways)

    def plain(self, v: str) -> bool:
        """Whether the layout of NumPy's memory is that of row-major elements, so that a copy is one everywhere."""
        for scope in self.scopes:
            base = scope[v]
            while isinstance(base.base, np.ndarray):
                base = base.base
            if not base.flags.c_contiguous or not scope[v].size:
                return False
        return True

    def computed(self, v: str) -> str:
        """An expression that is a value of its own."""
        rng, kind = self.rng, self.scopes[0][v].dtype.kind
        ways = [f"{v}.copy()", f"xp.asarray({v}, copy=True)"]
        if not self.exports:
            ways += [f"+{v}", f"copy.copy({v})"]  # may hold the memory, which then is not handed out
        if not self.stops:
            ways += [f"copy.deepcopy({v})"]  # cuts off derivatives, so there is an error
        if kind == "b":
            ways = [f"{v}.copy()", f"~{v}"]
        else:
            ways += [f"{v} * 1", f"{v} + {self.number(kind)}", f"-{v}" if kind != "u" else f"{v} * 2"]
            ways += [f"xp.zeros({v}.shape, dtype={v}.dtype)" if not self.recorded or kind == "f" else f"{v} * 1"]
        if kind in "iuf":
            ways += [f"xp.where({v} > {self.number(kind)}, {v}, {self.number(kind)})"]
        if kind == "f" and self.small(v):
            ways += [f"np.sin({v})", f"{v} * {v}"]
        ways += [
            f"{v}[{self.key(v, advanced=True)}]",
            f"xp.concat([{v}, {v}])",
            f"xp.sum({v}, axis=0, dtype={v}.dtype)",
        ]
        if not self.traced and kind in "iuf":
            ways += [f"{v}[{v} > {self.number(kind)}]"]
        return rng.choice(ways)

    def small(self, text: str) -> bool:
        """Whether squares and sums of elements stay moderate."""
        return all(largest(evaluated(text, s)) < 6 for s in self.scopes)

    def operand(self, target: str, exact: bool = False) -> str:
        """An expression that can be written to `target`: a number, an array, or a view, also of the same base."""
        rng, dtype = self.rng, evaluated(target, self.scopes[0]).dtype
        shapes = self.shapes(target)
        assert shapes is not None
        for _ in range(4 if rng.random() < 0.75 else 0):
            v = rng.choice(self.names(exported=True))
            x = self.scopes[0][v]
            ways = [v, f"{v}[{self.key(v)}]"] + [f"{v}[::-1]"] * (x.ndim > 0)
            ways += [f"{v}.T"] * (x.ndim == 2 and v[0] != "e")
            ways += [f"{v} * {self.number('f')}"] * (x.dtype.kind in "fc")
            text = rng.choice(ways)
            found = self.shapes(text)
            if found is None or not np.can_cast(evaluated(text, self.scopes[0]).dtype, dtype, "same_kind"):
                continue
            if not self.small(text):
                continue
            try:
                fits = [np.broadcast_shapes(a, b) == b for a, b in zip(found, shapes, strict=True)]
            except ValueError:
                continue
            if all(fits) and not (exact and found != shapes):
                return text
        return self.number(dtype.kind)

    # Lines

    def line(self) -> str:
        """One more line, not yet tried."""
        rng = self.rng
        some = self.names(least=1)
        if not some:
            return f"{self.new()} = xp.zeros((2, 3))"
        v = rng.choice(some[-4:] if rng.random() < 0.6 else some)
        draw: list[tuple[int, Callable[[str], str]]] = [
            (26, lambda v: f"{self.new()} = {self.view(v)}"), (7, lambda v: f"{self.new()} = {self.computed(v)}"),
            (4, lambda v: f"{self.new()} = {rng.choice((v, f'xp.asarray({v})'))}"), (20, self.write),
            (9, self.augmented), (12, self.in_place), (14, self.numpy_write), (3, self.loop), (3, self.chained),
            (2, lambda v: f"del {v}" if v[0] == "v" or not self.stops else self.write(v)),
            (2, self.method),
        ]  # fmt: skip
        if self.exports:
            draw += [(6, self.export), (8, self.export_write)]
        if not self.stops:
            draw.append((2, self.wrong))
        weights, makers = zip(*draw, strict=True)
        return rng.choices(makers, weights)[0](v)

    def method(self, v: str) -> str:
        """A method that writes, of a view without a name."""
        kind, part = self.scopes[0][v].dtype.kind, f"{v}[{self.key(v)}]"
        if not (self.shapes(part) or [()])[0]:
            return self.write(v)
        if self.recorded or kind in "bc" or self.rng.random() < 0.6:
            return f"{part}.fill({self.number(kind)})"
        return f"{part}.sort()"

    def write(self, v: str) -> str:
        """``v[key] = value`` with keys of every kind."""
        rng, kind = self.rng, self.scopes[0][v].dtype.kind
        if kind in "iuf" and rng.random() < 0.15:
            return f"{v}[{v} > {self.number(kind)}] = {self.number(kind)}"
        key = self.key(v, advanced=rng.random() < 0.3)
        operand = self.operand(f"{v}[{key}]")
        if "bool)" in key and operand[0].isalpha():  # NumPy does not look for overlap here
            operand = f"xp.asarray({operand}, copy=True)"
        return f"{v}[{key}] = {operand}"

    def factor(self, kind: str, target: str) -> str:
        """An operator and its operand for an update in place."""
        rng = self.rng
        if kind == "b":
            return f"{rng.choice('&|^')}= {self.operand(target)}"
        if kind in "iu":
            op = rng.choice(("+", "-", "*", "|", "^"))
            return f"{op}= {self.operand(target) if kind == 'i' else rng.randint(0, 3)}"
        if rng.random() < 0.4:
            return f"{rng.choice('*/')}= {rng.choice(('0.5', '-0.75', '1.25'))}"
        if rng.random() < 0.2 and self.small(target):
            return f"*= {self.operand(target)}"
        return f"{rng.choice('+-')}= {self.operand(target)}"

    def augmented(self, v: str) -> str:
        key = self.key(v, advanced=self.rng.random() < 0.25)
        return f"{v}[{key}] {self.factor(self.scopes[0][v].dtype.kind, f'{v}[{key}]')}"

    def in_place(self, v: str) -> str:
        return f"{v} {self.factor(self.scopes[0][v].dtype.kind, v)}"

    def chained(self, v: str) -> str:
        """A write to a view that has no name."""
        view = self.view(v)
        found = self.shapes(view)
        if not found or not found[0]:
            return self.write(v)
        if view.endswith("]") and not view.startswith("xp"):  # ``v[...] = `` would be the write of a key
            return f"{view}[...] = {self.operand(view)}"
        key = self.key(view)
        return f"{view}[{key}] = {self.operand(f'{view}[{key}]')}"

    def loop(self, v: str) -> str:
        """A loop over rows that writes to each."""
        kind = self.scopes[0][v].dtype.kind
        if self.scopes[0][v].ndim < 2 or len({s[v].shape[0] for s in self.scopes}) > 1:
            return self.in_place(v)
        if kind == "b":
            return f"for r in {v}: r |= {self.number('b')}"
        how = self.rng.choice(("r += {}", "r[...] = {}", "r *= {}", "r[0] = {}", "r[::-1] -= {}"))
        return f"for r in {v}: {how.format(self.number(kind) if kind != 'u' else 1)}"

    def numpy_write(self, v: str) -> str:
        """A function of NumPy that writes to an array, or to a view without a name."""
        rng, x = self.rng, self.scopes[0][v]
        kind = x.dtype.kind
        number = self.number(kind)
        if kind in "iufc":
            names = [n for n in self.names(kind) if self.shapes(n) == self.shapes(v) and self.small(n)]
        else:
            names = []
        other = rng.choice(names) if names else number
        ways = [f"np.copyto({v}, {self.operand(v)})", f"{v}.fill({number})"]
        fixed = len({s[v].shape for s in self.scopes}) == 1
        if x.size and x.ndim and fixed:
            mask = f"np.asarray({[rng.random() < 0.5 for _ in range(x.size)]}).reshape({x.shape})"
            some = [self.number(kind) for _ in range(rng.randint(1, 3))]
            array = f"np.asarray([{', '.join(some)}], {x.dtype.name!r})"
            few = rng.sample(range(x.size), rng.randint(1, min(3, x.size)))
            ways += [f"np.put({v}, {few}, {number})", f"np.copyto({v}, {other}, where={mask})"]
            ways += [f"np.putmask({v}, {mask}, {array})", f"np.place({v}, {mask}, {array})"]
            axis = rng.randrange(x.ndim)
            ranks = np.argmax(rng.random() * np.arange(1, x.size + 1).reshape(x.shape) % 1.0, axis=axis, keepdims=True)
            ways += [f"np.put_along_axis({v}, np.asarray({ranks.tolist()}), {number}, {axis})"]
            if kind in "iuf":
                at = [rng.randrange(x.shape[0]) for _ in range(3)]
                slots = f"np.asarray([1, 2, 3], {x.dtype.name!r}).reshape(3{', 1' * (x.ndim - 1)})"
                ways += [f"np.add.at({v}, np.asarray({at}), {slots})"]
            if kind != "b":
                ways += [f"np.add({v}, {other}, out={v}, where={mask})"]
        if x.ndim == 2 and kind in "ifc":
            ways += [f"np.fill_diagonal({v}, {number})"]
        if kind in "ifc":
            # No `np.negative`: NumPy 2.4 is wrong in place where the step is a multiple of 64 bytes.
            ways += [
                f"np.absolute({other if names else v}, out={v})" if kind != "c" else f"{v}.fill({number})",
                f"np.subtract({v}, {other}, out={v})",
            ]
            ways += [f"np.multiply({v}, {self.number(kind)}, out={v})"] * (kind != "i")
            if names:
                ways += [f"np.add({other}, {rng.choice(names)}, out={v})"]
                ways += [f"np.add({other}[::-1], {v}, out={v}[::-1])"]
        if kind in "if" and x.ndim and names:
            axis = rng.randrange(x.ndim)
            ways += [f"np.minimum.accumulate({v}, axis={axis}, out={v})", f"np.maximum({v}, {other}, out={v})"]
            ways += [f"np.minimum.accumulate({v}[::-1], axis=0, out={v}[::-1])", f"np.clip({v}, -1, 1, out={v})"]
            if self.small(v):
                ways += [f"np.cumsum({v}, axis={axis}, out={v})"]
        if kind == "f" and names:
            ways += [f"np.sin({other}, out={v})"]
        return rng.choice(ways)

    def export(self, v: str) -> str:
        """Memory is handed out."""
        reversed_ = any(step < 0 for step in self.scopes[0][v].strides)  # not all consumers of DLPack know such strides
        way = "np.from_dlpack({})" if self.rng.random() < 0.3 and not reversed_ else "np.asarray({})"
        return f"e{self.new()[1:]} = {way.format(v)}"

    def export_write(self, v: str) -> str:
        """A write by NumPy to memory that was handed out, or a number where there is none."""
        names = [n for n in self.names(exported=True) if n[0] == "e" and self.scopes[0][n].ndim]
        if not names:
            return self.export(v)
        e = self.rng.choice(names)
        return f"{e}[{self.key(e)}] = {self.number(self.scopes[0][e].dtype.kind)}"

    def wrong(self, v: str) -> str:
        """A line that NumPy refuses."""
        self.refusing = True
        kind = self.scopes[0][v].dtype.kind
        ways = [
            f"{v}[99] = False",
            f"{v} += np.zeros((7, 1, 11), {v}.dtype)",
            f"{v}[...] = np.zeros((7, 11), {v}.dtype)",
        ]
        if kind in "iu":
            ways += [f"{v} += 0.5", f"{v} /= 2"]
        if kind == "f":
            ways += [f"{v} *= 1j", f"np.add({v}, 1j, out={v})"]
        return self.rng.choice(ways)

    def program(self, count: int) -> list[str]:
        """So many lines that NumPy accepts, but for those of `wrong`."""
        tries = 0
        while len(self.lines) < count and tries < 4 * count:
            tries += 1
            self.refusing = False
            self.take(self.line())
        return self.lines

    def take(self, text: str) -> None:
        """Keep a line if it does the same kind of thing in all scopes."""
        errors = [failure(text, s) for s in self.scopes]
        if not any(errors):
            self.lines.append(text)
            if any(_wild(s) for s in self.scopes):
                self.lines.pop()
                self.again()
        elif self.refusing and all(errors):
            self.lines.append(text)
        else:
            self.again()

    def again(self) -> None:
        """Back to the state before a line that went wrong in the midst."""
        for scope, start in zip(self.scopes, self.start, strict=True):
            scope.clear()
            scope.update({k: v.copy() if isinstance(v, np.ndarray) else v for k, v in start.items()})
            for text in self.lines:
                failure(text, scope)


def _wild(scope: Scope) -> bool:
    """Whether elements are so large that differences lose their digits, or a view has no axes.

    Such views are values in the library, as NumPy's scalars are.
    """
    arrays = [x for x in scope.values() if isinstance(x, np.ndarray)]
    return any(not x.ndim or (x.dtype.kind in "fc" and largest(x) > 60) for x in arrays)


def largest(x: Array) -> float:
    """The largest absolute value."""
    return float(np.abs(x).max()) if x.size else 0.0


def evaluated(text: str, scope: Scope) -> Any:
    """The value of an expression."""
    return scope[text] if text in scope else eval(text, scope)


def failure(text: str | CodeType, scope: Scope) -> Exception | None:
    """Run a line; its error."""
    try:
        exec(text, scope)
    except Exception as error:
        return error
    return None
