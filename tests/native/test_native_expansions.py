"""Special functions written out as simpler primitives: accuracy, special values, powers, use in programs."""

import math

import numpy as np
import pytest
from scipy import special

import tenferro_runtime as tr
from hand_written import mapped, of_op
from tenferro_cpu import device
from tenferro_cpu.native import available
from tenferro_runtime.running import fusion
from tenferro_tensor.catalog import analytic, arithmetic
from tenferro_tensor.loop_ir import Literal, expansion

pytestmark = pytest.mark.skipif(not available(), reason="native kernels are off")


def polygamma(order):
    sign = -1.0 if order % 2 == 0 else 1.0
    return lambda x: sign * math.factorial(order) * special.zeta(order + 1.0, x)


def digamma(x):
    """SciPy's own reflection loses digits with growing arguments; this one turns by less than a half."""
    off = x - np.round(x)
    with np.errstate(all="ignore"):
        return np.where(
            (x < -0.5) & (off != 0), special.digamma(1 - x) - np.pi / np.tan(np.pi * off), special.digamma(x)
        )


# Op, SciPy's function, ranges, and units of rounding of max(1, |value|) that both together may be off.
CASES = [
    (analytic.erfinv.op(), special.erfinv, ((-1, 1), (0.99, 1), (-1e-9, 1e-9)), 4),
    (analytic.lgamma.op(), special.gammaln, ((0, 3), (3, 10), (10, 1e4), (-0.5, 0.5), (-8, -0.5)), 8),
    (analytic.digamma.op(), digamma, ((0, 3), (3, 10), (10, 1e4), (-0.5, 0.5), (-8, -0.5)), 40),
    (analytic.polygamma.op(order=0), special.digamma, ((0, 3),), 20),
    (analytic.polygamma.op(order=1), polygamma(1), ((0, 3), (3, 30), (-5, -0.5)), 20),
    (analytic.polygamma.op(order=2), polygamma(2), ((0, 3), (3, 30)), 20),
    (analytic.polygamma.op(order=5), polygamma(5), ((0, 3), (3, 30), (-5, -0.5)), 40),
    (analytic.polygamma.op(order=8), polygamma(8), ((0, 3), (3, 30)), 40),
]


def native(op, x):
    """The op as a kernel of its own, which the renderer writes as simpler ones."""
    out = np.empty_like(x)
    device().build(of_op(op, x.dtype), "special")([x, out], [x.size])
    return out


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("op, function, ranges, bound", CASES, ids=[repr(c[0]) for c in CASES])
def test_expansions_agree_with_scipy(op, function, ranges, bound, dtype):
    rng = np.random.default_rng(1)
    for low, high in ranges:
        x = rng.uniform(low, high, 4000).astype(dtype)
        exact = function(x.astype("float64"))
        with np.errstate(over="ignore"):
            kept = np.isfinite(exact.astype(dtype))
        error = np.abs(native(op, x).astype("float64") - exact)[kept]
        assert np.all(error <= bound * np.finfo(dtype).eps * np.maximum(1, np.abs(exact[kept]))), (low, high)


def taylor(point):
    """log Gamma around 1 or 2; SciPy's has absolute accuracy there."""
    drop = 0 if point == 1 else 1
    linear = drop - np.euler_gamma

    def series(x):
        z = x.astype("float64") - point
        return z * (linear + sum([(special.zeta(k) - drop) / k * (-z) ** (k - 1) * -1 for k in range(2, 9)]))

    return series


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize(
    "op, function, point",
    [
        (analytic.lgamma.op(), taylor(1), 1),
        (analytic.lgamma.op(), taylor(2), 2),
        (analytic.erfinv.op(), special.erfinv, 0),
    ],
)
def test_relative_accuracy_holds_at_zeros_of_the_function(op, function, point, dtype):
    x = (point + np.random.default_rng(2).uniform(-1e-3, 1e-3, 2000)).astype(dtype)
    exact = function(x)
    assert np.all(np.abs(native(op, x) - exact) <= 6 * np.finfo(dtype).eps * np.abs(exact))


@pytest.mark.parametrize("op, function", [c[:2] for c in CASES], ids=[repr(c[0]) for c in CASES])
def test_special_values_are_those_of_scipy(op, function):
    x = np.array([1, -1, 2, -2, 3, -3, 0.0, -0.0, np.inf, -np.inf, np.nan, 1e300, -1e300, 0.5, -0.5, 1.5])
    with np.errstate(all="ignore"):
        np.testing.assert_allclose(native(op, x), function(x), rtol=1e-13)


@pytest.mark.parametrize("dtype", ["int64", "uint8", "int16"])
@pytest.mark.parametrize("exponent", [0, 1, 2, 3, 7, 64])
def test_integers_are_raised_to_known_powers_by_squaring(dtype, exponent):
    d = np.dtype(dtype)
    power = mapped([d], lambda w, xs: [w.let(arithmetic.pow.op(), *xs, Literal(exponent, d))])
    x = np.arange(-50, 50).astype(d)
    out = np.empty_like(x)
    device().build(power, "power")([x, out], [x.size])
    np.testing.assert_array_equal(out, x ** d.type(exponent))


def test_what_has_no_expansion_stays():
    i8, f8 = np.dtype("int64"), np.dtype("float64")
    assert expansion(arithmetic.pow.op(), i8, i8) is None
    assert expansion(arithmetic.pow.op(), i8, Literal(-1, i8)) is None
    assert expansion(arithmetic.pow.op(), f8, Literal(2.0, f8)) is None
    assert expansion(analytic.polygamma.op(order=9), f8) is None
    assert expansion(arithmetic.add.op(), f8, f8) is None


def test_programs_fuse_special_functions():
    f = tr.compile(lambda x: tr.exp(analytic.lgamma(x) * 0.5) + 1.0)
    x = np.random.default_rng(3).uniform(0.1, 20, (70, 80))
    expected = np.exp(special.gammaln(x) * 0.5) + 1.0
    for _ in range(3):
        np.testing.assert_allclose(np.asarray(f(tr.asarray(x))), expected, rtol=1e-13)
        fusion.wait()
    assert "runs as one native function" in str(f.explain(tr.asarray(x)))


def test_programs_fuse_powers_of_integers():
    f = tr.compile(lambda x: (arithmetic.pow(x, 3) - x) * 2)
    x = np.arange(-3000, 3000).reshape(60, 100)
    for _ in range(3):
        np.testing.assert_array_equal(np.asarray(f(tr.asarray(x))), (x**3 - x) * 2)
        fusion.wait()
    assert "runs as one native function" in str(f.explain(tr.asarray(x)))
