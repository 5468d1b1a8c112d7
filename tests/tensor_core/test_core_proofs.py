"""Proofs about sizes: never wrong, as good as a search without limits, and little work whatever the question."""

import functools
import itertools
import random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tenferro_tensor_core import (
    Decisions,
    Dim,
    InconclusiveDimError,
    TracingError,
    decide,
    dim,
    dim_max,
    dim_min,
    floordiv,
)
from tenferro_tensor_core import _proof as proof
from tenferro_tensor_core._decide import COMPARISONS
from tenferro_tensor_core._dims import as_dim
from tenferro_tensor_core._facts import Facts
from tenferro_tensor_core._normal_form import normal_form
from tenferro_tensor_core._poly import SAMPLE_POINTS, as_poly, bounds, samples
from thorough import tries

n, m, k, q = dim("n"), dim("m"), dim("k", min=1), dim("q", 1, 9)
GRID = [dict(zip("nmkq", v, strict=True)) for v in itertools.product((0, 1, 2, 7), (0, 1, 3), (1, 2, 5), (1, 4, 9))]


def expressions(depth=3):
    leaf = st.sampled_from([n, m, k, q]) | st.integers(-3, 6)

    def grown(inner):
        pair = st.tuples(inner, inner)
        return (
            pair.map(lambda p: p[0] + p[1])
            | pair.map(lambda p: p[0] - p[1])
            | st.tuples(inner, st.integers(1, 3)).map(lambda p: p[0] * p[1])
            | st.tuples(leaf, leaf).map(lambda p: p[0] * p[1])
            | st.tuples(inner, st.integers(1, 4)).map(lambda p: floordiv(*p))
            | pair.map(lambda p: dim_min(*p))
            | pair.map(lambda p: dim_max(*p))
        )

    return st.recursive(leaf, grown, max_leaves=depth + 2)


def value(d, point):
    return d.evaluate(point) if isinstance(d, Dim) else d


def unlimited(p, depth=proof.MAX_REPLACED_ATOMS):
    """The search without samples, memo and limit."""
    low, high = bounds(p)
    if low is not None and low >= 0:
        return True
    if depth == 0 or (high is not None and high < 0):
        return False
    return any(unlimited(s, depth - 1) for s in proof._relaxations(p)) or any(
        all(unlimited(case, depth - 1) for case in cases) for cases in proof._cases(p)
    )


@given(a=expressions(), b=expressions(), c=expressions())
@settings(max_examples=tries(100, 300))
def test_proofs_are_right_and_find_what_a_search_without_limits_finds(a, b, c):
    for d in (a, a - b, dim_max(a, b) - b, a - dim_min(a, b, c), dim_max(a, b) * k - a):
        if isinstance(d, Dim) and len(d.terms) < 8:
            known = proof.nonnegative(as_poly(d))
            assert known is unlimited(as_poly(d))
            assert not known or all(value(d, point) >= 0 for point in GRID)


def cut_off(rng, x):
    """What slices, pads and joins in a row leave of an extent, in two forms."""
    rules = []
    for _ in range(rng.randrange(1, 5)):
        i = rng.randrange(4)
        kind = rng.choice(["from", "to", "pad", "join", "outside"])
        forms = {
            "from": [lambda d, i=i: dim_max(0, d - i), lambda d, i=i: d - dim_min(i, d)],
            "to": [lambda d, i=i: dim_min(i, d), lambda d, i=i: d - dim_max(0, d - i)],
            "pad": [lambda d, i=i: d + i],
            "join": [lambda d, i=i: d + dim_min(i, d), lambda d, i=i: 2 * d - dim_max(0, d - i)],
            "outside": [
                lambda d, i=i: dim_min(i + 2, d) - dim_min(i, d),
                lambda d, i=i: dim_max(0, dim_min(i + 2, d) - i),
                lambda d, i=i: dim_min(2, dim_max(0, d - i)),
                lambda d, i=i: dim_max(0, d - i) - dim_max(0, d - i - 2),
            ],
        }[kind]
        rules.append(forms)
    return [functools.reduce(lambda d, forms: rng.choice(forms)(d), rules, x) for _ in range(2)]


@pytest.mark.parametrize("seed", range(200))
def test_sizes_that_numbers_cut_off_are_equal_in_every_form(seed):
    rng = random.Random(seed)
    one, other = cut_off(rng, rng.choice([n, m + 1, q, n + m, 2 * n, dim_min(n, m), 5 - q]))
    for more in (0, m, n):
        assert decide(one + more, "==", other + more) is True
        assert decide(one * k + more, "==", other * k + more) is True
        assert decide((one + more + 3) // 2, "==", (other + more + 3) // 2) is not False
    assert decide(one, "==", other + 1) is False


def test_steps_over_what_numbers_cut_off_are_equal_in_every_form():
    one, other = dim_max(0, dim_min(5, n) - 1), dim_min(4, dim_max(0, n - 1))
    assert one != other
    assert decide((one + 1) // 2, "==", (other + 1) // 2) is True
    assert decide(m // (one + 1), "==", m // (other + 1)) is True
    assert decide(m // (one - other + 1), "==", m) is True
    assert decide(m // (one - other), "==", m) is None, "the divisor is zero"


@given(a=expressions(), b=expressions())
@settings(max_examples=tries(100, 300))
def test_normal_forms_are_equal_sizes(a, b):
    for d in (a, a - b, a * k - b):
        same = as_dim(normal_form(as_poly(d)))
        assert all(value(d, point) == value(same, point) for point in GRID)


def test_normal_forms_are_bounded():
    """Products of many extents that are cut off, and extents of extents."""
    product = deep = n
    for i in range(12):
        product = product * (dim_max(0, dim_min(dim(f"u{i}"), 5) - 2) + 1)
        deep = dim_min(deep, dim(f"u{i}")) + dim_max(deep - 2, i)
    for d in (product, deep):
        assert normal_form(as_poly(d)) and decide(d, "==", n) is None


@given(a=expressions(), b=expressions())
def test_samples_are_values_within_the_bounds(a, b):
    d = a + k * b
    values, variables = samples(as_poly(d)), {str(v): v for v in (n, m, k, q)}
    assert len(values) == SAMPLE_POINTS
    for i, got in enumerate(values):
        point = {name: samples(as_poly(v))[i] for name, v in variables.items()}
        assert got == value(d, point)
        assert all(point[x] >= v.lower and (v.upper is None or point[x] <= v.upper) for x, v in variables.items())


def test_points_differ_between_variables_and_reach_the_ends():
    drawn = [samples(as_poly(dim(f"v{i}"))) for i in range(20)]
    assert len(set(drawn)) == 20 and all({0, 1} < set(values) for values in drawn)
    assert {1, 9} <= set(samples(as_poly(q)))
    assert samples(as_poly(floordiv(n, m)))[0] is None, "a divisor is zero there"


@given(a=expressions(), cuts=st.lists(st.integers(0, 4), min_size=2, max_size=2), times=st.integers(1, 3))
def test_what_is_cut_from_an_end_is_seen_to_fit(a, cuts, times):
    """The last elements of a slice are max(0, a) - max(0, a - 1), or several times so many."""
    low, high = sorted(cuts)
    more, less = dim_max(a - low, 0), dim_max(a - high, 0)
    assert decide(times * (more - less), ">=", 0) is True
    assert decide(times * (dim_min(a + high, k) - dim_min(a + low, k)), ">=", 0) is True


def volume(names, cut):
    """Number of elements inside of a margin: what slices give, multiplied out."""
    size = 1
    for name in names:
        size = size * dim_max(dim(name) - cut, 0)
    return size


@pytest.mark.parametrize("axes", [1, 2, 3, 4, 5])
def test_questions_about_volumes_are_a_bounded_number_of_goals(monkeypatch, axes):
    looked = []
    by_bounds = proof._by_bounds
    monkeypatch.setattr(proof, "_by_bounds", lambda p: looked.append(p) or by_bounds(p))
    one, other = (volume([f"{letter}{axes}{i}" for i in range(axes)], 2) for letter in "ab")
    for op in COMPARISONS:
        assert decide(one, op, other) is None
    assert decide(one, ">=", 0) is True
    assert len(looked) <= 8 * proof.MAX_GOALS
    few = len(looked)
    assert decide(one + 1, "==", other) is None and len(looked) - few <= 4, "samples refute what does not hold"


def test_hard_questions_end(monkeypatch):
    """Many extrema, and nothing that bounds or samples see: after so many goals, the answer is that nobody knows."""
    looked = []
    by_bounds = proof._by_bounds
    monkeypatch.setattr(proof, "_by_bounds", lambda p: looked.append(p) or by_bounds(p))
    sizes = [dim(f"h{i}") for i in range(12)]
    hard = sum(dim_max(a - b, b - a) for a, b in itertools.pairwise(sizes)) - dim_max(sizes[0] - sizes[-1], 0)
    assert not proof.nonnegative(as_poly(hard))
    assert proof.MAX_GOALS < len(looked) <= proof.MAX_GOALS * (proof.MAX_REPLACED_ATOMS + 1) + 1
    for i in range(50):
        values = random.Random(i).choices(range(9), k=12)
        assert hard.evaluate(dict(zip(map(str, sizes), values, strict=True))) >= 0


@given(facts=st.lists(expressions(), max_size=4), zero=expressions(), d=expressions())
@settings(max_examples=tries(70, 200))
def test_what_facts_imply_holds_wherever_they_hold(facts, zero, d):
    known = Facts()
    for fact in facts:
        known.add(fact)
    known.add_zero(zero)
    points = [p for p in GRID if all(value(f, p) >= 0 for f in facts)]
    if known.imply(d) and all(isinstance(f, Dim) for f in facts):
        assert all(value(d, p) >= 0 for p in points)
    if known.imply_zero(d):
        assert all(value(d, p) == 0 for p in GRID if value(zero, p) == 0)
    assert all(known.imply(f) for f in facts if isinstance(f, Dim))
    assert not isinstance(zero, Dim) or all(known.imply_zero(zero * other) for other in (1, n, m + 2))


def test_facts_follow_what_is_learned():
    facts = Facts()
    facts.add(n - m - 4)
    facts.add(n - m - 2)
    facts.add_zero(n * m - k * q)
    assert facts.imply(n - m - 4) and not facts.imply(n - k)
    facts.rewrite("m", lambda d: d.substitute({"m": k}))
    assert facts.imply(n - k - 4) and not facts.imply(n - m) and facts.imply_zero(n * k - k * q)


def test_a_question_costs_the_same_however_many_sizes_the_trace_knows():
    """Guards about other sizes are not looked at."""

    def cost(count):
        sizes = [dim(f"g{i}") for i in range(count)]
        with Decisions({str(s): 5 + i for i, s in enumerate(sizes)}) as decisions:
            for a, b in itertools.pairwise(sizes):
                assert decisions.decide(a * 2, "<", b * b)
            product: Any = sizes[1] * sizes[2]
            return len(list(decisions.facts._about(product)))

    assert cost(10) == cost(200) <= 4


def test_numbers_of_sizes_solve_equations_of_one_variable():
    for asked, answer in [(2 * n + 1, 11), (n - 3, 2), (7 - n, 2), (n, 5)]:
        with Decisions({"n": 5, "m": 3}) as decisions:
            assert decisions.specialise(asked, "int()") == answer
            assert decisions.canonical(n * n + m) is m + 25
    with Decisions({"n": 5, "m": 3}) as decisions:
        assert decisions.specialise(n * m, "int()") == 15 and decisions.canonical(n) is n
        with pytest.raises(InconclusiveDimError, match="b is known only when the program runs"):
            decisions.specialise(n + dim("b"), "int()")


def nested(depth):
    d = n
    for i in range(depth // 2):
        half = (3 * d + i) // 2
        d = dim_max(half - m, 0) + dim_min(half, n)
    return d


def test_sizes_that_share_their_parts_cost_no_more_than_the_parts():
    """Written out, this size has more than 2**23 atoms."""
    d = nested(46)
    assert len(repr(d)) < 1000 and "..." in repr(d)
    assert len(d.source({"n": "a", "m": "b"})) < 20_000
    for a, b in [(3, 1), (1, 5), (7, 0)]:
        assert d.evaluate({"n": a, "m": b}) == eval(d.source({"n": "a", "m": "b"}), {"a": a, "b": b})
    assert d.substitute({"n": 2 * k, "m": 0}) == d.substitute({"m": 0}).substitute({"n": 2 * k})
    assert d.variables == {"n", "m"} and d is nested(46)


def test_sizes_are_nested_to_a_limit():
    with pytest.raises(
        TracingError, match=r"a size of m, n nests 49 quotients, minima and maxima, .* with concrete numbers"
    ):
        nested(60)


def test_multiples_of_quotients_up_to_the_divisor() -> None:
    n = dim("n")
    for by in range(1, 7):
        for times in range(1, by + 1):
            assert decide(times * floordiv(n, by), "<=", n), (times, by)
    assert decide(5 * floordiv(n, 4), "<=", n) is None
