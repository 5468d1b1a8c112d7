"""The order of equations: less memory at once where that is possible, the order of the source otherwise."""

import numpy as np
from hypothesis import given

import tenferro_runtime as tr
from random_programs import Random, random_functions, same
from tenferro_runtime.extension import check_program, interpret
from tenferro_runtime.passes import schedule, simplify
from tenferro_runtime.passes.schedule import extent_in_trace, peak_estimate, weight
from tenferro_tensor import Spec, tensor

F8 = np.dtype("float64")
BYTES = 8 * 1000


def names(program):
    return [eq.op.primitive.name for eq in program.equations]


def test_what_is_made_early_and_read_late_is_made_late() -> None:
    def f(x):
        early = [tr.sin(x + float(i)) for i in range(4)]
        return [tr.sum(v) for v in early]

    program = tr.trace(f, Spec((1000,), F8))
    less = check_program(schedule(program))
    assert names(less) == ["add", "sin", "reduce_sum"] * 4
    assert peak_estimate(program) == 5 * BYTES and peak_estimate(less) == 2 * BYTES + 3 * 8
    x = tensor(np.arange(1000.0))
    for got, want in zip(less.run(x), program.run(x), strict=True):
        same(got, want)


def test_views_hold_the_memory_of_their_operands() -> None:
    def f(x):
        y = tr.sin(x)
        view = tr.reshape(y, (10, 100))
        z = tr.cos(x)
        return tr.sum(view, axis=0) + tr.sum(tr.reshape(z, (10, 100)), axis=0)

    program = tr.trace(f, Spec((1000,), F8))
    assert peak_estimate(program) == 2 * BYTES + 800
    assert peak_estimate(schedule(program)) == BYTES + 800 * 2


def test_what_the_outputs_keep_is_never_free() -> None:
    program = tr.trace(lambda x: (tr.sin(x), tr.cos(x), tr.exp(x)), Spec((1000,), F8))
    assert schedule(program) is program and peak_estimate(program) == 3 * BYTES


def test_a_chain_keeps_its_order() -> None:
    program = simplify(tr.trace(lambda x: tr.sum(tr.sin(tr.cos(tr.exp(x)) * 2)), Spec((1000,), F8)))
    assert schedule(program) is program


def test_open_sizes_count_as_in_the_trace() -> None:
    n, m = tr.dim("n"), tr.dim("m")

    def f(x):
        early = [x * float(i) for i in range(2, 5)]
        return [tr.sum(v, axis=1) for v in early]

    program = tr.trace(f, Spec((n, m), F8), examples={"n": 10, "m": 100})
    assert peak_estimate(program) == 3 * BYTES + 80
    less = check_program(schedule(program))
    assert peak_estimate(less) == BYTES + 3 * 80
    x = tensor(np.ones((3, 4)))
    for got, want in zip(less.run(x), program.run(x), strict=True):
        same(got, want)


@given(random_functions())
def test_the_estimate_never_rises(f: Random) -> None:
    program = tr.trace(f, *f.inputs)
    less = check_program(schedule(program))
    assert less is program or peak_estimate(less) < peak_estimate(program)
    assert sorted(map(str, less.equations)) == sorted(map(str, program.equations))
    assert schedule(less) is less or peak_estimate(schedule(less)) < peak_estimate(less)
    for got, want in zip(interpret(less, f.inputs), interpret(program, f.inputs), strict=True):
        same(got, want)


def test_sizes_without_an_example_count_as_64_within_their_bounds() -> None:
    n, small, large = tr.dim("n"), tr.dim("small", max=10), tr.dim("large", min=100)
    assert [extent_in_trace(d, {}) for d in (n, small, large)] == [64, 10, 64]
    assert weight(Spec((2 * n + 1,), F8), {}) == 8 * 129
    assert weight(Spec((n + small,), F8), {"n": 5, "small": 3}) == 8 * 8
    assert weight(Spec((3, n), F8), {"n": 5}) == 120 and weight(Spec((3, n), F8), {}) == 8 * 3 * 64
