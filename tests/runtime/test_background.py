"""Work in the background: it goes on after failures and forks, and never holds up the end of the process."""

import gc
import logging
import os
import subprocess
import sys
import threading
from collections.abc import Callable
from typing import Any

import pytest

from runtime_rooms import COMPILING, Background
from tenferro_runtime.running.rendering._tiers import CALLS_BEFORE_COMPILING, Tiered

pytestmark = pytest.mark.background

WORK = """
import os, sys
import numpy as np
import tenferro_runtime as tr
from tenferro_runtime.running import fusion

x = tr.asarray(np.linspace(0, 1, 50))
used = []  # what nobody uses any more is not compiled
def work(offset):
    for i in range(12):
        f = tr.compile(lambda x, c=float(i + offset): tr.tanh(x * c + 0.5) - tr.exp(x) * c)
        used.append(f)
        for _ in range(3):
            assert np.allclose(f(x).data, np.tanh(x.data * (i + offset) + 0.5) - np.exp(x.data) * (i + offset))
work(0)
"""


def run(text: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, timeout=120, check=False)


def test_a_failing_job_is_logged_and_the_next_one_done(caplog: pytest.LogCaptureFixture) -> None:
    done = threading.Event()
    background = Background("test")
    with caplog.at_level(logging.ERROR, "tenferro"):
        background.submit(lambda: 1 / 0)
        background.submit(done.set)
        assert done.wait(30)
    assert "ZeroDivisionError" in caplog.text and "continue without its result" in caplog.text


def test_jobs_beyond_the_bound_are_dropped_oldest_first() -> None:
    background, go, done = Background("test", bound=2), threading.Event(), []
    started = threading.Event()
    background.submit(lambda: (started.set(), go.wait(30)))
    assert started.wait(30)
    for i in range(4):
        background.submit(lambda i=i: done.append(i))  # type: ignore[misc]
    go.set()
    background.drain()
    assert done == [2, 3]


def test_the_process_ends_while_kernels_are_compiled() -> None:
    found = run(WORK)
    assert found.returncode == 0 and not found.stderr


@pytest.mark.skipif(not hasattr(os, "fork"), reason="the system has no fork")
def test_a_child_of_a_fork_goes_on() -> None:
    text = WORK + "\npid = os.fork()\nwork(100)\nfusion.wait()\nwork(200)\n"
    text += "if pid:\n    assert os.waitpid(pid, 0)[1] == 0\n    print(fusion.kernel_stats()['waiting'])\n"
    found = run("import warnings\nwarnings.simplefilter('ignore', DeprecationWarning)\n" + text)
    assert found.returncode == 0 and not found.stderr and found.stdout.strip().isdigit()


def test_a_kernel_is_built_once_with_the_second_call_and_everybody_is_told() -> None:
    built: list[int] = []
    told: list[object] = []
    first, fast = lambda x: x, lambda x: -x
    kernel = Tiered(first, lambda: built.append(1) or fast)
    kernel.on_faster(told.append)
    for _ in range(CALLS_BEFORE_COMPILING - 1):
        assert kernel(1) == 1 and kernel.state == "waiting"
    kernel(1)
    kernel.build()
    assert built == [1] and told == [first, fast] and kernel(1) == -1 and kernel.state == "native"
    kernel.on_faster(told.append)
    assert told == [first, fast, fast]


def test_without_a_kernel_or_after_a_failure_the_first_form_stays() -> None:
    builds: list[Callable[[], Any]] = [lambda: None, lambda: 1 / 0]
    for build in builds:
        told: list[object] = []
        first = lambda x: x
        kernel = Tiered(first, build)
        kernel.on_faster(told.append)
        try:
            kernel.build()
        except ZeroDivisionError:
            pass
        assert told == [first] and kernel.state == "step by step" and kernel.run is first


def test_machine_code_switched_off_leaves_everything_in_steps() -> None:
    text = "import os\nos.environ['TENFERRO_CPU_JIT'] = '0'\n" + WORK
    text += "fusion.wait()\nprint(fusion.kernel_stats())\n"
    found = run(text)
    assert found.returncode == 0 and "'native': 0" in found.stdout, found.stderr


def test_a_kernel_whose_program_is_gone_is_not_built() -> None:
    made: list[str] = []

    def tiered(name: str) -> Tiered:
        kernel = Tiered(abs, lambda: made.append(name))
        assert [kernel(-1), kernel(-2)] == [1, 2]
        return kernel

    COMPILING.drain()
    with COMPILING._busy:  # the thread waits
        kept = tiered("kept")
        tiered("gone")
        gc.collect()
    COMPILING.drain()
    assert made == ["kept"] and kept(-3) == 3
