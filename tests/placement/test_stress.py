"""Random plans over two pools and two accelerators, with delays and faults: bits, causes, order, memory.

Every hand-over between threads and every event is seen by the happens-before checker of the simulated accelerator, so
that a missing wait is found whatever the timing.
"""

import random
import threading
import time

import numpy as np
import pytest

from checked_machine import CheckedMachine, checked_timelines
from random_work import OPS, given, random_work, sequential, spec_on
from simulated.faults import Faults, InjectedFault
from simulated.installed import simulated
from tenferro_runtime.placement import PlanError, verify
from tenferro_runtime.placement._executor import Executor
from tenferro_runtime.placement._plan import plan_of
from tenferro_runtime.placement._tasks import Task, Work
from tenferro_tensor import AsynchronousError, ComputeDevice, DeviceMemoryError, get_backend
from thorough import tries

DEVICES = tuple(map(ComputeDevice, ("cpu:0", "cpu:1", "sim:0", "sim:1")))


class HostFault(Exception):
    """A kernel of a pool that failed on purpose."""


class Interrupt(BaseException):
    """What a user does at any moment."""


def kernels(rng, broken=-1, error=HostFault):
    """Kernels of both kinds; of those on pools some take a moment, and one may fail."""
    made = []

    def kernel(name, device):
        if device.kind != "cpu":
            op, count, _ = OPS[name]
            spec = spec_on(device)
            return get_backend("sim").kernel(op, (spec,) * count, (spec,), device)
        number, plain, slow = len(made), OPS[name][2], rng.random() < 0.1
        made.append(name)

        def run(*xs):
            if slow:
                time.sleep(0.0002)
            if number == broken:
                raise error("on purpose")
            return plain(*xs)

        return run

    return kernel


def placed(work, inputs, runtime):
    """The inputs where the work has them."""
    raws = []
    for v, x in zip(work.inputs, inputs, strict=True):
        space = work.space(v)
        if space.kind != "host":
            device = runtime.device(space.index)
            x = device.upload(x, device.default_stream)
        raws.append(x)
    return raws


def fetched(raw, runtime):
    if isinstance(raw, np.ndarray):
        return raw
    device = runtime.device_of(raw)
    return device.download(raw, device.default_stream).result()


def live(runtime):
    return [device.memory()["live"] for device in runtime.devices()]


def carry_out(seeds, runtime, machine, peers):
    for seed in seeds:
        rng = random.Random(seed)
        work = random_work(rng, DEVICES, kernels(rng), most=36)
        inputs = given(rng, work)
        plan = verify(plan_of(work, lambda source, target: peers))
        raws = placed(work, inputs, runtime)
        out = Executor(plan, machine).run(*raws)
        machine.joined()
        for got, expected in zip(out, sequential(work, inputs), strict=True):
            assert np.array_equal(fetched(got, runtime), expected), seed
        assert not runtime.checker.hazards, f"seed {seed}: {runtime.checker.hazards[0]}"
        got = raws = out = None
        assert live(runtime) == [0, 0], f"seed {seed}"


@pytest.mark.parametrize("peers", [True, False])
def test_random_plans_give_the_bits_of_the_sequential_run_in_order_and_free_all(peers):
    storm(range(120), peers)


@pytest.mark.slow
@pytest.mark.parametrize("peers", [True, False])
def test_many_random_plans(peers):
    storm(range(1000, 1000 + tries(100, 2000)), peers)


def storm(seeds, peers):
    before = set(threading.enumerate())
    faults = Faults(delayed=0.1, longest=2e-4)
    with simulated(count=2, threads=True, peers=peers, faults=faults) as runtime:
        with CheckedMachine(runtime, "cpu:1") as machine, checked_timelines(runtime.checker):
            carry_out(seeds, runtime, machine, peers)
    assert set(threading.enumerate()) <= before


def break_one(seed):
    """One random plan in which something fails, or not: what it ended with."""
    rng = random.Random(seed)
    what = rng.choice(["kernel", "transfer", "allocation", "pool", "interrupt"])
    faults = Faults(seed=seed, delayed=0.1, longest=2e-4)
    with simulated(count=2, threads=True, peers=rng.random() < 0.5, faults=faults) as runtime:
        with CheckedMachine(runtime, "cpu:1") as machine, checked_timelines(runtime.checker):
            broken = rng.randrange(15) if what in ("pool", "interrupt") else -1
            work = random_work(rng, DEVICES, kernels(rng, broken, HostFault if what == "pool" else Interrupt), most=30)
            inputs = given(rng, work)
            raws = placed(work, inputs, runtime)
            if what in ("kernel", "transfer", "allocation"):
                faults.next(what, after=rng.randrange(12))
            executor = Executor(verify(plan_of(work, lambda source, target: rng.random() < 0.5)), machine)
            try:
                out = executor.run(*raws)
                machine.joined()
                results = [fetched(raw, runtime) for raw in out]
            except (HostFault, Interrupt) as error:
                assert (what == "pool") is isinstance(error, HostFault)
            except DeviceMemoryError as error:
                assert isinstance(error.__cause__, InjectedFault)
                assert what == "allocation"
            except AsynchronousError as error:
                assert isinstance(error.__cause__, InjectedFault), "the cause is kept"
                assert what in ("kernel", "transfer")
            else:
                for got, expected in zip(results, sequential(work, inputs), strict=True):
                    assert np.array_equal(got, expected), seed
                what = "nothing"
            machine.joined()
            raws = out = results = executor = None
            # What the failed work of a stream has computed is undefined, but it is ordered and freed.
            assert not runtime.checker.hazards, f"seed {seed}: {runtime.checker.hazards[0]}"
            assert live(runtime) == [0, 0], f"seed {seed}, {what}"
    return what


def test_random_faults_are_told_with_their_cause_and_leave_nothing_behind():
    ends = [break_one(seed) for seed in range(150)]
    assert min(map(ends.count, ("kernel", "transfer", "allocation", "pool", "interrupt", "nothing"))) > 3


@pytest.mark.slow
def test_many_random_faults():
    for seed in range(1000, 1000 + tries(50, 1000)):
        break_one(seed)


def test_a_device_that_takes_nothing_back_does_not_hide_the_first_failure(monkeypatch):
    def fail(x):
        raise HostFault("the cause")

    def lost(self, raw):
        raise RuntimeError("the device is lost")

    here, there = (spec_on(DEVICES[n]) for n in (0, 2))
    with simulated(count=1) as runtime, CheckedMachine(runtime) as machine:
        sine = get_backend("sim").kernel(OPS["sin"][0], (there,), (there,), DEVICES[2])
        tasks = Task(sine, (0,), (2,), False, DEVICES[2]), Task(fail, (1,), (3,), False, DEVICES[0])
        work = Work((0, 1), {}, tasks, (2, 3), {0: there, 1: here, 2: there, 3: here})
        executor, x = Executor(verify(plan_of(work)), machine), np.ones((3, 4))
        monkeypatch.setattr(type(runtime.device(0).default_stream), "release", lost)
        with pytest.raises(HostFault, match="the cause") as caught:
            executor.run(*placed(work, [x, x], runtime))
        assert caught.value.__notes__ == ["after it, another step failed: RuntimeError: the device is lost"]


def test_waits_between_streams_that_are_left_out_are_seen_by_the_checker():
    dropped = seen = 0
    for seed in range(40):
        rng = random.Random(seed)
        with simulated(hazards=True, count=2, threads=True) as runtime:
            with CheckedMachine(runtime, "cpu:1") as machine, checked_timelines(runtime.checker):
                work = random_work(rng, DEVICES, kernels(rng), most=20)
                plan = plan_of(work, lambda source, target: True)
                streams = [
                    (step, d)
                    for step in plan.steps
                    for d in step.waits
                    if not step.action.queue.host and not plan.steps[d].action.queue.host and step.action.task
                ]
                if not streams:
                    continue
                step, d = rng.choice(streams)
                step.waits = tuple([w for w in step.waits if w != d])
                with pytest.raises(PlanError):
                    verify(plan)
                Executor(plan, machine).run(*placed(work, given(rng, work), runtime))
                dropped += 1
                seen += bool(runtime.checker.hazards)
    assert dropped > 20
    assert seen == dropped
