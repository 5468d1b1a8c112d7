"""`fori_loop` and `map`: as Python's own loops, on concrete and traced values, bounds and sizes."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tenferro_runtime as tr
from tenferro_runtime import StructureError
from tenferro_tensor import Interval
from tenferro_tensor_core import DTYPES, ArgumentError, ShapeError
from thorough import tries

X = np.array([0.5, -1.5, 2.0, 0.25])
FIVE: Any = 5


def python_loop(lo, hi, body, init):
    for i in range(lo, hi):
        init = body(i, init)
    return init


def weighted(x):
    return lambda i, c: c * 0.5 + x[i] * i


BOUNDS = [(0, 4), (1, 3), (2, 2), (3, 1), (-2, 1), (0, 1)]


@pytest.mark.parametrize(("lo", "hi"), BOUNDS)
@pytest.mark.parametrize("unroll", [False, True, 2, 3])
def test_known_bounds(lo, hi, unroll):
    want = python_loop(lo, hi, weighted(X), 1.0)
    x = tr.asarray(X)
    assert float(tr.fori_loop(lo, hi, weighted(x), 1.0, unroll=unroll)) == want
    compiled = tr.compile(lambda x: tr.fori_loop(lo, hi, weighted(x), 1.0, unroll=unroll))
    assert float(compiled(x)) == want


@pytest.mark.parametrize(("lo", "hi"), BOUNDS)
@pytest.mark.parametrize("dtype", ["int64", "int32", "uint8"])
def test_traced_bounds(lo, hi, dtype):
    want = python_loop(lo, hi, weighted(X), 1.0)
    x = tr.asarray(X)
    compiled = tr.compile(lambda lo, hi, x: tr.fori_loop(lo, hi, weighted(x), 1.0))
    assert float(compiled(lo, hi, x)) == want
    if lo >= 0:
        bounds = [tr.asarray(np.array(b, dtype)) for b in (lo, hi)]
        assert float(compiled(*bounds, x)) == want  # type: ignore[call-arg]
        assert float(tr.fori_loop(bounds[0], bounds[1], weighted(x), 1.0)) == want
        half = tr.compile(lambda hi, x: tr.fori_loop(lo, hi, weighted(x), 1.0))
        assert float(half(bounds[1], x)) == want


@pytest.mark.parametrize("most", [0, 2, 9])
def test_no_more_than_max_steps(most):
    want = python_loop(0, min(4, most), weighted(X), 1.0)
    x = tr.asarray(X)
    assert float(tr.fori_loop(0, 4, weighted(x), 1.0, max_steps=most)) == want
    compiled = tr.compile(lambda n, x: tr.fori_loop(0, n, weighted(x), 1.0, max_steps=most))
    assert float(compiled(4, x)) == want


def test_open_sizes_are_bounds():
    def f(x, n):
        m = x.shape[0]
        return (
            tr.fori_loop(0, m, weighted(x), 1.0),
            tr.fori_loop(m - 2, m, weighted(x), 1.0, unroll=2),
            tr.fori_loop(1, n, weighted(x), 1.0, max_steps=m - 1),
            tr.fori_loop(0, m, weighted(x), 1.0, max_steps=m // 2),
        )

    compiled = tr.compile(f)
    for x in (X, np.arange(7.0), np.arange(2.0), np.arange(5.0)):
        m = len(x)
        want = [
            python_loop(0, m, weighted(x), 1.0),
            python_loop(m - 2, m, weighted(x), 1.0),
            python_loop(1, m, weighted(x), 1.0),
            python_loop(0, m // 2, weighted(x), 1.0),
        ]
        assert list(map(float, compiled(tr.asarray(x), m + 3))) == want
        assert list(map(float, compiled(tr.asarray(x), m))) == want


def test_a_loop_in_a_loop_in_a_scan():
    def f(x):
        def row(total, v):
            inner = tr.fori_loop(
                0, x.shape[0], lambda i, c: tr.fori_loop(i, x.shape[0], lambda j, d: d + x[i] * x[j] * v, c), 0.0
            )
            return total + inner, inner

        return tr.scan(row, 0.0, x)

    total, rows = tr.compile(f)(tr.asarray(X))
    upper = sum(X[i] * X[j] for i in range(4) for j in range(i, 4))
    np.testing.assert_allclose(rows, upper * X)
    np.testing.assert_allclose(float(total), (upper * X).sum())


def test_containers_and_numbers():
    def body(i, carry):
        a, rest = carry
        return a + i, {"b": rest["b"] * 2, "n": rest["n"] + 1}

    def f(x):
        return tr.fori_loop(0, 3, body, (x, {"b": x, "n": 0}))

    for found in (f(tr.asarray(X)), tr.compile(f)(tr.asarray(X))):
        a, rest = found
        np.testing.assert_array_equal(a, X + 3)
        np.testing.assert_array_equal(rest["b"], X * 8)
        assert rest["n"].dtype == np.int64
        assert int(rest["n"]) == 3


@pytest.mark.parametrize("dtype", [dt.name for dt in DTYPES if dt.name != "bool"])
def test_the_index_adapts_to_every_dtype(dtype):
    x = tr.asarray(np.array([1, 2, 3]).astype(dtype))
    f = lambda x: tr.fori_loop(0, 3, lambda i, c: c.at[i].set(c[i] * i), x)
    for found in (f(x), tr.compile(f)(x)):
        assert found.dtype == x.dtype
        np.testing.assert_array_equal(found, np.array([0, 2, 6]).astype(dtype))
    up_to = tr.compile(lambda x, n: tr.fori_loop(0, n, lambda i, c: c + i, x))
    assert up_to(x, 2).dtype == x.dtype


def test_the_index_is_known_to_lie_between_the_bounds():
    seen = []

    def note(i, c):
        seen.append(i._interval())
        return c + 1

    def f(x, n):
        m = x.shape[0]
        tr.fori_loop(2, 5, note, 0)
        tr.fori_loop(0, m, lambda i, c: tr.fori_loop(i + 1, m, note, c), 0)
        return tr.fori_loop(1, n, note, 0)

    f(tr.asarray(X), 4)
    assert [*dict.fromkeys(seen)] == [Interval(2, 4), Interval(1, 3)]
    seen.clear()
    program = tr.trace(f, tr.Spec((tr.dim("m"),), np.dtype("float64")), tr.Spec((), np.dtype("int64")))
    assert [(s.low, str(s.high)) for s in dict.fromkeys(seen)] == [(2, "4"), (1, "m - 1"), (1, "None")]
    assert program


def test_one_operation_on_concrete_values():
    calls = []

    def body(i, c):
        calls.append(i)
        return c + i

    assert int(tr.fori_loop(0, 100, body, tr.asarray(0))) == 4950
    assert len(calls) == 1


def test_a_step_changes_its_array_in_place():
    program = tr.trace(lambda x: tr.fori_loop(0, 3, lambda i, c: c.at[i].set(1.0), x), tr.asarray(X))
    (loop,) = [eq for eq in program.equations if eq.op.primitive.name == "scan"]
    assert [eq.op.primitive.name for eq in loop.op.params["body"].equations] == ["dynamic_update_slice"]


@settings(max_examples=tries(16, 40), deadline=None)
@given(st.integers(-3, 6), st.integers(-3, 6), st.integers(1, 4), st.booleans())
def test_any_bounds(lo, hi, unroll, traced):
    body = lambda i, c: (c[0] * 3 + i, c[1] - i)
    want = python_loop(lo, hi, body, (1, 0))
    if traced:
        found = tr.compile(lambda lo, hi: tr.fori_loop(lo, hi, body, (1, 0)))(lo, hi)
    else:
        found = tr.fori_loop(lo, hi, body, (1, 0), unroll=unroll)
    assert tuple(map(int, found)) == want


@pytest.mark.parametrize(
    ("f", "error", "text"),
    [
        (lambda: tr.fori_loop(0, 3, FIVE, 0.0), ArgumentError, "fori_loop takes functions.*got 5"),
        (lambda: tr.fori_loop(0.5, 3, lambda i, c: c, 0.0), ArgumentError, "fori_loop takes an integer as lo"),
        (lambda: tr.fori_loop(0, X, lambda i, c: c, 0.0), ArgumentError, r"integer as hi .*got float64\[4\]"),
        (lambda: tr.fori_loop(0, 3, lambda i, c: c, 0.0, unroll=0), ArgumentError, "fori_loop unrolls all steps"),
        (lambda: tr.fori_loop(0, 3, lambda i, c: c, 0.0, max_steps=-1), ArgumentError, "fori_loop takes an integer of"),
        (lambda: tr.compile(lambda n: tr.fori_loop(0, n, lambda i, c: c, 0.0, unroll=2))(3), ArgumentError,
         "its bounds are traced, so that their number is not known; leave out unroll=2"),
        (lambda: tr.fori_loop(0, 3, lambda i, c: (c, c), 0.0), StructureError, "fori_loop.*returned the structure"),
        (lambda: tr.fori_loop(0, 3, lambda i, c: tr.concat([c, c]), X), StructureError, "carry.* is float64.*keeps"),
        (lambda: tr.compile(lambda n: tr.fori_loop(0, n, lambda i, c: tr.sum(c), X))(3), StructureError, "fori_loop"),
        (lambda: tr.map(FIVE, X), ArgumentError, "map takes functions"),
        (lambda: tr.map(lambda x: x, None), ArgumentError, "map needs arrays to go over .*there are none"),
        (lambda: tr.map(lambda x: x[0], (X, X[:2])), ShapeError, "map.* has 2 slices, unlike"),
        (lambda: tr.map(lambda x: x, 1.0), ShapeError, "map goes over leading axes"),
    ],
)  # fmt: skip
def test_mistakes(f, error, text):
    with pytest.raises(error, match=text):
        f()


@pytest.mark.parametrize("n", [3, 1, 0])
def test_map(n):
    x = np.arange(2.0 * n).reshape(n, 2)
    f = lambda v: {"sum": tr.sum(v["x"]), "row": v["x"] * v["k"]}
    xs = {"x": tr.asarray(x), "k": tr.arange(n)}
    for found in (tr.map(f, xs), tr.compile(lambda xs: tr.map(f, xs))(xs)):
        np.testing.assert_array_equal(found["sum"], x.sum(1))
        np.testing.assert_array_equal(found["row"], x * np.arange(n)[:, None])


@pytest.mark.parametrize("n", [0, 1, 2, 3, 4, 5, 8, 13])
@pytest.mark.parametrize("reverse", [False, True])
def test_associative_scan(n, reverse):
    rng = np.random.default_rng(n)
    a, b = rng.integers(-3, 4, (2, n, 2, 2)).astype("float64")

    def after(first, then):  # of affine maps
        return {"a": then["a"] @ first["a"], "b": then["a"] @ first["b"] + then["b"]}

    want: list[Any] = []
    for k in reversed(range(n)) if reverse else range(n):
        now = {"a": a[k], "b": b[k]}
        want.append(after(want[-1], now) if want else now)
    want = want[::-1] if reverse else want
    f = lambda xs: tr.associative_scan(after, xs, reverse=reverse)
    xs = {"a": tr.asarray(a), "b": tr.asarray(b)}
    for found in (f(xs), tr.compile(f)(xs)):
        for name in "ab":
            np.testing.assert_array_equal(found[name], [w[name] for w in want] if n else a)
    along = tr.associative_scan(tr.add, tr.asarray(a), axis=-1, reverse=reverse)
    np.testing.assert_array_equal(along, np.cumsum(a[..., ::-1], -1)[..., ::-1] if reverse else np.cumsum(a, -1))


def test_mistakes_of_associative_scans():
    with pytest.raises(StructureError, match="returned the structure"):
        tr.associative_scan(lambda a, b: (a, b), tr.ones(3))
    with pytest.raises(ShapeError, match="associative_scan.* has 2 slices"):
        tr.associative_scan(lambda a, b: a, (tr.ones(3), tr.ones(2)))
    with pytest.raises(ArgumentError, match="there are none"):
        tr.associative_scan(lambda a, b: a, ())


def test_a_body_that_changes_the_structure_is_named() -> None:
    def body(i, c):
        return [c[0] + 1, c[1]]

    with pytest.raises(StructureError, match=r"fori_loop at .*: body \(.*test_fori_loop\.py:\d+\) returned"):
        tr.fori_loop(0, 4, body, (X, X))
