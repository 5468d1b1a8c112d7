"""`WholeFunction`: operands, memory, interrupts and calls of Python, for functions written by hand."""

import gc
import sys
import threading
import time
from typing import Any

import numpy as np
import pytest

from interrupts import interrupt_after
from native_rooms import compiled
from tenferro_cpu.native import available, engine
from tenferro_cpu.native.memory import _pool

pytestmark = pytest.mark.skipif(not available(), reason="no machine code here")

F8, I8 = np.dtype("f8"), np.dtype("i8")

# The constant and the arena take part, so that a wrong place of any pointer shows.
SCALED = """
define i64 @scaled(ptr %pointers, ptr %sizes, ptr %context) {
  %x = load ptr, ptr %pointers
  %a.at = getelementptr ptr, ptr %pointers, i64 1
  %a = load ptr, ptr %a.at
  %y.at = getelementptr ptr, ptr %pointers, i64 2
  %y = load ptr, ptr %y.at
  %t.at = getelementptr ptr, ptr %pointers, i64 3
  %t = load ptr, ptr %t.at
  %n = load i64, ptr %sizes
  %factor = load double, ptr %a
  store double %factor, ptr %t
  br label %head
head:
  %i = phi i64 [ 0, %0 ], [ %next, %body ]
  %more = icmp slt i64 %i, %n
  br i1 %more, label %body, label %done
body:
  %from = getelementptr double, ptr %x, i64 %i
  %to = getelementptr double, ptr %y, i64 %i
  %v = load double, ptr %from
  %f = load double, ptr %t
  %w = fmul double %v, %f
  store double %w, ptr %to
  %next = add i64 %i, 1
  br label %head
done:
  ret i64 0
}
"""

# Counts up to the size, and asks at the end of each iteration whether to go on.
COUNTED = """
define i64 @counted(ptr %pointers, ptr %sizes, ptr %context) {
  %y = load ptr, ptr %pointers
  %n = load i64, ptr %sizes
  %poll.at = getelementptr i64, ptr %context, i64 1
  %poll = load ptr, ptr %poll.at
  br label %head
head:
  %i = phi i64 [ 0, %0 ], [ %next, %again ]
  %more = icmp slt i64 %i, %n
  br i1 %more, label %body, label %done
body:
  %next = add i64 %i, 1
  store volatile i64 %next, ptr %y
  %left = load i64, ptr %context
  %less = sub i64 %left, 1
  store i64 %less, ptr %context
  %due = icmp eq i64 %less, 0
  br i1 %due, label %ask, label %again
ask:
  %status = call i64 %poll(ptr %context)
  %stop = icmp ne i64 %status, 0
  br i1 %stop, label %stopped, label %again
again:
  br label %head
done:
  ret i64 0
stopped:
  ret i64 %status
}
"""

# Has Python compute the result from the input, read backwards, as often as the size says.
CALLED = """
define i64 @called(ptr %pointers, ptr %sizes, ptr %context) {
  %call.at = getelementptr i64, ptr %context, i64 2
  %call = load ptr, ptr %call.at
  %n = load i64, ptr %sizes
  %x = load ptr, ptr %pointers
  %y.at = getelementptr ptr, ptr %pointers, i64 1
  %y = load ptr, ptr %y.at
  %arrays = alloca [2 x ptr]
  %last = getelementptr double, ptr %x, i64 2
  store ptr %last, ptr %arrays
  %second = getelementptr ptr, ptr %arrays, i64 1
  store ptr %y, ptr %second
  %extents = alloca [4 x i64]
  store [4 x i64] [i64 3, i64 -1, i64 3, i64 1], ptr %extents
  br label %head
head:
  %i = phi i64 [ 0, %0 ], [ %next, %again ]
  %more = icmp slt i64 %i, %n
  br i1 %more, label %body, label %done
body:
  %status = call i64 %call(ptr %context, i64 0, ptr %arrays, ptr %extents)
  %next = add i64 %i, 1
  %good = icmp eq i64 %status, 0
  br i1 %good, label %again, label %failed
again:
  br label %head
done:
  ret i64 0
failed:
  ret i64 %status
}
"""


def words(*numbers: int) -> bytes:
    return np.array(numbers, np.int64).tobytes()


def scaled(
    factor: float = 3.0,
    bare: bool = True,
    prepare: Any = None,
    memory: Any = None,
    contiguous: Any = np.ascontiguousarray,
) -> Any:
    return compiled.WholeFunction(
        address=engine().function(SCALED, "scaled"), dtypes=(F8, F8), ranks=b"\1\1", inputs=1, over=NEW, sizes=1,
        constants=(np.array(factor),), calls=(), bare=bare, memory=memory, contiguous=contiguous,
        prepare=prepare or (lambda n: words(64, 16 * n, 8 * n, 0, n, n)),
    )  # fmt: skip


def counted() -> Any:
    return compiled.WholeFunction(
        address=engine().function(COUNTED, "counted"), dtypes=(I8,), ranks=b"\0", inputs=0, sizes=1, constants=(),
        over=NEW, calls=(), bare=True, memory=None, contiguous=np.ascontiguousarray,
        prepare=lambda n: words(0, 8, 8, 0),
    )  # fmt: skip


def called(handler: Any) -> Any:
    return compiled.WholeFunction(
        address=engine().function(CALLED, "called"), dtypes=(F8, F8), ranks=b"\1\1", inputs=1, sizes=1, constants=(),
        over=NEW, calls=((handler, (F8, F8), b"\1\1", 1),), bare=True, memory=None, contiguous=np.ascontiguousarray,
        prepare=lambda n: words(0, 48, 24, 0, 3, 3),
    )  # fmt: skip


NEW = bytes(4)
"""The only output lies in memory of its own."""

X = np.arange(1.0, 6.0)
OPERANDS = {
    "plain": X,
    "strided": np.repeat(X, 2)[::2],
    "reversed": X[::-1].copy()[::-1],
    "bytes swapped": X.astype(">f8"),
    "smaller numbers": X.astype("f4"),
    "integers": X.astype("i4"),
    "misaligned": np.frombuffer(b"\0" + X.tobytes(), np.uint8)[1:].view(F8),
    "read only": np.frombuffer(X.tobytes()),
    "a list": list(X),
}


@pytest.mark.parametrize("name", OPERANDS)
def test_operands_of_any_layout(name: str) -> None:
    found = scaled()((5,), OPERANDS[name])
    assert type(found) is np.ndarray and found.flags.carray and found.flags.owndata
    np.testing.assert_array_equal(found, 3 * X)


def test_large_arrays_with_gaps_are_copied_by_the_function_that_is_given() -> None:
    asked: list[int] = []

    def contiguous(x: Any) -> Any:
        asked.append(x.size)
        return np.ascontiguousarray(x)

    f = scaled(contiguous=contiguous)
    for size in (10, 10_000):
        x = np.arange(2.0 * size)[::2]
        np.testing.assert_array_equal(f((size,), x), 3 * x)
        np.testing.assert_array_equal(f((size,), x.astype("f4")), 3 * x)
    assert asked == [10_000]
    with pytest.raises(ZeroDivisionError):
        scaled(contiguous=lambda x: 1 // 0)((10_000,), x)


def test_one_binding_serves_a_size() -> None:
    asked: list[int] = []

    def prepare(n: int) -> bytes:
        asked.append(n)
        return words(64, 16 * n, 8 * n, 0, n, n)

    f = scaled(prepare=prepare, bare=False)
    for n in (5, 3, 5, 3, 0):
        (found,) = f((n,), np.ones(n))
        np.testing.assert_array_equal(found, np.full(n, 3.0))
    assert asked == [5, 3, 0] and list(f.bindings) == [(5,), (3,), (0,)]
    for n in range(1000):
        f((n,), np.ones(n))
    assert len(f.bindings) <= 256


def test_wrong_arguments() -> None:
    f = scaled()
    with pytest.raises(ValueError, match=r"operand 0 of a program has the shape \(4,\); for these sizes it takes \(5,"):
        f((5,), np.ones(4))
    with pytest.raises(ValueError, match=r"shape \(5, 1\)"):
        f((5,), np.ones((5, 1)))
    with pytest.raises(TypeError, match="tuple of its 1 sizes"):
        f((), X)
    with pytest.raises(TypeError, match="and 1 operands"):
        f((5,))
    with pytest.raises(TypeError, match="Cannot cast"):
        f((5,), X.astype(complex))
    with pytest.raises(OverflowError):
        scaled(prepare=lambda n: words(0, 0, 0, 0, 0, 0))((1 << 64,), np.ones(0))
    with pytest.raises(TypeError, match="bytes of 64-bit words"):
        scaled(prepare=lambda n: words(1))((5,), X)
    with pytest.raises(ZeroDivisionError):
        scaled(prepare=lambda n: 1 // 0)((5,), X)


def test_large_results_come_from_the_pool() -> None:
    pool = _pool.MemoryPool(1 << 20)
    f = scaled(memory=pool._pool)
    found = f((100_000,), np.ones(100_000))
    assert pool.stats()["live"] >= found.nbytes and found[-1] == 3.0
    del found
    assert pool.stats()["live"] == 0
    f((10,), np.ones(10))
    assert pool.stats()["live"] == 0
    own = _pool.MemoryPool(1 << 20)
    with own.serving():
        found = f((100_000,), np.ones(100_000))
    assert own.stats()["live"] >= found.nbytes and pool.stats()["live"] == 0


def test_scalars_without_axes() -> None:
    text = SCALED.replace("@scaled", "@first").replace("load i64, ptr %sizes", "add i64 0, 1")
    f = compiled.WholeFunction(
        address=engine().function(text, "first"), dtypes=(F8, F8), ranks=b"\0\0", inputs=1, over=NEW, sizes=0,
        constants=(np.array(2.0),), calls=(), bare=True, memory=None, contiguous=np.ascontiguousarray,
        prepare=lambda: words(64, 16, 8, 0),
    )  # fmt: skip
    for x in (np.array(2.5), np.float64(2.5), 2.5, np.float32(2.5)):
        found = f((), x)
        assert found.shape == () and found == 5.0


def test_an_interrupt_ends_a_long_loop() -> None:
    f = counted()
    assert f((1000,)) == 1000
    with interrupt_after(0.2), pytest.raises(KeyboardInterrupt):
        f((1 << 50,))
    assert f((1000,)) == 1000


def test_other_threads_run_meanwhile() -> None:
    f, found = counted(), []
    threads = [threading.Thread(target=lambda: found.append(int(f((20_000_000,))))) for _ in range(3)]
    for thread in threads:
        thread.start()
    ticks = 0
    while any(thread.is_alive() for thread in threads):
        ticks += 1
        time.sleep(0.001)
    assert found == [20_000_000] * 3 and ticks


def test_python_is_called_with_views() -> None:
    kept: list[Any] = []

    def handler(sizes: Any, x: Any, y: Any) -> None:
        assert sizes in ((1,), (1000,)) and not x.flags.writeable and y.flags.writeable
        kept.append(x)
        y[...] = x + 1

    x = np.arange(3.0)
    found = called(handler)((1,), x)
    np.testing.assert_array_equal(found, [3, 2, 1])
    assert kept[0].base is x
    np.testing.assert_array_equal(called(handler)((1000,), np.arange(3.0)), [3, 2, 1])


def test_an_exception_of_python_ends_the_loop() -> None:
    calls = 0

    def handler(sizes: Any, x: Any, y: Any) -> None:
        nonlocal calls
        calls += 1
        if calls == 7:
            raise ArithmeticError("seven")

    f = called(handler)
    with pytest.raises(ArithmeticError, match="seven"):
        f((1_000_000,), np.ones(3))
    assert calls == 7
    f((3,), np.ones(3))


def test_a_program_calls_itself_in_several_threads() -> None:
    depth = threading.local()

    def handler(sizes: Any, x: Any, y: Any) -> None:
        depth.n = getattr(depth, "n", 0) + 1
        y[...] = x if depth.n == 5 else f((1,), x[::-1]) + 1
        depth.n -= 1

    f = called(handler)
    found: list[Any] = []

    def run() -> None:
        for _ in range(200):
            found.append(f((2,), np.arange(3.0)))

    threads = [threading.Thread(target=run) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 800
    for each in found:
        np.testing.assert_array_equal(each, [6, 5, 4])


def test_references_are_given_back() -> None:
    def handler(sizes: Any, x: Any, y: Any) -> None:
        if x[0] < 0:
            raise ValueError
        y[...] = x

    f, g = called(handler), scaled()
    x, bad = np.ones(3), -np.ones(3)
    strided = np.ones(6)[::2]

    def all_of_it() -> None:
        f((2,), x)
        f((2,), strided)
        g((3,), x)
        for wrong in (lambda: f((2,), bad), lambda: g((4,), x), lambda: g((3,), "x")):
            with pytest.raises((ValueError, TypeError)):
                wrong()

    all_of_it()
    gc.collect()
    watched = (x, bad, strided, handler, f, g, F8)
    before, blocks = [sys.getrefcount(o) for o in watched], sys.getallocatedblocks()
    for _ in range(1000):
        all_of_it()
    gc.collect()
    after = [sys.getrefcount(o) for o in watched]
    assert max(abs(b - a) for a, b in zip(before, after, strict=True)) < 20
    assert sys.getallocatedblocks() - blocks < 600


def test_wrong_descriptions_are_refused() -> None:
    good: dict[str, Any] = {
        "address": 1, "dtypes": (F8, F8), "ranks": b"\1\1", "inputs": 1, "sizes": 1, "constants": (), "calls": (),
        "bare": True, "memory": None, "contiguous": len, "prepare": len, "over": NEW,
    }  # fmt: skip
    compiled.WholeFunction(**good)
    wrong: list[tuple[str, Any, type[Exception]]] = [
        ("ranks", b"\1", ValueError),
        ("inputs", 2, ValueError),
        ("inputs", -1, ValueError),
        ("sizes", -1, ValueError),
        ("over", b"", ValueError),
        ("over", np.array([2], np.int32).tobytes(), ValueError),
        ("over", np.array([-1], np.int32).tobytes(), ValueError),
        ("dtypes", (F8, np.dtype(object)), TypeError),
        ("dtypes", (F8, "f8"), TypeError),
        ("dtypes", [F8], TypeError),
        ("constants", (np.ones((3, 3)).T,), TypeError),
        ("constants", (1.0,), TypeError),
        ("calls", (len,), TypeError),
        ("calls", ((len, (1,), b"\1", 1),), TypeError),
        ("calls", ((len, (F8,), b"", 0),), ValueError),
        ("calls", ((len, (F8,), b"\1", 2),), ValueError),
        ("calls", ((len, (F8,), b"\x41", 1),), ValueError),
    ]
    for name, value, error in wrong:
        with pytest.raises(error):
            compiled.WholeFunction(**{**good, name: value})
