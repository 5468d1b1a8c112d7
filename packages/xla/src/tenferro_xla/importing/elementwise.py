"""Element-wise operations, each a function of arrays and numbers.

A constant of equal elements is passed as a Python number.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np

import tenferro_runtime as tr
from tenferro_runtime.extension import catalog, tensor
from tenferro_tensor_core import dtype as named_dtype
from tenferro_xla.importing._bits import bitcast, layout, leading_zeros, unsigned
from tenferro_xla.importing._reader import Handler, ModuleReader, ValueScope, out_spec, unknown
from tenferro_xla.importing._values import Splat, Value, as_array

_NAMED: Final = {
    "stablehlo.add": catalog.add, "stablehlo.subtract": catalog.sub, "stablehlo.multiply": catalog.mul,
    "stablehlo.negate": catalog.neg, "stablehlo.maximum": catalog.maximum, "stablehlo.minimum": catalog.minimum,
    "stablehlo.power": catalog.pow, "stablehlo.atan2": catalog.atan2, "stablehlo.sqrt": catalog.sqrt,
    "stablehlo.rsqrt": catalog.rsqrt, "stablehlo.cbrt": catalog.cbrt, "stablehlo.exponential": catalog.exp,
    "stablehlo.exponential_minus_one": catalog.expm1, "stablehlo.log": catalog.log,
    "stablehlo.log_plus_one": catalog.log1p, "stablehlo.sine": catalog.sin, "stablehlo.cosine": catalog.cos,
    "stablehlo.tan": catalog.tan, "stablehlo.tanh": catalog.tanh, "stablehlo.abs": catalog.abs,
    "stablehlo.sign": catalog.sign, "stablehlo.floor": catalog.floor, "stablehlo.ceil": catalog.ceil,
    "stablehlo.round_nearest_even": catalog.round, "stablehlo.is_finite": catalog.is_finite,
    "stablehlo.real": catalog.real, "stablehlo.imag": catalog.imag, "stablehlo.complex": catalog.complex,
    "stablehlo.and": catalog.bitwise_and, "stablehlo.or": catalog.bitwise_or, "stablehlo.xor": catalog.bitwise_xor,
    "stablehlo.not": catalog.bitwise_not, "stablehlo.shift_left": catalog.shift_left,
    "chlo.acos": catalog.acos, "chlo.acosh": catalog.acosh, "chlo.asin": catalog.asin, "chlo.asinh": catalog.asinh,
    "chlo.atan": catalog.atan, "chlo.atanh": catalog.atanh, "chlo.conj": catalog.conj, "chlo.cosh": catalog.cosh,
    "chlo.digamma": catalog.digamma, "chlo.erf": catalog.erf, "chlo.erfc": catalog.erfc, "chlo.erf_inv": catalog.erfinv,
    "chlo.is_inf": catalog.is_inf, "chlo.lgamma": catalog.lgamma, "chlo.next_after": catalog.nextafter,
    "chlo.sinh": catalog.sinh, "chlo.tan": catalog.tan,
}  # fmt: skip


def _divide(op: Any, x: Any, y: Any) -> Any:
    """Integer division truncates; division by zero returns -1, all bits set."""
    spec = out_spec(op)
    if spec.inexact:
        return catalog.div(x, y)
    down = catalog.floor_divide(x, y)
    if spec.dtype.kind == "i":
        rest = catalog.remainder(x, y)
        across = catalog.bitwise_and(catalog.ne(rest, 0), catalog.ne(catalog.lt(x, 0), catalog.lt(y, 0)))
        down = catalog.add(down, catalog.convert(_as_boolean_array(across, down), dtype=spec.dtype))
    if isinstance(y, (int, float)) and y != 0:
        return down
    return catalog.select(catalog.eq(y, 0), int(np.array(-1).astype(spec.dtype)), down)


def _as_boolean_array(x: Any, y: Any) -> Any:
    return x if hasattr(x, "spec") else catalog.eq(y, y) if x else catalog.ne(y, y)


def _remainder(op: Any, x: Any, y: Any) -> Any:
    """The remainder has the sign of the dividend; an integer modulo zero is the integer."""
    rest = catalog.fmod(x, y)
    if out_spec(op).inexact or (isinstance(y, int) and y != 0):
        return rest
    return catalog.select(catalog.eq(y, 0), x, rest)


def _round_half_away(op: Any, x: Any) -> Any:
    whole = catalog.trunc(x)
    half = catalog.ge(catalog.abs(catalog.sub(x, whole)), 0.5)
    return catalog.select(half, catalog.add(whole, catalog.sign(x)), whole)


def _shift_right_logical(op: Any, x: Any, y: Any) -> Any:
    dtype = out_spec(op).dtype
    if dtype.kind == "u":
        return catalog.shift_right(x, y)
    plain = unsigned(dtype)
    x, y = (catalog.convert(v, dtype=plain) if hasattr(v, "spec") else v % (1 << 8 * dtype.itemsize) for v in (x, y))
    return catalog.convert(catalog.shift_right(x, y), dtype=dtype)


def _popcnt(op: Any, x: Any) -> Any:
    dtype = out_spec(op).dtype
    bits = x if dtype.kind == "u" else catalog.convert(x, dtype=unsigned(dtype))
    return catalog.convert(catalog.population_count(bits), dtype=dtype)


def _logistic(op: Any, x: Any) -> Any:
    if x.spec.cplx:
        return catalog.div(1.0, catalog.add(catalog.exp(catalog.neg(x)), 1.0))
    return tr.sigmoid(x)


_COMPARISONS: Final = {
    "EQ": catalog.eq, "NE": catalog.ne, "LT": catalog.lt, "LE": catalog.le, "GT": catalog.gt, "GE": catalog.ge,
}  # fmt: skip


def direction(op: Any) -> str:
    """Return the direction of a ``compare``."""
    from jax.extend.mlir.dialects import stablehlo

    value: str = stablehlo.ComparisonDirectionAttr(op.attributes["comparison_direction"]).value
    return value


def in_total_order(op: Any) -> bool:
    """Return whether a ``compare`` uses the total order, which includes NaN."""
    return "compare_type" in op.attributes and "TOTALORDER" in str(op.attributes["compare_type"])


def _compare(op: Any, x: Any, y: Any) -> Any:
    which = direction(op)
    if not in_total_order(op):
        return _COMPARISONS[which](x, y)
    dtype = (x if hasattr(x, "spec") else y).spec.dtype
    below, above = _ordered(*(v if hasattr(v, "spec") else tensor(np.asarray(v, dtype)) for v in (x, y)))
    if which in ("EQ", "NE"):
        either = catalog.bitwise_or(below, above)
        return either if which == "NE" else catalog.bitwise_not(either)
    found = below if which in ("LT", "GE") else above
    return found if which in ("LT", "GT") else catalog.bitwise_not(found)


def _ordered(x: Any, y: Any) -> tuple[Any, Any]:
    """Return whether `x` precedes and whether it follows `y` in total order: -NaN, numbers with -0 before 0, NaN."""
    shape = x.spec.shape or y.spec.shape
    x, y = (v if v.spec.shape == shape else catalog.broadcast_in_dim(v, shape=shape, dims=()) for v in (x, y))
    signs = [catalog.select(catalog.signbit(v), -1, 1) for v in (x, y)]
    ranks = [catalog.select(catalog.is_nan(v), s, 0) for v, s in zip((x, y), signs, strict=True)]
    same = catalog.eq(x, y)  # of numbers that are equal, only zeros have signs that differ

    def either(compare: Any) -> Any:
        number = catalog.bitwise_or(compare(x, y), catalog.bitwise_and(same, compare(*signs)))
        return catalog.bitwise_or(compare(*ranks), number)

    return either(catalog.lt), either(catalog.gt)


def _convert(op: Any, x: Any) -> Any:
    return catalog.convert(x, dtype=out_spec(op).dtype)


def _reduce_precision(op: Any, x: Any) -> Any:
    """Round to a float format that tenferro supports."""
    exponent, mantissa = (int(op.attributes[f"{part}_bits"].value) for part in ("exponent", "mantissa"))
    for name in ("float16", "bfloat16", "float32", "float64"):
        bits, fraction, _ = layout(named_dtype(name))
        if (bits - 1 - fraction, fraction) == (exponent, mantissa):
            return catalog.convert(catalog.convert(x, dtype=named_dtype(name)), dtype=x.spec.dtype)
    raise unknown(op, f"there is no dtype with {exponent} bits of exponent and {mantissa} of mantissa")


def _polygamma(op: Any, order: Any, x: Any) -> Any:
    if hasattr(order, "spec"):
        raise unknown(op, "the order of a polygamma function must be one constant")
    return catalog.digamma(x) if order == 0 else catalog.polygamma(x, order=int(order))


_COMPOSED: Final[dict[str, Callable[..., Any]]] = {
    "stablehlo.divide": _divide,
    "stablehlo.remainder": _remainder,
    "stablehlo.round_nearest_afz": _round_half_away,
    "stablehlo.shift_right_arithmetic": lambda op, x, y: catalog.shift_right(x, y),
    "stablehlo.shift_right_logical": _shift_right_logical,
    "stablehlo.popcnt": _popcnt,
    "stablehlo.count_leading_zeros": lambda op, x: leading_zeros(x),
    "stablehlo.logistic": _logistic,
    "stablehlo.compare": _compare,
    "stablehlo.convert": _convert,
    "stablehlo.reduce_precision": _reduce_precision,
    "chlo.square": lambda op, x: catalog.mul(x, x),
    "chlo.is_neg_inf": lambda op, x: catalog.eq(x, -np.inf),
    "chlo.is_pos_inf": lambda op, x: catalog.eq(x, np.inf),
    "chlo.polygamma": _polygamma,
    "chlo.zeta": lambda op, s, q: tr.special.zeta(s, q),
    "chlo.bessel_i1e": lambda op, x: tr.special.i1e(x),
}


def _named(function: Callable[..., Any]) -> Callable[..., Any]:
    return lambda op, *xs: function(*xs)


def elementwise(function: Callable[..., Any]) -> Handler:
    """Make a handler that passes constants of equal elements as numbers and folds operations on constants."""

    def handler(reader: ModuleReader, op: Any, xs: list[Value], scope: ValueScope) -> Value:
        if all(isinstance(x, Splat) for x in xs):
            with np.errstate(all="ignore"):
                found = function(op, *[tensor(x.element) for x in xs])  # type: ignore[union-attr]
            return Splat(np.asarray(found), xs[0].spec.with_(dtype=found.spec.dtype))
        return function(op, *[x.number if isinstance(x, Splat) else x for x in xs])  # type: ignore[no-any-return]

    return handler


def _compared(reader: ModuleReader, op: Any, xs: list[Value], scope: ValueScope) -> Value:
    """Fold comparisons that the interval of an index decides: loop indices are not negative."""
    known = _decided(direction(op), *xs) if not in_total_order(op) else None
    if known is not None:
        return Splat(np.asarray(known), xs[0].spec.with_(dtype=np.dtype(bool)))
    return elementwise(_compare)(reader, op, xs, scope)  # type: ignore[no-any-return]


def _decided(which: str, x: Value, y: Value) -> bool | None:
    if isinstance(x, Splat) or not isinstance(y, Splat) or x.spec.ndim or x.spec.dtype.kind not in "iu":
        return None
    low, high = x._interval()
    number = y.number
    if which in ("LT", "GE"):
        below = True if high is not None and high < number else False if low is not None and low >= number else None
        return below if below is None or which == "LT" else not below
    if which in ("GT", "LE"):
        above = True if low is not None and low > number else False if high is not None and high <= number else None
        return above if above is None or which == "GT" else not above
    return None


def _select(reader: ModuleReader, op: Any, xs: list[Value], scope: ValueScope) -> Value:
    """A scalar condition applies to all elements."""
    pred, x, y = xs
    if isinstance(pred, Splat):
        return x if pred.number else y
    if isinstance(x, Splat) and isinstance(y, Splat):
        x = x.array() if x.spec.ndim == pred.spec.ndim else catalog.broadcast_in_dim(
            tensor(x.element), shape=pred.spec.shape, dims=()
        )  # fmt: skip
    shape = (y if isinstance(x, Splat) else x).spec.shape
    if pred.spec.shape != shape:
        pred = catalog.broadcast_in_dim(pred, shape=shape, dims=())
    return catalog.select(pred, *[v.number if isinstance(v, Splat) else v for v in (x, y)])  # type: ignore[no-any-return]


def _clamp(reader: ModuleReader, op: Any, xs: list[Value], scope: ValueScope) -> Value:
    """Scalar bounds apply to all elements."""
    low, x, high = xs
    array = as_array(x)
    bounds = [
        b.number if isinstance(b, Splat) else
        catalog.broadcast_in_dim(b, shape=array.spec.shape, dims=()) if b.spec.ndim < array.spec.ndim else b
        for b in (low, high)
    ]  # fmt: skip
    return catalog.clamp(array, *bounds)  # type: ignore[no-any-return]


def _bitcast(reader: ModuleReader, op: Any, xs: list[Value], scope: ValueScope) -> Value:
    return bitcast(op, as_array(xs[0]), out_spec(op))  # type: ignore[no-any-return]


def _like(reader: ModuleReader, op: Any, xs: list[Value], scope: ValueScope) -> Value:
    spec = out_spec(op)
    return Splat(np.asarray(op.attributes["value"].value, spec.dtype), spec)


ELEMENTWISE: Final[dict[str, Handler]] = {
    **{name: elementwise(_named(p)) for name, p in _NAMED.items()},
    **{name: elementwise(f) for name, f in _COMPOSED.items()},
    "stablehlo.compare": _compared,
    "stablehlo.select": _select,
    "stablehlo.clamp": _clamp,
    "stablehlo.bitcast_convert": _bitcast,
    "chlo.constant_like": _like,
}
"""Element-wise operations, which are also allowed in regions that run on arrays instead of elements."""
