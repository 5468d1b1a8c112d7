"""Loops that read and update arrays at computed places: in every way of running, against differences, and their work.

A step costs what it reads and writes, in the gradient too: no array of full size is made in it.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tenferro_runtime as tr
from runtime_rooms import lowered
from tenferro_ad import grad
from tenferro_runtime.control_flow._in_place import overwritten_carries
from tenferro_runtime.costs._storage import Storage, nbytes
from tenferro_runtime.extension import Program, optimise
from tenferro_runtime.ir import inner_programs
from tenferro_runtime.ir._reuse import UPDATES as UPDATES_IN_PLACE
from tenferro_runtime.running.rendering._overwriting import overwriting
from tenferro_tensor import Spec, catalog
from thorough import tries

# ------------------------------------------------------------------------------------------------ random loops


@dataclass
class Loop:
    """A loop of a few reads and updates, over pairs of indices."""

    reads: list[str]
    updates: list[str]
    nested: bool
    reverse: bool
    rows: bool

    def __call__(self, a, u, xs):
        def body(carry, i):
            s, c = carry
            for name in self.reads:
                s = s + READS[name](a, i) * 0.5
            if self.nested:
                s = tr.scan(lambda t, j: (t + tr.sin(a[i[0], j]) * c[j, i[1]], None), s, xs[:, 0])[0]
            for name in self.updates:
                c = UPDATES[name](c, s, i)
            return (tr.tanh(s), c), (c[0, 1] * s if self.rows else None)

        (s, c), ys = tr.scan(body, (tr.sum(u[0]) * 0.1, u), xs, reverse=self.reverse)
        return s + tr.sum(tr.sin(c)) + (tr.sum(ys) if self.rows else 0.0)


READS = {
    "element": lambda a, i: tr.tanh(a[i[0], i[1]]),
    "diagonal": lambda a, i: a[i[0], i[0]] * a[i[1], i[1]],
    "row": lambda a, i: tr.sum(tr.sin(a[i[0]])),
    "column": lambda a, i: tr.max(a[:, i[1]] ** 2),
    "repeated": lambda a, i: tr.sum(a[tr.stack([i[0], i[0], i[1]])] ** 2),
    "pairs": lambda a, i: tr.sum(tr.cos(a[i, i])),
    "static": lambda a, i: a[0, 2] * a[-1, 1],
    "strided": lambda a, i: tr.sum(a[::2, 1:][:, ::2] ** 2),
    "block": lambda a, i: tr.sum(tr.sin(a[1:3, :2])),
    "whole": lambda a, i: tr.sum(a * a) * 0.1,
    "taken": lambda a, i: tr.sum(tr.take(a, i, axis=1)),
}
UPDATES = {
    "set": lambda c, s, i: c.at[i[0], i[1]].set(s),
    "row": lambda c, s, i: c.at[i[0]].set(tr.sin(c[i[1]]) * s),
    "own": lambda c, s, i: c.at[i[0]].set(c[i[0]] * 0.5 + s),
    "add": lambda c, s, i: c.at[i[1], i[0]].add(tr.sin(s)),
    "rows": lambda c, s, i: c.at[i].set(tr.stack([c[0] * s, c[1]])),
    "repeated": lambda c, s, i: c.at[tr.stack([i[0], i[0]])].set(tr.stack([c[0] * s, c[1]])),
    "added rows": lambda c, s, i: c.at[tr.stack([i[0], i[0]])].add(tr.stack([c[0] * s, c[1]])),
    "block": lambda c, s, i: c.at[1:, :2].set(c[:-1, 1:3] * s),
    "strided": lambda c, s, i: c.at[::2].set(c[::2] * 0.5 + s),
    "column": lambda c, s, i: c.at[:, i[1]].multiply(0.5 + tr.sin(s)),
    "most": lambda c, s, i: c.at[i[0]].max(tr.sin(s)),
    "swapped": lambda c, s, i: c.at[i[0]].set(c[i[1]]).at[i[1]].set(c[i[0]]),
    "halves": lambda c, s, i: c * 0.5,
}
ROWS, COLUMNS = 4, 4


@st.composite
def loops(draw) -> Loop:
    return Loop(
        draw(st.lists(st.sampled_from(sorted(READS)), min_size=1, max_size=3)),
        draw(st.lists(st.sampled_from(sorted(UPDATES)), max_size=3)),
        draw(st.booleans()),
        draw(st.booleans()),
        draw(st.booleans()),
    )


# Negative indices count from the end, others are clamped where they are read and dropped where they are written.
NUMBER = st.integers(-ROWS - 2, ROWS + 2)


def unrolled(loop: Loop):
    """The same steps written out one after the other, while it is traced."""

    def f(a, u, xs):
        scan = tr.scan
        try:
            tr.scan = lambda *args, **options: scan(*args, **options, unroll=True)  # type: ignore[assignment]
            return loop(a, u, xs)
        finally:
            tr.scan = scan

    return f


def same(got, want) -> None:
    for x, y in zip(got, want, strict=True):
        np.testing.assert_allclose(np.asarray(x), np.asarray(y), rtol=1e-9, atol=1e-9)


@settings(max_examples=tries(10, 60))
@given(loops(), st.lists(st.tuples(NUMBER, NUMBER), min_size=1, max_size=5), st.integers(0, 2**32 - 1))
def test_gradients_of_loops_over_indices_agree_in_every_way(loop, pairs, seed) -> None:
    xs = tr.asarray(np.array(pairs))
    rng = np.random.default_rng(seed)
    a, u = (tr.asarray(rng.uniform(-1, 1, size=(ROWS, COLUMNS))) for _ in range(2))
    recorded = tr.compile(loop)
    want = grad(tr.compile(unrolled(loop)), (0, 1))(a, u, xs)
    whole = tr.compile(grad(loop, (0, 1)))
    same(whole(a, u, xs), want)
    same(whole(a, u, xs), want)
    same(grad(recorded, (0, 1))(a, u, xs), want)
    with tr.Runtime(overwriting=False, deterministic=True):
        same(tr.compile(grad(loop, (0, 1)))(a, u, xs), want)
    direction = [tr.asarray(rng.normal(size=(ROWS, COLUMNS))) for _ in range(2)]

    def difference(eps: float) -> float:
        plus, minus = (recorded(a + s * direction[0], u + s * direction[1], xs).item() for s in (eps, -eps))
        return (plus - minus) / (2 * eps)

    slope = sum(float(np.vdot(g, d)) for g, d in zip(map(np.asarray, want), map(np.asarray, direction), strict=True))
    if "most" not in loop.updates and "column" not in loop.reads:  # which have kinks
        # Sums of sums grow so fast that third derivatives count.
        assert (4 * difference(5e-7) - difference(1e-6)) / 3 == pytest.approx(slope, rel=1e-4, abs=1e-6)


@pytest.mark.parametrize("read", [name for name in READS if name not in ("static", "block", "whole")])
def test_deterministic_gradients_of_reads_have_the_bits_of_eager_ones(read) -> None:
    loop = Loop([read], [], nested=False, reverse=False, rows=False)
    rng = np.random.default_rng(0)
    a, u = (tr.asarray(rng.normal(size=(ROWS, COLUMNS))) for _ in range(2))
    xs = tr.asarray(rng.integers(-ROWS, ROWS, size=(7, 2)))
    g = grad(loop)
    np.testing.assert_array_equal(np.asarray(tr.compile(g, deterministic=True)(a, u, xs)), np.asarray(g(a, u, xs)))


# ------------------------------------------------------------------------------------------------ the work of a step


def written_in_steps(program: Program) -> int:
    """Bytes that one step of each loop writes: arrays that it makes, and the parts of others that it changes."""
    total = 0
    for eq in program.equations:
        for body in inner_programs(eq.op.params):
            total += written_in_steps(body)
            if eq.op.primitive.name == "scan":
                total += written(body, eq.op.params["consts"], eq.op.params["carry"])
    return total


def written(body: Program, consts: int, carry: int) -> int:
    run = lowered(body)
    victims, storage = overwriting(run, overwritten_carries(body, consts, carry)), Storage(run)
    total: Any = 0
    for eq in run.equations:
        if eq.op.primitive in UPDATES_IN_PLACE and eq.results[0] in victims:
            total += nbytes(run.specs[eq.variables[-1 if eq.op.primitive is catalog.scatter else 1]])
        elif eq.op.primitive.name != "scan" and not storage.is_view(eq):
            total += sum(nbytes(run.specs[v]) for v in eq.results)
    return total


def over(step):
    """The loop over all indices of the leading axis of a square matrix."""
    return lambda a: tr.sum(tr.scan(lambda c, i: (step(c, a, i), None), a * 0.5, tr.arange(a.shape[0]))[0])


def reading(read):
    return lambda a: tr.scan(lambda s, i: (s + read(a, i), None), 0.0, tr.arange(a.shape[0]))[0]


def within(a, i):
    return tr.scan(lambda s, j: (s + a[i, j] * a[j, i], None), 0.0, tr.arange(3))[0]


OF_AN_ELEMENT = {
    "element": reading(lambda a, i: tr.tanh(a[i, i])),
    "several": reading(lambda a, i: tr.tanh(a[i, 0] * a[0, i]) + a[i, i] * a[2, 3]),
    "elements": reading(lambda a, i: tr.sum(tr.sin(a[tr.stack([i, i // 2]), tr.stack([i, i])]))),
    "block": reading(lambda a, i: tr.sum(tr.tanh(a[2:4, :3]))),
    "nested": reading(within),
    "set": over(lambda c, a, i: c.at[i, i].set(tr.sin(c[i, 0]) * a[0, i])),
    "add": over(lambda c, a, i: c.at[i, 0].add(tr.sin(c[i, 1]))),
    "set elements": over(
        lambda c, a, i: c.at[tr.stack([i, i]), tr.stack([i, 0 * i])].set(tr.stack([c[i, 0], a[i, 0]]))
    ),
}
OF_A_ROW = {
    "row": reading(lambda a, i: tr.sum(tr.tanh(a[i]))),
    "column": reading(lambda a, i: tr.sum(tr.tanh(a[:, i] * a[i]))),
    "rows": reading(lambda a, i: tr.sum(tr.tanh(a[tr.stack([i, i // 2])]))),
    "first": reading(lambda a, i: tr.sum(tr.tanh(a[0] * a[-1]))),
    "set": over(lambda c, a, i: c.at[i].set(tr.sin(c[i - 1]) * a[i])),
    "set twice": over(lambda c, a, i: c.at[i].set(c[i - 1]).at[0].add(a[i] * c[i])),
    "columns": over(lambda c, a, i: c.at[:, i].set(tr.sin(c[:, 0]) * a[i])),
}
CASES = {
    **{f"an element: {k}": (f, 0) for k, f in OF_AN_ELEMENT.items()},
    **{f"a row: {k}": (f, 1) for k, f in OF_A_ROW.items()},
}


@pytest.mark.parametrize(("f", "power"), CASES.values(), ids=CASES)
@pytest.mark.parametrize("differentiated", [False, True], ids=["value", "gradient"])
def test_a_step_writes_what_it_changes(f, power, differentiated) -> None:
    small, large = (
        written_in_steps(optimise(tr.trace(grad(f) if differentiated else f, Spec((n, n), tr.float64))))
        for n in (100, 400)
    )
    assert 0 < large <= small * 4**power + 64


def test_the_reads_of_a_python_loop_are_summed_in_one_array() -> None:
    def f(a):
        return sum([tr.tanh(a[i, i + 1] * tr.sum(a[i])) for i in range(8)])

    a = tr.asarray(np.random.default_rng(0).normal(size=(90, 90)))
    g = tr.compile(grad(f))
    same([g(a)], [grad(f)(a)])
    run = lowered(g.program(a))
    victims, storage = overwriting(run), Storage(run)
    whole = [eq for eq in run.equations if eq.results[0] not in victims and run.specs[eq.results[0]] == run.inputs[0]]
    assert run.symbolic and len([eq for eq in whole if not storage.is_view(eq)]) <= 2  # of 16 reads
