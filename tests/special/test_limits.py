"""Special functions where their derivatives are limits, infinite, or not defined."""

import math

import numpy as np
import pytest
import scipy.special

import tenferro_ad as ad
import tenferro_runtime as tr
from tenferro_tensor_core import DTypeError

S = tr.special


def slopes(f, x, order=1):
    for _ in range(order):
        f = ad.grad(lambda x, f=f: tr.sum(f(x)))
    return np.asarray(f(tr.asarray(x))).tolist()


def test_bessel_functions_have_their_limits_at_0():
    assert slopes(lambda x: S.jv(0, x), [0.0]) == [0.0]
    assert slopes(lambda x: S.jv(1.0, x), [0.0]) == [0.5]
    assert slopes(lambda x: S.jv(2, x), [0.0], order=2) == [0.25]
    assert slopes(lambda x: S.iv(1.0, x), [0.0]) == [0.5]
    assert slopes(lambda x: S.iv(0.5, x), [0.0]) == [math.inf]
    assert slopes(S.j1, [0.0]) == slopes(S.i1, [0.0]) == [0.5]
    assert slopes(S.i0, [0.0], order=2) == [0.5]
    assert slopes(lambda x: S.spherical_jn(1, x), [0.0]) == [1 / 3]
    assert slopes(lambda v: S.jv(v, 0.0), [0.5, 3.0]) == [0.0, 0.0]
    assert slopes(lambda v: S.iv(v, 0.0), [0.0]) == [-math.inf]


def test_scaled_functions_keep_their_digits_where_the_others_overflow():
    x = 1e8
    assert math.isinf(float(S.iv(1.5, tr.asarray(x))))
    leading = 1 / math.sqrt(2 * math.pi * x)
    for f in (S.i0e, S.i1e, lambda x: S.ive(1.5, x)):
        assert slopes(f, [x]) == pytest.approx([-leading / (2 * x)], rel=1e-7)
    assert slopes(S.i0e, [-x, x])[0] == -slopes(S.i0e, [-x, x])[1]
    assert slopes(S.i1e, [-x, x])[0] == slopes(S.i1e, [-x, x])[1]
    assert slopes(S.i0e, [0.0]) == [0.0]


def test_elliptic_integrals_at_their_ends():
    eighth = math.pi / 8
    assert slopes(S.ellipk, [0.0, 1.0]) == pytest.approx([eighth, math.inf])
    assert slopes(S.ellipe, [0.0, 1.0]) == pytest.approx([-eighth, -math.inf])
    assert slopes(S.ellipkm1, [0.0]) == [-math.inf]
    sn, cn, dn, ph = (slopes(lambda m, i=i: S.ellipj(0.5, m)[i], [0.0])[0] for i in range(4))
    turned = -(0.5 - math.sin(0.5) * math.cos(0.5)) / 4
    assert [sn, cn] == pytest.approx([turned * math.cos(0.5), -turned * math.sin(0.5)])
    assert [dn, ph] == pytest.approx([-(math.sin(0.5) ** 2) / 2, turned])


def test_airy_functions_scaled_at_0():
    assert slopes(lambda x: S.airye(x).ai, [0.0]) == pytest.approx([scipy.special.airy(0.0)[1]])
    assert slopes(lambda x: S.airye(x).bi, [-1.0]) == pytest.approx([scipy.special.airy(-1.0)[3]])


def test_branches_of_lambert_w():
    z = np.array([-0.3 + 0.1j, 2.0 - 1j, -0.2 + 0j])
    for k in (-2, -1, 0, 1):
        w = np.asarray(S.lambertw(tr.asarray(z), k))
        np.testing.assert_allclose(w, scipy.special.lambertw(z, k))
        tangent = ad.jvp(lambda z, k=k: S.lambertw(z, k), (tr.asarray(z),), (tr.ones_like(tr.asarray(z)),))[1]
        np.testing.assert_allclose(np.asarray(tangent), w / (z * (1 + w)), rtol=1e-13)
    assert slopes(lambda x: tr.real(S.lambertw(x, -1)), [0.0]) == [math.inf]
    branch = complex(S.lambertw(tr.asarray(-math.exp(-1))))
    assert branch == pytest.approx(-1, abs=1e-8)
    assert S.lambertw(tr.asarray([0.5], dtype=tr.float32)).dtype == tr.complex64


def test_hankel_functions_are_complex_and_differentiable():
    value = S.hankel1(0.5, tr.asarray(2.0))
    assert complex(value) == pytest.approx(complex(scipy.special.hankel1(0.5, 2.0)), rel=1e-14)
    assert complex(S.hankel2(0.5, tr.asarray(2.0))) == complex(value).conjugate()
    slope = ad.jvp(lambda x: S.hankel1(0.5, x), (tr.asarray(2.0),), (tr.asarray(1.0),))[1]
    assert complex(slope) == pytest.approx(complex(scipy.special.h1vp(0.5, 2.0)), rel=1e-13)


def test_spherical_harmonics_at_the_poles_and_by_both_angles():
    n, m = tr.asarray([0, 1, 1, 2, 3]), tr.asarray([0, 1, -1, 1, -2])
    np.testing.assert_allclose(
        np.asarray(S.sph_harm_y(n, m, 0.4, tr.asarray(1.1))),
        scipy.special.sph_harm_y(np.asarray(n), np.asarray(m), 0.4, 1.1),
        rtol=1e-14,
    )
    assert slopes(lambda t: S.sph_legendre_p(1, 1, t), [0.0]) == pytest.approx([-math.sqrt(3 / (8 * math.pi))])
    tangent = ad.jvp(lambda p: S.sph_harm_y(n, m, 0.4, p), (tr.asarray(1.1),), (tr.asarray(1.0),))[1]
    expected = 1j * np.asarray(m) * scipy.special.sph_harm_y(np.asarray(n), np.asarray(m), 0.4, 1.1)
    np.testing.assert_allclose(np.asarray(tangent), expected, rtol=1e-13)


def test_associated_legendre_functions_at_the_ends_of_the_interval():
    assert slopes(lambda x: S.lpmv(0, 3, x), [1.0, -1.0]) == pytest.approx([6.0, 6.0])
    assert slopes(lambda x: S.lpmv(2, 2, x), [1.0, 0.5]) == pytest.approx([-6.0, -3.0])
    assert slopes(lambda x: S.lpmv(1, 1, x), [1.0]) == [math.inf]


def test_gauss_function_at_1_and_near_poles():
    a = ad.grad(lambda a: S.hyp2f1(a, 0.5, 3.0, 1.0))(tr.asarray(0.5))
    total = scipy.special.digamma(3.0 - 0.5) - scipy.special.digamma(2.0)
    assert float(a) == pytest.approx(scipy.special.hyp2f1(0.5, 0.5, 3.0, 1.0) * total, rel=1e-11)
    b = float(ad.grad(lambda b: S.hyp1f1(1.0, b, 1.0))(tr.asarray(-1.0 + 1e-4)))
    assert b == pytest.approx(math.e * 1e8, rel=1e-3)


@pytest.mark.parametrize("name", ["yn", "kn", "spherical_jn", "eval_legendre", "eval_hermite", "eval_laguerre"])
def test_operands_that_are_integers_by_definition_are_refused_otherwise(name):
    with pytest.raises(DTypeError, match=rf"{name} is defined for integers n only, and has no derivative by it"):
        getattr(S, name)(tr.asarray(1.5), tr.asarray(0.5))


def test_integer_operands_do_not_widen_single_precision():
    x = tr.asarray([0.5, 1.5], dtype=tr.float32)
    for f in (S.yn, S.kn, S.spherical_jn, S.eval_legendre):
        assert f(tr.asarray([1, 2]), x).dtype == tr.float32


def test_bessel_jn_stacks_the_orders():
    x = tr.asarray([0.0, 2.0, 7.0])
    np.testing.assert_allclose(
        np.asarray(S.bessel_jn(x, v=3)), [scipy.special.jv(n, np.asarray(x)) for n in range(4)], atol=1e-16
    )


def test_tricomi_function_where_scipy_has_no_value():
    assert math.isnan(scipy.special.hyperu(1.6, 9.0, 0.2))
    assert float(S.hyperu(1.6, 9.0, tr.asarray(0.2))) == pytest.approx(2644760643.39255, rel=1e-13)
    assert slopes(lambda x: S.hyperu(0.5, 8.0, x), [0.2]) == pytest.approx([-1337125108.64085], rel=1e-13)


def test_tricomi_function_has_parameter_derivatives_of_matrices():
    a = tr.asarray([[0.5, 1.5], [2.5, 0.3]])
    slope = ad.grad(lambda a: tr.sum(S.hyperu(a, 0.7, 2.0)))
    np.testing.assert_allclose(np.asarray(slope(a)).ravel(), np.asarray(slope(tr.reshape(a, (4,)))), rtol=1e-15)


def test_struve_functions_at_0():
    assert slopes(lambda x: S.struve(0.0, x), [0.0]) == pytest.approx([2 / math.pi])
    assert slopes(lambda x: S.struve(0.0, x), [0.0], order=2) == [0.0]
    assert slopes(lambda x: S.modstruve(1.0, x), [0.0], order=2) == pytest.approx([4 / (3 * math.pi)])
    assert slopes(lambda x: S.struve(-1.0, x), [0.0]) == [0.0]


def test_carlson_integrals_with_operands_that_vanish():
    assert slopes(lambda x: S.elliprg(x, 0.0, 0.0), [4.0]) == pytest.approx([0.125])
    assert slopes(lambda x: S.elliprf(x, 1.0, 2.0), [0.0]) == [-math.inf]
    assert slopes(lambda x: S.elliprg(x, 1.0, 1.0), [0.0]) == pytest.approx([math.pi / 8])
    assert slopes(lambda y: S.elliprc(0.0, y), [2.0, -2.0]) == pytest.approx([-math.pi / 2 / 2 / 2**1.5, 0.0])


def test_derivatives_as_functions_are_those_of_scipy():
    x = tr.asarray([0.5, 2.0])
    for name in ("jvp", "yvp", "ivp", "kvp", "h1vp", "h2vp"):
        for n in (0, 1, 3):
            expected = getattr(scipy.special, name)(1.5, np.asarray(x), n)
            np.testing.assert_allclose(np.asarray(getattr(S, name)(1.5, x, n)), expected, rtol=1e-12)


def test_polynomials_on_other_intervals_are_those_of_scipy():
    x = tr.asarray([0.3, 0.8])
    for name in ("eval_chebyc", "eval_chebys", "eval_sh_legendre", "eval_sh_chebyt", "eval_sh_chebyu"):
        f = getattr(S, name)
        np.testing.assert_allclose(np.asarray(f(5, x)), getattr(scipy.special, name)(5, np.asarray(x)), rtol=1e-13)
        ad.check_grads(lambda x, f=f: f(5, x), (x,), order=2)
