"""Executors that break, fall silent, are shut down or interrupted: typed errors, nothing left behind, equal bits."""

import os
import subprocess
import sys
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

import einsum_tasks
import tenferro_runtime as tr
from tenferro_ad import grad
from tenferro_einsum import WorkerError, plan, run_on
from tenferro_einsum import _jobs as jobs
from tenferro_einsum import _workers as workers
from tenferro_einsum._slices import contract_slices
from tenferro_tensor_core import ArgumentError

XS = [tr.asarray(np.random.default_rng(seed).standard_normal((6, 6, 3))) for seed in range(3)]
WHOLE = plan("abi,bcj,cak->ijk", *XS)
CUT = contract_slices.op(inputs=WHOLE._labels, output=WHOLE._output, steps=WHOLE.steps, sliced=((0, 6),))


class Held(Executor):
    """Keeps what it is sent until there are `count` tasks, then does the last one first; cancels the first ones."""

    def __init__(self, count, cancels=0):
        self.count, self.cancels, self.held = count, cancels, []

    def submit(self, fn, /, *args, **options):
        future = Future()
        if self.cancels:
            self.cancels -= 1
            future.cancel()
            return future
        self.held.append((future, fn, args))
        if len(self.held) == self.count:
            for waiting, work, given in reversed(self.held):
                waiting.set_result(work(*given))
        return future


class Silent(Executor):
    """Takes tasks, and is never heard of again."""

    def __init__(self):
        self.futures = []

    def submit(self, fn, /, *args, **options):
        self.futures.append(Future())
        return self.futures[-1]


def test_bits_do_not_depend_on_who_is_faster():
    """One task per slice adds up as here; tasks of several slices in the order of slices."""
    here = np.asarray(CUT(*XS))
    with run_on(Held(6), tasks=6):
        np.testing.assert_array_equal(np.asarray(CUT(*XS)), here)
    with ThreadPoolExecutor(1) as one, run_on(one, tasks=3):
        in_order = np.asarray(CUT(*XS))
    with run_on(Held(3), tasks=3):
        np.testing.assert_array_equal(np.asarray(CUT(*XS)), in_order)
    loss = lambda *xs: tr.sum(CUT(*xs) ** 2)
    gradient = grad(loss, argnums=(0, 1, 2))
    with ThreadPoolExecutor(1) as one, run_on(one, tasks=6):
        want = gradient(*XS)
    for a, b in zip(want, gradient(*XS), strict=True):
        np.testing.assert_array_equal(np.asarray(a), np.asarray(b))


def test_cancelled_tasks_are_sent_again():
    here = np.asarray(CUT(*XS))
    with run_on(Held(6, cancels=2), tasks=6, retries=2):
        np.testing.assert_array_equal(np.asarray(CUT(*XS)), here)
    with (
        run_on(Held(6, cancels=100), tasks=2, retries=1),
        pytest.raises(
            WorkerError,
            match=r"task 0 of 2, slices 0 to 2 of 6, failed 2 time\(s\), most recently with CancelledError: somebody "
            r"cancelled it; failed before: slices 3 to 5 of 6 1 time\(s\); see the worker's log",
        ) as caught,
    ):
        CUT(*XS)
    assert caught.value.payload == {"task": 0, "failures": 2}


@pytest.mark.parametrize("part", [0.5, 0.003], ids=["in one wait", "in several"])
def test_a_silent_executor_is_given_up_or_replaced(monkeypatch, part):
    monkeypatch.setattr(workers, "_POLL_INTERVAL", part)
    silent = Silent()
    with (
        run_on(silent, tasks=6, timeout=0.01),
        pytest.raises(
            WorkerError, match="slice 0 of 6, failed .* no task has ended for 0.01 seconds; pass run_on a fun"
        ),
    ):
        CUT(*XS)
    assert all(future.cancelled() for future in silent.futures)
    made = []

    def make():
        made.append(ThreadPoolExecutor(1) if made else Silent())
        return made[-1]

    with run_on(make, tasks=2, timeout=0.2, retries=1000):  # a busy machine may be silent longer, a few times
        np.testing.assert_allclose(np.asarray(CUT(*XS)), np.asarray(WHOLE(*XS)))
    assert len(made) > 1
    assert all(future.cancelled() for future in made[0].futures)


@pytest.mark.parametrize(
    ("given", "text"),
    [
        ({"timeout": 0}, "timeout as a positive number of seconds, got 0; None sets no limit"),
        ({"timeout": "5"}, "timeout as a positive number of seconds, got '5'"),
        ({"timeout": float("nan")}, "timeout as a positive number of seconds, got nan"),
        ({"tasks": 2.5}, "whole numbers, tasks of at least 1 and retries of at least 0, got 2.5 and 2"),
        ({"retries": "1"}, "whole numbers, tasks of at least 1 and retries of at least 0, got 32 and '1'"),
        ({"progress": "yes"}, "run_on takes progress as a bool or a function, got 'yes'"),
    ],
)
def test_mistakes_are_told_before_anything_is_sent(given, text):
    with pytest.raises(ArgumentError, match=text), run_on(Silent(), **given):
        raise AssertionError("the block was entered")


def test_any_kind_of_number_is_a_timeout():
    """Fractions too, in the error as well, and no end of time."""
    text = "no task has ended for 0.01 seconds"
    with run_on(Silent(), timeout=Fraction(1, 100)), pytest.raises(WorkerError, match=text):  # type: ignore[arg-type]
        CUT(*XS)
    with run_on(Held(6), tasks=np.int64(6), timeout=float("inf")):  # type: ignore[arg-type]
        np.testing.assert_allclose(np.asarray(CUT(*XS)), np.asarray(WHOLE(*XS)))


def test_an_executor_that_gives_one_future_for_two_tasks_is_told():
    """Results would lack slices."""

    class Same(Silent):
        def submit(self, fn, /, *args, **options):
            return self.futures[0] if self.futures else super().submit(fn, *args)

    text = "the same future for two tasks, slices 0 to 1 of 6 and slices 2 to 3 of 6"
    with run_on(Same(), tasks=3), pytest.raises(WorkerError, match=text):
        CUT(*XS)


def test_an_executor_that_is_shut_down_is_told():
    pool = ThreadPoolExecutor(1)
    pool.shutdown()
    text = "refused task 0 of 2, slices 0 to 2 of 6: cannot schedule new futures after shutdown; leave the block of"
    with run_on(pool, tasks=2), pytest.raises(WorkerError, match=text):
        CUT(*XS)
    pool = ThreadPoolExecutor(1)
    stop = lambda part, count: pool.shutdown(wait=False, cancel_futures=True)
    here = np.asarray(CUT(*XS))
    with run_on(pool, tasks=6, progress=stop):
        try:  # the others are cancelled, if they were not done already
            np.testing.assert_array_equal(np.asarray(CUT(*XS)), here)
        except WorkerError as error:
            assert "cannot schedule new futures after shutdown" in str(error)


def test_errors_name_slices(monkeypatch):
    monkeypatch.setattr(jobs, "work", einsum_tasks.failing)
    with (
        ThreadPoolExecutor(1) as pool,
        run_on(pool, tasks=6, retries=0),
        pytest.raises(WorkerError, match="slice 0 of 6"),
    ):
        CUT(*XS)


def test_a_bar_is_drawn(capsys):
    pytest.importorskip("tqdm")
    with run_on(Held(3), tasks=3, progress=True):
        CUT(*XS)
    drawn = capsys.readouterr().err
    assert "einsum 100% |" in drawn
    assert drawn.rstrip().endswith("3")


INTERRUPTED = """
import faulthandler, queue, signal, sys, threading
signal.signal(signal.SIGINT, signal.default_int_handler)  # whoever runs the tests in the background ignores it
import test_einsum_workers as tests
from concurrent.futures import ThreadPoolExecutor
from tenferro_einsum import run_on, _jobs as jobs, _workers as workers

faulthandler.dump_traceback_later(30, exit=True)
work, ran, pools, waits, stopped = jobs.work, [], [], threading.Event(), threading.Event()

class Ended(queue.SimpleQueue):
    def get(self, **limit):
        waits.set()
        return super().get(**limit)

def interrupting(*args):
    ran.append(args)
    waits.wait()
    INTERRUPT
    stopped.wait()
    return work(*args)

def make():
    pools.append(ThreadPoolExecutor(1, "worker"))
    return pools[-1]

jobs.work, workers.SimpleQueue = interrupting, Ended
try:
    with run_on(make, tasks=6):
        tests.CUT(*tests.XS)
except KeyboardInterrupt as error:
    seen = error  # its traceback keeps frames alive
    stopped.set()
for thread in threading.enumerate():
    if thread.name.startswith("worker"):
        thread.join()
print(len(ran), len(pools))
"""


@pytest.mark.parametrize(
    "interrupt",
    [
        pytest.param("signal.raise_signal(signal.SIGINT)", id="does not wake"),
        pytest.param(
            "signal.pthread_kill(threading.main_thread().ident, signal.SIGINT)",
            id="wakes",
            marks=pytest.mark.skipif(sys.platform == "win32", reason="no signals to threads"),
        ),
    ],
)
def test_an_interrupt_cancels_what_has_not_begun_and_leaves_no_threads(interrupt):
    """Whether the signal arrives in the thread that waits or in another one."""
    found = subprocess.run(
        [sys.executable, "-c", INTERRUPTED.replace("INTERRUPT", interrupt)],
        capture_output=True, text=True, timeout=90, check=False,
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(Path(__file__).parent), *sys.path])},
    )  # fmt: skip
    assert (found.returncode, found.stdout.strip()) == (0, "1 1"), found.stderr
