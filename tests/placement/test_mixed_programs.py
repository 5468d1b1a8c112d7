"""Compiled programs on several devices: the plan is taken, bits are those of eager calls, gradients flow through it."""

import numpy as np
import pytest

import tenferro_runtime as tr
from simulated.installed import simulated
from tenferro_ad import grad, value_and_grad
from tenferro_runtime.placement import _several
from tenferro_runtime.running.fusion import wait
from tenferro_tensor import AsynchronousError
from tenferro_tensor_core import TransferForbiddenError

X = np.linspace(-1.0, 1.0, 6).reshape(2, 3)


@pytest.fixture
def sim():
    with simulated(count=2) as runtime:
        yield runtime


@pytest.fixture
def plans(monkeypatch):
    """The plans that are made."""
    made = []
    plan = _several.plan

    def noted(*args):
        made.append(plan(*args))
        return made[-1]

    monkeypatch.setattr(_several, "plan", noted)
    return made


def through(x, y):
    """There, to a second device, and back."""
    a = tr.sin(tr.to_device(x, "sim:0")) * 2.0
    b = tr.to_device(a, "sim:1") @ tr.to_device(y, "sim:1")
    return tr.to_device(b, "cpu:0") + tr.sum(tr.to_device(a, "cpu:0"))


@pytest.mark.parametrize("deterministic", [True, False])
def test_a_program_over_three_memories_runs_by_a_plan_and_agrees_with_eager_calls(sim, plans, deterministic):
    x, y = tr.asarray(X), tr.asarray(X.T)
    compiled = tr.compile(through, deterministic=deterministic)
    for _ in range(3):
        np.testing.assert_allclose(compiled(x, y), through(x, y), rtol=0 if deterministic else 1e-14)
        wait()
    (plan,) = plans
    assert [str(q) for q in plan.queues] == ["cpu:0", "sim:0/compute", "sim:1/compute", "sim:0/copy", "sim:1/copy"]
    kinds = [step.action.kind.value for step in plan.steps]
    assert kinds.count("upload") == 2  # of x and y; the value that both need moves from device to device
    assert kinds.count("peer copy") == 1


def test_new_sizes_make_a_new_plan_and_no_new_trace(sim, plans):
    compiled = tr.compile(through)
    for n in (2, 3, 4, 3):
        x = tr.asarray(np.arange(2.0 * n).reshape(2, n))
        np.testing.assert_allclose(compiled(x, x.T), through(x, x.T), rtol=1e-14)
    assert len(plans) == 3
    assert compiled.cache_info().traces == 1


def test_inputs_and_outputs_may_lie_on_accelerators(sim, plans):
    def f(x, y):
        return {"there": x * 2.0, "here": tr.to_device(x, "cpu:0") + y, "same": x}

    x, y = tr.to_device(tr.asarray(X), "sim:0"), tr.asarray(X)
    out = tr.compile(f)(x, y)
    assert str(out["there"].device) == "sim:0"
    assert np.array_equal(tr.to_device(out["there"], "cpu:0"), X * 2.0)
    assert np.array_equal(out["here"], X + X)
    assert out["same"].data is x.data
    assert len(plans) == 1


def test_one_device_is_a_straight_line(sim, plans):
    x = tr.to_device(tr.asarray(X), "sim:0")
    assert np.array_equal(tr.to_device(tr.compile(lambda a: tr.sin(a) + a)(x), "cpu:0"), np.sin(X) + X)
    assert tr.compile(lambda a: tr.sin(a) + a)(tr.asarray(X)).shape == (2, 3)
    assert not plans
    assert tr.trace(lambda a: a + a, tr.asarray(X)).planned() is None


def test_gradients_flow_through_transfers_and_lie_where_the_inputs_lie(sim, plans):
    def loss(x, y):
        return tr.sum(through(x, y) ** 2)

    x, y = tr.asarray(X), tr.to_device(tr.asarray(X.T), "sim:1")
    here = tr.asarray(X.T)
    plain = tr.compile(lambda x, y: tr.sum((tr.sin(x) * 2.0 @ y + tr.sum(tr.sin(x) * 2.0)) ** 2))
    expected = [grad(plain, argnums=i)(x, here) for i in (0, 1)]
    for f in (grad(tr.compile(loss), argnums=(0, 1)), tr.compile(grad(loss, argnums=(0, 1)))):
        gx, gy = f(x, y)
        assert (str(gx.device), str(gy.device)) == ("cpu:0", "sim:1")
        assert np.allclose(gx, expected[0], rtol=1e-12)
        assert np.allclose(np.asarray(tr.to_device(gy, "cpu:0")), expected[1], rtol=1e-12)
    assert plans
    value, _ = value_and_grad(tr.compile(loss))(x, y)
    assert np.isclose(float(value), float(plain(x, here)))


def test_a_value_that_several_devices_read_gets_one_cotangent_from_each(sim):
    def loss(x):
        a = tr.sin(x)
        there = [tr.to_device(tr.exp(tr.to_device(a, d)), "cpu:0") for d in ("sim:0", "sim:1")]
        return tr.sum(there[0] * there[1] + a)

    expected = (2.0 * np.exp(2.0 * np.sin(X)) + 1.0) * np.cos(X)
    for f in (grad(loss), grad(tr.compile(loss)), tr.compile(grad(loss))):
        assert np.allclose(f(tr.asarray(X)), expected, rtol=1e-12)


def test_second_derivatives_flow_through_transfers(sim):
    def f(x):
        return tr.sum(tr.to_device(tr.sin(tr.to_device(x, "sim:0")) ** 3, "cpu:0"))

    def g(x):
        return tr.sum(tr.sin(x) ** 3)

    x = tr.asarray(X[0])
    for h in (f, tr.compile(f)):
        assert np.allclose(grad(lambda v, h=h: tr.sum(grad(h)(v) ** 2))(x), grad(lambda v: tr.sum(grad(g)(v) ** 2))(x))


def test_a_failure_names_the_line_of_the_step(sim):
    def f(x, i):
        there = tr.to_device(x, "sim:0") * 2.0
        return tr.to_device(there, "cpu:0") + tr.linalg.cholesky(i)

    with pytest.raises(Exception) as caught:
        tr.compile(f)(tr.asarray(np.eye(2)), tr.asarray(-np.eye(2)))
    assert any("test_mixed_programs.py" in note for note in caught.value.__notes__)


def test_a_failure_of_an_accelerator_is_the_cause(sim):
    sim.faults.next("kernel")

    def f(x):
        return tr.to_device(tr.sin(tr.to_device(x, "sim:0")), "cpu:0") + 1.0

    with pytest.raises(AsynchronousError, match="the kernel was told to fail"):
        tr.compile(f)(tr.asarray(X))


def test_donated_arguments_are_taken_and_not_written_over(sim):
    compiled = tr.compile(lambda x: tr.to_device(tr.to_device(x + 1.0, "sim:0") * 2.0, "cpu:0"), donate=0)
    x = tr.asarray(X.copy())
    assert np.array_equal(compiled(x), (X + 1.0) * 2.0)
    with pytest.raises(tr.DonatedError):
        tr.sum(x)


def test_plans_keep_the_ledger_of_transfers_and_refuse_before_the_first_step(sim):
    def f(x):
        there = tr.to_device(x, "sim:0") * 2.0
        again = tr.to_device(x, "sim:0") + 1.0  # there already
        return tr.to_device(there + again, "cpu:0") + 1.0

    x, compiled = tr.asarray(X), tr.compile(f)
    compiled(x)
    with tr.transfers() as ledger:
        compiled(x)
    moves = [(m.nbytes, m.source, m.target, m.line.rpartition("/")[2]) for m in ledger.rows]
    first = f.__code__.co_firstlineno
    name = "test_mixed_programs.py"
    assert moves == [(48, "host", "sim:0", f"{name}:{first + 1}"), (48, "sim:0", "host", f"{name}:{first + 3}")]
    issued = sim.issued.total()
    with pytest.raises(TransferForbiddenError, match="by this program, before any of its steps ran"), tr.no_transfers():
        compiled(x)
    assert sim.issued.total() == issued
