"""EagerTensor: backward, gradients that add up, released graphs, exports that are refused, no_grad, memory."""

import gc
import threading
import weakref

import numpy as np
import pytest

import tenferro_runtime as tr
from tenferro_ad import EagerTensor, check_grads, grad, jvp, no_grad, record_sources, variable
from tenferro_ad._backward import reachable
from tenferro_runtime.extension import primitive
from tenferro_tensor import Tensor, tensor
from tenferro_tensor_core import GradientError, MissingRuleError


def host(x):
    return np.asarray(x.numpy())


def test_backward_adds_up_over_calls_and_uses():
    x = variable([1.0, 2.0, 3.0])
    assert x.grad is None and x.requires_grad and x.is_leaf
    (x * x + x).sum().backward()
    (x * 2.0).sum().backward()
    np.testing.assert_array_equal(host(x.grad), [5.0, 7.0, 9.0])
    x.zero_grad()
    assert x.grad is None


def test_several_variables_and_one_that_is_not_reached():
    x, y, z = variable(2.0), variable(3.0), variable(4.0)
    (x * y).backward()
    assert float(x.grad) == 3 and float(y.grad) == 2 and z.grad is None


def test_gradient_argument():
    x = variable([1.0, 2.0])
    (x * x).backward(np.array([1.0, 10.0]))
    np.testing.assert_array_equal(host(x.grad), [2.0, 40.0])
    with pytest.raises(GradientError, match=r"backward\(\) of float64\[2\] needs a cotangent"):
        (x * x).backward()
    with pytest.raises(GradientError, match=r"must be float64\[2\]"):
        (x * x).backward(np.ones(3))
    z = variable(1 + 1j)
    with pytest.raises(GradientError, match="and this is complex"):
        (z * z).backward()


def test_second_sweep_names_retain_graph():
    x = variable(3.0)
    y = x * x * x
    y.backward(retain_graph=True)
    y.backward()
    assert float(x.grad) == 54
    with pytest.raises(GradientError, match="retain_graph=True"):
        y.backward()


def test_grad_belongs_to_variables_only():
    x = variable(3.0)
    y = x * x
    assert not y.is_leaf
    with pytest.raises(GradientError, match="only a variable accumulates a gradient"):
        _ = y.grad
    with pytest.raises(GradientError, match="cannot be set to"):
        x.grad = tensor([1.0])
    x.grad = tensor(5.0)
    y.backward()
    assert float(x.grad) == 11
    x.grad = None
    assert x.grad is None


def test_variables_are_floating_point_and_fresh():
    with pytest.raises(GradientError, match=r"variable\(\) was given int64\[2\], but only real and complex"):
        variable([1, 2])
    assert variable([1, 2], dtype="float32").dtype == np.float32
    with pytest.raises(GradientError, match=r"variable\(x.detach\(\)\)"):
        variable(variable(1.0))
    with pytest.raises(GradientError, match="was given a Dual"):
        jvp(lambda x: variable(x), (1.0,), (1.0,))
    with pytest.raises(GradientError, match=r"made by variable\(x\)"):
        EagerTensor()


def test_variables_inside_a_trace():
    @tr.compile
    def step(a, b):
        u, v = variable(a), variable(b)
        (u * u * v).sum().backward()
        return u.grad, v.grad

    ga, gb = step(np.array([2.0]), np.array([3.0]))
    assert float(ga[0]) == 12 and float(gb[0]) == 4


def test_export_is_refused_with_the_way_out():
    x = variable([1.0, 2.0])
    for export in (np.asarray, lambda v: v.numpy(), lambda v: v.__dlpack__()):
        with pytest.raises(GradientError, match=r"use \.detach\(\) first"):
            export(x * 2.0)
    for seen in (lambda: jvp(lambda v: np.asarray(v) and v, (1.0,), (1.0,)),):
        with pytest.raises(GradientError, match=r"use \.detach\(\) first"):
            seen()
    np.testing.assert_array_equal((x * 2.0).detach().numpy(), [2.0, 4.0])
    assert float((x * x).sum()) == 5 and (x.sum()).item() == 3 and bool(x[0] > 0)
    assert repr(x) == "EagerTensor([1., 2.])"


def test_integers_and_comparisons_are_never_wrapped():
    x = variable([3.0, 1.0, 2.0])
    assert type(x > 1.5) is Tensor and type(tr.argsort(x)) is Tensor and type(tr.floor(x)) is Tensor
    np.testing.assert_array_equal(host(x > 1.5), [True, False, True])


def test_missing_rule_names_primitive_family_and_way_out():
    @primitive(family="somebody.nothing.v1")
    def nothing(x):
        """Identity without a rule."""
        return x

    with pytest.raises(MissingRuleError, match=r"nothing cannot be differentiated: .* 'somebody.nothing.v1'.*register"):
        nothing(variable(1.0))
    with pytest.raises(MissingRuleError, match="stop_gradient"):
        jvp(nothing, (1.0,), (1.0,))


def test_no_grad_stops_what_was_running_and_nothing_else():
    x = variable([1.0, 2.0])
    with no_grad():
        y = x * x + tr.exp(x) + 2.0 * x - x / x
        assert type(y) is Tensor
        # A transform that starts inside works as anywhere.
        np.testing.assert_array_equal(host(grad(lambda v: (v * v).sum())(np.array([3.0]))), [6.0])
    assert type(x * x) is EagerTensor
    assert float(grad(lambda v: v * no_grad()(lambda: v * v)())(3.0)) == 9
    assert float(jvp(lambda v: v * no_grad()(lambda: v * v)(), (3.0,), (1.0,))[1]) == 9


def test_no_grad_belongs_to_the_context_and_survives_errors():
    x = variable(2.0)
    seen = []
    with pytest.raises(ZeroDivisionError), no_grad():
        t = threading.Thread(target=lambda: seen.append(type(x * x)))
        t.start()
        t.join()
        raise ZeroDivisionError
    assert seen == [EagerTensor] and type(x * x) is EagerTensor

    @no_grad()
    def twice(n):
        return type(x * x) if n == 0 else twice(n - 1)

    assert twice(2) is Tensor and type(x * x) is EagerTensor


def test_sources_are_recorded_on_request():
    from tenferro_ad import custom_rule

    @custom_rule(vjp=lambda primals, outs, cotangents: (tensor([1.0, 2.0]),))
    def wrong(x):
        return x * 2.0

    x = variable(1.0)
    with record_sources():
        y = wrong(x)
    with pytest.raises(
        GradientError, match=r"returned a cotangent float64\[2\] for its operand 'x', .* float64\[\]"
    ) as e:
        y.backward()
    assert any("test_ad_eager.py:" in note and "wrong" in note for note in e.value.__notes__)


def test_a_dead_branch_is_freed_without_the_collector():
    x = variable(np.ones(10))
    gc.collect()
    gc.disable()
    try:
        y = tr.exp(x) * x
        inside = [weakref.ref(v) for n in reachable([y.node]) if n.saved for v in n.saved if isinstance(v, Tensor)]  # type: ignore[attr-defined]
        inside = [r for r in inside if r() is not x.value]
        assert inside and all(r() is not None for r in inside)
        del y
        assert all(r() is None for r in inside)
    finally:
        gc.enable()


def test_the_sweep_releases_as_it_goes():
    x = variable(np.ones(10))
    y = x
    for _ in range(5):
        y = tr.tanh(y)
    root = (y * y).sum()
    held = [weakref.ref(v) for n in reachable([root.node]) if n.saved for v in n.saved if isinstance(v, Tensor)]  # type: ignore[attr-defined]
    del y
    root.backward(retain_graph=True)
    assert any(r() is not None for r in held)
    root.backward()
    assert all(r() is None for r in held if r() is not x.value)


def test_a_very_long_chain_neither_recurses_nor_breaks():
    x = variable(1.0)
    y = x
    for _ in range(200_000):
        y = y * 1.0
    y.backward()
    assert float(x.grad) == 1
    del y


def test_what_saves_nothing_holds_nothing():
    x = variable(np.ones(3))
    for op in (lambda v: v + 1.0, lambda v: -v, lambda v: v + v, lambda v: v - tensor(np.ones(3)), lambda v: v.sum()):
        y = op(x)
        assert not [s for s in y.node.saved if isinstance(s, Tensor)], op


OPERATORS = {
    "add": lambda x, y: x + y,
    "sub": lambda x, y: x - y,
    "mul": lambda x, y: x * y,
    "div": lambda x, y: x / y,
    "pow": lambda x, y: x**y,
}


@pytest.mark.parametrize("name", OPERATORS)
@pytest.mark.parametrize(
    "shapes", [((3,), (3,)), ((2, 3), (3,)), ((3,), ()), ((2, 1), (1, 3)), ((1,), (2, 3)), ((), ())]
)
@pytest.mark.parametrize("dtypes", [("f8", "f8"), ("f4", "f8"), ("f8", "c16"), ("c8", "f8"), ("f4", "i4")])
def test_broadcasting_times_promotion_times_operators(name, shapes, dtypes):
    rng = np.random.default_rng(1)

    def make(shape, dtype):
        x = rng.uniform(1.0, 2.0, shape) + (0.5j if dtype[0] == "c" else 0)
        return np.asarray(x, dtype)

    x, y = (make(s, d) for s, d in zip(shapes, dtypes))
    f = OPERATORS[name]
    single = "f4" in dtypes or "c8" in dtypes
    for _ in range(3):
        check_grads(f, (x, y), step=3e-3 if single else None, rtol=3e-2 if single else 1e-6)
    for a, b in ((x, y), (y, x)):
        if a.dtype.kind in "fc":
            v = variable(a)
            out = f(v, tensor(b))
            out.backward(np.ones(out.shape, out.dtype))
            assert v.grad.spec is v.spec
            assert f(v, tensor(b)).dtype == f(tensor(a), tensor(b)).dtype


@pytest.mark.parametrize("name", OPERATORS)
@pytest.mark.parametrize("scalar", [2, 2.5, 0.0, -0.0, True, 1.5 + 0.5j])
def test_python_scalars_on_both_sides(name, scalar):
    f = OPERATORS[name]
    x = np.array([0.5, 1.5])
    for g in (lambda v: f(v, scalar), lambda v: f(scalar, v)):
        if name == "div" and scalar == 0.0:
            continue
        if name == "pow" and scalar in (0.0, -0.0, True):
            continue
        for _ in range(3):
            check_grads(g, (x,))
    if name == "div" and scalar == 0.0:
        with np.errstate(all="ignore"):
            out = grad(lambda v: f(v, scalar).sum())(x)
        assert np.all(np.isinf(host(out))) and np.all(np.signbit(host(out)) == np.signbit(scalar))
