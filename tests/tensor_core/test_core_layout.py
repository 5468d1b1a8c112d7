"""Layouts against NumPy's views: the same elements, the same refusals."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tenferro_tensor_core import AxisError, Layout, LayoutError, ShapeError, dim

shapes = st.lists(st.integers(0, 4), max_size=4).map(tuple)
positive_shapes = st.lists(st.integers(1, 4), max_size=4).map(tuple)


def both(shape):
    """A layout and the NumPy array that holds each element's position in the buffer."""
    size = math.prod(shape)
    return Layout.row_major(shape), np.arange(size, dtype=np.int64).reshape(shape)


def agrees(layout, array):
    """Whether the layout names the elements of the array, whose values are buffer positions."""
    assert layout.shape == array.shape
    positions = np.full(array.shape, layout.offset)
    for axis, stride in enumerate(layout.strides):
        positions = positions + np.arange(array.shape[axis]).reshape([-1] + [1] * (array.ndim - axis - 1)) * stride
    np.testing.assert_array_equal(positions, array)
    assert layout.is_row_major == array.flags.c_contiguous
    assert layout.is_column_major == array.flags.f_contiguous
    bounds = layout.bounds()
    assert bounds == ((array.min(), array.max()) if array.size else None)


@st.composite
def views(draw, shapes=shapes):
    """The same random chain of transposes, slices, new and dropped axes on both sides."""
    shape = draw(shapes)
    layout, array = both(shape)
    for _ in range(draw(st.integers(0, 3))):
        step = draw(st.sampled_from(["transpose", "slice", "squeeze", "expand", "broadcast"]))
        if step == "transpose":
            p = draw(st.permutations(range(array.ndim)))
            layout, array = layout.transpose(p), array.transpose(p)
        elif step == "slice":
            index = tuple(draw(st.slices(n)) for n in array.shape[: draw(st.integers(0, array.ndim))])
            layout, array = layout.slice(*index), array[index]
        elif step == "squeeze":
            layout, array = layout.squeeze(), array.squeeze()
        elif step == "expand" and array.ndim < 6:
            axis = draw(st.integers(-array.ndim - 1, array.ndim))
            layout, array = layout.expand((axis,)), np.expand_dims(array, axis)
        elif step == "broadcast" and array.ndim < 6:
            target = tuple(draw(st.integers(0, 3)) if n == 1 else n for n in array.shape)
            target = (*draw(st.lists(st.integers(0, 2), max_size=1)), *target)
            layout, array = layout.broadcast_to(target), np.broadcast_to(array, target)
    return layout, array, math.prod(shape)


@given(views())
def test_compositions_of_views_are_numpys(case):
    layout, array, size = case
    agrees(layout, array)
    layout.validate(size)
    np.testing.assert_array_equal(layout.view(np.arange(size)), array)
    assert layout.size == array.size and layout.ndim == array.ndim


@given(views(), shapes)
def test_reshape_is_a_view_exactly_when_numpys_is(case, shape):
    layout, array, _ = case
    if math.prod(shape) != array.size:
        with pytest.raises(ShapeError, match=r"keep the number of elements"):
            layout.reshape(shape)
        return
    compare_reshape(layout, array, shape)


@given(views(positive_shapes), st.data())
def test_reshape_to_any_factorisation(case, data):
    layout, array, _ = case
    left, shape = array.size, []
    while left > 1 and len(shape) < 4:
        factor = data.draw(st.sampled_from([d for d in range(1, left + 1) if left % d == 0]))
        shape.append(factor)
        left //= factor
    compare_reshape(layout, array, (*shape, left) if array.size else (0, *shape))


def compare_reshape(layout, array, shape):
    try:
        expected = np.reshape(array, shape, copy=False)
    except ValueError:
        with pytest.raises(LayoutError, match=r"cannot be viewed as .* without a copy; copy into row-major order"):
            layout.reshape(shape)
    else:
        got = layout.reshape(shape)
        assert got.shape == expected.shape
        if expected.size:
            agrees(got, expected)


@given(views())
def test_coalescing_keeps_the_elements_in_order(case):
    layout, array, size = case
    merged = layout.coalesce()
    np.testing.assert_array_equal(merged.view(np.arange(size)).ravel(), array.ravel())
    assert merged.coalesce() == merged and merged.ndim <= max(layout.ndim, 1)
    if layout.is_row_major and array.size > 1:
        assert merged.shape == (array.size,) and merged.strides == (1,)


@given(views())
def test_the_layout_of_an_array(case):
    layout, array, _ = case
    of = Layout.of(array)
    assert of.shape == array.shape
    if array.size:
        assert all(n == 1 or s == t for n, s, t in zip(array.shape, of.strides, layout.strides))


@given(shapes, st.lists(st.tuples(st.integers(-4, 4), st.integers(0, 6)), min_size=4, max_size=4))
def test_overlap_is_never_missed(shape, numbers):
    strides, offsets = zip(*numbers)
    x = Layout(shape, strides[: len(shape)], offsets[0])
    y = Layout(shape[::-1], strides[1:][: len(shape)] + (1,) * (len(shape) - 3), offsets[1])
    px, py = (positions(v) for v in (x, y))
    if set(px) & set(py):
        assert x.may_overlap(y) and y.may_overlap(x)
    if len(set(px)) < len(px):
        assert x.may_self_overlap()


def positions(layout):
    index = np.indices(layout.shape).reshape(layout.ndim, -1).T if layout.ndim else np.zeros((1, 0), int)
    return [layout.offset + int(i @ np.array(layout.strides, int)) for i in index]


def test_overlap_is_refuted_where_it_matters():
    assert not Layout((3,), (2,), 0).may_overlap(Layout((3,), (2,), 1)), "evens and odds"
    assert not Layout((2, 3), (6, 1), 0).may_overlap(Layout((2, 3), (6, 1), 12)), "disjoint intervals"
    assert not Layout((0,), (1,), 0).may_overlap(Layout((4,), (1,), 0)), "empty"
    assert not Layout.row_major((3, 4)).transpose((1, 0)).may_self_overlap()
    assert Layout((2, 3), (0, 1)).may_self_overlap()


def test_column_major_is_the_mirror_of_row_major():
    layout = Layout.column_major((2, 3, 4), offset=5)
    assert layout.strides == (1, 2, 6) and layout.offset == 5
    assert layout.is_column_major and not layout.is_row_major
    assert layout.transpose((2, 1, 0)) == Layout.row_major((4, 3, 2), 5)
    assert Layout.row_major((2, 0, 3)).strides == (3, 3, 1), "NumPy's strides of an empty array"


def test_axes_that_never_step_do_not_count():
    assert Layout((1, 3), (99, 1)).is_row_major and Layout((3, 1), (1, -7)).is_column_major
    assert Layout((0, 5), (7, 7)).is_row_major and Layout((), ()).is_row_major


def test_byte_strides_of_structured_fields_are_refused():
    records = np.zeros(4, dtype=[("a", "f8"), ("b", "i4")])
    with pytest.raises(LayoutError, match=r"byte strides \(12,\) and offset 0 are not multiples of the element size 8"):
        Layout.of(records["a"])
    assert Layout.from_byte_strides((1,), (12,), 8).strides == (1,), "a stride never taken is rounded"


def test_a_huge_step_takes_one_element():
    assert Layout.row_major((3, 2)).slice(slice(None, None, 2**62)) == Layout((1, 2), (2, 1))
    assert Layout.row_major((3,)).slice(slice(2, 0, 2**63 - 1)).shape == (0,)


def test_an_empty_slice_stays_where_the_buffer_certainly_is():
    assert Layout.row_major((3,)).slice(slice(3, 3)).offset == 0
    assert Layout.row_major((3, 2), offset=1).slice(slice(2, 0)).offset == 1


def test_slices_with_integers():
    layout, array = both((3, 4, 5))
    agrees(layout.slice(-1, slice(None), 2), array[-1, :, 2])
    agrees(layout.slice(1, 2, 3), array[1, 2, 3, ...])


def test_symbolic_layouts():
    n, m = dim("n"), dim("m")
    layout = Layout.row_major((n, 3, m), offset=2)
    assert layout.strides == (3 * m, m, 1) and layout.symbolic and layout.size is 3 * n * m
    assert layout.is_row_major and not layout.is_column_major
    assert layout.transpose((2, 1, 0)).is_column_major
    assert layout.evaluate({"n": 2, "m": 4}) == Layout.row_major((2, 3, 4), 2)
    assert layout.slice(slice(None)) == layout
    with pytest.raises(LayoutError, match=r"slice needs concrete sizes"):
        layout.slice(slice(1, None))
    assert layout.expand((0,)).broadcast_to((5, n, 3, m)).strides[0] == 0
    for call in (layout.bounds, layout.coalesce, lambda: layout.validate(9), lambda: layout.reshape((-1,))):
        with pytest.raises(LayoutError, match=r"needs concrete sizes, got shape .* call evaluate with the sizes first"):
            call()


def test_a_view_keeps_the_buffer_read_only():
    buffer = np.arange(6.0)
    layout = Layout((3,), (-2,), 4)
    layout.view(buffer)[0] = 9
    assert buffer[4] == 9
    buffer.flags.writeable = False
    assert not layout.view(buffer).flags.writeable


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (lambda: Layout((2, 3), (1,)), LayoutError, "one stride for each axis, got shape (2, 3) with strides (1,)"),
        (lambda: Layout((-1,), (1,)), ShapeError, "sizes cannot be negative, got shape (-1,)"),
        (lambda: Layout.row_major((2**40, 2**40)), LayoutError, "(1099511627776, 1)"),
        (lambda: Layout((2,), (2**62,), 2**62 + 2**61 + 2**62), LayoutError, "does not fit 64-bit positions"),
        (lambda: Layout((3,), (2**62,)), LayoutError, "does not fit 64-bit positions; use smaller"),
        (
            lambda: Layout.row_major((2, 3)).validate(5),
            LayoutError,
            "reaches elements 0 to 5 of a buffer of 5; correct",
        ),
        (lambda: Layout((3,), (-1,), 1).validate(5), LayoutError, "reaches elements -1 to 1 of a buffer of 5"),
        (lambda: Layout((3,), (1,)).transpose((0, 0)), AxisError, "transpose of 1 axes by (0, 0) is not a permutation"),
        (lambda: Layout((3,), (1,)).slice(0, 0), AxisError, "slice got 2 indices for 1 axes; remove the surplus"),
        (lambda: Layout((3,), (1,)).slice(3), AxisError, "index 3 is out of range for axis 0 of size 3; use -3 <="),
        (lambda: Layout((4,), (1,)).reshape((3,)), ShapeError, "cannot reshape (4,) (4 elements) to (3,); keep"),
        (lambda: Layout((4,), (1,)).reshape((-1, -1)), ShapeError, "to (-1, -1); keep the number of elements, with"),
        (lambda: Layout((4,), (1,)).reshape((-1, 3)), ShapeError, "cannot reshape (4,) (4 elements) to (-1, 3)"),
        (lambda: Layout((0,), (1,)).reshape((-1, 0)), ShapeError, "with at most one -1"),
        (lambda: Layout((3,), (1,)).broadcast_to((4,)), ShapeError, "cannot broadcast (3,) to (4,); aligned from the"),
        (lambda: Layout((3,), (1,)).broadcast_to(()), ShapeError, "cannot broadcast (3,) to ()"),
        (lambda: Layout((3,), (1,)).squeeze((0,)), ShapeError, "squeeze needs axes of size 1, got axes (0,) of shape"),
        (lambda: Layout((1,), (1,)).squeeze((1,)), AxisError, "squeeze by axes (1,) of 1: an axis is out of range"),
        (lambda: Layout((1,), (1,)).expand((0, 0)), AxisError, "expand by axes (0, 0) of 3: an axis is out of range"),
        (lambda: Layout((2,), (1,)).view(np.zeros((2, 2))), LayoutError, "view needs a one-dimensional contiguous"),
        (lambda: Layout((2,), (1,)).view(np.zeros(1)), LayoutError, "reaches elements 0 to 1 of a buffer of 1"),
    ],
)
def test_error_texts(call, error, text):
    with pytest.raises(error) as caught:
        call()
    assert text in str(caught.value)
    assert caught.value.payload
