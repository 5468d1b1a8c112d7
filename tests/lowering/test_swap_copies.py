"""Stencils written in place, in loops: two buffers that trade places instead of a copy in each iteration."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tenferro_runtime as tr
from tenferro_runtime.lowering._lower import written
from tenferro_runtime.lowering.passes import improved, swap_copies
from tenferro_tensor.catalog import arithmetic
from tenferro_tensor.loop_interpreter import interpret
from tenferro_tensor.loop_ir import Affine, Buffer, For, LoopFunction, Order, While, verify
from tenferro_tensor_core import dim
from whole_functions import Writing

RNG = np.random.default_rng(13)
Body = Callable[..., Any]


def smoothed(u: Any) -> Any:
    return u.at[1:-1, 1:-1].set((u[2:, 1:-1] + u[:-2, 1:-1] + u[1:-1, 2:] + u[1:-1, :-2]) * 0.25)


def line(u: Any) -> Any:
    return u.at[1:].set(u[1:] - 0.5 * u[:-1])


def margins(u: Any) -> Any:
    return u.at[2:-1, 1:, :-2].set(u[3:, :-1, 1:-1] - u[1:-2, 1:, 2:])


def with_edges(u: Any) -> Any:
    u = smoothed(u)
    u = u.at[:, -1].set(u[:, -2])
    return u.at[0, :].set(0.5)


def edge_first(u: Any) -> Any:
    return smoothed(u.at[0, :].set(u[1, :] * 0.5))


def twice(u: Any) -> Any:
    return smoothed(smoothed(u))


def part(u: Any) -> Any:
    return u.at[1:9, 1:9].set(u[:8, :8] + u[2:10, 2:10])


CASES: dict[str, tuple[Body, tuple[int, ...], bool]] = {
    "window": (smoothed, (20, 21), True),
    "line": (line, (40,), True),
    "margins of all kinds": (margins, (13, 9, 10), True),
    "edges after the window": (with_edges, (20, 21), True),
    "edges before the window": (edge_first, (20, 21), False),
    "two windows": (twice, (20, 21), True),
    "a small part": (part, (40, 40), False),
}


def scanned(f: Body, steps: int) -> Body:
    return lambda u: tr.scan(lambda u, _: (f(u), None), u, None, length=steps)[0]


def repeated(f: Body, steps: int) -> Body:
    return lambda u: tr.while_loop(lambda s: s[1] < steps, lambda s: (f(s[0]), s[1] + 1), (u, tr.asarray(0)))[0]


def swaps(f: LoopFunction) -> int:
    return sum(len(s.swaps) for s in f.body if isinstance(s, For | While))


@pytest.mark.parametrize("steps", [4, 5])
@pytest.mark.parametrize("looped", [scanned, repeated])
@pytest.mark.parametrize("name", CASES)
def test_two_buffers_give_the_bits_of_one(name: str, looped: Callable[[Body, int], Body], steps: int) -> None:
    f, shape, expected = CASES[name]
    u = RNG.random(shape)
    before = written(tr.trace(looped(f, steps), tr.asarray(u)))
    want = interpret(before, [u])
    for after in (swap_copies(before), improved(before)):
        verify(after, bounded=False)
        assert bool(swaps(after)) is expected
        for got, w in zip(interpret(after, [u]), want, strict=True):
            assert got.tobytes() == w.tobytes()


def test_what_no_iteration_writes_is_copied_once() -> None:
    f = improved(written(tr.trace(scanned(smoothed, 8), tr.asarray(RNG.random((20, 21))))))
    (loop,) = [s for s in f.body if isinstance(s, For) and s.order is Order.GIVEN]
    assert len(loop.body) == 1


def test_short_loops_keep_one_buffer() -> None:
    f = improved(written(tr.trace(scanned(smoothed, 3), tr.asarray(RNG.random((20, 21))))))
    assert not swaps(f)


def test_a_loop_inside_of_a_loop_copies_the_borders_each_time() -> None:
    def outer(u: Any, i: Any) -> Any:
        return scanned(smoothed, 5)(u.at[0].add(i)), None

    u = RNG.random((20, 21))
    before = written(tr.trace(lambda u: tr.scan(outer, u, tr.arange(3.0))[0], tr.asarray(u)))
    after = improved(before)
    verify(after, bounded=False)
    assert interpret(after, [u])[0].tobytes() == interpret(before, [u])[0].tobytes()


def symbolic(kept: Callable[[Writing, Any, Any], Buffer]) -> LoopFunction:
    """Six steps of a stencil over an array of symbolic extents."""
    n, m = dim("n", min=3), dim("m", min=3)
    w = Writing("n", "m")
    x, u = w.input("f8", n, m), w.output("f8", n, m)
    apart = kept(w, n, m)
    with w.loop(n * m) as i:
        w.store(u, i, w.load(x, i))
    with w.loop(6, Order.GIVEN):
        with w.loop(n - 2) as i, w.loop(m - 2) as j:
            at = Affine.of(i) * m + j + (m + 1)
            w.store(apart, Affine.of(i) * (m - 2) + j, w.let(arithmetic.add, w.load(u, at - m), w.load(u, at + 1)))
        with w.loop(n - 2) as i, w.loop(m - 2) as j:
            w.store(u, Affine.of(i) * m + j + (m + 1), w.load(apart, Affine.of(i) * (m - 2) + j))
    return w.function()


@pytest.mark.parametrize("sizes", [(3, 3), (3, 8), (7, 5)])
def test_windows_of_symbolic_extents(sizes: tuple[int, int]) -> None:
    before = symbolic(lambda w, n, m: w.temporary("f8", n - 2, m - 2))
    after = improved(before)
    verify(after, bounded=False)
    assert swaps(after) == 1
    u = RNG.random(sizes)
    assert interpret(after, [u], sizes)[0].tobytes() == interpret(before, [u], sizes)[0].tobytes()


def test_a_window_that_is_an_output_is_computed_apart() -> None:
    before = symbolic(lambda w, n, m: w.output("f8", n - 2, m - 2))
    assert not swaps(swap_copies(before))
