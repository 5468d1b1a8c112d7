"""Programs and differentiation: calls split by lifting, checkpoints, closures, several outputs, pruning of work."""

from collections import Counter

import numpy as np
import pytest

import tenferro_runtime as tr
from tenferro_ad import check_grads, checkpoint, grad, jacfwd, jvp, linearize, value_and_grad, variable, vjp
from tenferro_ad._partition import split_forward, split_reverse
from tenferro_ad._rematerialization import movable
from tenferro_runtime.extension import check_program
from tenferro_runtime.running import fusion
from tenferro_tensor import Spec, Tensor, tensor
from tenferro_tensor.identity import identity
from tenferro_tensor_core import TracingError

F8 = np.dtype("float64")
W = np.random.default_rng(3).normal(size=(3, 3)) / 2
X = np.array([0.3, -0.2, 0.9])


def host(x):
    return np.asarray(x.numpy())


def net(w, x):
    for _ in range(3):
        x = tr.tanh(w @ x)
    return (x * x).sum()


@pytest.mark.parametrize("wrap", [tr.compile, checkpoint])
def test_a_wrapped_function_has_the_same_derivatives(wrap):
    g = wrap(net)
    expected = [host(v) for v in grad(net, (0, 1))(W, X)]
    for f in (grad(g, (0, 1)), tr.compile(grad(g, (0, 1))), grad(tr.compile(g), (0, 1)), grad(wrap(g), (0, 1))):
        for _ in range(2):
            for got, want in zip(f(W, X), expected):
                np.testing.assert_allclose(host(got), want, rtol=1e-12)
    check_grads(g, (W, X), order=2)
    check_grads(tr.compile(g), (W, X), order=2)


def test_programs_inside_programs():
    inner = tr.compile(lambda x: tr.sin(x) * x)
    outer = tr.compile(lambda x: inner(inner(x)).sum())
    plain = lambda x: (tr.sin(tr.sin(x) * x) * (tr.sin(x) * x)).sum()
    np.testing.assert_allclose(host(grad(outer)(X)), host(grad(plain)(X)), rtol=1e-13)
    np.testing.assert_allclose(host(jvp(grad(outer), (X,), (X,))[1]), host(jvp(grad(plain), (X,), (X,))[1]), rtol=1e-12)


def test_outputs_that_are_not_used_cost_nothing_and_integers_pass():
    g = tr.compile(lambda x: (tr.sin(x), x * x, tr.argmax(x), 2.0))
    for k, want in ((0, np.cos(X)), (1, 2 * X)):
        np.testing.assert_allclose(host(grad(lambda x: g(x)[k].sum())(X)), want)  # noqa: B023
    np.testing.assert_allclose(host(grad(lambda x: (g(x)[0] * g(x)[1]).sum())(X)), np.cos(X) * X**2 + np.sin(X) * 2 * X)
    v = variable(X)
    out = g(v)
    assert type(out[2]) is Tensor and out[3] == 2.0
    program = g.program(X)
    split = split_reverse(program, (0,), {"n0": len(X)})
    assert split.active == (True, True, False)
    alone = split.seconds[(True, False, False)]
    assert [eq.op.primitive.name for eq in alone.program.equations] == ["cos", "mul"]  # nothing of the square


def test_many_outputs_fall_back_to_zeros():
    g = tr.compile(lambda x: tuple(tr.sin(x * float(k)) for k in range(1, 7)))
    got = grad(lambda x: (g(x)[1] * g(x)[4]).sum())(X)
    want = grad(lambda x: (tr.sin(x * 2.0) * tr.sin(x * 5.0)).sum())(X)
    np.testing.assert_allclose(host(got), host(want), rtol=1e-12)


def test_the_parts_are_programs_that_hold_their_law():
    program = tr.trace(net, Spec((3, 3), F8), Spec((3,), F8))
    for split in (split_reverse(program, (0, 1), {}), split_forward(program, (0,), {})):
        check_program(split.first)
        for second in split.seconds.values():
            check_program(second.program)
    assert split_reverse(program, (0, 1), {}) is split_reverse(program, (0, 1), {})
    # The backward part has no tanh: what it needs of the forward part is saved.
    names = {eq.op.primitive.name for eq in split_reverse(program, (0, 1), {}).seconds[(True,)].program.equations}
    assert "tanh" not in names


def test_residuals_are_few():
    def layers(w, x):
        for _ in range(3):
            x = tr.tanh(w @ x)
        return x.sum()

    program = tr.trace(layers, Spec((3, 3), F8), Spec((3,), F8))
    split = split_reverse(program, (0, 1), {})
    residuals = split.first.output_ids[1:]
    made = {v: eq.op.primitive.name for eq in split.first.equations for v in eq.results}
    # Both operands and one value for each layer: y where the next layer needs it too, else 1 - y * y; never both.
    assert Counter(made.get(v, "operand") for v in residuals) == {"tanh": 2, "sub": 1, "operand": 2}


def test_thinning_moves_nothing_that_the_first_part_needs():
    def tangle(x, y):
        a = x * y + 1.0
        b = a * a - x
        c = tr.exp(b / (1.0 + a * a)) * b
        return (c * a + tr.where(a > b, c, a)).sum() / (b * b + 2.0)

    g = tr.compile(tangle)
    check_grads(g, (X, X + 1), order=2)
    program = tr.trace(tangle, Spec((3,), F8), Spec((3,), F8))
    for split in (
        split_reverse(program, (0, 1), {}),
        split_reverse(program, (1,), {}),
        split_forward(program, (0, 1), {}),
    ):
        check_program(split.first)
        for second in split.seconds.values():
            check_program(second.program)
        outs = split.first.run(X, X + 1)
        np.testing.assert_allclose(host(outs[0]), host(tangle(tensor(X), tensor(X + 1))), rtol=1e-14)
    assert movable(split_reverse(program, (0, 1), {}).first, 1) == []  # once is enough


def test_linearize_a_program_computes_the_value_once():
    g = tr.compile(lambda x: tr.exp(tr.sin(x)))
    out, push = linearize(g, X)
    assert type(out) is Tensor
    np.testing.assert_allclose(host(push(X)), np.exp(np.sin(X)) * np.cos(X) * X)
    np.testing.assert_allclose(host(jacfwd(g)(X)), np.diag(np.exp(np.sin(X)) * np.cos(X)))


def test_a_captured_variable_follows_its_owner():
    w = variable(2.0)
    g = tr.compile(lambda x: (x * w).sum())
    y = g(tensor(X))
    y.backward()
    assert float(w.grad) == pytest.approx(X.sum())
    assert float(grad(lambda a: tr.compile(lambda x: (x * a * a).sum())(tensor(X)))(3.0)) == pytest.approx(6 * X.sum())


def test_checkpoint_saves_arguments_only():
    deep = checkpoint(lambda x: tr.tanh(tr.tanh(tr.tanh(tr.exp(x)))))
    v = variable(X)
    y = deep(v)
    (picked,) = y.node.parents  # type: ignore[attr-defined]
    assert [identity(x) for x in picked.saved] == [identity(v.value)]
    y.backward(np.ones(3))
    want = grad(lambda x: tr.tanh(tr.tanh(tr.tanh(tr.exp(x)))).sum())(X)
    np.testing.assert_allclose(host(v.grad), host(want), rtol=1e-13)


def test_checkpoint_of_closures_containers_and_integers():
    w = variable(2.0)

    @checkpoint
    def block(p, n):
        return {"y": p["x"] * w, "i": tr.argmax(p["x"]), "n": n * 1.0}

    for _ in range(2):
        w.zero_grad()
        out = block({"x": variable(X)}, 3)
        assert int(out["i"]) == 2
        out["y"].sum().backward()
        assert float(w.grad) == pytest.approx(X.sum())
    with pytest.raises(TracingError, match="no elements before the program runs"):
        checkpoint(lambda x: x if x.sum() > 0 else -x)(X)


def test_derivative_of_a_symbolic_program_at_several_sizes():
    n = tr.dim("n")
    program = tr.trace(lambda x: tr.sin(x * x).sum(), Spec((n,), F8))
    for size in (0, 1, 4):
        x = np.linspace(0.1, 1.0, size)
        for _ in range(2):
            got = grad(lambda v: program.run(v)[0])(x)
            np.testing.assert_allclose(host(got), np.cos(x * x) * 2 * x, rtol=1e-13)


def test_the_gradient_itself_traced_with_open_sizes():
    n = tr.dim("n")
    g = tr.trace(grad(lambda x: (tr.tanh(x) * x / (x * x + 1.0) + tr.where(x > 0, x, -x)).sum()), Spec((n,), F8))
    assert g.outputs == (Spec((n,), F8),)
    for size in (0, 1, 5):
        x = np.linspace(0.1, 1.0, size)
        want = grad(lambda v: (tr.tanh(v) * v / (v * v + 1.0) + tr.where(v > 0, v, -v)).sum())(x)
        np.testing.assert_allclose(host(g.run(x)[0]), host(want), rtol=1e-12)


def test_vjp_and_jvp_inside_one_program():
    @tr.compile
    def both(x, t, g):
        y, push = linearize(tr.tanh, x)
        _, pull = vjp(tr.tanh, x)
        return (push(t) * g).sum() - (pull(g)[0] * t).sum(), y

    gap, y = both(X, X + 1, X - 2)
    assert abs(float(gap)) < 1e-14
    np.testing.assert_allclose(host(y), np.tanh(X))


def test_value_and_grad_compiled_runs_one_program():
    step = tr.compile(value_and_grad(net))
    value, g = step(W, X)
    assert step.cache_info().traces == 1
    step(W + 1, X)
    assert step.cache_info().traces == 1
    assert float(value) == pytest.approx(float(net(tensor(W), tensor(X))))
    np.testing.assert_allclose(host(g), host(grad(net)(W, X)), rtol=1e-12)


def test_what_a_deterministic_function_compiles_keeps_its_bits_as_well():
    def f(z):  # strided operands: other kernels round otherwise
        return checkpoint(lambda x: tr.tanh(x) * tr.cos(x))(tr.real(z))

    z = tr.asarray(np.random.default_rng(0).normal(size=(40, 2)).view(complex).ravel())
    compiled = tr.compile(f, deterministic=True)
    found = []
    for _ in range(4):
        found.append(np.asarray(compiled(z)).tobytes())
        fusion.wait()
    x = tr.real(z)
    assert set(found) == {np.asarray(tr.tanh(x) * tr.cos(x)).tobytes()}


def test_a_deterministic_function_makes_strict_what_was_checkpointed_outside_of_it():
    def single(x):
        return tr.tanh(x) * tr.cos(x) + tr.sum((x * 3.0 / 7.0) ** 3)

    outside = checkpoint(single)
    z = tr.asarray(np.random.default_rng(0).normal(size=(40, 2)).view(complex).ravel())
    x = tr.real(z)
    outside(x)  # has programs of its own, which are no part of the promise
    compiled = tr.compile(lambda z: outside(tr.real(z)), deterministic=True)
    found = []
    for _ in range(3):
        found.append(np.asarray(compiled(z)).tobytes())
        fusion.wait()
    assert set(found) == {np.asarray(single(x)).tobytes()}


def test_a_strict_form_is_one_more_program_and_says_why():
    outside = tr.compile(lambda x: x**2 + 1.0)
    x = tr.asarray(3.0)
    compiled = tr.compile(lambda x: outside(x) - 1.0, deterministic=True)
    assert float(compiled(x)) == 9.0
    assert "pow" in [eq.op.primitive.name for eq in compiled.program(x).equations]
    outside(x)
    assert [eq.op.primitive.name for eq in outside.program(x).equations] == ["mul", "add"]
    assert "called by a function that is not deterministic" in outside.cache_info().reasons[-1]
