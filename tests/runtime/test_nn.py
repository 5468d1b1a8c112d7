"""Functions of neural networks: against their definitions, at infinity, at kinks, and their derivatives."""

import numpy as np
import pytest
from scipy import special

import tenferro_runtime as tr
from array_oracles import assert_same
from tenferro_ad import check_grads, grad
from tenferro_tensor_core import ArgumentError, DTypeError, ShapeError

nn = tr.nn
INF = np.inf


def softplus(x):
    return np.logaddexp(x, 0)


def celu(x, alpha=1.0):
    return np.where(x > 0, x, alpha * np.expm1(np.minimum(x, 0) / alpha))


def relu6(x):
    return np.clip(x, 0, 6)


SELU = 1.0507009873554805
DEFINITIONS = {
    "relu": lambda x: np.maximum(x, 0),
    "relu6": relu6,
    "leaky_relu": lambda x: np.where(x >= 0, x, 0.01 * x),
    "elu": celu,
    "celu": celu,
    "selu": lambda x: SELU * np.where(x > 0, x, 1.6732632423543772 * np.expm1(np.minimum(x, 0))),
    "hard_tanh": lambda x: np.clip(x, -1, 1),
    "hard_sigmoid": lambda x: relu6(x + 3) / 6,
    "hard_silu": lambda x: x * relu6(x + 3) / 6,
    "hard_swish": lambda x: x * relu6(x + 3) / 6,
    "sparse_plus": lambda x: np.where(x >= 1, x, np.where(x <= -1, 0, (x + 1) ** 2 / 4)),
    "sparse_sigmoid": lambda x: np.clip((x + 1) / 2, 0, 1),
    "sigmoid": special.expit,
    "log_sigmoid": lambda x: -softplus(-x),
    "softplus": softplus,
    "silu": lambda x: x * special.expit(x),
    "swish": lambda x: x * special.expit(x),
    "gelu": lambda x: x / 2 * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3))),
    "mish": lambda x: x * np.tanh(softplus(x)),
    "soft_sign": lambda x: x / (1 + np.abs(x)),
    "squareplus": lambda x: (x + np.sqrt(x * x + 4)) / 2,
}
AT_INFINITY = {
    "leaky_relu": (-INF, INF), "elu": (-1.0, INF), "celu": (-1.0, INF), "selu": (-1.7580993408473766, INF),
    "hard_tanh": (-1.0, 1.0), "hard_sigmoid": (0.0, 1.0), "sparse_sigmoid": (0.0, 1.0), "sigmoid": (0.0, 1.0),
    "log_sigmoid": (-INF, 0.0), "soft_sign": (-1.0, 1.0), "relu6": (0.0, 6.0),
}  # fmt: skip
AT_KINKS = {
    "relu": {0.0: 0.0}, "relu6": {0.0: 0.0, 6.0: 0.0}, "leaky_relu": {0.0: 1.0}, "elu": {0.0: 1.0},
    "celu": {0.0: 1.0}, "selu": {0.0: SELU * 1.6732632423543772}, "hard_tanh": {-1.0: 1.0, 1.0: 1.0},
    "hard_sigmoid": {-3.0: 0.0, 3.0: 0.0}, "sparse_plus": {-1.0: 0.0, 1.0: 1.0},
    "sparse_sigmoid": {-1.0: 0.0, 1.0: 0.0},
    "soft_sign": {0.0: 1.0}, "sigmoid": {0.0: 0.25}, "silu": {0.0: 0.5}, "gelu": {0.0: 0.5}, "mish": {0.0: 0.6},
    "softplus": {0.0: 0.5}, "squareplus": {0.0: 0.5},
}  # fmt: skip
PLACES = np.asarray([-41.3, -7.1, -3.4, -1.7, -0.4, 0.3, 0.7, 1.9, 5.2, 6.7, 43.0])


@pytest.mark.parametrize("name", DEFINITIONS)
def test_definitions_and_derivatives(name):
    f = getattr(nn, name)
    assert_same(f(tr.asarray(PLACES)), DEFINITIONS[name](PLACES))
    assert f(tr.asarray(PLACES.astype("float32"))).dtype == np.float32
    assert_same(tr.compile(f)(tr.asarray(PLACES)), DEFINITIONS[name](PLACES))
    check_grads(f, (PLACES[1:-1],), order=2)


@pytest.mark.parametrize("name", DEFINITIONS)
def test_infinities_and_large_numbers(name):
    f = getattr(nn, name)
    low, high = AT_INFINITY.get(name, (0.0, INF))
    for dtype, large in (("float64", 1e300), ("float32", 1e37)):
        x = tr.asarray(np.asarray([-INF, INF], dtype))
        np.testing.assert_allclose(f(x).numpy(), np.asarray([low, high], dtype), rtol=1e-6)
        with np.errstate(invalid="ignore"):
            assert np.isnan(f(tr.asarray(np.asarray([np.nan], dtype))).numpy()).all()
        for order in (grad(lambda x: tr.sum(f(x))), grad(lambda x: tr.sum(grad(lambda x: tr.sum(f(x)))(x)))):
            slopes = order(tr.asarray(np.asarray([-large, -800.0, -90.0, 90.0, 800.0, large], dtype))).numpy()
            assert np.isfinite(slopes).all(), slopes


@pytest.mark.parametrize("name", AT_KINKS)
def test_derivatives_at_kinks_and_at_zero(name):
    f = getattr(nn, name)
    for place, slope in AT_KINKS[name].items():
        assert abs(float(grad(f)(tr.asarray(place))) - slope) < 1e-12
        assert abs(float(grad(tr.compile(f))(tr.asarray(place))) - slope) < 1e-12


def test_lower_tails_keep_their_digits():
    x = tr.asarray([-30.0, -20.0])
    np.testing.assert_allclose(nn.gelu(x[1:], approximate=False).numpy(), -20 * special.ndtr(-20.0), rtol=1e-12)
    np.testing.assert_allclose(nn.sigmoid(x).numpy(), special.expit([-30.0, -20.0]), rtol=1e-15)
    np.testing.assert_allclose(nn.mish(x).numpy(), x.numpy() * np.exp(x.numpy()), rtol=1e-8)
    np.testing.assert_allclose(nn.squareplus(tr.asarray(-1e8)).numpy(), 1e-8, rtol=1e-12)


def test_logarithms_of_one_less_an_exponential():
    x = np.asarray([1e-20, 0.1, 0.69, 0.7, 3.0, 40.0])
    wanted = np.concatenate([np.log(-np.expm1(-x[:3])), np.log1p(-np.exp(-x[3:]))])
    assert_same(nn.log1mexp(tr.asarray(x)), wanted)
    check_grads(nn.log1mexp, (x[1:-1],), order=2)
    slopes = grad(lambda x: tr.sum(nn.log1mexp(x)))(tr.asarray([1e-20, 800.0, np.inf])).numpy()
    np.testing.assert_allclose(slopes, [1e20, 0.0, 0.0])


def test_parameters_and_their_derivatives():
    x = PLACES[1:-1]
    assert_same(nn.gelu(tr.asarray(x), False), x * special.ndtr(x))
    assert_same(nn.celu(tr.asarray(x), 0.5), celu(x, 0.5))
    check_grads(lambda x, a: (nn.celu(x, a), nn.elu(x, a), nn.leaky_relu(x, a), nn.squareplus(x, a)), (x, 0.7))


def test_functions_along_an_axis():
    x = np.random.default_rng(0).normal(size=(3, 4))
    t = tr.asarray(x)
    assert_same(nn.glu(t), x[:, :2] * special.expit(x[:, 2:]))
    assert_same(nn.logmeanexp(t, axis=0), np.log(np.mean(np.exp(x), axis=0)))
    wanted = (x - x.mean(0)) / np.sqrt(x.var(0) + 1e-5)
    assert_same(nn.standardize(t, axis=0), wanted)
    assert_same(nn.standardize(t, mean=1.0, variance=tr.asarray(4.0), epsilon=0.0), (x - 1) / 2)
    check_grads(lambda x: (nn.glu(x, axis=1), nn.logmeanexp(x, 1), nn.standardize(x)), (x,))
    with pytest.raises(ShapeError, match="into 2 equal parts"):
        nn.glu(t, axis=0)


def test_one_hot():
    x = np.asarray([[2, 0], [3, -1]])
    wanted = (x[..., None] == np.arange(3)).astype(float)
    assert_same(tr.one_hot(tr.asarray(x), 3), wanted)
    assert_same(nn.one_hot(tr.asarray(x), 3, axis=0, dtype="int32"), np.moveaxis(wanted, -1, 0).astype("int32"))
    assert_same(tr.compile(lambda x: tr.one_hot(x, x.shape[0] + 1))(tr.asarray(x)), wanted)
    assert tr.one_hot(tr.asarray(1), 0).shape == (0,)


def test_integers_and_mistakes():
    assert_same(tr.relu(tr.asarray([-2, 3])), np.asarray([0, 3]))
    assert_same(tr.silu(tr.asarray([0, 1000])), np.asarray([0.0, 1000.0]))
    with pytest.raises(DTypeError, match="gelu takes real numbers"):
        tr.gelu(tr.asarray(1j))
    with pytest.raises(ArgumentError, match="one_hot takes integers"):
        tr.one_hot(tr.asarray(1.0), 3)
