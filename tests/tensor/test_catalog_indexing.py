"""Inference of gather, scatter and dynamic slices: shapes, symbolic sizes, and the text of every error."""

from typing import Any

import numpy as np
import pytest

from tenferro_tensor import Spec
from tenferro_tensor import catalog as c
from tenferro_tensor_core import ArgumentError, AxisError, DTypeError, ShapeError, dim

F8, I8, C16 = np.dtype("float64"), np.dtype("int64"), np.dtype("complex128")
n, m = dim("n", min=1), dim("m")


def f8(*shape: Any) -> Spec:
    return Spec(shape, F8)


def i8(*shape: Any) -> Spec:
    return Spec(shape, I8)


ROWS = {"offset_dims": (1,), "collapsed_dims": (0,), "start_index_map": (0,), "slice_sizes": (1, 3)}
INTO = {"update_window_dims": (1,), "inserted_dims": (0,), "scatter_dims": (0,), "mode": "add"}
POINT = {"update_window_dims": (), "inserted_dims": (0, 1), "scatter_dims": (1, 0), "mode": "set"}


@pytest.mark.parametrize(
    ("x", "indices", "change", "shape"),
    [
        (f8(4, 3), i8(5, 1), {}, (5, 3)),
        (f8(4, 3), i8(1), {"offset_dims": (0,)}, (3,)),
        (f8(4, 3), i8(2, 5, 1), {"offset_dims": (0,)}, (3, 2, 5)),
        (f8(4, 3), i8(2, 5, 1), {"offset_dims": (1,)}, (2, 3, 5)),
        (f8(4, 3), i8(5, 1), {"collapsed_dims": (), "offset_dims": (0, 2)}, (1, 5, 3)),
        (f8(4, 3), i8(7, 2), {"start_index_map": (1, 0), "slice_sizes": (1, 2)}, (7, 2)),
        (f8(n, 3), i8(m, 1), {}, (m, 3)),
        (f8(4, n), i8(5, 1), {"slice_sizes": (1, n)}, (5, n)),
    ],
)
def test_gather(x: Spec, indices: Spec, change: Any, shape: Any) -> None:
    assert c.gather.infer(x, indices, **{**ROWS, **change}) is f8(*shape)


@pytest.mark.parametrize(
    ("x", "indices", "updates", "params"),
    [
        (f8(4, 3), i8(5, 1), f8(5, 3), INTO),
        (f8(4, 3), i8(5, 1), f8(3, 5), {**INTO, "update_window_dims": (0,)}),
        (f8(4, 3), i8(5, 1), f8(5, 0), INTO),
        (f8(4, 3), i8(5, 2), f8(5), POINT),
        (f8(n, 3), i8(m, 1), f8(m, 3), INTO),
    ],
)
def test_scatter_has_the_shape_of_its_operand(x: Spec, indices: Spec, updates: Spec, params: Any) -> None:
    assert c.scatter.infer(x, indices, updates, **params) is x


def test_dynamic_slices() -> None:
    assert c.dynamic_slice.infer(f8(4, 3), i8(), i8(), sizes=(2, 0)) is f8(2, 0)
    assert c.dynamic_slice.infer(f8(n, m), i8(), i8(), sizes=(1, m)) is f8(1, m)
    assert c.dynamic_slice.infer(f8(), sizes=()) is f8()
    assert c.dynamic_update_slice.infer(f8(n, 3), f8(1, 3), i8(), i8()) is f8(n, 3)


BAD = [
    (c.gather, (f8(4, 3), f8(5, 1)), ROWS, DTypeError,
     "gather at positions is not defined for float64; it takes integers"),
    (c.gather, (f8(4, 3), i8()), ROWS, ShapeError,
     "gather needs index vectors along the last axis of indices, got int64[]; reshape to (1,)"),
    (c.gather, (f8(4, 3), i8(5)), ROWS, ShapeError,
     "gather needs index vectors of the 1 entries of start_index_map, but the last axis of indices int64[5] has "
     "extent 5; add an axis of extent 1 for single indices"),
    (c.gather, (f8(4, 3), i8(5, 1)), {**ROWS, "start_index_map": (2,)}, AxisError,
     "gather: start_index_map (2,) holds 2, out of range for float64[4, 3]; axes go from 0 to 1"),
    (c.gather, (f8(4, 3), i8(5, 1)), {**ROWS, "slice_sizes": (1,)}, ShapeError,
     "gather needs 2 entries in slice_sizes, one for each axis of float64[4, 3], got 1: (1,)"),
    (c.gather, (f8(4, 3), i8(5, 1)), {**ROWS, "slice_sizes": (1, 4)}, ShapeError,
     "gather: a window of extents (1, 4) does not fit float64[4, 3]: 4 on axis 1, which has extent 3; "
     "make the window smaller"),
    (c.gather, (f8(4, 3), i8(5, 1)), {**ROWS, "slice_sizes": (2, 3)}, ShapeError,
     "gather collapses axis 0, whose slice size must be 1, but slice_sizes is (2, 3); keep the axis in offset_dims"),
    (c.gather, (f8(4, 3), i8(5, 1)), {**ROWS, "collapsed_dims": (1, 0)}, ArgumentError,
     "gather takes collapsed_dims in ascending order, got (1, 0); sort them"),
    (c.gather, (f8(4, 3), i8(5, 1)), {**ROWS, "offset_dims": ()}, ShapeError,
     "gather needs 1 entries in offset_dims, one for each window axis, got ()"),
    (c.gather, (f8(4, 3), i8(5, 1)), {**ROWS, "offset_dims": (2,)}, AxisError,
     "gather: offset_dims (2,) holds 2, out of range for 1 axes of indices and 1 window axes; axes go from 0 to 1"),
    (c.scatter, (f8(4, 3), i8(5, 1), f8(5, 3)), {**INTO, "mode": "replace"}, ArgumentError,
     "scatter has no mode 'replace'; use one of set, add, mul, min, max"),
    (c.scatter, (f8(4, 3), i8(5, 1), i8(5, 3)), INTO, DTypeError,
     "scatter needs operands of one dtype, got float64[4, 3], int64[5, 3]; convert them first"),
    (c.scatter, (Spec((4, 3), C16), i8(5, 1), Spec((5, 3), C16)), {**INTO, "mode": "max"}, DTypeError,
     "scatter with mode 'max' is not defined for complex128; it takes real numbers, which are ordered"),
    (c.scatter, (f8(4, 3), f8(5, 1), f8(5, 3)), INTO, DTypeError,
     "scatter at positions is not defined for float64; it takes integers"),
    (c.scatter, (f8(4, 3), i8(5, 2), f8(5, 3)), INTO, ShapeError,
     "scatter needs index vectors of the 1 entries of scatter_dims, but the last axis of indices int64[5, 2] has "
     "extent 2"),
    (c.scatter, (f8(4, 3), i8(5, 1), f8(5)), INTO, ShapeError,
     "scatter needs updates with 1 axes of indices int64[5, 1] and 1 window axes, got float64[5]; reshape it, "
     "or change inserted_dims=(0,)"),
    (c.scatter, (f8(4, 3), i8(5, 1), f8(6, 3)), INTO, ShapeError,
     "scatter needs axis 0 of updates float64[6, 3] to match axis 0 of indices int64[5, 1]: 6 != 5; "
     "transpose or reshape the updates"),
    (c.scatter, (f8(4, 3), i8(5, 1), f8(5, 4)), INTO, ShapeError,
     "scatter: a window of extents (1, 4) does not fit float64[4, 3]: 4 on axis 1, which has extent 3; "
     "make the window smaller"),
    (c.scatter, (f8(0, 3), i8(5, 1), f8(5, 3)), INTO, ShapeError,
     "scatter: a window of extents (1, 3) does not fit float64[0, 3]: 1 on axis 0, which has extent 0"),
    (c.scatter, (f8(4, 3), i8(5, 1), f8(5, 3)), {**INTO, "inserted_dims": (2,)}, AxisError,
     "scatter: inserted_dims (2,) holds 2, out of range for float64[4, 3]; axes go from 0 to 1"),
    (c.scatter, (f8(4, 3), i8(5, 1), f8(5, 3)), {**INTO, "update_window_dims": (0, 1)}, ShapeError,
     "scatter needs 1 entries in update_window_dims, one for each window axis, got (0, 1)"),
    (c.dynamic_slice, (f8(4, 3), i8()), {"sizes": (1, 1)}, ShapeError,
     "dynamic_slice needs 2 starts without axes, one for each axis of float64[4, 3], got int64[]; "
     "index a vector of starts to get its entries"),
    (c.dynamic_slice, (f8(4, 3), i8(2), i8()), {"sizes": (1, 1)}, ShapeError,
     "dynamic_slice needs 2 starts without axes, one for each axis of float64[4, 3], got int64[2], int64[]; "
     "index a vector of starts to get its entries"),
    (c.dynamic_slice, (f8(4, 3), i8(), Spec((), np.dtype("int32"))), {"sizes": (1, 1)}, DTypeError,
     "dynamic_slice needs operands of one dtype, got int64[], int32[]; convert them first"),
    (c.dynamic_slice, (f8(4, 3), f8(), f8()), {"sizes": (1, 1)}, DTypeError,
     "dynamic_slice at positions is not defined for float64; it takes integers"),
    (c.dynamic_slice, (f8(4, 3), i8(), i8()), {"sizes": (5, 1)}, ShapeError,
     "dynamic_slice: a window of extents (5, 1) does not fit float64[4, 3]: 5 on axis 0, which has extent 4"),
    (c.dynamic_slice, (f8(4, 3), i8(), i8()), {"sizes": (-1, 1)}, ShapeError,
     "dynamic_slice: a window of extents (-1, 1) does not fit float64[4, 3]: -1 on axis 0"),
    (c.dynamic_slice, (f8(4, 3), i8(), i8()), {"sizes": (1,)}, ShapeError,
     "dynamic_slice needs 2 entries in sizes, one for each axis of float64[4, 3], got 1: (1,)"),
    (c.dynamic_update_slice, (f8(4, 3), f8(4), i8(), i8()), {}, ShapeError,
     "dynamic_update_slice needs an update with the 2 axes of float64[4, 3], got float64[4]; reshape it"),
    (c.dynamic_update_slice, (f8(4, 3), f8(5, 3), i8(), i8()), {}, ShapeError,
     "dynamic_update_slice: a window of extents (5, 3) does not fit float64[4, 3]: 5 on axis 0"),
    (c.dynamic_update_slice, (f8(4, 3), i8(1, 1), i8(), i8()), {}, DTypeError,
     "dynamic_update_slice needs operands of one dtype, got float64[4, 3], int64[1, 1]; convert them first"),
]  # fmt: skip


@pytest.mark.parametrize(("primitive", "ins", "params", "error", "text"), BAD)
def test_error(primitive: Any, ins: Any, params: Any, error: Any, text: str) -> None:
    with pytest.raises(error) as caught:
        primitive.infer(*ins, **params)
    assert text in str(caught.value)
