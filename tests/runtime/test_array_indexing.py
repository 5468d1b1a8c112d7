"""Indexing and functional updates against NumPy, by random keys of every kind."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tenferro_runtime as tr
from array_oracles import ALL, array, arrays, assert_same, seeds
from tenferro_tensor_core import ArgumentError, AxisError, DTypeError, ShapeError
from thorough import tries

bounds = st.none() | st.integers(-6, 6)
slices = st.builds(slice, bounds, bounds, st.none() | st.sampled_from([1, 2, 3, -1, -2]))


@st.composite
def keys(draw, shape, advanced=True):
    """A key that NumPy accepts for the shape: integers, slices, new axes, an ellipsis, arrays and masks."""
    common = draw(st.sampled_from([(), (1,), (3,), (2, 3), (0,)]))
    parts, axis, dots = [], 0, False
    while axis < len(shape) and draw(st.integers(0, 5)):
        n = shape[axis]
        kinds = ["slice", "new"] + ["int"] * (n > 0) + [] * dots + (["dots"] if not dots else [])
        if advanced:
            kinds += ["mask"] + ["array"] * 2 * (n > 0) + ["array"] * (n > 0 or common == (0,))
        kind = draw(st.sampled_from(kinds))
        if kind == "slice":
            parts.append(draw(slices))
        elif kind == "int":
            parts.append(draw(st.integers(-n, n - 1)))
        elif kind == "array":
            own = draw(st.sampled_from([common, common[1:], tuple(draw(st.sampled_from([1, d])) for d in common)]))
            values = np.random.default_rng(draw(seeds)).integers(-n, n, own) if n else np.zeros(own, int)
            if n == 0 and values.size:
                values = np.zeros((0,), int)
            parts.append(draw(st.sampled_from([values, values.astype(np.int8), values.tolist()])))
        elif kind == "mask":
            mask = np.zeros(n, bool) if len(common) != 1 or common == (0,) else array((n,), "bool", draw(seeds))
            parts.append(mask)
        elif kind == "new":
            parts.append(None)
        else:
            parts.append(Ellipsis)
            dots = True
            axis = draw(st.integers(axis, len(shape)))
        axis += kind in ("slice", "int", "array", "mask")
        if kind == "dots" and axis < len(shape):
            rest = len(shape) - axis
            parts.extend(slice(None) for _ in range(rest))
            break
    return tuple(parts)


def numpy_takes(x, key):
    try:
        return x[key]
    except IndexError:
        return None


@settings(max_examples=tries(80, 300))
@given(data=st.data())
def test_reading(data):
    x = data.draw(arrays(ALL, st.lists(st.integers(0, 4), max_size=4).map(tuple)))
    key = data.draw(keys(x.shape))
    want = numpy_takes(x, key)
    if want is None:
        with pytest.raises((AxisError, ShapeError)):
            tr.asarray(x)[key]
        return
    assert_same(tr.asarray(x)[key], want)
    tensors = tuple(tr.asarray(k) if isinstance(k, np.ndarray) else k for k in key)
    assert_same(tr.asarray(x)[tensors], want)
    if len(key) == 1:
        assert_same(tr.asarray(x)[key[0]], want)


@settings(max_examples=tries(80, 300))
@given(data=st.data())
def test_writing(data):
    x = data.draw(arrays(("int64", "float64", "complex64"), st.lists(st.integers(0, 4), max_size=4).map(tuple)))
    key = data.draw(keys(x.shape))
    part = numpy_takes(x, key)
    if part is None:
        with pytest.raises((AxisError, ShapeError)):
            tr.asarray(x).at[key].set(0)
        return
    cut = data.draw(st.integers(0, part.ndim))
    narrow = tuple(data.draw(st.sampled_from([1, d])) for d in part.shape)[cut:]
    values = array(narrow, x.dtype.name, data.draw(seeds))
    mode = data.draw(st.sampled_from(["set", "add", "subtract", "multiply", "min", "max"]))
    if x.dtype.kind == "c" and mode in ("min", "max"):
        mode = "add"
    want = x.copy()
    if mode == "set":
        values = values.ravel()[:1].reshape(()) if values.size else values  # one value: duplicates do not matter
        if values.shape == () or part.size == 0:
            want[key] = values
    else:
        ufunc = {"add": np.add, "subtract": np.subtract, "multiply": np.multiply, "min": np.minimum, "max": np.maximum}
        # Broadcast here: ufunc.at of NumPy 2.4 reads past the end of values with fewer axes than the indices.
        ufunc[mode].at(want, key, np.broadcast_to(values, part.shape))
    assert_same(getattr(tr.asarray(x).at[key], mode)(tr.asarray(values)), want, rtol=1e-4)
    assert_same(tr.asarray(x).at[key].get(), part)


@given(data=st.data())
def test_writing_distinct_values(data):
    x = data.draw(arrays(("int64", "float32"), st.lists(st.integers(0, 4), max_size=4).map(tuple)))
    key = data.draw(keys(x.shape, advanced=False))
    part = x[key]
    values = np.arange(part.size, dtype=x.dtype).reshape(part.shape)
    want = x.copy()
    want[key] = values
    assert_same(tr.asarray(x).at[key].set(values), want)


@given(data=st.data())
def test_masks_of_several_axes(data):
    x = data.draw(arrays(ALL, st.lists(st.integers(0, 4), min_size=2, max_size=3).map(tuple)))
    empty = data.draw(st.lists(st.sampled_from([1, 1, 1, 0]), min_size=x.ndim, max_size=x.ndim))
    shape = [d * kept for d, kept in zip(x.shape, empty, strict=True)]  # an extent of 0 fits every axis
    mask = array(tuple(shape[: data.draw(st.integers(0, x.ndim))]), "bool", data.draw(seeds))
    assert_same(tr.asarray(x)[mask], x[mask])
    assert_same(tr.asarray(x)[tr.asarray(mask)], x[mask])
    assert_same(tr.asarray(x)[..., None][tr.asarray(mask)], x[..., None][mask])
    want = x.copy()
    want[mask] = 0
    zero = False if x.dtype.kind == "b" else 0
    assert_same(tr.asarray(x).at[mask].set(zero), want)


@pytest.mark.parametrize("flag", [True, False])
def test_a_truth_value_is_a_mask(flag):
    x = np.arange(6.0).reshape(2, 3)
    assert_same(tr.asarray(x)[flag], x[flag])
    assert_same(tr.asarray(x)[:, flag], x[:, flag])
    assert_same(tr.asarray(x)[np.bool_(flag), 1], x[np.bool_(flag), 1])


def test_integer_tensors_as_indices():
    x = np.arange(12.0).reshape(3, 4)
    t = tr.asarray(x)
    assert_same(t[tr.asarray(1)], x[1])
    assert_same(t[tr.asarray(-1), tr.asarray([0, -4])], x[-1, [0, -4]])
    assert_same(t[np.int64(2), np.asarray(1)], x[2, 1])


@given(data=st.data())
def test_take(data):
    x = data.draw(arrays(ALL, st.lists(st.integers(1, 4), min_size=1, max_size=3).map(tuple)))
    axis = data.draw(st.integers(-x.ndim, x.ndim - 1))
    n = x.shape[axis]
    indices = np.random.default_rng(data.draw(seeds)).integers(
        -n, n, data.draw(st.sampled_from([(), (3,), (2, 2), (0,)]))
    )
    assert_same(tr.take(tr.asarray(x), tr.asarray(indices), axis=axis), np.take(x, indices, axis=axis))
    lines = list(x.shape)
    lines[axis] = 2
    each = np.random.default_rng(data.draw(seeds)).integers(-n, n, lines)
    got = tr.take_along_axis(tr.asarray(x), tr.asarray(each), axis=axis)
    assert_same(got, np.take_along_axis(x, each, axis=axis))


def test_take_along_axis_broadcasts():
    x, i = np.arange(6).reshape(2, 3), np.asarray([[2, 0]])
    assert_same(
        tr.take_along_axis(tr.asarray(x), tr.asarray(i), axis=1), np.take_along_axis(x, np.broadcast_to(i, (2, 2)), 1)
    )


def test_iteration_and_length():
    t = tr.asarray([[1, 2], [3, 4]])
    assert len(t) == 2 and [row.tolist() for row in t] == [[1, 2], [3, 4]]


def test_writing_converts_only_without_loss():
    t = tr.zeros(2)
    assert_same(t.at[0].set(tr.asarray(3, dtype=tr.int32)), np.asarray([3.0, 0.0]))
    assert_same(t.at[0].set(True), np.asarray([1.0, 0.0]))


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (lambda t: t[5], AxisError, "index 5 is out of bounds for axis 0 with extent 2; indices go from -2 to 1"),
        (
            lambda t: t[:, [0, -4]],
            AxisError,
            "index -4 is out of bounds for axis 1 with extent 3; indices go from -3 to 2",
        ),
        (lambda t: t[0, 0, 0], AxisError, "3 indices for an array with 2 axes; give at most one for each axis"),
        (lambda t: t[..., ...], AxisError, "at most one ellipsis, got 2"),
        (lambda t: t[1.5], AxisError, "an index is an integer, a slice, .* not 1.5"),
        (lambda t: t["a"], AxisError, "not 'a'"),
        (lambda t: t[np.asarray([0.5])], AxisError, "hold integers or booleans, not float64; convert with astype"),
        (
            lambda t: t[np.asarray([True])],
            AxisError,
            r"a mask of shape \(1,\) does not fit: its axis 0 has extent 1, but",
        ),
        (lambda t: t[::0], ArgumentError, "a slice needs a step other than 0"),
        (lambda t: t[[0, 1], [0, 1, 2]], ShapeError, r"and \(3,\) do not broadcast: axis -1"),
        (lambda t: t[:0][[0]], AxisError, "axis 0 with extent 0; it has no elements"),
        (lambda t: t.at[0].set(tr.zeros(2)), ShapeError, r"of shape \(2,\) do not broadcast to the indexed part"),
        (lambda t: t.at[0].set(tr.zeros((2, 3))), ShapeError, r"do not broadcast to the indexed part, of shape \(3,\)"),
        (
            lambda t: t.at[0].set(1j),
            DTypeError,
            r"an update of type complex does not fit into float64\[2, 3\] without l",
        ),
        (
            lambda t: tr.arange(3).at[0].add(tr.asarray(0.5)),
            DTypeError,
            r"convert the values with cast\(values, int64\)",
        ),
        (lambda t: t.at[2].set(0.0), AxisError, "index 2 is out of bounds"),
        (lambda t: tr.take(t, [0]), ArgumentError, "take needs an axis for an array with 2 axes"),
        (lambda t: tr.take_along_axis(t, tr.asarray([0])), ShapeError, "needs indices with the 2 axes of"),
    ],
)
def test_error_texts(call, error, text):
    with pytest.raises(error, match=text):
        call(tr.zeros((2, 3)))


def test_at_shows_itself():
    assert repr(tr.zeros((2, 3)).at) == "<at of float64[2, 3]; index it, as in x.at[0].set(1.0)>"


REVERSALS = {
    "flip": lambda x: tr.flip(x, axis=0),
    "slice": lambda x: x[::-1],
    "slice of some": lambda x: x[2:1:-1] if x.shape[0] == 3 else x[0::-1],
    "tuple": lambda x: x[(slice(None, None, -1),)],
}


@pytest.mark.parametrize("name", REVERSALS)
@pytest.mark.parametrize("count", [1, 3])
def test_one_number_is_not_reversed(name: str, count: int) -> None:
    """NumPy rounds functions of it otherwise at a negative distance, and passes leave reversals of one number out."""
    reverse, x = REVERSALS[name], tr.asarray(np.linspace(0.1, 8.0, count, dtype="float32"))
    step = -4 if count == 3 and name != "slice of some" else 4
    compiled = tr.compile(reverse)
    for _ in range(3):
        for f in (reverse, compiled):
            assert f(x)._data.strides == (step,)
            assert f(x).tolist() == reverse(np.asarray(x) if name != "flip" else x).tolist()
