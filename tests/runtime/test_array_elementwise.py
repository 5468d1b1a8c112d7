"""Element-wise functions against NumPy: values, dtypes, promotion, broadcasting, and Python numbers."""

import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import special

import tenferro_runtime as tr
from array_oracles import ALL, FLOATS, INEXACT, NUMBERS, REALS, array, assert_same, seeds, shapes
from tenferro_tensor_core import ArgumentError, DTypeError, ShapeError

INTEGERS = ("int8", "int32", "int64", "uint8", "uint64")
BITS = ("bool", *INTEGERS)

UNARY = {
    "abs": (np.abs, ALL), "ceil": (np.ceil, REALS), "conj": (np.conj, NUMBERS), "floor": (np.floor, REALS),
    "imag": (np.imag, NUMBERS), "isfinite": (np.isfinite, ALL), "isinf": (np.isinf, ALL), "isnan": (np.isnan, ALL),
    "logical_not": (np.logical_not, ALL), "negative": (np.negative, NUMBERS), "positive": (np.positive, NUMBERS),
    "real": (np.real, NUMBERS), "round": (np.round, NUMBERS), "sign": (np.sign, NUMBERS),
    "signbit": (np.signbit, FLOATS),
    "square": (np.square, NUMBERS), "trunc": (np.trunc, REALS), "bitwise_invert": (np.invert, BITS),
    "bitwise_count": (np.bitwise_count, INTEGERS), "abs2": (lambda x: (np.abs(x) ** 2), INEXACT),
    "nan_to_num": (np.nan_to_num, ALL),
    "acosh": (np.arccosh, ("complex64", "complex128")), "acos": (np.arccos, ("complex64", "complex128")),
    "asin": (np.arcsin, ("complex64", "complex128")), "atanh": (np.arctanh, ("complex64", "complex128")),
    "log": (np.log, ("complex64", "complex128")), "sqrt": (np.sqrt, ("complex64", "complex128")),
    "asinh": (np.arcsinh, INEXACT), "atan": (np.arctan, INEXACT), "cos": (np.cos, INEXACT), "cosh": (np.cosh, INEXACT),
    "exp": (np.exp, INEXACT), "expm1": (np.expm1, INEXACT), "exp2": (np.exp2, INEXACT), "sin": (np.sin, INEXACT),
    "sinh": (np.sinh, INEXACT), "tan": (np.tan, INEXACT), "tanh": (np.tanh, INEXACT), "cbrt": (np.cbrt, FLOATS),
    "reciprocal": (lambda x: 1 / x, INEXACT), "rsqrt": (lambda x: 1 / np.sqrt(x), ("complex64", "complex128")),
    "erf": (special.erf, FLOATS), "erfc": (special.erfc, FLOATS), "stop_gradient": (lambda x: x, NUMBERS),
}  # fmt: skip

POSITIVE = {
    "acosh": lambda x: np.arccosh(1 + x), "log": np.log, "log1p": np.log1p, "log2": np.log2, "log10": np.log10,
    "sqrt": np.sqrt, "rsqrt": lambda x: 1 / np.sqrt(x), "lgamma": special.gammaln, "digamma": special.digamma,
}  # fmt: skip

BINARY = {
    "add": (np.add, NUMBERS), "subtract": (np.subtract, NUMBERS), "multiply": (np.multiply, NUMBERS),
    "divide": (np.divide, INEXACT), "maximum": (np.maximum, REALS), "minimum": (np.minimum, REALS),
    "equal": (np.equal, ALL), "not_equal": (np.not_equal, ALL), "less": (np.less, REALS),
    "less_equal": (np.less_equal, REALS), "greater": (np.greater, REALS), "greater_equal": (np.greater_equal, REALS),
    "logical_and": (np.logical_and, ALL), "logical_or": (np.logical_or, ALL), "logical_xor": (np.logical_xor, ALL),
    "atan2": (np.arctan2, FLOATS), "hypot": (np.hypot, FLOATS), "logaddexp": (np.logaddexp, FLOATS),
    "complex": (lambda re, im: re + 1j * im, FLOATS),
    "copysign": (np.copysign, FLOATS), "nextafter": (np.nextafter, FLOATS),
    "bitwise_and": (np.bitwise_and, BITS), "bitwise_or": (np.bitwise_or, BITS), "bitwise_xor": (np.bitwise_xor, BITS),
}  # fmt: skip

NONZERO_DIVISOR = {"floor_divide": np.floor_divide, "remainder": np.remainder, "fmod": np.fmod}


@st.composite
def pairs(draw, dtypes):
    """Two arrays that broadcast, of two dtypes."""
    shape = draw(shapes)
    other = tuple(draw(st.sampled_from([1, d])) for d in shape)[draw(st.integers(0, len(shape))) :]
    one, two = (shape, other) if draw(st.booleans()) else (other, shape)
    first, second = draw(st.sampled_from(dtypes)), draw(st.sampled_from(dtypes))
    return array(one, first, draw(seeds)), array(two, second, draw(seeds))


def quietly(f, *args):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return f(*args)


@pytest.mark.parametrize("name", sorted(UNARY))
@settings(max_examples=10)
@given(data=st.data())
def test_unary(name, data):
    oracle, dtypes = UNARY[name]
    x = array(data.draw(shapes), data.draw(st.sampled_from(dtypes)), data.draw(seeds))
    want = quietly(oracle, x)
    if name in ("isfinite", "isinf", "isnan", "logical_not"):
        want = np.asarray(want, np.bool_)
    assert_same(quietly(getattr(tr, name), tr.asarray(x)), want, rtol=2e-5 if x.dtype.itemsize < 8 else 1e-9)


@pytest.mark.parametrize("name", sorted(POSITIVE))
@settings(max_examples=10)
@given(shape=shapes, dtype=st.sampled_from(FLOATS), seed=seeds)
def test_positive_domain(name, shape, dtype, seed):
    x = (np.abs(array(shape, dtype, seed)) + np.asarray(0.1, dtype)).astype(dtype)
    given_ = 1 + x if name == "acosh" else x
    assert_same(getattr(tr, name)(tr.asarray(given_)), POSITIVE[name](x), rtol=1e-4 if dtype == "float32" else 1e-9)


@pytest.mark.parametrize("name", ["asin", "acos", "atanh", "erfinv"])
@given(shape=shapes, seed=seeds)
def test_unit_interval(name, shape, seed):
    x = np.tanh(array(shape, "float64", seed))
    oracle = {"asin": np.arcsin, "acos": np.arccos, "atanh": np.arctanh, "erfinv": special.erfinv}[name]
    assert_same(getattr(tr, name)(tr.asarray(x)), oracle(x), rtol=1e-9)


@pytest.mark.parametrize("name", sorted(BINARY))
@settings(max_examples=10)
@given(data=st.data())
def test_binary(name, data):
    oracle, dtypes = BINARY[name]
    x, y = data.draw(pairs(dtypes))
    if name.startswith("bitwise") and np.promote_types(x.dtype, y.dtype).kind == "f":
        y = y.astype(x.dtype)
    assert_same(quietly(getattr(tr, name), tr.asarray(x), tr.asarray(y)), quietly(oracle, x, y), rtol=3e-5)


@pytest.mark.parametrize("name", sorted(NONZERO_DIVISOR))
@given(data=st.data())
def test_division_with_remainder(name, data):
    x, y = data.draw(pairs(REALS))
    y = np.where(y == 0, np.asarray(1, y.dtype), y).astype(y.dtype)
    assert_same(getattr(tr, name)(tr.asarray(x), tr.asarray(y)), quietly(NONZERO_DIVISOR[name], x, y), rtol=1e-4)


@given(shape=shapes, dtype=st.sampled_from(("int32", "int64", "uint8", *INEXACT)), seed=seeds, n=st.integers(0, 3))
def test_pow(shape, dtype, seed, n):
    x = array(shape, dtype, seed)
    assert_same(tr.pow(tr.asarray(x), n), x**n, rtol=1e-4)
    assert_same(tr.asarray(x) ** tr.asarray(np.full(shape, n, dtype)), x ** np.full(shape, n, dtype), rtol=1e-4)


@given(shape=shapes, seed=seeds, n=st.integers(0, 5))
def test_shifts(shape, seed, n):
    x = array(shape, "int32", seed)
    assert_same(tr.bitwise_left_shift(tr.asarray(x), n), x << n)
    assert_same(tr.bitwise_right_shift(tr.asarray(x), n), x >> n)


@pytest.mark.parametrize("number", [True, 2, 1.5, 1 + 2j])
@pytest.mark.parametrize("dtype", ALL)
def test_python_numbers_are_weak(number, dtype):
    x = array((3,), dtype, 1)
    if dtype == "bool" and number is True:
        return  # NumPy computes bool * True too; covered by logical_and
    assert_same(tr.asarray(x) * number, x * number)
    assert_same(tr.multiply(number, tr.asarray(x)), x * number)


def test_numpy_operands():
    x = np.arange(3.0)
    assert_same(tr.add(x, x), x + x)
    assert_same(tr.asarray(x) + x, x + x)
    assert_same(x + tr.asarray(x), x + x)
    assert_same(tr.sqrt(4.0), np.float64(2.0))
    assert_same(tr.exp(np.float32(0.0)), np.float32(1.0))


@given(data=st.data())
def test_where(data):
    x, y = data.draw(pairs(ALL))
    shape = np.broadcast_shapes(x.shape, y.shape)
    mask = array(data.draw(st.sampled_from([shape, shape[-1:], ()])), "bool", data.draw(seeds))
    assert_same(tr.where(tr.asarray(mask), tr.asarray(x), tr.asarray(y)), np.where(mask, x, y))


def test_where_with_numbers():
    mask = tr.asarray([True, False])
    assert_same(tr.where(mask, 1, 2.5), np.asarray([1.0, 2.5]))
    assert_same(tr.where(mask, tr.asarray([1, 2], dtype=tr.int8), 3), np.asarray([1, 3], np.int8))
    assert_same(tr.where(tr.asarray([2, 0]), 1.0, 0.0), np.asarray([1.0, 0.0]))


bounds = st.none() | st.integers(-3, 3)


@given(shape=shapes, dtype=st.sampled_from(REALS), seed=seeds, lo=bounds, hi=bounds)
def test_clip(shape, dtype, seed, lo, hi):
    x = array(shape, dtype, seed)
    if x.dtype.kind == "u" and hi is not None and hi < 0:
        with pytest.raises(ArgumentError, match="out of bounds for uint"):
            tr.clip(tr.asarray(x), lo, hi)
        return
    wide = x if x.dtype.kind == "f" else x.astype(np.int64)
    want = (x if lo is None and hi is None else np.clip(wide, lo, hi)).astype(dtype)
    assert_same(tr.clip(tr.asarray(x), lo, hi), want)
    assert_same(tr.asarray(x).clip(min=lo, max=hi), want)


def test_clip_with_arrays():
    x = np.asarray([[1.0, 5.0], [2.0, -3.0]])
    lo, hi = np.asarray([0.0, 1.0]), np.asarray([[1.5], [2.0]])
    assert_same(tr.clip(tr.asarray(x), tr.asarray(lo), hi), np.clip(x, lo, hi))


def test_nan_to_num_options():
    x = np.asarray([np.nan, np.inf, -np.inf, 1.0])
    assert_same(tr.nan_to_num(x, nan=7.0, posinf=8.0, neginf=9.0), np.nan_to_num(x, nan=7.0, posinf=8.0, neginf=9.0))
    assert_same(tr.nan_to_num(tr.asarray(x)), np.nan_to_num(x))
    z = np.asarray([complex(np.nan, np.inf)])
    assert_same(tr.nan_to_num(tr.asarray(z)), np.nan_to_num(z))


def test_polygamma():
    assert_same(tr.polygamma(2, tr.asarray([1.5])), special.polygamma(2, np.asarray([1.5])), rtol=1e-10)


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (
            lambda: tr.add(tr.zeros(2), tr.zeros(3)),
            ShapeError,
            r"shapes \(2,\) and \(3,\) do not broadcast: axis -1 has",
        ),
        (lambda: tr.add(tr.zeros(2), [1.0, 2.0]), ArgumentError, r"operand 1 is a list.*make it one with asarray\(\)"),
        (lambda: tr.less(tr.asarray([1j]), 2), DTypeError, r"lt is not defined for complex128; it takes booleans, int"),
        (lambda: tr.subtract(tr.asarray([True]), True), DTypeError, r"sub is not defined for bool; it takes integers"),
        (lambda: tr.bitwise_and(tr.asarray([1.0]), 1), DTypeError, r"bitwise_and is not defined for float64"),
        (
            lambda: tr.asarray([1], dtype=tr.uint8) + 300,
            ArgumentError,
            r"300 out of bounds for uint8; convert the array",
        ),
        (lambda: tr.logical_not("yes"), ArgumentError, r"a str is neither a tensor, a NumPy array nor a number"),
    ],
)
def test_error_texts(call, error, text):
    with pytest.raises(error, match=text):
        call()
