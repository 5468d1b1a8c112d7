"""Compiled programs on several CPU pools: who runs what, scopes inside of traces, nesting, gradients."""

import os
import subprocess
import sys
import threading

import numpy as np
import pytest

import tenferro_runtime as tr
from tenferro_ad import grad, value_and_grad
from tenferro_cpu import CpuPool
from tenferro_runtime.placement import _several, verify
from tenferro_tensor_core import PlacementError

X = np.linspace(-1.0, 1.0, 12).reshape(3, 4)


@pytest.fixture
def pools():
    with CpuPool(index=1) as one, CpuPool(index=2) as two:
        yield one, two


def branches(x):
    """One branch on each of two pools, and the sum in the calling thread."""
    a = tr.matmul(x.with_compute_device("cpu:1"), x.T)
    b = tr.sin(x.with_compute_device("cpu:2")) @ x.T
    return a.with_compute_device(None) + b.with_compute_device(None)


def test_branches_on_two_pools_are_two_parts_and_give_the_bits_of_eager_calls(pools, plans):
    x, compiled = tr.asarray(X), tr.compile(branches)
    for n in (3, 3, 2):
        assert np.array_equal(compiled(x[:n]), branches(x[:n]))
    assert compiled.cache_info().traces == 1
    assert [sorted(map(str, p.threads)) for p in plans] == [["cpu:0", "cpu:1", "cpu:2"]] * 2


def test_scopes_inside_of_a_trace_say_where_the_program_runs(pools, plans):
    def scoped(x):
        with tr.compute_device("cpu:1"):
            a = tr.exp(x @ x.T) * 2.0
        with tr.compute_device("cpu:2"):
            b = tr.cos(x @ x.T)
        return a + b

    x = tr.asarray(X)
    out = tr.compile(scoped)(x)
    assert np.array_equal(out, scoped(x))
    assert out.spec is scoped(x).spec
    (plan,) = plans
    titles = {str(q): [] for q in plan.queues}
    for step in plan.steps:
        titles[str(plan.queues[step.queue])].append(step.action.task.title)
    assert {name: len(steps) for name, steps in titles.items()} == {"cpu:0": 1, "cpu:1": 2, "cpu:2": 2} or (
        sum(map(len, titles.values())) > 5  # without machine code nothing is fused
    )
    assert all("dot_general" in titles[name] for name in ("cpu:1", "cpu:2"))


def test_a_scope_around_the_call_is_one_device_and_no_plan(pools, plans):
    x, compiled = tr.asarray(X), tr.compile(lambda x: tr.sin(x) @ x.T)
    with tr.compute_device("cpu:1"):
        assert np.array_equal(compiled(x), np.sin(X) @ X.T)
    assert not plans


def test_a_scope_inside_of_a_branch_and_a_called_function_counts(pools, plans):
    inner = tr.compile(lambda x: tr.sin(x) @ x.T)

    def f(x):
        with tr.compute_device("cpu:1"):
            a = inner(x)
        return a + x @ x.T

    x = tr.asarray(X)
    assert np.array_equal(tr.compile(f)(x), f(x))
    (plan,) = plans
    assert sorted(map(str, plan.threads)) == ["cpu:0", "cpu:1"]


def test_loops_whose_bodies_use_a_pool_do_not_wait_for_that_pool(pools):
    def f(x):
        before = tr.sin(x.with_compute_device("cpu:1")) @ x.T

        def body(carry, _):
            with tr.compute_device("cpu:1"):
                carry = tr.cos(carry) * 0.5
            return carry, None

        last, _ = tr.scan(body, tr.sum(x, axis=0), None, length=5)
        after = tr.exp(before) + tr.sum(last)  # of the pool, which waits for the loop
        return after.with_compute_device(None)

    x = tr.asarray(X)
    done = []
    thread = threading.Thread(target=lambda: done.append(tr.compile(f)(x)), daemon=True)
    thread.start()
    thread.join(timeout=60)
    assert done, "the loop and the pool wait for each other"
    assert np.allclose(done[0], f(x), rtol=1e-14)


@pytest.mark.parametrize("how", ["call", "gradient"])
def test_a_plan_that_is_run_in_the_thread_of_a_pool_stays_there(pools, how):
    def f(x):
        a = tr.sin(x.with_compute_device("cpu:2"))
        b = tr.cos(a.with_compute_device("cpu:1"))  # the pool that runs it all waits for another one
        return tr.sum(b.with_compute_device("cpu:2") * a)

    compiled, x = tr.compile(f), tr.asarray(X).with_compute_device("cpu:1")
    done = []

    def ask():
        done.append(pools[0].call(compiled, x) if how == "call" else value_and_grad(compiled)(x)[0])

    thread = threading.Thread(target=ask, daemon=True)
    thread.start()
    thread.join(timeout=60)
    assert done, "the pool waits for itself"
    assert np.isclose(float(done[0]), np.sum(np.cos(np.sin(X)) * np.sin(X)), rtol=1e-14)


FORKED = """
import os, signal, threading
import tenferro_runtime as tr
from tenferro_cpu import CpuPool
from tenferro_runtime.placement import _executor
from tenferro_tensor_core import PlacementError
pool, x = CpuPool(index=1), tr.asarray([0.0])
f = tr.compile(lambda x: x + tr.cos(x.with_compute_device("cpu:1")).with_compute_device(None))
assert f(x).tolist() == [1.0]
held, forked = threading.Event(), threading.Event()
def submit():
    with _executor._submitting:
        held.set()
        forked.wait(60)
thread = threading.Thread(target=submit)
thread.start()
held.wait(60)
child = os.fork()
forked.set()
if child == 0:
    signal.alarm(60)
    try:
        f(x)
    except PlacementError as error:
        os._exit(0 if "its thread did not survive the fork" in str(error) else 2)
    os._exit(3)
assert os.waitpid(child, 0)[1] == 0
thread.join()
assert f(x).tolist() == [1.0]
print("both")
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_a_fork_while_a_run_is_submitted_leaves_the_child_free_to_submit():
    done = subprocess.run([sys.executable, "-W", "ignore", "-c", FORKED], capture_output=True, text=True, timeout=120)
    assert (done.stdout, done.returncode) == ("both\n", 0), done.stdout + done.stderr


def test_steps_without_results_are_no_tasks(pools, plans):
    def f(x):
        tr.cond(tr.sum(x) > 0.0, lambda: (), lambda: ())
        return branches(x)

    x = tr.asarray(X)
    with tr.Runtime(passes=()):  # which keep what nobody reads
        compiled = tr.compile(f)
    assert np.array_equal(compiled(x), f(x))
    assert len(plans) == 1


def test_gradients_through_pools(pools, plans):
    def loss(x):
        return tr.sum(branches(x) ** 2)

    def plain(x):
        return tr.sum((x @ x.T + tr.sin(x) @ x.T) ** 2)

    x = tr.asarray(X)
    expected = grad(plain)(x)
    for f in (grad(loss), grad(tr.compile(loss)), tr.compile(grad(loss))):
        got = f(x)
        assert np.allclose(got, expected, rtol=1e-12)
        assert got.spec is x.spec
    assert len(plans) > 1


def test_errors_of_a_pool_name_the_line(pools):
    def f(x):
        a = tr.linalg.cholesky(x.with_compute_device("cpu:1"))
        return a.with_compute_device(None) + x

    with pytest.raises(Exception) as caught:
        tr.compile(f)(tr.asarray(-np.eye(3)))
    assert any("test_pool_programs.py" in note for note in caught.value.__notes__)


def test_a_pool_that_was_closed_is_named(pools):
    x, compiled = tr.asarray(X), tr.compile(branches)
    compiled(x)
    pools[1].close()
    with pytest.raises(PlacementError, match="cpu:2 was requested"):
        compiled(x)
    with CpuPool(index=2):
        assert np.array_equal(compiled(x), branches(x))


def test_what_the_caller_has_set_for_itself_holds_in_the_pools(pools):
    compiled = tr.compile(branches)
    x = tr.asarray(np.full((3, 4), np.inf))
    compiled(tr.asarray(X))
    with np.errstate(all="ignore"):
        assert np.isnan(np.asarray(compiled(x))).all()


def test_a_checking_runtime_holds_plans_to_their_law(pools, monkeypatch):
    checked = []
    monkeypatch.setattr(_several, "verify", lambda plan: checked.append(verify(plan)) or plan)
    x = tr.asarray(X)
    tr.compile(branches)(x)
    assert not checked
    with tr.Runtime(check=True):
        tr.compile(branches)(x)
    assert len(checked) == 1
