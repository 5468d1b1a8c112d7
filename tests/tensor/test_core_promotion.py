"""Binary element-wise primitives on every pair of kinds: NumPy's result dtype, shape and elements, by every way in."""

import operator
import warnings
import zlib
from typing import Any

import numpy as np
import pytest

from tenferro_tensor import Spec, Tensor, broadcast_shapes, catalog, clear_plans, tensor
from tenferro_tensor._primitive import DOMAINS
from tenferro_tensor.entries import evaluate
from tenferro_tensor.tables import TABLES
from tenferro_tensor_core import DTYPES, ArgumentError, DTypeError, ShapeError, dim
from thorough import THOROUGH

NUMPY: dict[Any, Any] = {
    catalog.add: np.add, catalog.sub: np.subtract, catalog.mul: np.multiply, catalog.div: np.true_divide,
    catalog.floor_divide: np.floor_divide, catalog.remainder: np.remainder, catalog.fmod: np.fmod,
    catalog.pow: np.power, catalog.maximum: np.maximum, catalog.minimum: np.minimum, catalog.copysign: np.copysign,
    catalog.nextafter: np.nextafter, catalog.atan2: np.arctan2, catalog.hypot: np.hypot,
    catalog.logaddexp: np.logaddexp, catalog.bitwise_and: np.bitwise_and, catalog.bitwise_or: np.bitwise_or,
    catalog.bitwise_xor: np.bitwise_xor, catalog.shift_left: np.left_shift, catalog.shift_right: np.right_shift,
    catalog.eq: np.equal, catalog.ne: np.not_equal, catalog.lt: np.less, catalog.le: np.less_equal,
    catalog.gt: np.greater, catalog.ge: np.greater_equal,
}  # fmt: skip
OPERANDS: dict[str, Any] = {
    **{dt.name: dt for dt in DTYPES}, "True": True, "2": 2, "1.5": 1.5, "1+2j": 1 + 2j,
}  # fmt: skip
SHAPES = [((3,), (3,)), ((2, 3), (3,)), ((2, 1), (1, 3)), ((), (2,)), ((), ()), ((0, 3), (1, 1))]


def array(dtype: Any, shape: tuple[int, ...], low: int) -> Any:
    """Small positive numbers: no overflow, no division by zero, no shift past the width."""
    n = int(np.prod(shape))
    return ((np.arange(n) + low) % 3 + 1).astype(dtype).reshape(shape)


def expected(p: Any, x: Any, y: Any) -> Any:
    """NumPy's result; integers go to float64 before a function of real numbers, never to a smaller float."""
    if p.domain in ("inexact", "floating") and np.result_type(x, y).kind not in "fc":
        x, y = (v.astype(float) if isinstance(v, np.ndarray) else float(v) for v in (x, y))
    with np.errstate(all="ignore"):
        return np.asarray(NUMPY[p](x, y))


def defined(p: Any, x: Any, y: Any) -> bool:
    kind = np.result_type(x, y).kind
    return kind in DOMAINS[p.domain][0] or (p.domain in ("inexact", "floating") and kind in "biu")


def pairs() -> list[Any]:
    keys = list(OPERANDS)
    return [
        pytest.param(a, b, id=f"{a},{b}")
        for a in keys
        for b in keys
        if isinstance(OPERANDS[a], np.dtype) or isinstance(OPERANDS[b], np.dtype)
    ]


def same(out: Any, want: Any) -> None:
    assert out.spec is Spec(want.shape, want.dtype), (out.spec, want.dtype, want.shape)
    raw = np.asarray(out.data)
    assert raw.dtype == want.dtype and raw.shape == want.shape
    if want.dtype.kind in "fc":
        np.testing.assert_allclose(raw, want, rtol=1e-6 if want.dtype.itemsize in (4, 8) else 1e-13)
    else:
        np.testing.assert_array_equal(raw, want)


@pytest.mark.parametrize(("left", "right"), pairs())
def test_promotion(left: str, right: str) -> None:
    """Every primitive for every pair of kinds, each with two of six shapes in turn; all with thorough tests."""
    turn = zlib.crc32(f"{left},{right}".encode())
    for k, p in enumerate(NUMPY):
        for i, (first, second) in enumerate(SHAPES):
            if not THOROUGH and (turn + k + i) % 3:
                continue
            x, y = (
                array(OPERANDS[k], s, low) if isinstance(OPERANDS[k], np.dtype) else OPERANDS[k]
                for k, s, low in ((left, first, i), (right, second, 1))
            )
            ours = [tensor(v) if isinstance(v, np.ndarray) else v for v in (x, y)]
            if not defined(p, x, y):
                with pytest.raises(DTypeError, match=f"{p.name} is not defined for .*; it takes"):
                    p(*ours)
                continue
            want = expected(p, x, y)
            with np.errstate(all="ignore"):
                same(p(*ours), want)
                same(p(*ours), want)  # by the plan that the first call made


BINARY_OPERATORS = {
    f"__{name}__": primitive.op()
    for name, primitive in {
        "add": catalog.add, "sub": catalog.sub, "mul": catalog.mul, "truediv": catalog.div, "pow": catalog.pow,
        "floordiv": catalog.floor_divide, "mod": catalog.remainder, "and": catalog.bitwise_and,
        "or": catalog.bitwise_or, "xor": catalog.bitwise_xor, "lshift": catalog.shift_left,
        "rshift": catalog.shift_right, "eq": catalog.eq, "ne": catalog.ne, "lt": catalog.lt, "le": catalog.le,
        "gt": catalog.gt, "ge": catalog.ge,
    }.items()
}  # fmt: skip


def forget(op: Any) -> None:
    """What `clear_plans` does, for one op."""
    op.forget()
    for table in TABLES:
        table.clear()


@pytest.mark.parametrize("name", sorted(BINARY_OPERATORS))
def test_operators_give_what_the_general_way_gives(name: str) -> None:
    """First use (no plan), second use (the short way), and NumPy arrays and scalars as the other operand."""
    op, f = BINARY_OPERATORS[name], getattr(operator, name)
    for dtype in ("bool", "int8", "uint8", "int64", "float32", "float64", "complex64"):
        for other in (True, 2, 1.5, 2j, array(dtype, (2, 3), 1), array(dtype, (1, 3), 1), array("float32", (), 1)):
            x = tensor(array(dtype, (2, 3), 0))
            operand = tensor(other) if isinstance(other, np.ndarray) else other
            for args in ((x, operand), (operand, x)):
                try:
                    want = evaluate(op, args)
                except DTypeError:
                    for _ in range(2):
                        with pytest.raises(DTypeError, match="is not defined for .*; it takes"):
                            f(*args)
                    continue
                forget(op)
                for _ in range(3):
                    got = f(*args)
                    assert got.__class__ is Tensor and got.spec is want.spec
                    np.testing.assert_array_equal(got.data, want.data)
                if isinstance(other, np.ndarray):
                    raw = [a.data if a is operand else a for a in args]
                    np.testing.assert_array_equal(f(*raw).data, want.data)


def test_python_numbers_are_weak_and_numpy_numbers_are_not() -> None:
    x = tensor(np.ones(2, np.float32))
    assert (x * 2.0).dtype == (2.0 * x).dtype == np.float32
    assert (x * np.float64(2)).dtype == (np.float64(2) * x).dtype == np.float64
    assert (x * 2j).dtype == np.complex64
    i = tensor(np.ones(2, np.int8))
    assert (i + 1).dtype == np.int8 and (i + 1.0).dtype == np.float64 and (i + np.int16(1)).dtype == np.int16
    assert (tensor([True]) + 1).dtype == np.int64


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (lambda x: x + 300, r"add: Python integer 300 out of bounds for int8; convert the array to a wider dtype or"),
        (lambda x: 300 - x, r"sub: Python integer 300 out of bounds for int8"),
        (lambda x: catalog.maximum(x, -129), r"maximum: Python integer -129 out of bounds for int8"),
    ],
)
def test_numbers_that_do_not_fit_are_errors(call: Any, text: str) -> None:
    """Before a plan exists, and with the plan of a number that fits."""
    clear_plans()
    x = tensor(np.ones(2, np.int8))
    for _ in range(2):
        with pytest.raises(ArgumentError, match=text):
            call(x)
        assert (x + 3).tolist() == [4, 4] and (3 - x).tolist() == [2, 2]


def test_comparisons_with_numbers_out_of_range_are_exact() -> None:
    x = tensor(np.ones(2, np.int8))
    assert (x < 300).tolist() == [True, True] and (x == -200).tolist() == [False, False]


def test_scalars_without_axes_follow_numpy() -> None:
    for dtype in DTYPES:
        for number in (True, 2, 1.5, 2j):
            x = np.asarray(3).astype(dtype)
            with warnings.catch_warnings():
                warnings.simplefilter("error")
                same(tensor(x) + number, np.asarray(x + number))
                same(number * tensor(x), np.asarray(number * x))


def test_broadcasting_of_shapes() -> None:
    n = dim("n", min=2)
    assert broadcast_shapes((2, 1), (1, 3), (3,)) == (2, 3)
    assert broadcast_shapes((), ()) == () and broadcast_shapes((0,), (1,)) == (0,)
    assert broadcast_shapes((n, 1), (4,)) == (n, 4) and broadcast_shapes((1,), (n,)) == (n,)
    text = r"shapes \(2, 3\) and \(4,\) do not broadcast: axis -1 has extents 3 and 4; extents must be equal or 1"
    for _ in range(2):
        with pytest.raises(ShapeError, match=text):
            tensor(np.ones((2, 3))) + tensor(np.ones(4))
    rng = np.random.default_rng(0)
    for _ in range(200):
        shapes = [tuple(int(d) for d in rng.integers(0, 3, rng.integers(0, 4))) for _ in range(rng.integers(1, 4))]
        try:
            want = np.broadcast_shapes(*shapes)
        except ValueError:
            with pytest.raises(ShapeError, match="do not broadcast"):
                broadcast_shapes(*shapes)
        else:
            assert broadcast_shapes(*shapes) == want
