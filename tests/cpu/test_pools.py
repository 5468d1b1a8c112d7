"""CPU pools: where their work runs, on which cores and with which memory, and what closing, errors and forks do."""

import gc
import os
import subprocess
import sys
import threading
import weakref
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tenferro_cpu
import tenferro_runtime as tr
from tenferro_ad import grad, value_and_grad
from tenferro_cpu import CpuContext, CpuPool, open_pools
from tenferro_cpu.native.threads._threads import limit
from tenferro_cpu.pools._thread import PoolThread
from tenferro_tensor import Backend, ComputeDevice, clear_plans, compute_context, get_backend, tensor
from tenferro_tensor_core import ArgumentError, PlacementError, UnsupportedError
from thorough import tries

CPU = get_backend("cpu")
CPU0, CPU1, CPU2 = (ComputeDevice(f"cpu:{i}") for i in range(3))
LINUX = pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="only Linux pins threads")


@pytest.fixture
def pool() -> Iterator[CpuPool]:
    with CpuPool(index=1) as opened:
        yield opened


@pytest.fixture
def posts(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Names of the threads that something was posted to."""
    seen: list[str] = []
    post = PoolThread.post

    def counted(self: PoolThread, run: Any) -> bool:
        seen.append(self._thread.name)
        return post(self, run)

    monkeypatch.setattr(PoolThread, "post", counted)
    return seen


def where(pool: CpuPool) -> str:
    found: str = pool.call(lambda: threading.current_thread().name)
    return found


def test_devices_come_and_go() -> None:
    assert CPU.devices() == (CPU0,) and open_pools() == ()
    with CpuPool() as one, CpuPool(index=6) as six, CpuPool() as two:
        assert [p.device for p in open_pools()] == [CPU1, CPU2, ComputeDevice("cpu:6")]
        assert CPU.devices() == (CPU0, one.device, two.device, six.device)
        assert tr.__array_namespace_info__().devices()[: len(CPU.devices())] == CPU.devices()
        assert list(tenferro_cpu.info()["pools"]) == ["cpu:1", "cpu:2", "cpu:6"]
        with pytest.raises(PlacementError, match=r"a pool cpu:6 was requested, but CpuPool\(cpu:6, .* is open; clo"):
            CpuPool(index=6)
        one.close()
        one.close()
        assert CPU.devices() == (CPU0, two.device, six.device) and repr(one).endswith("closed)")
        with CpuPool() as again:
            assert again.device is CPU1, "the lowest number that is free"
    assert CPU.devices() == (CPU0,)


def test_numbers_out_of_range() -> None:
    for numbers in ({"threads": 0}, {"threads": True}, {"threads": 1.5}, {"index": 0}, {"index": -1}):
        with pytest.raises(ArgumentError, match="it is a positive integer; pass 1 or more"):
            CpuPool(**numbers)
    for memory in (-1, "1G"):
        with pytest.raises(ArgumentError, match=r"CpuPool\(memory=.*\): it is an integer; pass 0 or more"):
            CpuPool(memory=memory)  # type: ignore[arg-type]
    with pytest.raises(ArgumentError, match=r"CpuContext\(threads=0\): it is a positive integer; pass 1 or more"):
        CpuContext(threads=0)
    assert open_pools() == ()


@LINUX
def test_the_thread_is_pinned_and_no_other() -> None:
    usable = os.sched_getaffinity(0)
    last = max(usable)
    with CpuPool([last]) as pool, CpuPool() as other:
        assert pool.call(os.sched_getaffinity, 0) == {last} and pool.cpus == {last}
        assert len(other.call(os.sched_getaffinity, 0)) == 1
        assert os.sched_getaffinity(0) == usable
    with pytest.raises(ArgumentError, match=r"on the cores \{100000\}, but this process may use \{.*\}; choose among"):
        CpuPool([100000])
    with pytest.raises(ArgumentError, match=r"on the cores \{\}; give their numbers, at least one"):
        CpuPool([])
    for cores in (2, [[0]]):
        with pytest.raises(ArgumentError, match=r"on the cores .*; give their numbers, as in \{0, 1\}"):
            CpuPool(cores)  # type: ignore[arg-type]


@LINUX
def test_a_thread_that_may_not_be_pinned_works_all_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(thread: int, cpus: Any) -> None:
        raise PermissionError("not in this sandbox")

    done: list[str] = []
    with CpuPool(index=1) as late:
        monkeypatch.setattr(os, "sched_setaffinity", refused)
        with CpuPool(index=2) as pool:
            assert late.cpus is not None and pool.cpus is None
            for each in (late, pool):
                each.submit(lambda: done.append(threading.current_thread().name))
                each.close()
        with pytest.raises(UnsupportedError, match="but this system pins no threads; leave cpus=None"):
            CpuPool([0])
    assert done == ["tenferro cpu:1", "tenferro cpu:2"]


def test_cores_cannot_be_named_where_threads_are_not_pinned(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tenferro_cpu.pools._affinity.PINS", False)
    with pytest.raises(UnsupportedError, match=r"on the cores \{0\}, but this system pins no threads; leave cpus=None"):
        CpuPool([0])
    with CpuPool() as pool:
        assert pool.cpus is None and "any cores" in repr(pool) and where(pool) == "tenferro cpu:1"


def test_operations_run_in_the_pool_s_thread(pool: CpuPool, posts: list[str]) -> None:
    x = tensor([[1.0, 2.0], [3.0, 4.0]])
    y = x.with_compute_device("cpu:1")
    assert not posts, "naming a device moves nothing"
    assert (y @ x + 1.0).tolist() == [[8.0, 11.0], [16.0, 23.0]]
    assert posts == ["tenferro cpu:1"] * 2
    posts.clear()
    assert y.T.tolist() == [[1.0, 3.0], [2.0, 4.0]] and y.T.compute_device is CPU1
    assert not posts, "views are no work"
    with tr.compute_device("cpu:1"):
        x - x
    with compute_context(CpuContext(pool)):
        x * x
    assert posts == ["tenferro cpu:1"] * 2
    (x - x), (x * x)
    assert len(posts) == 2


@settings(max_examples=tries(24, 60), deadline=None)
@given(
    shape=st.lists(st.integers(0, 5), max_size=3).map(tuple),
    dtype=st.sampled_from(["float64", "float32", "complex128", "int32", "bool"]),
    transposed=st.booleans(),
    seed=st.integers(0, 99),
)
def test_results_are_those_of_the_calling_thread(shape: Any, dtype: str, transposed: bool, seed: int) -> None:
    raw = (np.random.default_rng(seed).standard_normal(shape) * 3).astype(dtype)
    raw = raw.T if transposed else raw
    with CpuPool(index=1):
        x, y = tensor(raw), tensor(raw).with_compute_device("cpu:1")
        for f in (
            lambda a: a + a,
            lambda a: tr.sum(a * 2),
            lambda a: tr.where(a != 0, a, 1),
            lambda a: tr.exp(a * 1.0),
        ):
            here, there = f(x), f(y)
            assert there.compute_device is CPU1
            assert here.numpy().tobytes() == there.numpy().tobytes() and here.dtype == there.dtype
        # The same program, compiled: one hand-over, the same bits as in the calling thread.
        g = tr.compile(lambda a: tr.sum(tr.exp(a * 0.1) + a))
        assert g(x).numpy().tobytes() == g(y).numpy().tobytes()


def test_compiled_programs_are_handed_over_whole(pool: CpuPool, posts: list[str]) -> None:
    def f(x: Any, w: Any) -> Any:
        for _ in range(3):
            x = tr.tanh(x @ w) + tr.sum(x, axis=0)
        return tr.sum(x)

    rng = np.random.default_rng(0)
    x, w = tensor(rng.standard_normal((4, 4))), tensor(rng.standard_normal((4, 4)))
    y = x.with_compute_device("cpu:1")
    want = f(x, w)
    compiled = tr.compile(f)
    posts.clear()
    for _ in range(3):
        got = compiled(y, w)
        assert got.compute_device is CPU1
        np.testing.assert_allclose(got.numpy(), want.numpy(), rtol=1e-13)
    assert posts == ["tenferro cpu:1"] * 3
    with tr.compute_device("cpu:1"):
        np.testing.assert_allclose(compiled(x, w).numpy(), want.numpy(), rtol=1e-13)
    assert len(posts) == 4
    assert compiled(x, w).compute_device is None and len(posts) == 4


def test_control_flow_runs_whole_in_the_pool(pool: CpuPool, posts: list[str]) -> None:
    def f(x: Any) -> Any:
        total, rows = tr.scan(lambda c, row: (c + tr.sum(row), c * row), tr.zeros_like(x[0, 0]), x)
        return tr.cond(total > 0, lambda v: v + 1.0, lambda v: v - 1.0, tr.sum(rows))

    x = tensor(np.arange(6.0).reshape(3, 2))
    want = f(x).item()
    y = x.with_compute_device("cpu:1")
    compiled = tr.compile(f)
    assert compiled(y).item() == want
    posts.clear()
    assert compiled(y).item() == want and len(posts) == 1


def test_derivatives_run_where_the_values_live(pool: CpuPool, posts: list[str]) -> None:
    x = tensor(np.linspace(0.1, 1.0, 5))
    y = x.with_compute_device("cpu:1")

    def f(v: Any) -> Any:
        return tr.sum(tr.exp(v) * v)

    want = grad(f)(x)
    assert not posts
    got = grad(f)(y)
    assert got.compute_device is CPU1 and len(posts) >= 4
    np.testing.assert_array_equal(got.numpy(), want.numpy())
    mixed = grad(lambda v: f(v.with_compute_device("cpu:1")) + f(v))(x)
    assert mixed.compute_device is None
    np.testing.assert_allclose(mixed.numpy(), 2 * want.numpy(), rtol=1e-15)
    np.testing.assert_array_equal(tr.compile(value_and_grad(f))(y)[1].numpy(), want.numpy())


def test_work_inside_of_a_pool_runs_inline(pool: CpuPool, posts: list[str]) -> None:
    """A pool that waited for itself, or for one that waits for it, would wait for ever."""
    x = tensor([1.0, 2.0])
    with CpuPool(index=2) as other:
        y, z = x.with_compute_device("cpu:1"), x.with_compute_device("cpu:2")

        def both() -> Any:
            assert threading.current_thread().name == "tenferro cpu:1"
            return (y + y).tolist(), (z * z).tolist(), other.call(lambda: threading.current_thread().name)

        assert pool.call(both) == ([2.0, 4.0], [1.0, 4.0], "tenferro cpu:1")
        assert posts == ["tenferro cpu:1"]
        ran: list[str] = []
        pool.call(lambda: CPU.submit(CPU2, lambda: ran.append(threading.current_thread().name)))
        assert ran == ["tenferro cpu:1"]


def test_pools_used_crosswise_do_not_lock_up(pool: CpuPool) -> None:
    x = tensor(np.ones(100))
    with CpuPool(index=2):
        first, second = x.with_compute_device("cpu:1"), x.with_compute_device("cpu:2")
        sums: list[float] = []

        def work(order: tuple[Any, Any]) -> None:
            for _ in range(50):
                sums.append(sum(tr.sum(v * 2.0).item() for v in order))

        workers = [threading.Thread(target=work, args=((first, second)[:: (-1) ** i],)) for i in range(4)]
        for w in workers:
            w.start()
        for w in workers:
            w.join(60)
        assert not any(w.is_alive() for w in workers) and sums == [400.0] * 200


def test_closures_run_in_the_order_of_posting(pool: CpuPool) -> None:
    ran: list[int] = []
    release = threading.Event()
    CPU.submit(CPU1, release.wait)  # type: ignore[arg-type]
    for i in range(100):
        CPU.submit(CPU1, lambda i=i: ran.append(i))  # type: ignore[misc]
    assert ran == []
    CPU.submit(CPU0, lambda: ran.append(-1))
    assert ran == [-1], "the calling thread carries out what is posted to it at once"
    release.set()
    CPU.synchronize()
    assert ran == [-1, *range(100)]


def test_submit_is_for_host_devices() -> None:
    with pytest.raises(UnsupportedError, match="posted to cuda:0, but only CPU devices have threads"):
        Backend.submit(CPU, ComputeDevice("cuda:0"), lambda: None)
    with pytest.raises(PlacementError, match="cpu:9 was requested, but no such pool was ever opened"):
        CPU.submit(ComputeDevice("cpu:9"), lambda: None)


def test_errors_come_back_and_the_pool_goes_on(pool: CpuPool) -> None:
    def fail() -> None:
        raise ZeroDivisionError("in the pool")

    for _ in range(3):
        with pytest.raises(ZeroDivisionError, match="in the pool") as error:
            pool.call(fail)
        assert "fail" in [entry.name for entry in error.traceback]
    assert where(pool) == "tenferro cpu:1"
    x = tensor([0.0]).with_compute_device("cpu:1")
    with pytest.raises(FloatingPointError), np.errstate(divide="raise"):
        tr.log(x)
    with np.errstate(divide="ignore"):
        assert tr.log(x).tolist() == [-np.inf]


def test_threads_are_limited_by_pool_and_scope() -> None:
    with CpuPool(index=1) as one, CpuPool(index=2, threads=1000) as many:
        assert one.call(limit) == 1
        cores = tenferro_cpu.info()["cores"]
        assert many.threads == cores == many.call(limit)
        with tenferro_cpu.threads(1):
            assert many.call(limit) == 1
        with compute_context(CpuContext(many, threads=1)):
            assert many.call(limit) == 1 == limit()
        assert limit() is None


def test_blas_runs_with_the_pool_s_threads(pool: CpuPool, monkeypatch: pytest.MonkeyPatch) -> None:
    from tenferro_cpu.native.threads import _threads

    asked: list[tuple[int, int]] = []
    real = _threads.arbiter()

    class Chief:
        def enter(self, most: int, allowed: int) -> None:
            asked.append((most, allowed))
            real.enter(most, allowed)

        def leave(self) -> None:
            real.leave()

        def scopes(self, change: int) -> None:
            real.scopes(change)

        def refresh(self) -> None:
            real.refresh()

    monkeypatch.setattr(_threads, "_arbiter", Chief())
    clear_plans()
    x = tensor(np.eye(3)).with_compute_device("cpu:1")
    tr.linalg.cholesky(x)
    clear_plans()
    assert asked and {allowed for _, allowed in asked} == {1}


def test_large_results_come_from_the_pool_s_memory() -> None:
    if tenferro_cpu.memory_pool() is None:
        pytest.skip("without machine code NumPy allocates")
    n = 1 << 18
    with CpuPool(index=1, memory=64 << 20) as pool:
        assert pool.memory is not None and pool.memory.limit == 64 << 20
        x = tensor(np.ones(n))
        y = x.with_compute_device("cpu:1")
        whole = tenferro_cpu.memory_pool().stats()["misses"] + tenferro_cpu.memory_pool().stats()["hits"]
        z = y[::2] + 0.5
        kept = tr.compile(lambda v: tr.cumulative_sum(v) + 1.0)(y)
        now = tenferro_cpu.memory_pool().stats()["misses"] + tenferro_cpu.memory_pool().stats()["hits"]
        assert now == whole and pool.memory.stats()["live"] >= z.numpy().nbytes + kept.numpy().nbytes
        memory = pool.memory
    assert memory.stats()["cached"] == 0
    assert z.numpy()[5] == 1.5 and kept.numpy()[-1] == n + 1.0, "arrays outlive their pool"
    del z
    gc.collect()
    assert memory.stats()["cached"] == 0, "a closed pool keeps nothing"


def test_an_idle_pool_holds_nobody_s_arrays(pool: CpuPool) -> None:
    x = np.ones(10)
    held = weakref.ref(x)
    pool.call(lambda a: None, x)
    pool.synchronize()
    del x
    gc.collect()
    assert held() is None


def test_a_closed_pool_is_an_error_and_not_another_device() -> None:
    with CpuPool(index=1) as pool:
        y = tensor([1.0]).with_compute_device("cpu:1")
        f = tr.compile(lambda v: v * 3.0)
        assert (y + y).tolist() == [2.0] and f(y).tolist() == [3.0]
    text = r"cpu:1 was requested, but that pool is closed; open it with tenferro_cpu.CpuPool\(index=1\), or use"
    for call in (lambda: y + y, lambda: f(y), lambda: CpuContext("cpu:1"), lambda: CPU.submit(CPU1, lambda: None)):
        with pytest.raises(PlacementError, match=text):
            call()
    with pytest.raises(PlacementError, match=r"cpu:1 was requested, but that pool is closed; open a CpuPool again"):
        pool.call(int)
    with CpuPool(index=1):
        assert (y + y).tolist() == [2.0] and f(y).tolist() == [3.0], "plans find the pool that is open now"
    assert y.with_compute_device(None).tolist() == [1.0]


def test_closing_carries_out_what_was_posted() -> None:
    ran: list[int] = []
    pool = CpuPool()
    for i in range(50):
        pool.submit(lambda i=i: ran.append(i))  # type: ignore[misc]
    pool.close()
    assert ran == list(range(50))


def test_waiting_for_a_pool_that_is_being_closed_is_no_error() -> None:
    done: list[str] = []
    release = threading.Event()
    pool = CpuPool()
    pool.submit(lambda: done.append("work") if release.wait(60) else None)
    closing = threading.Thread(target=pool.close)
    closing.start()
    while pool in open_pools():  # until the pool takes no more work
        pass
    waiting = threading.Thread(target=lambda: (pool.synchronize(), done.append("waited")))
    waiting.start()
    release.set()
    for thread in (waiting, closing):
        thread.join(60)
    assert done == ["work", "waited"]
    pool.synchronize()


def test_a_pool_does_not_close_itself(pool: CpuPool) -> None:
    with pytest.raises(PlacementError, match="cannot be closed by work that runs in a pool"):
        pool.call(pool.close)


def test_closing_under_load_answers_everybody() -> None:
    """Each call either has its result or the typed error; none waits for a thread that has ended."""
    for _ in range(10):
        pool = CpuPool()
        answers: list[str] = []

        def ask(pool: CpuPool = pool, answers: list[str] = answers) -> None:
            for _ in range(30):
                try:
                    answers.append(str(pool.call(lambda: 1)))
                except PlacementError:
                    answers.append("closed")

        workers = [threading.Thread(target=ask) for _ in range(3)]
        for w in workers:
            w.start()
        pool.close()
        for w in workers:
            w.join(60)
        assert not any(w.is_alive() for w in workers)
        assert len(answers) == 90 and set(answers) <= {"1", "closed"}


def test_contexts() -> None:
    with CpuPool(index=1) as pool:
        assert CpuContext(pool).device is CpuContext(1).device is CpuContext("cpu:1").device is CPU1
        assert CpuContext.for_device(1) is CpuContext.for_device(1)
        assert repr(CpuContext(pool, threads=1)) == "CpuContext('cpu:1', threads=1)"
        with compute_context(CpuContext.for_device(1)) as context:
            assert context.device is CPU1
            assert tr.explain_dispatch(lambda: tensor([1.0]) + 1).steps[0].device == "cpu:1"
    with pytest.raises(PlacementError, match="that pool is closed"):
        CpuContext.for_device(1)


FORKED = """
import os, sys
import tenferro_runtime as tr
from tenferro_cpu import CpuPool, open_pools
from tenferro_tensor_core import PlacementError
pool = CpuPool(index=1)
y = tr.asarray([1.0, 2.0]).with_compute_device("cpu:1")
assert (y + y).tolist() == [2.0, 4.0]
child = os.fork()
if child == 0:
    try:
        assert open_pools() == ()
        for call in (lambda: y + y, lambda: pool.call(int)):
            try:
                call()
            except PlacementError as error:
                assert "its thread did not survive the fork of the process" in str(error), error
            else:
                raise AssertionError("no error")
        with CpuPool(index=1):
            assert (y + y).tolist() == [2.0, 4.0]
    except BaseException as error:
        print(repr(error), flush=True)
        os._exit(1)
    os._exit(0)
assert os.waitpid(child, 0)[1] == 0
assert (y + y).tolist() == [2.0, 4.0]
print("both")
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_a_pool_does_not_survive_a_fork() -> None:
    done = subprocess.run([sys.executable, "-W", "ignore", "-c", FORKED], capture_output=True, text=True, timeout=120)
    assert (done.stdout, done.returncode) == ("both\n", 0), done.stdout + done.stderr


def test_a_process_with_an_open_pool_ends() -> None:
    code = "import tenferro_cpu; p = tenferro_cpu.CpuPool(); p.submit(lambda: print('ran')); print(p.call(lambda: 1))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120)
    assert (done.stdout, done.stderr, done.returncode) == ("ran\n1\n", "", 0)


@pytest.mark.slow
def test_stress_of_threads_scopes_and_pools() -> None:
    """Eager calls, programs and gradients of many threads on pools that open and close: right, or the typed error."""
    rng = np.random.default_rng(0)
    x = tensor(rng.standard_normal(64))
    f = tr.compile(lambda v: tr.sum(tr.exp(v) * v))
    want, slope = f(x).item(), grad(f)(x).numpy()
    wrong: list[Any] = []
    stop = threading.Event()

    def work(seed: int) -> None:
        choose = np.random.default_rng(seed)
        while not stop.is_set():
            device = f"cpu:{choose.integers(4)}"
            try:
                kind = choose.integers(3)
                if kind == 0:
                    y = x if device == "cpu:0" else x.with_compute_device(device)
                    np.testing.assert_allclose([f(y).item(), tr.sum(tr.exp(y) * y).item()], want, rtol=1e-12)
                elif kind == 1:
                    with tr.compute_device(device):
                        np.testing.assert_allclose(f(x).item(), want, rtol=1e-12)
                else:
                    with compute_context(CpuContext(device, threads=1)):
                        np.testing.assert_allclose(grad(f)(x).numpy(), slope, rtol=1e-12)
            except PlacementError as error:
                if device not in str(error) or device in ("cpu:0", "cpu:1"):
                    wrong.append(error)
            except BaseException as error:
                wrong.append(error)

    with CpuPool(index=1):
        workers = [threading.Thread(target=work, args=(i,)) for i in range(6)]
        for w in workers:
            w.start()
        for _ in range(60):
            with CpuPool(index=2) as two, CpuPool(index=3):
                two.call(int)
        stop.set()
        for w in workers:
            w.join(60)
        assert not any(w.is_alive() for w in workers)
    assert not wrong, wrong[:3]
    assert not [t for t in threading.enumerate() if t.name.startswith("tenferro cpu:")]
