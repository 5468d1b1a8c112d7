"""Operands as plain data: dtype, shape, layout in memory, kind of numbers and a seed; and the arrays they stand for."""

import cmath
import math
import random
from collections.abc import Callable, Iterator
from functools import cache
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]
Operand = dict[str, Any]

SIGNED = ("int8", "int16", "int32", "int64")
UNSIGNED = ("uint8", "uint16", "uint32", "uint64")
INTEGERS = SIGNED + UNSIGNED
FLOATS = ("float32", "float64")
COMPLEX = ("complex64", "complex128")
INEXACT = FLOATS + COMPLEX
REALS = INTEGERS + FLOATS
NUMBERS = REALS + COMPLEX
ALL = ("bool", *NUMBERS)

STYLES = ("plain", "special", "positive", "unit", "small")
"""Normal numbers; those and every special one; in (0, 4); in (-1, 1); integers in [-3, 3] of any dtype."""

LAYOUTS = ("contiguous", "fortran", "strided", "negative", "broadcast", "unaligned", "transposed", "offset", "frozen")

_POOL = 1021  # prime: every stride through the pool meets all of it


def _limits(dtype: np.dtype[Any]) -> list[Any]:
    if dtype.kind in "iu":
        i = np.iinfo(dtype)
        return [i.min, i.max, i.min + 1, i.max - 1, 0, 1, 2, i.max // 2]
    f = np.finfo(dtype)
    tiny, most = float(f.smallest_subnormal), float(f.max)
    ends = [0.0, math.inf, math.nan, tiny, float(f.tiny), most, 1.0, 0.5, float(f.eps), 1e4, 2.0**24 + 1]
    return [s * x for x in ends for s in (1, -1)]


@cache
def pool(dtype: str, style: str) -> Array:
    """The numbers that operands of a dtype and style are made of."""
    rng = np.random.default_rng([ALL.index(dtype), STYLES.index(style)])
    kind = np.dtype(dtype)
    if kind.kind == "b":
        return rng.random(_POOL) < 0.5
    if style == "small":
        drawn = rng.integers(0 if kind.kind == "u" else -3, 4, (2, _POOL))
        return (drawn[0] + 1j * drawn[1] if kind.kind == "c" else drawn[0]).astype(kind)
    if kind.kind in "iu":
        low = 0 if kind.kind == "u" else {"positive": 0, "unit": -1}.get(style, -7)
        numbers = rng.integers(low, 2 if style == "unit" else 8, _POOL).astype(kind)
        part: Any = numbers
    else:
        shape = (2, _POOL) if kind.kind == "c" else (1, _POOL)
        real = {"positive": lambda: rng.uniform(1e-3, 4, shape), "unit": lambda: rng.uniform(-1, 1, shape)}
        drawn = real.get(style, lambda: rng.normal(size=shape) * 2)()
        if style == "special":
            wide = np.exp(rng.uniform(-40, 40, shape)) * rng.choice([-1, 1], shape)
            drawn = np.where(rng.random(shape) < 0.3, wide, drawn)
        part = drawn.astype(kind.type(0).real.dtype)
        numbers = np.empty(_POOL, kind)
        numbers.real = part[0]
        if kind.kind == "c":
            numbers.imag = part[1]
    if style == "special":
        views = [numbers] if kind.kind != "c" else [numbers.real, numbers.imag]
        for view in views:
            at = rng.random(_POOL) < 0.4
            view[at] = rng.choice(np.array(_limits(view.dtype), view.dtype), int(at.sum()))
    numbers.flags.writeable = False
    return numbers


def fresh(operand: Operand) -> Array:
    """The elements in C order."""
    shape = tuple(operand["shape"])
    size, seed = math.prod(shape), operand["seed"]
    numbers = pool(operand["dtype"], operand["style"])
    return numbers[(seed + np.arange(size) * (1 + seed % 97)) % _POOL].reshape(shape)


def array(operand: Operand) -> Array:
    """The elements laid out in memory as the operand says."""
    x, layout = fresh(operand), operand["layout"]
    if layout == "contiguous" or not x.ndim:
        return x
    return _LAID[layout](x)


def _strided(x: Array) -> Array:
    wide = np.zeros((*x.shape[:-1], 2 * x.shape[-1] + 1), x.dtype)
    wide[..., 1::2] = x
    return wide[..., 1::2]


def _broadcast(x: Array) -> Array:
    return np.broadcast_to(x[:1], x.shape) if x.shape[0] else x


def _unaligned(x: Array) -> Array:
    raw = np.zeros(x.nbytes + 1, np.uint8)[1:]
    out = raw.view(x.dtype).reshape(x.shape)
    out[...] = x
    return out


def _offset(x: Array) -> Array:
    wide = np.zeros(tuple([n + 2 for n in x.shape]), x.dtype)
    view = wide[tuple([slice(1, n + 1) for n in x.shape])]
    view[...] = x
    return view


def _frozen(x: Array) -> Array:
    x.flags.writeable = False
    return x


_LAID: dict[str, Callable[[Array], Array]] = {
    "fortran": np.asfortranarray,
    "strided": _strided,
    "negative": lambda x: x[::-1, ...].copy()[::-1, ...],
    "broadcast": _broadcast,
    "unaligned": _unaligned,
    "transposed": lambda x: x.T.copy().T,
    "offset": _offset,
    "frozen": _frozen,
}


def operand(
    rng: random.Random, dtypes: tuple[str, ...], shape: tuple[int, ...], style: str = "plain", plain: float = 0.4
) -> Operand:
    """An operand of some dtype and layout; `plain` is the part of contiguous ones."""
    layout = "contiguous" if rng.random() < plain else rng.choice(LAYOUTS)
    dtype = rng.choice(dtypes)
    return {"dtype": dtype, "shape": list(shape), "layout": layout, "style": style, "seed": rng.randrange(1 << 16)}


def shape_of(rng: random.Random, least: int = 0, most: int = 3) -> tuple[int, ...]:
    """A shape; short axes mostly, among them empty ones, and now and then one that fills vectors and threads."""
    ndim = rng.randint(least, most)
    axes = [rng.choice((0, 1, 1, 2, 2, 3, 3, 4, 5, 7, 9)) for _ in range(ndim)]
    if axes and rng.random() < 0.12:
        axes[rng.randrange(ndim)] = rng.choice((16, 17, 33, 64, 100))
    return tuple(axes)


def broadcasting(rng: random.Random, shape: tuple[int, ...]) -> tuple[int, ...]:
    """A shape that broadcasts with another, to it."""
    return tuple([1 if rng.random() < 0.25 else n for n in shape])[rng.randint(0, len(shape)) if shape else 0 :]


def variant(operand: Operand, k: int) -> Operand:
    """Other elements in another layout; the operand itself for 0."""
    if not k:
        return operand
    seed = (operand["seed"] + 7919 * k) % (1 << 16)
    return operand | {"seed": seed, "layout": LAYOUTS[seed % len(LAYOUTS)]}


def smaller(operand: Operand) -> Iterator[Operand]:
    """The same with a simpler layout, other elements, or plainer numbers; its shape stays."""
    if operand["layout"] != "contiguous":
        yield operand | {"layout": "contiguous"}
        yield operand | {"layout": "strided"}
    if operand["style"] == "special":
        yield operand | {"style": "plain"}
    if operand["style"] in ("special", "plain"):
        yield operand | {"style": "small"}
    if operand["seed"]:
        yield operand | {"seed": 0}


def literal(operand: Operand, name: str = "np") -> str:
    """The array as an expression; its elements written out where they are few."""
    x, layout = fresh(operand), operand["layout"]
    values = f"{name}.array({_text(x.tolist())}, {operand['dtype']!r}).reshape({x.shape})"
    if x.ndim <= 1 and x.size:
        values = f"{name}.array({_text(x.tolist())}, {operand['dtype']!r})"
    if layout in ("contiguous", "frozen", "offset") or not x.ndim:
        return values
    return {
        "fortran": f"{name}.asfortranarray({values})",
        "strided": f"{name}.repeat({values}, 2, -1)[..., ::2]",
        "negative": f"{values}[::-1, ...].copy()[::-1, ...]",
        "broadcast": f"{name}.broadcast_to({values}[:1], {x.shape})",
        "unaligned": f"{name}.frombuffer(b'x' + {values}.tobytes(), {operand['dtype']!r}, {x.size}, 1)"
        f".reshape({x.shape})",
        "transposed": f"{values}.T.copy().T",
    }[layout]


def _text(values: Any) -> str:
    """Nested lists of numbers as an expression."""
    if isinstance(values, list):
        return f"[{', '.join(map(_text, values))}]"
    if isinstance(values, (float, complex)) and not cmath.isfinite(values):
        return f"{type(values).__name__}({str(values)!r})"
    return repr(values)
