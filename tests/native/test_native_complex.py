"""Complex functions: units in the last place of the larger part, the edges of C99, both precisions."""

import numpy as np
import pytest

from native_kernels import EXTENDED, one_op
from operations import FUNCTIONS
from tenferro_cpu.native import available
from tenferro_tensor.catalog import analytic, arithmetic

pytestmark = pytest.mark.skipif(not available(), reason="native kernels are off")

NAMES = [name for name, row in FUNCTIONS.items() if "c" in row.kinds]
SAMPLES = 5_000
BOUND = 4.0
EXTENDED_COMPLEX = np.clongdouble


def primitive(name):
    return getattr(arithmetic if name == "pow" else analytic, name)


def run_of(name, dtype, arity=1):
    return one_op(primitive(name).op(), *[dtype] * arity)


def exact(name, z):
    """In extended precision; NumPy's own `exp2` and `log1p` lose digits in any precision."""
    if name == "rsqrt":
        return 1 / np.sqrt(z)
    if name == "exp2":
        turn = z.imag * np.log(np.longdouble(2))
        return np.exp2(z.real) * (np.cos(turn) + 1j * np.sin(turn))
    if name == "log1p":
        size = np.where(np.abs(1 + z) < 0.5, np.log(np.abs(1 + z)), np.log1p(2 * z.real + z.real**2 + z.imag**2) / 2)
        return size + 1j * np.arctan2(z.imag, 1 + z.real)
    return getattr(np, f"arc{name[1:]}" if name[0] == "a" else name)(z)


def regions(rng):
    def uniform(low, high):
        return rng.uniform(low, high, SAMPLES)

    return {
        "near": uniform(-3, 3) + 1j * uniform(-3, 3),
        "the range of exp": uniform(-740, 740) + 1j * uniform(-100, 100),
        "the unit circle": np.exp(1j * uniform(-np.pi, np.pi)) * (1 + uniform(-1e-9, 1e-9)),
        "small": 1e-5 * (uniform(-1, 1) + 1j * uniform(-1, 1)),
        "any size": 10 ** uniform(-30, 30) * uniform(-1, 1) + 1j * 10 ** uniform(-30, 30) * uniform(-1, 1),
        "the imaginary axis": 1e-10 * uniform(-1, 1) + 1j * uniform(-10, 10),
        "the real axis": uniform(-10, 10) + 1e-10j * uniform(-1, 1),
    }


@pytest.mark.skipif(not EXTENDED, reason="the reference needs an 80-bit long double")
@pytest.mark.parametrize("dtype", ["complex128", "complex64"])
@pytest.mark.parametrize("name", NAMES)
def test_units_in_the_last_place(name, dtype):
    run = run_of(name, dtype)
    info = np.finfo(dtype)
    for region, z in regions(np.random.default_rng(11)).items():
        if name in ("exp2", "log1p", "expm1") and region == "any size":
            continue  # the reference cancels
        z = z.astype(dtype)
        with np.errstate(all="ignore"):
            truth = exact(name, z.astype(EXTENDED_COMPLEX))
            rounded = truth.astype(dtype)
        got = run(z)
        counted = np.isfinite(rounded) & (np.abs(truth) > info.tiny / info.eps)
        # An angle of many turns times a rounded logarithm of two is as exact as it can be.
        turns = 1 + (np.abs(z.imag) if name == "exp2" else 0)
        with np.errstate(all="ignore"):
            error = np.abs(got.astype(EXTENDED_COMPLEX) - truth) / np.abs(truth) / info.eps / turns
        worst = int(np.argmax(np.where(counted, error, 0)))
        assert not counted.any() or error[worst] <= BOUND, f"{region}: {error[worst]:.1f} at {z[worst]}"


EDGES = np.array([0.0, -0.0, 1.0, -1.0, 0.5, -2.0, np.inf, -np.inf, np.nan, 800.0, -800.0, 1e200, -1e-200])


def grid():
    re, im = (g.ravel() for g in np.meshgrid(EDGES, EDGES))
    z = np.empty(re.size, "complex128")
    z.real, z.imag = re, im
    return z


@pytest.mark.parametrize("name", [n for n in NAMES if n not in ("exp2", "expm1", "log1p")])
def test_edges_are_those_of_the_c_library(name):
    z = grid()
    with np.errstate(all="ignore"):
        expected = exact(name, z)
    got = run_of(name, "complex128")(z)
    for part in ("real", "imag"):
        g, e = getattr(got, part), getattr(expected, part)
        there = np.isfinite(z) | ~np.isfinite(e)
        np.testing.assert_array_equal(np.isnan(g), np.isnan(e), err_msg=part)
        np.testing.assert_array_equal(np.isinf(g[there]), np.isinf(e[there]), err_msg=part)
        # Signs count where the operand is a number, or an infinity on an axis.
        fixed = np.isfinite(z) & ~np.isnan(e)
        np.testing.assert_array_equal(np.signbit(g[fixed]), np.signbit(e[fixed]), err_msg=part)
    numbers = np.isfinite(expected) & np.isfinite(z)
    np.testing.assert_allclose(got[numbers], expected[numbers], rtol=1e-15)


def test_logarithms_of_one_plus_a_small_number_keep_it():
    run = run_of("log1p", "complex128")
    z = np.array([1e-310, 1e-20 + 1e-25j, -1 + 1e-310j, -1e-18j, 1e300 + 1e300j])
    expected = [1e-310, 1e-20 + 1e-25j, np.log(1e-310j), -1e-18j, np.log(1e300 + 1e300j)]
    np.testing.assert_allclose(run(z), expected, rtol=1e-15)


@pytest.mark.parametrize("dtype", ["complex128", "complex64"])
def test_powers(dtype):
    run = run_of("pow", dtype, 2)
    rng = np.random.default_rng(3)
    eps = np.finfo(dtype).eps

    def sample(size):
        return ((rng.standard_normal(500) + 1j * rng.standard_normal(500)) * size).astype(dtype)

    for exponent in (sample(1), sample(5), rng.integers(-12, 13, 500).astype(dtype)):
        x = sample(1)
        with np.errstate(all="ignore"):
            truth = np.power(x.astype(EXTENDED_COMPLEX), exponent.astype(EXTENDED_COMPLEX))
        scale = 1 + np.abs(exponent * np.log(x))
        error = np.abs(run(x, exponent) - truth) / np.abs(truth) / eps / scale
        assert error.max() < 4


def test_edges_of_powers():
    run = run_of("pow", "complex128", 2)
    x = np.array([0, 0, 0, 2j, 1 + 1j, 0.5, np.nan, -1, 3])
    y = np.array([0, 2, 2 + 1j, 2, 0, -3, 0, 0.5, -1])
    np.testing.assert_allclose(run(x, y), [1, 0, 0, -4, 1, 8, 1, 1j, 1 / 3], atol=1e-15)
    assert np.isnan(run(np.array([0j, 0j]), np.array([-1 + 0j, 1j]))).all()
