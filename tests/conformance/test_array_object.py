"""The array object: operators with arrays and Python numbers, conversions, DLPack, devices, promotion."""

import itertools
import operator
from typing import Any

import numpy as np
import pytest

import tenferro_runtime as tr
from array_api_table import DTYPES
from array_kinds import KINDS, plain
from tenferro_ad import variable
from tenferro_tensor_core import GradientError, TenferroError, TracingError

Array = np.ndarray[Any, Any]
pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")

FUNCTIONS = {
    "add": "add", "sub": "subtract", "mul": "multiply", "truediv": "divide", "floordiv": "floor_divide",
    "mod": "remainder", "pow": "pow", "matmul": "matmul", "and_": "bitwise_and", "or_": "bitwise_or",
    "xor": "bitwise_xor", "lshift": "bitwise_left_shift", "rshift": "bitwise_right_shift", "eq": "equal",
    "ne": "not_equal", "lt": "less", "le": "less_equal", "gt": "greater", "ge": "greater_equal", "neg": "negative",
    "pos": "positive", "abs": "abs", "invert": "bitwise_invert",
}  # fmt: skip
"""Operators, and the functions that they are."""

SETS = {
    "all": DTYPES, "numeric": DTYPES[1:], "real": [d for d in DTYPES[1:] if d[0] != "c"], "whole": DTYPES[:9],
    "integral": DTYPES[1:9], "floating": DTYPES[9:],
}  # fmt: skip

ADMITTED = {
    **dict.fromkeys(("add", "sub", "mul", "pow", "matmul", "neg", "pos", "abs"), "numeric"), "truediv": "floating",
    **dict.fromkeys(("floordiv", "mod", "lt", "le", "gt", "ge"), "real"), **dict.fromkeys(("eq", "ne"), "all"),
    **dict.fromkeys(("and_", "or_", "xor", "invert"), "whole"), **dict.fromkeys(("lshift", "rshift"), "integral"),
}  # fmt: skip
"""Dtypes that the standard has each operator take."""

COMPARISONS = ("eq", "ne", "lt", "le", "gt", "ge")


def promoted(x: str, y: str) -> str | None:
    """The dtype of two together, by the standard's tables; ``None`` where it leaves it open."""
    kinds = {d: "bool" if d == "bool" else "int" if "int" in d else "float" for d in (x, y)}
    if kinds[x] != kinds[y]:
        return None
    if {x, y} & {"uint64"} and not {x, y} <= set(DTYPES[5:9]):
        return None
    return np.promote_types(x, y).name


def numbers(dtype: str) -> Array:
    return np.array([[1, 2], [3, 1]]).astype(dtype)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_operators_are_functions(name: str, kind: str) -> None:
    f, function = getattr(operator, name), getattr(tr, FUNCTIONS[name])
    unary = name in ("neg", "pos", "abs", "invert")
    for x in SETS[ADMITTED[name]]:
        for y in [x] if unary else SETS[ADMITTED[name]]:
            dtype = promoted(x, y)
            if dtype is None:
                continue
            operands = [numbers(x)] if unary else [numbers(x), numbers(y)]
            got, want = (plain(KINDS[kind](g, *operands)) for g in (f, function))
            np.testing.assert_array_equal(got, want)
            expected = "bool" if name in COMPARISONS else np.abs(numbers(x)).dtype.name if name == "abs" else dtype
            assert got.dtype == want.dtype == np.dtype(expected), (x, y)
            if name not in ("matmul", "abs"):
                np.testing.assert_allclose(got, f(*operands), rtol=1e-5)


SCALARS: dict[str, tuple[Any, ...]] = {
    "bool": (True,), "integral": (2, True), "real": (2, 1.5, True), "complex": (2, 1.5, 1j, True)
}  # fmt: skip


def kind_of(dtype: str) -> str:
    return {"b": "bool", "c": "complex", "f": "real"}.get(np.dtype(dtype).kind, "integral")


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", [n for n in FUNCTIONS if n not in ("neg", "pos", "abs", "invert", "matmul")])
def test_python_numbers_on_both_sides(name: str, kind: str) -> None:
    """A number of the kind of the array, or of a lower one, takes its dtype; a complex one makes floats complex."""
    f, function = getattr(operator, name), getattr(tr, FUNCTIONS[name])
    for dtype in SETS[ADMITTED[name]]:
        for number in SCALARS[kind_of(dtype)]:
            if number is True and kind_of(dtype) != "bool":
                continue
            x = numbers(dtype)
            for call in (lambda x, g: g(x, number), lambda x, g: g(number, x)):  # noqa: B023  # used at once
                got, want = (plain(KINDS[kind](lambda x, g=g: call(x, g), x)) for g in (f, function))  # noqa: B023
                np.testing.assert_array_equal(got, want)
                assert got.dtype == np.dtype("bool" if name in COMPARISONS else dtype), (dtype, number)
    if name in ("add", "sub", "mul", "truediv"):
        for dtype, wide in (("float32", "complex64"), ("float64", "complex128")):
            assert plain(KINDS[kind](lambda x: f(x, 1j), numbers(dtype))).dtype == np.dtype(wide)
            assert plain(KINDS[kind](lambda x: f(1j, x), numbers(dtype))).dtype == np.dtype(wide)


@pytest.mark.parametrize("kind", KINDS)
def test_operators_in_place_change_the_object_under_every_name(kind: str) -> None:
    for name in ("iadd", "isub", "imul", "itruediv", "ifloordiv", "imod", "ipow", "imatmul"):
        f, plainly = getattr(operator, name), getattr(operator, name[1:])

        def changed(x: Any, y: Any, f: Any = f) -> Any:
            x = x * 1.0
            first = x
            x = f(x, y)
            return x, first

        x, y = numbers("float64"), numbers("float64") + 1
        got, first = plain(KINDS[kind](changed, x, y))
        np.testing.assert_allclose(got, plainly(x, y))
        np.testing.assert_array_equal(first, got)
        np.testing.assert_array_equal(x, numbers("float64"))


@pytest.mark.parametrize("wrap", [tr.asarray, lambda x: variable(tr.asarray(x))], ids=["concrete", "recorded"])
def test_conversions_to_python(wrap: Any) -> None:
    for value in (0.0, -0.0, 2.5, np.inf, np.nan, 1 + 2j, 0j, complex(0, np.nan)):
        x = wrap(np.asarray(value))
        assert bool(x) is bool(value)
        assert repr(complex(x)) == repr(complex(value))
        if isinstance(value, complex):
            for f in (float, int):
                with pytest.raises(TypeError):
                    f(x)
            continue
        assert repr(float(x)) == repr(float(value))
        with pytest.raises(TypeError, match="only integer"):
            operator.index(x)
        if np.isfinite(value):
            assert int(x) == int(value)
        else:
            with pytest.raises(ValueError if np.isnan(value) else OverflowError):
                int(x)
    for value in (True, np.int8(-3), np.uint64(2**63)):
        x = tr.asarray(np.asarray(value))
        assert (bool(x), int(x), float(x), complex(x)) == (bool(value), int(value), float(value), complex(value))
        if isinstance(value, np.integer):
            assert operator.index(x) == int(value) and [*range(10)][: tr.asarray(3)] == [0, 1, 2]
    for f in (bool, int, float, complex, operator.index):
        with pytest.raises((ValueError, TypeError)):
            f(tr.ones((2, 2), dtype=tr.int64))
    with pytest.raises(TracingError):
        tr.trace(bool, tr.asarray(1.0))
    assert issubclass(TracingError, TenferroError)


def test_dlpack() -> None:
    x = tr.asarray(numbers("float32"))
    assert x.__dlpack_device__() == (1, 0)
    for options in (
        {},
        {"stream": None},
        {"max_version": (1, 0)},
        {"max_version": (1, 0), "dl_device": (1, 0), "copy": False},
    ):
        assert "capsule" in repr(x.__dlpack__(**options))
    for dtype in DTYPES[1:]:
        one = tr.asarray(numbers(dtype))
        there = np.from_dlpack(one)
        np.testing.assert_array_equal(there, numbers(dtype))
        assert np.shares_memory(there, np.from_dlpack(one))
        back = tr.from_dlpack(there)
        assert back.dtype == np.dtype(dtype) and np.shares_memory(np.from_dlpack(back), there)
        for copy in (True, False, None):
            other = tr.from_dlpack(there, device="cpu:0", copy=copy)
            assert np.shares_memory(np.from_dlpack(other), there) == (copy is not True)
    # Memory that nobody may write to has no place in a capsule of the old version.
    still = tr.asarray(np.broadcast_to(1.0, (3,)))
    for value, options in ((x, {"dl_device": (2, 0)}), (still, {"copy": False})):
        with pytest.raises(BufferError):
            value.__dlpack__(**options)
    with pytest.raises(GradientError):
        variable(x).__dlpack__()
    assert not np.shares_memory(np.from_dlpack(x, copy=True), np.from_dlpack(x))


@pytest.mark.parametrize("kind", KINDS)
def test_devices(kind: str) -> None:
    x = numbers("float64")
    got = plain(KINDS[kind](lambda x: x.to_device(x.device), x))
    np.testing.assert_array_equal(got, x)
    got = plain(KINDS[kind](lambda x: tr.zeros((2, 2), device=x.device) + tr.asarray(x, device=x.device), x))
    np.testing.assert_array_equal(got, x)
    assert hash(tr.zeros(1).device) == hash(tr.ones(1).device) and tr.zeros(1).device == tr.ones(1).device


def test_promotion_of_dtypes() -> None:
    for x, y in itertools.product(DTYPES, DTYPES):
        want = promoted(x, y)
        if want is None:
            continue
        a, b = getattr(tr, x), getattr(tr, y)
        for pair in ((a, b), (tr.ones(2, dtype=a), b), (tr.ones(2, dtype=a), tr.ones(1, dtype=b))):
            assert tr.result_type(*pair) == np.dtype(want)
        assert tr.can_cast(a, getattr(tr, want)) and tr.can_cast(tr.ones(1, dtype=b), getattr(tr, want))
    assert tr.result_type(tr.float32, 1j) == tr.complex64 and tr.result_type(2, tr.int8, True) == tr.int8
    assert not tr.can_cast(tr.int16, tr.int8) and not tr.can_cast(tr.float64, tr.int64)


def test_limits() -> None:
    for dtype in DTYPES[9:]:
        limits, want = tr.finfo(getattr(tr, dtype)), np.finfo(dtype)
        for name in ("bits", "eps", "max", "min", "smallest_normal"):
            found = getattr(limits, name)
            assert found == getattr(want, name) and type(found) is (int if name == "bits" else float)
        assert limits.dtype == np.dtype(want.dtype) and tr.finfo(tr.ones(1, dtype=dtype)) == limits
    for dtype in DTYPES[1:9]:
        whole, known = tr.iinfo(getattr(tr, dtype)), np.iinfo(dtype)
        assert (whole.bits, whole.max, whole.min, whole.dtype) == (known.bits, known.max, known.min, known.dtype)
        assert type(whole.max) is int and tr.iinfo(tr.ones(1, dtype=dtype)) == whole


def test_lengths_and_iteration() -> None:
    for x in (tr.asarray(numbers("int8")), variable(tr.asarray(numbers("float64")))):
        assert len(x) == 2 and [row.shape for row in x] == [(2,), (2,)]
        with pytest.raises(TypeError):
            iter(x[0, 0])
        with pytest.raises(TypeError):
            hash(x)


def test_asarray_copies_or_is_the_same_array() -> None:
    for dtype in (None, tr.float64):
        for copy, seen in ((True, 1.0), (False, 9.0), (None, 9.0)):
            x = tr.ones((2, 2))
            out = tr.asarray(x, dtype=dtype, copy=copy)
            x[0, 1] = 9.0
            assert float(out[0, 1]) == seen
    x = tr.ones((2, 2))
    with pytest.raises(ValueError, match="without a copy"):
        tr.asarray(x, dtype=tr.float32, copy=False)
    for same in (tr.astype(x, tr.float64), tr.reshape(x, (2, 2), copy=True), tr.from_dlpack(x, copy=True), +x):
        same[0, 0] = 5.0
        assert float(x[0, 0]) == 1.0


@pytest.mark.parametrize("dtype", DTYPES)
def test_elements_set_to_python_numbers(dtype: str) -> None:
    x = tr.asarray(numbers(dtype), copy=True)
    value = {"bool": False, "real": 2.5, "complex": 2.5 - 1j}.get(kind_of(dtype), 7)
    for key in ((0, 1), (-1, 0), (..., 1), (slice(None), 0)):
        x[key] = value
        want = np.asarray(x[key]).reshape(-1).tolist()
        assert want == [value] * len(want) and x.dtype == np.dtype(dtype)
