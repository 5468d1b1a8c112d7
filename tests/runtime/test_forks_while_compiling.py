"""Children of a fork never hang, whatever other threads compile at that moment, and everything works in them."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

import machine_code
from thorough import tries

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="the system has no fork")

WORK = """
import faulthandler, os, random, signal, sys, threading, time, traceback, warnings
warnings.simplefilter("ignore", DeprecationWarning)  # that a process with threads forks is the point
import machine_code
import numpy as np
import tenferro_ad as ad
import tenferro_einsum as te
import tenferro_runtime as tr
from tenferro_runtime.running import fusion

machine_code.install()
FUNCTIONS = [tr.exp, tr.sin, tr.tanh, tr.cosh, tr.cos, tr.log1p, tr.sinh, tr.atan]
COMPILED = [0] * 4
STOP = threading.Event()

def compiling(k):
    chance = random.Random(k)
    while not STOP.is_set():
        f, g, h = chance.sample(FUNCTIONS, 3)
        a, b = chance.random(), chance.random()
        run = tr.compile(lambda x: f(g(x) * a + h(x)) * b)
        x = tr.ones((chance.randrange(2, 9), 5))
        for _ in range(3):
            run(x)
        fusion.wait()
        te.einsum("ij,jk->ik", x, tr.ones((5, chance.randrange(2, 9))))
        COMPILED[k] += 1

def everything():
    chance = random.Random(os.getpid())
    a, b = chance.random(), chance.random()
    raw = np.linspace(0.0, 1.0, chance.randrange(20, 40))
    x = tr.asarray(raw)
    f, g = chance.sample([(tr.exp, np.exp), (tr.sinh, np.sinh), (tr.cbrt, np.cbrt), (tr.asinh, np.arcsinh)], 2)
    assert np.allclose(np.asarray(f[0](x) * 2 + x), f[1](raw) * 2 + raw)
    run = tr.compile(lambda v: f[0](v) * a + g[0](v) * b)
    for _ in range(3):
        assert np.allclose(np.asarray(run(x)), f[1](raw) * a + g[1](raw) * b)
    m = tr.reshape(x[:20], (4, 5))
    assert np.allclose(np.asarray(te.einsum("ij,kj->ik", m, m)), np.asarray(m) @ np.asarray(m).T)
    slope = ad.grad(lambda v: (tr.exp(v) * v * a).sum())(x)
    assert np.allclose(np.asarray(slope), np.exp(raw) * (1 + raw) * a)

faulthandler.register(signal.SIGALRM, chain=True)  # a child that hangs says where, and ends

def child(work=everything):
    machine_code.optimise(False)  # what the threads of the parent compile is optimised
    signal.alarm(60)
    try:
        work()
    except BaseException:
        traceback.print_exc()
        os._exit(3)
    os._exit(0)

def require(pid):
    assert os.waitpid(pid, 0)[1] == 0, "a child failed"

def fork(work=everything):
    pid = os.fork()
    if not pid:
        child(work)
    require(pid)

threads = [threading.Thread(target=compiling, args=(k,), daemon=True) for k in range(4)]
for t in threads:
    t.start()
"""

END = "STOP.set()\nfor t in threads:\n    t.join()\nassert all(COMPILED), COMPILED\nprint('done')\n"


def run(text: str, folder: Path) -> None:
    # Everything is compiled anew.
    environment = {
        **os.environ,
        "TENFERRO_CACHE_DIR": str(folder),
        "PYTHONPATH": str(Path(machine_code.__file__).parent),
    }
    command = [sys.executable, "-c", WORK + text + END]
    found = subprocess.run(command, capture_output=True, text=True, timeout=400, env=environment, check=False)
    assert found.returncode == 0 and found.stdout.split()[-1] == "done", found.stdout + found.stderr


def test_children_work_while_four_threads_compile(tmp_path: Path) -> None:
    run(f"for _ in range({tries(12, 48)}):\n    fork()\n", tmp_path)


def test_children_of_the_first_moments_work(tmp_path: Path) -> None:
    """Threads are in the midst of the imports that the first operations bring."""
    run("for k in range(6):\n    fork()\n    time.sleep(0.02 * k)\n", tmp_path)


def test_threads_and_grandchildren_fork(tmp_path: Path) -> None:
    text = """
failed = []
def forking():
    try:
        for _ in range(3):
            fork(lambda: (everything(), fork()))
    except BaseException as error:
        failed.append(error)
several = [threading.Thread(target=forking) for _ in range(2)]
for t in several:
    t.start()
for t in several:
    t.join()
assert not failed, failed
"""
    run(text, tmp_path)


def test_functions_that_are_traced_fork(tmp_path: Path) -> None:
    """Locks that the forking thread itself holds stay its own in the child."""
    text = """
for _ in range(4):
    pids = []
    def forks(v):
        pids.append(os.fork())
        if not pids[0]:
            signal.alarm(60)
        return tr.sin(v) * 2
    x = tr.linspace(0.0, 1.0, 9)
    y = tr.compile(forks)(x)
    assert np.allclose(np.asarray(y), np.sin(np.asarray(x)) * 2)
    if not pids[0]:
        child()
    require(pids[0])
"""
    run(text, tmp_path)


def test_jobs_in_the_background_fork(tmp_path: Path) -> None:
    text = """
from tenferro_runtime.running.rendering._background import COMPILING
done = []
for _ in range(4):
    COMPILING.submit(lambda: (fork(), done.append(1)))
COMPILING.drain()
assert len(done) == 4
"""
    run(text, tmp_path)


def test_finalizers_fork(tmp_path: Path) -> None:
    """Collection may run inside of any critical section."""
    text = """
import gc
done = []
class Forks:
    def __del__(self):
        fork()
        done.append(1)
for _ in range(4):
    cycle = [Forks()]
    cycle.append(cycle)
    del cycle
    gc.collect()
assert len(done) == 4
"""
    run(text, tmp_path)


def test_processes_of_a_pool_work(tmp_path: Path) -> None:
    text = """
import multiprocessing
def main(_):
    everything()
    return os.getpid()
with multiprocessing.get_context("fork").Pool(3) as pool:
    assert os.getpid() not in pool.map_async(main, range(9)).get(timeout=200)
"""
    run(text, tmp_path)
