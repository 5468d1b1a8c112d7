"""Inference of element-wise primitives: which dtypes each takes, which it gives, and the text of every error."""

from typing import Any

import numpy as np
import pytest

from operations import OPERATIONS
from tenferro_tensor import Primitive, Spec
from tenferro_tensor import catalog as c
from tenferro_tensor_core import DTYPES, ArgumentError, DTypeError, ShapeError, dim, real_of

ELEMENTWISE = sorted((p for p in vars(c).values() if isinstance(p, Primitive) and p.elementwise), key=lambda p: p.name)
PARAMS: dict[Any, dict[str, Any]] = {c.polygamma: {"order": 1}, c.convert: {"dtype": np.dtype("float32")}}
F8, B1 = np.dtype("float64"), np.dtype(bool)
n = dim("n")

KIND_OF = {**{p.name: row.kinds for p, row in OPERATIONS.items()}, "convert": "biufc"}


def infer(primitive: Primitive, shape: Any, dtype: Any) -> Spec:
    x = Spec(shape, dtype)
    ins = [x.with_(dtype=B1) if i == primitive.chooser else x for i in range(len(primitive.operands))]
    out = primitive.infer(*ins, **PARAMS.get(primitive, {}))
    assert isinstance(out, Spec)
    return out


def expected(primitive: Primitive, dtype: Any) -> str:
    """The dtype of the result by the rule of the contract."""
    if primitive in (c.eq, c.ne, c.lt, c.le, c.gt, c.ge, c.is_finite, c.is_nan, c.is_inf, c.signbit):
        return "bool"
    if primitive in (c.abs, c.real, c.imag):
        return real_of(dtype).name
    if primitive is c.complex:
        return {"float32": "complex64", "float64": "complex128"}[dtype.name]
    return {c.population_count: "uint8", c.convert: "float32"}.get(primitive, dtype.name)


def test_the_table_names_every_elementwise_primitive() -> None:
    assert set(KIND_OF) == {p.name for p in ELEMENTWISE}


@pytest.mark.parametrize("primitive", ELEMENTWISE, ids=lambda p: p.name)
def test_dtypes(primitive: Primitive) -> None:
    for dt in DTYPES:
        if dt.kind in KIND_OF[primitive.name]:
            assert infer(primitive, (2, n), dt) is Spec((2, n), np.dtype(expected(primitive, dt)))
        else:
            with pytest.raises(DTypeError, match=f"{primitive.name} is not defined for {dt.name}; it takes "):
                infer(primitive, (2, n), dt)


@pytest.mark.parametrize("primitive", [p for p in ELEMENTWISE if len(p.operands) > 1], ids=lambda p: p.name)
def test_operands_of_different_shapes(primitive: Primitive) -> None:
    dt = np.dtype("float64") if "f" in KIND_OF[primitive.name] else np.dtype("int64")
    ins = [Spec((3,), B1 if i == primitive.chooser else dt) for i in range(len(primitive.operands))]
    with pytest.raises(ShapeError, match=r"is element-wise and needs operands of one shape, .*; broadcast them first"):
        primitive.infer(ins[0].with_(shape=(2, 3)), *ins[1:])


def test_operands_of_different_dtypes() -> None:
    with pytest.raises(DTypeError) as caught:
        c.add.infer(Spec((), F8), Spec((), np.dtype("int8")))
    assert str(caught.value) == "add needs operands of one dtype, got float64[], int8[]; convert them first"


def test_too_few_operands() -> None:
    with pytest.raises(ArgumentError) as caught:
        c.add.infer(Spec((), F8))
    assert str(caught.value) == "add takes 2 array operand(s) (x, y), got 1"


def test_select_needs_a_boolean() -> None:
    x = Spec((), F8)
    with pytest.raises(DTypeError) as caught:
        c.select.infer(x, x, x)
    assert str(caught.value) == "select needs a boolean condition, got float64[]; compare it with 0 first"


def test_polygamma_of_negative_order() -> None:
    with pytest.raises(ArgumentError) as caught:
        c.polygamma.infer(Spec((), F8), order=-1)
    assert str(caught.value) == "polygamma needs an order of at least 0, got -1"
