"""The typed builder: loops, branches and memory, against the same in Python."""

import ctypes

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tenferro_cpu.native import engine
from tenferro_cpu.native.codegen.builder import Block, Branch, DoLoop, Int, Loop, Module, Pointer, Scratch
from tenferro_cpu.native.codegen.builder import _memory as memory

DOUBLES = memory.Element("double", 8)
LANES = 4


def compiled(block: Block, name: str) -> int:
    """The address of ``void(ptr x, i64 n, ptr out)``."""
    block.do("ret void")
    head = f"define void @{name}(ptr %x, i64 %n, ptr %out) {engine().host.attributes} {{"
    return engine().function(block.module.text(head, *block.lines, "}"), name)


def called(address: int, x: np.ndarray, n: int, out: np.ndarray) -> None:
    ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int64, ctypes.c_void_p)(address)(x.ctypes.data, n, out.ctypes.data)


def opened() -> tuple[Block, Pointer, Int, Pointer]:
    block = Block(Module(), LANES)
    block.begin("entry")
    return block, Pointer(block, "%x"), Int(block, "%n"), Pointer(block, "%out")


@pytest.fixture(scope="module")
def euclid() -> int:
    """The greatest common divisor of x[0] and n."""
    b, x, n, out = opened()
    with Loop(b, [x.load_int(), n]) as loop:
        p, q = loop.counters
        loop.leave_unless(q.differs(0))
        loop.counters = [q, p - (p // q) * q]
    out.store("i64", loop.counters[0].name, 8)
    return compiled(b, "euclid")


@given(st.integers(0, 10**9), st.integers(0, 10**9))
def test_a_loop_with_counters(euclid: int, p: int, q: int) -> None:
    out = np.zeros(1, "int64")
    called(euclid, np.array([p]), q, out)
    assert out[0] == np.gcd(p, q)


@pytest.fixture(scope="module")
def squares() -> int:
    """Vectors of squares of positive elements, summed lane by lane; the last ones under a mask."""
    b, x, n, out = opened()
    zero = b.splat("f64", 0.0)
    with Branch(b, n > 0, [zero]) as some:
        with DoLoop(b, 0, n, LANES, [zero]) as loop:
            mask = b.below(loop.index, n)
            name = memory.load(b, x.item("double", loop.index), DOUBLES, LANES, mask.names[0])
            v = zero.renamed((name,))
            loop.values = [loop.values[0] + b.where(mask & (v > 0.0), v * v, 0.0)]
        some.values = loop.values
    memory.store(b, out, DOUBLES, some.values[0].names[0], LANES)
    return compiled(b, "squares")


@given(st.lists(st.integers(-9, 9), max_size=23))
def test_a_branch_around_a_loop_over_vectors(squares: int, numbers: list[int]) -> None:
    x, out = np.array(numbers, "float64"), np.full(LANES, np.nan)
    called(squares, x, len(numbers), out)
    lanes = [[v for v in numbers[k::LANES] if v > 0] for k in range(LANES)]
    assert out.tolist() == [float(sum(v * v for v in lane)) for lane in lanes]


def test_vectors_on_the_stack() -> None:
    b, x, n, out = opened()
    stack = Scratch(b, "f64", 8)
    with DoLoop(b, 0, n, 1) as loop:
        row = memory.load(b, x.item("double", loop.index * LANES), DOUBLES, LANES)
        stack.put(loop.index, b.splat("f64", 0.0).renamed((row,)))
    with DoLoop(b, 0, n, 1) as loop:
        back = stack.get((n - loop.index) - 1)
        memory.store(b, out.item("double", loop.index * LANES), DOUBLES, back.names[0], LANES)
    rows = np.arange(5.0 * LANES).reshape(5, LANES)
    out_rows = np.zeros_like(rows)
    called(compiled(b, "reversed_rows"), rows, 5, out_rows)
    np.testing.assert_array_equal(out_rows, rows[::-1])


def test_an_error_in_a_body_is_not_hidden() -> None:
    b, _, n, _ = opened()
    with pytest.raises(ZeroDivisionError), Branch(b, n > 0), DoLoop(b, 0, n, 1), Loop(b, [0]):
        raise ZeroDivisionError
