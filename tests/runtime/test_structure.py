"""The structure of programs: equal for equal work, whatever variables and lines are called, and different otherwise."""

import gc
import weakref

import numpy as np
import pytest
from hypothesis import given

import tenferro_runtime as tr
from random_programs import Random, random_functions
from tenferro_runtime.extension import Builder, call
from tenferro_runtime.ir._structure import DIGEST_MAX_BYTES, VALUE_KEY_MAX_BYTES
from tenferro_runtime.passes import remove_dead_code, share_common_subexpressions
from tenferro_tensor import Spec, catalog, tensor

F8 = np.dtype("float64")
X = Spec((3,), F8)
N = tr.dim("n")


def test_names_lines_and_numbers_of_variables_do_not_count() -> None:
    first = tr.trace(lambda x: tr.sin(x) * 2, X)
    b = Builder()
    x = b.input(X, "velocity")
    catalog.cos(x)
    second = b.close([catalog.sin(x) * 2])
    assert first.structure is not second.structure  # dead work is work
    assert first.structure is remove_dead_code(second).structure


@pytest.mark.parametrize(
    "other",
    [
        lambda x: tr.cos(x) * 2,
        lambda x: tr.sin(x) * 2.0,
        lambda x: tr.sin(x) * True,
        lambda x: 2 * tr.sin(x),
        lambda x: (tr.sin(x) * 2, x),
        lambda x: tr.sin(x) * tensor([2.0, 2.0, 2.0]),
    ],
    ids=["op", "float", "bool", "order", "outputs", "array"],
)
def test_other_work_has_another_structure(other) -> None:
    assert tr.trace(lambda x: tr.sin(x) * 2, X).structure is not tr.trace(other, X).structure


def test_specs_and_guards_count() -> None:
    def f(x):
        return x + 1

    assert tr.trace(f, X).structure is not tr.trace(f, Spec((4,), F8)).structure

    def g(x, y):
        return x + y

    open_ = tr.trace(g, Spec((N,), F8), Spec((N,), F8))
    guarded = tr.trace(g, Spec((N,), F8), Spec((tr.dim("m"),), F8), examples={"n": 4, "m": 4})
    assert len(guarded.guards) == 1 and open_.structure is not guarded.structure


def test_constants_are_compared_by_value_and_large_ones_by_identity() -> None:
    def f(c):
        return tr.trace(lambda x: x * c, Spec(c.spec.shape, F8)).structure

    one, two, zero = (tensor(np.asarray(v)) for v in ([1.0, 0.0], [1.0, 0.0], [1.0, -0.0]))
    assert f(one) is f(two) and f(one) is not f(zero)
    some = np.ones(VALUE_KEY_MAX_BYTES // 8 + 1)
    assert f(tensor(some)) is f(tensor(some.copy())) and f(tensor(some)) is not f(tensor(some * 2))
    large = tensor(np.ones(DIGEST_MAX_BYTES // 8 + 1))
    assert f(large) is f(large)
    assert f(large) is not f(tensor(np.ones(DIGEST_MAX_BYTES // 8 + 1)))


def test_programs_inside_programs_count_by_structure() -> None:
    def outer(k):
        inner = tr.compile(lambda x: tr.sin(x) * k)
        return tr.trace(lambda x: inner(x) + inner(x), X)

    assert outer(2).structure is outer(2).structure
    assert outer(2).structure is not outer(3).structure


def test_a_structure_is_forgotten_with_its_programs() -> None:
    program = tr.trace(lambda x: tr.sin(x) * 12345, X)
    seen = weakref.ref(program.structure)
    assert seen() is program.structure
    del program
    gc.collect()
    assert seen() is None


@given(random_functions())
def test_tracing_twice_gives_one_structure(f: Random) -> None:
    assert tr.trace(f, *f.inputs).structure is tr.trace(f, *f.inputs).structure


def test_calls_of_equal_programs_are_equal_work() -> None:
    first, second = (tr.trace(lambda x: tr.sin(x) * 2, X) for _ in range(2))
    b = Builder()
    x = b.input(X)
    program = b.close([*call(x, program=first), *call(x, program=second)])
    shared = share_common_subexpressions(program)
    assert len(program.equations) == 2 and len(shared.equations) == 1
    assert shared.output_ids[0] == shared.output_ids[1]


def test_operands_that_commute_may_be_swapped() -> None:
    def count(f, spec=X) -> int:
        return len(share_common_subexpressions(tr.trace(f, spec, spec)).equations)

    assert count(lambda x, y: (x + y, y + x)) == 1
    assert count(lambda x, y: (x * y, y * x)) == 1
    assert count(lambda x, y: (x * 2, 2 * x)) == 1
    assert count(lambda x, y: (x - y, y - x)) == 2
    assert count(lambda x, y: (tr.maximum(x, y), tr.maximum(y, x))) == 2
    complex_ = Spec((3,), np.dtype("complex128"))
    assert count(lambda x, y: (x + y, y + x), complex_) == 1
    assert count(lambda x, y: (x * y, y * x), complex_) == 2
