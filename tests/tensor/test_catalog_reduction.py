"""Inference of reductions, scans, sorting and contraction: shapes, dtypes, symbolic sizes, and the text of errors."""

from typing import Any

import numpy as np
import pytest

from tenferro_tensor import Spec
from tenferro_tensor import catalog as c
from tenferro_tensor_core import (
    DTYPES,
    ArgumentError,
    AxisError,
    Decisions,
    DTypeError,
    InconclusiveDimError,
    ShapeError,
    dim,
    int64,
)

F8, I4, B1, C16 = np.dtype("float64"), np.dtype("int32"), np.dtype(bool), np.dtype("complex128")
n, m = dim("n"), dim("m")
SUMS = (c.reduce_sum, c.reduce_prod)
EXTREMA = (c.reduce_max, c.reduce_min)
LOGICAL = (c.reduce_all, c.reduce_any)
LOCATING = (c.argmax, c.argmin)
SCANS = (c.cumsum, c.cumprod, c.cummax, c.cummin, c.cumlogsumexp)


def f8(*shape: Any) -> Spec:
    return Spec(shape, F8)


@pytest.mark.parametrize("primitive", (*SUMS, *EXTREMA))
@pytest.mark.parametrize(("axes", "left"), [((), (2, 3, 4)), ((1,), (2, 4)), ((2, 0), (3,)), ((0, 1, 2), ())])
def test_reduced_axes_disappear(primitive: Any, axes: Any, left: Any) -> None:
    assert primitive.infer(f8(2, 3, 4), axes=axes) is f8(*left)


@pytest.mark.parametrize("primitive", SUMS)
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_sums_keep_the_dtype(primitive: Any, dtype: Any) -> None:
    assert primitive.infer(Spec((2,), dtype), axes=(0,)) is Spec((), dtype)


@pytest.mark.parametrize("primitive", LOCATING)
def test_locations_are_int64(primitive: Any) -> None:
    assert primitive.infer(Spec((2, n), B1), axis=0) is Spec((n,), int64)


def test_symbolic_extents_are_reduced_and_kept() -> None:
    assert c.reduce_sum.infer(f8(n, m, 3), axes=(1,)) is f8(n, 3)
    assert c.cumsum.infer(f8(n), axis=0, reverse=True) is f8(n)
    assert c.argsort.infer(f8(n, 2), axis=0, descending=False) is Spec((n, 2), int64)
    assert c.searchsorted.infer(f8(n), f8(m, 2), side="left") is Spec((m, 2), int64)


def test_extrema_need_an_element() -> None:
    """A symbolic axis is asked; bounds, or an example and a guard, answer."""
    with pytest.raises(InconclusiveDimError):
        c.reduce_max.infer(f8(n), axes=(0,))
    assert c.reduce_max.infer(f8(dim("k", min=1)), axes=(0,)) is f8()
    with Decisions({"n": 3}) as decisions:
        assert c.reduce_max.infer(f8(n), axes=(0,)) is f8()
    assert [f"{g.lhs} {g.op} {g.rhs}" for g in decisions.guards] == ["n >= 1"]


@pytest.mark.parametrize("primitive", (*EXTREMA, *LOCATING))
def test_extrema_of_no_elements(primitive: Any) -> None:
    text = (
        f"{primitive.name} over axis 1 of float64[2, 0] has no elements to choose from; there is no neutral element: "
        "handle the empty case apart, or concatenate a bound"
    )
    params = {"axis": 1} if primitive in LOCATING else {"axes": (0, 1)}
    with pytest.raises(ShapeError) as caught:
        primitive.infer(f8(2, 0), **params)
    assert str(caught.value) == text
    assert caught.value.payload == {"shape": (2, 0), "axis": 1}


@pytest.mark.parametrize("primitive", (*EXTREMA, *LOCATING, c.cummax, c.cummin, c.searchsorted))
def test_complex_numbers_have_no_extrema(primitive: Any) -> None:
    z = Spec((2,), C16)
    params: dict[str, Any] = {"axes": (0,)} if primitive in EXTREMA else {"axis": 0}
    if primitive in SCANS:
        params["reverse"] = False
    ins, params = ((z, z), {"side": "left"}) if primitive is c.searchsorted else ((z,), params)
    with pytest.raises(DTypeError) as caught:
        primitive.infer(*ins, **params)
    takes = "booleans, integers or real floating point, but not complex numbers"
    assert str(caught.value) == f"{primitive.name} is not defined for complex128; it takes {takes}"


DOT = {"contract": ((1,), (0,)), "batch": ((), ())}
BAD = [
    *[(p, (f8(2),), {"axes": (0,)}, DTypeError, "is not defined for float64; it takes booleans; compare with 0 first")
      for p in LOGICAL],
    *[(p, (f8(2, 3),), {"axes": (2,)}, AxisError,
       f"{p.name}: axes (2,) holds 2, out of range for float64[2, 3]; axes go from 0 to 1") for p in (*SUMS, *EXTREMA)],
    *[(p, (f8(2, 3),), {"axes": (0, 0)}, AxisError, f"{p.name}: axes (0, 0) names an axis twice; give each axis once")
      for p in (*SUMS, *EXTREMA)],
    *[(p, (f8(2, 3),), {"axis": -2}, AxisError,
       f"{p.name}: axis -2 is out of range for float64[2, 3]; primitives count axes from 0: pass 0") for p in LOCATING],
    *[(p, (f8(2),), {"axis": 1, "reverse": False}, AxisError,
       f"{p.name}: axis 1 is out of range for float64[2]; axes go from 0 to 0") for p in SCANS],
    *[(p, (f8(2),), {"axis": 0, "reverse": 1}, ArgumentError, f"{p.name} takes True or False as reverse, got 1")
      for p in SCANS],
    *[(p, (f8(2),), {"axis": 0, "descending": None}, ArgumentError,
       f"{p.name} takes True or False as descending, got None") for p in (c.sort, c.argsort)],
    (c.cumlogsumexp, (Spec((2,), C16),), {"axis": 0, "reverse": False}, DTypeError,
     "cumlogsumexp is not defined for complex128; it takes real floating point"),
    (c.cumlogsumexp, (Spec((2,), I4),), {"axis": 0, "reverse": False}, DTypeError,
     "cumlogsumexp is not defined for int32; it takes real floating point"),
    (c.sort, (f8(),), {"axis": 0, "descending": False}, AxisError,
     "sort: axis 0 is out of range for float64[]; it has no axes"),
    (c.argsort, (f8(),), {"axis": 0, "descending": False}, AxisError,
     "argsort: axis 0 is out of range for float64[]; it has no axes"),
    (c.searchsorted, (f8(2, 2), f8(3)), {"side": "left"}, ShapeError,
     "searchsorted needs a sorted vector, got float64[2, 2]; search the rows one by one"),
    (c.searchsorted, (f8(2), f8(3)), {"side": "middle"}, ArgumentError,
     "searchsorted takes side='left' or side='right', got 'middle'"),
    (c.searchsorted, (f8(2), Spec((3,), I4)), {"side": "left"}, DTypeError,
     "searchsorted needs operands of one dtype, got float64[2], int32[3]; convert them first"),
    (c.dot_general, (f8(2, 3), f8(4, 5)), DOT, ShapeError,
     "dot_general cannot contract axis 1 of float64[2, 3] with axis 0 of float64[4, 5]: 3 != 4; "
     "reshape or transpose an operand"),
    (c.dot_general, (f8(2, 3), f8(3, 2)), {"contract": ((), ()), "batch": ((0,), (0,))}, ShapeError,
     "dot_general cannot batch axis 0 of float64[2, 3] with axis 0 of float64[3, 2]: 2 != 3; "
     "reshape or transpose an operand"),
    (c.dot_general, (f8(2, 3), Spec((3, 2), I4)), DOT, DTypeError,
     "dot_general needs operands of one dtype, got float64[2, 3], int32[3, 2]; convert them first"),
    (c.dot_general, (f8(2, 3), f8(3, 2)), {**DOT, "contract": ((1,), ())}, ArgumentError,
     "dot_general: contract=((1,), ()) pairs 1 axes of x with 0 of y; name as many of one as of the other"),
    (c.dot_general, (f8(2, 3), f8(3, 2)), {**DOT, "batch": ()}, ArgumentError,
     "dot_general takes batch=(axes of x, axes of y), two tuples, got ()"),
    (c.dot_general, (f8(2, 3), f8(3, 2)), {**DOT, "batch": ((1,), (1,))}, AxisError,
     "dot_general: contract and batch axes of operand 0 (1, 1) names an axis twice; give each axis once"),
    (c.dot_general, (f8(2, 3), f8(3, 2)), {**DOT, "contract": ((1,), (2,))}, AxisError,
     "dot_general: contract and batch axes of operand 1 (2,) holds 2, out of range for float64[3, 2]; "
     "axes go from 0 to 1"),
]  # fmt: skip


@pytest.mark.parametrize(("primitive", "ins", "params", "error", "text"), BAD)
def test_error(primitive: Any, ins: Any, params: Any, error: Any, text: str) -> None:
    with pytest.raises(error) as caught:
        primitive.infer(*ins, **params)
    assert text in str(caught.value)


@pytest.mark.parametrize(
    ("x", "y", "contract", "batch", "shape"),
    [
        ((2, 3), (3, 4), ((1,), (0,)), ((), ()), (2, 4)),
        ((3,), (3,), ((0,), (0,)), ((), ()), ()),
        ((2,), (3,), ((), ()), ((), ()), (2, 3)),
        ((5, 2, 3), (3, 5, 4), ((2,), (0,)), ((0,), (1,)), (5, 2, 4)),
        ((2, 3, 4, 5), (5, 3, 7), ((3,), (0,)), ((1,), (1,)), (3, 2, 4, 7)),
        ((2, 3), (3, 2), ((), ()), ((1, 0), (0, 1)), (3, 2)),
        ((n, 3), (3, m), ((1,), (0,)), ((), ()), (n, m)),
        ((n, m), (m, n), ((1,), (0,)), ((0,), (1,)), (n,)),
    ],
)
def test_dot_general_puts_batch_then_free_axes(x: Any, y: Any, contract: Any, batch: Any, shape: Any) -> None:
    assert c.dot_general.infer(f8(*x), f8(*y), contract=contract, batch=batch) is f8(*shape)
