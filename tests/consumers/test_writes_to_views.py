"""Functions of SciPy and scikit-learn that write to views of their arrays, on tensors."""

import numpy as np
import pytest

import tenferro_runtime as tr
from tenferro_ad import jvp, vjp

pytestmark = pytest.mark.filterwarnings("ignore")  # SciPy's own, of infinite limits


@pytest.mark.parametrize("mode", ["full", "same", "valid"])
@pytest.mark.parametrize("shapes", [((300,), (17,)), ((40, 61), (3, 5))])
def test_oaconvolve(mode, shapes):
    """Segments are added to views of the result; axes of length 1, too."""
    from scipy import signal

    x, k = [np.random.default_rng(n).normal(size=s) for n, s in enumerate(shapes)]
    wanted = signal.oaconvolve(x, k, mode)
    found = signal.oaconvolve(tr.asarray(x), tr.asarray(k), mode)
    assert isinstance(found, tr.Tensor)
    np.testing.assert_allclose(np.asarray(found), wanted, rtol=1e-12, atol=1e-12)

    def f(x):
        return signal.oaconvolve(x, tr.asarray(k), mode)

    d = np.random.default_rng(9).normal(size=x.shape)
    value, tangent = jvp(f, (tr.asarray(x),), (tr.asarray(d),))
    np.testing.assert_allclose(np.asarray(value), wanted, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(np.asarray(tangent), signal.oaconvolve(d, k, mode), rtol=1e-10, atol=1e-10)
    (pulled,) = vjp(f, tr.asarray(x))[1](tr.asarray(wanted))
    assert np.vdot(pulled, d) == pytest.approx(np.vdot(wanted, np.asarray(tangent)), rel=1e-10)


def test_tanhsinh_with_infinite_limits():
    from scipy.integrate import tanhsinh

    low, high = np.asarray([-np.inf, 0.0, -1.0]), np.asarray([np.inf, np.inf, 2.0])
    for xp in (np, tr):
        found = tanhsinh(lambda x: np.exp(-(x**2)), xp.asarray(low), xp.asarray(high))
        assert np.asarray(found.success).all()
        wanted = [np.sqrt(np.pi), np.sqrt(np.pi) / 2, 1.6289055235748732]
        np.testing.assert_allclose(np.asarray(found.integral), wanted, rtol=1e-12)


def test_nsum():
    from scipy.integrate import nsum

    for xp in (np, tr):
        found = nsum(lambda k: 1 / k**2, xp.asarray([1.0, 2.0]), xp.asarray(np.inf))
        assert np.asarray(found.success).all()
        np.testing.assert_allclose(np.asarray(found.sum), np.pi**2 / 6 - np.asarray([0.0, 1.0]), rtol=1e-10)


@pytest.mark.parametrize("method", ["bh", "by"])
def test_false_discovery_control(method):
    from scipy.stats import false_discovery_control

    p = np.random.default_rng(4).random((3, 8))
    for axis in (0, -1, None):
        wanted = false_discovery_control(p, axis=axis, method=method)
        np.testing.assert_allclose(
            np.asarray(false_discovery_control(tr.asarray(p), axis=axis, method=method)), wanted, rtol=1e-14
        )


def test_gaussian_mixture():
    import sklearn
    from sklearn.mixture import GaussianMixture

    rng = np.random.default_rng(0)
    x = np.concatenate([rng.normal(size=(40, 3)), rng.normal(size=(40, 3)) + 3.0])
    with sklearn.config_context(array_api_dispatch=True):
        for kind in ("full", "tied", "diag", "spherical"):
            models = [
                GaussianMixture(2, covariance_type=kind, random_state=0, init_params="random").fit(a)
                for a in (x, tr.asarray(x))
            ]
            for name in ("means_", "covariances_", "precisions_", "weights_"):
                want, got = [np.asarray(getattr(m, name)) for m in models]
                np.testing.assert_allclose(got, want, rtol=1e-8, atol=1e-10, err_msg=f"{kind} {name}")
