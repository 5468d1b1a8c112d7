"""Every allocation of C code fails once: the right exception, nothing lost, and what follows is right.

Allocations of Python fail in any process; those of the C library only where ``faults.c`` is linked into the extension,
as `test_sanitizers` has it.
"""

import ctypes
import gc
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import instrumented
from native_rooms import compiled
from tenferro_cpu import MemoryPool

pytestmark = pytest.mark.skipif(compiled is None, reason="needs the C extension")

MB = 1 << 20
MOST = 200

NOTHING = ctypes.cast(ctypes.pythonapi.PyErr_Occurred, ctypes.c_void_p).value or 0
"""A function that gives NULL, the status of success."""


def bounded(limit: int) -> Any:
    pool = compiled.pool_new()
    compiled.pool_bound(pool, limit)
    return pool


def calls() -> dict[str, Callable[[], Any]]:
    """Functions of C that allocate Python objects."""
    pool, scoped = bounded(MB), compiled.pool_scoped(bounded(MB), np.empty, False)
    giving = compiled.pool_scoped(bounded(MB), np.empty, True)
    whole, strided = whole_program(pool), np.ones(40_000)[::2]
    return {
        "pool_new": compiled.pool_new,
        "pool_scoped": lambda: compiled.pool_scoped(pool, len, True),
        "pool_stats": lambda: compiled.pool_stats(pool),
        "scoped": lambda: scoped((70_000,)),
        "giving way": lambda: giving((70_000,)),
        "team_get": lambda: compiled.team_get("jobs"),
        "whole program": lambda: whole((20_000,), strided),
        "whole program, new sizes": lambda: whole_program(pool)((20_000,), strided),
    }


def whole_program(pool: Any) -> Any:
    """A program that does nothing, with large temporary values."""
    return compiled.WholeFunction(
        address=NOTHING, dtypes=(np.dtype("f8"),) * 2, ranks=b"\1\1", inputs=1, sizes=1, constants=(),
        calls=((len, (np.dtype("f8"),), b"\1", 1),), memory=pool, contiguous=np.ascontiguousarray, bare=False,
        over=bytes(4),
        prepare=lambda n: np.array([8 * n, 0, 8 * n, 0, n, n]).tobytes(),
    )  # fmt: skip


PYTHON = (
    "pool_new", "pool_scoped", "pool_stats", "scoped", "giving way", "team_get", "whole program",
    "whole program, new sizes",
)  # fmt: skip


@pytest.mark.parametrize("name", PYTHON)
def test_an_allocation_of_python_fails(name: str) -> None:
    testcapi = pytest.importorskip("_testcapi")
    call = calls()[name]
    # Objects that Python would take from its lists of free ones, and the results, which would go there.
    held: list[Any] = [({n: n}, (n, n, n), [n], n + 1000) for n in range(3000)]
    failed = 0
    for n in range(1, MOST):
        error: BaseException | None = None
        testcapi.set_nomemory(n, n + 1)
        try:
            held.append(call())
        except BaseException as e:
            error = e
        finally:
            testcapi.remove_mem_hooks()
        if error is not None:
            assert type(error) is MemoryError, (n, error)
            failed += 1
        elif n > 30:
            break
    assert failed > 0 or name == "team_get"
    call()
    assert np._core.multiarray.get_handler_name(np.empty(MB)) == "default_allocator"  # type: ignore[attr-defined]


def resized(pool: MemoryPool) -> Any:
    x = pool.scoped(np.zeros)(1000)
    for n in (100_000, 300_000, 100):
        x.resize(n, refcheck=False)
    return x


TAKING: dict[str, Callable[[MemoryPool], Any]] = {
    "small": lambda pool: pool.allocate(1000),
    "large": lambda pool: pool.allocate(MB),
    "huge": lambda pool: pool.allocate(5 * MB),
    "zeros": lambda pool: (pool.scoped(np.zeros)(100), pool.scoped(np.zeros)(50_000), pool.scoped(np.zeros)(MB)),
    "resized": resized,
    "used again": lambda pool: (pool.allocate(MB), pool.allocate(MB), pool.allocate(3 * MB)),
}


@pytest.mark.parametrize("name", TAKING)
@pytest.mark.parametrize("once", [True, False], ids=["once", "from then on"])
def test_an_allocation_of_the_c_library_fails(name: str, once: bool) -> None:
    """A pool that keeps blocks gives them back and tries again, so one failure may show only in them."""
    try:
        faults = instrumented.faults("tenferro_cpu.native._compiled")
        faults.faults_set(0, 0)
    except AttributeError:
        pytest.skip("needs an extension with faults.c linked into it")
    gc.collect()
    blocks, mapped, failed = faults.faults_blocks(), faults.faults_mapped(), 0
    for n in range(1, MOST):
        pool = MemoryPool(64 * MB)
        for size in (3 * MB // 2, 2 * MB):
            pool.allocate(size)  # kept from here on
        taken = error = None
        faults.faults_set(n, n if once else 1 << 30)
        try:
            taken = TAKING[name](pool)
        except BaseException as e:
            error = type(e)
        asked = faults.faults_asked()
        faults.faults_set(0, 0)
        if error is None and n > asked:
            break
        assert issubclass(error or MemoryError, MemoryError) and (once or error), (n, error)
        failed += error is not None or pool.stats()["returned"] > 0
        del taken
        assert pool.stats()["live"] == 0
        pool.allocate(MB)[...] = 1
        del pool
        gc.collect()
        assert faults.faults_blocks() == blocks and faults.faults_mapped() == mapped, n
    assert failed > 0 and n < MOST - 1
