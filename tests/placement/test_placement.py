"""``placement="auto"``: what pays is given to pools, what does not stays, and the reasons are told."""

import re

import numpy as np
import pytest

import tenferro_runtime as tr
from tenferro_ad import grad
from tenferro_cpu import CpuPool
from tenferro_runtime.placement import verify
from tenferro_tensor_core import ArgumentError

BIG = tr.CostModel(products=1e6, elements=1e6)
"""A slow machine, on which everything pays."""


@pytest.fixture
def pool():
    with CpuPool(index=1) as one:
        yield one


def branches(x, y):
    a, b = x, y
    for _ in range(3):
        a, b = a @ x, b @ y
    return a + b


def given(n):
    return tr.asarray(np.eye(n) * 0.5), tr.asarray(np.eye(n) * 0.25)


def devices(plan):
    return {str(step.device) for step in plan.placement.steps}


def test_independent_branches_that_are_long_enough_go_to_different_pools(pool):
    compiled = tr.compile(branches, placement=BIG)
    x, y = given(8)
    assert np.array_equal(compiled(x, y), branches(x, y))
    plan = verify(compiled.plan(x, y))
    assert devices(plan) == {"cpu:0", "cpu:1"}
    assert {str(q) for q in plan.threads} == {"cpu:0", "cpu:1"}
    assert plan.waits == 1  # of the sum for the branch in the pool
    assert re.fullmatch(r"on cpu:0, cpu:1 it takes \d+ µs instead of \d+ µs", plan.placement.why)


def test_small_branches_stay_in_the_calling_thread(pool):
    compiled = tr.compile(branches, placement="auto")
    x, y = given(8)
    assert np.array_equal(compiled(x, y), branches(x, y))
    plan = compiled.plan(x, y)
    assert len(plan.queues) == 1
    assert plan.placement.why.startswith("kept in the calling thread: ")


def test_sizes_decide(pool):
    compiled = tr.compile(branches, placement=tr.CostModel(products=1e9))
    assert [len(compiled.plan(*given(n)).queues) for n in (4, 128)] == [1, 2]
    for n in (4, 128, 4):
        assert np.array_equal(compiled(*given(n)), branches(*given(n)))
    assert compiled.cache_info().traces == 1


def test_a_chain_has_nothing_to_share_out(pool):
    plan = tr.compile(lambda x: x @ x @ x @ x, placement=BIG).plan(given(8)[0])
    assert len(plan.queues) == 1
    assert "which saves less than 15%" in plan.placement.why or "a pool must get" in plan.placement.why


def test_without_a_second_pool_it_says_how_to_open_one():
    plan = tr.compile(branches, placement="auto").plan(*given(8))
    assert plan.placement.why == "there is one CPU pool; open another one with tenferro_cpu.CpuPool()"


def test_pools_that_open_and_close_place_the_steps_anew():
    compiled = tr.compile(branches, placement=BIG)
    x, y = given(8)
    expected = np.asarray(branches(x, y))
    for _ in range(2):
        assert np.array_equal(compiled(x, y), expected)
        with CpuPool(index=1):
            assert np.array_equal(compiled(x, y), expected)
            assert len(compiled.plan(x, y).queues) == 2
    assert len(compiled.plan(x, y).queues) == 1


def test_steps_that_name_a_device_stay_there(pool):
    def f(x, y):
        return (x.with_compute_device("cpu:1") @ x).with_compute_device(None) + y @ y

    compiled = tr.compile(f, placement="auto")
    x, y = given(8)
    assert np.array_equal(compiled(x, y), f(x, y))
    plan = compiled.plan(x, y)
    asked = [str(step.device) for step in plan.placement.steps if step.fixed]
    assert "cpu:1" in asked
    with tr.compute_device("cpu:0"):
        assert np.array_equal(compiled(x, y), f(x, y))


def test_derivatives_are_placed_like_the_program(pool):
    def loss(x, y):
        return tr.sum(branches(x, y))

    x, y = given(8)
    got = grad(tr.compile(loss, placement=BIG), argnums=(0, 1))(x, y)
    for a, b in zip(got, grad(loss, argnums=(0, 1))(x, y), strict=True):
        assert np.allclose(a, b, rtol=1e-13)


def test_the_plan_and_its_reasons_print_as_tables(pool):
    compiled = tr.compile(branches, placement=BIG)
    plan = compiled.plan(*given(8))
    lines = str(plan).splitlines()
    assert lines[0].split() == ["step", "queue", "action", "waits", "for", "frees", "line"]
    assert any("call dot_general" in line and "test_placement.py" in line for line in lines)
    assert lines[-2] == "1 waits for 1 dependencies between queues"
    assert lines[-1] == plan.placement.why
    table = str(plan.placement).splitlines()
    assert table[0].split() == ["step", "device", "start", "time", "line"]
    assert len(table) == len(plan.placement.steps) + 2
    assert repr(plan.placement) == f"<Placement: {plan.placement.why}>"


def test_a_plan_of_one_queue_can_be_looked_at_as_well():
    plan = tr.compile(branches).plan(*given(4))
    assert [str(q) for q in plan.queues] == ["cpu:0"]
    assert plan.placement is None


def test_placements_that_are_none_are_refused():
    with pytest.raises(ArgumentError, match="placement='fast' is not a placement; pass 'auto' or a CostModel"):
        tr.compile(branches, placement="fast")
    with pytest.raises(
        ArgumentError, match=r"placement=array\(\[1\., 2\.\]\) is not a placement; pass 'auto' or a CostModel"
    ):
        tr.compile(branches, placement=np.array([1.0, 2.0]))  # type: ignore[call-overload]


@pytest.mark.parametrize("wrong", [{"products": 0.0}, {"elements": -1.0}, {"bytes": float("nan")}])
def test_speeds_that_are_none_are_refused(wrong):
    ((name, value),) = wrong.items()
    with pytest.raises(ArgumentError, match=f"a CostModel was made with {name}={value!r}; speeds are positive"):
        tr.CostModel(**wrong)


@pytest.mark.parametrize("name", ["step", "handover", "join", "least", "long", "gain"])
def test_times_below_zero_are_refused(name):
    assert getattr(tr.CostModel(**{name: 0.0}), name) == 0.0
    with pytest.raises(ArgumentError, match=f"was made with {name}=-1e-06; times and gains are not negative"):
        tr.CostModel(**{name: -1e-6})


def test_data_dependent_sizes_stay_in_one_thread(pool):
    compiled = tr.compile(lambda x: tr.compress(x, x > 0) * 2.0, placement=BIG)
    x = tr.asarray([1.0, -1.0, 3.0])
    assert compiled(x).tolist() == [2.0, 6.0]
    for f in (compiled, tr.compile(lambda x: tr.compress(x, x > 0))):
        with pytest.raises(tr.ProgramError, match=r"sizes of the program depend on data, .* explain\(\.\.\.\)"):
            f.plan(x)
        assert f.explain(x).steps
