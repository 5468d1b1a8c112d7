"""Element-wise functions, predicates and other spellings of NumPy mean what they mean there."""

import itertools
from typing import Any

import numpy as np
import pytest

import tenferro_runtime as tr
from tenferro_tensor_core import DTypeError, ShapeError, TracingError

SPECIAL = np.asarray([0.0, -0.0, 1.0, -1.5, 2.5, 0.3, -7.25, 1e-310, -5e-324, 1e300, -1e300, np.inf, -np.inf, np.nan])
FINITE = SPECIAL[:-3]


def same(found, wanted, ulps=4):
    """The same shapes, dtypes, values and signs of zeros."""
    results: list[Any] = list(found) if isinstance(found, tuple) else [found]
    oracles: list[Any] = list(wanted) if isinstance(wanted, tuple) else [wanted]
    for x, y in zip(results, map(np.asarray, oracles), strict=True):
        assert x.shape == y.shape and x.dtype == y.dtype
        rtol = ulps * np.finfo(y.dtype).eps if y.dtype.kind in "fc" else 0
        np.testing.assert_allclose(np.asarray(x), y, rtol=rtol, atol=rtol / 16)
        if y.dtype.kind == "f":
            np.testing.assert_array_equal(np.signbit(np.asarray(x))[y == 0], np.signbit(y[y == 0]))


UNARY = {
    "angle": "fci", "deg2rad": "fi", "fabs": "fi", "rad2deg": "fi", "rint": "f", "modf": "f", "frexp": "f",
    "isneginf": "f", "isposinf": "f", "isreal": "fci", "iscomplex": "fci", "around": "fci", "fix": "fi", "i0": "f",
    "sinc": "fc",
}  # fmt: skip


@pytest.mark.parametrize("name", UNARY)
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_of_one_number(name):
    f, g = getattr(tr, name), getattr(np, name)
    x = FINITE[:9] if name in ("i0", "sinc") else SPECIAL
    operands: dict[str, list[Any]] = {
        "f": [x, x.astype(np.float32), x[:0]],
        "c": [(x[:, None] + 1j * x)[:5].astype(np.complex64), FINITE[:6] * (1 - 0.5j)],
        "i": [np.asarray([3, -2, 0], np.int64)],
    }
    for kind in UNARY[name]:
        for y in operands[kind]:
            same(f(tr.asarray(y)), g(y))
            same(tr.compile(f)(tr.asarray(y)), g(y))


@pytest.mark.parametrize("name", ["fmax", "fmin", "heaviside", "logaddexp2", "divmod"])
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_of_two_numbers(name):
    f, g = getattr(tr, name), getattr(np, name)
    x = SPECIAL[SPECIAL != 0] if name == "divmod" else SPECIAL
    x = x[np.abs(x) > 1e-300] if name == "divmod" else x
    for dtype in (np.float64, np.float32):
        y = x.astype(dtype)
        y = y[np.isfinite(y)] if name == "divmod" else y
        same(f(y[:, None], y), g(y[:, None], y))
    same(f(np.asarray([3, 7]), np.asarray([2, 5])), g(np.asarray([3, 7]), np.asarray([2, 5])))


def test_float_power():
    for x, y in (([2, 4], -1), ([2.5], 0.5), ([1j], 2), (np.asarray([2.0], np.float32), 3)):
        same(tr.float_power(np.asarray(x), y), np.float_power(x, y))


def test_powers_of_two():
    exponents = np.asarray([-1074, -1022, -500, -3, 0, 5, 900, 1023])
    same(tr.ldexp(np.ones(8), exponents), np.ldexp(np.ones(8), exponents), ulps=0)
    same(tr.ldexp(np.float64(5e-324), 2000), np.ldexp(5e-324, 2000), ulps=0)
    same(tr.ldexp(np.float64(1e308), -2100), np.ldexp(1e308, -2100), ulps=0)
    same(tr.ldexp(np.asarray([1.5], np.float32), 3), np.ldexp(np.asarray([1.5], np.float32), 3), ulps=0)
    rng = np.random.default_rng(0)
    x = np.concatenate([np.exp2(np.arange(-1074.0, 1024.0)), rng.normal(size=99) * 10.0 ** rng.integers(-300, 300, 99)])
    same(tr.frexp(x), np.frexp(x), ulps=0)
    same(tr.frexp(np.nextafter(x[60:], 0)), np.frexp(np.nextafter(x[60:], 0)), ulps=0)
    same(tr.spacing(x), np.spacing(x), ulps=0)
    same(tr.spacing(SPECIAL[:-3]), np.spacing(SPECIAL[:-3]), ulps=0)
    assert np.isnan(np.asarray(tr.spacing(SPECIAL[-3:]))).all()
    assert float(tr.spacing(np.finfo(float).max)) == 2.0**971


def test_bessel_function():
    x = np.concatenate([np.linspace(-12, 12, 49), [7.999999, 8.0, 100.0, 700.0]])
    same(tr.i0(x), np.i0(x), ulps=8)


@pytest.mark.parametrize("decimals", [0, 2, -1])
def test_rounding_to_decimals(decimals):
    for x in (np.asarray([1.25, -0.005, 15.0, 26.5]), np.asarray([15, 25, -3]), np.asarray([1.255 - 0.25j])):
        same(tr.round(x, decimals), np.round(x, decimals))
        same(tr.asarray(x).round(decimals), np.round(x, decimals))


def test_closeness():
    x = np.asarray([1.0, 1.0, np.inf, -np.inf, np.inf, np.nan, np.nan, 0.0, 1e10])
    y = np.asarray([1.0 + 1e-6, 1.1, np.inf, np.inf, 1.0, np.nan, 0.0, 1e-9, 1.00001e10])
    for equal_nan, (u, v) in itertools.product((False, True), ((x, y), (x[:, None], y), (x[-2:] * 1j, y[-2:] + 0j))):
        same(tr.isclose(u, v, equal_nan=equal_nan), np.isclose(u, v, equal_nan=equal_nan))
    same(tr.isclose(x, y, 0.2, 0.5), np.isclose(x, y, 0.2, 0.5))
    same(tr.isclose(np.asarray([1, 10**6]), np.asarray([1, 10**6 + 1])), np.asarray([True, True]))
    same(tr.isclose(np.asarray([True]), np.asarray([False])), np.asarray([False]))
    assert bool(tr.allclose(x[:1], y[:1])) and not tr.allclose(x[:2], y[:2])
    assert tr.compile(tr.allclose)(x[:1], y[:1]).tolist() is True


def test_equality_of_arrays():
    x = np.asarray([1.0, np.nan])
    for u, v in ((x, x), (x[:1], x[:1]), (x[:1], x[:0]), (x[:1], x[None, :1]), (x[:1], 1.0), (x[:0], x[:0])):
        same(tr.array_equal(u, v), np.array_equal(u, v))
        same(tr.array_equal(u, v, equal_nan=True), np.array_equal(u, v, equal_nan=True))
        same(tr.array_equiv(u, v), np.array_equiv(u, v))
    same(tr.array_equiv(np.ones((2, 3)), np.ones(2)), np.asarray(False))


def test_kinds_and_shapes():
    assert tr.iscomplexobj(1j) and tr.iscomplexobj(tr.asarray([1j])) and not tr.iscomplexobj(np.zeros(2))
    assert tr.isrealobj(2.0) and not tr.isrealobj(np.complex64(1))
    assert [tr.isscalar(x) for x in (1, 2.0, 1j, np.float32(1), tr.asarray(1.0), [1], np.zeros(1))] == [True] * 5 + [
        False
    ] * 2
    x = tr.zeros((2, 3, 4))
    assert (tr.ndim(x), tr.shape(x), tr.size(x), tr.size(x, 1), tr.size(x, (0, -1))) == (3, (2, 3, 4), 24, 3, 8)
    assert tr.iterable(x) and tr.iterable([1]) and not tr.iterable(x[0, 0, 0]) and not tr.iterable(2)
    assert (tr.ndim(3), tr.shape([[1, 2]]), tr.size([1, 2])) == (0, (1, 2), 2)
    assert (x.itemsize, x.nbytes) == (8, 192)
    assert tr.issubdtype(tr.float32, np.floating) and not tr.issubdtype(tr.int8, np.inexact)
    assert tr.issubdtype(tr.uint8, np.unsignedinteger) and tr.issubdtype(tr.bool, np.generic)
    assert tr.promote_types(tr.int32, tr.float32) == np.promote_types("int32", "float32")
    close = tr.asarray([1 + 1e-18j])
    assert tr.real_if_close(close).dtype == np.float64 and tr.real_if_close(close * 1j).dtype == np.complex128
    with pytest.raises(TracingError, match="real_if_close has a result whose dtype depends on the elements"):
        tr.compile(tr.real_if_close)(close)


SPELLINGS = {
    "absolute": "abs", "amax": "max", "amin": "min", "arccos": "acos", "arccosh": "acosh", "arcsin": "asin",
    "arcsinh": "asinh", "arctan": "atan", "arctan2": "atan2", "arctanh": "atanh", "around": "round",
    "bitwise_not": "bitwise_invert", "concatenate": "concat", "conjugate": "conj", "degrees": "rad2deg", "fix": "trunc",
    "invert": "bitwise_invert", "left_shift": "bitwise_left_shift", "mod": "remainder", "power": "pow",
    "radians": "deg2rad", "right_shift": "bitwise_right_shift", "true_divide": "divide",
}  # fmt: skip


def test_other_spellings_are_the_same_functions():
    for name, own in SPELLINGS.items():
        assert getattr(tr, name) is getattr(tr, own), name


def test_dot_of_every_rank():
    rng = np.random.default_rng(0)
    shapes = [(), (3,), (2, 3), (3, 2), (2, 4, 3), (2, 3, 4)]
    for s, t in itertools.product(shapes, shapes):
        x, y = rng.normal(size=s), rng.normal(size=t) + 1j
        for f, g in ((tr.dot, np.dot), (tr.inner, np.inner)):
            try:
                wanted = g(x, y)
            except ValueError:
                with pytest.raises(ShapeError, match="cannot multiply"):
                    f(tr.asarray(x), tr.asarray(y))
                continue
            same(f(tr.asarray(x), tr.asarray(y)), wanted, ulps=32)
    x, y = rng.normal(size=(2, 3)) + 1j, rng.normal(size=6)
    same(tr.vdot(x, y), np.vdot(x, y), ulps=32)
    same(tr.asarray(x).dot(y.reshape(3, 2)), x.dot(y.reshape(3, 2)), ulps=32)


def test_products_of_matrices_and_vectors():
    rng = np.random.default_rng(0)
    a, v = rng.normal(size=(2, 3, 4)) + 1j, rng.normal(size=(5, 1, 4)) - 2j
    same(tr.matvec(a, v), (a @ v[..., None])[..., 0], ulps=32)
    same(tr.vecmat(v[..., :3], a), (v[..., None, :3].conj() @ a)[..., 0, :], ulps=32)


@pytest.mark.parametrize("name", ["gcd", "lcm"])
def test_common_divisors_and_multiples(name):
    f, g = getattr(tr, name), getattr(np, name)
    rng = np.random.default_rng(0)
    x, y = rng.integers(-1000, 1000, (2, 50))
    x[:3], y[1:4] = 0, 0
    for dtype in (np.int64, np.int32):
        same(f(x.astype(dtype), y.astype(dtype)), g(x.astype(dtype), y.astype(dtype)))
        same(tr.compile(f)(x.astype(dtype), y.astype(dtype)), g(x.astype(dtype), y.astype(dtype)))
    same(f(np.abs(x[:, None]).astype(np.uint16), np.uint16(84)), g(np.abs(x[:, None]).astype(np.uint16), np.uint16(84)))
    same(f(np.int64(2**40), 3 * 2**20), g(np.int64(2**40), 3 * 2**20))
    with pytest.raises(DTypeError, match=f"{name} takes integers, got operands that meet in float64"):
        f(1.0, 2)


@pytest.mark.parametrize("order", ["big", "little"])
def test_bits_of_bytes(order):
    rng = np.random.default_rng(0)
    x, b = rng.integers(0, 2, (3, 11)), rng.integers(0, 256, (2, 3)).astype(np.uint8)
    for axis in (None, 0, 1):
        same(tr.packbits(x, axis, order), np.packbits(x, axis, order))
        same(tr.packbits(x == 1, axis, order), np.packbits(x == 1, axis, order))
        for count in (None, 5, -3, 60):
            same(tr.unpackbits(b, axis, count, order), np.unpackbits(b, axis, count, order))
    same(tr.packbits(x[:0]), np.packbits(x[:0]))
    with pytest.raises(DTypeError, match="packbits takes integers or booleans"):
        tr.packbits(1.5)


def test_sorted_complex_numbers():
    for x in (np.asarray([3, 1, 2]), np.asarray([1j, 1, 1 + 1j, -2]), np.asarray([2.0, 1.0], np.float32)):
        same(tr.sort_complex(x), np.sort_complex(x))


def test_methods():
    x = np.asarray([3.0, 1.0, 2.0])
    y, z = tr.asarray(x), tr.asarray(x * 1j)
    assert y.argpartition(1)[1].tolist() == 2 and z.conjugate().tolist() == (-1j * x).tolist()
    assert tr.asarray([0.5, 2.0]).searchsorted(y).tolist() == np.searchsorted([0.5, 2.0], x).tolist()
    assert y.compress(y > 1).tolist() == [3.0, 2.0] and tr.asarray([1, 0]).choose([x[:2], -x[:2]]).tolist() == [
        -3.0,
        1.0,
    ]
    assert y.cumprod().tolist() == x.cumprod().tolist()


def test_arrays_are_copied():
    host = np.asarray([1.0, 2.0])
    x = tr.array(host)
    host[0] = 5.0
    assert x.tolist() == [1.0, 2.0]
    assert tr.array([1, 2], tr.float32, ndmin=3).shape == (1, 1, 2)
    y = tr.array(x)
    assert y is not x and not np.shares_memory(np.asarray(x), np.asarray(y))


def test_orders_of_axes():
    x = np.zeros((2, 3, 4))
    assert tr.transpose(x).shape == (4, 3, 2) and tr.transpose(x, (1, 0, 2)).shape == (3, 2, 4)
    assert tr.identity(2, tr.int32).tolist() == [[1, 0], [0, 1]]


@pytest.mark.parametrize("name", ["fabs", "heaviside", "logaddexp2", "i0", "frexp", "modf", "isneginf", "spacing"])
def test_complex_numbers_are_refused(name):
    z = tr.asarray([1j])
    with pytest.raises(DTypeError, match=f"{name} (takes|is about) real numbers, got"):
        getattr(tr, name)(*[z] * (2 if name in ("heaviside", "logaddexp2") else 1))
