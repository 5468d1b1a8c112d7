"""Element-wise kernels against Python's arithmetic, for every dtype that inference admits."""

import math
import warnings
from typing import Any

import numpy as np
import pytest

from kernel_check import agree, check, kernel_of, sample, spec_of
from operations import OPERATIONS, PARAMS, elementwise, next_float32
from tenferro_tensor import Primitive, Spec
from tenferro_tensor import catalog as c
from tenferro_tensor_core import DTYPES, ArgumentError, DTypeError, UnsupportedError

SHAPES = ((), (3,), (2, 3), (0,), (2, 0, 3), (1, 4))


def admits(primitive: Primitive, dtype: Any) -> bool:
    x = Spec((), dtype)
    chooser = (Spec((), np.dtype(bool)),) if primitive.chooser is not None else ()
    try:
        primitive.infer(*chooser, *[x] * (len(primitive.operands) - len(chooser)), **PARAMS.get(primitive, {}))
    except DTypeError:
        return False
    return True


CASES = [
    pytest.param(p, dt, id=f"{p.name}-{dt.name}")
    for p in sorted(OPERATIONS, key=lambda p: p.name)
    for dt in DTYPES
    if admits(p, dt)
]


def operands(primitive: Primitive, dtype: Any, *shapes: tuple[int, ...]) -> list[Any]:
    rng = np.random.default_rng(len(primitive.name))
    row = OPERATIONS[primitive]
    out = []
    for i, shape in enumerate(shapes):
        low, high = row.second if i == 1 and row.second is not None else row.drawn
        out.append(sample(rng, "bool" if i == primitive.chooser else dtype, shape, low, high))
    return out


def oracle_of(primitive: Primitive, dtype: Any) -> Any:
    f = next_float32 if primitive is c.nextafter and dtype == np.float32 else OPERATIONS[primitive].f

    def oracle(*arrays: Any, **params: Any) -> Any:
        out = primitive.infer(*[Spec(np.broadcast_shapes(*map(np.shape, arrays)), a.dtype) for a in arrays], **params)
        return elementwise(f, out.dtype, *arrays)

    return oracle


@pytest.mark.parametrize(("primitive", "dtype"), CASES)
def test_agrees_with_python_s_arithmetic(primitive: Primitive, dtype: Any) -> None:
    for shape in SHAPES:
        args = operands(primitive, dtype, *[shape] * len(primitive.operands))
        check(primitive, oracle_of(primitive, dtype), *args, **PARAMS.get(primitive, {}))


@pytest.mark.parametrize(("primitive", "dtype"), [p for p in CASES if len(p.values[0].operands) > 1])
def test_operands_of_different_shapes_broadcast(primitive: Primitive, dtype: Any) -> None:
    """A plan may leave broadcasts to the kernel: it is made for the common shape and given smaller operands."""
    full = (2, 3)
    for shapes in (((2, 1), full, (3,)), ((), full, full), (full, (1, 3), ()), (full, (), (2, 1))):
        args = operands(primitive, dtype, *shapes[: len(primitive.operands)])
        kernel, out = kernel_of(primitive, tuple(Spec(full, a.dtype) for a in args), {})
        agree(kernel(*args), out, oracle_of(primitive, dtype)(*args))


@pytest.mark.parametrize(("primitive", "dtype"), [p for p in CASES if len(p.values[0].operands) > 1])
@pytest.mark.parametrize("shape", [(3,), ()], ids=["vector", "scalar"])
def test_a_python_scalar_stands_for_an_operand(primitive: Primitive, dtype: Any, shape: tuple[int, ...]) -> None:
    """It is weak: the dtype of the result does not change."""
    for position in range(len(primitive.operands)):
        args = operands(primitive, dtype, *[shape] * len(primitive.operands))
        kernel, out = kernel_of(primitive, tuple(map(spec_of, args)), {})
        low = OPERATIONS[primitive].second or OPERATIONS[primitive].drawn
        args[position] = sample(np.random.default_rng(3), args[position].dtype, (), max(low[0], 0), low[1])
        expected = oracle_of(primitive, dtype)(*args)
        args[position] = args[position].item()
        agree(kernel(*args), out, expected)


@pytest.mark.parametrize("dtype", ["float32", "int8", "complex64"])
def test_two_python_scalars_beside_one_array(dtype: str) -> None:
    x = sample(np.random.default_rng(0), dtype, (3,))
    spec, one = spec_of(x), 1.0 if dtype != "int8" else 1
    kernel, out = kernel_of(c.select, (Spec((3,), np.dtype(bool)), spec, spec), {})
    agree(kernel(x.real > 0, one, 0), out, np.where(x.real > 0, 1, 0))
    if dtype != "complex64":
        kernel, out = kernel_of(c.clamp, (spec, spec, spec), {})
        agree(kernel(one, 0, x), out, np.minimum(x, 1))
        agree(kernel(x, 0, one), out, np.clip(x, 0, 1))


@pytest.mark.parametrize("src", [dt.name for dt in DTYPES])
@pytest.mark.parametrize("dst", [dt.name for dt in DTYPES])
def test_convert_takes_every_step(src: str, dst: str) -> None:
    """Complex to real keeps the real part, real to integers truncates, anything to boolean tests for nonzero."""

    def one(x: Any, *, dtype: Any) -> Any:
        def step(v: Any) -> Any:
            if dtype.kind == "b":
                return v != 0
            v = v.real if isinstance(v, complex) and dtype.kind != "c" else v
            return math.trunc(v) if dtype.kind in "iu" else v

        return elementwise(step, dtype, x)

    low = 0 if np.dtype(dst).kind == "u" and np.dtype(src).kind in "fc" else -3
    for shape in SHAPES:
        check(c.convert, one, sample(np.random.default_rng(7), src, shape, low, 3), dtype=np.dtype(dst))


def test_integers_wrap_without_a_word() -> None:
    """Also where there are no axes, where NumPy's own scalars would warn."""
    top = np.int8(127)
    for x in (top, np.array([127], np.int8)):
        kernel, out = kernel_of(c.add, (spec_of(x), spec_of(x)), {})
        agree(kernel(x, x), out, np.full(x.shape, -2))
        kernel, out = kernel_of(c.neg, (spec_of(x),), {})
        agree(kernel(x - x - np.int8(127) - np.int8(1)), out, np.full(x.shape, -128))


@pytest.mark.parametrize("primitive", [c.floor_divide, c.remainder, c.fmod], ids=lambda p: p.name)
def test_integer_division_by_zero_is_numpy_s(primitive: Primitive) -> None:
    x, zero = np.array([5, -5]), np.array([0, 0])
    kernel, out = kernel_of(primitive, (spec_of(x), spec_of(zero)), {})
    with pytest.warns(RuntimeWarning, match="divide by zero"):
        agree(kernel(x, zero), out, [0, 0])


def test_shifts_beyond_the_width_give_zero_or_the_sign() -> None:
    x, far = np.array([5, -5], np.int8), np.array([8, 100], np.int8)
    left, out = kernel_of(c.shift_left, (spec_of(x), spec_of(far)), {})
    agree(left(x, far), out, [0, 0])
    right, out = kernel_of(c.shift_right, (spec_of(x), spec_of(far)), {})
    agree(right(x, far), out, [0, -1])


def test_a_negative_integer_exponent_is_a_typed_error() -> None:
    x = np.array([2, 3])
    kernel, _ = kernel_of(c.pow, (spec_of(x), spec_of(x)), {})
    with pytest.raises(ArgumentError, match=r"negative exponent; convert the base to floating point first"):
        kernel(x, -x)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_special_values(dtype: str) -> None:
    """Infinities, NaN and signed zeros, with no warning of the kernel's own making."""
    x = np.array([np.inf, -np.inf, np.nan, -0.0, 0.0, 1.0], dtype)
    one = {
        c.is_finite: [False, False, False, True, True, True],
        c.is_nan: [False, False, True, False, False, False],
        c.is_inf: [True, True, False, False, False, False],
        c.signbit: [False, True, False, True, False, False],
        c.sign: [1, -1, np.nan, 0, 0, 1],
        c.exp: [np.inf, 0, np.nan, 1, 1, math.e],
    }
    for primitive, expected in one.items():
        kernel, out = kernel_of(primitive, (spec_of(x),), {})
        agree(kernel(x), out, expected)
    nan = np.full(6, np.nan, dtype)
    for primitive in (c.maximum, c.minimum):
        kernel, out = kernel_of(primitive, (spec_of(x), spec_of(x)), {})
        agree(kernel(x, nan), out, nan)
        agree(kernel(nan, x), out, nan)
    kernel, out = kernel_of(c.logaddexp, (spec_of(x), spec_of(x)), {})
    agree(kernel(x[:2], x[:2]), out.with_(shape=(2,)), [np.inf, -np.inf])


def test_complex_sign_is_zero_at_zero_and_quiet() -> None:
    z = np.array([0, 3 + 4j, -2j])
    check(c.sign, lambda z: [0, 0.6 + 0.8j, -1j], z)


def test_complex_keeps_infinities_and_signs_of_zeros() -> None:
    re, im = np.array([np.inf, -0.0, 1.0]), np.array([1.0, -0.0, np.inf])
    kernel, _ = kernel_of(c.complex, (spec_of(re), spec_of(im)), {})
    z = kernel(re, im)
    np.testing.assert_array_equal(z.real, re)
    np.testing.assert_array_equal(z.imag, im)
    assert np.signbit(z.real[1]) and np.signbit(z.imag[1])


@pytest.mark.parametrize("order", [0, 1, 2, 5])
def test_polygamma_obeys_its_recurrence(order: int) -> None:
    """``psi_n(x + 1) = psi_n(x) + (-1)**n n! / x**(n + 1)``."""
    x = np.linspace(0.3, 7, 11)
    kernel, out = kernel_of(c.polygamma, (spec_of(x),), {"order": order})
    agree(kernel(x + 1), out, kernel(x) + (-1) ** order * math.factorial(order) / x ** (order + 1), 1e-9)


def test_polygamma_beyond_the_range_of_the_factorial() -> None:
    with pytest.raises(UnsupportedError, match="order 171 leaves the range of float64; use an order of at most 170"):
        kernel_of(c.polygamma, (Spec((), np.dtype("float64")),), {"order": 171})


def test_population_count_without_the_library_s_own() -> None:
    """CuPy has no ``bitwise_count``; the portable way agrees with it on every edge."""

    class Without:
        def __getattr__(self, name: str) -> Any:
            if name == "bitwise_count":
                raise AttributeError(name)
            return getattr(np, name)

    from tenferro_tensor.reference import bits

    portable = bits.kernels(Without(), lambda: None)[c.population_count]((), ())
    rng = np.random.default_rng(0)
    for dt in [d for d in DTYPES if d.kind in "iu"]:
        info = np.iinfo(dt)
        x = np.concatenate([np.array([info.min, info.max, 0, 1], dt), rng.integers(info.min, info.max, 50, dt)])
        expected = [abs(int(v)).bit_count() for v in x]
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            actual = portable(x)
        assert actual.dtype == np.uint8
        np.testing.assert_array_equal(actual, expected)
        np.testing.assert_array_equal(portable(x[0]), expected[0])
