"""How work follows work: the answer to those who ask is what plans do, and timelines can be read."""

import threading

import numpy as np
import pytest

import tenferro_runtime as tr
from simulated.installed import simulated
from tenferro_cpu import CpuPool
from tenferro_runtime.placement import Route, SyncStrategy, Wait, executions, sync_strategy
from tenferro_tensor import StreamContext, compute_context, device_runtime
from tenferro_tensor_core import BackendUnavailableError, PlacementError

X = np.linspace(-1.0, 1.0, 9).reshape(3, 3)


def moved_between_accelerators(x):
    return tr.to_device(tr.to_device(tr.to_device(x, "sim:0") * 2.0, "sim:1") + 1.0, "cpu:0")


def test_pools_wait_by_timelines_and_share_memory():
    with CpuPool(index=1), CpuPool(index=2):
        assert sync_strategy("cpu:1", "cpu:1") == (Wait.IN_ORDER, Route.SHARED)
        for first, then in (("cpu:0", "cpu:1"), ("cpu:1", "cpu:0"), ("cpu:1", "cpu:2")):
            assert sync_strategy(first, then) == SyncStrategy(Wait.TIMELINE, Route.SHARED)


def test_what_is_not_there_is_an_error():
    with pytest.raises(PlacementError, match="cpu:7"):
        sync_strategy("cpu:0", "cpu:7")
    with pytest.raises(BackendUnavailableError):
        sync_strategy("cpu:0", "nowhere:0")


def test_accelerators_wait_by_events():
    with simulated(count=2) as runtime, CpuPool(index=1):
        assert sync_strategy("sim:0", "sim:0") == (Wait.IN_ORDER, Route.SHARED)
        assert sync_strategy("cpu:0", "sim:0") == (Wait.IN_ORDER, Route.UPLOAD)
        assert sync_strategy("cpu:1", "sim:0") == (Wait.TIMELINE, Route.UPLOAD)
        assert sync_strategy("sim:0", "cpu:0") == (Wait.SYNCHRONIZE, Route.DOWNLOAD)
        assert sync_strategy("sim:0", "cpu:1") == (Wait.TIMELINE_THEN_SYNCHRONIZE, Route.DOWNLOAD)
        assert sync_strategy("sim:0", "sim:1") == (Wait.EVENT, Route.PEER)
        device = runtime.device(0)
        assert sync_strategy(device.default_stream, "sim:0") == (Wait.IN_ORDER, Route.SHARED)
        assert sync_strategy(device.copy_stream, device.default_stream) == (Wait.EVENT, Route.SHARED)
        context = StreamContext("sim:0")
        with compute_context(context):
            assert sync_strategy(context.stream, "sim:0").wait is Wait.IN_ORDER
            assert sync_strategy(device.default_stream, "sim:0").wait is Wait.EVENT


@pytest.mark.parametrize("peer", [True, False])
def test_plans_take_the_way_that_is_told(peer, plans):
    with simulated(count=2, peers=peer):
        strategy = sync_strategy("sim:0", "sim:1")
        assert strategy == (Wait.EVENT, Route.PEER if peer else Route.STAGED)
        got = tr.compile(moved_between_accelerators)(tr.asarray(X))
        np.testing.assert_array_equal(np.asarray(got), X * 2.0 + 1.0)
        (plan,) = plans
        kinds = [step.action.kind.value for step in plan.steps]
        assert ("peer copy" in kinds) == (strategy.route is Route.PEER)
        assert kinds.count("upload") == (1 if peer else 2)


def test_timelines_of_a_run_are_read_while_it_goes_on_and_afterwards():
    def f(x):
        with tr.compute_device("cpu:1"):
            y = tr.sin(x)
        return tr.cos(y) + y

    with CpuPool(index=1) as pool:
        compiled, x = tr.compile(f), tr.asarray(X)
        compiled(x)
        hold, reached = threading.Event(), []

        def watch():
            while not seen:
                hold.wait(0.001)
            reached.append(seen[0].timelines["cpu:1"].value)
            pool_goes_on.set()
            reached.append(seen[0].timelines["cpu:1"].wait(1, timeout=30))

        pool_goes_on = threading.Event()
        pool.submit(lambda: pool_goes_on.wait(30))  # type: ignore[arg-type]  # it has something else to do first
        with executions() as seen:
            watcher = threading.Thread(target=watch)
            watcher.start()
            y = compiled(x)
            watcher.join()
        compiled(x)
    np.testing.assert_allclose(np.asarray(y), np.cos(np.sin(X)) + np.sin(X))
    assert reached == [0, True] and len(seen) == 1
    steps = {str(q.device): len(seen[0].plan.of_thread(n)) for n, q in enumerate(seen[0].plan.threads)}
    assert {name: t.value for name, t in seen[0].timelines.items()} == steps


def test_a_run_that_fails_leaves_its_timelines_where_they_were():
    def f(x):
        with tr.compute_device("cpu:1"):
            y = tr.sin(x)
        return tr.to_device(tr.to_device(y, "sim:0") * 2.0, "cpu:0")

    with simulated() as runtime, CpuPool(index=1):
        runtime.faults.next("transfer")
        with executions() as seen, pytest.raises(Exception, match="told to fail"):
            tr.compile(f)(tr.asarray(X))
        assert len(seen) == 1 and seen[0].timelines["cpu:1"].value == 1
        assert device_runtime().device(0).memory()["live"] == 0
