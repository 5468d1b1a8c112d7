"""Single traced indices and slices between traced bounds: NumPy's results, and programs without a step too many."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tenferro_runtime as tr
from tenferro_runtime import Spec
from tenferro_runtime.passes.dead_code import remove_dead_code
from tenferro_tensor import Interval
from tenferro_tensor_core import (
    DTYPES,
    ArgumentError,
    AxisError,
    DTypeError,
    ShapeError,
    TracingError,
    UnsupportedError,
)
from thorough import tries

X = np.arange(24.0).reshape(2, 3, 4)
I8 = np.dtype("int64")


def body_of(f, *args):
    """The body of the only loop."""
    (loop,) = [eq for eq in tr.trace(f, *args).equations if eq.op.primitive.name in ("scan", "while_loop")]
    return [eq.op.primitive.name for eq in loop.op.params["body"].equations]


KEYS: dict[str, Any] = {
    "first": lambda i, j: i,
    "both": lambda i, j: (i, j),
    "all": lambda i, j: (i, j, i),
    "last": lambda i, j: (..., j),
    "middle": lambda i, j: (slice(None), j),
    "constant": lambda i, j: (i, 1, j),
    "negative constant": lambda i, j: (i, -1),
    "slice": lambda i, j: (i, slice(1, 3), j),
    "steps": lambda i, j: (i, slice(None, None, 2), slice(3, None, -2)),
    "new axis": lambda i, j: (None, i, None, j, slice(1, None), None),
    "window": lambda i, j: (slice(i, i + 1), slice(j, j + 2)),
    "window and index": lambda i, j: (i, slice(j, 1 + j), slice(1 + i, i + 3)),
    "multiples": lambda i, j: (i, slice(0, 2), slice(2 * j, 2 * (j + 1))),
    "beside arrays": lambda i, j: (i, np.array([2, 0]), j),
    "apart from arrays": lambda i, j: (i, slice(None), np.array([2, 0])),
    "window beside arrays": lambda i, j: (slice(i, i + 1), slice(None), np.array([2, 0])),
}


@pytest.mark.parametrize("name", KEYS)
@pytest.mark.parametrize("dtype", ["int64", "int8", "uint16"])
def test_reads(name, dtype):
    key = KEYS[name]
    compiled = tr.compile(lambda x, i, j: x[key(i, j)])
    x = tr.asarray(X)
    for i, j in [(0, 0), (1, 1), (1, 0)]:
        want = X[key(i, j)]
        given = np.array(i, dtype), np.array(j, dtype)
        np.testing.assert_array_equal(compiled(x, *given), want)
        np.testing.assert_array_equal(compiled(x, i, j), want)
        np.testing.assert_array_equal(x[key(*map(tr.asarray, given))], want)


@pytest.mark.parametrize("name", KEYS)
@pytest.mark.parametrize("how", ["set", "add", "multiply", "min", "max"])
@pytest.mark.parametrize("known", [False, True])
def test_writes(name, how, known):
    """Of indices that are known to be inside of the array, and of any others."""
    key = KEYS[name]

    def f(x, i, j):
        if known:
            i, j = i & 1, j & 1
        return getattr(x.at[key(i, j)], how)(5.5)

    compiled = tr.compile(f)
    for i, j in [(0, 0), (1, 1), (1, 0)]:
        np.testing.assert_array_equal(compiled(tr.asarray(X), i, j), np.asarray(f(tr.asarray(X), i, j)))
        want = X.copy()
        if how == "set":
            want[key(i, j)] = 5.5
            np.testing.assert_array_equal(compiled(tr.asarray(X), i, j), want)


@pytest.mark.parametrize("dtype", [dt.name for dt in DTYPES])
def test_every_dtype(dtype):
    x = (np.arange(6) % 2).astype(dtype).reshape(2, 3)
    compiled = tr.compile(lambda x, i: (x[i, i + 1], x[i : i + 1, 1:], x.at[i & 1, 0].set(x[1, 1])))
    element, block, changed = compiled(tr.asarray(x), 1)
    assert element.dtype == block.dtype == changed.dtype == x.dtype
    assert np.asarray(element) == x[1, 2]
    np.testing.assert_array_equal(block, x[1:2, 1:])
    np.testing.assert_array_equal(changed, [x[0], [x[1, 1], *x[1, 1:]]])


def test_negative_indices_count_from_the_end():
    compiled = tr.compile(lambda x, i: (x[i], x[i : i + 2], x.at[i].set(0.0), x.at[i : i + 2].set(0.0)))
    x = np.arange(1.0, 6.0)
    for i in (-2, -5, -1):
        one, two, put, put_two = compiled(tr.asarray(x), i)
        assert float(one) == x[i]
        start = min(i + 5, 3)
        np.testing.assert_array_equal(two, x[start : start + 2])
        want = x.copy()
        want[i] = 0
        np.testing.assert_array_equal(put, want)
        if i != -1:
            want[i + 5 : i + 7] = 0
        else:  # two elements from the last one on are not there: nothing is written
            want = x
        np.testing.assert_array_equal(put_two, want)


def test_beyond_the_ends():
    compiled = tr.compile(lambda x, i: (x[i], x[i : i + 2], x.at[i].set(0.0), x.at[i : i + 2].add(1.0)))
    x = np.arange(1.0, 6.0)
    for i, one, two in [(7, 5.0, [4.0, 5.0]), (-9, 1.0, [1.0, 2.0])]:
        found = compiled(tr.asarray(x), i)
        assert float(found[0]) == one
        np.testing.assert_array_equal(found[1], two)
        np.testing.assert_array_equal(found[2], x)
        np.testing.assert_array_equal(found[3], x)


@settings(max_examples=tries(24, 60), deadline=None)
@given(st.integers(1, 6), st.integers(0, 4), st.integers(0, 6), st.integers(-3, 3), st.booleans())
def test_windows_as_numpy_has_them(n, k, i, offset, known):
    x = np.arange(float(n))
    start = i + offset
    if k > n or not 0 <= start <= n - k:
        return
    f = lambda x, i: x[i + offset : i + (offset + k)]
    put = lambda x, i: x.at[i + offset : i + (offset + k)].set(-1.0)
    at = tr.asarray(i) if known else i
    read, write = (f, put) if known else (tr.compile(f), tr.compile(put))
    np.testing.assert_array_equal(read(tr.asarray(x), at), x[start : start + k])
    x[start : start + k] = -1.0
    np.testing.assert_array_equal(write(tr.asarray(np.arange(float(n))), at), x)


@settings(max_examples=tries(24, 60), deadline=None)
@given(st.data())
def test_slices_of_concrete_bounds_are_those_of_numpy(data):
    n = data.draw(st.integers(0, 6))
    parts: list[Any] = [data.draw(st.none() | st.integers(-8, 8)) for _ in range(2)]
    step = data.draw(st.sampled_from([None, 1, 2, -1, -2]))
    x = np.arange(float(n))
    start, stop = [None if p is None else tr.asarray(p) for p in parts]
    np.testing.assert_array_equal(tr.asarray(x)[start:stop:step], x[parts[0] : parts[1] : step])


# -- programs ----------------------------------------------------------------------------------------------------------

M = tr.asarray(X[0])
WRAP = ["add", "lt", "select"]
COUNTS: dict[str, Any] = {
    "element of a vector": (lambda x, i: x[i], (X[0, 0], 1), [*WRAP, "dynamic_slice", "reshape"]),
    "row": (lambda x, i: x[i], (M, 1), [*WRAP, "dynamic_slice", "reshape"]),
    "element": (lambda x, i, j: x[i, j], (M, 1, 1), [*WRAP, *WRAP, "dynamic_slice", "reshape"]),
    "beside a constant": (lambda x, i: x[i, 0], (M, 1), [*WRAP, "dynamic_slice", "reshape"]),
    "beside a slice": (lambda x, i: x[i, 1:3], (M, 1), [*WRAP, "dynamic_slice", "reshape"]),
    "unsigned": (lambda x, i: x[i, 0], (M, np.uint8(1)), ["dynamic_slice", "reshape"]),
    "window": (lambda x, i: x[i : i + 2], (M, 1), [*WRAP, "dynamic_slice"]),
    "element set": (lambda x, i: x.at[i].set(1.0), (X[0, 0], 1), [*WRAP, "reshape", "scatter"]),
    "two indices set": (
        lambda x, i, j: x.at[i, j].set(1.0), (M, 1, 1), ["reshape", "reshape", "concatenate", *WRAP, "scatter"],
    ),
    "periodic": (lambda x, i: x[i % x.shape[0]], (M, 7), ["remainder", "dynamic_slice", "reshape"]),
    "table": (lambda x, i: x[i & 1, 0], (M, 7), ["bitwise_and", "dynamic_slice", "reshape"]),
    "table set": (lambda x, i: x.at[i & 1, 0].set(2.0), (M, 7), ["bitwise_and", "dynamic_update_slice"]),
    "largest": (lambda x: x[tr.argmax(x)], (X[0, 0],), ["argmax", "dynamic_slice", "reshape"]),
}  # fmt: skip


@pytest.mark.parametrize("name", COUNTS)
def test_the_steps_of_an_index(name):
    f, args, want = COUNTS[name]
    program = remove_dead_code(tr.trace(f, *args))
    assert [eq.op.primitive.name for eq in program.equations] == want


LOOPS: dict[str, Any] = {
    "read": (lambda x: tr.fori_loop(0, 3, lambda i, c: c + x[i, 0], 0.0), ["dynamic_slice", "reshape", "add"]),
    "neighbours": (
        lambda x: tr.fori_loop(1, 2, lambda i, c: c + (x[i - 1, 0] + x[i + 1, 0]), 0.0),
        ["sub", "dynamic_slice", "reshape", "add", "dynamic_slice", "reshape", "add", "add"],
    ),
    "write": (lambda x: tr.fori_loop(0, 3, lambda i, c: c.at[i, 1].set(1.0), x), ["dynamic_update_slice"]),
    "row": (lambda x: tr.fori_loop(0, 3, lambda i, c: c.at[i].set(1.0), x), ["dynamic_update_slice"]),
    "add": (
        lambda x: tr.fori_loop(0, 3, lambda i, c: c.at[i, 1].add(1.0), x),
        ["dynamic_slice", "add", "dynamic_update_slice"],
    ),
    "window": (
        lambda x: tr.fori_loop(0, 2, lambda i, c: c + x[i : i + 2, 0], tr.zeros(2)),
        ["dynamic_slice", "reshape", "add"],
    ),
    "scan over positions": (
        lambda x: tr.scan(lambda c, i: (c + x[i, 0], None), 0.0 * x[0, 0], tr.arange(3))[0],
        ["dynamic_slice", "reshape", "add"],
    ),
}


@pytest.mark.parametrize("name", LOOPS)
@pytest.mark.parametrize("rows", [3, "n"])
def test_a_step_of_a_loop(name, rows):
    f, want = LOOPS[name]
    spec = Spec((tr.dim("n", min=3) if rows == "n" else 3, 4), np.dtype("float64"))
    assert body_of(f, spec) == want


def test_a_loop_over_an_open_axis_needs_no_check_of_its_indices():
    def f(x):
        n = x.shape[0]
        return tr.fori_loop(1, n - 1, lambda i, c: c.at[i].set(x[i - 1] + c[i] + x[i + 1]), x)

    body = body_of(f, Spec((tr.dim("n"),), np.dtype("float64")))
    assert not {"select", "lt", "scatter", "gather", "concatenate"} & set(body)
    assert body.count("dynamic_slice") == 3
    x = np.arange(6.0)
    want = x.copy()
    for i in range(1, 5):
        want[i] = x[i - 1] + want[i] + x[i + 1]
    np.testing.assert_array_equal(tr.compile(f)(tr.asarray(x)), want)


def test_bounds_follow_from_those_of_operands():
    found = {}

    def f(i, u, x):
        k = i & 7
        n = x.shape[0]
        found.update(
            {
                "mask": k,
                "sum": k + 3,
                "difference": 2 - k,
                "product": k * -2,
                "quotient": k // 3,
                "shift": k >> 1,
                "remainder": i % n,
                "least": tr.minimum(k, 4),
                "clipped": tr.clip(i, 2, 5),
                "chosen": tr.where(i > 0, k, -1),
                "unsigned": u,
                "position": tr.searchsorted(x, x[0]),
                "sorted": tr.argsort(x),
                "counted": tr.count_nonzero(x),
                "narrow": (k * 100).astype(tr.int8),
            }
        )
        return i

    tr.trace(f, Spec((), I8), Spec((), np.dtype("uint8")), Spec((tr.dim("n", min=1),), np.dtype("float64")))
    bounds = {name: tuple(map(str, v._interval())) for name, v in found.items()}
    assert bounds == {
        "mask": ("0", "7"),
        "sum": ("3", "10"),
        "difference": ("-5", "2"),
        "product": ("-14", "0"),
        "quotient": ("0", "2"),
        "shift": ("0", "3"),
        "remainder": ("0", "n - 1"),
        "least": ("0", "4"),
        "clipped": ("2", "5"),
        "chosen": ("-1", "7"),
        "unsigned": ("0", "None"),
        "position": ("0", "n"),
        "sorted": ("0", "n - 1"),
        "counted": ("None", "None"),
        "narrow": ("None", "None"),
    }
    assert tr.asarray([3, -1])._interval() == Interval(-1, 3)


# -- functions ---------------------------------------------------------------------------------------------------------


def test_dynamic_slices_are_moved_inside():
    x = tr.asarray(X[0])
    for starts in ([1, -2], [tr.asarray(1), -2], tr.asarray([1, 2]), np.array([1, 2]), (1, tr.asarray(2))):
        np.testing.assert_array_equal(tr.dynamic_slice(x, starts, (2, 2)), X[0, 1:3, 2:4])
    np.testing.assert_array_equal(tr.dynamic_slice(x, [9, -9], [2, 2]), X[0, 1:3, 0:2])
    want = X[0].copy()
    want[2:, 2:] = [[7.0, 8.0]]
    np.testing.assert_array_equal(tr.dynamic_update_slice(x, np.array([[7, 8]]), [5, tr.asarray(9)]), want)
    compiled = tr.compile(lambda x, i: tr.dynamic_update_slice(x, tr.dynamic_slice(x, [i, 0], [1, 4]), [0, i]))
    np.testing.assert_array_equal(compiled(x, 2), [X[0, 2], X[0, 1], X[0, 2]])
    assert float(tr.dynamic_slice(tr.asarray(2.0), [], [])) == 2.0


def test_dynamic_slices_of_open_sizes():
    f = tr.compile(lambda x, i: tr.dynamic_slice(x, [i, -1], (x.shape[0] - 1, 1)))
    for n, m in ((4, 3), (2, 5)):
        x = np.arange(float(n * m)).reshape(n, m)
        np.testing.assert_array_equal(f(tr.asarray(x), 1), x[1:, -1:])


@pytest.mark.parametrize("shift", [0, 2, -1, 5, 9, -8])
def test_rolls_by_traced_shifts(shift):
    x = tr.asarray(X[0])
    compiled = tr.compile(
        lambda x, s: (tr.roll(x, s), tr.roll(x, s, axis=1), tr.roll(x, (s, 1), axis=(0, 1)), tr.roll(x[:0], s, axis=0))
    )
    want = [np.roll(X[0], shift), np.roll(X[0], shift, 1), np.roll(X[0], (shift, 1), (0, 1)), X[0, :0]]
    for found in (compiled(x, shift), compiled(x, np.int8(shift))):
        for a, b in zip(found, want, strict=True):
            np.testing.assert_array_equal(a, b)
    np.testing.assert_array_equal(tr.roll(x, tr.asarray(shift)), want[0])
    program = tr.trace(
        lambda x, s: tr.roll(x, s, axis=0), Spec((tr.dim("n", min=1), 2), np.dtype("float64")), Spec((), I8)
    )
    assert len(program.equations) <= 5


@settings(max_examples=tries(24, 60), deadline=None)
@given(st.integers(-5, 5), st.integers(-5, 5), st.sampled_from([1, 2, 3, -1, -2]))
def test_ranges_between_traced_bounds(start, stop, step):
    want = np.arange(start, stop, step)
    np.testing.assert_array_equal(tr.compile(lambda a, b: tr.arange(a, b, step))(start, stop), want)
    np.testing.assert_array_equal(tr.arange(tr.asarray(start), tr.asarray(stop), step), want)
    up = np.arange(stop)
    np.testing.assert_array_equal(tr.compile(lambda n: tr.arange(n, dtype=tr.float32))(stop), up.astype("float32"))


def test_ranges_whose_extent_is_known_or_bounded():
    seen = []

    def f(x, i):
        seen.extend([tr.arange(i, i + 3), tr.arange(2 * i + x.shape[0], 2 * i, -1), tr.arange(i & 7)])
        return x[tr.arange(i % x.shape[0])]

    np.testing.assert_array_equal(tr.compile(f)(tr.asarray(X[0, 0]), 3), X[0, 0, :3])
    fixed, size, data = [v.spec.shape[0] for v in seen]
    assert (fixed, str(size)) == (3, "n0")
    assert (data.lower, data.upper) == (0, 7)
    steps = tr.trace(lambda i: tr.arange(i & 7), Spec((), I8)).equations
    assert [eq.op.primitive.name for eq in steps] == ["bitwise_and", "define_size", "iota"]


@pytest.mark.parametrize(
    ("f", "error", "text"),
    [
        (lambda x, i: tr.roll(x, 1.0 * i), ArgumentError, "roll shifts by a single integer along each axis"),
        (lambda x, i: tr.arange(i, 2 * i, 0), ArgumentError, "arange needs a step other than 0"),
        (lambda x, i: tr.arange(0, i, i), TracingError, "an integer was requested"),
        (lambda x, i: tr.fori_loop(0, i, lambda k, c: c + tr.sum(tr.arange(k)), 0), UnsupportedError, "and mask"),
        (lambda x, i: x[i:], TracingError, r"the slice int64\[\] :  for axis 0 has a traced bound.*x\[i : i \+ k\]"),
        (lambda x, i: x[:i], TracingError, "truncate"),
        (lambda x, i: x[i : 2 * i], TracingError, "or where.. with a mask"),
        (lambda x, i: x[i : i + 2 : 2], TracingError, "use dynamic_slice"),
        (lambda x, i: x[i : i + 9], ShapeError, "a window of extents .9, 4. does not fit"),
        (lambda x, i: x[1.0 * i], AxisError, "arrays used as indices hold integers or booleans, not float64"),
        (lambda x, i: tr.dynamic_slice(x, [i], [2, 2]), ShapeError, "dynamic_slice needs a start and an extent for"),
        (lambda x, i: tr.dynamic_slice(x, [i, 0.5], [2, 2]), ArgumentError, "an integer as start"),
        (lambda x, i: tr.dynamic_slice(x, [i, x[0, 0]], [2, 2]), ArgumentError, "takes integers as starts"),
        (lambda x, i: tr.dynamic_slice(x, [i, 0], [7, 2]), ShapeError, "make the window smaller"),
        (lambda x, i: tr.dynamic_update_slice(x, x[0], [i, 0]), ShapeError, "a start and an extent for each of the 2"),
        (lambda x, i: tr.dynamic_update_slice(x, x * 1j, [i, 0]), DTypeError, "does not fit into float64"),
    ],
)
def test_mistakes(f, error, text):
    with pytest.raises(error, match=text):
        tr.compile(f)(M, 1)
