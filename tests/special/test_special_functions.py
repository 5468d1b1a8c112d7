"""Special functions: values against mpmath, derivatives of order 1 to 3 by every parameter, in both modes."""

from functools import cache

import mpmath as mp
import numpy as np
import pytest
from scipy import special

import tenferro_runtime as tr
from special_cases import CASES
from tenferro_ad import grad, jvp
from tenferro_tensor_core import ArgumentError, BackendUnavailableError, DTypeError, UnsupportedError
from tenferro_xla import XlaExecutor, lower_to_stablehlo

DIGITS = 30
ORDERS = (1, 2, 3)


def operands_of(name, dtype=np.float64):
    return [tr.asarray(np.array(column, dtype)) for column in zip(*CASES[name].points, strict=True)]


@cache
def expected(name, active, order):
    """A derivative of the definition by one operand, at all points."""
    found = []
    with mp.workdps(DIGITS):
        for point in CASES[name].points:
            values = [mp.mpf(v) for v in point]

            def f(x, values=values):
                return CASES[name].reference(*values[:active], x, *values[active + 1 :])

            found.append(float(mp.diff(f, values[active], order) if order else f(values[active])))
    return np.array(found)


def along(name, active, operands):
    f = getattr(tr.special, name)
    return lambda x: f(*operands[:active], x, *operands[active + 1 :])


def pushed(f):
    return lambda x: jvp(f, (x,), (tr.ones_like(x),))[1]


def pulled(f):
    return grad(lambda x: tr.sum(f(x)))


def assert_close(name, found, exact):
    largest = np.max(np.abs(exact))
    np.testing.assert_allclose(np.asarray(found), exact, rtol=CASES[name].rtol, atol=1e-14 * largest + 1e-30)


@pytest.mark.parametrize("name", CASES)
def test_values(name):
    case = CASES[name]
    found = np.asarray(getattr(tr.special, name)(*operands_of(name)))
    exact = expected(name, case.active[0], 0)
    assert np.all(np.abs(found - exact) <= case.ulps * np.spacing(np.abs(exact))), (found, exact)


@pytest.mark.parametrize("name", CASES)
def test_derivatives(name):
    """Reverse mode to order 3, forward mode to order 2, and forward over reverse."""
    operands = operands_of(name)
    with np.errstate(all="ignore"):  # at poles of what is not selected
        for active in CASES[name].active:
            f = along(name, active, operands)
            x = operands[active]
            first, second = expected(name, active, 1), expected(name, active, 2)
            assert_close(name, pulled(f)(x), first)
            assert_close(name, pushed(f)(x), first)
            assert_close(name, pushed(pulled(f))(x), second)
            assert_close(name, pulled(pulled(pulled(f)))(x), expected(name, active, 3))


SEVERAL = [name for name, case in CASES.items() if len(case.active) > 1]


@pytest.mark.parametrize("name", SEVERAL)
def test_mixed_derivatives_agree_in_either_order(name):
    operands = operands_of(name)
    i, j = CASES[name].active[:2]

    def by(first, second):
        def outer(y):
            def inner(x):
                values = list(operands)
                values[first], values[second] = x, y
                return getattr(tr.special, name)(*values)

            return pulled(inner)(operands[first])

        return np.asarray(pulled(outer)(operands[second]))

    with np.errstate(all="ignore"):
        one, other = by(i, j), by(j, i)
    np.testing.assert_allclose(one, other, rtol=1e-9, atol=1e-12 * np.max(np.abs(one)))


@pytest.mark.parametrize("name", CASES)
def test_single_precision(name):
    """Values and gradients stay in float32, as accurate as their operands let them be."""
    operands = operands_of(name, np.float32)
    wide = [x.astype(tr.float64) for x in operands]
    f = getattr(tr.special, name)
    found, exact = f(*operands), np.asarray(f(*wide))
    assert found.dtype == tr.float32
    small = np.abs(exact) < 3e38
    np.testing.assert_allclose(np.asarray(found)[small], exact[small], rtol=2e-5, atol=1e-38)
    active = CASES[name].active[-1]
    with np.errstate(all="ignore"):
        slope = pulled(along(name, active, operands))(operands[active])
    assert slope.dtype == tr.float32


COMPLEX = {
    "gamma": mp.gamma,
    "loggamma": mp.loggamma,
    "rgamma": mp.rgamma,
    "digamma": lambda z: mp.psi(0, z),
    "erf": mp.erf,
    "erfc": mp.erfc,
    "erfcx": lambda z: mp.exp(z * z) * mp.erfc(z),
    "erfi": mp.erfi,
    "dawsn": lambda z: mp.sqrt(mp.pi) / 2 * mp.exp(-z * z) * mp.erfi(z),
    "wofz": lambda z: mp.exp(-z * z) * mp.erfc(-1j * z),
    "ndtr": lambda z: mp.erfc(-z / mp.sqrt(2)) / 2,
    "expi": mp.ei,
    "exp1": mp.e1,
    "spence": lambda z: mp.polylog(2, 1 - z),
    "xlogy": lambda z: z * mp.log(z),
}


@pytest.mark.parametrize("name", COMPLEX)
def test_complex_numbers(name):
    points = np.array([0.7 + 0.4j, 1.6 - 0.8j, -0.6 + 0.9j])
    call = getattr(tr.special, name)
    f = (lambda z: call(z, z)) if name == "xlogy" else call
    one = pushed(f)
    two = pushed(one)
    for order, derivative in ((0, f), (1, one), (2, two)):
        with mp.workdps(DIGITS):
            exact = [complex(mp.diff(COMPLEX[name], z, order) if order else COMPLEX[name](z)) for z in points]
        np.testing.assert_allclose(np.asarray(derivative(tr.asarray(points))), exact, rtol=1e-11, err_msg=str(order))


@pytest.mark.parametrize("order", [1, 2, 5])
def test_complex_polygamma(order):
    points = np.array([0.7 + 0.4j, 30 - 8j, -6.6 + 0.9j, 0.2 - 50j])
    exact = [complex(mp.psi(order, z)) for z in points]
    np.testing.assert_allclose(np.asarray(tr.special.polygamma(order, tr.asarray(points))), exact, rtol=1e-12)


PAIRS = {
    "fresnel": (lambda x: mp.fresnels(x), lambda x: mp.fresnelc(x)),
    "sici": (mp.si, mp.ci),
    "shichi": (mp.shi, mp.chi),
}


@pytest.mark.parametrize("name", PAIRS)
def test_pairs_of_integrals(name):
    xs = np.array([1e-6, 0.5, 2.5, 12.0])
    for which, reference in enumerate(PAIRS[name]):

        def f(x, which=which):
            return getattr(tr.special, name)(x)[which]

        for order, derivative in ((0, f), (1, pulled(f)), (2, pushed(pulled(f))), (3, pushed(pulled(pulled(f))))):
            with mp.workdps(DIGITS):
                exact = [float(mp.diff(reference, mp.mpf(x), order) if order else reference(x)) for x in xs]
            np.testing.assert_allclose(np.asarray(derivative(tr.asarray(xs))), exact, rtol=1e-11, atol=1e-15)
        complexes = np.array([0.5 + 0.2j])
        found = np.asarray(getattr(tr.special, name)(tr.asarray(complexes))[which])
        np.testing.assert_allclose(found, getattr(special, name)(complexes)[which], rtol=1e-13)


def test_hurwitz_zeta_by_both_operands():
    s, q = tr.asarray([1.5, 2.0, 6.0]), tr.asarray([0.3, 1.0, 20.0])
    pairs = [(mp.mpf(a), mp.mpf(b)) for a, b in zip(np.asarray(s), np.asarray(q), strict=True)]
    with mp.workdps(DIGITS):
        by_s = [float(mp.zeta(a, b, 2)) for a, b in pairs]
        by_q = [float(a * (a + 1) * mp.zeta(a + 2, b)) for a, b in pairs]
        mixed = [float(-mp.zeta(a + 1, b) - a * mp.zeta(a + 1, b, 1)) for a, b in pairs]
    zeta = tr.special.zeta
    np.testing.assert_allclose(np.asarray(pulled(pulled(lambda s: zeta(s, q)))(s)), by_s, rtol=1e-13)
    np.testing.assert_allclose(np.asarray(pulled(pulled(lambda q: zeta(s, q)))(q)), by_q, rtol=1e-13)
    np.testing.assert_allclose(np.asarray(pulled(lambda s: pulled(lambda q: zeta(s, q))(q))(s)), mixed, rtol=1e-13)
    np.testing.assert_allclose(
        np.asarray(tr.special.polygamma(tr.asarray([0, 1, 3]), q)), special.polygamma([0, 1, 3], np.asarray(q))
    )


def test_small_functions():
    xs = np.array([-2.5, -1.0, -0.0, 0.0, 3.2, np.inf, np.nan])
    np.testing.assert_array_equal(np.asarray(tr.special.gammasgn(tr.asarray(xs))), [-1, np.nan, -1, 1, 1, 1, np.nan])
    assert np.isnan(float(tr.special.gammasgn(-np.inf)))
    np.testing.assert_allclose(
        np.asarray(tr.special.multigammaln(tr.asarray([3.0, 7.5]), 4)), special.multigammaln([3.0, 7.5], 4)
    )
    np.testing.assert_allclose(np.asarray(tr.special.bernoulli(12)), special.bernoulli(12), rtol=1e-11)
    n, k = np.array([5.0, 5.0, 3.0, -1.0]), np.array([2.0, 0.0, 5.0, 1.0])
    np.testing.assert_allclose(np.asarray(tr.special.comb(tr.asarray(n), tr.asarray(k))), special.comb(n, k))
    np.testing.assert_allclose(
        np.asarray(tr.special.comb(tr.asarray([5]), 2, repetition=True)), special.comb(5, 2, repetition=True)
    )
    for name in ("huber", "pseudo_huber"):
        d, r = np.array([0.0, 1.0, 1.0, -1.0]), np.array([2.0, 0.3, -4.0, 1.0])
        np.testing.assert_allclose(
            np.asarray(getattr(tr.special, name)(tr.asarray(d), tr.asarray(r))), getattr(special, name)(d, r)
        )
    for name in ("bdtr", "nbdtr"):
        quantile = getattr(tr.special, f"{name}i")(3.0, 8.0, tr.asarray([0.1, 0.7]))
        np.testing.assert_allclose(np.asarray(getattr(tr.special, name)(3.0, 8.0, quantile)), [0.1, 0.7], rtol=1e-13)
    for name in ("bdtrc", "nbdtrc"):
        found = getattr(tr.special, name)(tr.asarray([2.0, 8.0]), 8.0, 0.3)
        np.testing.assert_allclose(np.asarray(found), getattr(special, name)([2.0, 8.0], 8, 0.3), rtol=1e-13)
    np.testing.assert_allclose(
        np.asarray(tr.special.pdtrc(tr.asarray([2.0, 8.0]), 3.0)), special.pdtrc([2.0, 8.0], 3.0)
    )
    np.testing.assert_allclose(
        np.asarray(tr.special.gdtrc(2.0, 1.5, tr.asarray([0.3]))), special.gdtrc(2.0, 1.5, [0.3])
    )
    np.testing.assert_allclose(np.asarray(tr.special.chdtri(3.0, tr.asarray([0.3]))), special.chdtri(3.0, [0.3]))
    np.testing.assert_allclose(
        np.asarray(tr.special.betainccinv(2.0, 3.0, tr.asarray([0.3]))), special.betainccinv(2.0, 3.0, [0.3])
    )


LIMITS = [  # function, operands, differentiated operand, derivative there
    ("xlogy", (0.0, 0.0), 1, 0.0),
    ("xlogy", (0.0, 2.0), 0, np.log(2)),
    ("xlogy", (0.0, 0.0), 0, -np.inf),
    ("xlog1py", (0.0, -1.0), 1, 0.0),
    ("entr", (0.0,), 0, np.inf),
    ("entr", (-1.0,), 0, 0.0),
    ("rel_entr", (0.0, 0.0), 1, 0.0),
    ("rel_entr", (0.0, 2.0), 0, -np.inf),
    ("rel_entr", (-1.0, 2.0), 0, 0.0),
    ("kl_div", (0.0, 2.0), 1, 1.0),
    ("logit", (0.0,), 0, np.inf),
    ("logit", (1.0,), 0, np.inf),
    ("log_ndtr", (-1e100,), 0, 1e100),
    ("log_ndtr", (np.inf,), 0, 0.0),
    ("ndtri", (0.0,), 0, np.inf),
    ("gammainc", (2.0, 0.0), 1, 0.0),
    ("gammainc", (1.0, 0.0), 1, 1.0),
    ("gammainc", (0.5, 0.0), 1, np.inf),
    ("gammainc", (2.0, 0.0), 0, 0.0),
    ("gammainc", (2.0, np.inf), 0, 0.0),
    ("gammainc", (2.0, np.inf), 1, 0.0),
    ("betainc", (2.0, 3.0, 0.0), 0, 0.0),
    ("betainc", (2.0, 3.0, 1.0), 1, 0.0),
    ("betainc", (2.0, 3.0, 1.0), 2, 0.0),
    ("betainc", (1.0, 3.0, 0.0), 2, 3.0),
    ("rgamma", (-2.0,), 0, 2.0),
    ("binom", (2.0, 3.0), 0, 1 / 3),
    ("stdtr", (3.0, 0.0), 0, 0.0),
    ("expit", (-1e4,), 0, 0.0),
    ("pseudo_huber", (0.0, 3.0), 0, 3.0),
    ("erfcx", (np.inf,), 0, 0.0),
    ("exprel", (-np.inf,), 0, 0.0),
]


@pytest.mark.parametrize(("name", "operands", "active", "slope"), LIMITS)
def test_limits(name, operands, active, slope):
    values = [tr.asarray(v) for v in operands]
    with np.errstate(all="ignore"):
        found = pulled(along(name, active, values))(values[active])
        assert not np.isnan(np.asarray(getattr(tr.special, name)(*values)))
    np.testing.assert_allclose(np.asarray(found), slope, rtol=1e-14)


def test_integers_and_shapes():
    a, x = tr.asarray([[1], [2]]), tr.asarray([1, 2, 3])
    found = tr.special.gammainc(a, x)
    assert found.dtype == tr.float64
    np.testing.assert_allclose(np.asarray(found), special.gammainc([[1], [2]], [1, 2, 3]))
    assert tr.special.gammainc(a, tr.zeros((3, 1, 0))).shape == (3, 2, 0)
    slope = grad(lambda a: tr.sum(tr.special.gammainc(a, x)))(a.astype(tr.float64))
    assert slope.shape == (2, 1)
    empty = grad(lambda x: tr.sum(tr.special.gammainc(x, 1.0)))(tr.zeros((0, 2)))
    assert empty.shape == (0, 2)


def test_batches_and_programs():
    """One trace serves several sizes; lanes of a batch are elements."""
    a = tr.asarray(np.linspace(0.5, 4, 12).reshape(4, 3))

    def f(a):
        return tr.sum(tr.special.gammainc(a, 1.5) * tr.special.xlogy(a, a) + tr.special.zeta(a + 1.0))

    slopes = grad(f)(a)
    np.testing.assert_allclose(np.asarray(tr.vmap(grad(f))(a)), np.asarray(slopes), rtol=1e-13)
    compiled = tr.compile(grad(f))
    for rows in (4, 3):
        np.testing.assert_allclose(np.asarray(compiled(a[:rows])), np.asarray(slopes)[:rows], rtol=1e-13)
    np.testing.assert_allclose(np.asarray(grad(tr.compile(f))(a)), np.asarray(slopes), rtol=1e-13)


def in_xla(f, *operands):
    return np.asarray(XlaExecutor().run(tr.trace(f, *operands), *operands)[0])


def test_compositions_lower_to_stablehlo():
    def composed(x):
        s = tr.special
        elementary = s.logit(x) + s.xlogy(x, x) + s.entr(x) + s.expit(x) + s.exprel(x) + s.exp10(x)
        return elementary + s.rgamma(x) + s.binom(x, 0.3) + s.erfi(x) + s.erfcinv(x) + s.betaincc(x, 0.4, x)

    x = np.array([0.2, 0.5, 0.9])
    np.testing.assert_allclose(in_xla(composed, x), np.asarray(composed(tr.asarray(x))), rtol=1e-13)


def test_functions_of_jax_become_functions_of_the_module():
    def f(x):
        s = tr.special
        shapes = s.gammainc(x, 1.5) * s.gammainc(1.5, x) + s.betainc(1.5, 2.5, x)
        return shapes + s.log_ndtr(-8 * x) + s.gamma(x) * s.zeta(x + 1.0, x) + s.sici(x).sine + s.erfcx(x) + s.dawsn(x)

    x = np.array([0.2, 0.5, 0.9])
    twice = tr.trace(lambda x: tr.special.gammainc(x, 1.5) * tr.special.gammainc(1.5, x), x)
    assert lower_to_stablehlo(twice).text.count("func.func private") == 1, (
        "one function for two calls of the same specs"
    )
    for g in (f, pulled(f)):
        np.testing.assert_allclose(in_xla(g, x), np.asarray(g(tr.asarray(x))), rtol=1e-12)


def test_modified_bessel_functions_in_xla():
    x = np.array([-30.0, -8.0, -1.5, 0.0, 1e-9, 0.3, 7.9, 8.1, 40.0, 300.0])
    functions = [getattr(tr.special, name) for name in ("i0", "i0e", "i1", "i1e")]
    f = lambda x: tr.stack([y for g in functions for y in (g(x), pulled(g)(x))])
    np.testing.assert_allclose(in_xla(f, x), np.asarray(f(tr.asarray(x))), rtol=1e-12)


def test_owens_t_in_xla():
    if not hasattr(pytest.importorskip("jax.scipy.special"), "owens_t"):
        pytest.skip("this JAX lacks owens_t")
    edges = np.array([0.0, 0.7, -3.0, 50.0, np.inf, -np.inf, np.nan])
    h, a = (x.ravel() for x in np.meshgrid(edges, edges))
    np.testing.assert_allclose(in_xla(tr.special.owens_t, h, a), np.asarray(tr.special.owens_t(h, a)), rtol=1e-12)


def test_what_does_not_lower_is_named():
    x = np.full(3, 0.5)
    for f, message in (
        (lambda x: tr.special.stdtr(x, x), "stdtr .* has no StableHLO lowering"),
        (pulled(lambda x: tr.special.betainc(x, x, x)), r"order \(1, 0\) of betainc has no StableHLO lowering"),
        (pulled(pulled(tr.special.log_ndtr)), "order 2 of log_ndtr has no StableHLO lowering"),
        (pulled(pulled(tr.special.erfcx)), "order 2 of erfcx has no StableHLO lowering"),
        (pulled(pulled(tr.special.i0e)), "order 2 of i0e has no StableHLO lowering"),
    ):
        with pytest.raises(UnsupportedError, match=message):
            lower_to_stablehlo(tr.trace(f, x))


def test_mistakes():
    with pytest.raises(DTypeError, match="gammainc is not defined for complex128"):
        tr.special.gammainc(tr.asarray([1j]), 1.0)
    with pytest.raises(DTypeError, match="comb takes real numbers"):
        tr.special.comb(tr.asarray([1j]), 1.0)
    with pytest.raises(ArgumentError, match="dimension of at least 1, got 0"):
        tr.special.multigammaln(tr.asarray([1.0]), 0)
    with pytest.raises(ArgumentError, match="order of at least 0, got -1"):
        tr.special.bernoulli(-1)
    with pytest.raises(AttributeError, match="nothing_like_it"):
        getattr(tr.special, "nothing_like" + "_it")


def test_without_scipy(monkeypatch):
    from tenferro_runtime.special import _scipy

    class Bare:
        def library(self, name):
            raise ModuleNotFoundError(f"No module named {name!r}")

    monkeypatch.setattr(_scipy, "get_backend", lambda name: Bare())
    with pytest.raises(BackendUnavailableError, match=r"pip install 'tenferro-runtime\[special\]'"):
        _scipy.host_special()


def test_every_name_of_the_module_is_there():
    names = tr.special.__all__  # type: ignore[attr-defined]  # not for type checkers
    assert names == sorted(names)
    assert all(callable(getattr(tr.special, name)) for name in names)
