"""Inference of structural, creating and moving primitives: shapes, symbolic sizes, and the text of every error."""

from typing import Any

import numpy as np
import pytest

from tenferro_tensor import HOST, MemorySpace, Place, Spec
from tenferro_tensor import catalog as c
from tenferro_tensor_core import (
    ArgumentError,
    AxisError,
    Decisions,
    DTypeError,
    InconclusiveDimError,
    ShapeError,
    dim,
    dim_max,
    floordiv,
)

F8, I4, B1 = np.dtype("float64"), np.dtype("int32"), np.dtype(bool)
GPU = Place(MemorySpace("cuda:0"))
n, m = dim("n"), dim("m")


def f8(*shape: Any) -> Spec:
    return Spec(shape, F8)


GOOD = [
    (c.broadcast_in_dim, (f8(3),), {"shape": (2, 3), "dims": (1,)}, (2, 3)),
    (c.broadcast_in_dim, (f8(2, 3),), {"shape": (3, 4, 2), "dims": (2, 0)}, (3, 4, 2)),
    (c.broadcast_in_dim, (f8(),), {"shape": (n, m), "dims": ()}, (n, m)),
    (c.broadcast_in_dim, (f8(n),), {"shape": (2, n), "dims": (1,)}, (2, n)),
    (c.reshape, (f8(2, 3),), {"shape": (6,)}, (6,)),
    (c.reshape, (f8(),), {"shape": (1, 1)}, (1, 1)),
    (c.reshape, (f8(0, 3),), {"shape": (5, 0)}, (5, 0)),
    (c.reshape, (f8(n, m, 2),), {"shape": (2 * n, m)}, (2 * n, m)),
    (c.transpose, (f8(2, 3, n),), {"permutation": (2, 0, 1)}, (n, 2, 3)),
    (c.transpose, (f8(),), {"permutation": ()}, ()),
    (c.pad, (f8(3), f8()), {"low": (1,), "high": (2,), "interior": (1,)}, (8,)),
    (c.pad, (f8(5), f8()), {"low": (-1,), "high": (-4,), "interior": (0,)}, (0,)),
    (c.pad, (f8(0), f8()), {"low": (1,), "high": (2,), "interior": (3,)}, (3,)),
    (c.pad, (f8(n), f8()), {"low": (1,), "high": (m,), "interior": (0,)}, (n + m + 1,)),
    (c.pad, (f8(n), f8()), {"low": (0,), "high": (0,), "interior": (1,)}, (dim_max(2 * n - 1, 0),)),
    (c.concatenate, (f8(2, 3), f8(0, 3), f8(n, 3)), {"axis": 0}, (n + 2, 3)),
    (c.reverse, (f8(2, n),), {"axes": (1, 0)}, (2, n)),
    (c.slice_, (f8(5, 4),), {"start": (1, 0), "limit": (5, 4), "stride": (2, 3)}, (2, 2)),
    (c.slice_, (f8(n),), {"start": (0,), "limit": (n,), "stride": (2,)}, (floordiv(n + 1, 2),)),
    (c.slice_, (f8(n + 3),), {"start": (n,), "limit": (n + 2,), "stride": (1,)}, (2,)),
    (c.update_slice, (f8(5, 4), f8(2, 4)), {"start": (1, 0), "stride": (3, 1), "mode": "set"}, (5, 4)),
    (c.update_slice, (f8(n + 2), f8(n)), {"start": (2,), "stride": (1,), "mode": "add"}, (n + 2,)),
    (c.update_slice, (f8(n), f8(floordiv(n + 1, 2))), {"start": (0,), "stride": (2,), "mode": "add"}, (n,)),
    (c.iota, (), {"shape": (2, n), "dtype": I4, "axis": 1, "place": HOST}, (2, n)),
]


@pytest.mark.parametrize(("primitive", "ins", "params", "shape"), GOOD, ids=lambda v: getattr(v, "name", None))
def test_shape(primitive: Any, ins: Any, params: Any, shape: Any) -> None:
    out = primitive.infer(*ins, **params)
    assert out is Spec(shape, params.get("dtype", F8))


@pytest.mark.parametrize("primitive", [c.reshape, c.reverse])
def test_dtype_and_place_are_kept(primitive: Any) -> None:
    x = Spec((2, 3), I4, GPU)
    params = {"shape": (6,)} if primitive is c.reshape else {"axes": (0,)}
    out = primitive.infer(x, **params)
    assert (out.dtype, out.place) == (I4, GPU)


def test_iota_is_made_in_main_memory_unless_told() -> None:
    params = {"shape": (3,), "dtype": I4, "axis": 0}
    assert c.iota.infer(**c.iota.op(**params).params).place is HOST
    assert c.iota.infer(**params, place=GPU).place is GPU


def test_transfer_changes_the_place_alone() -> None:
    assert c.transfer.infer(f8(2, n), place=GPU) is Spec((2, n), F8, GPU)


def test_an_equality_of_sizes_becomes_a_guard() -> None:
    """Only where bounds leave it open, and only while examples are active."""
    with Decisions({"n": 4, "m": 4}) as decisions:
        assert c.concatenate.infer(f8(n, 1), f8(m, 2), axis=1).shape == (n, 3)
    assert [f"{g.lhs} {g.op} {g.rhs}" for g in decisions.guards] in (["n == m"], ["m == n"])
    with pytest.raises(InconclusiveDimError):
        c.concatenate.infer(f8(n, 1), f8(m, 2), axis=1)
    with Decisions({"n": 4, "m": 5}), pytest.raises(ShapeError, match="on axis 0 operand 0 has n and operand 1 has m"):
        c.concatenate.infer(f8(n, 1), f8(m, 2), axis=1)


ONE = {"low": (0,), "high": (0,), "interior": (0,)}
BAD = [
    (c.broadcast_in_dim, (f8(1),), {"shape": (2, 3), "dims": (1,)}, ShapeError,
     "broadcast_in_dim maps axis 0 of float64[1] to axis 1 of (2, 3), but 1 != 3; an axis is not stretched: "
     "reshape axes of extent 1 away first"),
    (c.broadcast_in_dim, (f8(3),), {"shape": (2, 3), "dims": ()}, ShapeError,
     "broadcast_in_dim needs 1 entries in dims, one for each axis of float64[3], got 0: ()"),
    (c.broadcast_in_dim, (f8(3),), {"shape": (2, 3), "dims": (2,)}, AxisError,
     "broadcast_in_dim: dims (2,) holds 2, out of range for the result shape (2, 3); axes go from 0 to 1"),
    (c.broadcast_in_dim, (f8(3, 3),), {"shape": (3, 3), "dims": (1, 1)}, AxisError,
     "broadcast_in_dim: dims (1, 1) names an axis twice; give each axis once"),
    (c.broadcast_in_dim, (f8(),), {"shape": 3, "dims": ()}, ArgumentError,
     "broadcast_in_dim takes a tuple of integers or symbolic sizes as shape, got 3"),
    (c.reshape, (f8(2, 3),), {"shape": (4,)}, ShapeError,
     "reshape cannot arrange the 6 elements of float64[2, 3] as (4,), which has 4; "
     "give a shape with the same number of elements"),
    (c.reshape, (f8(2, 3),), {"shape": (2.0, 3)}, ArgumentError,
     "reshape takes a tuple of integers or symbolic sizes as shape, got (2.0, 3)"),
    (c.reshape, (f8(6),), {"shape": (-1, 3)}, ArgumentError,
     "extents of a shape cannot be negative, got -1"),
    (c.transpose, (f8(2, 3),), {"permutation": (0,)}, ShapeError,
     "transpose needs 2 entries in permutation, one for each axis of float64[2, 3], got 1: (0,)"),
    (c.transpose, (f8(2, 3),), {"permutation": (0, -1)}, AxisError,
     "transpose: permutation (0, -1) holds -1, out of range for float64[2, 3]; primitives count axes from 0: pass 1"),
    (c.pad, (f8(3), Spec((), I4)), ONE, DTypeError,
     "pad needs operands of one dtype, got float64[3], int32[]; convert them first"),
    (c.pad, (f8(3), f8(1)), ONE, ShapeError,
     "pad takes a value without axes, got float64[1]; reshape it to ()"),
    (c.pad, (f8(3), f8()), {**ONE, "high": ()}, ShapeError,
     "pad needs 1 entries in high, one for each axis of float64[3], got 0: ()"),
    (c.pad, (f8(3), f8()), {**ONE, "interior": (-1,)}, ArgumentError,
     "pad: interior (-1,) has a negative entry; only low and high crop"),
    (c.pad, (f8(3), f8()), {**ONE, "low": (-2,), "high": (-2,)}, ShapeError,
     "pad takes 4 elements away from axis 0 of float64[3], which has only 3; crop less"),
    (c.concatenate, (), {"axis": 0}, ArgumentError,
     "concatenate needs at least one operand, got none; pass the arrays to join"),
    (c.concatenate, (f8(2), Spec((2,), I4)), {"axis": 0}, DTypeError,
     "concatenate needs operands of one dtype, got float64[2], int32[2]; convert them first"),
    (c.concatenate, (f8(2), f8(2, 1)), {"axis": 0}, ShapeError,
     "concatenate needs operands with one number of axes, got float64[2], float64[2, 1]; reshape them first"),
    (c.concatenate, (f8(2, 3), f8(2, 4)), {"axis": 0}, ShapeError,
     "concatenate along axis 0 needs equal extents elsewhere, but on axis 1 operand 0 has 3 and operand 1 has 4 "
     "(float64[2, 3], float64[2, 4])"),
    (c.concatenate, (f8(), f8()), {"axis": 0}, AxisError,
     "concatenate: axis 0 is out of range for float64[]; it has no axes"),
    (c.concatenate, (f8(2),), {"axis": (0,)}, ArgumentError,
     "concatenate takes one integer as axis, got (0,)"),
    (c.reverse, (f8(2),), {"axes": 0}, ArgumentError,
     "reverse takes a tuple of integers as axes, got 0"),
    (c.slice_, (f8(5),), {"start": (0,), "limit": (6,), "stride": (1,)}, ShapeError,
     "slice needs 0 <= start <= limit <= extent on each axis, but axis 0 of float64[5] has extent 5, "
     "start 0 and limit 6; clip them to the extent"),
    (c.slice_, (f8(5),), {"start": (4,), "limit": (3,), "stride": (1,)}, ShapeError,
     "has extent 5, start 4 and limit 3; clip them"),
    (c.slice_, (f8(5),), {"start": (0,), "limit": (5,), "stride": (-1,)}, ArgumentError,
     "slice: stride (-1,) has an entry below 1; reverse the axis instead"),
    (c.update_slice, (f8(5), f8(3)), {"start": (1,), "stride": (2,), "mode": "set"}, ShapeError,
     "update_slice: 3 elements from 1 on, 2 apart, do not fit axis 0 of float64[5], which has extent 5"),
    (c.update_slice, (f8(5), f8(3)), {"start": (-1,), "stride": (1,), "mode": "set"}, ShapeError,
     "update_slice: 3 elements from -1 on, 1 apart, do not fit axis 0"),
    (c.update_slice, (f8(5), f8(3)), {"start": (0,), "stride": (0,), "mode": "set"}, ArgumentError,
     "update_slice: stride (0,) has an entry below 1; reverse the update"),
    (c.update_slice, (f8(5), f8(3, 1)), {"start": (0,), "stride": (1,), "mode": "set"}, ShapeError,
     "update_slice needs an update with the 1 axes of float64[5], got float64[3, 1]; reshape it"),
    (c.update_slice, (f8(5), f8(3)), {"start": (0,), "stride": (1,), "mode": "max"}, ArgumentError,
     "update_slice has no mode 'max'; use 'set' or 'add'"),
    (c.update_slice, (f8(5), Spec((3,), I4)), {"start": (0,), "stride": (1,), "mode": "set"}, DTypeError,
     "update_slice needs operands of one dtype"),
    (c.iota, (), {"shape": (3,), "dtype": B1, "axis": 0, "place": HOST}, DTypeError,
     "iota counts in integers or floating point, got dtype('bool'); pass such a dtype object"),
    (c.iota, (), {"shape": (3,), "dtype": "int32", "axis": 0, "place": HOST}, DTypeError,
     "iota counts in integers or floating point, got 'int32'; pass such a dtype object"),
    (c.iota, (), {"shape": (), "dtype": I4, "axis": 0, "place": HOST}, AxisError,
     "iota needs at least one axis to count along, got shape (); use a constant 0"),
    (c.iota, (), {"shape": (3,), "dtype": I4, "axis": 1, "place": HOST}, AxisError,
     "iota: axis 1 is out of range for int32[3]; axes go from 0 to 0"),
    (c.iota, (), {"shape": (3,), "dtype": I4, "axis": 0, "place": "cpu"}, ArgumentError,
     "iota takes a Place, got 'cpu'; HOST is main memory"),
    (c.transfer, (f8(2),), {"place": "cuda:0"}, ArgumentError,
     "transfer takes a Place, got 'cuda:0'; to_device() makes one of a name"),
]  # fmt: skip


@pytest.mark.parametrize(("primitive", "ins", "params", "error", "text"), BAD)
def test_error(primitive: Any, ins: Any, params: Any, error: Any, text: str) -> None:
    with pytest.raises(error) as caught:
        primitive.infer(*ins, **params)
    assert text in str(caught.value)
