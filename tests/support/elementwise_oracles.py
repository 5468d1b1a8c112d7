"""The definition of each element-wise primitive for one element, in Python's own arithmetic, without NumPy."""

import cmath
import math
import operator
import struct
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from tenferro_tensor import catalog as c


class Oracle(NamedTuple):
    """A function on Python numbers, and the interval that its operands are drawn from."""

    f: Callable[..., Any]
    low: float = -3.0
    high: float = 3.0
    second: tuple[float, float] | None = None


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


ORACLES: dict[Any, Oracle] = {
    c.add: Oracle(operator.add), c.sub: Oracle(operator.sub), c.mul: Oracle(operator.mul),
    c.absorbing_mul: Oracle(operator.mul),
    c.div: Oracle(operator.truediv, second=(1, 3)),
    c.floor_divide: Oracle(operator.floordiv, second=(1, 3)), c.remainder: Oracle(operator.mod, second=(1, 3)),
    c.fmod: Oracle(c_remainder, second=(1, 3)),
    c.pow: Oracle(operator.pow, 0.5, 3, second=(0, 3)), c.neg: Oracle(operator.neg), c.abs: Oracle(abs),
    c.sign: Oracle(sign), c.maximum: Oracle(max), c.minimum: Oracle(min), c.copysign: Oracle(math.copysign),
    c.nextafter: Oracle(math.nextafter),
    c.floor: Oracle(math.floor),
    c.ceil: Oracle(math.ceil),
    c.trunc: Oracle(math.trunc),
    c.round: Oracle(round_half_even),
    c.clamp: Oracle(lambda x, lo, hi: min(max(x, lo), hi)),
    c.sqrt: Oracle(either(math.sqrt, cmath.sqrt), 0, 9),
    c.rsqrt: Oracle(either(lambda x: x**-0.5, lambda x: 1 / cmath.sqrt(x)), 0.1, 9),
    c.cbrt: Oracle(math.cbrt), c.exp: Oracle(either(math.exp, cmath.exp)),
    c.exp2: Oracle(either(math.exp2, lambda z: cmath.exp(z * math.log(2)))),
    c.expm1: Oracle(either(math.expm1, lambda z: cmath.exp(z) - 1), 0.1, 2),
    c.log: Oracle(either(math.log, complex_log), 0.1, 9),
    c.log1p: Oracle(either(math.log1p, lambda z: complex_log(1 + z)), 0.1, 3),
    c.log2: Oracle(either(math.log2, lambda z: complex_log(z) / math.log(2)), 0.1, 9),
    c.log10: Oracle(either(math.log10, lambda z: complex_log(z) / math.log(10)), 0.1, 9),
    c.sin: Oracle(either(math.sin, cmath.sin)), c.cos: Oracle(either(math.cos, cmath.cos)),
    c.tan: Oracle(either(math.tan, cmath.tan), -1, 1),
    c.asin: Oracle(either(math.asin, cmath.asin), -0.9, 0.9), c.acos: Oracle(either(math.acos, cmath.acos), -0.9, 0.9),
    c.atan: Oracle(either(math.atan, cmath.atan), -0.9, 0.9),
    c.sinh: Oracle(either(math.sinh, cmath.sinh)), c.cosh: Oracle(either(math.cosh, cmath.cosh)),
    c.tanh: Oracle(either(math.tanh, cmath.tanh), -1, 1),
    c.asinh: Oracle(either(math.asinh, cmath.asinh), -0.9, 0.9),
    c.acosh: Oracle(either(math.acosh, cmath.acosh), 1.1, 3),
    c.atanh: Oracle(either(math.atanh, cmath.atanh), -0.9, 0.9),
    c.atan2: Oracle(math.atan2), c.hypot: Oracle(math.hypot), c.logaddexp: Oracle(log_add_exp),
    c.erf: Oracle(math.erf),
    c.erfc: Oracle(math.erfc),
    c.erfinv: Oracle(erfinv, -0.95, 0.95),
    c.lgamma: Oracle(math.lgamma, 0.2, 9),
    c.digamma: Oracle(digamma, 0.2, 9), c.polygamma: Oracle(polygamma_2, 0.5, 9),
    c.bitwise_and: Oracle(operator.and_, -100, 100), c.bitwise_or: Oracle(operator.or_, -100, 100),
    c.bitwise_xor: Oracle(operator.xor, -100, 100),
    c.bitwise_not: Oracle(lambda x: not x if isinstance(x, bool) else ~x, -100, 100),
    c.shift_left: Oracle(operator.lshift, 0, 7), c.shift_right: Oracle(operator.rshift, -100, 100, second=(0, 7)),
    c.population_count: Oracle(lambda x: abs(x).bit_count(), -100, 100),
    c.eq: Oracle(operator.eq, -1, 1), c.ne: Oracle(operator.ne, -1, 1), c.lt: Oracle(operator.lt, -1, 1),
    c.le: Oracle(operator.le, -1, 1), c.gt: Oracle(operator.gt, -1, 1), c.ge: Oracle(operator.ge, -1, 1),
    c.is_finite: Oracle(lambda x: abs(x) < math.inf),
    c.is_nan: Oracle(is_nan),
    c.is_inf: Oracle(lambda x: abs(x) == math.inf),
    c.signbit: Oracle(lambda x: struct.pack(">d", x)[0] >> 7), c.select: Oracle(lambda p, x, y: x if p else y),
    c.conj: Oracle(lambda x: x.conjugate()), c.real: Oracle(lambda x: x.real), c.imag: Oracle(lambda x: x.imag),
    c.complex: Oracle(complex), c.stop_gradient: Oracle(lambda x: x),
}  # fmt: skip
"""By primitive; `convert` has tests of its own."""

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
