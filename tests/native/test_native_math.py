"""The inline function library: units in the last place, special values, every vector width."""

from functools import cache
from typing import Any

import numpy as np
import pytest

from native_kernels import EXTENDED, FUNCTIONS, LONG, one_op, ulps
from tenferro_cpu.native import available
from tenferro_tensor.catalog import analytic, arithmetic

pytestmark = [pytest.mark.skipif(not available(), reason="native kernels are off"), FUNCTIONS]

# Bound, and ranges to sample beside random bits.
CASES: dict[str, Any] = {
    "exp": (1.5, (-745, 710), (-1, 1), (-0.05, 0.05)),
    "exp2": (1.5, (-1074, 1024), (-1, 1)),
    "log": (1.5, (0, 2), (0.9, 1.1), (0.7, 1.6), (0, 1e300)),
    "sqrt": (0.51, (0, 1e10)),
    "rsqrt": (1.5, (0, 1e10)),
    "expm1": (2.5, (-50, 709), (-1, 1), (-0.05, 0.05), (-1e-8, 1e-8)),
    "log1p": (2.5, (-0.99999, 2), (-1e-8, 1e-8), (-0.3, 0.5)),
    "log2": (2.5, (0, 2), (0.9, 1.1), (0, 1e10)),
    "log10": (2.5, (0, 2), (0.9, 1.1), (0, 1e10)),
    "sin": (2.5, (-10, 10), (-7e4, 7e4), (-1e12, 1e12)),
    "cos": (2.5, (-10, 10), (-7e4, 7e4), (-1e12, 1e12)),
    "tan": (2.5, (-10, 10), (-7e4, 7e4)),
    "asin": (2.5, (-1, 1), (-1e-3, 1e-3)),
    "acos": (2.5, (-1, 1), (-1e-3, 1e-3)),
    "atan": (2.5, (-1, 1), (-10, 10), (-1e5, 1e5)),
    "sinh": (2.5, (-1, 1), (-30, 30), (-710, 710)),
    "cosh": (2.5, (-1, 1), (-30, 30), (-710, 710)),
    "tanh": (2.5, (-1, 1), (-20, 20), (-0.05, 0.05), (-1e-3, 1e-3)),
    "asinh": (2.5, (-1, 1), (-1e3, 1e3), (-1e10, 1e10)),
    "acosh": (2.5, (1, 2), (1, 1e3), (1, 1e10)),
    "atanh": (2.5, (-1, 1), (-1e-2, 1e-2), (-0.5, 0.5)),
    "cbrt": (1.0, (-1, 1), (-1e10, 1e10)),
    "erf": (2.5, (-1, 1), (-7, 7), (-1e-3, 1e-3)),
    "erfc": (2.5, (-1, 1), (-7, 28), (8, 11), (0.4, 0.6)),
}
PAIRS = {"atan2": 2.5, "hypot": 2.5, "pow": 2.0}
POWERS = (((0, 10), (-300, 300)), ((0.9, 1.1), (-6000, 6000)), ((0.5, 2), (-5, 5)), ((0, 1e300), (-1, 1)))
NUMPY = {"asin": "arcsin", "acos": "arccos", "atan": "arctan", "atan2": "arctan2"} | {
    f"a{name}": f"arc{name}" for name in ("sinh", "cosh", "tanh")
}
SAMPLES = 20_000


def exact(name):
    if name in ("erf", "erfc"):
        return extended_erf if name == "erf" else extended_erfc
    return (lambda x: 1 / np.sqrt(x)) if name == "rsqrt" else getattr(np, NUMPY.get(name, name))


def extended_erf(x):
    """A series of terms of one sign, and the complement of the tail beyond 1."""
    return np.piecewise(x, [np.abs(x) <= 1], [series_of_erf, lambda x: np.copysign(1 - tail(np.abs(x)), x)])


def series_of_erf(z):
    term = total = 2 / np.sqrt(LONG(np.pi) + LONG(PI_REST)) * z * np.exp(-z * z)
    for n in range(1, 40):
        term = term * 2 * z * z / (2 * n + 1)
        total = total + term
    return total


def extended_erfc(x):
    return np.piecewise(x, [x < 0.75], [lambda x: 1 - extended_erf(x), tail])


PI_REST = 1.2246467991473532e-16


def tail(x):
    """The continued fraction of erfc."""
    x = np.where(np.isnan(x), x, np.clip(x, LONG(0.75), 120))
    below = x
    for k in range(600, 0, -1):
        below = x + LONG(k) / 2 / below
    short = x.astype("float32").astype(LONG)  # whose square is exact
    return np.exp(-short * short) * np.exp(-(x - short) * (x + short)) / below / np.sqrt(LONG(np.pi) + LONG(PI_REST))


def primitive(name):
    return getattr(arithmetic if name == "pow" else analytic, name)


@pytest.fixture(scope="module", params=["widest", "avx2"])
def engine(request):
    from tenferro_cpu.native import Engine
    from tenferro_cpu.native import engine as default

    if request.param == "widest":
        return default()
    made = Engine(limit=request.param)
    if made.host.level != request.param:
        pytest.skip("the processor has no such vectors")
    return made


def kernel(engine, name, dtype, arity=1):
    return one_op(primitive(name).op(), *[dtype] * arity, engine=engine)


def random_bits(rng, dtype):
    whole = np.dtype(f"u{np.dtype(dtype).itemsize}")
    return rng.integers(0, np.iinfo(whole).max, SAMPLES, dtype=whole).view(dtype)


def with_truth(name, *xs):
    """Operands and the exact results of a function."""
    with np.errstate(all="ignore"):
        return xs, exact(name)(*(x.astype(LONG) for x in xs))


def require_close(name, bound, run, case):
    xs, truth = case
    with np.errstate(all="ignore"):
        rounded = truth.astype(xs[0].dtype)
    got = run(*xs)
    error = ulps(got, truth)
    worst = int(np.argmax(error))
    assert error[worst] <= bound, f"{name} is off by {error[worst]:.2f} at {[float(x[worst]) for x in xs]}"
    # What is not finite agrees exactly.
    odd = ~np.isfinite(rounded)
    np.testing.assert_array_equal(got[odd], rounded[odd])


@cache
def drawn(name, dtype):
    """Operands with exact results, which take most of the time, for all engines."""
    rng = np.random.default_rng(7)
    largest = float(np.finfo(dtype).max)
    xs = [np.clip(rng.uniform(low, high, SAMPLES), -largest, largest).astype(dtype) for low, high in CASES[name][1:]]
    return [with_truth(name, x) for x in (*xs, random_bits(rng, dtype))]


@pytest.fixture(scope="module", autouse=True)
def forget_what_was_drawn():
    yield
    drawn.cache_clear()


@pytest.mark.skipif(not EXTENDED, reason="the reference needs an 80-bit long double")
@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("name", CASES)
def test_units_in_the_last_place(engine, name, dtype):
    run = kernel(engine, name, dtype)
    for case in drawn(name, dtype):
        require_close(name, CASES[name][0], run, case)


@pytest.mark.skipif(not EXTENDED, reason="the reference needs an 80-bit long double")
@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("name", PAIRS)
def test_units_in_the_last_place_of_two_operands(engine, name, dtype):
    rng = np.random.default_rng(8)
    run = kernel(engine, name, dtype, 2)
    x, y = rng.standard_normal((2, SAMPLES)).astype(dtype)
    require_close(name, PAIRS[name], run, with_truth(name, x, y))
    require_close(name, PAIRS[name], run, with_truth(name, random_bits(rng, dtype), random_bits(rng, dtype)))


@pytest.mark.skipif(not EXTENDED, reason="the reference needs an 80-bit long double")
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_units_in_the_last_place_of_powers(engine, dtype):
    rng = np.random.default_rng(9)
    run = kernel(engine, "pow", dtype, 2)
    largest = float(np.finfo(dtype).max)
    for (low, high), (first, last) in POWERS:
        x = np.clip(rng.uniform(low, high, SAMPLES), 0, largest).astype(dtype)
        y = rng.uniform(first, last, SAMPLES).astype(dtype)
        require_close("pow", PAIRS["pow"], run, with_truth("pow", x, y))


SPECIAL = [0.0, -0.0, np.inf, -np.inf, np.nan, 1.0, -1.0, 0.5, 2.0, -0.5, 3.0, -3.0, -2.0]


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("name", [*CASES, *PAIRS, "logaddexp"])
def test_special_values_and_signs_of_zeros(engine, name, dtype):
    info = np.finfo(dtype)
    special = np.array([*SPECIAL, info.tiny, -info.tiny / 2, info.max, -info.max], dtype)
    xs = [special]
    if name in PAIRS or name == "logaddexp":
        xs = [grid.ravel() for grid in np.meshgrid(special, special)]
    with np.errstate(all="ignore"):
        expected = exact(name)(*xs)
    got = kernel(engine, name, dtype, len(xs))(*xs)
    np.testing.assert_allclose(got, expected, rtol=4 * info.eps, atol=0)
    there = ~np.isnan(expected)
    np.testing.assert_array_equal(np.signbit(got[there]), np.signbit(expected[there]))


def test_the_result_of_an_element_does_not_depend_on_its_place(engine):
    run = kernel(engine, "tanh", "float64")
    x = np.linspace(-3, 3, 101)
    whole = run(x)
    for start in range(20):
        np.testing.assert_array_equal(run(x[start : start + 7]), whole[start : start + 7])


def test_without_fused_multiply_add_the_library_is_not_offered():
    from tenferro_cpu.native import Engine
    from tenferro_tensor.catalog.arithmetic import mul
    from tenferro_tensor_core import UnsupportedError

    plain = Engine(limit="generic")
    if plain.host.level != "generic":
        pytest.skip("the processor always fuses")
    x = np.arange(5.0)
    np.testing.assert_array_equal(one_op(mul.op(), "f8", "f8", engine=plain)(x, x), x * x)
    with pytest.raises(UnsupportedError, match="exp of float64 has no native form on this CPU"):
        one_op(analytic.exp.op(), "f8", engine=plain)(x)
