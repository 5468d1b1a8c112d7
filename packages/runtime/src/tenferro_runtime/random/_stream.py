"""From keys and positions to words of a block cipher, and from words to numbers of distributions.

The formulas are the expansions of the primitives in `tenferro_tensor.random_streams`. Apart from the square root in the
normal distribution they consist of sums, products, quotients and selections, each rounded once and in a fixed order, so
that eager calls, native kernels (the same formulas in C) and compiled programs have equal bits. Polynomials are
evaluated by Horner's rule in the square of the variable, separately for even and odd coefficients.
"""

from __future__ import annotations

import math
from typing import Any, Final

import numpy as np

from tenferro_tensor import catalog
from tenferro_tensor_core import DimLike, float32, uint32, uint64

_ROTATIONS: Final = ((13, 15, 26, 6), (17, 29, 16, 24))
_PARITY: Final = 0x1BD11BDA

_CENTRE64: Final = (
    2.338620710026593, 1.0613592459410652, -0.08332909352800362, -0.031967516159149396, 0.025184826807273887,
    -0.005851046090566839, -0.0017984444581684792, 0.0017429976416333574, -0.0003739090523438119,
    -0.00016530468409320774, 0.00013204103820313914, -2.125686073026498e-05, -1.591865863297903e-05,
    1.009509841262161e-05, -9.710771806077406e-07, -1.5181004759071745e-06, 7.69963740500298e-07,
    7.921787725612766e-09, -1.4744888419106264e-07, 3.9718830631875705e-08, 1.2302778182445717e-08,
    -5.85257646800084e-09, -2.5737320943503756e-11,
)  # fmt: skip

_TAIL64: Final = (
    1.348456442918815, -0.031594705753143985, 0.002626890450391737, 0.0013126753940307084,
    0.00026278273594072506, 0.0004075842501876714, 8.648609520821808e-05, -0.00012588318465459565,
    -7.858491988262329e-05, 4.435364781661087e-05, 3.562726689317574e-05, -2.128873394687993e-05,
    -1.198211129962014e-05, 1.1505627814991786e-05, 1.8866858411124005e-06, -5.4228103146981025e-06,
    9.749048010496286e-07, 1.9193204635493443e-06, -8.963963376909744e-07, -4.410596101834605e-07,
    3.2007183512786017e-07, 4.88133838765257e-08, -4.742872615312905e-08,
)  # fmt: skip

_CENTRE32: Final = (
    2.1233134, 0.87200505, -0.036923286, -0.027681604, 0.012062213, -0.00068672496, -0.0011959998,
    0.00040407575, 5.0357117e-05, -4.8185924e-05,
)  # fmt: skip

_TAIL32: Final = (
    1.3318516, -0.022792296, 0.004267394, 0.0017731957, 0.0004347457, -8.022332e-05, -7.5027754e-05,
    9.598258e-06,
)  # fmt: skip

_LOG64: Final = (
    0.6666666666666666, 0.40000000000000885, 0.28571428570799784, 0.22222222392581045, 0.18181795547521137,
    0.15386244737621665, 0.13268638369266825, 0.13088034850927555,
)  # fmt: skip

_LOG32: Final = (
    0.6666667, 0.40000123, 0.2855078, 0.23331614,
)  # fmt: skip

_LOG2: Final = {64: (0.6931471803691238, 1.9082149292705877e-10), 32: (0.693145751953125, 1.4286068e-06)}
"""The logarithm of 2 in two parts; the first times an exponent is exact."""
_CENTRE: Final = {64: _CENTRE64, 32: _CENTRE32}
_TAIL: Final = {64: _TAIL64, 32: _TAIL32}
_LOG: Final = {64: _LOG64, 32: _LOG32}
_SPLIT: Final = {64: 6.25, 32: 5.0}
"""Where the tail begins, in w."""
_MAPS: Final = {
    64: ((0.32, -1.0), (8.551136363636363, -2.4204545454545454)),
    32: ((0.4, -1.0), (10.141289, -3.5353222)),
}
"""How w, and 1 / sqrt(w) in the tail, become variables in [-1, 1]."""


def threefry(key: tuple[Any, Any], counter: tuple[Any, Any]) -> tuple[Any, Any]:
    """Threefry-2x32 with 20 rounds: a block of two 32-bit words from one under a key of two; arrays of uint32."""
    x, y = counter
    keys = (*key, key[0] ^ key[1] ^ _PARITY)
    x, y = x + keys[0], y + keys[1]
    for group in range(5):
        for turn in _ROTATIONS[group % 2]:
            x = x + y
            y = ((y << turn) | (y >> (32 - turn))) ^ x
        x = x + keys[(group + 1) % 3]
        y = y + (keys[(group + 2) % 3] + (group + 1))
    return x, y


def halves(x: Any) -> tuple[Any, Any]:
    """The upper and the lower 32 bits of 64-bit words."""
    return _low(x >> 32), _low(x)


def words(key: Any, start: Any, shape: tuple[DimLike, ...]) -> tuple[Any, Any]:
    """The halves of the words of each key from position `start`."""
    count = catalog.iota(shape=(math.prod(shape),), dtype=uint64, axis=0, place=key.spec.place)
    count = catalog.reshape(count, shape=shape)
    whole, lead = (*key.spec.shape, *shape), tuple(range(key.ndim))
    position = _spread(start, whole, lead) + _spread(count, whole, tuple(range(key.ndim, len(whole))))
    return threefry(halves(_spread(key, whole, lead)), halves(position))


def bits(key: Any, start: Any, *, shape: tuple[DimLike, ...], dtype: np.dtype[Any]) -> Any:
    """Expansion of `random_bits`."""
    upper, lower = words(key, start, shape)
    if dtype == uint64:
        return (catalog.convert(upper, dtype=uint64) << 32) | catalog.convert(lower, dtype=uint64)
    mixed = upper ^ lower
    return mixed if dtype == uint32 else catalog.convert(mixed, dtype=dtype)


def uniform(key: Any, start: Any, *, shape: tuple[DimLike, ...], dtype: np.dtype[Any]) -> Any:
    """Expansion of `random_uniform`."""
    if dtype == float32:
        return catalog.convert(bits(key, start, shape=shape, dtype=uint32) >> 9, dtype=dtype) * 2.0**-23
    return catalog.convert(bits(key, start, shape=shape, dtype=uint64) >> 12, dtype=dtype) * 2.0**-52


def exponential(key: Any, start: Any, *, shape: tuple[DimLike, ...], dtype: np.dtype[Any]) -> Any:
    """Expansion of `random_exponential`."""
    return minus_log(1.0 - uniform(key, start, shape=shape, dtype=dtype))


def normal(key: Any, start: Any, *, shape: tuple[DimLike, ...], dtype: np.dtype[Any]) -> Any:
    """Expansion of `random_normal`: sqrt(2) erfinv(u) of u in (-1, 1)."""
    width = 8 * dtype.itemsize
    least = -1.0 + 0.5 ** (24 if width == 32 else 53)
    u = uniform(key, start, shape=shape, dtype=dtype) * 2.0 + least
    w = minus_log((1.0 - u) * (1.0 + u))
    (a, b), (c, d) = _MAPS[width]
    reciprocal = 1.0 / catalog.sqrt(catalog.select(w < _SPLIT[width], _like(w, 1.0), w))
    centre = polynomial(w * a + b, _CENTRE[width])
    tail = polynomial(reciprocal * c + d, _TAIL[width]) / reciprocal
    return u * catalog.select(w < _SPLIT[width], centre, tail)


def polynomial(x: Any, coefficients: tuple[float, ...]) -> Any:
    """A polynomial, with even and odd terms evaluated separately."""
    square = x * x
    even, odd = (_horner(square, coefficients[k::2]) for k in (0, 1))
    return even + x * odd


def _horner(x: Any, coefficients: tuple[float, ...]) -> Any:
    *rest, total = coefficients
    for c in reversed(rest):
        total = x * total + c
    return total


def minus_log(p: Any, *, most: int = 0) -> Any:
    """-log(p): -log(m) + e log 2, where p = m 2**-e and m is in [sqrt(1/2), sqrt(2)).

    Args:
        p: numbers from 2**-64, in float32 2**-32, to 2**most.
        most: a power of two less one, or 0.
    """
    width = 8 * p.spec.dtype.itemsize
    e = _like(p, 0.0)
    for shift in [2**k for k in reversed(range(most.bit_length()))]:
        large = p >= 2.0**shift
        p = catalog.select(large, p * 0.5**shift, p)
        e = catalog.select(large, e - float(shift), e)
    for shift in (32, 16, 8, 4, 2, 1)[width == 32 :]:
        small = p < 0.5**shift
        p = catalog.select(small, p * 2.0**shift, p)
        e = catalog.select(small, e + float(shift), e)
    if most:
        large = p >= 2.0 * math.sqrt(0.5)
        p = catalog.select(large, p * 0.5, p)
        e = catalog.select(large, e - 1.0, e)
    small = p < math.sqrt(0.5)
    p = catalog.select(small, p + p, p)
    e = catalog.select(small, e + 1.0, e)
    s = (p - 1.0) / (p + 1.0)
    square = s * s
    high, low = _LOG2[width]
    return e * high + (e * low - s * (square * _horner(square, _LOG[width]) + 2.0))


def _low(x: Any) -> Any:
    return catalog.convert(x, dtype=uint32)


def _like(x: Any, number: float) -> Any:
    return catalog.broadcast_in_dim(
        catalog.convert(x.spec.dtype.type(number), dtype=x.spec.dtype), shape=x.spec.shape, dims=()
    )


def _spread(x: Any, shape: tuple[DimLike, ...], dims: tuple[int, ...]) -> Any:
    return catalog.broadcast_in_dim(x, shape=shape, dims=dims)
