"""Symbolic dimensions against integer evaluation, and the identities that interning promises."""

import copy
import gc
import itertools
import operator
import pickle
import subprocess
import sys
import threading

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tenferro_tensor_core import (
    DIM_MEMO,
    ArgumentError,
    Atom,
    Dim,
    InconclusiveDimError,
    ShapeError,
    always,
    decide,
    dim,
    dim_max,
    dim_min,
    evaluate,
    floordiv,
)
from tenferro_tensor_core._decide import COMPARISONS
from tenferro_tensor_core._dims import _dims

a, b, c = dim("a"), dim("b"), dim("c", min=1, max=9)
n, m = dim("n"), dim("m")


def test_equal_expressions_are_one_object():
    assert (a + b) * c is c * b + a * c
    assert (a + 1) * (a - 1) is a * a - 1
    assert a - a == 0 and type(a - a) is int
    assert a + 0 is a and a * 1 is a and a * 0 == 0 and 0 - (-a) is a
    assert 1 - (1 - a) is a


def test_division_simplifies():
    assert (a * b) // b is a
    assert (4 * a + 3) // 4 is a
    assert (4 * a * b) // (2 * b) is 2 * a
    assert (a * b + b) // (a + 1) is b
    assert (a * a - 1) // (a + 1) is a - 1
    assert (2 * a + 1) // 4 is a // 2
    assert (a // 2) // 3 is a // 6
    assert (a // 2 + 3) // 2 is (a + 6) // 4
    assert (a + 1) // 2 - 1 is (a - 1) // 2
    assert a // -2 is (-a) // 2
    assert 0 // a == 0 and a // 1 is a and a // a == 1
    assert c // 10 == 0 and (c + 9) // 10 == 1 and c % 10 is c
    assert floordiv(7, 2) == 3 and 7 % c is 7 - c * (7 // c)


def test_minimum_and_maximum_simplify():
    k = dim("k", max=64)
    assert dim_min(k, 100) is k and dim_max(k, 100) == 100
    assert dim_min(n, n + 1) is n and dim_max(n, n + 1) is n + 1
    assert dim_min(n, m) is dim_min(m, n) is dim_min(n, dim_min(m, n), m)
    assert dim_min(dim_min(n, m), n) is dim_min(n, m)
    assert dim_max(n, dim_min(n, m)) is n
    assert dim_max(n, 0) is n and dim_max(3, 4) == 4 and dim_min(3, np.int64(2)) == 2  # type: ignore[arg-type]


def test_bounds_decide():
    assert decide(n, ">=", dim_min(n, m)) is True
    assert decide(dim_min(n, m), ">", n) is False
    assert decide(dim_max(n, m) + 1, ">", m) is True
    assert decide(n * dim_min(n, m), "<=", n * m) is True
    assert decide(n % 4, "<", 4) is True and decide(n % 4, ">=", 0) is True
    assert decide(2 * (n // 2), "<=", n) is True and decide(n // 3, "<=", n) is True
    assert decide(n // m, "<=", n) is True
    assert decide(2 * n, "==", 2 * m + 1) is False, "even is never odd"
    assert decide(n, "==", -1) is False and decide(n, "!=", -1) is True
    assert decide(dim("k", 3, 3), "==", 3) is True
    assert decide(n, "==", m) is None and decide(n, "<", m) is None and decide(n, ">", 0) is None
    assert decide(2, "<=", 2) is True


def test_always_is_what_decide_proves():
    for a, b in itertools.product((n, dim_min(n, m), 2 * (n // 2), 3, dim("k", 3, 3), n + m - 1), repeat=2):
        for op in COMPARISONS:
            assert always(a, op, b) == (decide(a, op, b) is True), (a, op, b)
    with pytest.raises(ArgumentError, match="not a comparison of sizes"):
        always(n, "=<", m)


def test_names_and_bounds_make_the_variable():
    assert dim("n") is n and dim("n", min=1) is not n and dim("n", 1, 5) is dim("n", 1, 5)
    assert dim("n", min=1) - n != 0
    assert dim("n", 1, 5).describe() == "n with 1 <= n <= 5"
    assert (n + 2 * dim("n", min=1)).describe() == "n + 2*n with 0 <= n, 1 <= n"


def test_text():
    assert str(2 * n + 1) == repr(2 * n + 1) == "2*n + 1"
    assert str(-n) == "-n" and str(1 - n) == "-n + 1" and str(n * n * m - 2 * n) == "m*n*n - 2*n"
    assert str((n + 1) // 2 * m) == "((n + 1)//2)*m"
    assert str(dim_min(n, m + 1)) == "min(m + 1, n)"
    assert f"{n % 4}" == "-4*(n//4) + n"


def test_variables_and_atoms():
    d = dim_min(n, m // 2) * a
    assert d.variables == {"a", "m", "n"}
    kinds = [atom.kind for atom in d.atoms()]
    assert kinds.count("var") == 3 and kinds.index("floordiv") < kinds.index("min")


def test_dims_do_not_change():
    with pytest.raises(AttributeError, match="Dim is immutable: cannot set 'terms'"):
        n.terms = ()
    atom = next(n.atoms())
    with pytest.raises(AttributeError, match="Atom is immutable"):
        atom.name = "m"
    with pytest.raises(TypeError, match=r"Dim has no public constructor; use dim\(name\)"):
        Dim()
    with pytest.raises(TypeError, match="Atom has no public constructor"):
        Atom()


def test_numpy_integers_and_foreign_operands():
    assert np.int64(3) * n is 3 * n and n + np.uint8(1) is n + 1 and np.int32(7) - n is 7 - n
    for wrong in (2.5, "2", None):
        with pytest.raises(TypeError, match="unsupported operand"):
            n + wrong
        with pytest.raises(ArgumentError, match="a size is an int or a Dim"):
            floordiv(n, wrong)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="not supported between"):
        operator.lt(n, 3)  # type: ignore[arg-type]
    assert (n == 3) is False and n != 3  # type: ignore[comparison-overlap]


def test_copies_and_pickles_are_the_same_object():
    d = dim_min(n, m + 1) * (n // 3) - dim_max(c, a) * 2 + 7
    assert copy.copy(d) is d and copy.deepcopy([d])[0] is d
    for protocol in range(2, pickle.HIGHEST_PROTOCOL + 1):
        assert pickle.loads(pickle.dumps(d, protocol)) is d
    atom = next(d.atoms())
    assert pickle.loads(pickle.dumps(atom)) is atom


def test_pickles_mean_the_same_in_another_process():
    d = dim_min(n, m + 1) * (n // 3) + dim("k", 1, 5)
    code = (
        "import pickle, sys; from tenferro_tensor_core import *;"
        "z = dim('z'); n, m = dim('n'), dim('m');"
        "d = pickle.loads(bytes.fromhex(sys.argv[1]));"
        "assert d is dim_min(m + 1, n) * (n // 3) + dim('k', 1, 5), d"
    )
    subprocess.run([sys.executable, "-c", code, pickle.dumps(d).hex()], check=True)


def test_unused_dims_are_forgotten_and_the_memo_is_bounded():
    DIM_MEMO.clear()
    gc.collect()
    before = len(_dims)
    for i in range(DIM_MEMO.bound + 100):
        n + (i + 1000)
    stats = DIM_MEMO.stats()
    assert stats["size"] <= stats["bound"] and stats["clears"] >= 1
    DIM_MEMO.clear()
    gc.collect()
    assert len(_dims) <= before
    assert DIM_MEMO.stats()["size"] == 0


def test_threads_agree_on_identity():
    found: list[list[Dim]] = [[] for _ in range(8)]
    barrier = threading.Barrier(8)

    def build(out):
        barrier.wait()
        for i in range(200):
            out.append(dim(f"t{i}") * (i + 2) + dim_min(dim(f"t{i}"), dim("u")))

    threads = [threading.Thread(target=build, args=(out,)) for out in found]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    for row in zip(*found, strict=True):
        assert len({id(d) for d in row}) == 1


# Expressions as (symbolic, value) pairs built by the same operations.
NAMES = {"a": a, "b": b, "c": c, "p": dim("p", min=1), "q": dim("q", min=2, max=6)}
LIMITS = {"a": (0, 9), "b": (0, 9), "c": (1, 9), "p": (1, 9), "q": (2, 6)}
values = st.fixed_dictionaries({name: st.integers(*limits) for name, limits in LIMITS.items()})
leaves = st.one_of(st.sampled_from(sorted(NAMES)), st.integers(-3, 7))
trees = st.recursive(
    leaves,
    lambda x: st.one_of(
        st.tuples(st.sampled_from(["add", "sub", "mul", "min", "max"]), x, x),
        st.tuples(st.sampled_from(["floordiv", "mod"]), x, st.sampled_from([-2, 1, 2, 3, 4, "c", "p", "q"])),
    ),
    max_leaves=7,
)
OPS = {
    "add": operator.add,
    "sub": operator.sub,
    "mul": operator.mul,
    "floordiv": operator.floordiv,
    "mod": operator.mod,
}


def build(tree, table, least, most):
    if isinstance(tree, str):
        return table[tree]
    if isinstance(tree, int):
        return tree
    op, x, y = tree[0], *(build(t, table, least, most) for t in tree[1:])
    return least(x, y) if op == "min" else most(x, y) if op == "max" else OPS[op](x, y)


@given(trees, values)
def test_evaluation_is_integer_arithmetic(tree, bindings):
    symbolic = build(tree, NAMES, dim_min, dim_max)
    expected = build(tree, bindings, min, max)
    assert evaluate(symbolic, bindings) == expected
    if isinstance(symbolic, Dim):
        assert symbolic.lower is None or symbolic.lower <= expected
        assert symbolic.upper is None or expected <= symbolic.upper
        written = symbolic.source({name: f"Z[{name!r}]" for name in bindings})
        assert eval(written, {"Z": bindings, "min": min, "max": max}) == expected
        read = eval(str(symbolic), {**NAMES, "min": dim_min, "max": dim_max})  # from the left: perhaps a shorter form
        assert evaluate(read, bindings) == expected
        assert pickle.loads(pickle.dumps(symbolic)) is symbolic
        assert symbolic.substitute({}) is symbolic
        assert symbolic.substitute(bindings) == expected


def test_negated_extrema_have_one_form_in_quotients_and_substitutions():
    least = dim_min(a, 1)
    assert least // -2 is -least // 2 is (dim_max(1 - a, 0) - 1) // 2
    assert str(least // -2) == "(max(-a + 1, 0) + 1)//2 - 1"
    assert (b - least).substitute({}) is b - least
    assert (b - least).substitute({"b": a}) is dim_max(a - 1, 0)


@given(trees, trees, st.sampled_from(["==", "!=", "<", "<=", ">", ">="]), values)
def test_decisions_by_bounds_are_true_everywhere(left, right, op, bindings):
    x, y = (build(t, NAMES, dim_min, dim_max) for t in (left, right))
    known = decide(x, op, y)
    if known is not None:
        compare = {"==": "eq", "!=": "ne", "<": "lt", "<=": "le", ">": "gt", ">=": "ge"}[op]
        assert getattr(operator, compare)(evaluate(x, bindings), evaluate(y, bindings)) is known


@given(trees, trees, values)
def test_substitution_commutes_with_evaluation(tree, inner, bindings):
    symbolic, other = (build(t, NAMES, dim_min, dim_max) for t in (tree, inner))
    if isinstance(symbolic, Dim):
        value = evaluate(other, bindings)
        if value >= 0:
            assert evaluate(symbolic.substitute({"a": other}), bindings) == evaluate(symbolic, {**bindings, "a": value})


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (lambda: dim("2n"), ArgumentError, "dim needs an identifier as name, got '2n'; try 'n'"),
        (lambda: dim("n", min=-1), ArgumentError, "needs 0 <= min <= max, got min=-1 and max=None; correct the bounds"),
        (lambda: dim("n", 4, 3), ArgumentError, "got min=4 and max=3"),
        (lambda: dim("n", min=2.5), ArgumentError, "a size is an int or a Dim, got 2.5"),  # type: ignore[arg-type]
        (lambda: n // 0, ArgumentError, "cannot divide the size n by zero; use a positive divisor"),
        (lambda: dim_min(), ArgumentError, "dim_min needs at least one size, got none"),
        (lambda: n.evaluate({"m": 1}), ArgumentError, "size 'n' has no value; the bindings have ['m']; bind it too"),
        (lambda: c.evaluate({"c": 10}), ShapeError, "size 'c' is 10, outside its bounds [1, 9]; declare it with"),
        (lambda: n.evaluate({"n": -1}), ShapeError, "size 'n' is -1, outside its bounds [0, ...]"),
        (lambda: (7 // n).evaluate({"n": 0}), ShapeError, "size 7 is divided by n, which is zero here; pass other"),
        (lambda: bool(n), InconclusiveDimError, "the symbolic size n has no truth value; use ask(n, '!=', 0)"),
        (lambda: decide(n, "=", 3), ArgumentError, "'=' is not a comparison of sizes; use one of ==, !=, <, <=, >, >="),
    ],
)
def test_error_texts(call, error, text):
    with pytest.raises(error) as caught:
        call()
    assert text in str(caught.value)
    assert caught.value.payload or "got none" in text
