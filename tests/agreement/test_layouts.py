"""Results follow from values alone: how operands lie in memory changes no bit, in eager calls and in exact programs."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tenferro_runtime as tr
from native_kernels import FUNCTIONS
from tenferro_runtime.running import fusion
from tenferro_tensor import Primitive, Spec, catalog
from tenferro_tensor_core import DTYPES, TenferroError
from thorough import THOROUGH

Array = np.ndarray[Any, Any]
pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")

PRIMITIVES = sorted(
    {p for p in vars(catalog).values() if isinstance(p, Primitive) and p.elementwise}, key=lambda p: p.name
)
PARAMS: dict[str, dict[str, Any]] = {"convert": {"dtype": np.dtype("int32")}, "polygamma": {"order": 1}}


LAYOUTS = {
    "columns": lambda x: x.copy("F"),
    "transposed": lambda x: x.T,
    "steps": lambda x: x[::2, ::3],
    "part of rows": lambda x: x[:, 1:-1],
    "every second row": lambda x: x[::2],
    "backwards": lambda x: x[::-1, ::-1],
    "one row": lambda x: np.broadcast_to(x[0], x.shape),
    "one column": lambda x: np.broadcast_to(x[:, :1], x.shape),
    "one number": lambda x: np.broadcast_to(x[:1, :1], x.shape),
    "three axes": lambda x: np.stack([x, x]).transpose(2, 0, 1),
    "a vector in steps": lambda x: x.ravel()[::3],
}
SHAPES = ((5, 7), (33, 18), (70, 90))


def values(rng: np.random.Generator, dtype: Any, shape: tuple[int, ...], which: int) -> Array:
    if dtype.kind == "b":
        return rng.random(shape) < 0.5
    if dtype.kind in "iu":
        return rng.integers(1, 7, shape).astype(dtype)
    x = rng.uniform(0.05, 0.95, shape) * np.exp(rng.standard_normal(shape) * (which == 1))
    return (x + 1j * rng.uniform(-1, 1, shape) if dtype.kind == "c" else x).astype(dtype)


def admitted(primitive: Primitive, dtype: Any) -> bool:
    specs = [Spec((), np.dtype(bool) if i == primitive.chooser else dtype) for i in range(len(primitive.operands))]
    try:
        primitive.infer(*specs, **PARAMS.get(primitive.name, {}))
    except TenferroError:
        return False
    return True


def same_bits(got: Any, want: Any) -> bool:
    """Equal, signs of zeros included; NaN is NaN."""
    got, want = np.asarray(got.data), np.asarray(want.data)
    if got.dtype == want.dtype and got.shape == want.shape and got.tobytes() == want.tobytes():
        return True
    signs = [np.array_equal(np.signbit(f(got)), np.signbit(f(want))) for f in (np.real, np.imag)]
    return bool(
        got.dtype == want.dtype
        and np.array_equal(got, want, equal_nan=want.dtype.kind in "fc")
        and (want.dtype.kind != "f" or signs[0] or bool(np.isnan(want).any()))
        and (want.dtype.kind != "c" or all(signs) or bool(np.isnan(want).any()))
    )


@FUNCTIONS
@pytest.mark.parametrize("dtype", DTYPES, ids=lambda d: d.name)
def test_every_element_wise_primitive(dtype: Any) -> None:
    """Layouts take the shapes by turns; every pair of a primitive, a dtype and a layout is tried."""
    rng, wrong = np.random.default_rng(3), set()
    for number, primitive in enumerate(PRIMITIVES):
        if not admitted(primitive, dtype):
            continue
        op = primitive.op(**PARAMS.get(primitive.name, {}))
        for turn, shape in enumerate(SHAPES):
            plain = [
                values(rng, np.dtype(bool) if i == primitive.chooser else dtype, shape, i)
                for i in range(len(primitive.operands))
            ]
            layouts = (
                [*LAYOUTS.items()] if THOROUGH else [*LAYOUTS.items()][(turn + number) % len(SHAPES) :: len(SHAPES)]
            )
            for name, layout in layouts:
                laid = [layout(x) for x in plain]
                mixed = [laid[0], *[x.copy("C") for x in laid[1:]]]
                want = op(*[tr.asarray(x.copy("C")) for x in laid])
                for _ in range(4):  # what comes again has machine code of its own
                    for operands in (laid, mixed):
                        if not same_bits(op(*[tr.asarray(x, copy=False) for x in operands]), want):
                            wrong.add((primitive.name, name, shape))
    assert not wrong


@FUNCTIONS
@pytest.mark.parametrize("f", [tr.hypot, tr.atan2, tr.logaddexp, tr.pow, tr.divide, tr.floor_divide, tr.remainder])
def test_operands_that_broadcast_and_numbers(f: Any) -> None:
    rng = np.random.default_rng(5)
    x, y = rng.uniform(0.1, 3, (40, 30)), rng.uniform(0.1, 3, (40, 30))
    for a, b in ((x.T, y[:, 0]), (x[:, ::2], y[:, :1]), (x[::2], y[0]), (x[:, :1], y[:1]), (x[::-1, :1], y[:1, ::-1])):
        want = f(tr.asarray(a.copy("C")), tr.asarray(b.copy("C")))
        by_number = f(tr.asarray(a.copy("C")), 1.7)
        for _ in range(4):
            assert same_bits(f(tr.asarray(a, copy=False), tr.asarray(b, copy=False)), want)
            assert same_bits(f(tr.asarray(a, copy=False), 1.7), by_number)


@FUNCTIONS
def test_warnings_change_no_other_element() -> None:
    """NumPy computes what it warns of, from operands that lie in one way as well."""
    x = np.linspace(0.1, 3, 3000).reshape(50, 60)
    x[7, 8], x[1, 2] = 1e4, -1.0
    for f in (tr.exp, tr.log, tr.sqrt, tr.sinh):
        for layout in LAYOUTS.values():
            laid = layout(x)
            want = f(tr.asarray(laid.copy("C")))
            for _ in range(4):
                assert same_bits(f(tr.asarray(laid, copy=False)), want)


def test_a_function_of_what_is_repeated_in_an_exact_program() -> None:
    z = tr.asarray(np.random.default_rng(0).standard_normal(1000) + 1j)

    def f(z: Any) -> Any:
        return tr.exp(tr.real(tr.broadcast_to(z, (2, 1000))))

    compiled = tr.compile(f, deterministic=True)
    for _ in range(3):
        assert same_bits(compiled(z), f(z))
        fusion.wait()


STEPS = {
    "transpose": lambda x: x.T, "again": lambda x: x.T.T, "flip": lambda x: tr.flip(x, axis=0), "cut": lambda x: x[1:],
    "every second": lambda x: x[:, ::2] if x.shape[1] > 2 else x, "times one": lambda x: x * 1.0,
    "wide": lambda x: tr.reshape(tr.reshape(x, (-1,)), x.shape),
    "repeat": lambda x: tr.reshape(tr.broadcast_to(x, (2, *x.shape)), (-1, x.shape[1])),
    "double": lambda x: tr.broadcast_to(x[:1], x.shape) * tr.broadcast_to(x[:1], x.shape),
    "negative": lambda x: -(-x), "parts": lambda x: tr.real(x) + tr.imag(x) * 0.5, "turn": lambda x: x * (0.6 + 0.8j),
    "exp": tr.exp, "sin": tr.sin, "abs": tr.abs, "scale": lambda x: x / 4.0, "shift": lambda x: x + 0.25,
    "centre": lambda x: x - tr.mean(x, axis=0), "normal": lambda x: x / (1 + tr.sum(tr.abs(x), axis=1, keepdims=True)),
    "product": lambda x: (x @ x.T) @ x / (1 + tr.max(tr.abs(x))) ** 2, "whole": lambda x: x * tr.sum(tr.abs(x)) * 1e-3,
    "narrow": lambda x: tr.astype(tr.astype(tr.real(x), "float32"), "float64"),
}  # fmt: skip


@given(
    names=st.lists(st.sampled_from(sorted(STEPS)), min_size=1, max_size=7),
    rows=st.sampled_from([4, 37, 130]),
    columns=st.sampled_from([4, 29, 70]),
    layout=st.sampled_from(["columns", "every second row", "backwards", "part of rows"]),
    seed=st.integers(0, 99),
)
def test_exact_programs_give_the_bits_of_eager_calls(
    names: list[str], rows: int, columns: int, layout: str, seed: int
) -> None:
    rng = np.random.default_rng(seed)
    x = LAYOUTS[layout](rng.uniform(-1, 1, (rows, columns)))

    def f(x: Any) -> Any:
        for name in names:
            x = STEPS[name](x)
        return x, tr.sum(x, axis=0)

    operand = tr.asarray(x, copy=False)
    want = f(operand)
    compiled = tr.compile(f, deterministic=True)
    for _ in range(2):
        for got, eager in zip(compiled(operand), want, strict=True):
            assert same_bits(got, eager)
        fusion.wait()
