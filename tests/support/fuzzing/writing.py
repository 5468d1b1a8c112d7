"""Random lines of programs: what may be written about values that are known while it is written."""

import random
from collections.abc import Callable
from typing import Any

import numpy as np

from fuzzing.reference import SCOPE, expected

SMOOTH = ("tanh", "sin", "cos", "atan", "square", "negative", "exp", "abs2", "real", "conj", "imag", "asinh", "expm1")
EXACT = ("abs", "sign", "floor", "isfinite", "logical_not", "round", "signbit")
BINARY = ("add", "add", "subtract", "multiply", "multiply", "divide")
COMPARE = ("less", "equal", "greater_equal", "maximum", "minimum", "not_equal")

LARGEST, MOST = 1e4, 600
"""Values stay below the first, so that rounding stays small; arrays below the second, so that programs run quickly."""


class Writer:
    """The lines of a program, written while NumPy computes them.

    Attributes:
        lines: pairs of a name and an expression of earlier names.
        values: of all names.
        exact: names whose values every way computes to the bit; only those are compared and rounded.
    """

    def __init__(self, rng: random.Random, inputs: dict[str, Any], smooth: bool = False) -> None:
        self.rng, self.smooth = rng, smooth
        self.lines: list[tuple[str, str]] = []
        self.values = dict(inputs)
        self.exact = set(inputs)

    def write(self, count: int) -> None:
        """Add so many lines."""
        attempts = 0
        while len(self.lines) < count and attempts < 20 * count:
            attempts += 1
            draw = self.rng.choices(DRAWS, WEIGHTS)[0]
            text, keeps = draw(self)
            if text and self._fits(text):
                name = f"v{len(self.values)}"
                value = expected(eval, text, SCOPE | self.values)
                if not _good(value) or (self.smooth and value.dtype.kind not in "fc"):
                    continue
                self.lines.append((name, text))
                self.values[name] = value
                if value.dtype.kind in "iub" or keeps:
                    self.exact.add(name)

    def _fits(self, text: str) -> bool:
        return not any(text == other for _, other in self.lines)

    def any(self, test: Callable[[Any], bool] = lambda x: True) -> str:
        """A name, of recent values rather than of early ones; "" where none passes the test."""
        names = [n for n in self.values if test(self.values[n])]
        if not names:
            return ""
        return self.rng.choice(names[-5:] if self.rng.random() < 0.6 else names)

    def partner(self, name: str) -> str:
        """A name whose value broadcasts with another."""
        shape = self.values[name].shape

        def fits(y: Any) -> bool:
            return all(a == b or 1 in (a, b) for a, b in zip(shape[::-1], y.shape[::-1]))

        return self.any(fits)


def _good(value: Any) -> bool:
    if not isinstance(value, (np.ndarray, np.generic)) or value.size > MOST or value.ndim > 5:
        return False
    return bool(value.dtype.kind in "biufc" and value.dtype != np.float16 and np.all(np.abs(value) < LARGEST))


def _inexact(x: Any) -> bool:
    return bool(x.dtype.kind in "fc")


def _unary(w: Writer) -> tuple[str, bool]:
    if w.smooth or w.rng.random() < 0.75:
        x = w.any(_inexact)
        return (f"tr.{w.rng.choice(SMOOTH)}({x})", False) if x else ("", False)
    x = w.any()
    return (f"tr.{w.rng.choice(EXACT)}({x})", x in w.exact) if x in w.exact else ("", False)


def _binary(w: Writer) -> tuple[str, bool]:
    x = w.any()
    y = w.partner(x)
    name = w.rng.choice(BINARY)
    if name == "divide":
        return f"{x} / (tr.abs2({y}) + 1.5)", False
    if w.rng.random() < 0.2:
        return f"{x} {w.rng.choice('+-*')} {w.rng.choice(('2', '0.5', '-1.25', '3'))}", False
    return f"tr.{name}({x}, {y})", False


def _compare(w: Writer) -> tuple[str, bool]:
    x = w.any(lambda v: v.dtype.kind != "c")
    y = w.partner(x) if x else ""
    if not y or x not in w.exact or y not in w.exact or w.values[y].dtype.kind == "c":
        return "", False
    return f"tr.{w.rng.choice(COMPARE)}({x}, {y})", True


def _select(w: Writer) -> tuple[str, bool]:
    p = w.any(lambda v: v.dtype.kind == "b")
    x = w.partner(p) if p else w.any()
    y = w.partner(x)
    test = p or f"({x} > 0)"
    if not p and (x not in w.exact or w.values[x].dtype.kind == "c"):
        return "", False
    return f"tr.where({test}, {x}, {y})", x in w.exact and y in w.exact


def _reduce(w: Writer) -> tuple[str, bool]:
    x = w.any(lambda v: v.ndim > 0)
    if not x:
        return "", False
    axis = w.rng.choice((None, *range(w.values[x].ndim), -1))
    name = w.rng.choice(("sum", "sum", "mean", "max", "min", "prod"))
    v = w.values[x]
    if name in ("max", "min") and (v.dtype.kind == "c" or w.smooth or not v.size):
        name = "sum"
    if name == "mean" and not (_inexact(v) and v.size):
        name = "sum"
    if name == "prod" and v.size > 12:
        name = "sum"
    keep = ", keepdims=True" if w.rng.random() < 0.4 else ""
    return f"tr.{name}({x}, axis={axis}{keep})", name in ("max", "min") and x in w.exact


def _move(w: Writer) -> tuple[str, bool]:
    x = w.any(lambda v: v.ndim > 0)
    if not x:
        return f"tr.stack([{w.any()}, {w.any()}])", False
    shape, rng = w.values[x].shape, w.rng
    n = len(shape)
    axis = rng.randrange(n)
    texts = [
        f"tr.permute_dims({x}, {tuple(rng.sample(range(n), n))})", f"tr.flip({x}, axis={axis})", f"tr.ravel({x})",
        f"tr.roll({x}, {rng.randint(-2, 2)}, axis={axis})", f"tr.expand_dims({x}, axis={rng.randrange(n + 1)})",
        f"tr.concat([{x}, {x}], axis={axis})", f"tr.broadcast_to({x}, {(rng.randint(1, 3), *shape)})",
        f"tr.repeat({x}, 2, axis={axis})", f"tr.reshape({x}, {(*shape[:axis], 1, *shape[axis:])})",
        f"tr.tile({x}, 2)", f"{x}[::-1]", f"{x}[..., None]", f"{x}[{', '.join(_slice(rng, d) for d in shape)}]",
        f"tr.pad({x}, {tuple((rng.randint(0, 1), rng.randint(0, 1)) for _ in shape)})",
    ]  # fmt: skip
    if shape[axis]:
        rows = [rng.randrange(shape[axis]) for _ in range(3)]
        texts += [f"{x}[{':, ' * axis}{rng.randrange(-shape[axis], shape[axis])}]",
                  f"tr.take({x}, np.asarray({rows}), axis={axis})"]  # fmt: skip
    if n > 1:
        texts += [f"tr.tril({x})", f"tr.diagonal({x})", f"tr.matrix_transpose({x})"]
    return rng.choice(texts), x in w.exact


def _slice(rng: random.Random, d: int) -> str:
    start = rng.randint(0, max(0, d - 1))
    return rng.choice((":", "::-1", f"{start}:", f":{max(1, d - 1)}", "::2", f"-{max(1, d - start)}:"))


def _update(w: Writer) -> tuple[str, bool]:
    x = w.any(lambda v: v.ndim > 0 and v.size > 0)
    if not x:
        return "", False
    shape = w.values[x].shape
    index = w.rng.choice((f"{w.rng.randrange(shape[0])}", "slice(1, None)", "slice(None, None, 2)", "..."))
    kind = w.values[x].dtype.kind
    name = "set" if kind == "b" else w.rng.choice(("set", "add", "multiply"))
    value = {"b": "True", "i": "-1", "u": "2"}.get(kind) or w.rng.choice(("0.5", "2", "-1"))
    return f"at({x}, {index}).{name}({value})", False


def _product(w: Writer) -> tuple[str, bool]:
    x = w.any(lambda v: 0 < v.ndim < 4 and v.dtype.kind in "fc")
    if not x:
        return "", False
    k = w.values[x].shape[-1]

    def fits(v: Any) -> bool:
        return bool(v.dtype.kind in "fc" and v.ndim and v.shape[-2:][0] == k)

    y = w.any(fits)
    return (f"{x} @ {y}", False) if y else (f"{x} @ tr.matrix_transpose({x})" if w.values[x].ndim > 1 else "", False)


def _control(w: Writer) -> tuple[str, bool]:
    x = w.any(lambda v: v.ndim > 0 and v.dtype.kind == "f" and 0 < v.shape[0] < 8)
    if not x:
        return "", False
    if w.rng.random() < 0.5:
        step = w.rng.choice(("(c * 0.5 + x, c)", "(tr.sin(c) + x, c * x)", "(tr.tanh(c * x), x - c)"))
        start = f"{x}[{w.rng.randrange(w.values[x].shape[0])}]"
        return f"tr.scan(lambda c, x: {step}, {start}, {x})[{w.rng.choice('01')}]", False
    p = w.any(lambda v: v.dtype.kind == "b" and v.ndim == 0) or f"np.bool_({w.rng.random() < 0.5})"
    return f"tr.cond({p}, lambda y: tr.sin(y) * 2, lambda y: y - 1.0, {x})", False


_ALL = ((16, _unary), (30, _binary), (6, _compare), (6, _select), (14, _reduce), (20, _move), (5, _update),
        (7, _product), (3, _control))  # fmt: skip
WEIGHTS = [w for w, _ in _ALL]
DRAWS = [d for _, d in _ALL]
