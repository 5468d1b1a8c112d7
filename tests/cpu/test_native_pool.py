"""The memory pool: alignment, reuse, bounds, life of blocks, threads, forks and leaks."""

import gc
import os
import subprocess
import sys
import threading
import weakref
from typing import Any

import numpy as np
import pytest

from native_rooms import compiled
from tenferro_cpu import MemoryPool
from tenferro_cpu.native.memory import _pool
from tenferro_tensor import catalog as c
from tenferro_tensor import tensor
from tenferro_tensor_core import ArgumentError, BackendUnavailableError

native = pytest.mark.skipif(compiled is None, reason="needs the C extension")
shared = pytest.mark.skipif(compiled is not None and _pool.pool() is None, reason="the pool is turned off")

MB = 1 << 20


def address(x: Any) -> int:
    return int(x.__array_interface__["data"][0])


@native
@pytest.mark.parametrize("size", [0, 1, 100, 4096, (128 << 10) - 1, 128 << 10, MB, 2 * MB - 1, 2 * MB + 1, 33 * MB])
def test_blocks_are_aligned_and_whole(size: int) -> None:
    pool = MemoryPool(64 * MB)
    block = pool.allocate(size)
    assert block.nbytes == size and address(block) % 64 == 0
    block[...] = 7  # the last byte, too, belongs to the block
    assert (pool.stats()["live"] > 0) == (size >= _pool.POOLED_MIN_BYTES)
    del block
    assert pool.stats()["live"] == 0


@native
def test_a_freed_block_is_used_again() -> None:
    """By any size of its class, and not by others; the waste is at most an eighth and two pages."""
    pool = MemoryPool(64 * MB)
    block = pool.allocate(4 * MB)
    first = address(block)
    live = pool.stats()["live"]
    assert 4 * MB < live <= 4 * MB * 9 // 8 + 8192
    del block
    assert pool.stats() | {"peak": 0, "misses": 0} == {
        "limit": 64 * MB, "cached": live, "live": 0, "peak": 0, "hits": 0, "misses": 0, "returned": 0,
    }  # fmt: skip
    other = pool.allocate(5 * MB)
    assert address(other) != first
    again = pool.allocate(4 * MB - 1000)
    assert address(again) == first
    assert pool.stats()["hits"] == 1 and pool.stats()["misses"] == 2


@native
def test_the_most_recent_block_comes_first() -> None:
    """It is the one whose lines and pages are still at hand."""
    pool = MemoryPool(64 * MB)
    blocks = [pool.allocate(MB) for _ in range(3)]
    places = [address(b) for b in blocks]
    while blocks:
        blocks.pop(0)
    again = pool.allocate(MB)
    assert address(again) == places[2]


@native
def test_what_is_kept_is_bounded_and_the_oldest_goes_first() -> None:
    pool = MemoryPool(10 * MB)
    blocks = [pool.allocate(3 * MB) for _ in range(5)]
    places = [address(b) for b in blocks]
    while blocks:
        blocks.pop(0)
        assert pool.stats()["cached"] <= 10 * MB
    assert pool.stats()["returned"] == 2
    kept = [pool.allocate(3 * MB) for _ in range(3)]
    assert [address(b) for b in kept] == places[:1:-1]
    assert pool.stats()["hits"] == 3
    del kept
    pool.limit = 4 * MB
    assert pool.limit == 4 * MB and 0 < pool.stats()["cached"] <= 4 * MB
    pool.clear()
    assert pool.stats()["cached"] == 0 and pool.stats()["live"] == 0


@native
def test_a_block_in_use_is_never_given_away() -> None:
    """Views, buffers, DLPack capsules and exceptions keep it."""
    pool = MemoryPool(64 * MB)

    def forms(x: Any) -> list[Any]:
        return [x[5:].reshape(-1)[::2], memoryview(x), x.__dlpack__(), np.from_dlpack(x), x.view("int64").T]

    for k in range(5):
        block = pool.empty((512, 512), "float64")
        place = address(block)
        holder = forms(block)[k]
        del block
        other = pool.empty((512, 512), "float64")
        assert address(other) != place, k
        del holder
        gc.collect()
        assert address(pool.empty((512, 512), "float64")) == place, k
        del other


@native
def test_zeros_are_zero() -> None:
    """New pages are, used blocks are cleared."""
    pool = MemoryPool(64 * MB)
    zeros = pool.scoped(np.zeros)
    for shape in [(10,), (50000,), (MB,), (3 * MB,)]:
        for _ in range(3):
            x = zeros(shape)
            assert not x.any()
            x[...] = 1.0
            del x
    assert pool.stats()["hits"] > 3


@native
def test_resizing_keeps_the_contents() -> None:
    pool = MemoryPool(64 * MB)
    x = pool.scoped(np.arange)(1000)
    for n in (100_000, 1_000_000, 900_000, 300_000, 100, 20_000, 1):
        kept = x[: min(n, x.size)].copy()
        x.resize(n, refcheck=False)
        np.testing.assert_array_equal(x[: kept.size], kept)
        x[kept.size :] = np.arange(kept.size, n)
    del x
    assert pool.stats()["live"] == 0


@native
def test_sizes_that_cannot_be_had() -> None:
    """A failing allocation is NumPy's MemoryError, and the pool has given its spare blocks back."""
    pool = MemoryPool(64 * MB)
    pool.allocate(5 * MB)
    assert pool.stats()["cached"] > 0
    with pytest.raises(MemoryError):
        pool.allocate(1 << 46)
    assert pool.stats()["cached"] == 0
    with pytest.raises(MemoryError):
        pool.allocate(1 << 60)
    with pytest.raises(ArgumentError, match=r"a block of -1 bytes was requested; sizes begin at 0"):
        pool.allocate(-1)
    with pytest.raises(ArgumentError, match=r"a memory pool cannot keep -1 bytes; pass 0 to keep none"):
        pool.limit = -1


@native
def test_scopes_end_with_the_call() -> None:
    """Also with an exception, also nested; NumPy's own memory is used outside."""
    pool, inner = MemoryPool(64 * MB), MemoryPool(64 * MB)
    taken = pool.stats()["misses"]

    def nested() -> tuple[Any, Any, Any]:
        return np.empty(MB), inner.empty((MB,), "float64"), np.empty(MB)

    kept = pool.scoped(nested)()
    assert pool.stats()["misses"] == taken + 2 and inner.stats()["misses"] == 1
    with pytest.raises(ZeroDivisionError):
        pool.scoped(lambda: 1 // 0)()
    outside = np.empty(MB)
    assert pool.stats()["misses"] == taken + 2
    assert len(kept) == 3 and outside.size == MB
    assert np._core.multiarray.get_handler_name(kept[0]) == "tenferro"  # type: ignore[attr-defined]
    assert np._core.multiarray.get_handler_name(outside) == "default_allocator"  # type: ignore[attr-defined]


@native
def test_a_pool_may_give_way_to_the_memory_of_a_thread() -> None:
    own, whole = MemoryPool(64 * MB), MemoryPool(64 * MB)
    fresh = whole.giving_way(np.empty)
    here, there = fresh(MB), own.scoped(fresh)(MB)
    assert [p.stats()["live"] >= 8 * MB for p in (own, whole)] == [True, True]
    assert [p.stats()["misses"] for p in (own, whole)] == [1, 1]
    assert here.size == there.size == MB
    with pytest.raises(ZeroDivisionError):
        own.scoped(whole.giving_way(lambda: 1 // 0))()
    assert np._core.multiarray.get_handler_name(np.empty(MB)) == "default_allocator"  # type: ignore[attr-defined]
    del here, there
    assert own.stats()["live"] == whole.stats()["live"] == 0


@native
def test_arrays_outlive_their_pool() -> None:
    """A pool that goes keeps nothing, and what is in use goes to the system later."""
    pool = MemoryPool(64 * MB)
    x = pool.empty((MB,), "float64")
    pool.allocate(3 * MB)
    state = pool._pool
    gone = weakref.ref(pool)
    del pool
    gc.collect()
    stats = compiled.pool_stats(state)
    assert gone() is None and stats["cached"] == stats["limit"] == 0 and stats["returned"] == 1
    x[...] = 3.0
    assert x.sum() == 3.0 * MB
    del x
    stats = compiled.pool_stats(state)
    assert stats["cached"] == stats["live"] == 0 and stats["returned"] == 2


@native
def test_threads_share_a_pool() -> None:
    """Blocks freed by another thread than the one that took them; every owner finds its own bytes."""
    pool = MemoryPool(20 * MB)
    mixed: list[Any] = []
    wrong: list[int] = []

    def work(seed: int) -> None:
        rng = np.random.default_rng(seed)
        held = []
        for _ in range(1500):
            block = pool.allocate(int(2 ** rng.uniform(12, 21.5)))
            block[0] = block[-1] = seed
            held.append(block)
            if len(held) > 6:
                one = held.pop(int(rng.integers(6)))
                if not one[0] == one[-1] == seed:
                    wrong.append(seed)
                mixed.append(one)
            if len(mixed) > 10:
                del mixed[:5]

    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    try:
        threads = [threading.Thread(target=work, args=(seed,)) for seed in range(1, 6)]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
    finally:
        sys.setswitchinterval(interval)
    mixed.clear()
    assert not wrong
    assert pool.stats()["live"] == 0 and pool.stats()["cached"] <= 20 * MB


def resident() -> int:
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


@native
@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_no_memory_is_lost() -> None:
    """100 000 allocations of all kinds leave the process as large as it was."""
    pool = MemoryPool(16 * MB)
    multiply = pool.scoped(np.multiply)
    small, large, huge = np.ones(50), np.ones(20_000), np.ones(300_000)
    references = sys.getrefcount(multiply)

    def round_of(n: int) -> None:
        for i in range(n):
            multiply(small, small)
            multiply(large, large)
            if i % 200 == 0:
                multiply(huge, huge)

    round_of(2000)
    before = resident()
    round_of(50_000)
    assert resident() - before < 4 * MB
    assert pool.stats()["live"] == 0 and sys.getrefcount(multiply) == references


FORK = """
import os, sys
import numpy as np
from tenferro_cpu.native.memory._pool import MemoryPool
pool = MemoryPool(64 << 20)
kept = pool.allocate(3 << 20)
kept[...] = 5
pool.allocate(1 << 20)
child = os.fork()
block = pool.allocate(1 << 20)
block[...] = 1 if child else 2
ok = (kept == 5).all() and pool.stats()["hits"] == 1
del kept, block
pool.clear()
if child:
    _, status = os.waitpid(child, 0)
    ok = ok and status == 0
    print("both" if ok else "failed")
os._exit(0 if ok else 1) if not child else sys.exit(0)
"""


@native
@shared
def test_threads_that_ask_at_once_find_one_pool(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_pool, "_found", [])
    together, seen = threading.Barrier(4), []

    def ask() -> None:
        together.wait(timeout=60)
        seen.append(_pool.pool())

    threads = [threading.Thread(target=ask) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(seen) == 4 and len(set(map(id, seen))) == 1


@native
@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_forked_child_has_a_pool_of_its_own() -> None:
    done = subprocess.run([sys.executable, "-c", FORK], capture_output=True, text=True, check=False)
    assert done.stdout.strip() == "both", done.stderr


@native
@shared
def test_large_results_of_tensors_come_from_the_pool() -> None:
    """Small ones do not, and views take nothing."""
    pool = _pool.pool()
    assert pool is not None
    x, y = tensor(np.ones((300, 300))), tensor(np.ones((10, 10)))
    _ = c.add(x, x), c.add(y, y), c.transpose(x, permutation=(1, 0))
    before = pool.stats()
    z = c.add(x, x)
    between = pool.stats()
    assert between["hits"] + between["misses"] == before["hits"] + before["misses"] + 1
    assert between["live"] > before["live"] and address(z.data) % 64 == 0
    _ = c.add(y, y), c.transpose(x, permutation=(1, 0))
    after = pool.stats()
    assert after["hits"] + after["misses"] == between["hits"] + between["misses"]


def script(text: str, **variables: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", text], capture_output=True, text=True, check=False, env=os.environ | variables
    )
    return done.stdout.strip() + done.stderr.strip()


WITHOUT = """
import numpy as np
from tenferro_cpu.native.memory._pool import pool
from tenferro_tensor import tensor
x = tensor(np.ones((300, 300)))
print(pool(), float((x + x).data[-1, -1]))
"""


def test_it_can_be_turned_off() -> None:
    assert script(WITHOUT, TENFERRO_CPU_POOL="0") == "None 2.0"


@native
def test_it_needs_no_compiler() -> None:
    """Large results come from it where NumPy computes, too."""
    text = WITHOUT + "print(pool().stats()['hits'] + pool().stats()['misses'] > 0)"
    assert script(text, TENFERRO_CPU_JIT="0", TENFERRO_CPU_POOL="3M").endswith("2.0\nTrue")


@native
def test_python_and_c_agree_on_what_is_large() -> None:
    assert compiled.POOLED_MIN_BYTES == _pool.POOLED_MIN_BYTES


@native
def test_its_size_is_set_by_the_environment() -> None:
    text = "from tenferro_cpu.native.memory._pool import pool; print(pool().limit)"
    assert script(text, TENFERRO_CPU_POOL="3M") == str(3 * MB)
    assert "TENFERRO_CPU_POOL='lots' is not a size; use bytes, or a number with K, M or G as in 512M" in script(
        text, TENFERRO_CPU_POOL="lots"
    )


def test_by_default_it_keeps_an_eighth_of_the_memory() -> None:
    assert _pool._limit(None) == _pool._memory() // 8 > 0
    assert [_pool._limit(t) for t in ("0", "17", "2k", "5M", "1G")] == [0, 17, 2048, 5 * MB, 1024 * MB]


def test_without_the_extension_a_pool_is_a_typed_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_pool, "compiled", None)
    with pytest.raises(BackendUnavailableError, match=r"has no C extension; build it .* or leave the memory to NumPy"):
        MemoryPool(MB)
