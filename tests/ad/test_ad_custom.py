"""custom_rule in all modes from one side only, and check_grads: what it passes and what it catches."""

from typing import Any

import numpy as np
import pytest

import tenferro_runtime as tr
from tenferro_ad import check_grads, custom_rule, grad, jvp, linearize, variable, vjp
from tenferro_runtime.extension import Linear, Slopes
from tenferro_tensor import Spec, tensor
from tenferro_tensor_core import ArgumentError, GradientError, TracingError

X = np.array([0.5, 1.5])


def host(x):
    return np.asarray(x.numpy())


def value(x, y, *, n):
    return tr.sin(x) * y**n


def push(primals, tangents, outs, *, n):
    (x, y), (t, u) = primals, tangents
    total = None
    if t is not None:
        total = tr.cos(x) * y**n * t
    if u is not None:
        part = tr.sin(x) * float(n) * y ** (n - 1) * u
        total = part if total is None else total + part
    return (total,)


def pull(primals, outs, cotangents, *, n):
    (x, y), (g,) = primals, cotangents
    return g * tr.cos(x) * y**n, g * tr.sin(x) * float(n) * y ** (n - 1)


def make(**sides):
    def f(x, y, *, n):
        return value(x, y, n=n)

    return custom_rule(f, **sides)


SIDES: dict[str, Any] = {"jvp": {"jvp": push}, "vjp": {"vjp": pull}, "both": {"jvp": push, "vjp": pull}}


@pytest.mark.parametrize("side", SIDES)
@pytest.mark.parametrize("compiled", [False, True])
def test_one_side_serves_every_mode(side, compiled):
    f = make(**SIDES[side])
    g = lambda x, y: f(x, y, n=3)
    g = tr.compile(g) if compiled else g
    plain = lambda x, y: value(x, y, n=3)
    for _ in range(3):
        check_grads(g, (X, X + 1), order=3)
        for k in (0, 1):
            np.testing.assert_allclose(
                host(grad(lambda x, y: g(x, y).sum(), k)(X, X + 1)),
                host(grad(lambda x, y: plain(x, y).sum(), k)(X, X + 1)),
                rtol=1e-13,
            )
    np.testing.assert_allclose(host(linearize(g, X, X)[1](X, X)), host(jvp(plain, (X, X), (X, X))[1]), rtol=1e-13)


def test_the_rule_replaces_the_derivative_of_the_body():
    @custom_rule(jvp=lambda primals, tangents, outs: (tangents[0] * 100.0,))
    def shifted(x):
        """A wrong derivative, on purpose."""
        return x * x

    assert shifted.__doc__ == "A wrong derivative, on purpose." and repr(shifted) == "<primitive shifted(x)>"
    assert float(grad(shifted)(3.0)) == 100 and float(grad(tr.compile(shifted))(3.0)) == 100
    assert float(shifted(3.0)) == 9


def test_several_outputs_and_dead_ones():
    @custom_rule(vjp=lambda primals, outs, cotangents: (
        sum(g * d for g, d in zip(cotangents, (tr.cos(primals[0]), -tr.sin(primals[0]))) if g is not None),
    ))  # fmt: skip
    def sincos(x):
        return tr.sin(x), tr.cos(x)

    check_grads(lambda x: sincos(x), (X,), order=2)
    for _ in range(3):
        np.testing.assert_allclose(host(grad(lambda x: sincos(x)[1].sum())(X)), -np.sin(X))
        np.testing.assert_allclose(host(jvp(lambda x: sincos(x)[0], (X,), (X,))[1]), np.cos(X) * X)


def test_numpy_inside_and_in_the_rule():
    @custom_rule(
        infer=lambda x: x,
        vjp=lambda primals, outs, cotangents: (cotangents[0].numpy() * np.cos(primals[0].numpy()),),
    )
    def npsin(x):
        return np.sin(x.numpy())

    for _ in range(3):
        np.testing.assert_allclose(host(grad(lambda x: npsin(x).sum())(X)), np.cos(X))
    np.testing.assert_allclose(host(tr.compile(npsin)(X)), np.sin(X))


def test_records_instead_of_functions():
    square = custom_rule(lambda x: x * x, rule=Slopes(x=lambda x: 2 * x))
    assert float(grad(grad(square))(3.0)) == 2
    total = custom_rule(lambda x: x.sum(), rule=Linear(x=lambda g, x_spec: tr.broadcast_to(g, x_spec.shape)))
    np.testing.assert_array_equal(host(grad(total)(X)), [1, 1])


def test_what_custom_rule_refuses():
    with pytest.raises(ArgumentError, match="needs a jvp, a vjp or a rule record"):
        custom_rule(lambda x: x)
    with pytest.raises(ArgumentError, match="both were given"):
        custom_rule(lambda x: x, jvp=push, rule=Slopes(x=1))
    with pytest.raises(ArgumentError, match="parameter 'n' of f must be an array without a default"):

        @custom_rule(vjp=pull)
        def f(x, n=2):
            return x

    opaque = custom_rule(lambda x: np.sin(x.numpy()), vjp=pull)
    with pytest.raises(TracingError, match="Pass infer="):
        opaque(X)
    w = variable(2.0)
    closed = custom_rule(lambda x: x * w, vjp=pull, infer=lambda x: x)
    with pytest.raises(GradientError, match="closes over .* of class EagerTensor, which the rule does not know"):
        closed(X)
    wrong = custom_rule(lambda x: x.sum(), vjp=pull, infer=lambda x: x)
    with pytest.raises(GradientError, match=r"returned float64\[\] where its inference says float64\[2\]"):
        wrong(X)


def test_rules_that_return_the_wrong_thing_are_told():
    short = custom_rule(lambda x, y: x * y, vjp=lambda p, o, c: (c[0],))
    with pytest.raises(GradientError, match="one value or None for each operand, 2 in all, but returned 1 values"):
        grad(lambda x: short(x, x).sum())(X)
    single = custom_rule(lambda x: x * x, jvp=lambda p, t, o: t[0])
    with pytest.raises(GradientError, match="jvp of .* must return a tuple"):
        jvp(single, (X,), (X,))
    shape = custom_rule(lambda x: x * x, jvp=lambda p, t, o: (t[0].sum(),))
    with pytest.raises(GradientError, match=r"returned a tangent float64\[\] for output 0, which is float64\[2\]"):
        jvp(shape, (X,), (X,))


def test_check_grads_catches_a_wrong_slope_in_either_mode():
    wrong = custom_rule(lambda x: x * x, rule=Slopes(x=lambda x: 2.001 * x))
    with pytest.raises(GradientError, match="forward mode, output 0 disagrees with central differences") as e:
        check_grads(wrong, (X,))
    assert e.value.payload["difference"] > e.value.payload["allowed"]
    with pytest.raises(GradientError, match=r"reverse mode, Re<J\* u, t> disagrees with central differences"):
        check_grads(wrong, (X,), modes=("rev",))


def test_check_grads_catches_sides_that_disagree():
    apart = custom_rule(
        lambda x: x * x, jvp=lambda p, t, o: (2 * p[0] * t[0],), vjp=lambda p, o, c: (2.01 * p[0] * c[0],)
    )
    check_grads(apart, (X,), modes=("fwd",))
    with pytest.raises(GradientError, match="reverse mode, .* disagrees with forward mode"):
        check_grads(apart, (X,))


def test_check_grads_catches_a_wrong_second_derivative():
    # The slope is right at this point, and its derivative is not.
    flat = custom_rule(lambda x: x * x, rule=Slopes(x=lambda x: 2 * tr.stop_gradient(x)))
    check_grads(flat, (X,))
    with pytest.raises(GradientError, match="of the (jvp|vjp)"):
        check_grads(flat, (X,), order=2)


def test_check_grads_catches_conjugation():
    z = X + 1j
    mirrored = custom_rule(
        lambda z: z * z, jvp=lambda p, t, o: (2 * p[0] * t[0],), vjp=lambda p, o, c: (2 * p[0] * c[0],)
    )
    check_grads(mirrored, (X,))
    with pytest.raises(GradientError, match="reverse mode"):
        check_grads(mirrored, (z,))


def test_check_grads_trees_kinds_and_arguments():
    check_grads(lambda p, n: {"a": p["x"] * p["z"], "n": n + 1}, ({"x": X, "z": X + 2j}, 3), order=2)
    check_grads(lambda x: x * x, (X.astype(np.float32),), order=2)
    check_grads(lambda x: x * x, (np.zeros((0, 2)),))
    with pytest.raises(ArgumentError, match="knows the modes 'fwd' and 'rev'"):
        check_grads(lambda x: x, (X,), modes=("both",))
    with pytest.raises(ArgumentError, match="order=1 or higher"):
        check_grads(lambda x: x, (X,), order=0)
    with pytest.raises(GradientError, match="no real or complex floating-point argument"):
        check_grads(lambda x: x, (3,))
    with pytest.raises(GradientError, match="no real or complex value"):
        check_grads(lambda x: tr.argmax(x), (X,))
    with pytest.raises(GradientError, match="nan"):
        with np.errstate(all="ignore"):
            check_grads(lambda x: tr.log(x), (-X,))


def test_vjp_of_a_custom_rule_with_scalars():
    f = make(vjp=pull)
    _, back = vjp(lambda x: f(x, 2.0, n=2), tensor(X))
    np.testing.assert_allclose(host(back(np.ones(2))[0]), np.cos(X) * 4)
    assert f.infer(Spec((2,), X.dtype), Spec((), X.dtype), n=1) is Spec((2,), X.dtype)
