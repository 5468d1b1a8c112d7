"""Loops of Python that are recorded as loops: the same bits as written out, and only where values go through one."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tenferro_ad as ad
import tenferro_runtime as tr
from tenferro_runtime.ir import Program
from tenferro_tensor_core import ArgumentError
from thorough import tries

X = np.linspace(-1.0, 1.0, 24)


def loops(program: Program) -> list[int]:
    """The numbers of iterations of the loops of a program, those of loops inside behind their own."""
    found = []
    for eq in program.equations:
        if eq.op.primitive.name == "scan":
            found += [eq.op.params["length"], *loops(eq.op.params["body"])]
    return found


def rolled(f, *args) -> Program:
    """The program of a function with its loops recorded, which gives the bits that it gives written out."""
    program = tr.trace(f, *args)
    found = tr.Runtime(check=True, deterministic=True, unroll=False).optimise(program)
    for a, b in zip(program.run(*args), found.run(*args), strict=True):
        np.testing.assert_array_equal(np.asarray(a), np.asarray(b))
    return found


def gradient(f):
    return lambda *args: ad.value_and_grad(lambda *xs: total(f(*xs)))(*args)


def total(out):
    return sum(tr.sum(y) for y in out) if isinstance(out, tuple) else tr.sum(out)


def chain(x):
    for _ in range(12):
        x = tr.tanh(x) * 1.5
    return x


def numbers_and_elements(x):
    kept, shifted = x * 0, x
    for i in range(10):
        shifted = tr.sin(shifted) * (i + 0.5) + x[i]
        shifted = shifted.at[i + 1].set(shifted[i] * 2.0)
        kept = kept + tr.sum(shifted[i : i + 3])
    return shifted, kept


def collected(x):
    rows, ends = [], []
    for i in range(9):
        x = tr.cos(x) + i
        rows.append(x)
        ends.append(x[-1])
    return tr.stack(rows), tr.stack(rows, axis=-1), tr.concat(rows), tr.stack(ends)


def added_to(x):
    for i in range(10):
        x = x.at[2 * i + 1].add(tr.sin(x[i]))
    return x


def blocks_are_set(x):
    table = tr.reshape(x, (8, 3))
    for i in range(6):
        table = table.at[i + 1 : i + 2].set(tr.sin(table[i : i + 1]) + table[i + 1 : i + 2])
    return table


def two_back(x):
    before, now = x, tr.sin(x)
    for _ in range(9):
        before, now = now, tr.cos(now) - 0.5 * before
    return now


def three_back(x):
    a, b, c = x, tr.sin(x), tr.cos(x)
    for _ in range(9):
        a, b, c = b, c, tr.sin(c) * a + b
    return a, b, c


def exchanged(x):
    a, b = x, tr.sin(x)
    for _ in range(10):
        a, b = b * 0.5, tr.tanh(a) + b
    return a - b


def middle_is_read(x):
    kept = []
    for i in range(11):
        x = tr.sin(x) * 1.1
        if i == 4:
            kept.append(x)
    return x * kept[0]


def arrays_of_outside(x):
    weights = [np.cos(np.arange(24.0) * k) for k in range(10)]
    for w in weights:
        x = tr.tanh(x * w)
    return x


def rows_of_an_array(x):
    table = tr.reshape(x, (8, 3))
    now = x[:3]
    for i in range(8):
        now = tr.sin(now) + table[i]
    return now


def backwards(x):
    now = x[0]
    for i in reversed(range(12)):
        now = tr.sin(now) + x[i] * x[i + 1]
    return now


def every_other(x):
    now = x[0]
    for i in range(8):
        now = tr.sin(now) + x[3 * i]
    return now


def in_an_odd_order(x):
    now = x[0]
    for i in (3, 1, 4, 15, 9, 2, 6, 5, 3, 5):
        now = tr.sin(now) * x[i]
    return now


def unchanging_steps(x):
    now = x
    for _ in range(9):
        now = tr.sin(now) + tr.exp(x) * tr.sum(x)
    return now


def loop_in_a_loop(x):
    for i in range(6):
        for j in range(5):
            x = tr.sin(x) + x[j] * (i + 1)
        x = x / 2.0
    return x


def two_loops(x):
    for _ in range(9):
        x = tr.sin(x)
    y = tr.sum(x)
    for i in range(8):
        y = tr.cos(y) * x[i]
    return y


def products(x):
    a = tr.reshape(x[:16], (4, 4))
    now = x[:4]
    for _ in range(9):
        now = tr.tanh(a @ now) + x[4:8]
    return now


LOOPS = [
    chain, numbers_and_elements, collected, added_to, blocks_are_set, two_back, three_back, exchanged, middle_is_read,
    arrays_of_outside, rows_of_an_array, backwards, every_other, in_an_odd_order, unchanging_steps, loop_in_a_loop,
    two_loops, products,
]  # fmt: skip


@pytest.mark.parametrize("f", LOOPS)
def test_a_loop_of_python_becomes_a_loop(f):
    assert max(loops(rolled(f, X))) >= 5


@pytest.mark.parametrize("f", LOOPS)
def test_the_gradient_of_a_loop_of_python_is_two_loops(f):
    rolled(gradient(f), X)
    program = tr.trace(gradient(f), X)
    found = tr.Runtime(check=True, unroll=False).optimise(program)
    assert len(loops(found)) >= 2
    for a, b in zip(program.run(X), found.run(X), strict=True):
        np.testing.assert_allclose(np.asarray(a), np.asarray(b), rtol=1e-12, atol=1e-12)


def test_loops_inside_of_loops_are_recorded():
    assert len(loops(rolled(loop_in_a_loop, X))) == 2


def test_open_sizes_stay_open():
    for f in (chain, added_to, backwards, exchanged, every_other, products):
        compiled = tr.compile(gradient(f), unroll=False, deterministic=True)
        written_out = tr.compile(gradient(f), unroll=True, deterministic=True)
        for n in (24, 31):
            x = np.linspace(0.0, 2.0, n)
            assert loops(compiled.program(x))
            for a, b in zip(compiled(x), written_out(x), strict=True):
                np.testing.assert_array_equal(np.asarray(a), np.asarray(b))
        assert compiled.cache_info().traces == written_out.cache_info().traces


def test_a_number_that_breaks_the_pattern_keeps_its_iteration_apart():
    def f(x):
        for i in range(20):
            x = tr.sin(x) ** (3 if i == 7 else 2)
        return x

    assert sum(loops(rolled(f, X))) <= 19


def test_numbers_that_differ_are_read_from_an_array():
    numbers = [1.0, -0.0, 0.0, np.inf, 2.0, 1e-300, 3.0, 1.0]

    def f(x):
        for number in numbers:
            x = x * 0.5 + number
        return x

    assert loops(rolled(f, X)) == [8]


def test_signs_of_zeros_tell_numbers_apart():
    def f(x):
        for i in range(6):
            x = tr.maximum(x * (-0.0 if i % 2 else 0.0), x) + (0.0 if i % 2 else -0.0) + x * (0.0 if i % 2 else -0.0)
        return x

    program = rolled(f, np.array([-0.0, 0.0, 1.0]))
    assert np.array_equal(np.signbit(np.asarray(program.run(np.zeros(3))[0])), np.signbit(np.asarray(f(np.zeros(3)))))


def test_a_value_that_leaps_over_groups_is_not_a_carry():
    def f(x):
        first, y = tr.sin(x), x
        for i in range(14):
            y = tr.cos(y) + first
            if i % 5 == 0:
                first = y
        return y

    rolled(f, X)


def test_different_shapes_are_different_steps():
    def f(x):
        for i in range(1, 12):
            x = x + tr.sum(tr.sin(x[:i]))
        return x

    assert not loops(rolled(f, X))


def test_short_loops_stay_as_they_are_by_default():
    def f(x):
        for _ in range(4):
            x = tr.sin(x)
        return x

    def long(x):
        for _ in range(400):
            x = tr.sin(x) * 0.5
        return x

    assert not loops(tr.compile(f).program(X))
    assert loops(tr.compile(long).program(X)) == [400]


def test_unroll_decides():
    assert loops(tr.compile(chain, unroll=False).program(X)) == [12]
    assert loops(tr.compile(chain, unroll=11).program(X)) == [12]
    assert not loops(tr.compile(chain, unroll=12).program(X))
    assert not loops(tr.compile(chain, unroll=True).program(X))
    assert loops(tr.compile(unroll=False)(chain).program(X)) == [12]


def test_loops_that_were_asked_to_be_written_out_stay_written_out():
    step = lambda c, v: (tr.sin(c) * v + tr.cos(c), c)
    whole = lambda x: tr.scan(step, x, np.linspace(0.0, 1.0, 30), unroll=True)[0]
    counted = lambda x: tr.fori_loop(0, 40, lambda i, c: tr.sin(c) * x[3] + tr.cos(c), x, unroll=True)
    blocks = lambda x: tr.scan(step, x, np.linspace(0.0, 1.0, 48), unroll=24)[0]
    for f in (whole, counted):
        assert not loops(tr.compile(f).program(X))
        assert not loops(tr.compile(gradient(f)).program(X))
    assert loops(tr.compile(blocks).program(X)) == [2]
    assert loops(tr.compile(counted, unroll=False).program(X)) == [40]


@pytest.mark.parametrize("unroll", [0, -1, 2.5, "all"])
def test_unroll_is_a_boolean_or_a_number(unroll):
    with pytest.raises(ArgumentError, match="leave it out to let their length decide"):
        tr.compile(chain, unroll=unroll)


def test_explain_says_that_a_loop_was_written_in_python():
    text = str(tr.compile(chain, unroll=False).explain(X))
    assert "body of a Python loop, 12 times" in text
    assert "test_rolled_loops.py" in text
    by_hand = tr.compile(lambda x: tr.fori_loop(0, 12, lambda _, y: tr.tanh(y) * 1.5, x))
    assert "Python loop" not in str(by_hand.explain(X))


STEPS = ("sin", "add", "mul", "scale", "element", "set", "sum", "keep", "swap", "window", "number", "outside")


@st.composite
def bodies(draw):
    """The steps of a body, each with two operands and a number; how often it runs; where a step breaks the pattern."""
    steps = draw(st.lists(st.tuples(st.sampled_from(STEPS), *[st.integers(0, 2)] * 2, st.integers(0, 3)), max_size=7))
    breaks = draw(st.none() | st.tuples(st.integers(0, 9), st.sampled_from(STEPS)))
    return steps, draw(st.integers(3, 10)), breaks


def random_loop(steps, count, breaks):
    def step(values, kept, i, kind, a, b, k):
        x, y = values[a], values[b]
        values = list(values)
        if kind == "sin":
            values[a] = tr.sin(y)
        elif kind == "add":
            values[a] = x + y
        elif kind == "mul":
            values[a] = x * tr.sin(y)
        elif kind == "scale":
            values[a] = x * (0.25 * k)
        elif kind == "element":
            values[a] = tr.cos(x) + y[i + k]
        elif kind == "set":
            values[a] = x.at[i + k].set(y[k])
        elif kind == "sum":
            values[a] = tr.tanh(x) + 0.1 * tr.sum(y)
        elif kind == "keep":
            kept.append(x)
        elif kind == "swap":
            values[a], values[b] = y, x
        elif kind == "window":
            values[a] = x + tr.sum(y[i : i + k + 1])
        elif kind == "number":
            values[a] = tr.sin(x) + (i * k - 1.5)
        else:
            values[a] = tr.tanh(x) * np.cos(np.arange(24.0) + i)
        return values

    def f(x):
        values, kept = [x, x * 0.5, tr.cos(x)], []
        for i in range(count):
            for now in steps:
                values = step(values, kept, i, *now)
            if breaks is not None and breaks[0] == i:
                values = step(values, kept, i, breaks[1], 0, 1, 2)
        return (*values, *([tr.stack(kept)] if kept else []))

    return f


@given(bodies())
@settings(max_examples=tries(24, 60), deadline=None)
def test_random_bodies_keep_their_bits(body):
    rolled(random_loop(*body), X)


@given(bodies())
@settings(max_examples=30, deadline=None)
def test_gradients_of_random_bodies_keep_their_bits(body):
    rolled(gradient(random_loop(*body)), X)


def test_a_loop_that_hands_views_on_stays_written_out_where_bits_count():
    def f(x):
        y = tr.reshape(x, (4, 6))
        for _ in range(10):
            y = tr.reshape(tr.sin(y).T, (4, 6)).T.T
        return y

    assert not loops(rolled(lambda x: f(x) @ f(x).T, X))
