"""The table of element-wise primitives for all tests: dtypes, the definition in Python's own arithmetic, intervals."""

import cmath
import math
import operator
import struct
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import numpy as np

from tenferro_tensor import Primitive
from tenferro_tensor import catalog as c
from tenferro_tensor.catalog import analytic


class Operation(NamedTuple):
    """What tests know of an element-wise primitive.

    Attributes:
        kinds: letters of the dtypes that it takes, as the array API standard or NumPy has it.
        f: its definition on Python numbers.
        drawn: the interval that operands are drawn from.
        second: that of the second operand, if it is another.
        smooth: an interval in which derivatives are compared with differences, also as the real parts of complex
            numbers; other primitives have cases of their own in `rule_cases`.
        wildest: style of the wildest numbers whose result is defined.
        slack: multiples of the usual tolerance for real and complex numbers.
    """

    kinds: str
    f: Callable[..., Any]
    drawn: tuple[float, float] = (-3.0, 3.0)
    second: tuple[float, float] | None = None
    smooth: tuple[float, float] | None = None
    wildest: str = "special"
    slack: tuple[float, float] = (1, 1)


def either(real: Callable[..., Any], complex_: Callable[..., Any]) -> Callable[..., Any]:
    return lambda *args: complex_(*args) if any(isinstance(a, complex) for a in args) else real(*args)


def c_remainder(x: Any, y: Any) -> Any:
    """With the sign of the dividend; exact for integers too."""
    return math.fmod(x, y) if isinstance(x, float) else (abs(x) % abs(y)) * (1 if x >= 0 else -1)


def is_nan(x: Any) -> bool:
    return x != x


def sign(x: Any) -> Any:
    return (x / abs(x) if x else 0) if isinstance(x, complex) else (x > 0) - (x < 0)


def round_half_even(x: Any) -> Any:
    return complex(round(x.real), round(x.imag)) if isinstance(x, complex) else round(x)


def digamma(x: float) -> float:
    """Recurrence up to 20, then the asymptotic series."""
    total = 0.0
    while x < 20:
        total, x = total - 1 / x, x + 1
    series = sum(b / (2 * k * x ** (2 * k)) for k, b in ((1, 1 / 6), (2, -1 / 30), (3, 1 / 42), (4, -1 / 30)))
    return total + math.log(x) - 1 / (2 * x) - series


def polygamma_2(x: float) -> float:
    """``-2 * sum(1 / (x + k)**3)``, the tail by Euler and Maclaurin."""
    n = 200
    y = x + n
    return -2 * (sum((x + k) ** -3 for k in range(n)) + 1 / (2 * y**2) + 1 / (2 * y**3) + 1 / (4 * y**4))


def erfinv(y: float) -> float:
    low, high = -6.0, 6.0
    for _ in range(200):
        middle = (low + high) / 2
        low, high = (middle, high) if math.erf(middle) < y else (low, middle)
    return (low + high) / 2


def log_add_exp(x: float, y: float) -> float:
    return max(x, y) + math.log1p(math.exp(-abs(x - y)))


def complex_log(z: complex) -> complex:
    return complex(math.log(abs(z)), math.atan2(z.imag, z.real))


OPERATIONS: dict[Primitive, Operation] = {
    c.add: Operation("biufc", operator.add),
    c.sub: Operation("iufc", operator.sub),
    c.mul: Operation("biufc", operator.mul),
    c.absorbing_mul: Operation("biufc", operator.mul),
    c.div: Operation("fc", operator.truediv, second=(1, 3)),
    c.floor_divide: Operation("iuf", operator.floordiv, second=(1, 3)),
    c.remainder: Operation("iuf", operator.mod, second=(1, 3)),
    c.fmod: Operation("iuf", c_remainder, second=(1, 3)),
    c.pow: Operation("iufc", operator.pow, drawn=(0.5, 3), second=(0, 3)),
    c.neg: Operation("iufc", operator.neg, smooth=(-2, 2)),
    c.abs: Operation("biufc", abs),
    c.sign: Operation("iufc", sign),
    c.maximum: Operation("biuf", max),
    c.minimum: Operation("biuf", min),
    c.copysign: Operation("f", math.copysign),
    c.nextafter: Operation("f", math.nextafter),
    c.floor: Operation("biuf", math.floor),
    c.ceil: Operation("biuf", math.ceil),
    c.trunc: Operation("biuf", math.trunc),
    c.round: Operation("biufc", round_half_even),
    c.clamp: Operation("biuf", lambda x, lo, hi: min(max(x, lo), hi)),
    c.sqrt: Operation("fc", either(math.sqrt, cmath.sqrt), drawn=(0, 9), smooth=(0.3, 3)),
    c.rsqrt: Operation(
        "fc",
        either(lambda x: x**-0.5, lambda x: 1 / cmath.sqrt(x)),
        drawn=(0.1, 9),
        smooth=(0.3, 3),
        wildest="positive",
    ),
    c.cbrt: Operation("f", math.cbrt),
    c.exp: Operation("fc", either(math.exp, cmath.exp), smooth=(-2, 2)),
    c.exp2: Operation("fc", either(math.exp2, lambda z: cmath.exp(z * math.log(2))), smooth=(-2, 2)),
    c.expm1: Operation(
        "fc", either(math.expm1, lambda z: cmath.exp(z) - 1), drawn=(0.1, 2), smooth=(-2, 2), slack=(1, 4)
    ),
    c.log: Operation("fc", either(math.log, complex_log), drawn=(0.1, 9), smooth=(0.3, 3)),
    c.log1p: Operation(
        "fc", either(math.log1p, lambda z: complex_log(1 + z)), drawn=(0.1, 3), smooth=(0.3, 3), slack=(1, 4)
    ),
    c.log2: Operation("fc", either(math.log2, lambda z: complex_log(z) / math.log(2)), drawn=(0.1, 9), smooth=(0.3, 3)),
    c.log10: Operation(
        "fc", either(math.log10, lambda z: complex_log(z) / math.log(10)), drawn=(0.1, 9), smooth=(0.3, 3)
    ),
    c.sin: Operation("fc", either(math.sin, cmath.sin), smooth=(-1.2, 1.2)),
    c.cos: Operation("fc", either(math.cos, cmath.cos), smooth=(-1.2, 1.2)),
    c.tan: Operation("fc", either(math.tan, cmath.tan), drawn=(-1, 1), smooth=(-1.2, 1.2)),
    c.asin: Operation("fc", either(math.asin, cmath.asin), drawn=(-0.9, 0.9), smooth=(-0.8, 0.8), slack=(1, 4)),
    c.acos: Operation("fc", either(math.acos, cmath.acos), drawn=(-0.9, 0.9), smooth=(-0.8, 0.8), slack=(1, 4)),
    c.atan: Operation("fc", either(math.atan, cmath.atan), drawn=(-0.9, 0.9), smooth=(-1.2, 1.2), slack=(1, 4)),
    c.sinh: Operation("fc", either(math.sinh, cmath.sinh), smooth=(-1.2, 1.2)),
    c.cosh: Operation("fc", either(math.cosh, cmath.cosh), smooth=(-1.2, 1.2)),
    c.tanh: Operation("fc", either(math.tanh, cmath.tanh), drawn=(-1, 1), smooth=(-1.2, 1.2)),
    c.asinh: Operation("fc", either(math.asinh, cmath.asinh), drawn=(-0.9, 0.9), smooth=(-1.2, 1.2), slack=(1, 4)),
    c.acosh: Operation("fc", either(math.acosh, cmath.acosh), drawn=(1.1, 3), smooth=(1.3, 3), slack=(1, 4)),
    c.atanh: Operation("fc", either(math.atanh, cmath.atanh), drawn=(-0.9, 0.9), smooth=(-0.8, 0.8), slack=(1, 4)),
    c.atan2: Operation("f", math.atan2),
    c.hypot: Operation("f", math.hypot),
    c.logaddexp: Operation("f", log_add_exp),
    c.erf: Operation("f", math.erf, smooth=(-1.5, 1.5)),
    c.erfc: Operation("f", math.erfc, smooth=(-1.5, 1.5), slack=(1000, 1)),
    c.erfinv: Operation("f", erfinv, drawn=(-0.95, 0.95), smooth=(-0.8, 0.8), slack=(30, 1), wildest="unit"),
    c.lgamma: Operation("f", math.lgamma, drawn=(0.2, 9), smooth=(0.5, 4), slack=(100, 1), wildest="positive"),
    c.digamma: Operation("f", digamma, drawn=(0.2, 9), smooth=(0.5, 4), slack=(1000, 1), wildest="positive"),
    c.polygamma: Operation("f", polygamma_2, drawn=(0.5, 9)),
    c.bitwise_and: Operation("biu", operator.and_, drawn=(-100, 100)),
    c.bitwise_or: Operation("biu", operator.or_, drawn=(-100, 100)),
    c.bitwise_xor: Operation("biu", operator.xor, drawn=(-100, 100)),
    c.bitwise_not: Operation("biu", lambda x: not x if isinstance(x, bool) else ~x, drawn=(-100, 100)),
    c.shift_left: Operation("iu", operator.lshift, drawn=(0, 7)),
    c.shift_right: Operation("iu", operator.rshift, drawn=(-100, 100), second=(0, 7)),
    c.population_count: Operation("iu", lambda x: abs(x).bit_count(), drawn=(-100, 100)),
    c.eq: Operation("biufc", operator.eq, drawn=(-1, 1)),
    c.ne: Operation("biufc", operator.ne, drawn=(-1, 1)),
    c.lt: Operation("biuf", operator.lt, drawn=(-1, 1)),
    c.le: Operation("biuf", operator.le, drawn=(-1, 1)),
    c.gt: Operation("biuf", operator.gt, drawn=(-1, 1)),
    c.ge: Operation("biuf", operator.ge, drawn=(-1, 1)),
    c.is_finite: Operation("biufc", lambda x: abs(x) < math.inf),
    c.is_nan: Operation("biufc", is_nan),
    c.is_inf: Operation("biufc", lambda x: abs(x) == math.inf),
    c.signbit: Operation("f", lambda x: struct.pack(">d", x)[0] >> 7),
    c.select: Operation("biufc", lambda p, x, y: x if p else y),
    c.conj: Operation("biufc", lambda x: x.conjugate(), smooth=(-2, 2)),
    c.real: Operation("biufc", lambda x: x.real, smooth=(-2, 2)),
    c.imag: Operation("biufc", lambda x: x.imag, smooth=(-2, 2)),
    c.complex: Operation("f", complex),
    c.stop_gradient: Operation("biufc", lambda x: x),
}
"""By primitive; `convert` has tests of its own."""

FUNCTIONS: dict[str, Operation] = {
    p.name: row
    for p, row in OPERATIONS.items()
    if p in vars(analytic).values() and len(p.operands) == 1 and not p.metadata
}
"""The functions of one number: the array functions of these names are the primitives."""


def dtypes_of(kinds: str, names: Iterable[str]) -> tuple[str, ...]:
    """Those of the dtypes that are of some kinds."""
    return tuple([name for name in names if np.dtype(name).kind in kinds])


PARAMS: dict[Any, dict[str, Any]] = {c.polygamma: {"order": 2}}


def wrapped(value: Any, dtype: np.dtype[Any]) -> Any:
    """A Python number as an element of a dtype; integers modulo the range."""
    if dtype.kind in "iu":
        bits = 8 * dtype.itemsize
        value = int(value) % (1 << bits)
        return value - (1 << bits) if dtype.kind == "i" and value >> (bits - 1) else value
    return bool(value) if dtype.kind == "b" else value


def elementwise(f: Callable[..., Any], dtype: np.dtype[Any], *operands: Any) -> Any:
    """A function on Python numbers applied to broadcast operands, one element at a time."""
    rows = np.broadcast_arrays(*operands)
    out = np.empty(rows[0].shape, dtype)
    for i in np.ndindex(*out.shape):
        out[i] = wrapped(f(*[r[i].item() for r in rows]), dtype)
    return out


def next_float32(x: float, y: float) -> float:
    """`math.nextafter` in single precision, by counting bit patterns."""
    if x == y or x == 0:
        return y if x == y else math.copysign(2**-149, y)
    (bits,) = struct.unpack("i", struct.pack("f", x))
    return struct.unpack("f", struct.pack("i", bits + (1 if (y > x) == (x > 0) else -1)))[0]
