"""Loops, branches and updates whose operands share values or memory, in all tiers.

An operand may be overwritten only where nothing reads it later or beside: each program here has such another reader,
by another operand of the same step, by a simplification that makes two values one, or by a view.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tenferro_ad as ta
import tenferro_runtime as tr
from simulated.installed import simulated
from tenferro_cpu import CpuPool
from tenferro_linalg import lstsq
from tiers import COMPILED, agree, leaves

Program = Callable[[Any], Any]
PROGRAMS: dict[str, Program] = {}


def program(f: Program) -> Program:
    PROGRAMS[f.__name__.replace("_", " ")] = f
    return f


def made(a):
    """A value that the program owns."""
    return a * 2.0 - a * 0.5


# ------------------------------------------------------------------------------------------------ loops


@program
def initial_value_is_captured(a):
    v = made(a)
    return tr.fori_loop(0, 4, lambda i, c: c.at[i % 4].add(v[(i + 1) % 4] * 0.5), v)


@program
def initial_value_is_captured_and_overwritten_by_rows(a):
    v = made(a)
    return tr.fori_loop(0, 4, lambda i, c: c.at[i].set(v[3 - i]), v)


@program
def initial_value_is_simplified_to_the_captured_one(a):
    v = made(a)
    return tr.scan(lambda c, r: (tr.tanh(v) + 0.1 * c.at[0].set(tr.sum(v, axis=0)), r), v * 1.0, v)


@program
def initial_value_is_a_reshaped_view_of_the_captured_one(a):
    v = made(a)
    flat = tr.reshape(v, (-1,))
    return tr.fori_loop(0, 4, lambda i, c: c.at[i].set(tr.sum(v[3 - i])), flat)


@program
def captured_value_is_a_transposed_view_of_the_initial_one(a):
    v = made(a)
    w = v.T
    return tr.fori_loop(0, 4, lambda i, c: c.at[i].set(w[3 - i] + c[i]), v)


@program
def a_value_is_carry_and_rows(a):
    v = made(a)
    return tr.scan(lambda c, r: (c.at[0].add(r).at[3].set(c[0] - r), c[1] * r), v, v)


@program
def rows_in_reverse_are_the_carry(a):
    v = made(a)
    return tr.scan(lambda c, r: (c.at[1:3].set(c[:2] * 0.5 + r), r), v, v, reverse=True)


@program
def two_carries_from_one_value(a):
    v = made(a)

    def step(i, c):
        x, y = c
        return x.at[i].set(y[3 - i] * 0.5), y.at[3 - i].add(x[i])

    return tr.fori_loop(0, 4, step, (v, v))


@program
def two_carries_from_one_value_are_exchanged(a):
    v = made(a)

    def step(i, c):
        x, y = c
        return y.at[i].add(1.0), x.at[3 - i].multiply(0.5)

    return tr.fori_loop(0, 3, step, (v, v * 1.0))


@program
def the_initial_value_is_returned(a):
    v = made(a)
    return v, tr.fori_loop(0, 4, lambda i, c: c.at[i].multiply(0.5), v)


@program
def the_initial_value_is_read_afterwards(a):
    v = made(a)
    w = tr.fori_loop(0, 4, lambda i, c: c.at[i].multiply(0.5), v)
    return v @ w


@program
def a_view_of_the_initial_value_is_read_afterwards(a):
    v = made(a)
    row = v[1]
    w = tr.fori_loop(0, 4, lambda i, c: c.at[i].multiply(0.5), v)
    return w * row


@program
def the_carry_is_returned_as_a_row(a):
    v = made(a)
    return tr.scan(lambda c, i: (c.at[i].add(v[3 - i]), (c, c[i])), v, tr.arange(4))


@program
def a_while_loop_captures_its_initial_value(a):
    v = made(a)

    def step(c):
        i, x = c
        return i + 1, x.at[i].set(v[3 - i] + x[0])

    return tr.while_loop(lambda c: (c[0] < 4) & (tr.sum(v) < 1e9), step, (0, v))


@program
def the_condition_of_a_while_loop_reads_the_initial_value(a):
    v = made(a)
    return tr.while_loop(
        lambda c: c[0] < 2 + tr.astype(v[0, 0] > 1e9, tr.int64), lambda c: (c[0] + 1, c[1].at[0].add(v[1])), (0, v)
    )


@program
def an_inner_loop_starts_from_the_outer_carry_and_captures_it(a):
    v = made(a)

    def outer(i, c):
        return tr.fori_loop(0, 3, lambda j, d: d.at[j].add(c[j + 1] * 0.5 + v[i]), c)

    return tr.fori_loop(0, 3, outer, v)


@program
def an_inner_loop_starts_from_what_the_outer_loop_captures(a):
    v = made(a)

    def outer(i, c):
        return c + tr.fori_loop(0, 3, lambda j, d: d.at[j].add(d[j + 1] * 0.5), v)

    return tr.fori_loop(0, 3, outer, v)


@program
def an_inner_loop_starts_from_a_value_made_in_the_body(a):
    v = made(a)

    def outer(i, c):
        w = c * 0.5
        return tr.fori_loop(0, 3, lambda j, d: d.at[j].add(w[3 - j] * 0.5), w + 0.0 * v) + w

    return tr.fori_loop(0, 3, outer, v)


@program
def an_inner_loop_carries_a_value_of_the_body_twice(a):
    def outer(i, c):
        w = tr.tanh(c)
        x, y = tr.fori_loop(0, 3, lambda j, d: (d[0].at[j].add(d[1][3 - j]), d[1].at[j + 1].add(w[j])), (w, w))
        return x - y

    return tr.fori_loop(0, 3, outer, made(a))


@program
def an_associative_scan_of_a_shared_value(a):
    v = made(a)
    return tr.associative_scan(lambda x, y: x * 0.5 + y * v[0], v), v.at[0].set(0.0)


# ------------------------------------------------------------------------------------------------ branches


@program
def a_branch_updates_an_operand_that_it_captures(a):
    v = made(a)
    return tr.cond(tr.sum(a) > -1e9, lambda x: x.at[0].set(v[1]).at[1].set(v[0]), lambda x: x * v, v)


@program
def a_branch_returns_its_operand_and_the_value_is_updated_later(a):
    v = made(a)
    w = tr.cond(tr.sum(a) > -1e9, lambda x: x, lambda x: -x, v)
    return w, v.at[0].set(7.0), w.at[1].add(v[0])


@program
def a_branch_takes_a_value_twice(a):
    v = made(a)
    return tr.cond(
        tr.sum(a) > -1e9, lambda x, y: (x.at[0].set(y[3]), y.at[3].set(x[0])), lambda x, y: (y, x), v, v * 1.0
    )


@program
def a_branch_in_a_loop_updates_the_carry(a):
    v = made(a)

    def step(i, c):
        return tr.cond(i % 2 == 0, lambda x: x.at[i].add(v[3 - i]), lambda x: x.at[0].set(x[i] + c[1]), c)

    return tr.fori_loop(0, 4, step, v)


@program
def a_branch_in_a_loop_returns_the_captured_value(a):
    v = made(a)
    return tr.fori_loop(0, 4, lambda i, c: tr.cond(i < 2, lambda x: v, lambda x: x.at[i].add(v[0]), c), v * 0.5)


@program
def branches_exchange_two_carries(a):
    v = made(a)

    def step(i, c):
        return tr.cond(i % 2 == 0, lambda x, y: (y, x.at[i].add(1.0)), lambda x, y: (x.at[0].multiply(0.5), y), *c)

    return tr.fori_loop(0, 4, step, (v, v))


# ------------------------------------------------------------------------------------------------ updates


@program
def an_update_by_itself(a):
    v = made(a)
    return v.at[::-1].set(v)


@program
def an_update_by_itself_at_computed_rows(a):
    v = made(a)
    at = tr.asarray([3, 2, 0, 1])
    return v.at[at].set(v), v.at[at].add(v * 1.0), v.at[at, ::-1].multiply(v)


@program
def an_update_by_a_view_of_itself(a):
    v = made(a)
    return v.at[1:].set(v[:-1]).at[:, 0].add(v[0])


@program
def an_update_by_its_transpose(a):
    v = made(a)
    return tr.dynamic_update_slice(v, v.T[:2], (1, 0))


@program
def an_update_at_indices_from_the_same_array(a):
    v = tr.astype(tr.floor(tr.abs(made(a))), tr.int64) % 4
    w = v[0]
    return w.at[w].set(w + 1), v.at[w].add(v)


@program
def an_update_where_the_old_array_is_returned(a):
    v = made(a)
    return v, v.at[0].set(1.0), v.at[1].set(2.0)


@program
def assignments_between_views(a):
    v = made(a)
    w = v.copy()
    w[0] = v[1]
    w[1] = w[0] * v[2]
    return v, w


@program
def element_wise_steps_of_one_value(a):
    v = made(a) @ a
    w = v + v
    return w * w - v.T * w, tr.where(w > v, w, v)


# ------------------------------------------------------------------------------------------------ copies in bodies


@program
def a_copy_in_a_branch_is_assigned_to(a):
    def branch(x):
        y = tr.copy(a)
        y[0] = x[1]
        return y + a

    return tr.cond(tr.sum(a) > -1e9, branch, lambda x: x, a)


@program
def copies_in_a_body_are_assigned_to(a):
    v = made(a)

    def step(i, c):
        x, y = tr.asarray(v, copy=True), v.copy()
        x[0] = c[i]
        y[i] = x[0] + v[1]
        return c + x * y

    return tr.fori_loop(0, 3, step, v) + v


COUNTING = {
    "the carry is returned as a row",
    "a while loop captures its initial value",
    "the condition of a while loop reads the initial value",
}
"""Programs that compare or join counters in main memory with values of the array."""

X = tr.asarray(np.random.default_rng(0).standard_normal((4, 4)) * 0.5)
LANES = tr.asarray(np.random.default_rng(1).standard_normal((3, 4, 4)) * 0.3)


@pytest.mark.parametrize("name", PROGRAMS)
def test_sharing_is_not_seen(name):
    agree(PROGRAMS[name], [X])


@pytest.mark.parametrize("name", PROGRAMS)
def test_sharing_is_not_seen_on_several_devices(name):
    """One plan runs the program on two pools and, unless it counts in main memory, on an accelerator."""
    f = PROGRAMS[name]
    elsewhere = () if name in COUNTING else ("sim:0",)

    def everywhere(a):
        found = [f(a.with_compute_device(pool)) for pool in ("cpu:1", "cpu:2")]
        return tr.tree_map(
            lambda x: tr.to_device(x, "cpu:0"), [*found, *[f(tr.to_device(a, device)) for device in elsewhere]]
        )

    want = leaves(f(X)) * (2 + len(elsewhere))
    with simulated(), CpuPool(index=1), CpuPool(index=2):
        compiled = tr.compile(everywhere)
        for _ in range(2):
            for got, w in zip(leaves(compiled(X)), want, strict=True):
                np.testing.assert_allclose(got, w, rtol=1e-9, atol=1e-9)


def with_derivatives(f: Program) -> Program:
    def loss(a):
        total = tr.sum(a) * 0.0
        for x in tr.tree_leaves(f(a)):
            total = total + tr.sum(tr.sin(x) * x)
        return total

    return lambda a: (ta.value_and_grad(loss)(a), ta.jvp(loss, (a,), (a,)))


FORMS: dict[str, tuple[Callable[[Program], Program], Any]] = {
    "in lanes": (tr.vmap, LANES),
    "by derivatives": (with_derivatives, X),
    # Such a program runs by single steps for good.
    "beside a step that is not compiled": (
        lambda f: lambda a: (f(a), lstsq(a + 3.0 * tr.eye(4), a[:, :1])[0]), X,
    ),
}  # fmt: skip


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("kind", COMPILED)
@pytest.mark.parametrize("name", PROGRAMS)
def test_sharing_is_not_seen_by_what_is_made_of_a_program(name, kind, form):
    made, operand = FORMS[form]
    agree(made(PROGRAMS[name]), [operand], COMPILED[kind])
