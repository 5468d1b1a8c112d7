"""Guards that follow from bounds or from other guards go; what all of them together say does not change."""

import itertools

from hypothesis import given
from hypothesis import strategies as st

import tenferro_runtime as tr
from tenferro_runtime.extension import Builder
from tenferro_runtime.passes import simplify_guards
from tenferro_tensor_core import Guard, dim_min

N, M = tr.dim("n"), tr.dim("m")


def kept(*guards: Guard) -> list[Guard]:
    b = Builder()
    program = b.close([1.0], guards=guards, examples={"n": 3, "m": 3, "k": 3})
    after = simplify_guards(program)
    assert simplify_guards(after) is after
    return list(after.guards)


def test_guards_that_say_the_same_are_one() -> None:
    first = Guard(N, ">", 3, "a.py:1")
    assert kept(first, Guard(N, ">", 3, "b.py:2"), Guard(3, "<", N, "c.py:3"), Guard(N, ">=", 4)) == [first]


def test_the_stronger_guard_stays() -> None:
    strong = Guard(N, ">", 5)
    assert kept(Guard(N, ">", 3), strong, Guard(N, "!=", 0), Guard(2 * N, ">", 6)) == [strong]


def test_the_stronger_of_two_bounds_stays_in_either_order() -> None:
    for weak, strong in ((Guard(N, ">=", 3), Guard(N, ">=", 5)), (Guard(N, "<", 9), Guard(N, "<=", 5))):
        assert kept(weak, strong) == kept(strong, weak) == [strong]


def test_bounds_narrow_declared_ones_and_not_more() -> None:
    few = tr.dim("k", min=2, max=10)
    for below, follows, does_not in (
        (Guard(few, "<", 6), Guard(2 * few, "<=", 10), Guard(2 * few, "<=", 8)),
        (Guard(few, "<=", 6), Guard(2 * few, "<=", 12), Guard(2 * few, "<=", 10)),
        (Guard(few, ">", 6), Guard(2 * few, ">=", 14), Guard(2 * few, ">=", 16)),
        (Guard(few, "!=", 2), Guard(2 * few, ">=", 6), Guard(2 * few, ">=", 8)),
        (Guard(few, "<", 12), Guard(2 * few, "<=", 20), Guard(2 * few, "<=", 18)),
    ):
        assert kept(below, follows) == ([] if below.rhs == 12 else [below])
        assert kept(below, does_not)[-1] == does_not


def test_an_earlier_guard_goes_if_a_later_one_says_more() -> None:
    assert kept(Guard(2 * N, ">=", 6), Guard(N, "==", 7)) == [Guard(N, "==", 7)]
    assert kept(Guard(2 * N, ">=", 6), Guard(N, ">=", 4)) == [Guard(N, ">=", 4)]


def test_equalities_carry_over() -> None:
    same, large = Guard(N, "==", M), Guard(N, ">", 3)
    assert kept(same, large, Guard(M, ">", 3), Guard(N * M, "==", M * M), Guard(N + 1, "<=", M + 1)) == [same, large]
    assert kept(Guard(N, "==", 4), Guard(N, "!=", 1)) == [Guard(N, "==", 4)]


def test_what_does_not_follow_stays_in_order() -> None:
    guards = [Guard(N, "!=", 1), Guard(M, "!=", 1), Guard(N, "<", M), Guard(N * M, ">", 7)]
    assert kept(*guards) == guards


sizes = st.sampled_from([N, M, N + 1, 2 * M, N * M, dim_min(N, M), 0, 1, 3])
some_guards = st.lists(st.builds(Guard, sizes, st.sampled_from(["==", "!=", "<", "<=", ">", ">="]), sizes), max_size=6)


@given(some_guards)
def test_the_guards_that_stay_hold_where_all_did(guards: list[Guard]) -> None:
    after = kept(*guards)
    assert [g for g in guards if g in after] == after or len(set(map(str, guards))) < len(guards)
    for n, m in itertools.product(range(6), repeat=2):
        at = {"n": n, "m": m}
        assert all(g.holds(at) for g in after) == all(g.holds(at) for g in guards), at


def test_of_many_bounds_of_a_size_the_nearest_stay() -> None:
    def f(x):
        for i in (3, 1, 7, 7, 2):
            x = x + x[i]
        return x

    traced = tr.trace(f, tr.Spec((tr.dim("n"),), tr.float64), examples={"n": 9})
    (guard,) = simplify_guards(traced).guards
    assert guard is next(g for g in traced.guards if not g.holds({"n": 7}))
    assert guard.holds({"n": 8})
