"""Carrying plans out on pools: bits of the sequential run, the first failure, and nobody left waiting."""

import contextlib
import random
import sys
import threading
import time

import numpy as np
import pytest

from random_work import OPS, given, random_work, sequential, spec_on
from tenferro_runtime.placement import verify
from tenferro_runtime.placement._executor import Executor, _Run, within
from tenferro_runtime.placement._plan import plan_of
from tenferro_runtime.placement._tasks import Task, Work
from tenferro_tensor import ComputeDevice
from thread_pools import ThreadPools

CPUS = tuple(map(ComputeDevice, ("cpu:0", "cpu:1", "cpu:2", "cpu:3")))


class Fault(Exception):
    """Raised on purpose."""


@pytest.fixture(scope="module")
def pools():
    with ThreadPools("cpu:1", "cpu:2", "cpu:3") as machine:
        yield machine


def chain(*calls):
    """Work of calls ``(device, function, operands, result)`` on the input 0; the last result is the output."""
    tasks = [Task(f, operands, (result,), False, ComputeDevice(device)) for device, f, operands, result in calls]
    specs = {v: spec_on(CPUS[0]) for v in (0, *[c[3] for c in calls])}
    return Work((0,), {}, tuple(tasks), (calls[-1][3],), specs)


def executor(work, machine):
    return Executor(verify(plan_of(work)), machine)


def faulty(rng, seed):
    """Kernels of which some wait a moment, and one or none fails."""
    broken = rng.randrange(40)
    made = []

    def kernel(name, device):
        number, plain, slow = len(made), OPS[name][2], rng.random() < 0.1
        made.append(name)

        def run(*xs):
            if slow:
                time.sleep(0.0003)
            if number == broken:
                raise Fault(f"call {number} of seed {seed}")
            return plain(*xs)

        return run

    return kernel


def carry_out(seed, machine, most):
    rng = random.Random(seed)
    work = random_work(rng, CPUS, faulty(rng, seed), most=most)
    inputs = given(rng, work)
    run = executor(work, machine).run
    try:
        out = run(*inputs)
    except Fault as error:
        assert f"of seed {seed}" in str(error)
        return "failed"
    assert all(np.array_equal(a, b) for a, b in zip(out, sequential(work, inputs), strict=True))
    return "done"


def test_random_plans_on_pools_give_the_bits_of_the_sequential_run_or_the_fault(pools):
    before = set(threading.enumerate())
    ends = [carry_out(seed, pools, 30) for seed in range(300)]
    assert min(map(ends.count, ("done", "failed"))) > 30
    assert set(threading.enumerate()) <= before


def test_one_plan_runs_in_several_threads_at_once(pools):
    rng = random.Random(5)
    work = random_work(rng, CPUS, lambda name, device: OPS[name][2])
    run, inputs = executor(work, pools).run, [given(rng, work) for _ in range(4)]
    wrong = []

    def caller(xs):
        expected = sequential(work, xs)
        for _ in range(50):
            if not all(np.array_equal(a, b) for a, b in zip(run(*xs), expected, strict=True)):
                wrong.append(xs)

    threads = [threading.Thread(target=caller, args=(xs,)) for xs in inputs]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=60)
        assert not thread.is_alive()
    assert not wrong


def test_callers_whose_plans_use_the_pools_crosswise_do_not_wait_for_each_other(pools):
    there = chain(("cpu:1", np.sin, (0,), 1), ("cpu:2", np.sin, (1,), 2), ("cpu:1", np.sin, (2,), 3))
    back = chain(("cpu:2", np.sin, (0,), 1), ("cpu:1", np.sin, (1,), 2), ("cpu:2", np.sin, (2,), 3))
    runs = [executor(w, pools).run for w in (there, back)]
    threads = [threading.Thread(target=lambda r=r: [r(np.ones(3)) for _ in range(200)]) for r in runs * 2]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=60)
        assert not thread.is_alive()


def test_branches_run_at_the_same_time(pools):
    meeting = threading.Barrier(2)

    def meet(x):
        meeting.wait(timeout=30)
        return x + 1

    work = chain(("cpu:1", meet, (0,), 1), ("cpu:0", meet, (0,), 2), ("cpu:0", np.add, (1, 2), 3))
    (out,) = executor(work, pools).run(np.zeros(2))
    assert out.tolist() == [2.0, 2.0]


def test_the_first_failure_is_raised_and_the_rest_is_cancelled(pools):
    called = []

    def fail(x):
        raise Fault("the cause")

    work = chain(
        ("cpu:1", fail, (0,), 1), ("cpu:2", lambda x: called.append(x), (1,), 2), ("cpu:0", called.append, (2,), 3)
    )
    run = executor(work, pools).run
    with pytest.raises(Fault, match="the cause") as caught:
        run(np.ones(2))
    assert not called
    assert not getattr(caught.value, "__notes__", ())  # that others were cancelled is no news
    with pytest.raises(Fault):
        run(np.ones(2))  # the pools live on


def test_failures_after_the_first_are_told_in_its_notes(pools):
    meeting, failed = threading.Barrier(2), threading.Event()

    def first(x):
        meeting.wait(timeout=30)
        failed.set()
        raise Fault("in the pool")

    def second(x):
        meeting.wait(timeout=30)
        failed.wait(timeout=30)
        raise ValueError("in the caller")

    work = chain(("cpu:1", first, (0,), 1), ("cpu:0", second, (0,), 2), ("cpu:0", np.add, (1, 2), 3))
    with pytest.raises((Fault, ValueError)) as caught:
        executor(work, pools).run(np.ones(2))
    told = caught.value.__notes__
    assert told in (
        ["after it, another step failed: ValueError: in the caller"],
        ["after it, another step failed: Fault: in the pool"],
    )


def test_an_interrupt_ends_the_run_when_the_pools_have_left_it(pools):
    begun, left = threading.Event(), []

    def work_on(x):
        begun.set()
        time.sleep(0.01)
        left.append(1)
        return x

    def interrupt(x):
        assert begun.wait(timeout=30)
        begun.clear()
        raise KeyboardInterrupt

    work = chain(("cpu:1", work_on, (0,), 1), ("cpu:0", interrupt, (0,), 2), ("cpu:0", np.add, (1, 2), 3))
    for n in range(1, 6):
        with pytest.raises(KeyboardInterrupt):
            executor(work, pools).run(np.ones(2))
        assert len(left) == n
    assert executor(chain(("cpu:1", np.sin, (0,), 1)), pools).run(np.zeros(1))[0].tolist() == [0.0]


def test_no_interrupt_makes_the_caller_wait_for_pools_that_have_left():
    class AtOnce(ThreadPools):
        def post(self, pool, run):
            run()

    def joining(at):
        """Whether an interrupt fell on instruction `at` of the wait for pools."""
        run, count = _Run(plan, AtOnce(), []), 0
        run.submit([[]])

        def trace(frame, event, _):
            nonlocal count
            if frame.f_code is not _Run.join.__code__:
                return None
            frame.f_trace_opcodes = True
            count += event == "opcode"
            if event == "opcode" and count == at:
                raise KeyboardInterrupt
            return trace

        sys.settrace(trace)
        try:
            with contextlib.suppress(KeyboardInterrupt):
                run.join()
        finally:
            sys.settrace(None)
        done.append(count >= at)

    plan, done = plan_of(chain(("cpu:1", np.sin, (0,), 1))), [True]
    while done[-1]:
        at = len(done)
        thread = threading.Thread(target=joining, args=(at,), daemon=True)
        thread.start()
        thread.join(timeout=30)
        assert len(done) > at, "the caller waits for ever"
    assert len(done) > 10


def test_a_pool_that_takes_nothing_fails_the_run_and_not_the_caller_after_it(pools):
    class Closed(ThreadPools):
        def post(self, pool, run):
            if pool is CPUS[2]:
                raise Fault("cpu:2 is closed")
            super().post(pool, run)

    work = chain(("cpu:1", np.sin, (0,), 1), ("cpu:2", np.sin, (1,), 2), ("cpu:1", np.sin, (2,), 3))
    with Closed("cpu:1") as machine:
        with pytest.raises(Fault, match="cpu:2 is closed"):
            executor(work, machine).run(np.ones(1))
        assert executor(chain(("cpu:1", np.sin, (0,), 1)), machine).run(np.zeros(1))[0].tolist() == [0.0]


def test_a_part_knows_that_it_is_one(pools):
    seen = []

    def look(x):
        seen.append(within())
        return x

    executor(chain(("cpu:1", look, (0,), 1), ("cpu:0", look, (1,), 2)), pools).run(np.ones(1))
    assert seen == [True, True]
    assert not within()


def test_long_plans_are_several_functions(pools):
    names = ("cpu:0", "cpu:1")
    calls = [(names[i % 7 == 3], np.cos, (i,), i + 1) for i in range(700)]
    (out,) = executor(chain(*calls), pools).run(np.ones(1))
    expected = np.ones(1)
    for _ in range(700):
        expected = np.cos(expected)
    assert out.tolist() == expected.tolist()


def test_values_are_let_go_when_they_have_been_read(pools):
    class Counted(np.ndarray):
        alive = 0

        def __array_finalize__(self, parent):
            type(self).alive += 1

        def __del__(self):
            type(self).alive -= 1

    most = []

    def step(x):
        most.append(Counted.alive)
        return x + 1.0

    names = ("cpu:0", "cpu:1")
    calls = [(names[i % 2], step, (i,), i + 1) for i in range(50)]
    (out,) = executor(chain(*calls), pools).run(np.zeros(1).view(Counted))
    assert out[0] == 50.0
    assert max(most) < 8
