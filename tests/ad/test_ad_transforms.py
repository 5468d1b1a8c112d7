"""grad, vjp, jvp and their relatives: containers, argnums, conventions, complex numbers, and what they refuse."""

from typing import Any

import numpy as np
import pytest

import tenferro_runtime as tr
from tenferro_ad import (
    grad,
    hessian,
    jacfwd,
    jacrev,
    jvp,
    linear_transpose,
    linearize,
    value_and_grad,
    vjp,
)
from tenferro_tensor import Spec, tensor
from tenferro_tensor_core import ArgumentError, GradientError

Z = np.array([1 + 2j, 3 - 1j])


def host(x):
    return np.asarray(x.numpy())


def test_containers_in_and_out():
    params = {"w": np.array([1.0, 2.0]), "b": (np.float64(3.0), [np.array(4.0)])}

    def loss(p, x):
        return (p["w"] * x).sum() * p["b"][0] + p["b"][1][0] ** 2

    value, g = value_and_grad(loss)(params, np.array([5.0, 6.0]))
    assert float(value) == 17 * 3 + 16
    np.testing.assert_array_equal(host(g["w"]), [15.0, 18.0])
    assert float(g["b"][0]) == 17 and float(g["b"][1][0]) == 8


def test_argnums():
    f = lambda x, y: x * y * y
    assert float(grad(f, 1)(2.0, 3.0)) == 12
    assert [float(v) for v in grad(f, (0, 1))(2.0, 3.0)] == [9, 12]
    assert float(grad(f, -1)(2.0, 3.0)) == 12
    with pytest.raises(ArgumentError, match=r"differentiate argument 2, but 2 positional arguments were given"):
        grad(f, 2)(2.0, 3.0)
    with pytest.raises(ArgumentError, match="names an argument twice"):
        grad(f, (0, 0))(2.0, 3.0)


def test_aux_is_passed_on_without_the_recording():
    g, aux = grad(lambda x: (x * x, {"twice": 2 * x, "text": "kept"}), has_aux=True)(3.0)
    assert float(g) == 6 and float(aux["twice"]) == 6 and aux["text"] == "kept"
    assert aux["twice"].level == 0
    (value, aux), g = value_and_grad(lambda x: (x * x, x + 1), has_aux=True)(3.0)
    assert (float(value), float(aux), float(g)) == (9, 4, 6)
    value, tangent, aux = jvp(lambda x: (x * x, x + 1), (3.0,), (1.0,), has_aux=True)
    assert (float(value), float(tangent), float(aux)) == (9, 6, 4) and aux.level == 0
    value, pull, aux = vjp(lambda x: (x * x, x + 1), 3.0, has_aux=True)
    assert float(pull(1.0)[0]) == 6 and float(aux) == 4
    with pytest.raises(ArgumentError, match=r"returns a pair \(value, aux\), got EagerTensor"):
        grad(lambda x: x * x, has_aux=True)(3.0)


def test_an_argument_that_does_not_matter_has_the_gradient_zero():
    _, gy = grad(lambda x, y: (x * x).sum(), (0, 1))(np.ones(2), np.ones((2, 3), np.float32))
    np.testing.assert_array_equal(host(gy), np.zeros((2, 3)))
    assert gy.dtype == np.float32
    assert float(grad(lambda x: tensor(2.0))(1.0)) == 0
    assert float(grad(lambda x: 2.0)(1.0)) == 0


def test_what_grad_refuses():
    with pytest.raises(GradientError, match=r"cannot differentiate with respect to int64\[\]: only real and complex"):
        grad(lambda x: x * x)(3)
    with pytest.raises(GradientError, match=r"bool\[2\] at \['m'\]"):
        grad(lambda p: p["x"].sum())({"x": np.ones(2), "m": np.array([True, False])})
    with pytest.raises(GradientError, match="only a single real number has a gradient by itself, and this is an array"):
        grad(lambda x: x * x)(np.ones(3))
    with pytest.raises(GradientError, match="and this is complex"):
        grad(lambda z: z.sum())(Z)
    with pytest.raises(GradientError, match=r"got \(\*, \*\) with 2 leaves"):
        grad(lambda x: (x, x))(1.0)
    with pytest.raises(GradientError, match=r"got int64\[\], which has no derivative"):
        grad(lambda x: tr.argmax(x))(np.ones(3))
    with pytest.raises(ArgumentError, match="convention='torch' is unknown"):
        grad(lambda x: x, convention="torch")


def test_cotangents_and_tangents_must_fit():
    _, pull = vjp(lambda x: x * x, np.ones(3))
    with pytest.raises(GradientError, match=r"must be float64\[3\], .* but is float64\[2\]"):
        pull(np.ones(2))
    _, pull = vjp(lambda x: {"a": x, "b": x}, np.ones(3))
    with pytest.raises(ArgumentError, match="the cotangent given to the pullback must have the structure"):
        pull((np.ones(3), np.ones(3)))
    with pytest.raises(GradientError, match=r"jvp: the tangent must be float64\[3\]"):
        jvp(lambda x: x, (np.ones(3),), (np.ones((3, 1)),))
    with pytest.raises(ArgumentError, match="takes tuples of primals"):
        jvp(lambda x: x, 1.0, 1.0)  # type: ignore[call-overload]


def test_complex_gradient_points_uphill():
    loss = lambda z: (z * z.conj()).real.sum()
    np.testing.assert_allclose(host(grad(loss)(Z)), 2 * Z)
    np.testing.assert_allclose(host(grad(loss, convention="jax")(Z)), 2 * Z.conj())
    np.testing.assert_allclose(host(grad(lambda z: tr.abs(z).sum())(Z)), Z / abs(Z))


def test_holomorphic_derivative_in_both_conventions():
    for convention in ("tenferro", "jax"):
        g = grad(lambda z: (z * z * z).sum(), holomorphic=True, convention=convention)(Z)
        np.testing.assert_allclose(host(g), 3 * Z**2)
    with pytest.raises(GradientError, match="holomorphic=True needs complex arguments"):
        grad(lambda x: x.sum(), holomorphic=True)(np.ones(2))
    with pytest.raises(GradientError, match="use jacfwd or jacrev with holomorphic=True"):
        grad(lambda z: z, holomorphic=True)(Z)


def test_real_operand_in_a_complex_function_takes_the_real_part():
    x = np.array([0.5, 2.0])
    f = lambda v: (tensor(Z) * v * v).real.sum()
    for _ in range(3):
        g = grad(f)(x)
        assert g.dtype == np.float64
        np.testing.assert_allclose(host(g), 2 * x * Z.real)
    np.testing.assert_allclose(host(jvp(lambda v: tensor(Z) * v, (x,), (np.ones(2),))[1]), Z)


def test_vjp_pairing_and_convention():
    a = np.array([[1 + 1j, 2], [0, 3j]])
    g = np.array([1j, 2.0])
    np.testing.assert_allclose(host(vjp(lambda z: tensor(a) @ z, Z)[1](g)[0]), a.conj().T @ g)
    np.testing.assert_allclose(host(vjp(lambda z: tensor(a) @ z, Z, convention="jax")[1](g)[0]), a.T @ g)
    transpose = linear_transpose(lambda z: tensor(a) @ z, Spec((2,), np.dtype("complex128")))
    np.testing.assert_allclose(host(transpose(g)[0]), a.conj().T @ g)
    np.testing.assert_allclose(host(linear_transpose(lambda z: tensor(a) @ z, Z, convention="jax")(g)[0]), a.T @ g)


def test_vjp_can_be_pulled_many_times():
    _, pull = vjp(lambda x, y: (x * y, x + y), np.array([2.0, 3.0]), np.array([5.0, 7.0]))
    for k in (1.0, 2.0, 3.0):
        gx, gy = pull((np.full(2, k), np.zeros(2)))
        np.testing.assert_array_equal(host(gx), k * np.array([5.0, 7.0]))
        np.testing.assert_array_equal(host(gy), k * np.array([2.0, 3.0]))


def test_integer_outputs_have_no_tangent_and_need_no_cotangent():
    out, tangent = jvp(lambda x: (x * x, tr.argmax(x)), (np.array([1.0, 2.0]),), (np.ones(2),))
    assert tangent[1] is None and int(out[1]) == 1
    (_, i), pull = vjp(lambda x: (x * x, tr.argmax(x)), np.array([1.0, 2.0]))
    assert int(i) == 1
    np.testing.assert_array_equal(host(pull((np.ones(2), 0))[0]), [2.0, 4.0])
    _, push = linearize(lambda x: (x * x, tr.argmax(x)), np.array([1.0, 2.0]))
    assert push(np.ones(2))[1] is None


def test_linearize_may_branch_on_values():
    def f(x):
        return x * x if x.sum() > 0 else -x

    _, push = linearize(f, np.array([1.0, 2.0]))
    np.testing.assert_array_equal(host(push(np.array([1.0, 10.0]))), [2.0, 40.0])
    _, push = linearize(f, np.array([-1.0, -2.0]))
    np.testing.assert_array_equal(host(push(np.array([1.0, 10.0]))), [-1.0, -10.0])


def test_jacobians_of_all_kinds_of_numbers():
    x = np.array([0.3, 0.7])
    cases: list[tuple[Any, Any, dict[str, Any]]] = [
        (lambda x: tr.sin(x) * x.sum(), x, {}),
        (lambda x: tr.exp(x * (1 + 2j)), x, {}),
        (lambda z: (z * z * z.conj()).real, Z, {}),
        (lambda z: z * z * z.sum(), Z, {"holomorphic": True}),
        (lambda x: tr.stack([x, x * x]), x, {}),
    ]
    for f, v, options in cases:
        forward, reverse = host(jacfwd(f, **options)(v)), host(jacrev(f, **options)(v))
        assert forward.shape == reverse.shape
        np.testing.assert_allclose(forward, reverse, rtol=1e-12)
    np.testing.assert_allclose(host(jacfwd(lambda x: tr.exp(x * 1j))(x)), np.diag(1j * np.exp(1j * x)))
    np.testing.assert_allclose(host(jacrev(lambda z: (z * z.conj()).real, convention="jax")(Z)), np.diag(2 * Z.conj()))
    np.testing.assert_allclose(host(jacfwd(lambda z: (z * z.conj()).real, convention="jax")(Z)), np.diag(2 * Z.conj()))
    with pytest.raises(GradientError, match="only a holomorphic function has a complex derivative"):
        jacfwd(lambda z: z.conj())(Z)
    with pytest.raises(GradientError, match="only a holomorphic function has a complex derivative"):
        jacrev(lambda z: z.conj())(Z)
    with pytest.raises(GradientError, match="leave it out of the result"):
        jacrev(lambda x: tr.argmax(x))(x)


def test_jacobian_trees():
    h = hessian(lambda p: (p["a"] * p["a"]).sum() * p["b"])({"a": np.array([1.0, 2.0]), "b": np.array(3.0)})
    np.testing.assert_array_equal(host(h["a"]["a"]), np.diag([6.0, 6.0]))
    np.testing.assert_array_equal(host(h["a"]["b"]), [2.0, 4.0])
    np.testing.assert_array_equal(host(h["b"]["a"]), [2.0, 4.0])
    assert float(h["b"]["b"]) == 0


def test_zero_sized_arrays():
    assert host(grad(lambda x: (x * x).sum())(np.zeros((0, 3)))).shape == (0, 3)
    assert host(jacrev(lambda x: x * x)(np.zeros(0))).shape == (0, 0)
    assert host(jacfwd(lambda x: x * x)(np.zeros(0))).shape == (0, 0)


def test_wrapped_functions_keep_their_names():
    def energy(x):
        """Energy."""
        return x * x

    assert grad(energy).__name__ == "energy" and grad(energy).__doc__ == "Energy."
