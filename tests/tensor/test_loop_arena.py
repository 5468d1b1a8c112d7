"""Temporaries share memory where their lifetimes allow it, and never where a loop needs them apart."""

from typing import Any

import numpy as np
import pytest

from tenferro_tensor import Spec, catalog
from tenferro_tensor.loop_ir import (
    INDEX,
    Affine,
    Buffer,
    Call,
    Case,
    For,
    Foreign,
    Literal,
    Load,
    LoopFunction,
    Order,
    Reg,
    Statement,
    Store,
    Switch,
    View,
    While,
    plan_arena,
)
from tenferro_tensor_core import dim

F8 = np.dtype("float64")
N = dim("n")
TRUE = Literal(True, np.dtype(bool))


class Writing:
    """Temporaries and statements."""

    def __init__(self) -> None:
        self.temporaries: list[Buffer] = []
        self.count = 0

    def temporary(self, *shape: Any, dtype: Any = F8) -> Buffer:
        self.temporaries.append(Buffer(len(self.temporaries), np.dtype(dtype), shape))
        return self.temporaries[-1]

    def reg(self, dtype: Any = INDEX) -> Reg:
        self.count += 1
        return Reg(self.count - 1, np.dtype(dtype))

    def copy(self, to: Buffer, *sources: Buffer, extent: Any = None, start: int = 0, order: Order = Order.ANY) -> For:
        """A loop over all elements of a vector, or those of a part."""
        i = self.reg()
        loads = [Load(self.reg(b.dtype), b, Affine.of(i)) for b in sources]
        store = Store(to, Affine.of(i) + start, loads[-1].result if loads else Literal(1.0, F8))
        return For(i, to.shape[0] if extent is None else extent, (*loads, store), order=order)

    def loop(self, *body: Statement, **parts: Any) -> For:
        return For(self.reg(), 5, body, **parts)

    def shared(self, *body: Statement) -> list[set[int]]:
        """The temporaries in each piece of memory."""
        plan = plan_arena(LoopFunction(("n",), (), (), (), tuple(self.temporaries), body))
        assert plan.slot_of.keys() == {b.number for b in self.temporaries}
        return [{b for b, k in plan.slot_of.items() if k == slot} for slot in range(len(plan.slots))]


@pytest.fixture
def w() -> Writing:
    return Writing()


@pytest.mark.parametrize("size", [10, N])
def test_a_chain_needs_two(w: Writing, size: Any) -> None:
    a, b, c, d = (w.temporary(size) for _ in range(4))
    assert w.shared(w.copy(a), w.copy(b, a), w.copy(c, b), w.copy(d, c)) == [{0, 2}, {1, 3}]


def test_other_sizes_of_numbers_only(w: Writing) -> None:
    a, b, c = w.temporary(N), w.temporary(N + 1), w.temporary(N)
    assert w.shared(w.copy(a), w.copy(b), w.copy(c)) == [{0, 2}, {1}]


def test_the_tightest_memory(w: Writing) -> None:
    large, middle, small = w.temporary(100), w.temporary(10), w.temporary(5)
    assert w.shared(w.copy(middle, large), w.copy(small)) == [{large.number}, {middle.number, small.number}]
    plan = plan_arena(LoopFunction((), (), (), (), (large, middle, small), (w.copy(middle, large), w.copy(small))))
    assert plan.slots == (800, 80)


def test_sizes_in_bytes(w: Writing) -> None:
    single, double = w.temporary(2 * N, dtype="float32"), w.temporary(N)
    assert w.shared(w.copy(single), w.copy(double)) == [{0, 1}]


@pytest.mark.parametrize("loop", ["for", "while"])
def test_in_a_loop_only_what_each_iteration_writes(w: Writing, loop: str) -> None:
    def around(*body: Statement) -> Statement:
        return w.loop(*body) if loop == "for" else While((), TRUE, w.reg(), body)

    a, b = w.temporary(10), w.temporary(10)
    assert w.shared(around(w.copy(a), w.copy(b))) == [{0, 1}]
    assert w.shared(around(around(w.copy(a), w.copy(b)))) == [{0, 1}]
    # read before it is written, written in part, or from elsewhere
    assert w.shared(around(w.copy(a, a), w.copy(b))) == [{0}, {1}]
    assert w.shared(around(w.copy(a, extent=9), w.copy(b))) == [{0}, {1}]
    assert w.shared(around(w.copy(a, start=1), w.copy(b))) == [{0}, {1}]
    assert w.shared(w.copy(a), around(w.copy(b), w.copy(b, a))) == [{0}, {1}]
    assert w.shared(around(w.copy(b), w.copy(a)), w.copy(a, a)) == [{0}, {1}]
    # in one iteration of the outer loop for the next one
    assert w.shared(around(around(w.copy(a, extent=9)), w.copy(b))) == [{0}, {1}]


def test_a_conditional_write_is_none(w: Writing) -> None:
    a, b = w.temporary(10), w.temporary(10)
    choice = Switch(TRUE, (Case((w.copy(a),)), Case(())))
    assert w.shared(w.loop(choice, w.copy(a, a), w.copy(b))) == [{0}, {1}]


def test_cases_share(w: Writing) -> None:
    a, b = w.temporary(10), w.temporary(10)
    assert w.shared(Switch(TRUE, (Case((w.copy(a),)), Case((w.copy(b),))))) == [{0, 1}]


@pytest.mark.parametrize("order", [Order.ANY, Order.GROUPED])
def test_iterations_in_any_order_use_everything_at_once(w: Writing, order: Order) -> None:
    a, b = w.temporary(10), w.temporary(10)
    assert w.shared(w.loop(w.copy(a), w.copy(b), order=order)) == [{0}, {1}]


def test_rows_of_a_matrix_are_all_of_it(w: Writing) -> None:
    a, b = w.temporary(N, 3), w.temporary(N, 3)

    def rows(to: Buffer, step: int = 3) -> For:
        i, j = w.reg(), w.reg()
        store = Store(to, Affine.of(i) * step + j, Literal(1.0, F8))
        return For(i, N, (For(j, 3, (store,), order=Order.ANY),), order=Order.ANY)

    assert w.shared(w.loop(rows(a), rows(b))) == [{0, 1}]
    assert w.shared(w.loop(rows(a, 2), rows(b))) == [{0}, {1}]


def test_swapped_buffers_live_together(w: Writing) -> None:
    a, b, c = (w.temporary(10) for _ in range(3))
    swapping = w.loop(w.copy(b, a), swaps=((a, b),))
    assert w.shared(w.copy(a), swapping, w.copy(c)) == [{0}, {1, 2}]
    assert w.shared(w.copy(a), swapping, w.copy(c), w.copy(c, a)) == [{0}, {1}, {2}]
    assert w.shared(w.loop(w.copy(a), swapping, w.copy(c))) == [{0}, {1}, {2}]


def test_subroutines_use_memory(w: Writing) -> None:
    a, b, c = w.temporary(8), w.temporary(8), w.temporary(8)
    eight, one = Literal(8, INDEX), Literal(1, INDEX)
    views = [View(x, Affine(), (8,), (1,)) for x in (a, b)]
    copied = Foreign("dcopy", (eight, views[0], one, views[1], one), (3,))
    assert w.shared(w.copy(a), copied, w.copy(c, b)) == [{0, 2}, {1}]
    assert w.shared(w.copy(a), w.copy(c), copied, w.copy(c, b)) == [{0}, {1}, {2}]


def test_results_of_calls_are_written_whole(w: Writing) -> None:
    a, b, c = (w.temporary(10) for _ in range(3))

    def call(to: Buffer, of: Buffer) -> Call:
        views = [View(x, Affine(), (10,), (1,)) for x in (of, to)]
        return Call(catalog.neg.op(), (views[0],), (views[1],), (Spec((10,), F8),))

    assert w.shared(w.loop(w.copy(a), call(b, a), w.copy(c, b))) == [{0, 2}, {1}]
    assert w.shared(w.loop(w.copy(a), call(b, b), w.copy(c, b))) == [{0, 2}, {1}]


def test_what_nobody_mentions_takes_any_memory(w: Writing) -> None:
    w.temporary(10)
    b = w.temporary(10)
    assert w.shared(w.copy(b)) == [{0, 1}]
