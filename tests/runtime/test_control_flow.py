"""Branches and loops: concrete, recorded and compiled forms agree, and every misuse says what to do."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tenferro_runtime as tr
from tenferro_runtime import Runtime, Spec, StructureError
from tenferro_runtime.extension import check_program, flatten, interpret
from tenferro_runtime.ir import concrete
from tenferro_tensor_core import ArgumentError, ShapeError, TracingError, UnsupportedError

F8 = np.dtype("float64")
X = np.array([0.5, -1.5, 2.0])
W = np.array([[0.1, 0.2, -0.3], [0.0, 0.5, 0.1], [0.3, 0.0, 0.2]])


@tr.register_dataclass
@dataclass
class State:
    h: object
    count: object


def newton(a):
    return tr.while_loop(lambda x: tr.abs(x * x - a) > 1e-12, lambda x: 0.5 * (x + a / x), a)


def recurrent(w, xs):
    def step(state, x):
        h = tr.tanh(w @ state.h + x)
        return State(h, state.count + 1), {"norm": tr.sum(h * h), "h": h}

    return tr.scan(step, State(xs[0], 0), xs)


def nested(n, x):
    return tr.while_loop(
        lambda c: c[0] < n,
        lambda c: (
            c[0] + 1,
            tr.scan(lambda t, v: (tr.cond(t > 0, lambda u: u - v * v, lambda u: u + 2.5 * v, t), None), c[1], x)[0],
        ),
        (0, 1.0),
    )


FUNCTIONS: dict[str, Any] = {
    "cond": (lambda x: tr.cond(tr.sum(x) > 0, tr.sin, lambda y: y * y, x), X),
    "cond, the other way": (lambda x: tr.cond(tr.sum(x) > 0, tr.sin, lambda y: y * y, x), -X),
    "cond on a number": (lambda p, x: tr.cond(p, lambda y: y + 1, lambda y: y - 1, x), 2, X),
    "switch": (lambda i, x: tr.switch(i, [tr.sin, tr.cos, tr.tanh], x), 1, X),
    "switch below": (lambda i, x: tr.switch(i, [tr.sin, tr.cos, tr.tanh], x), -7, X),
    "switch beyond": (lambda i, x: tr.switch(i, [tr.sin, tr.cos, tr.tanh], x), 7, X),
    "newton": (newton, 2.0),
    "bounded": (lambda a: tr.while_loop(lambda x: x < a, lambda x: x * 1.5, 1.0, max_steps=3), 100.0),
    "no step": (lambda a: tr.while_loop(lambda x: x < a, lambda x: x * 1.5, 1.0, max_steps=0), 100.0),
    "fold": (lambda x: tr.scan(lambda c, v: (c * 0.5 + v, c), 0.0, x), X),
    "fold backwards": (lambda x: tr.scan(lambda c, v: (c * 0.5 + v, (c, v)), 0, x, reverse=True), X),
    "counted": (lambda x: tr.scan(lambda c, _: (c * x, c), tr.ones_like(x), length=4), X),
    "unrolled": (lambda x: tr.scan(lambda c, v: (c * 0.5 + v, c), 0.0, x, unroll=True), X),
    "empty": (lambda x: tr.scan(lambda c, v: (c + v, 2 * v), tr.sum(x), x[:0]), X),
    "recurrent": (recurrent, W, W + 1),
    "nested": (nested, 3, X),
    "narrow": (lambda x: tr.scan(lambda c, v: (c + v, c), 0.0, x), X.astype("float32")),
    "complex": (lambda x: tr.scan(lambda c, v: (c * v, c), 1.0, x), X + 1j),
}


def flat(out):
    return [np.asarray(v) for v in flatten(out)[0]]


def same(got, want):
    for a, b in zip(flat(got), flat(want), strict=True):
        assert a.dtype == b.dtype
        assert a.shape == b.shape
        np.testing.assert_allclose(a, b, rtol=1e-6 if a.dtype == np.float32 else 1e-13)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_concrete_and_recorded_forms_agree(name):
    f, *args = FUNCTIONS[name]
    args = [tr.asarray(a) if isinstance(a, np.ndarray) else a for a in args]
    want = f(*args)
    with Runtime(check=True):
        compiled = tr.compile(f)
        same(compiled(*args), want)
        program = compiled.program(*args)
    check_program(program)
    given = [tr.asarray(a) for a in args]
    same(interpret(concrete(program, [a.spec for a in given]), given), tuple(tr.asarray(v) for v in flat(want)))


@given(
    n=st.integers(0, 5),
    m=st.integers(0, 3),
    reverse=st.booleans(),
    dtype=st.sampled_from(["float32", "complex128", "int64"]),
)
def test_one_symbolic_program_scans_every_extent(n, m, reverse, dtype):
    x = (np.arange(n * m).reshape(n, m) % 7 - 2).astype(dtype)
    program = _symbolic(dtype, reverse)
    carry, rows = program.run(x, np.ones(m, dtype))
    total, want = np.ones(m, dtype), np.zeros((n, m), dtype)
    for i in reversed(range(n)) if reverse else range(n):
        want[i] = total
        total = total * 2 + x[i]
    np.testing.assert_array_equal(np.asarray(carry), total)
    np.testing.assert_array_equal(np.asarray(rows), want)


def _symbolic(dtype, reverse):
    n, m = tr.dim("n"), tr.dim("m")
    spec = Spec((n, m), np.dtype(dtype))
    return tr.trace(
        lambda x, c: tr.scan(lambda t, v: (t * 2 + v, t), c, x, reverse=reverse), spec, Spec((m,), np.dtype(dtype))
    )


def test_values_from_outside_become_operands():
    def f(x, w):
        return tr.scan(lambda c, v: (c + w * v, c), 0.0, x)[0]

    program = tr.trace(f, X, 2.0)
    (scan,) = [eq for eq in program.equations if eq.op.primitive.name == "scan"]
    assert scan.op.params["consts"] == 1
    np.testing.assert_allclose(np.asarray(program.run(X, 3.0)[0]), 3 * X.sum())


def test_a_loop_over_constants_that_uses_a_traced_value_is_recorded():
    program = tr.compile(lambda w: tr.scan(lambda c, v: (c + w * v, None), 0.0, np.ones(50))[0]).program(2.0)
    assert [eq.op.primitive.name for eq in program.equations] == ["scan"]


def test_rows_that_nobody_reads_are_not_made():
    compiled = tr.compile(lambda x: tr.scan(lambda c, v: (c + v, tr.sin(v)), 0.0, x)[0])
    (scan,) = compiled.program(X).equations
    assert len(scan.results) == 1
    assert [eq.op.primitive.name for eq in scan.op.params["body"].equations] == ["add"]


def test_outputs_of_branches_that_nobody_reads_are_not_computed():
    compiled = tr.compile(lambda p, x: tr.cond(p, lambda: (x, tr.sin(x)), lambda: (2 * x, tr.cos(x)))[0])
    eq = compiled.program(1, X).equations[-1]
    assert [len(b.equations) for b in eq.op.params["branches"]] == [1, 0]


def test_only_the_chosen_branch_runs():
    def fails(x):
        return tr.asarray(np.ones(3))[tr.astype(x, "int64") + 100]

    compiled = tr.compile(lambda p, x: tr.cond(p, lambda v: v, fails, x))
    assert compiled(True, 1.0).item() == 1.0


def test_branches_in_one_program_trace_once():
    count = 0

    def branch(x):
        nonlocal count
        count += 1
        return x + 1

    compiled = tr.compile(lambda x: tr.cond(x > 0, branch, lambda v: v, x))
    assert [compiled(v).item() for v in (1.0, -1.0, 3.0)] == [2.0, -1.0, 4.0]
    assert count == 1


BAD = {
    "a carry that grows": (
        lambda x: tr.scan(lambda c, v: (tr.concat([c, c]), None), {"h": x}["h"], x),
        StructureError,
        r"scan at .*test_control_flow\.py:\d+: carry is float64\[3\] before the body .*float64\[6\] after it; "
        "a carry keeps its shape and dtype",
    ),
    "a leaf of the carry": (
        lambda x: tr.while_loop(lambda c: tr.sum(c["h"]) < 9.0, lambda c: {"h": c["h"] > 0}, {"h": x}),
        StructureError,
        r"carry\['h'\] is float64\[3\] before the body .* and bool\[3\] after it",
    ),
    "a number that meets a vector": (
        lambda x: tr.scan(lambda c, v: (c + x, None), 0.0, x),
        StructureError,
        r"carry is the number float before the body .* and float64\[3\] after it; .* start with an array",
    ),
    "another structure": (
        lambda x: tr.scan(lambda c, v: ((c, c), None), x, x),
        StructureError,
        r"returned the structure \(\*, \*\), but the carry has \*; return the same nesting",
    ),
    "no pair": (lambda x: tr.scan(lambda c, v: c, x, x), StructureError, r"return a pair \(carry, row\)"),
    "no length": (lambda x: tr.scan(lambda c, v: (c, None), x), ArgumentError, "needs arrays to go over, or length="),
    "two lengths": (
        lambda x: tr.scan(lambda c, v: (c, None), 0.0, {"a": x, "b": x[1:]}),
        ShapeError,
        r"xs\['b'\] has 2 slices, unlike xs\['a'\], which has 3",
    ),
    "a number to go over": (lambda x: tr.scan(lambda c, v: (c, v), 0.0, x[0]), ShapeError, "goes over leading axes"),
    "a predicate of many": (lambda x: tr.cond(x > 0, tr.sin, tr.cos, x), ArgumentError, r"any\(\) or all\(\)"),
    "a float index": (lambda x: tr.switch(x[0], [tr.sin, tr.cos], x), ArgumentError, "takes one integer as index"),
    "no branches": (lambda x: tr.switch(0, [], x), ArgumentError, "at least one branch"),
    "a condition of many": (
        lambda x: tr.while_loop(lambda c: c > 0, lambda c: c - 1, x), ArgumentError, "must return a single element",
    ),
    "a bound below 0": (
        lambda x: tr.while_loop(lambda c: c > 0, lambda c: c - 1, x, max_steps=-1), ArgumentError, "at least 0",
    ),
    "a string in the carry": (lambda x: tr.scan(lambda c, v: (c, v), "a", x), ArgumentError, "holds a str"),
}  # fmt: skip

BAD_TRACED = {
    "branches of two dtypes": (
        lambda x: tr.cond(x[0] > 0, lambda v: {"y": v}, lambda v: {"y": v > 0}, x),
        StructureError,
        r"cond at .*: result\['y'\] is bool\[3\] in .*, but float64\[3\] in .*astype",
    ),
    "branches of two structures": (
        lambda x: tr.cond(x[0] > 0, lambda v: (v, v), lambda v: v, x),
        StructureError,
        "but another branch has",
    ),
}


@pytest.mark.parametrize("name", BAD)
@pytest.mark.parametrize("mode", [lambda f: f, tr.compile], ids=["concrete", "compiled"])
def test_misuse_is_explained(name, mode):
    f, error, text = BAD[name]
    with pytest.raises(error, match=text):
        mode(f)(tr.asarray(X))


@pytest.mark.parametrize("name", BAD_TRACED)
def test_misuse_of_branches_is_explained(name):
    f, error, text = BAD_TRACED[name]
    with pytest.raises(error, match=text):
        tr.compile(f)(tr.asarray(X))


def test_a_branch_on_a_traced_value_names_the_ways_out():
    with pytest.raises(TracingError, match=r"use tr.where\(\) .* tr.cond\(\) or tr.while_loop\(\)"):
        tr.compile(lambda x: x if x > 0 else -x)(1.0)


def test_an_error_in_the_body_names_the_line_that_failed():
    from tenferro_linalg import cholesky

    compiled = tr.compile(lambda x: tr.scan(lambda c, v: (c, cholesky(v)), 0.0, x)[1])
    with pytest.raises(ArithmeticError) as caught:
        compiled(-np.ones((2, 1, 1)))
    assert any(__file__ in note for note in caught.value.__notes__)


def test_bodies_print_below_their_equation():
    program = tr.compile(lambda x: tr.scan(lambda c, v: (c + v, None), 0.0, x)[0]).program(X)
    lines = [line.partition("  #")[0].rstrip() for line in str(program).splitlines()]
    assert lines[2].startswith("  v2: float64[] = scan[body=<program (float64[], float64[]) -> (float64[])")
    assert lines[3:7] == [
        "    body: program(v0: float64[], v1: float64[]) {",
        "      v2: float64[] = add(v0, v1)",
        "      return v2",
        "    }",
    ]


@pytest.mark.parametrize(
    "f",
    [
        lambda x, k: tr.cond(tr.sum(x) > 0, lambda v: tr.sum(tr.compress(v, v > 0)), lambda v: v[0], x),
        lambda x, k: tr.scan(lambda c, v: (c + tr.sum(tr.truncate(x, tr.astype(c, tr.int64))), None), 0.0, x)[0],
    ],
    ids=["branch", "loop"],
)
def test_sizes_that_depend_on_data_of_a_body_are_refused(f):
    with pytest.raises(
        UnsupportedError,
        match=r"u\d is a size that depends on data of a recorded branch or loop at .*py:\d+; keep the full extent "
        r"there and mask, where\(arange\(n\) < k, x, 0\) instead of truncate\(x, k\), or truncate before "
        r"it or after it",
    ):
        tr.compile(f)(X, 2)
