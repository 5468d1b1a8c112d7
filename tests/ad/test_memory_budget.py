"""Reverse mode of loops within a memory budget: the bits, the number of repeated steps, and the peak."""

import tracemalloc
from collections.abc import Callable
from functools import cache, partial
from math import comb
from typing import Any

import numpy as np
import pytest

import tenferro_runtime as tr
from tenferro_ad import check_grads, checkpoint, custom_rule, grad, hvp, jvp
from tenferro_runtime.extension import flatten
from tenferro_runtime.ir import inner_programs
from tenferro_tensor_core import ArgumentError
from thorough import THOROUGH

RNG = np.random.default_rng(5)
W = 0.4 * RNG.standard_normal((3, 3))
X = RNG.random((41, 3))
C = RNG.random(3)
N = len(X)
TIGHT = 900
"""Bytes for about a dozen states of the loops here, less what a step needs."""


def recurrent(w, c, xs, **how):
    """Slices, rows and a matrix that is the same in all steps."""
    c, rows = tr.scan(lambda c, x: (tr.tanh(w @ c + x), tr.sum(c * x)), c, xs, **how)
    return tr.sum(c**2) + tr.sum(rows**3)


def several(w, c, xs, **how):
    """Carries of several kinds: an integer, a number that stays, an array that is updated in windows."""

    def step(carry, x):
        i, fixed, y, z = carry
        return (i + 1, fixed, y.at[i % 3].set(tr.sin(y[i % 3]) * fixed + x[0]), tr.tanh(w @ z) + x * y), None

    return tr.sum(tr.scan(step, (0, 0.5, c, c * 2), xs, **how)[0][3] ** 2)


def nested(w, c, xs, **how):
    """A loop in a loop, both within a budget."""

    def row(c, x):
        inner = tr.fori_loop(0, 7, lambda i, v: tr.tanh(w @ v) + x * i, c, **how)
        return tr.where(x > 0.5, inner, c), inner[0]

    c, rows = tr.scan(row, c, xs, **how)
    return tr.sum(c) + tr.sum(rows**2)


def branches(w, c, xs, **how):
    step = lambda c, x: (tr.cond(x[0] > 0.5, lambda v: tr.tanh(w @ v), lambda v: v * x, c), None)
    return tr.sum(tr.scan(step, c, xs, **how)[0] ** 2)


def counting(w, c, xs, **how):
    return tr.sum(tr.fori_loop(2, N, lambda i, c: tr.tanh(w @ c) + xs[i], c, **how) ** 2)


def open_ended(w, c, xs, **how):
    """A loop that ends when its values say so, after as many steps as there are slices."""
    step = lambda s: (s[0] + 1, tr.tanh(w @ s[1]) + xs[s[0]])
    return tr.sum(tr.while_loop(lambda s: (s[0] < len(xs)) & (tr.max(s[1]) < 1e3), step, (0, c), **how)[1] ** 2)


LOOPS: dict[str, Callable[..., Any]] = {
    "recurrent": recurrent,
    "backwards": lambda w, c, xs, **how: recurrent(w, c, xs, reverse=True, **how),
    "several": several,
    "nested": nested,
    "branches": branches,
    "counting": counting,
    "open-ended": open_ended,
}


def same_bits(found: Any, wanted: Any) -> None:
    for a, b in zip(flatten(found)[0], flatten(wanted)[0], strict=True):
        np.testing.assert_array_equal(a.numpy(), b.numpy())


def close(found: Any, wanted: Any) -> None:
    for a, b in zip(flatten(found)[0], flatten(wanted)[0], strict=True):
        np.testing.assert_allclose(a.numpy(), b.numpy(), rtol=1e-10, atol=1e-12)


def within(f: Callable[..., Any], memory_budget: int) -> Callable[..., Any]:
    return lambda *args: f(*args, memory_budget=memory_budget)


def ops_in(program: Any, name: str) -> list[Any]:
    found = [eq.op for eq in program.equations if eq.op.primitive.name == name]
    for eq in program.equations:
        for inner in inner_programs(eq.op.params):
            found += ops_in(inner, name)
    return found


@pytest.mark.parametrize("name", LOOPS)
def test_gradients_have_the_bits_of_those_that_store_everything(name) -> None:
    """Deterministic programs add step by step, so that the bits are defined; a loop within a budget always does."""
    f = LOOPS[name]
    arrays = [tr.asarray(a) for a in (W, C, X)]
    bound = {"max_steps": N} if name == "open-ended" else {}
    everything = grad(lambda *args: f(*args, **bound), argnums=(0, 1, 2))
    budgeted = grad(within(f, TIGHT), argnums=(0, 1, 2))
    assert ops_in(tr.trace(budgeted, *arrays), "loop_backward")
    close(budgeted(*arrays), everything(*arrays))
    close(tr.compile(budgeted)(*arrays), everything(*arrays))
    wanted = tr.compile(everything, deterministic=True)(*arrays)
    same_bits(tr.compile(budgeted, deterministic=True)(*arrays), wanted)


@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64", "complex128"])
def test_dtypes(dtype) -> None:
    w, c = W.astype(dtype), C.astype(dtype)
    if "complex" in dtype:
        w, c = (w * (1 + 0.5j)).astype(dtype), (0.1 * c * (1 - 1j)).astype(dtype)

    def f(memory_budget, w, c):
        return tr.sum(
            tr.abs(tr.fori_loop(0, 60, lambda i, c: tr.sin(w @ c) * 0.5 + 0.9 * c, c, memory_budget=memory_budget)) ** 2
        )

    tight, everything = [grad(partial(f, b), argnums=(0, 1)) for b in (TIGHT, 2**30)]
    assert ops_in(tr.trace(tight, tr.asarray(w), tr.asarray(c)), "loop_backward")
    found = tr.compile(tight, deterministic=True)(w, c)
    same_bits(found, tr.compile(everything, deterministic=True)(w, c))
    assert all(x.dtype == np.dtype(dtype) for x in found)
    rtol = 1e-3 if dtype in ("float32", "complex64") else 1e-9
    for a, b in zip(tight(w, c), found, strict=True):
        np.testing.assert_allclose(a.numpy(), b.numpy(), rtol=rtol)


@pytest.mark.parametrize("steps", [0, 1, 2, 7, 40])
def test_any_number_of_steps(steps) -> None:
    """The same program, whatever the number; no steps leave the carry as it is."""

    def known(c, xs, memory_budget):
        return tr.sum(tr.scan(lambda c, x: (tr.sin(c) + x, c), c, xs, memory_budget=memory_budget)[0] ** 2)

    for memory_budget in (None, 300):
        budgeted = grad(partial(open_loss, memory_budget))
        wanted = grad(lambda c: open_loss(None, c, steps, max_steps=100))(C)
        close(COMPILED.setdefault(memory_budget, tr.compile(budgeted))(C, steps), wanted)
    xs = RNG.random((steps, 3))
    found = COMPILED.setdefault("known", tr.compile(grad(lambda c, xs: known(c, xs, 300), argnums=(0, 1))))(C, xs)
    close(found, grad(lambda c, xs: known(c, xs, 2**30), argnums=(0, 1))(C, xs))


COMPILED: dict[Any, Any] = {}


def open_loss(memory_budget, c, n, **how):
    step = lambda s: (s[0] + 1, tr.sin(s[1]) + s[1])
    return tr.sum(tr.while_loop(lambda s: s[0] < n, step, (0, c), memory_budget=memory_budget, **how)[1] ** 2)


@pytest.mark.stepwise
@pytest.mark.parametrize("name", ["recurrent", "open-ended"])
def test_higher_derivatives(name) -> None:
    f = LOOPS[name]
    w, c, xs = [tr.asarray(a) for a in (W, C, X[:20])]
    orders = {
        "reverse over reverse": lambda f: grad(lambda w, c: tr.sum(grad(f)(w, c) ** 2), argnums=(0, 1)),
        "forward over reverse": lambda f: lambda w, c: jvp(lambda w, c: grad(f, argnums=(0, 1))(w, c), (w, c), (w, c)),
        "reverse over forward": lambda f: grad(lambda w, c: jvp(lambda c: f(w, c), (c,), (c * c,))[1]),
        "hvp": lambda f: lambda w, c: hvp(lambda w: f(w, c), (w,), (w * w,)),
    }
    for transform in orders.values():
        found = transform(lambda w, c: f(w, c, xs, memory_budget=TIGHT))
        wanted = transform(lambda w, c: f(w, c, xs))(w, c)
        close(found(w, c), wanted)
    close(tr.compile(found)(w, c), wanted)
    check_grads(lambda c: f(w, c, xs, memory_budget=TIGHT), (c,), order=2)


def test_a_loop_inside_of_a_loop_keeps_its_states_for_one_step_only() -> None:
    """What a loop stacks for its own way back does not contain the slots of a loop in its body."""

    def f(w, c, xs):
        inner = lambda c, x: tr.while_loop(lambda s: tr.sum(s) < 20.0, lambda s: s + tr.sin(w @ s) + x + 1, c)
        return tr.sum(tr.scan(lambda c, x: (tr.tanh(inner(c, x)), None), c, xs)[0])

    args = [tr.asarray(abs(a)) for a in (W, C, X)]
    derivative = grad(f, argnums=(0, 1, 2))
    program = tr.trace(derivative, *args)
    for loop in ops_in(program, "scan"):
        assert not ops_in(loop.params["body"], "loop_forward") or loop.params["reverse"]
        assert max([s.size for s in loop.params["body"].outputs]) <= W.size
    close(tr.compile(derivative)(*args), derivative(*args))


def counted(f: Callable[..., Any], *args: Any) -> tuple[Any, int]:
    """A gradient, and how often the steps inside of it have been made."""
    CALLS[0] = 0
    found = f(*args)
    return found, CALLS[0]


CALLS = [0]


@custom_rule(jvp=lambda primals, tangents, outs: (tangents[0] * (1 - outs[0] * outs[0]),), infer=lambda x: x)
def watched(x):
    CALLS[0] += 1
    return np.tanh(x.numpy())


def fewest_steps(n: int, slots: int) -> int:
    """Steps that binomial checkpointing repeats: r n - beta(slots + 1, r - 1)."""
    r = next(r for r in range(n) if comb(slots + r, slots) >= n)
    return r * n - comb(slots + r, r - 1) if r else 0


def test_the_formula_for_the_fewest_steps_is_what_the_recursion_gives() -> None:
    @cache
    def least(n: int, s: int) -> int:
        if n <= 1 or s == 1:
            return n * (n - 1) // 2
        return min([m + least(n - m, s - 1) + least(m, s) for m in range(1, n)])

    assert all(fewest_steps(n, s) == least(n, s) for s in range(1, 6) for n in range(1, 60))


@pytest.mark.parametrize("n", [30, 45, 90, 400])
def test_no_more_steps_are_repeated_than_need_be(n) -> None:
    c = tr.asarray(RNG.random(16))
    derivative = grad(lambda c: tr.sum(tr.fori_loop(0, n, lambda i, c: watched(c) + c, c, memory_budget=3000)))
    (way_back,) = ops_in(tr.trace(derivative, c), "loop_backward")
    slots = way_back.params["slots"]
    found, calls = counted(tr.compile(derivative), c)
    close(found, grad(lambda c: tr.sum(tr.fori_loop(0, n, lambda i, c: watched(c) + c, c)))(c))
    # Each step once for its derivative, beside what the theory counts. It makes the last step for its derivative only,
    # so that the way back starts from the state before it; here the result of that step is needed first.
    assert calls - n <= fewest_steps(n, slots) + 1 + fewest_steps(n, slots) // n


@pytest.mark.parametrize("slots", ["few", "many"])
def test_few_more_steps_are_repeated_where_nobody_knows_their_number(slots) -> None:
    c = tr.asarray(RNG.random(16))
    memory_budget, numbers = (6000, [10, 33, 60, 150]) if slots == "few" else (45_000, [200, 301, 500])
    if THOROUGH:
        numbers += [200, 500, 900] if slots == "few" else [700, 1500]

    def f(c, n):
        step = lambda s: (s[0] + 1, watched(s[1]) + s[1])
        return tr.sum(tr.while_loop(lambda s: s[0] < n, step, (0, c), memory_budget=memory_budget)[1])

    (way_back,) = ops_in(tr.trace(grad(f), c, tr.asarray(3)), "loop_backward")
    room = way_back.params["slots"]
    assert (room > 256) == (slots == "many")
    compiled = tr.compile(grad(f))
    for n in numbers:
        _, calls = counted(compiled, c, tr.asarray(n))
        assert calls - n <= 1.05 * fewest_steps(n, room) + 2
    close(compiled(c, tr.asarray(60)), grad(lambda c: f(c, 60))(c))


def test_the_peak_is_within_the_budget() -> None:
    memory_budget, n = 2**20, 3000
    c = tr.asarray(RNG.random(1024))
    derivatives = {
        "scan": lambda c: grad(lambda c: sum_of(tr.fori_loop(0, n, double, c, memory_budget=memory_budget)))(c),
        "while": lambda c: grad(
            lambda c: sum_of(
                tr.while_loop(
                    lambda s: s[0] < n, lambda s: (s[0] + 1, double(0, s[1])), (0, c), memory_budget=memory_budget
                )[1]
            )
        )(c),
    }
    for derivative in derivatives.values():
        compiled = tr.compile(derivative)
        compiled(c)
        tracemalloc.start()
        try:
            compiled(c)
            peak = tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()
        assert memory_budget / 2 < peak <= memory_budget


def test_a_checkpointed_body_runs_in_native_loops() -> None:
    """It keeps the carries of all steps, and within a budget those of some."""

    def body(c, x):
        for _ in range(5):
            c = tr.sin(c) + x
        return c, None

    c, xs = tr.asarray(RNG.random(512)), tr.asarray(RNG.random(100))
    f = lambda body, **how: tr.compile(grad(lambda c: sum_of(tr.scan(body, c, xs, **how)[0])))
    forms = [f(body), f(checkpoint(body)), f(checkpoint(body), memory_budget=2**16)]
    same = [form(c).numpy() for form in forms]
    for other in same[1:]:
        np.testing.assert_allclose(other, same[0], rtol=1e-12)
    peaks = [form.explain(c).peak_bytes for form in forms]
    assert peaks[1] < peaks[0] / 3
    assert peaks[2] <= 2**16
    assert all("not lowered" not in str(form.explain(c)) for form in forms)


def double(i, c):
    return 0.999 * c + 0.001 * c * c


def sum_of(c):
    return tr.sum(c * c)


def test_what_is_no_budget_is_refused() -> None:
    wrong: Any
    for wrong in (0, -1, 2.5, True, "64M"):
        with pytest.raises(ArgumentError, match="positive number of bytes as memory_budget"):
            tr.scan(lambda c, x: (c + x, None), 0.0, tr.ones(3), memory_budget=wrong)
    with pytest.raises(ArgumentError, match="leave out unroll, or memory_budget"):
        tr.scan(lambda c, x: (c + x, None), 0.0, tr.ones(3), memory_budget=2**20, unroll=True)


@pytest.mark.parametrize("name", ["recurrent", "open-ended"])
def test_lanes(name) -> None:
    """Gradients of all lanes at once, and gradients through them, are those of the lanes one by one."""
    f = LOOPS[name]
    cs = tr.asarray(RNG.random((4, 3)))
    w, xs = tr.asarray(W), tr.asarray(X)
    wanted = tr.stack([grad(lambda c: f(w, c, xs))(cs[i]) for i in range(4)])
    budgeted = lambda c: f(w, c, xs, memory_budget=TIGHT)
    for transform in (tr.vmap(grad(budgeted)), grad(lambda cs: tr.sum(tr.vmap(budgeted)(cs)))):
        close(transform(cs), wanted)
        close(tr.compile(transform)(cs), wanted)
    if name == "recurrent":
        assert ops_in(tr.trace(grad(lambda cs: tr.sum(tr.vmap(budgeted)(cs))), cs), "loop_backward")
