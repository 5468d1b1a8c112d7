"""The thread policy: how many BLAS threads a call gets, and that the program's own choice comes back."""

import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import tenferro_cpu
from tenferro_cpu.native.kernels.products import _products
from tenferro_cpu.native.threads import _blas, _threads
from tenferro_cpu.native.threads._threads import PER_THREAD, Arbiter, bounded, threads, usable_cores, wanted
from tenferro_tensor import Spec
from tenferro_tensor import catalog as c
from tenferro_tensor_core import ArgumentError

LIBRARIES = _blas.libraries()
needs_blas = pytest.mark.skipif(not LIBRARIES, reason="needs a BLAS whose threads can be set")


def fake(count: int) -> tuple[_blas.Library, list[int]]:
    """A library with a number of threads, and the list of the numbers it was set to."""
    seen: list[int] = [count]
    return _blas.Library("/fake/numpy", "openblas", "", 8, {}, lambda: seen[-1], seen.append), seen


@pytest.fixture
def four() -> Iterator[_blas.Library]:
    """NumPy's BLAS with four threads chosen by the program."""
    library = LIBRARIES[0]
    before = library.get_threads()
    library.set_threads(4)
    yield library
    library.set_threads(before)


def test_work_and_threads() -> None:
    assert [wanted(w) for w in (0, PER_THREAD, 2 * PER_THREAD, 10 * PER_THREAD)] == [1, 1, 2, 10]
    assert _threads.work_of(Spec((3, 64, 64), np.dtype("float64"))) == 64**3
    assert _threads.work_of(Spec((64,), np.dtype("float64"))) == 0


def test_a_call_is_capped_by_its_work_and_by_what_the_program_chose() -> None:
    library, seen = fake(4)
    arbiter = Arbiter(lambda: (library,))
    for most, expected in ((1, 1), (2, 2), (9, 4)):
        arbiter.enter(most, 0)
        assert library.get_threads() == expected
        arbiter.leave()
        assert library.get_threads() == 4
    assert seen == [4, 1, 4, 2, 4], "nothing is set where nothing changes"


def test_a_scope_may_allow_more_than_the_program_chose() -> None:
    library, _ = fake(1)
    arbiter = Arbiter(lambda: (library,))
    arbiter.enter(9, 3)
    assert library.get_threads() == 3
    arbiter.leave()
    assert library.get_threads() == 1


def test_calls_at_once_get_one_thread_each() -> None:
    library, _ = fake(4)
    arbiter = Arbiter(lambda: (library,))
    arbiter.enter(9, 0)
    for step in (lambda: arbiter.enter(9, 0), arbiter.leave):
        other = threading.Thread(target=step)
        other.start()
        other.join()
        assert library.get_threads() == 1, "also while the first call goes on alone"
    arbiter.leave()
    assert library.get_threads() == 4


def test_after_a_fork_nobody_is_inside() -> None:
    library, _ = fake(4)
    arbiter = Arbiter(lambda: (library,))
    arbiter.enter(1, 0)
    arbiter.after_fork()
    assert library.get_threads() == 4
    arbiter.enter(3, 0)
    assert library.get_threads() == 3


@needs_blas
@pytest.mark.parametrize("work, expected", [(1, 1), (2 * PER_THREAD, 2), (100 * PER_THREAD, 4)])
def test_bounded_kernels(four: _blas.Library, work: int, expected: int) -> None:
    assert bounded(four.get_threads, work)() == expected
    assert four.get_threads() == 4


@needs_blas
def test_an_error_gives_the_threads_back(four: _blas.Library) -> None:
    def fails() -> None:
        raise ValueError(four.get_threads())

    with pytest.raises(ValueError, match="1"):
        bounded(fails, 1)()
    assert four.get_threads() == 4


@needs_blas
def test_kernels_within_kernels(four: _blas.Library) -> None:
    inner = bounded(four.get_threads, 100 * PER_THREAD)
    assert bounded(lambda: (inner(), four.get_threads()), 1)() == (1, 1)
    within = bounded(four.get_threads, 1)
    outer = bounded(lambda: (within(), four.get_threads()), 3 * PER_THREAD)
    assert outer() == (3, 3), "the outer work counts"
    library, _ = fake(4)
    arbiter = Arbiter(lambda: (library,))
    arbiter.enter(3, 0)
    arbiter.enter(1, 0)
    assert library.get_threads() == 3
    arbiter.leave()
    assert library.get_threads() == 3
    arbiter.leave()
    assert library.get_threads() == 4
    assert four.get_threads() == 4


@needs_blas
def test_python_threads_do_not_multiply_blas_threads(four: _blas.Library) -> None:
    """While eight Python threads are inside, none of them sees more than one BLAS thread."""
    gate, counts = threading.Barrier(8), []

    def work() -> None:
        gate.wait()
        counts.append(four.get_threads())
        gate.wait()

    run = bounded(work, 100 * PER_THREAD)
    pool = [threading.Thread(target=run) for _ in range(8)]
    for t in pool:
        t.start()
    for t in pool:
        t.join()
    assert counts == [1] * 8
    assert four.get_threads() == 4


@needs_blas
def test_scopes(four: _blas.Library) -> None:
    large = bounded(four.get_threads, 100 * PER_THREAD)
    assert _threads.limit() is None
    with threads(1):
        assert large() == 1 and _threads.limit() == 1 and tenferro_cpu.info()["threads"] == 1
        with threads(10**6):
            assert large() == usable_cores()
        assert large() == 1
    assert large() == 4 and _threads.limit() is None


@needs_blas
def test_a_scope_belongs_to_its_thread(four: _blas.Library) -> None:
    large, seen = bounded(four.get_threads, 100 * PER_THREAD), []
    with threads(1):
        other = threading.Thread(target=lambda: seen.append(large()))
        other.start()
        other.join()
        assert large() == 1
    assert seen == [4]


@needs_blas
def test_large_products_get_threads_whichever_way_they_go(four: _blas.Library) -> None:
    """Operands that have to be packed, and vectors, are no reason for one thread."""
    x = np.ones((25, 40, 25, 40))
    with_gap = ((1, 3), (0, 1))
    spec, matrix = Spec(x.shape, x.dtype), Spec((40, 40, 17), x.dtype)
    out: Any = c.dot_general.infer(spec, matrix, contract=with_gap, batch=((), ()))
    seen: list[int] = []

    def reference(x: Any, y: Any) -> Any:
        seen.append(four.get_threads())
        return np.tensordot(x, y, with_gap)

    kernel = _products.dot_general(reference, (spec, matrix), (out,), with_gap, ((), ()))
    assert kernel(x, np.ones(matrix.shape)).shape == (25, 25, 17)
    assert seen == [2]


@needs_blas
def test_products_obey_the_scope(four: _blas.Library) -> None:
    """Large products run in machine code, but while a scope is open they ask for its limit."""
    x, contract = np.ones((300, 300)), ((1,), (0,))
    spec = Spec(x.shape, x.dtype)
    asked: list[int] = []

    def reference(x: Any, y: Any) -> Any:
        asked.append(four.get_threads())
        return x.dot(y)

    kernel = _products.dot_general(reference, (spec, spec), (spec,), contract, ((), ()))
    with threads(1):
        assert kernel(x, x + 1)[0, 0] == 600
    assert asked == [1]
    assert kernel(x, x + 1)[0, 0] == 600
    assert len(asked) == (1 if _products.available() else 2) and four.get_threads() == 4


@pytest.mark.parametrize("n", [0, -1, 1.5, True, "2", None])
def test_a_limit_that_is_none(n: Any) -> None:
    text = rf"threads\({n!r}\): the number of threads is a positive integer; pass 1 or more"
    with pytest.raises(ArgumentError, match=text), threads(n):
        raise AssertionError("the scope was entered")


def test_linear_algebra_is_bounded() -> None:
    """Kernels of the linalg family run under the policy: the maker says that it calls LAPACK."""
    script = """
import os
import numpy as np
import tenferro_runtime as tr
from tenferro_cpu.native.threads import _blas, _threads
from tenferro_linalg import _host

seen = []
original = _host.HostProvider.eigh
def eigh(self, x):
    seen.append([library.get_threads() for library in _blas.libraries()])
    return original(self, x)
_host.HostProvider.eigh = eigh
for library in _blas.libraries():
    library.set_threads(2)
tr.linalg.eigh(tr.asarray(np.eye(64)))
assert seen and all(count == 1 for count in seen[0]), seen
assert all(library.get_threads() == 2 for library in _blas.libraries())
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_child_of_a_busy_parent_has_all_threads() -> None:
    script = """
import os, threading, warnings
warnings.simplefilter("ignore")
from tenferro_cpu.native.threads import _blas, _threads
library = _blas.libraries()[0]
library.set_threads(2)
inside, done = threading.Event(), threading.Event()
def work():
    inside.set()
    done.wait()
threading.Thread(target=_threads.bounded(work, 1)).start()
inside.wait()
assert library.get_threads() == 1
pid = os.fork()
if pid == 0:
    os._exit(0 if library.get_threads() == 2 and _threads.bounded(library.get_threads, 10**9)() == 2 else 7)
status = os.waitpid(pid, 0)[1]
done.set()
assert os.waitstatus_to_exitcode(status) == 0, status
"""
    if not LIBRARIES:
        pytest.skip("needs a BLAS whose threads can be set")
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
