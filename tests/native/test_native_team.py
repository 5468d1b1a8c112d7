"""The thread team: every piece once, nothing shared twice, forks, exits, scopes; results are those of one thread."""

import ctypes
import os
import subprocess
import sys
import threading

import numpy as np
import pytest

import tenferro_cpu
from native_kernels import one_op, values
from reduced_entries import by_rows
from tenferro_cpu.native import available, engine
from tenferro_tensor.catalog import analytic, arithmetic

pytestmark = pytest.mark.skipif(not available(), reason="native kernels are off")

# Counts in word p how often piece p ran; `nested` posts a job from within a piece.
KERNELS = """
define void @mark(ptr %context, i64 %piece) {
  %place = getelementptr i64, ptr %context, i64 %piece
  %old = atomicrmw add ptr %place, i64 1 monotonic
  ret void
}
define void @nested(ptr %context, i64 %piece) {
  %row = mul i64 %piece, 8
  %place = getelementptr i64, ptr %context, i64 %row
  call void @tenferro_parallel_for(ptr @mark, ptr %place, i64 8, i64 4)
  ret void
}
declare void @tenferro_parallel_for(ptr, ptr, i64, i64)
"""


@pytest.fixture
def crew(monkeypatch):
    """The team, made to believe in four cores."""
    from tenferro_cpu.native.threads._team import team

    have = team()
    before = {name: have._get(name) for name in ("cores", "allowed")}
    for name in before:
        have._set(name, 4)
    yield have
    for name, value in before.items():
        have._set(name, value)
    assert have._get("busy") == have._get("callers") == have._get("gate") == 0


@pytest.fixture
def marks(crew):
    return engine().functions(KERNELS, ("mark", "nested"), crew.symbols)


def run(crew, kernel, pieces, most, words=None):
    crew._set("rest", 0)  # other programs may have the cores while tests run
    counts = np.zeros(words or pieces, np.int64)
    crew.run(kernel, counts.ctypes.data, pieces, most)
    return counts


@pytest.mark.parametrize("pieces", [0, 1, 2, 7, 1000])
@pytest.mark.parametrize("most", [-1, 0, 1, 2, 3, 100])
def test_every_piece_runs_once(crew, marks, pieces, most):
    for _ in range(20):
        assert (run(crew, marks[0], pieces, most, max(pieces, 1))[:pieces] == 1).all()


def test_a_job_within_a_job_runs_where_it_is(crew, marks):
    assert (run(crew, marks[1], 50, 4, 400) == 1).all()


def test_many_python_threads_at_once(crew, marks):
    wrong = []

    def work():
        for _ in range(300):
            if (run(crew, marks[0], 37, 4) != 1).any():
                wrong.append(1)

    threads = [threading.Thread(target=work) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_callers_count_as_cores(crew, marks):
    """Where every core has a Python thread in such a call, nobody is helped."""
    crew._set("callers", 3)
    before = crew.stats()["jobs"]
    run(crew, marks[0], 10, 4)
    crew._set("callers", 0)
    assert crew.stats()["jobs"] == before
    run(crew, marks[0], 10, 4)
    assert crew.stats()["jobs"] == before + 1


def test_where_cores_are_busy_the_next_jobs_run_where_they_are(crew, marks):
    run(crew, marks[0], 10, 4)
    crew._set("rest", 5)
    before, counts = crew.stats()["jobs"], np.zeros(10, np.int64)
    for _ in range(5):
        crew.run(marks[0], counts.ctypes.data, 10, 4)
    assert crew.stats()["jobs"] == before and (counts == 5).all()
    crew.run(marks[0], counts.ctypes.data, 10, 4)
    assert crew.stats()["jobs"] == before + 1


def test_scopes_bound_the_team(crew, marks):
    allowed = ctypes.PYFUNCTYPE(ctypes.c_int64)(crew.symbols["tenferro_allowed"])
    assert allowed() == crew.threads == 4
    with tenferro_cpu.threads(1):
        assert allowed() == crew.threads == 1
    assert allowed() == 4


def test_workers_end_and_come_back(crew, marks):
    run(crew, marks[0], 10, 3)
    assert crew.stats()["workers"] >= 2
    crew.stop()
    assert crew.stats()["workers"] == 0
    assert (run(crew, marks[0], 10, 3) == 1).all() and crew.stats()["workers"] == 0
    crew._resume()
    assert (run(crew, marks[0], 10, 3) == 1).all() and crew.stats()["workers"] == 2


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_forks():
    """Parent and child both compute on, and no worker is left for the fork to warn of."""
    code = """
import os, sys, numpy as np
from tenferro_cpu.native.threads._team import team
from tenferro_tensor import tensor
t = team(); t._set("cores", 4); t._set("allowed", 4)
x = tensor(np.ones(1 << 20)); y = x * x
for _ in range(3):
    pid = os.fork()
    good = bool((x * x).data[-1] == 1.0) and t.stats()["workers"] <= 3
    if pid == 0:
        os._exit(0 if good else 1)
    assert os.waitpid(pid, 0)[1] == 0 and good
"""
    done = subprocess.run([sys.executable, "-W", "error", "-c", code], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr


def test_the_process_ends_while_workers_wait_and_daemons_compute():
    code = """
import threading, numpy as np
from tenferro_cpu.native.threads._team import team
from tenferro_tensor import tensor
t = team(); t._set("cores", 4); t._set("allowed", 4)
x = tensor(np.ones(1 << 20))
def forever():
    while True:
        x * x
threading.Thread(target=forever, daemon=True).start()
for _ in range(20):
    x * x
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr


def test_the_variable_of_numerical_libraries_is_read(monkeypatch):
    from tenferro_cpu.native.threads._team import THREADS_VARIABLE, chosen
    from tenferro_cpu.native.threads._threads import usable_cores

    for text, expected in (("1", 1), ("1,2", 1), ("", usable_cores()), ("0", usable_cores()), ("x", usable_cores())):
        monkeypatch.setenv(THREADS_VARIABLE, text)
        assert chosen() == expected


@pytest.mark.parametrize("shape", [(300_001,), (7, 60_000), (600, 700), (3, 200, 401)])
def test_element_wise_results_do_not_depend_on_the_threads(crew, shape):
    rng = np.random.default_rng(1)
    kernel = one_op(analytic.atan2.op(), "float64", "float64")
    x, y = rng.standard_normal((2, *shape))
    layouts = [(x, y), (x, y[..., :1]), (x.T, y.T), (x[..., ::-1], y)]
    for run in (kernel, kernel.entry()):
        for xs in layouts:
            with tenferro_cpu.threads(1):
                alone = run(*xs)
            np.testing.assert_array_equal(run(*xs), alone)
            np.testing.assert_allclose(alone, np.arctan2(*xs), rtol=1e-14)


@pytest.mark.parametrize("kind", ["sum", "prod", "max"])
@pytest.mark.parametrize(
    ("shape", "axes"),
    [
        ((1_000_003,), (0,)),
        ((3, 300_000), (1,)),
        ((400_000, 3), (0,)),
        ((900, 700), (1,)),
        ((900, 700), (0,)),
        ((5, 70_000, 3), (0, 1)),
        ((2, 1 << 20), (1,)),
        ((2, (1 << 20) + 1), (1,)),
        ((2, 900_001), (1,)),
        ((9, 900_000), (1,)),
        ((64, 30_000), (1,)),
        ((40, 9, 1000), (0, 2)),
    ],
    ids=str,
)
def test_reductions_do_not_depend_on_the_threads(crew, monkeypatch, kind, shape, axes):
    from native_rooms import Reduced
    from tenferro_cpu.native.kernels._fused_entry import long_row

    kernel = Reduced(kind, np.dtype("float64"))
    monkeypatch.setattr(Reduced, "cost", 1.0)
    assert long_row(kernel.cost) < 900_000, "the shapes have long rows"
    x = np.exp(values(np.random.default_rng(2), "float64", shape) * (1e-4 if kind == "prod" else 1.0))
    with tenferro_cpu.threads(1):
        alone = kernel(x, axes=axes)
    for most in (2, 3, 4):
        with tenferro_cpu.threads(most):
            np.testing.assert_array_equal(kernel(x, axes=axes), alone)
    np.testing.assert_allclose(alone, getattr(np, kind)(x, axis=axes), rtol=1e-10)
    if axes == (x.ndim - 1,):
        np.testing.assert_array_equal(by_rows(kernel)(x), alone)


def test_sums_of_long_rows_stay_accurate(crew):
    from native_rooms import Reduced

    kernel = Reduced("sum", np.dtype("float32"))
    x = np.random.default_rng(3).random(5_000_001, dtype=np.float32)
    exact = float(np.sum(x, dtype=np.float64))
    assert abs(float(kernel(x, axes=(0,))) - exact) <= 2 * np.spacing(np.float32(exact))


LAYOUTS = [
    ((1024, 1031), (1, 0)),
    ((64, 65, 300), (2, 0, 1)),
    ((130, 64, 200), (1, 0, 2)),
    ((2,) * 21, tuple(range(20, -1, -1))),
    ((3,) * 13, tuple(range(12, -1, -1))),
    ((700_001, 3), (1, 0)),
    ((3, 700_001), (1, 0)),
    ((3, 500_001), (0, 1)),
    ((5, 7, 90_011), (1, 0, 2)),
]


@pytest.mark.parametrize(("shape", "order"), LAYOUTS, ids=str)
@pytest.mark.parametrize("dtype", ["float64", "int16", "complex128"])
def test_copies_are_cut_without_gap_or_overlap(crew, shape, order, dtype):
    from tenferro_cpu.native.copying._copy import copy_into

    x = np.arange(np.prod(shape)).astype(dtype).reshape(shape).transpose(order)
    buffer = np.full(x.nbytes + 256, 0xA5, np.uint8)
    start = -buffer.ctypes.data % 64 + 64
    target = buffer[start : start + x.nbytes].view(dtype).reshape(x.shape)
    before = crew.stats()["jobs"]
    crew._set("rest", 0)
    copy_into(target, x[..., ::-1][..., ::-1])
    np.testing.assert_array_equal(target, x)
    assert (buffer[:start] == 0xA5).all() and (buffer[start + x.nbytes :] == 0xA5).all()
    assert crew.stats()["jobs"] > before or x.nbytes < 1 << 20
    with tenferro_cpu.threads(1):
        copy_into(target, np.zeros_like(x))
        copy_into(target, x)
    np.testing.assert_array_equal(target, x)


def test_many_shared_calls_leak_nothing(crew):
    import gc

    run = one_op(analytic.exp.op(), "float64").entry()
    x = np.zeros(40_000)
    run(x)
    gc.collect()
    count = sys.getrefcount(x.dtype)
    for _ in range(400):
        run(x)
    gc.collect()
    assert abs(sys.getrefcount(x.dtype) - count) < 10


LARGE = 300_000


@pytest.mark.parametrize("dtype", ["float64", "float32", "complex128", "int64", "bool"])
def test_eager_results_do_not_depend_on_the_threads(crew, dtype):
    from tenferro_tensor import catalog, tensor

    rng = np.random.default_rng(4)
    x, y = values(rng, dtype, LARGE), values(rng, dtype, LARGE)
    number = x[5].item()
    for a, b in ((x, y), (x, number), (number, y), (x[:7], y[:7]), (x[::2], y[::2])):
        a, b = (tensor(v) if isinstance(v, np.ndarray) else v for v in (a, b))
        with tenferro_cpu.threads(1):
            alone = catalog.mul(a, b).data
        before = crew.stats()["jobs"]
        crew._set("rest", 0)
        np.testing.assert_array_equal(catalog.mul(a, b).data, alone)
        assert crew.stats()["jobs"] > before or alone.size < LARGE or dtype == "bool"


def test_results_beyond_the_caches_are_those_of_small_ones(crew, monkeypatch):
    """Stores past the caches, of arrays, of an array and a number, and into memory of any alignment."""
    from tenferro_cpu.native.eager import _eager
    from tenferro_tensor import Spec
    from tenferro_tensor.reference import kernels

    reference = kernels(np, lambda: None)[arithmetic.sub]
    n = engine().host.cache_bytes // 16 + 1001
    x, y = np.random.default_rng(5).random((2, n))
    spec = Spec((n,), np.dtype("float64"))
    run = _eager.entries({arithmetic.sub: reference})[arithmetic.sub]((spec, spec), (spec,))
    for a, b in ((x, y), (x, 2.5), (2.5, y)):
        np.testing.assert_array_equal(run(a, b), np.subtract(a, b))
    raw = np.zeros(8 * n + 128, np.uint8)
    for offset in (0, 8, 16):
        raw[:] = 0
        start = -raw.ctypes.data % 64 + offset
        out = raw[start : start + 8 * n].view("float64")
        assert run(x, y, out) is out
        np.testing.assert_array_equal(out, x - y)
        assert not raw[:start].any() and not raw[start + 8 * n :].any()


def test_what_happens_in_a_worker_is_warned_of(crew):
    """The floating-point status belongs to a thread; every piece reports its own."""
    from tenferro_tensor import catalog, tensor

    for place in (0, LARGE // 2, LARGE - 1):
        x = np.ones(LARGE)
        x[place] = 0.0
        with pytest.warns(RuntimeWarning, match="divide by zero"):
            catalog.div(tensor(np.ones(LARGE)), tensor(x))
        x[place] = -1.0
        with pytest.warns(RuntimeWarning, match="invalid value"):
            catalog.log(tensor(x))
    catalog.div(tensor(np.ones(LARGE)), tensor(np.ones(LARGE)))  # and nothing is left over
