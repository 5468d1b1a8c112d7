"""Random single calls of the array functions: the text of the call, its operands, and how near the result must be."""

import random
from collections.abc import Callable
from typing import Any, NamedTuple

from fuzzing.values import (
    ALL,
    COMPLEX,
    FLOATS,
    INEXACT,
    INTEGERS,
    NUMBERS,
    REALS,
    Operand,
    broadcasting,
    operand,
    shape_of,
)
from operations import FUNCTIONS


class Call(NamedTuple):
    """A call; `rtol` is a multiple of the usual tolerance, `scale` a text of what it is relative to."""

    text: str
    operands: list[Operand]
    rtol: float = 1.0
    scale: str | None = None


Draw = Callable[[random.Random], Call]
BITS = ("bool", *INTEGERS)

UNARY: dict[str, tuple[tuple[str, ...], str, float]] = {
    "abs": (ALL, "special", 1), "ceil": (REALS, "special", 1), "conj": (NUMBERS, "special", 1),
    "floor": (REALS, "special", 1), "trunc": (REALS, "special", 1), "round": (NUMBERS, "special", 1),
    "imag": (NUMBERS, "special", 1), "real": (NUMBERS, "special", 1), "isfinite": (ALL, "special", 1),
    "isinf": (ALL, "special", 1), "isnan": (ALL, "special", 1), "logical_not": (ALL, "special", 1),
    "negative": (NUMBERS, "special", 1), "positive": (NUMBERS, "special", 1), "sign": (REALS, "special", 1),
    "signbit": (FLOATS, "special", 1), "square": (REALS, "special", 1), "bitwise_invert": (BITS, "special", 1),
    "bitwise_count": (INTEGERS, "special", 1), "nan_to_num": (REALS, "special", 1), "abs2": (FLOATS, "special", 1),
    "reciprocal": (FLOATS, "special", 1),
    **{name: (FLOATS, row.wildest, row.slack[0]) for name, row in FUNCTIONS.items()},
}  # fmt: skip
"""Of each: dtypes, the wildest numbers whose result is defined, and the multiple of the tolerance.

lgamma and digamma are compared where they are well conditioned only; erfc of large numbers is the difference of SciPy's
expansion and ours.
"""

COMPLEX_UNARY = {
    "square": 1, "reciprocal": 1, "sign": 1, "abs2": 1,
    **{name: row.slack[1] for name, row in FUNCTIONS.items() if "c" in row.kinds},
}  # fmt: skip
"""Functions of complex numbers, and the multiple of the tolerance."""

MODERATE = ("sign", "expm1", "log1p", "exp2", "log2", "log10", "rsqrt", "abs2")
"""Those that NumPy has not, or computes by formulas that lose all digits of wide numbers."""

BINARY: dict[str, tuple[tuple[str, ...], str]] = {
    "add": (NUMBERS, "special"), "subtract": (NUMBERS, "special"), "multiply": (REALS, "special"),
    "divide": (REALS, "special"), "maximum": (REALS, "special"), "minimum": (REALS, "special"),
    "equal": (ALL, "special"), "not_equal": (ALL, "special"), "less": (REALS, "special"),
    "less_equal": (REALS, "special"), "greater": (REALS, "special"), "greater_equal": (REALS, "special"),
    "logical_and": (ALL, "special"), "logical_or": (ALL, "special"), "logical_xor": (ALL, "special"),
    "atan2": (FLOATS, "special"), "hypot": (FLOATS, "special"), "logaddexp": (FLOATS, "special"),
    "copysign": (FLOATS, "special"), "nextafter": (FLOATS, "special"), "bitwise_and": (BITS, "special"),
    "bitwise_or": (BITS, "special"), "bitwise_xor": (BITS, "special"), "fmod": (REALS, "special"),
    "floor_divide": (REALS, "special"), "remainder": (REALS, "special"), "pow": (FLOATS, "special"),
    "bitwise_left_shift": (INTEGERS, "unit"), "bitwise_right_shift": (INTEGERS, "unit"),
}  # fmt: skip


def _two(rng: random.Random, dtypes: tuple[str, ...], style: str, most: int = 3) -> list[Operand]:
    shape = shape_of(rng, 0, most)
    other = broadcasting(rng, shape)
    x, y = operand(rng, dtypes, shape, style), operand(rng, dtypes, other, style)
    if rng.random() < 0.7:
        y["dtype"] = x["dtype"]
    return [x, y] if rng.random() < 0.5 else [y, x]


def _style(rng: random.Random, wildest: str) -> str:
    return rng.choice((wildest, "plain")) if wildest == "special" else wildest


def _unary(rng: random.Random) -> Call:
    if rng.random() < 0.25:
        name = rng.choice(list(COMPLEX_UNARY))
        style = "plain" if name in MODERATE else _style(rng, "special")
        return Call(f"tr.{name}(a)", [operand(rng, COMPLEX, shape_of(rng), style)], 4 * COMPLEX_UNARY[name])
    name = rng.choice(list(UNARY))
    dtypes, style, rtol = UNARY[name]
    return Call(f"tr.{name}(a)", [operand(rng, dtypes, shape_of(rng), _style(rng, style))], rtol)


def _binary(rng: random.Random) -> Call:
    name = rng.choice(list(BINARY))
    dtypes, style = BINARY[name]
    xs = _two(rng, dtypes, _style(rng, style))
    if name == "pow":
        xs[0]["style"] = rng.choice(("positive", "special"))
    if name == "pow" and rng.random() < 0.3:
        x = operand(rng, INTEGERS, tuple(xs[0]["shape"]), "special")
        return Call(f"tr.pow(a, {rng.choice((0, 1, 2, 3, 7))})", [x])
    if name == "logaddexp":
        return Call("tr.logaddexp(a, b)", xs, 4, "np.maximum(np.abs(a), np.abs(b))")
    if name.endswith("shift"):
        xs[1] |= {"style": "unit", "dtype": xs[0]["dtype"]}
        return Call(f"tr.{name}(a, tr.abs(b))", xs)
    return Call(f"tr.{name}(a, b)", xs, 4)


def _operator(rng: random.Random) -> Call:
    """Operators with Python numbers of either side, which are weak."""
    op, number = rng.choice("+ - * < == >=".split()), rng.choice(("2", "-1", "0.5", "True", "3j", "0", "1e30"))
    dtypes = INEXACT if "." in number or "e30" in number else COMPLEX if "j" in number else NUMBERS
    if op in "< >=":
        number, dtypes = "1" if "j" in number else number, FLOATS
    x = operand(rng, dtypes, shape_of(rng), "plain")
    if x["dtype"].startswith("u"):
        number = "2"
    text = f"a {op} {number}" if rng.random() < 0.5 else f"{number} {op} a"
    return Call(text, [x], 4)


def _where(rng: random.Random) -> Call:
    shape = shape_of(rng)
    p = operand(rng, ("bool",), broadcasting(rng, shape))
    x, y = operand(rng, ALL, shape, "special"), operand(rng, ALL, broadcasting(rng, shape), "special")
    y["dtype"] = x["dtype"]
    if rng.random() < 0.3 and x["dtype"] in REALS:
        x["style"] = "plain"
        return Call("tr.clip(b, -1 if b.dtype.kind != 'u' else 0, 2)", [p, x])
    return Call("tr.where(a, b, c)", [p, x, y])


def _axis(rng: random.Random, ndim: int, several: bool = True) -> Any:
    kind = rng.random()
    if not ndim or kind < 0.25:
        return None
    if several and kind < 0.5:
        return tuple(sorted(rng.sample(range(ndim), rng.randint(0, ndim))))
    return rng.randrange(-ndim, ndim)


def _reduction(rng: random.Random) -> Call:
    name = rng.choice("sum prod mean std var max min any all count_nonzero argmax argmin logsumexp".split())
    dtypes: dict[str, Any] = {"mean": INEXACT, "std": FLOATS, "var": INEXACT, "logsumexp": FLOATS}
    whole = {"max": REALS, "min": REALS, "any": ALL, "all": ALL, "count_nonzero": ALL, "argmax": REALS, "argmin": REALS}
    shape = shape_of(rng, 0, 4)
    axis = _axis(rng, len(shape), not name.startswith("arg"))
    axes = range(len(shape)) if axis is None else axis if isinstance(axis, tuple) else (axis,)
    count = 1
    for k in axes:
        count *= shape[k]
    if name in ("mean", "std", "var", "max", "min", "argmax", "argmin", "logsumexp") and not count:
        shape = tuple([max(1, n) for n in shape])
    keep = rng.random() < 0.3
    style = "special" if name in whole else "small" if name == "prod" else "plain"
    if name.startswith("arg"):
        style = "plain"
    if name == "prod" and count > 12:
        shape = tuple([min(2, n) for n in shape])  # neither overflow nor the order of products is looked at
    x = operand(rng, dtypes.get(name) or whole.get(name, NUMBERS), shape, style)
    more = ", keepdims=True" if keep else ""
    if name in ("std", "var") and rng.random() < 0.3:
        more += ", correction=0.5"
    scales = {
        "sum": f"np.sum(np.abs(a), axis={axis}, keepdims={keep})",
        "mean": f"np.mean(np.abs(a), axis={axis}, keepdims={keep})",
        "var": f"np.mean(np.abs(a) ** 2, axis={axis}, keepdims={keep})",
        "std": f"np.max(np.abs(a), axis={axis}, keepdims={keep}) * 10",
        "logsumexp": f"np.max(np.abs(a), axis={axis}, keepdims={keep})",
    }
    rtol = 30 if name in ("prod", "var", "std") else 3
    return Call(f"tr.{name}(a, axis={axis}{more})", [x], rtol, scales.get(name))


def _scan(rng: random.Random) -> Call:
    shape = shape_of(rng, 1)
    axis = rng.randrange(-len(shape), len(shape))
    name = rng.choice("cumulative_sum cumulative_prod diff sort argsort softmax log_softmax".split())
    if name in ("softmax", "log_softmax"):
        shape = tuple([max(1, n) for n in shape])
        scale = f"np.max(np.abs(a), axis={axis}, keepdims=True) * np.ones(a.shape)" if "log" in name else None
        return Call(f"tr.{name}(a, axis={axis})", [operand(rng, FLOATS, shape)], 20, scale)
    if name.endswith("sort"):
        x = operand(rng, REALS, shape, _style(rng, "special") if name == "sort" else "small")
        return Call(f"tr.{name}(a, axis={axis}{rng.choice(('', ', descending=True'))})", [x])
    if name == "diff":
        return Call(f"tr.diff(a, axis={axis}, n={rng.choice((1, 1, 2))})", [operand(rng, NUMBERS, shape)], 8)
    initial = ", include_initial=True" if rng.random() < 0.3 else ""
    x = operand(rng, NUMBERS, shape, "small" if name == "cumulative_prod" else "plain")
    scale = f"np.cumulative_sum(np.abs(a), axis={axis}{initial})" if name == "cumulative_sum" else None
    return Call(f"tr.{name}(a, axis={axis}{initial})", [x], 30, scale)


def _move(rng: random.Random) -> Call:
    """Functions that move elements and compute nothing."""
    shape = shape_of(rng)
    n = len(shape)
    x = operand(rng, ALL, shape, "special")
    axis = rng.randrange(-n, n) if n else None
    permutation = tuple(rng.sample(range(n), n))
    texts = [
        "tr.ravel(a)", "tr.reshape(a, (-1,) if a.size else (0,))", f"tr.permute_dims(a, {permutation})", "tr.flip(a)",
        "tr.tile(a, 2)", f"tr.tile(a, {tuple(rng.randint(1, 3) for _ in range(rng.randint(1, 3)))})",
        "tr.stack([a, a])", f"tr.expand_dims(a, axis={rng.randrange(-n - 1, n + 1)})",
        f"tr.roll(a, {rng.randint(-4, 4)})",
        f"tr.reshape(a, {(*shape, 1)})", f"tr.reshape(a, {(1, *shape)})", f"tr.broadcast_to(a, {(2, *shape)})",
        f"tr.repeat(a, {rng.randint(0, 3)})", "tr.broadcast_arrays(a, tr.reshape(a, (1,) + a.shape))[0]",
        "tr.zeros_like(a)", "tr.ones_like(a)", "a.astype(a.dtype)", "tr.nonzero(a)", "tr.full_like(a, 1)",
    ]  # fmt: skip
    if axis is not None:
        texts += [
            f"tr.flip(a, axis={axis})", f"tr.roll(a, {rng.randint(-4, 4)}, axis={axis})",
            f"tr.concat([a, a], axis={axis})", f"tr.stack([a, a, a], axis={axis})",
            f"tr.repeat(a, {rng.randint(0, 3)}, axis={axis})", f"tr.moveaxis(a, {axis}, {rng.randrange(-n, n)})",
            f"tr.swapaxes(a, {axis}, {rng.randrange(-n, n)})", f"tr.unstack(a, axis={axis})",
            f"tr.take(a, np.asarray({[rng.randrange(max(1, shape[axis])) for _ in range(3)]}), axis={axis})"
            if shape[axis] else "tr.ravel(a)",
            "tr.pad(a, " + str(tuple((rng.randint(0, 2), rng.randint(0, 2)) for _ in shape)) + ")",
        ]  # fmt: skip
    if n >= 2:
        k = rng.randint(-3, 3)
        texts += [f"tr.tril(a, k={k})", f"tr.triu(a, k={k})", f"tr.diagonal(a, offset={k})", "tr.matrix_transpose(a)"]
    return Call(rng.choice(texts), [x])


def _product(rng: random.Random) -> Call:
    n, k, m = (rng.choice((0, 1, 2, 3, 4, 5, 8, 9, 17)) for _ in range(3))
    dtypes = rng.choice((INEXACT, NUMBERS))
    stack = shape_of(rng, 0, 1)
    shapes = rng.choice((((n, k), (k, m)), ((n, k), (k,)), ((k,), (k, m)), ((k,), (k,)), ((*stack, n, k), (k, m))))
    x, y = operand(rng, dtypes, shapes[0]), operand(rng, dtypes, shapes[1])
    if rng.random() < 0.8:
        y["dtype"] = x["dtype"]
    kind = rng.random()
    if kind < 0.7:
        return Call("a @ b", [x, y], 4, "np.abs(a) @ np.abs(b)")
    if kind < 0.8:
        return Call("tr.tensordot(a, b, axes=0)", [x, y], 4)
    x["shape"] = y["shape"] = [n, k]
    if kind < 0.9:
        return Call("tr.vecdot(a, b)", [x, y], 4, "np.vecdot(np.abs(a), np.abs(b))")
    return Call("tr.kron(a, b)", [x, y], 4) if n * k else Call("tr.outer(tr.ravel(a), tr.ravel(b))", [x, y], 4)


def _convert(rng: random.Random) -> Call:
    """Conversions that C defines: none of a float to an integer that cannot hold it, none of complex to real."""
    source = rng.choice(ALL)
    target = rng.choice(COMPLEX if source in COMPLEX else ALL)
    x = operand(rng, (source,), shape_of(rng), "special")
    if source in FLOATS and target in INTEGERS:
        x["style"] = "positive"
    return Call(f"a.astype(tr.{target})" if rng.random() < 0.7 else f"tr.astype(a, tr.{target})", [x])


def _search(rng: random.Random) -> Call:
    x, y = operand(rng, REALS, (rng.randint(0, 9),), "small"), operand(rng, REALS, shape_of(rng, 0, 2), "small")
    y["dtype"] = x["dtype"]
    side = rng.choice(("left", "right"))
    texts = (f"tr.searchsorted(tr.sort(a), b, side='{side}')", "tr.isin(b, a)", "tr.unique_values(b)",
             "tr.unique_counts(b)", "tr.meshgrid(a, a)")  # fmt: skip
    return Call(rng.choice(texts), [x, y])


CALLS: tuple[tuple[int, Draw], ...] = (
    (26, _unary), (18, _binary), (6, _operator), (5, _where), (14, _reduction), (7, _scan), (14, _move), (6, _product),
    (6, _convert), (3, _search),
)  # fmt: skip
