"""Derivatives of recorded loops cost what the loops cost: windows are updated in place, and few values are stacked."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import tenferro_runtime as tr
from tenferro_ad import check_grads, grad, hvp, value_and_grad
from tenferro_runtime.control_flow._in_place import overwritten_carries
from tenferro_runtime.extension import Equation, Program
from tenferro_runtime.ir import inner_programs
from tenferro_runtime.passes.schedule import weight
from tenferro_tensor import catalog as c

RNG = np.random.default_rng(11)
UPDATES = {c.scatter, c.dynamic_update_slice, c.update_slice}
ALIASES = {c.broadcast_in_dim, c.reshape, c.transpose}


def over(n: int, body: Any, init: Any) -> Any:
    """``body(i, carry)`` for i from 0 to n - 1, recorded as one loop."""
    return tr.scan(lambda carry, i: (body(i, carry), None), init, tr.arange(n))[0]


def gauss_seidel(a):
    def element(i, x):
        return x.at[i + 1].set(tr.sin(x[i]) * x[i + 2] + 0.5 * x[i + 1])

    return tr.sum(over(3, lambda _, x: over(len(A1) - 2, element, x), a) ** 2)


def rows(a, v):
    return tr.sum(over(len(A2) - 1, lambda i, x: x.at[i + 1, :].set(tr.sin(x[i, :]) * v), a) ** 2)


def jacobi(a, b):
    def step(_, state):
        a, b = state
        b = b.at[1:-1].set(0.3 * (a[:-2] + a[1:-1] + a[2:]))
        return a.at[1:-1].set(0.3 * (b[:-2] + b[1:-1] + b[2:])), b

    a, b = over(5, step, (a, b))
    return tr.sum(a * a) + tr.sum(b)


def heat(a, k):
    def step(_, u):
        lap = u[2:, 1:-1] + u[:-2, 1:-1] + u[1:-1, 2:] + u[1:-1, :-2] - 4 * u[1:-1, 1:-1]
        return u.at[1:-1, 1:-1].set(u[1:-1, 1:-1] + k * lap * (1 - u[1:-1, 1:-1] ** 2))

    return tr.sum(over(4, step, a) ** 2)


def colours(a):
    """Rows at a distance from each other, upwards and downwards."""

    def step(_, u):
        for i in (1, 2):
            u = u.at[i:-1:2, 1:-1].set(tr.sin(u[i - 1 : -2 : 2, 1:-1]) * u[i + 1 :: 2, 1:-1])
        return u.at[::-3, 0].add(u[::3, 1] * u[::3, 2])

    return tr.sum(over(4, step, a) ** 2)


def cholesky(a):
    ks = tr.arange(len(SPD))

    def element(i, j, x):
        d = tr.sum(tr.where(ks < j, x[i] * x[j], 0.0))
        return x.at[i, j].set((x[i, j] - d) / x[j, j])

    def row(i, x):
        x = over(len(SPD), lambda j, x: tr.cond(j < i, lambda x: element(i, j, x), lambda x: x, x), x)
        r = tr.where(ks < i, x[i], 0.0)
        return x.at[i, i].set(tr.sqrt(x[i, i] - tr.sum(r * r)))

    return tr.sum(tr.tril(over(len(SPD), row, a)) ** 3)


def bounded(a):
    def step(state):
        i, x = state
        return i + 1, x.at[i].set(tr.sin(x[i - 1]) * x[i])

    start = (1, a)
    return tr.sum(tr.while_loop(lambda s: (s[0] < 6) & (s[1][0] > -9), step, start, max_steps=9)[1] ** 2)


def longest(s):
    """Dynamic programming over pairs; `s` is constant in the loop and read in one branch only."""
    n = len(A1)

    def column(i, j, t):
        return t.at[i, j].set(tr.maximum(t[i, j - 1], t[i + 1, j]) + tr.exp(s[i] * s[j]))

    def row(k, t):
        i = n - 2 - k
        return over(n, lambda j, t: tr.cond(j > i, lambda t: column(i, j, t), lambda t: t, t), t)

    return over(n - 1, row, tr.zeros((n, n)))[0, n - 1]


def columns(a):
    """Cholesky by columns: a step reads the whole factor and writes one column."""
    n, ks = len(SPD), tr.arange(len(SPD))

    def column(j, x):
        v = a[:, j] - x @ x[j, :]
        return x.at[:, j].set(tr.where(ks >= j, v / tr.sqrt(v[j]), 0.0))

    return tr.sum(over(n, column, tr.zeros((n, n))) ** 3)


def substitution(a, b):
    """A step reads all of the solution so far and writes two elements, one of which the next step writes again."""

    def element(i, x):
        y = x.at[i].set((b[i] - tr.sum(a[i] * x)) / a[i, i])
        return y.at[i + 1].set(tr.sum(y * y))

    return tr.sum(over(len(SPD) - 1, element, tr.zeros(len(SPD))) ** 3)


def pivoted(a, outside=()):
    """Rows are swapped, as well as the integers that say which; rows outside are not written."""

    def step(k, state):
        p, x = state
        i, j = p[k], p[(2 * k + 1) % 6]
        p = p.at[k].set(j).at[k + 1].set(i)
        y = x.at[i].set(tr.sin(x[j]) + tr.sum(x * x, axis=0))
        for row in outside:
            y = y.at[row + k].set(1.0)
        return p, y.at[tr.stack([i, j, i])].multiply(0.9)

    return tr.sum(over(5, step, (tr.arange(6), a))[1] ** 2)


def triangle(a):
    """Rows by rows, with an inner loop whose bounds depend on the outer one, and pivots that depend on the values."""
    n, ks = len(SPD), tr.arange(len(SPD))

    def column(i, j, x):
        d = tr.sum(tr.where(ks < j, x[i] * x[j], 0.0))
        return x.at[i, j].set((x[i, j] - d) / x[j, j])

    def row(i, x):
        x = tr.fori_loop(0, i, lambda j, x: column(i, j, x), x)
        k = tr.argmax(tr.where(ks <= i, x[i], -9.0))
        x = tr.cond(x[i, k] > 1e9, lambda x: x.at[k].set(0.0), lambda x: x.at[i, i].multiply(1.5), x)
        return x.at[i, i].set(tr.sqrt(x[i, i]) + 0 * tr.sum(x * x))

    return tr.sum(tr.tril(tr.fori_loop(0, n, row, a)) ** 3)


def memory(w, h):
    """A recurrence whose slope is made of the carry after the step."""
    return tr.sum(tr.scan(lambda h, x: (tr.tanh(w @ h + x), None), h, tr.asarray(A2))[0] ** 2)


A1 = RNG.random(9)
A2 = RNG.random((6, 5))
SPD = (lambda m: m @ m.T + 6 * np.eye(6))(RNG.random((6, 6)))
CASES: dict[str, tuple[Any, tuple[Any, ...]]] = {
    "gauss_seidel": (gauss_seidel, (A1,)),
    "rows": (rows, (A2, RNG.random(5))),
    "jacobi": (jacobi, (RNG.random(40), RNG.random(40))),
    "heat": (heat, (RNG.random((7, 8)), np.array(0.1))),
    "colours": (colours, (RNG.random((7, 8)),)),
    "cholesky": (cholesky, (SPD,)),
    "bounded": (bounded, (RNG.random(8) + 1,)),
    "longest": (longest, (A1,)),
    "columns": (columns, (SPD,)),
    "substitution": (substitution, (SPD, RNG.random(6))),
    "pivoted": (pivoted, (A2,)),
    "triangle": (triangle, (SPD,)),
    "memory": (memory, (0.3 * RNG.standard_normal((5, 5)), RNG.random(5))),
}

BYTES = {"gauss_seidel": 24, "rows": 80, "jacobi": 0, "heat": 480, "cholesky": 24, "bounded": 33, "longest": 24}
BYTES |= {"colours": 504, "columns": 8 * 20, "substitution": 32, "pivoted": 8 * 40, "memory": 40, "triangle": 24}
"""Bytes that the innermost loop stacks in a step."""


OF_WHOLE_ARRAYS = {"columns", "substitution", "pivoted", "memory", "triangle"}
"""Cases in which the values themselves are made of whole arrays."""


def loops(program: Program, depth: int = 0) -> Iterator[tuple[int, Equation, Program]]:
    for eq in program.equations:
        if eq.op.primitive.name == "scan":
            yield depth, eq, program
        for inner in inner_programs(eq.op.params):
            yield from loops(inner, depth + (eq.op.primitive.name == "scan"))


def traced(name: str) -> Program:
    f, args = CASES[name]
    every = tuple(range(len(args)))
    program = tr.trace(value_and_grad(f, argnums=every), *[tr.asarray(a) for a in args])
    return tr.Runtime().optimise(program)


def whole_arrays(body: Program, shapes: set[Any]) -> list[str]:
    """The steps of a body, and of branches in it, that make an array of one of the shapes other than by an update."""
    found = []
    for eq in body.equations:
        p = eq.op.primitive
        if p.name == "cond":
            found += [line for branch in eq.op.params["branches"] for line in whole_arrays(branch, shapes)]
        elif p not in UPDATES and p not in ALIASES and p.name != "scan":
            found += [body.show(eq) for v in eq.results if body.specs[v].shape in shapes]
    return found


@pytest.mark.parametrize("name", [name for name in CASES if name not in OF_WHOLE_ARRAYS])
def test_cotangents_of_windows_are_added_where_they_are(name) -> None:
    _, args = CASES[name]
    shapes = {np.shape(args[0]), (len(A1), len(A1))} if name == "longest" else {np.shape(args[0])}
    seen = 0
    for _, eq, _ in loops(traced(name)):
        params = eq.op.params
        if params["reverse"]:
            assert whole_arrays(params["body"], shapes) == []
            seen += 1
    assert seen


@pytest.mark.parametrize("name", CASES)
def test_steps_stack_little(name) -> None:
    found = []
    deepest = max(depth for depth, eq, _ in loops(traced(name)) if not eq.op.params["reverse"])
    for depth, eq, program in loops(traced(name)):
        if depth == deepest and not eq.op.params["reverse"]:
            stacked = [program.specs[v] for v in eq.results[eq.op.params["carry"] :]]
            found.append(sum([weight(s.with_(shape=s.shape[1:]), {}) for s in stacked]))
    assert max(found) <= BYTES[name]


@pytest.mark.parametrize("name", CASES)
def test_gradients_are_those_of_the_steps_written_out(name) -> None:
    f, args = CASES[name]
    arrays = [tr.asarray(a) for a in args]
    derivative = grad(f, argnums=tuple(range(len(args))))
    wanted = derivative(*arrays)
    for deterministic in (False, True):
        compiled = tr.compile(derivative, deterministic=deterministic)
        for got, want in zip(compiled(*arrays), wanted, strict=True):
            np.testing.assert_allclose(got.numpy(), want.numpy(), rtol=1e-12, atol=1e-14)
    check_grads(tr.compile(f), args, order=1)


@pytest.mark.parametrize(
    "name", ["gauss_seidel", "heat", "colours", "cholesky", "bounded", "columns", "substitution", "triangle", "memory"]
)
def test_second_derivatives(name) -> None:
    f, args = CASES[name]
    x, *rest = [tr.asarray(a) for a in args]
    direction = tr.asarray(RNG.standard_normal(np.shape(args[0])))
    got = tr.compile(lambda x, v: hvp(lambda x: f(x, *rest), (x,), (v,)))(x, direction)
    want = hvp(lambda x: f(x, *rest), (x,), (direction,))
    for a, b in zip(np.ravel(got), np.ravel(want), strict=True):
        np.testing.assert_allclose(np.asarray(a), np.asarray(b), rtol=1e-11, atol=1e-12)


def test_windows_that_are_dropped_are_not_restored() -> None:
    x = tr.asarray(A2)
    got = tr.compile(grad(lambda a: pivoted(a, outside=(6, 20))))(x)
    np.testing.assert_allclose(got.numpy(), grad(pivoted)(x).numpy(), rtol=1e-12)


@pytest.mark.parametrize("name", ["columns", "substitution"])
def test_carries_are_restored_in_place(name) -> None:
    """The way back takes the last carry along, and its steps write the windows back instead of copying the array."""
    (loop,) = [eq for _, eq, _ in loops(traced(name)) if eq.op.params["reverse"]]
    body, consts, carry = (loop.op.params[k] for k in ("body", "consts", "carry"))
    assert carry == len(CASES[name][1]) + 2
    # The first is the cotangent of the carry, to which these steps add whole arrays.
    assert {*range(consts + 1, consts + carry)} <= set(overwritten_carries(body, consts, carry))


def test_counters_are_not_stacked() -> None:
    """Nor is whether the loop goes on; a counter that may wrap around is part of the carry like all others."""

    def f(x, n):
        def step(state):
            i, y = state
            return i + 2, y * tr.sin(y) + x[i]

        start = (tr.ones_like(n), x)
        return tr.sum(tr.while_loop(lambda s: s[0] < n, step, start, max_steps=300)[1])

    x = tr.asarray(0.1 * A1)
    for dtype, kinds in ((tr.int64, "f"), (tr.int8, "bfi")):
        limit = tr.asarray(7, dtype=dtype)
        derivative = grad(f)
        (forward,) = [eq for _, eq, _ in loops(tr.trace(derivative, x, limit)) if not eq.op.params["reverse"]]
        rows = forward.op.params["body"].outputs[forward.op.params["carry"] :]
        assert "".join(sorted({s.dtype.kind for s in rows})) == kinds
        np.testing.assert_allclose(tr.compile(derivative)(x, limit).numpy(), derivative(x, limit).numpy(), rtol=1e-12)
        empty = tr.compile(derivative)(x, tr.asarray(-3, dtype=dtype))
        np.testing.assert_array_equal(empty.numpy(), np.ones(len(A1)))


def test_products_are_summed_after_the_loop() -> None:
    """The cotangent of a matrix is one product of stacked factors; deterministic programs add step by step."""
    _, args = CASES["memory"]
    derivative = grad(memory, argnums=(0, 1))
    for deterministic in (False, True):
        with tr.Runtime(deterministic=deterministic) as runtime:
            program = runtime.optimise(tr.trace(derivative, *[tr.asarray(a) for a in args]))
        (backward,) = [eq.op.params["body"] for _, eq, _ in loops(program) if eq.op.params["reverse"]]
        squares = [eq for eq in backward.equations for v in eq.results if backward.specs[v].shape == (5, 5)]
        assert bool(squares) == deterministic


def test_integers_and_constants_of_the_carry_have_no_part_in_the_way_back() -> None:
    def f(x, w):
        def step(state, _):
            i, fixed, y = state
            return (i + 1, fixed * 0.5, tr.sin(y) * fixed + x[i]), None

        return tr.sum(tr.scan(step, (0, tr.ones(3), w), length=4)[0][2])

    program = tr.Runtime().optimise(tr.trace(grad(f, argnums=1), tr.asarray(A1), tr.asarray(A1[:3])))
    (backward,) = [eq for _, eq, _ in loops(program) if eq.op.params["reverse"]]
    assert backward.op.params["carry"] == 1
