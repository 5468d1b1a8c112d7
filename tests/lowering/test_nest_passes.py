"""Passes over loop nests: the same bits, and the nests that are expected."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import tenferro_runtime as tr
from tenferro_runtime.lowering import lower
from tenferro_runtime.lowering.passes import (
    collapse_loops,
    dead_code,
    forward_loads,
    fuse_nests,
    improved,
    order_loops,
    pack_columns,
    pair_loops,
    reuse_memory,
)
from tenferro_tensor.catalog import arithmetic
from tenferro_tensor.loop_interpreter import interpret
from tenferro_tensor.loop_ir import Affine, Buffer, For, LoopFunction, LoopIRError, Order, Reg, Store, verify
from tenferro_tensor_core import dim
from thorough import tries
from whole_functions import Writing, literal

RNG = np.random.default_rng(11)
PASSES: dict[str, Callable[[LoopFunction], LoopFunction]] = {
    "fuse_nests": lambda f: _with(f, fuse_nests(f.body)),
    "forward_loads": lambda f: _with(f, forward_loads(f.body)),
    "dead_code": dead_code,
    "order_loops": lambda f: _with(f, order_loops(f.body)),
    "collapse_loops": lambda f: _with(f, collapse_loops(f.body)),
    "pair_loops": lambda f: _with(f, pair_loops(f.body)),
    "pack_columns": pack_columns,
    "reuse_memory": reuse_memory,
    "improved": improved,
}


def _with(f: LoopFunction, body: Any) -> LoopFunction:
    return LoopFunction(f.sizes, f.inputs, f.outputs, f.constants, f.temporaries, body)


def same(f: LoopFunction, *arrays: Any, sizes: tuple[int, ...] = ()) -> None:
    """Every pass gives a lawful function with the same bits."""
    want = interpret(f, arrays, sizes)
    for name, run in PASSES.items():
        after = run(f)
        verify(after, bounded=False)
        for got, expected in zip(interpret(after, arrays, sizes), want, strict=True):
            assert got.tobytes() == expected.tobytes(), f"{name}:\n{f}\n{after}"


def nests(f: LoopFunction) -> list[Any]:
    """The shape of the loops: their orders, with those inside."""

    def of(body: Any) -> list[Any]:
        return [(s.order.value, *of(s.body)) for s in body if isinstance(s, For)]

    return of(f.body)


def traced(f: Callable[..., Any], *shapes: tuple[int, ...]) -> LoopFunction:
    return lower(tr.trace(f, *[tr.asarray(RNG.random(shape)) for shape in shapes]))


def test_softmax_of_rows_is_one_pass_over_rows() -> None:
    def softmax(x: Any) -> Any:
        e = tr.exp(x - tr.max(x, axis=1, keepdims=True))
        return e / tr.sum(e, axis=1, keepdims=True)

    assert nests(traced(softmax, (30, 40))) == [("parallel", ("reduce",), ("parallel",), ("reduce",), ("parallel",))]


def test_loops_that_go_on_behind_each_other_are_one() -> None:
    a, b = tr.Spec((tr.dim("n"), tr.dim("m")), tr.float64), tr.Spec((tr.dim("m"),), tr.float64)
    both = lower(tr.trace(lambda x: (x * 2.0, tr.sum(x * x)), a))
    assert sorted(nests(both)) == [("parallel",), ("reduce",)]
    assert [str(s.extent) for s in both.body if isinstance(s, For)] == ["m*n", "m*n"]
    assert nests(lower(tr.trace(lambda x, y: x + y, a, b))) == [("parallel", ("parallel",))]
    assert nests(lower(tr.trace(lambda x: x.T[1:] * 1.0, a))) == [("parallel", ("parallel",))]
    three = tr.Spec((tr.dim("n"), 3, tr.dim("m")), tr.float64)
    assert nests(lower(tr.trace(lambda x: tr.sum(x, axis=2), three))) == [("parallel", ("reduce",))]
    x, y = RNG.random((3, 4)), RNG.random(4)
    same(both, x, sizes=(3, 4))
    same(lower(tr.trace(lambda x, y: tr.sum(x * y) + x, a, b)), x, y, sizes=(3, 4))


def test_indices_that_are_numbers_keep_both_loops() -> None:
    w = Writing("n", "m")
    out = w.output("int64", dim("n"), dim("m"))
    with w.loop(dim("n")) as i, w.loop(dim("m")) as j:
        w.store(out, Affine.of(i) * dim("m") + j, w.let(arithmetic.mul, w.position(i), w.position(j)))
    assert nests(improved(w.function())) == [("parallel", ("parallel",))]
    same(w.function(), sizes=(3, 4))


def test_a_cell_with_several_outputs_is_one_nest() -> None:
    def cell(x: Any, c: Any) -> Any:
        c = tr.tanh(x) * c + tr.exp(x)
        h = tr.tanh(c)
        return c, h, h * c

    f = traced(cell, (30,), (30,))
    assert nests(f) == [("parallel",)]
    assert not f.temporaries


def test_two_sums_over_the_same_elements_are_one_loop() -> None:
    f = traced(lambda x: (tr.sum(x, axis=1), tr.sum(x * x, axis=1)), (30, 40))
    assert nests(f) == [("parallel", ("reduce",))]


def test_two_sums_by_place_are_one_loop_over_places_computed_before() -> None:
    def means(x: Any, y: Any) -> Any:
        places = tr.astype(x * 8, tr.int64)
        return tr.zeros(40).at[places].add(y), tr.zeros(40).at[places].add(1.0)

    f = traced(means, (30,), (30,))
    assert nests(f) == [("parallel",), ("parallel",), ("parallel",), ("for",)]
    assert [b.dtype.name for b in f.temporaries] == ["int64"]


def test_elements_that_a_gather_reads_are_computed_once() -> None:
    f = traced(lambda x, y: tr.take(tr.sqrt(x) / y, tr.astype(y * 8, tr.int64)), (30,), (30,))
    assert nests(f) == [("parallel",), ("parallel",)]


def test_a_sum_by_place_that_another_one_reads_keeps_loops_apart() -> None:
    w = Writing()
    x, at, y, z = w.input("f8", 20), w.input("i8", 20), w.output("f8", 20), w.output("f8", 20)
    for buffer in (y, z):
        with w.loop(20) as i:
            w.store(buffer, i, literal(0.0))
    for buffer, source in ((y, x), (z, y)):
        with w.loop(20, Order.GIVEN) as i:
            place = Affine.of(w.load(at, i))
            w.store(buffer, place, w.let(arithmetic.add, w.load(buffer, place), w.load(source, i)))
    f = w.function()
    same(f, RNG.random(20), RNG.integers(0, 20, 20))
    assert nests(improved(f)) == [("parallel",), ("parallel",), ("for",), ("for",)]


def shifted(by: int) -> LoopFunction:
    """Doubled elements, and then the sum of each with one beside it."""
    w = Writing()
    x, y, kept = w.input("f8", 20), w.output("f8", 20), w.temporary("f8", 30)
    with w.loop(30) as i:
        w.store(kept, i, literal(3.0))
    with w.loop(20) as i:
        w.store(kept, Affine.of(i) + 4, w.let(arithmetic.add, w.load(x, i), w.load(x, i)))
    with w.loop(20) as i:
        w.store(y, i, w.let(arithmetic.add, w.load(kept, Affine.of(i) + 4), w.load(kept, Affine.of(i) + 4 + by)))
    return w.function()


@pytest.mark.parametrize("by", [-1, 0, 1])
def test_neighbours_of_another_iteration_keep_loops_apart(by: int) -> None:
    f = shifted(by)
    same(f, RNG.random(20))
    assert len(nests(improved(f))) == (1 if by == 0 else 3)


def test_rows_of_symbolic_length_fuse_where_one_stays_within_the_other() -> None:
    n, m = dim("n"), dim("m")
    w = Writing("n", "m")
    x, y, kept = w.input("f8", n, m), w.output("f8", n, m), w.temporary("f8", n, m)
    with w.loop(n) as i, w.loop(m) as j:
        w.store(kept, Affine.of(i) * m + j, w.load(x, Affine.of(i) * m + j))
    with w.loop(n) as i, w.loop(m) as j:
        w.store(y, Affine.of(i) * m + j, w.load(kept, Affine.of(i) * m - j + (m - 1)))
    f = w.function()
    same(f, RNG.random((3, 4)), sizes=(3, 4))
    assert nests(improved(f)) == [("parallel", ("parallel",), ("parallel",))]


def test_a_number_between_two_loops_moves_before_them() -> None:
    w = Writing()
    x, y, z = w.input("f8", 20), w.output("f8", 20), w.output("f8", 20)
    with w.loop(20) as i:
        w.store(y, i, w.load(x, i))
    by = w.let(arithmetic.mul, w.load(x, 3), literal(2.0))
    with w.loop(20) as i:
        w.store(z, i, w.let(arithmetic.mul, w.load(y, i), by))
    f = w.function()
    same(f, RNG.random(20))
    assert nests(improved(f)) == [("parallel",)]


def test_a_number_that_the_first_loop_stores_keeps_loops_apart() -> None:
    w = Writing()
    x, y, z = w.input("f8", 20), w.output("f8", 20), w.output("f8", 20)
    with w.loop(20) as i:
        w.store(y, i, w.load(x, i))
    by = w.load(y, 3)
    with w.loop(20) as i:
        w.store(z, i, w.let(arithmetic.mul, w.load(y, i), by))
    f = w.function()
    same(f, RNG.random(20))
    assert len(nests(improved(f))) == 2


def test_rows_are_combined_in_registers_some_at_a_time() -> None:
    f = traced(lambda x: tr.max(x, axis=0), (40, 30))
    assert nests(f) == [("parallel", ("reduce",)), ("for", ("parallel", ("reduce",)))]
    assert nests(traced(lambda x: tr.max(x, axis=0), (18, 30))) == nests(f)
    assert nests(traced(lambda x: tr.max(x, axis=(0, 1)), (5, 16, 30))) == [("parallel", ("reduce",))]
    for rows in (0, 1, 16, 17, 32, 33, 40):
        x = RNG.random((rows, 30))
        (got,) = interpret(traced(lambda x: tr.sum(x, axis=0), x.shape), [x], ())
        np.testing.assert_allclose(got, x.sum(axis=0), rtol=1e-14)


def test_the_loop_around_sums_goes_along_memory() -> None:
    def turned(x: Any, y: Any, z: Any) -> Any:
        return tr.sum(tr.permute_dims(x * y * z, (2, 0, 1)), axis=1)

    loop = next(
        s for s in traced(turned, *[(20, 30, 40)] * 3).body if isinstance(s, For) and isinstance(s.body[0], For)
    )
    assert loop.extent == 30
    assert isinstance(loop.body[0], For) and loop.body[0].extent == 40


def columns(stores: bool) -> LoopFunction:
    """The outer product of two columns of a matrix, which is perhaps written to beside them."""
    w = Writing()
    x, y, out = w.input("f8", 6, 5), w.temporary("f8", 6, 10), w.output("f8", 6, 6)
    with w.loop(6) as i, w.loop(5) as j:
        w.store(y, Affine.of(i) * 10 + j, w.load(x, Affine.of(i) * 5 + j))
    with w.loop(4, Order.GIVEN) as k, w.loop(6) as i, w.loop(6) as j:
        first, second = w.load(y, Affine.of(i) * 10 + 2), w.load(y, Affine.of(j) * 10 + k)
        w.store(out, Affine.of(i) * 6 + j, w.let(arithmetic.mul, first, second))
        if stores:
            w.store(y, Affine.of(i) * 10 + 9, first)
    return w.function()


def test_columns_that_a_nest_reads_for_every_row_are_packed() -> None:
    f = columns(stores=False)
    same(f, RNG.random((6, 5)))
    packed = pack_columns(f)
    assert nests(packed)[1] == ("for", ("parallel",), ("parallel", ("parallel",)))
    assert len(packed.temporaries) == 2


def test_a_vector_that_a_product_needs_for_every_row_is_computed_once() -> None:
    f = traced(lambda a, v, u: a @ ((v * u + v) * u - v), (30, 40), (40,), (40,))
    assert nests(f) == [("parallel",), ("parallel", ("reduce",))]
    f = traced(lambda a, v: a @ (2.0 * v), (30, 40), (40,))
    assert nests(f) == [("parallel", ("reduce",))]


def test_mathematics_of_sums_stays_apart_from_them() -> None:
    f = traced(lambda a, v: tr.exp(a @ v), (30, 40), (40,))
    assert nests(f) == [("parallel", ("reduce",)), ("parallel",)]
    f = traced(lambda a, v: (a @ v) * 2.0 + v[0], (30, 40), (40,))
    assert nests(f) == [("parallel", ("reduce",))]


def test_columns_of_memory_that_the_nest_writes_are_not_packed() -> None:
    f = columns(stores=True)
    assert pack_columns(f) == f


def test_dead_carries_temporaries_and_loops_go() -> None:
    w = Writing()
    x, y, dead = w.input("f8", 20), w.output("f8", 20), w.temporary("f8", 20)
    w.fold(20, [literal(0.0)], lambda i, c: [w.let(arithmetic.add, c, w.load(x, i))], Order.GROUPED)
    with w.loop(20) as i:
        w.store(dead, i, w.load(x, i))
        w.store(y, i, literal(1.0))
    f = dead_code(w.function())
    assert not f.temporaries
    (loop,) = f.body
    assert isinstance(loop, For) and len(loop.body) == 1


def innermost(body: Any) -> list[For]:
    return [t for s in body if isinstance(s, For) for t in (innermost(s.body) or [s])]


def test_the_innermost_loop_goes_along_memory() -> None:
    w = Writing()
    x, y, z = w.input("f8", 20, 30, 5), w.input("f8", 5, 20, 30), w.output("f8", 5, 20, 30)
    with w.loop(20) as i, w.loop(30) as j, w.loop(5) as k:
        place = Affine.of(k) * 600 + Affine.of(i) * 30 + j
        w.store(z, place, w.let(arithmetic.add, w.load(x, Affine.of(i) * 150 + Affine.of(j) * 5 + k), w.load(y, place)))
    f = w.function()
    same(f, RNG.random((20, 30, 5)), RNG.random((5, 20, 30)))
    (loop,) = innermost(order_loops(f.body))
    assert loop.extent == 30


def test_loops_along_the_rows_of_both_arrays_are_the_innermost_ones() -> None:
    w = Writing()
    x, y = w.input("f8", 5, 6, 7), w.output("f8", 7, 5, 6)
    with w.loop(7) as k, w.loop(5) as i, w.loop(6) as j:
        at = Affine.of(k) * 30 + Affine.of(i) * 6 + j
        w.store(y, at, w.load(x, Affine.of(i) * 42 + Affine.of(j) * 7 + k))
    f = w.function()
    same(f, RNG.random((5, 6, 7)))
    (outer,) = pair_loops(f.body)
    assert isinstance(outer, For) and isinstance(outer.body[0], For)
    assert (outer.extent, outer.body[0].extent) == (5, 7)
    assert pair_loops(pair_loops(f.body)) == pair_loops(f.body)


def normalised(inside: Any, after: Any = None) -> LoopFunction:
    """Rows of a temporary array, and quotients of them and what `inside` and `after` make of it."""
    w = Writing()
    x, y, e = w.input("f8", 4, 6), w.output("f8", 4, 6), w.temporary("f8", 4, 6)
    with w.loop(4) as i:
        with w.loop(6) as j:
            at = Affine.of(i) * 6 + j
            w.store(e, at, w.let(arithmetic.mul, w.load(x, at), literal(2.0)))
        inside(w, e, i)
        with w.loop(6) as j:
            at = Affine.of(i) * 6 + j
            w.store(y, at, w.let(arithmetic.add, w.load(e, at), literal(1.0)))
        if after is not None:
            after(w, e, i)
    return w.function()


def test_a_temporary_lives_where_its_last_reader_writes() -> None:
    def nothing(*_: Any) -> None:
        pass

    def other(w: Writing, e: Buffer, i: Any) -> None:
        out = w.output("f8", 4)
        w.store(out, i, w.load(e, Affine.of(i) * 6 + 3))

    x = RNG.random((4, 6))
    for f, left in ((normalised(nothing), 0), (normalised(other), 0), (normalised(nothing, other), 1)):
        same(f, x)
        assert len(reuse_memory(f).temporaries) == left

    def softmax(x: Any) -> Any:
        e = tr.exp(x - tr.max(x, axis=1, keepdims=True))
        return e / tr.sum(e, axis=1, keepdims=True)

    assert not traced(softmax, (30, 40)).temporaries


@pytest.mark.parametrize("shift", [0, 1])
@pytest.mark.parametrize("order", [Order.ANY, Order.GIVEN])
def test_a_temporary_that_other_iterations_read_keeps_its_memory(shift: int, order: Order) -> None:
    w = Writing()
    x, y, kept = w.input("f8", 20), w.output("f8", 19), w.temporary("f8", 19)
    with w.loop(19) as i:
        w.store(kept, i, w.let(arithmetic.add, w.load(x, i), literal(1.0)))
    with w.loop(19 - shift, order) as i:
        near = w.load(kept, Affine.of(i) + shift)
        w.store(y, i, w.let(arithmetic.mul, w.load(kept, i), near))
    if shift:
        w.store(y, 18, literal(0.0))
    f = w.function()
    same(f, RNG.random(20))
    assert len(reuse_memory(f).temporaries) == shift


def test_zeros_of_both_signs_stay_apart() -> None:
    w = Writing()
    x, y, z = w.input("f8"), w.output("f8"), w.output("f8")
    number = w.load(x, 0)
    w.store(y, 0, w.let(arithmetic.mul, number, literal(0.0)))
    w.store(z, 0, w.let(arithmetic.mul, number, literal(-0.0)))
    same(w.function(), np.array(2.0))


SIZE = 24
SHAPES = [(4,), (6,), (4, 6), (6, 4), (4, 2, 3)]


@st.composite
def functions(draw: Any) -> LoopFunction:
    """Sequences of nests over a few buffers, some inside a loop that swaps two of them."""
    w = Writing()
    x = w.input("f8", SIZE)
    outs = [w.output("f8", SIZE) for _ in range(2)]
    kept = [w.temporary("f8", SIZE) for _ in range(3)]
    buffers = [x, *outs, *kept]
    for k, b in enumerate([*outs, *kept]):
        with w.loop(SIZE) as i:
            w.store(b, i, w.let(arithmetic.add, w.load(x, i), literal(float(k))))
    for _ in range(draw(st.integers(1, 3))):
        if draw(st.booleans()):
            with w.loop(3, Order.GIVEN, swaps=[(kept[0], kept[1])] if draw(st.booleans()) else ()):
                for _ in range(draw(st.integers(1, 3))):
                    _nest(draw, w, buffers)
        else:
            for _ in range(draw(st.integers(1, 4))):
                _nest(draw, w, buffers)
    return w.function()


def _nest(draw: Any, w: Writing, buffers: list[Buffer]) -> None:
    """One nest that the law allows, or else one iteration after the other."""
    shape = draw(st.sampled_from(SHAPES))
    strides = draw(st.permutations([int(np.prod(shape[k + 1 :])) for k in range(len(shape))]))
    if draw(st.integers(0, 3)):
        strides = sorted(strides, reverse=True)
    room = SIZE - 1 - sum((n - 1) * by for n, by in zip(shape, strides, strict=True))
    offset = st.integers(0, max(0, min(room, 3)))
    assume(room >= 0)

    def place(index: list[Reg]) -> Affine:
        at = Affine(draw(offset))
        for i, by in zip(index, strides, strict=True):
            at = at + Affine.of(i) * by
        return at

    def statements(index: list[Reg]) -> None:
        value: Any = literal(1.5)
        for _ in range(draw(st.integers(1, 3))):
            value = w.let(arithmetic.sub, w.load(draw(st.sampled_from(buffers)), place(index)), value)
        for _ in range(draw(st.integers(1, 2))):
            w.store(draw(st.sampled_from(buffers[1:])), place(index), value)

    def summed(index: list[Reg]) -> None:
        b = draw(st.sampled_from(buffers))
        (total,) = w.fold(
            shape[-1], [literal(0.5)], lambda j, c: [w.let(arithmetic.add, c, w.load(b, place([*index, j])))],
            Order.GROUPED,
        )  # fmt: skip
        w.store(draw(st.sampled_from(buffers[1:])), place([*index, w.position(0)]), total)

    reduce = len(shape) > 1 and draw(st.booleans())

    def level(k: int, index: list[Reg]) -> None:
        if k == len(shape) - reduce:
            (summed if reduce else statements)(index)
            return
        with w.loop(shape[k]) as i:
            level(k + 1, [*index, i])

    level(0, [])
    w.body[-1] = _lawful(w.body[-1], buffers)


def _lawful(loop: For, buffers: list[Buffer]) -> For:
    try:
        verify(LoopFunction((), tuple(buffers[:1]), tuple(buffers[1:]), (), (), (loop,)))
    except LoopIRError:
        body = [_lawful(s, buffers) if isinstance(s, For) and not s.carries else s for s in loop.body]
        return For(loop.index, loop.extent, tuple(body), loop.carries, Order.GIVEN)
    return loop


@settings(max_examples=tries(20, 150), deadline=None)
@given(functions())
def test_passes_keep_every_bit_of_random_nests(f: LoopFunction) -> None:
    verify(f, bounded=False)
    same(f, np.arange(SIZE) * 0.37)


def test_stores_are_forwarded_within_a_block_only() -> None:
    w = Writing()
    x, y = w.input("f8", 8), w.output("f8", 8)
    with w.loop(8) as i:
        w.store(y, i, w.load(x, i))
        w.store(y, i, w.let(arithmetic.add, w.load(y, i), w.load(x, i)))
    (loop,) = forward_loads(w.function().body)
    assert isinstance(loop, For)
    assert [s.__class__ for s in loop.body].count(Store) == 2 and len(loop.body) == 4
    same(w.function(), RNG.random(8))
