"""Special cases of the element-wise functions of the Array API standard 2025.12, as tables, and how to compare results.

A row is ``name: operands -> result; ...``; what an operand may be is a word of `SAMPLES`, and a result is a word of
`RESULTS` or a number. Of complex numbers the real and the imaginary part have a word each. ``~`` before a result leaves
its sign open.
"""

import itertools
import math
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]
INF, NAN = np.inf, np.nan
POSITIVE = (0.3, 1.0, 2.5, 1e6)

SAMPLES: dict[str, tuple[float, ...]] = {
    "nan": (NAN,), "+0": (0.0,), "-0": (-0.0,), "0": (0.0, -0.0), "+inf": (INF,), "-inf": (-INF,), "inf": (INF, -INF),
    "1": (1.0,), "-1": (-1.0,), "+fin": POSITIVE, "-fin": tuple(-x for x in POSITIVE),
    "nonzero": (*POSITIVE, *(-x for x in POSITIVE)), "fin": (*POSITIVE, *(-x for x in POSITIVE), 0.0, -0.0),
    ">0": (*POSITIVE, INF), "<0": (*(-x for x in POSITIVE), -INF), ">1": (1.5, 1e6, INF), "<-1": (-1.5, -1e6, -INF),
    "<1": (0.5, 0.0, -2.0, -INF), "num": (-INF, -2.5, -0.0, 0.0, 0.3, 1e6, INF), "not0": (-2.5, 0.3, INF, -INF),
    "any": (-INF, -2.5, -0.0, 0.0, 0.3, 1e6, INF, NAN), "big": (1.5, -1.5, 1e6, INF, -INF), "one": (1.0, -1.0),
    "small": (0.5, -0.5, 0.0, -0.0), "odd+": (1.0, 3.0), "odd-": (-1.0, -3.0), "other+": (2.0, 4.0, 0.5, INF),
    "other-": (-2.0, -4.0, -0.5, -INF), "frac": (0.5, -1.5, 2.25), "whole": (-3.0, 4.0, 1e6), "not1": (0.5, -1.0, INF),
}  # fmt: skip

RESULTS: dict[str, Callable[..., float]] = {
    "x1": lambda x, y: x, "x2": lambda x, y: y, "-x2": lambda x, y: -y, "|x1|": lambda x, y: abs(x),
    "|x2|": lambda x, y: abs(y), "|b|": lambda x, y: abs(y), "-|x1|": lambda x, y: -abs(x),
    "+inf*cos": lambda x, y: INF * np.cos(y), "+inf*sin": lambda x, y: INF * np.sin(y),
    "0*cos": lambda x, y: 0.0 * np.cos(y), "0*sin": lambda x, y: 0.0 * np.sin(y),
    "sign*inf": lambda x, y: np.copysign(INF, x) * np.copysign(1, y),
}  # fmt: skip

UNARY = """
abs: nan -> nan; -0 -> +0; -inf -> +inf
acos: nan -> nan; >1 -> nan; <-1 -> nan; 1 -> +0
acosh: nan -> nan; <1 -> nan; 1 -> +0; +inf -> +inf
asin: nan -> nan; >1 -> nan; <-1 -> nan; +0 -> +0; -0 -> -0
asinh: nan -> nan; +0 -> +0; -0 -> -0; +inf -> +inf; -inf -> -inf
atan: nan -> nan; +0 -> +0; -0 -> -0; +inf -> pi/2; -inf -> -pi/2
atanh: nan -> nan; <-1 -> nan; >1 -> nan; -1 -> -inf; 1 -> +inf; +0 -> +0; -0 -> -0
ceil: whole -> x1; inf -> x1; +0 -> +0; -0 -> -0; nan -> nan
cos: nan -> nan; 0 -> 1; inf -> nan
cosh: nan -> nan; 0 -> 1; inf -> +inf
exp: nan -> nan; 0 -> 1; +inf -> +inf; -inf -> +0
expm1: nan -> nan; +0 -> +0; -0 -> -0; +inf -> +inf; -inf -> -1
floor: whole -> x1; inf -> x1; +0 -> +0; -0 -> -0; nan -> nan
isfinite: inf -> 0; nan -> 0; fin -> 1
isinf: inf -> 1; nan -> 0; fin -> 0
isnan: nan -> 1; num -> 0
log: nan -> nan; <0 -> nan; 0 -> -inf; 1 -> +0; +inf -> +inf
log10: nan -> nan; <0 -> nan; 0 -> -inf; 1 -> +0; +inf -> +inf
log1p: nan -> nan; <-1 -> nan; -1 -> -inf; -0 -> -0; +0 -> +0; +inf -> +inf
log2: nan -> nan; <0 -> nan; 0 -> -inf; 1 -> +0; +inf -> +inf
reciprocal: nan -> nan; +0 -> +inf; -0 -> -inf; +inf -> +0; -inf -> -0
round: whole -> x1; inf -> x1; +0 -> +0; -0 -> -0; nan -> nan
sign: <0 -> -1; 0 -> ~0; >0 -> 1; nan -> nan
signbit: +0 -> 0; -0 -> 1; +inf -> 0; -inf -> 1; +fin -> 0; -fin -> 1
sin: nan -> nan; +0 -> +0; -0 -> -0; inf -> nan
sinh: nan -> nan; +0 -> +0; -0 -> -0; +inf -> +inf; -inf -> -inf
sqrt: nan -> nan; <0 -> nan; +0 -> +0; -0 -> -0; +inf -> +inf
square: nan -> nan; 0 -> +0; inf -> +inf
tan: nan -> nan; +0 -> +0; -0 -> -0; inf -> nan
tanh: nan -> nan; +0 -> +0; -0 -> -0; +inf -> 1; -inf -> -1
trunc: whole -> x1; inf -> x1; +0 -> +0; -0 -> -0; nan -> nan
"""

DIVISION = """nan any -> nan; any nan -> nan; inf inf -> nan; 0 0 -> nan; +0 >0 -> +0; -0 >0 -> -0; +0 <0 -> -0;
 -0 <0 -> +0; >0 +0 -> +inf; >0 -0 -> -inf; <0 +0 -> -inf; <0 -0 -> +inf; +inf +fin -> +inf; +inf -fin -> -inf;
 -inf +fin -> -inf; -inf -fin -> +inf; +fin +inf -> +0; +fin -inf -> -0; -fin +inf -> -0; -fin -inf -> +0"""

BINARY = f"""
add: nan any -> nan; any nan -> nan; +inf -inf -> nan; -inf +inf -> nan; +inf +inf -> +inf; -inf -inf -> -inf
add: +inf fin -> +inf; -inf fin -> -inf; fin +inf -> +inf; fin -inf -> -inf; -0 -0 -> -0; -0 +0 -> +0; +0 -0 -> +0
add: +0 +0 -> +0; 0 nonzero -> x2; nonzero 0 -> x1
atan2: nan any -> nan; any nan -> nan; >0 0 -> pi/2; +0 >0 -> +0; +0 +0 -> +0; +0 -0 -> pi; +0 <0 -> pi; -0 >0 -> -0
atan2: -0 +0 -> -0; -0 -0 -> -pi; -0 <0 -> -pi; <0 0 -> -pi/2; +fin +inf -> +0; +fin -inf -> pi; -fin +inf -> -0
atan2: -fin -inf -> -pi; +inf fin -> pi/2; -inf fin -> -pi/2; +inf +inf -> pi/4; +inf -inf -> 3*pi/4
atan2: -inf +inf -> -pi/4; -inf -inf -> -3*pi/4
copysign: num <0 -> -|x1|; num -0 -> -|x1|; num +0 -> |x1|; num >0 -> |x1|; num nan -> |x1|; nan any -> nan
divide: {DIVISION}
floor_divide: {DIVISION}
equal: nan any -> 0; any nan -> 0; +inf +inf -> 1; -inf -inf -> 1; 0 0 -> 1; +inf -inf -> 0; fin inf -> 0
not_equal: nan any -> 1; any nan -> 1; +inf +inf -> 0; -inf -inf -> 0; 0 0 -> 0; +inf -inf -> 1; fin inf -> 1
less: nan any -> 0; any nan -> 0; +inf any -> 0; any -inf -> 0; fin +inf -> 1; -inf fin -> 1; 0 0 -> 0
less_equal: nan any -> 0; any nan -> 0; num +inf -> 1; -inf num -> 1; +inf fin -> 0; 0 0 -> 1
greater: nan any -> 0; any nan -> 0; -inf any -> 0; any +inf -> 0; +inf fin -> 1; fin -inf -> 1; 0 0 -> 0
greater_equal: nan any -> 0; any nan -> 0; +inf num -> 1; num -inf -> 1; fin +inf -> 0; 0 0 -> 1
hypot: inf any -> +inf; any inf -> +inf; 0 num -> |x2|; num 0 -> |x1|; fin nan -> nan; nan fin -> nan; nan nan -> nan
logaddexp: nan any -> nan; any nan -> nan; +inf num -> +inf; num +inf -> +inf; -inf -inf -> -inf; -inf nonzero -> x2
maximum: nan any -> nan; any nan -> nan; +inf num -> +inf; -inf num -> x2
minimum: nan any -> nan; any nan -> nan; -inf num -> -inf; +inf num -> x2
multiply: nan any -> nan; any nan -> nan; inf 0 -> nan; 0 inf -> nan; inf inf -> sign*inf; inf nonzero -> sign*inf
multiply: nonzero inf -> sign*inf; +0 +fin -> +0; -0 +fin -> -0; +0 -fin -> -0; -0 -0 -> +0
nextafter: nan any -> nan; any nan -> nan; -0 +0 -> +0; +0 -0 -> -0
pow: not1 nan -> nan; any 0 -> 1; nan not0 -> nan; big +inf -> +inf; big -inf -> +0; one inf -> 1; 1 num -> 1
pow: small +inf -> +0; small -inf -> +inf; +inf >0 -> +inf; +inf <0 -> +0; -inf odd+ -> -inf; -inf other+ -> +inf
pow: -inf odd- -> -0; -inf other- -> +0; +0 >0 -> +0; +0 <0 -> +inf; -0 odd+ -> -0; -0 other+ -> +0; -0 odd- -> -inf
pow: -0 other- -> +inf; -fin frac -> nan
remainder: nan any -> nan; any nan -> nan; inf inf -> nan; 0 0 -> nan; 0 >0 -> +0; 0 <0 -> -0; >0 0 -> nan; <0 0 -> nan
remainder: inf nonzero -> nan; +fin +inf -> x1; +fin -inf -> x2; -fin +inf -> x2; -fin -inf -> x1
subtract: nan any -> nan; any nan -> nan; +inf +inf -> nan; -inf -inf -> nan; +inf -inf -> +inf; -inf fin -> -inf
subtract: -0 +0 -> -0; +0 +0 -> +0; -0 -0 -> +0; +0 -0 -> +0; 0 inf -> -x2
"""

COMPLEX = """
abs: inf any -> +inf; any inf -> +inf; 0 any -> |b|; nan fin -> nan; fin nan -> nan; nan nan -> nan
acos: 0 +0 -> pi/2 -0; 0 nan -> pi/2 nan; fin +inf -> pi/2 -inf; nonzero nan -> nan nan; -inf +fin -> pi -inf
acos: +inf +fin -> +0 -inf; -inf +inf -> 3*pi/4 -inf; +inf +inf -> pi/4 -inf; inf nan -> nan ~+inf
acos: nan fin -> nan nan; nan +inf -> nan -inf; nan nan -> nan nan
acosh: 0 +0 -> +0 pi/2; fin +inf -> +inf pi/2; nonzero nan -> nan nan; +0 nan -> nan ~pi/2; -inf +fin -> +inf pi
acosh: +inf +fin -> +inf +0; -inf +inf -> +inf 3*pi/4; +inf +inf -> +inf pi/4; inf nan -> +inf nan; nan fin -> nan nan
acosh: nan +inf -> +inf nan; nan nan -> nan nan
asinh: +0 +0 -> +0 +0; +fin +inf -> +inf pi/2; fin nan -> nan nan; +inf +fin -> +inf +0; +inf +inf -> +inf pi/4
asinh: nan +0 -> nan +0; nan nonzero -> nan nan; nan +inf -> ~+inf nan; nan nan -> nan nan
atanh: +0 +0 -> +0 +0; +0 nan -> +0 nan; 1 +0 -> +inf +0; +fin +inf -> +0 pi/2; nonzero nan -> nan nan
atanh: +inf +fin -> +0 pi/2; +inf +inf -> +0 pi/2; +inf nan -> +0 nan; nan fin -> nan nan; nan +inf -> ~+0 pi/2
atanh: nan nan -> nan nan
cosh: +0 +0 -> 1 +0; +0 +inf -> nan ~0; +0 nan -> nan ~0; nonzero +inf -> nan nan; nonzero nan -> nan nan
cosh: +inf +0 -> +inf +0; +inf nonzero -> +inf*cos +inf*sin; +inf +inf -> ~+inf nan; +inf nan -> +inf nan
cosh: nan 0 -> nan ~0; nan nonzero -> nan nan; nan nan -> nan nan
exp: 0 +0 -> 1 +0; fin +inf -> nan nan; fin nan -> nan nan; +inf +0 -> +inf +0; -inf fin -> 0*cos 0*sin
exp: +inf nonzero -> +inf*cos +inf*sin; -inf +inf -> ~0 ~0; +inf +inf -> ~+inf nan; -inf nan -> ~0 ~0
exp: +inf nan -> ~+inf nan; nan +0 -> nan +0; nan not0 -> nan nan; nan nan -> nan nan
expm1: 0 +0 -> ~0 +0; fin +inf -> nan nan; fin nan -> nan nan; +inf +0 -> +inf +0; -inf fin -> -1 0*sin
expm1: +inf nonzero -> +inf*cos +inf*sin; -inf +inf -> -1 ~0; +inf +inf -> ~+inf nan; -inf nan -> -1 ~0
expm1: +inf nan -> ~+inf nan; nan +0 -> nan +0; nan not0 -> nan nan; nan nan -> nan nan
isfinite: nan any -> 0; any nan -> 0; inf any -> 0; any inf -> 0; fin fin -> 1
isinf: inf any -> 1; any inf -> 1; fin nan -> 0; nan fin -> 0; fin fin -> 0
isnan: nan any -> 1; any nan -> 1; num num -> 0
log: -0 +0 -> -inf pi; +0 +0 -> -inf +0; fin +inf -> +inf pi/2; fin nan -> nan nan; -inf +fin -> +inf pi
log: +inf +fin -> +inf +0; -inf +inf -> +inf 3*pi/4; +inf +inf -> +inf pi/4; inf nan -> +inf nan; nan fin -> nan nan
log: nan +inf -> +inf nan; nan nan -> nan nan
log1p: -1 +0 -> -inf +0; fin +inf -> +inf pi/2; fin nan -> nan nan; -inf +fin -> +inf pi; +inf +fin -> +inf +0
log1p: -inf +inf -> +inf 3*pi/4; +inf +inf -> +inf pi/4; inf nan -> +inf nan; nan fin -> nan nan; nan +inf -> +inf nan
log1p: nan nan -> nan nan
sign: 0 0 -> ~0 ~0; nan any -> nan nan; any nan -> nan nan
sinh: +0 +0 -> +0 +0; +0 +inf -> ~0 nan; +0 nan -> ~0 nan; +fin +inf -> nan nan; +fin nan -> nan nan
sinh: +inf +0 -> +inf +0; +inf +fin -> +inf*cos +inf*sin; +inf +inf -> ~+inf nan; +inf nan -> ~+inf nan
sinh: nan +0 -> nan +0; nan nonzero -> nan nan; nan nan -> nan nan
sqrt: 0 +0 -> +0 +0; any +inf -> +inf +inf; fin nan -> nan nan; -inf +fin -> +0 +inf; +inf +fin -> +inf +0
sqrt: -inf nan -> nan ~+inf; +inf nan -> +inf nan; nan fin -> nan nan; nan nan -> nan nan
tanh: +0 +0 -> +0 +0; nonzero +inf -> nan nan; +0 +inf -> +0 nan; nonzero nan -> nan nan; +0 nan -> +0 nan
tanh: +inf +fin -> 1 +0; +inf +inf -> 1 ~0; +inf nan -> 1 ~0; nan +0 -> nan +0; nan nonzero -> nan nan
tanh: nan nan -> nan nan
"""

PARITY = {"asinh": -1, "atanh": -1, "sinh": -1, "tanh": -1, "cosh": 1}
"""Even and odd functions."""

CONJUGATE = "acos acosh asin asinh atan atanh cos cosh exp expm1 log log10 log1p log2 sin sinh sqrt tan tanh".split()
"""Functions of which the value at a conjugate is the conjugate value."""

TURNED = {"asin": "asinh", "atan": "atanh", "sin": "sinh", "tan": "tanh", "cos": "cosh"}
"""Functions of z that are -i times another of iz (the last is the other of iz)."""


def rows(table: str) -> Iterator[tuple[str, tuple[str, ...], tuple[str, ...]]]:
    """Name, words of the operands and words of the result of each case of a table."""
    for line in table.replace("\n ", " ").strip().split("\n"):
        name, _, cases = line.partition(":")
        for case in cases.split(";"):
            before, _, after = case.partition("->")
            yield name, tuple(before.split()), tuple(after.split())


def _wanted(word: str, x: float, y: float) -> float:
    if word in RESULTS:
        return RESULTS[word](x, y)
    return float(word) if word[-1] == "0" else float(eval(word, {"pi": math.pi, "inf": math.inf, "nan": math.nan}))


def agrees(got: Array, want: Array, open_sign: Array) -> Array:
    """Equal up to rounding; zeros and infinities with their signs, unless these are open."""
    got, want = np.asarray(got, np.float64), np.asarray(want, np.float64)
    got = np.where(open_sign, np.abs(got), got)
    want = np.where(open_sign, np.abs(want), want)
    close = np.abs(got - want) <= 1e-5 * np.abs(want)
    same = (got == want) & (np.signbit(got) == np.signbit(want))
    found: Array = same | (np.isnan(got) & np.isnan(want)) | (close & np.isfinite(got) & (want != 0))
    return found


class Cases:
    """The cases of one function in one dtype: operands, and the results that they should have."""

    def __init__(self, dtype: str) -> None:
        self.dtype, self.operands, self.results, self.words = np.dtype(dtype), [], [], []  # type: ignore[var-annotated]

    def add(self, before: tuple[str, ...], after: tuple[str, ...]) -> None:
        """Append a row of a table."""
        for numbers in itertools.product(*[SAMPLES[w] for w in before]):
            x, y = (*numbers, 0.0)[:2]
            self.operands.append(numbers)
            self.results.append([_wanted(w.lstrip("~"), x, y) for w in after])
            self.words.append((before, after))

    def arrays(self) -> list[Array]:
        """The operands as arrays."""
        numbers = np.array(self.operands)
        if self.dtype.kind != "c":
            return [np.ascontiguousarray(c).astype(self.dtype) for c in numbers.T]
        z = np.empty(len(numbers), self.dtype)
        z.real, z.imag = numbers.T
        return [z]

    def wrong(self, got: Array) -> list[Any]:
        """Cases whose results are others."""
        want = np.array(self.results)
        parts = [got.real, got.imag] if got.dtype.kind == "c" else [got]
        free = np.array([[w.startswith("~") for w in after] for _, after in self.words])
        assert want.shape[1] == len(parts)
        good = np.all([agrees(p, want[:, i], free[:, i]) for i, p in enumerate(parts)], axis=0)
        return [(*self.words[i], self.operands[i], complex(got[i])) for i in np.flatnonzero(~good)]


def collected(dtype: str, *tables: str) -> dict[str, Cases]:
    """The cases of all functions of some tables in one dtype."""
    found: dict[str, Cases] = {}
    for table in tables:
        for name, before, after in rows(table):
            found.setdefault(name, Cases(dtype)).add(before, after)
    return found
