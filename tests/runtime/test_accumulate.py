"""Windows of zeros are added in place of whole arrays, and sums in branches and loops start from the other summand."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tenferro_runtime as tr
from random_programs import same
from tenferro_runtime.extension import check_program, interpret
from tenferro_runtime.ir import inner_programs
from tenferro_runtime.passes import accumulate, remove_dead_code
from tenferro_runtime.passes.accumulate import accumulate_in_body
from tenferro_tensor import Spec, Tensor, catalog, tensor

F8, I8 = np.dtype("float64"), np.dtype("int64")
SHAPE = (8, 6)
RNG = np.random.default_rng(3)
INPUTS = {
    "t": tensor(RNG.normal(size=SHAPE)),
    "u": tensor(RNG.normal(size=(2, 3))),
    "x": tensor(RNG.normal(size=SHAPE)),
    "k": tensor(3),
}
"""The values of parameters of these names: a total, a window, an array of rows, an index."""

COUNTED = {"scatter", "update_slice", "dynamic_slice", "dynamic_update_slice", "pad", "add", "scan", "cond"}

SCATTER = {"update_window_dims": (1, 2), "inserted_dims": (), "scatter_dims": (0, 1)}


def traced(f: Callable[..., Any]) -> tuple[tr.Program, list[Tensor]]:
    arrays = [INPUTS[name] for name in f.__code__.co_varnames[: f.__code__.co_argcount]]
    return check_program(tr.trace(f, *arrays)), arrays


def names(program: tr.Program) -> list[str]:
    return [eq.op.primitive.name for eq in program.equations if eq.op.primitive.name in COUNTED]


def agree(less: tr.Program, program: tr.Program, arrays: list[Tensor]) -> None:
    for got, want in zip(interpret(less, arrays), interpret(program, arrays), strict=True):
        same(got, want, rtol=1e-12)


def zeros(shape: tuple[int, ...] = SHAPE) -> Any:
    return catalog.broadcast_in_dim(tensor(0.0), shape=shape, dims=())


def scattered(base: Any, u: Any, k: int = 1, mode: str = "add") -> Any:
    """The window `u` of (2, 3) at (k, 1)."""
    indices = tensor(np.asarray([[k, 1]]))
    return catalog.scatter(base, indices, catalog.reshape(u, shape=(1, 2, 3)), **SCATTER, mode=mode)


def sliced(base: Any, u: Any, start: tuple[int, int] = (1, 2), mode: str = "add", step: int = 1) -> Any:
    return catalog.update_slice(base, u, start=start, stride=(step, 1), mode=mode)


ZERO = tensor(0)


def block(base: Any, u: Any, k: Any, column: Tensor = ZERO) -> Any:
    return catalog.dynamic_update_slice(base, u, k, column)


def padded(u: Any, value: float = 0.0, **changes: Any) -> Any:
    params = {"low": (1, 2), "high": (5, 1), "interior": (0, 0)} | changes
    return catalog.pad(u, tensor(value), **params)


def block_added(base: Any, u: Any, k: Any) -> Any:
    return block(base, catalog.dynamic_slice(base, k, ZERO, sizes=(2, 3)) + u, k)


BLOCK = ["dynamic_slice", "add", "dynamic_update_slice"]

ADDED: dict[str, tuple[Any, list[str]]] = {
    "scattered updates": (lambda t, u: t + scattered(zeros(), u), ["scatter"]),
    "scattered updates, first": (lambda t, u: scattered(zeros(), u) + t, ["scatter"]),
    "two scattered updates in a row": (lambda t, u: t + scattered(scattered(zeros(), u), 2 * u, 4), ["scatter"] * 2),
    "zeros that are an array": (lambda t, u: t + scattered(np.zeros(SHAPE), u), ["scatter"]),
    "a slice that is added to zeros": (lambda t, u: t + sliced(zeros(), u), ["update_slice"]),
    "a slice that is set in zeros": (lambda t, u: t + sliced(zeros(), u, mode="set"), ["update_slice"]),
    "a slice with steps": (lambda t, u: t + sliced(zeros(), u, mode="set", step=3), ["update_slice"]),
    "a block": (lambda t, u, k: t + block(zeros(), u, k), BLOCK),
    "a block added to a block": (lambda t, u, k: t + block_added(block(zeros(), u, k), 2 * u, k), BLOCK * 2),
    "padding": (lambda t, u: t + padded(u), ["update_slice"]),
    "padding between elements": (
        lambda t, u: t + padded(u, low=(1, 1), high=(5, 0), interior=(0, 1)),
        ["update_slice"],
    ),
    "a sum of windows": (lambda t, u: t + (padded(u) + scattered(zeros(), u)), ["update_slice", "scatter"]),
    "a window, added to another array first": (
        lambda t, u, x: t + (scattered(zeros(), u) + tr.sin(x)),
        ["scatter", "add"],
    ),
    "both operands": (lambda u: padded(u) + scattered(zeros(), u), ["pad", "scatter"]),
    "a block over a block that was cleared": (
        lambda t, u, k: block(t, zeros((2, 3)), k) + block(zeros(), u, k),
        ["dynamic_update_slice"],
    ),
    "a block beside a block that was cleared": (
        lambda t, u, k: block(t, zeros((2, 3)), k) + block(zeros(), u, k, tensor(1)),
        ["dynamic_update_slice", *BLOCK],
    ),
    "a block over a block that was set": (
        lambda t, u, k: block(t, 2 * u, k) + block(zeros(), u, k),
        ["dynamic_update_slice", *BLOCK],
    ),
    "a slice over a slice that was cleared": (
        lambda t, u: sliced(t, zeros((2, 3)), mode="set") + padded(u),
        ["update_slice"],
    ),
    "a slice beside a slice that was cleared": (
        lambda t, u: sliced(t, zeros((2, 3)), (2, 2), "set") + padded(u),
        ["update_slice"] * 2,
    ),
    "a slice over a slice that was set": (lambda t, u: sliced(t, 2 * u, mode="set") + padded(u), ["update_slice"] * 2),
    "a slice over a slice to which zeros were added": (
        lambda t, u: sliced(t, zeros((2, 3))) + padded(u),
        ["update_slice"] * 2,
    ),
}


@pytest.mark.parametrize("name", ADDED)
def test_windows_are_added_by_an_update(name: str) -> None:
    f, expected = ADDED[name]
    program, arrays = traced(f)
    less = check_program(remove_dead_code(accumulate(program)))
    assert names(less) == expected
    agree(less, program, arrays)


def test_an_update_of_a_cleared_slice_sets_it() -> None:
    program, _ = traced(ADDED["a slice over a slice that was cleared"][0])
    (update,) = [eq for eq in remove_dead_code(accumulate(program)).equations if eq.op.primitive.name in COUNTED]
    assert update.op.params["mode"] == "set" and update.operands[0] == program.input_ids[0]


def twice(t: Any, w: Any) -> Any:
    return t + w, w * 2


LEFT_ALONE: dict[str, Any] = {
    "updates that replace": lambda t, u: t + scattered(zeros(), u, mode="set"),
    "updates of something else": lambda t, u, x: t + scattered(x, u),
    "a slice in something else": lambda t, u, x: t + sliced(x, u, mode="set"),
    "a block in something else": lambda t, u, x, k: t + block(x, u, k),
    "scattered updates that somebody else reads": lambda t, u: twice(t, scattered(zeros(), u)),
    "slices that somebody else reads": lambda t, u: twice(t, sliced(zeros(), u)),
    "blocks that somebody else reads": lambda t, u, k: twice(t, block(zeros(), u, k)),
    "padding that somebody else reads": lambda t, u: twice(t, padded(u)),
    "padding with ones": lambda t, u: t + padded(u, 1.0),
    "padding that removes a row": lambda t, u: t + padded(u, low=(-1, 2), high=(7, 1)),
    "padding that removes a row at the end": lambda t, u: t + padded(u, low=(7, 2), high=(-1, 1)),
    "a window of more than a quarter": lambda t, x: (
        t + catalog.pad(x[:3, :5], tensor(0.0), low=(5, 0), high=(0, 1), interior=(0, 0))
    ),
    "an array twice": lambda u: (lambda w: w + w)(scattered(zeros(), u)),
    "a number": lambda u: scattered(zeros(), u) + 1.0,
    "a product": lambda t, u: t * scattered(zeros(), u),
}


@pytest.mark.parametrize("name", LEFT_ALONE)
def test_it_is_left_alone(name: str) -> None:
    program, _ = traced(LEFT_ALONE[name])
    assert accumulate(program) is program


def test_a_quarter_is_a_window() -> None:
    program, arrays = traced(lambda t, x: t + catalog.pad(x[:2], tensor(0.0), low=(3, 0), high=(3, 0), interior=(0, 0)))
    less = check_program(remove_dead_code(accumulate(program)))
    assert names(less) == ["update_slice"]
    agree(less, program, arrays)


def test_large_arrays_are_not_searched_for_zeros() -> None:
    for rows, found in ((256, True), (257, False)):
        base = np.zeros((rows, 256))
        program = tr.trace(lambda t, u: t + scattered(base, u), Spec(base.shape, F8), Spec((2, 3), F8))  # noqa: B023
        assert (accumulate(program) is not program) == found


def test_narrow_floats_are_left_to_round_at_each_step() -> None:
    program = tr.trace(
        lambda t, u: t + scattered(np.zeros(SHAPE, np.float16), u),
        *[Spec(s, np.dtype("float16")) for s in (SHAPE, (2, 3))],
    )
    assert accumulate(program) is program


def test_padding_by_symbolic_sizes() -> None:
    n = tr.dim("n", min=2)

    for low, high, found in ((n - 1, 8, True), (0, n - 2, True), (1 - n, n + n + 6, False)):
        program = tr.trace(
            lambda t, u: t + catalog.pad(u, tensor(0.0), low=(low,), high=(high,), interior=(0,)),  # noqa: B023
            Spec((low + high + 1,), F8),
            Spec((1,), F8),
            examples={"n": 9},
        )
        assert (names(remove_dead_code(accumulate(program))) == ["update_slice"]) == found


BODIES: dict[str, tuple[Any, bool, bool]] = {
    "one window": (lambda t, u: t + scattered(zeros(), u), True, True),
    "a window for each of two indices": (
        lambda t, u: (
            t
            + catalog.scatter(
                zeros(),
                tensor(np.asarray([[1, 1], [1, 2]])),
                catalog.broadcast_in_dim(u, shape=(2, 2, 3), dims=(1, 2)),
                **SCATTER,
                mode="add",
            )
        ),
        True,
        False,
    ),
    "a slice": (lambda t, u: t + sliced(zeros(), u), True, True),
    "a window of more than a quarter": (LEFT_ALONE["a window of more than a quarter"], True, True),
    "a small array": (
        lambda u: u[0, :2] + catalog.pad(u[0, :1], tensor(0.0), low=(1,), high=(0,), interior=(0,)),
        False,
        False,
    ),
}


@pytest.mark.parametrize("name", BODIES)
def test_bodies_of_loops_add_windows_of_any_size(name: str) -> None:
    f, any_order, in_turn = BODIES[name]
    program, arrays = traced(f)
    for turn, found in ((False, any_order), (True, in_turn)):
        less = check_program(accumulate_in_body(program, in_turn=turn))
        assert (less is not program) == found
        agree(less, program, arrays)


def test_small_arrays_have_at_most_sixteen_elements() -> None:
    for n, found in ((16, False), (17, True)):
        program = tr.trace(
            lambda t, u: t + catalog.pad(u, tensor(0.0), low=(1,), high=(n - 2,), interior=(0,)),  # noqa: B023
            Spec((n,), F8),
            Spec((1,), F8),
        )
        assert (accumulate_in_body(program, in_turn=False) is not program) == found


def summed(step: Any, start: Any, xs: Any) -> Any:
    return tr.scan(lambda s, x: (step(s, x), None), start, xs)[0]


def row_added(s: Any, i: Any, x: Any) -> Any:
    return s.at[i].add(x[i])


ROWS = tr.arange(8)

LOOPS: dict[str, Any] = {
    "rows": lambda t, x: t + summed(lambda s, i: row_added(s, i, x), zeros(), ROWS),
    "rows, first": lambda t, x: summed(lambda s, i: row_added(s, i, x), zeros(), ROWS) + t,
    "rows, and a reader": lambda t, x: tr.sin(t + summed(lambda s, i: row_added(s, i, x), zeros(), ROWS)),
    "whole arrays": lambda t, x: t + summed(lambda s, r: s + r, np.zeros(SHAPE), tr.stack([x, 2 * x])),
    "a slice": lambda t, u: t + summed(lambda s, r: sliced(s, r), zeros(), tr.stack([u, u])),
    "scattered updates": lambda t, u: t + summed(lambda s, r: scattered(s, r), zeros(), tr.stack([u, u])),
    "a loop in a loop": lambda t, x: (
        t + summed(lambda s, _: summed(lambda s, i: row_added(s, i, x), s, ROWS), zeros(), tr.arange(2))
    ),
    "branches in a loop": lambda t, x: (
        t
        + summed(
            lambda s, i: tr.cond(i > 2, lambda s: row_added(s, i, x), lambda s: row_added(s, i, 2 * x), s),
            zeros(),
            ROWS,
        )
    ),
    "two loops": lambda t, x: (
        t
        + summed(lambda s, i: row_added(s, i, x), zeros(), ROWS)
        + summed(lambda s, i: row_added(s, i, 2 * x), zeros(), ROWS)
    ),
    "the second carry": lambda t, x: (lambda out: (out[0], t + out[1]))(
        tr.scan(lambda s, i: ((s[0] * 2, row_added(s[1], i, x)), None), (x, zeros()), ROWS)[0]
    ),
}


@pytest.mark.parametrize("name", LOOPS)
def test_loops_start_from_the_value_that_their_sum_is_added_to(name: str) -> None:
    program, arrays = traced(LOOPS[name])
    less = check_program(accumulate(program))
    assert [n for n in names(less) if n in ("scan", "add")] == [n for n in names(program) if n == "scan"]
    agree(less, program, arrays)


def outputs(t: Any, carry: Any, rest: Any) -> Any:
    return t + rest, carry


OTHER_LOOPS: dict[str, Any] = {
    "a start that is not zero": lambda t, x: t + summed(lambda s, i: row_added(s, i, x), x, ROWS),
    "a start of ones": lambda t, x: t + summed(lambda s, i: row_added(s, i, x), np.ones(SHAPE), ROWS),
    "a sum that is read twice": lambda t, x: twice(t, summed(lambda s, i: row_added(s, i, x), zeros(), ROWS)),
    "a sum that is stacked": lambda t, x: (lambda out: (t + out[0], out[1]))(
        tr.scan(lambda s, r: (lambda n: (n, n))(s + r), zeros(), tr.stack([x, x]))
    ),
    "a sum that is scaled in each step": lambda t, x: t + summed(lambda s, r: s * 0.5 + r, zeros(), tr.stack([x, x])),
    "terms that depend on the sum": lambda t, x: t + summed(lambda s, r: s + tr.sin(s) * r, zeros(), tr.stack([x, x])),
    "rows that depend on the sum": lambda t: t + summed(lambda s, i: s.at[i].add(s[7 - i] + 1), zeros(), ROWS),
    "rows that are replaced": lambda t, x: t + summed(lambda s, i: s.at[i].set(x[i]), zeros(), ROWS),
    "rows that are multiplied": lambda t, x: t + summed(lambda s, i: s.at[i].multiply(x[i]), zeros(), ROWS),
    "a carry that stays": lambda t: t + summed(lambda s, i: s, zeros(), ROWS),
    "a carry that something else replaces": lambda t, x: t + summed(lambda s, r: tr.sin(r), zeros(), tr.stack([x])),
    "carries that change places": lambda t, x: (lambda out: (out[0] * 2, t + out[1]))(
        tr.scan(lambda s, r: ((s[1] + r, s[0] + r), None), (zeros(), zeros()), tr.stack([x, x]))[0]
    ),
    "both results of one loop": lambda x: (lambda out: out[0] + out[1])(
        tr.scan(lambda s, r: ((s[0] * 2 + r, s[1] + r), None), (x, zeros()), tr.stack([x, x]))[0]
    ),
    "a stacked result": lambda t, x: outputs(t, *tr.scan(lambda s, r: (s + r[0], r), 0.0 * x[0], x)),
    "a total that depends on the loop": lambda t, x: (lambda out: tr.sin(out[0]) * t + out[1])(
        tr.scan(lambda s, r: ((s[0] * 2 + r, s[1] + r), None), (x, zeros()), tr.stack([x, x]))[0]
    ),
    "a sum in one branch only": lambda t, x: (
        t
        + summed(
            lambda s, i: tr.cond(i > 2, lambda s: row_added(s, i, x), lambda s: s * 2, s),
            zeros(),
            ROWS,
        )
    ),
}


@pytest.mark.parametrize("name", OTHER_LOOPS)
def test_other_loops_start_where_they_do(name: str) -> None:
    program, arrays = traced(OTHER_LOOPS[name])
    less = check_program(accumulate(program))
    assert [eq.operands for eq in less.equations if eq.op.primitive.name == "scan"] == [
        eq.operands for eq in program.equations if eq.op.primitive.name == "scan"
    ]
    agree(less, program, arrays)


BRANCHES: dict[str, tuple[Any, list[list[str]]]] = {
    "zeros or a window": (
        lambda t, u, k: t + tr.cond(k > 2, lambda: scattered(zeros(), u), zeros),
        [["scatter"], []],
    ),
    "zeros or a window, first": (
        lambda t, u, k: tr.cond(k > 5, lambda: scattered(zeros(), u), zeros) + t,
        [["scatter"], []],
    ),
    "zeros or an array": (lambda t, x, k: t + tr.cond(k > 2, lambda: tr.sin(x), zeros), [["add"], []]),
    "zeros or an array, and a reader": (
        lambda t, x, k: tr.sin(t + tr.cond(k > 2, lambda: tr.sin(x), zeros)),
        [["add"], []],
    ),
    "the second of two results": (
        lambda t, x, k: (lambda out: (out[0] * 2, t + out[1]))(
            tr.cond(k > 2, lambda: (x, zeros()), lambda: (2 * x, tr.sin(x)))
        ),
        [[], ["add"]],
    ),
    "both of two results": (
        lambda t, x, k: (lambda out: (t + out[0], x + out[1]))(
            tr.cond(k > 2, lambda: (tr.sin(x), zeros()), lambda: (zeros(), tr.cos(x)))
        ),
        [["add"], ["add"]],
    ),
}


@pytest.mark.parametrize("name", BRANCHES)
def test_branches_add_to_the_value(name: str) -> None:
    f, expected = BRANCHES[name]
    program, arrays = traced(f)
    less = check_program(accumulate(program))
    assert names(less) == ["cond"]
    (chosen,) = [eq for eq in less.equations if eq.op.primitive.name == "cond"]
    assert sorted(names(remove_dead_code(branch)) for branch in inner_programs(chosen.op.params)) == sorted(expected)
    agree(less, program, arrays)
    if "k" in f.__code__.co_varnames:
        agree(less, program, [*arrays[:-1], tensor(0)])


def test_two_branches_in_a_row_pass_the_sum_along() -> None:
    def f(t, x, k):
        for n in (1, 4):
            t = t + tr.cond(k > n, lambda: tr.sin(x), zeros)
        return t

    program, arrays = traced(f)
    less = check_program(remove_dead_code(accumulate(program)))
    assert names(less) == ["cond", "cond"]
    for k in (0, 3, 6):
        agree(less, program, [*arrays[:-1], tensor(k)])


OTHER_BRANCHES: dict[str, Any] = {
    "no zeros": lambda t, x, k: t + tr.cond(k > 2, lambda: tr.sin(x), lambda: tr.cos(x)),
    "a result that is read twice": lambda t, x, k: twice(t, tr.cond(k > 2, lambda: tr.sin(x), zeros)),
    "a product": lambda t, x, k: t * tr.cond(k > 2, lambda: tr.sin(x), zeros),
    "both results of one choice": lambda x, k: (lambda out: out[0] + out[1])(
        tr.cond(k > 2, lambda: (tr.sin(x), zeros()), lambda: (zeros(), x))
    ),
    "a total that depends on the choice": lambda x, k: (lambda out: tr.sin(out[0]) + out[1])(
        tr.cond(k > 2, lambda: (tr.sin(x), zeros()), lambda: (zeros(), x))
    ),
    "a number": lambda x, k: 1.0 + tr.cond(k > 2, lambda: tr.sin(x), zeros),
}


@pytest.mark.parametrize("name", OTHER_BRANCHES)
def test_other_branches_are_left_alone(name: str) -> None:
    program, _ = traced(OTHER_BRANCHES[name])
    assert accumulate(program) is program
