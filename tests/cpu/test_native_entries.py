"""Entries: kernels as built-in functions of arrays, against the NumPy kernels that they stand in front of."""

import gc
import sys
import threading
import warnings
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from native_kernels import FUNCTIONS, has_form
from native_rooms import compiled
from tenferro_cpu.native import available
from tenferro_cpu.native.codegen.machine import _jit
from tenferro_cpu.native.eager import _eager
from tenferro_tensor import Spec, catalog
from tenferro_tensor.reference import kernels

REFERENCE = kernels(np, lambda: __import__("scipy.special").special)
DTYPES = ("float64", "float32", "complex128", "complex64", "int64", "int32", "int8", "uint64", "uint16", "bool")

pytestmark = pytest.mark.skipif(not available(), reason="native kernels are turned off, or llvmlite is missing")


def pair_of(primitive: Any, dtype: Any) -> tuple[Any, Any] | None:
    """The entry of a primitive and the NumPy kernel, where the primitive takes the dtype."""
    spec = Spec((4,), np.dtype(dtype))
    ins = (spec,) * len(primitive.operands)
    try:
        out = primitive.infer(*ins)
    except TypeError:
        return None
    return _eager.entries(REFERENCE)[primitive](ins, (out,)), REFERENCE[primitive](ins, (out,))


def count_fallbacks(primitive: Any, dtype: Any, monkeypatch: pytest.MonkeyPatch) -> tuple[Any, list[Any]]:
    """An entry whose NumPy kernel notes its calls."""
    calls: list[Any] = []
    run = pair_of(primitive, dtype)[1]

    def noted(*args: Any) -> Any:
        calls.append(args)
        return run(*args)

    spec = Spec((4,), np.dtype(dtype))
    ins = (spec,) * len(primitive.operands)
    make = _eager.entries({primitive: lambda ins, outs: noted})[primitive]
    return make(ins, (primitive.infer(*ins),)), calls


def numbers(rng: np.random.Generator, dtype: Any, n: int, *, special: bool) -> Any:
    d = np.dtype(dtype)
    if d.kind == "b":
        return rng.integers(0, 2, n).astype(d)
    if d.kind in "iu":
        info = np.iinfo(d)
        return rng.integers(info.min, info.max, n, endpoint=True, dtype=d)
    real = rng.normal(size=n) * 3
    if special and n:
        real[rng.integers(0, n, max(1, n // 3))] = rng.choice(
            [np.nan, np.inf, -np.inf, 0.0, -0.0, 1e-310, -1e-42, 1e300, 709.9, 1.0, -1.0]
        )
    with np.errstate(all="ignore"):
        return (real + 1j * real[::-1] if d.kind == "c" else real).astype(d)


def agree(got: Any, want: Any, exact: bool, size: Any, condition: Any = 1) -> None:
    assert type(got) is type(want)
    assert got.dtype == want.dtype
    assert got.shape == want.shape
    if exact:
        np.testing.assert_array_equal(got, want)
    else:
        eps = np.finfo(want.dtype).eps
        with np.errstate(all="ignore"):
            close = np.isclose(got, want, rtol=16 * eps * condition, atol=16 * eps * size, equal_nan=True)
        np.testing.assert_array_equal(np.where(close, want, got), want)


SAME_DTYPES = [p for p in _eager.EAGER if p is not catalog.convert]


@pytest.mark.parametrize("primitive", SAME_DTYPES, ids=lambda p: p.name)
@given(seed=st.integers(0, 2**32), n=st.integers(0, 70), dtype=st.sampled_from(DTYPES), special=st.booleans())
def test_entries_equal_numpy(primitive: Any, seed: int, n: int, dtype: str, special: bool) -> None:
    pair = pair_of(primitive, dtype)
    if pair is None:
        return
    rng = np.random.default_rng(seed)
    args = [numbers(rng, dtype, n, special=special) for _ in primitive.operands]
    if primitive is catalog.pow and np.dtype(dtype).kind == "i":
        args[1] &= 15  # a negative exponent is an error
    with np.errstate(all="ignore"):
        got, want = pair[0](*args), pair[1](*args)
    exact = np.dtype(dtype).kind in "biu" or primitive not in (
        *_eager.ANALYTIC, catalog.mul, catalog.div, catalog.abs, catalog.sign, catalog.absorbing_mul, catalog.pow,
    )  # fmt: skip
    if np.dtype(dtype).kind == "c" and special and want.dtype.kind in "fc":
        exact, keep = False, np.isfinite(want) & np.isfinite(got)
        got, want = np.where(keep, got, 0), np.where(keep, want, 0)  # which part is NaN or infinite is a convention
    size = 0 if exact else np.max(np.abs(args[0]), initial=0, where=np.isfinite(args[0]))
    if want.dtype.kind == "c" and primitive in (catalog.log1p, catalog.expm1):
        size = max(size, 1)  # NumPy loses the digits of small numbers
    agree(got, want, exact, size, growth(primitive, args))


def growth(primitive: Any, args: list[Any]) -> Any:
    """By how much a complex power magnifies the rounding of its logarithm: that is in both, here and in NumPy."""
    if args[0].dtype.kind != "c" or primitive not in (catalog.exp2, catalog.pow):
        return 1
    with np.errstate(all="ignore"):
        exponent = np.abs(args[0] * np.log(2) if primitive is catalog.exp2 else args[1] * np.log(args[0]))
    return np.where(exponent > 1, exponent, 1)


@pytest.mark.parametrize("source", DTYPES)
@pytest.mark.parametrize("target", DTYPES)
def test_conversions_equal_numpy(source: str, target: str) -> None:
    rng = np.random.default_rng(0)
    ins, out = (Spec((4,), np.dtype(source)),), Spec((4,), np.dtype(target))
    run = _eager.entries(REFERENCE)[catalog.convert](ins, (out,), dtype=np.dtype(target))
    plain = REFERENCE[catalog.convert](ins, (out,), dtype=np.dtype(target))
    for n in (1, 5, 16, 40):
        for special in (False, True):
            x = numbers(rng, source, n, special=special)
            with np.errstate(all="ignore"):
                got, want = run(x), plain(x)
            agree(got, want, True, 0)


@pytest.mark.parametrize(
    ("source", "value", "target", "text"),
    [("float64", 1e300, "float32", "overflow"), ("float64", np.nan, "int32", "invalid"),
     ("float32", 1e20, "int64", "invalid"), ("complex128", 1e300, "complex64", "overflow")],
)  # fmt: skip
def test_conversions_that_lose_numbers_warn_as_numpy_does(source: str, value: float, target: str, text: str) -> None:
    ins, out = (Spec((9,), np.dtype(source)),), Spec((9,), np.dtype(target))
    run = _eager.entries(REFERENCE)[catalog.convert](ins, (out,), dtype=np.dtype(target))
    x = np.ones(9, source)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        run(x)
    x[-1] = value
    with pytest.warns(RuntimeWarning, match=text):
        run(x)


@given(seed=st.integers(0, 2**32), n=st.integers(0, 70), dtype=st.sampled_from(DTYPES), special=st.booleans())
@pytest.mark.parametrize("primitive", _eager.TERNARY, ids=lambda p: p.name)
def test_entries_of_three_operands_equal_numpy(primitive: Any, seed: int, n: int, dtype: str, special: bool) -> None:
    if primitive is catalog.clamp and dtype.startswith("complex"):
        return
    rng = np.random.default_rng(seed)
    dtypes = [np.dtype("bool") if i == primitive.chooser else np.dtype(dtype) for i in range(3)]
    ins = tuple([Spec((4,), d) for d in dtypes])
    out = primitive.infer(*ins)
    run, plain = _eager.entries(REFERENCE)[primitive](ins, (out,)), REFERENCE[primitive](ins, (out,))
    args = [numbers(rng, d, n, special=special) for d in dtypes]
    agree(run(*args), plain(*args), True, 0)
    for odd in (1, True, np.float64(2.5)):
        for k in range(3):
            mixed = [odd if i == k else a for i, a in enumerate(args)]
            got, want = [], []
            for f, found in ((run, got), (plain, want)):
                try:
                    found.append(f(*mixed))
                except (TypeError, OverflowError) as error:
                    found.append(type(error))
            np.testing.assert_array_equal(got[0], want[0])


OPERANDS = {
    "rows": np.arange(12.0).reshape(3, 4),
    "row": np.arange(4.0) + 1,
    "column": np.arange(3.0)[:, None] + 1,
    "transposed": np.arange(12.0).reshape(4, 3).T,
    "strided": np.arange(24.0).reshape(3, 8)[:, ::2],
    "reversed": np.arange(4.0)[::-1],
    "misaligned": np.frombuffer(bytes(1) + np.arange(4.0).tobytes(), "float64", 4, offset=1),
    "swapped": np.arange(4.0).astype(">f8"),
    "read-only": np.broadcast_to(np.float64(2), (3, 4)),
    "subclass": np.arange(4.0).view(np.memmap),
    "single": np.float64(2.5),
    "0-d": np.array(2.5),
    "float32": np.arange(4, dtype="float32"),
    "empty": np.zeros((3, 0)),
    "float": 1.5,
    "int": 3,
    "large int": 2**60 + 1,
    "bool": True,
    "complex": 1 + 2j,
}


@pytest.mark.parametrize("y", OPERANDS, ids=str)
@pytest.mark.parametrize("x", OPERANDS, ids=str)
def test_whatever_comes_is_computed_or_refused_as_numpy_does(x: str, y: str) -> None:
    entry, numpy = pair_of(catalog.mul, "float64")
    a, b = OPERANDS[x], OPERANDS[y]
    try:
        want = numpy(a, b)
    except ValueError as error:
        with pytest.raises(ValueError, match="broadcast"):
            entry(a, b)
        assert "broadcast" in str(error)
        return
    got = entry(a, b)
    assert type(got) is type(want)
    np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize("args", [(), (1.0,), ("a", 1.0), (None, None), (np.zeros(2), object()), (np.zeros(2),) * 4])
def test_wrong_calls_are_refused_as_numpy_does(args: Any) -> None:
    entry, numpy = pair_of(catalog.add, "float64")
    with pytest.raises(TypeError) as want:
        numpy(*args)
    with pytest.raises(type(want.value)):
        entry(*args)
    with pytest.raises(TypeError, match="keyword"):
        entry(np.zeros(2), np.zeros(2), where=True)


@pytest.mark.parametrize(
    ("dtype", "number", "native"),
    [
        ("float64", 2.5, True),
        ("float64", 3, True),
        ("float64", 2**53, False),
        ("float64", 2**70, False),
        ("float64", True, False),
        ("float64", np.float64(2.5), True),
        ("float64", np.float32(2.5), False),
        ("float32", 2.5, True),
        ("float32", 1e-60, True),
        ("float32", np.inf, True),
        ("complex128", 2 - 1j, True),
        ("complex128", 2.5, True),
        ("complex64", 2.5, True),
        ("complex64", 2 - 1j, False),
        ("int32", 7, True),
        ("int8", -128, True),
        ("uint8", 255, True),
        ("uint64", 2**63, False),
    ],
    ids=repr,
)
def test_numbers_as_operands(dtype: str, number: Any, native: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    entry, calls = count_fallbacks(catalog.add, dtype, monkeypatch)
    x = np.arange(1, 6).astype(dtype)
    np.testing.assert_array_equal(entry(x, number), np.add(x, number))
    np.testing.assert_array_equal(entry(number, x), np.add(number, x))
    assert len(calls) == (0 if native else 2)


@pytest.mark.parametrize("number", [256, -1, 2**70])
def test_numbers_out_of_range_are_numpys_error(number: int) -> None:
    entry, _ = pair_of(catalog.add, "uint8")
    with pytest.raises(OverflowError, match="out of bounds|too large"):
        entry(np.zeros(3, "uint8"), number)


def test_a_finite_number_that_overflows_float32_warns_as_numpy() -> None:
    entry, _ = pair_of(catalog.mul, "float32")
    with pytest.warns(RuntimeWarning, match="overflow encountered in cast"):
        assert np.isinf(entry(np.ones(3, "float32"), 1e300)).all()


def test_results_go_into_a_given_array() -> None:
    entry, _ = pair_of(catalog.mul, "float64")
    x, y, out = np.arange(5.0), np.full(5, 3.0), np.zeros(5)
    assert entry(x, y, out) is out
    np.testing.assert_array_equal(out, 3 * x)
    for inside in (x, x[:5]):
        np.testing.assert_array_equal(entry(inside, y, inside), 3 * np.arange(5.0))
        x[:] = np.arange(5.0)
    memory = np.arange(8.0)
    entry(memory[:5], 2.0, memory[1:6])
    np.testing.assert_array_equal(memory, [0, 0, 2, 4, 6, 8, 6, 7])
    frozen = np.zeros(5)
    frozen.flags.writeable = False
    with pytest.raises(ValueError, match="read-only"):
        entry(x, y, frozen)
    with pytest.raises(ValueError, match="broadcast"):
        entry(x, y, np.zeros(4))
    with pytest.raises(TypeError):
        entry(x, y, "out")


WARNINGS = [
    (catalog.div, [1.0], [0.0], "divide by zero"),
    (catalog.div, [0.0], [0.0], "invalid value"),
    (catalog.mul, [1e300], [1e300], "overflow"),
    (catalog.sub, [np.inf], [np.inf], "invalid value"),
    (catalog.sqrt, [-1.0], None, "invalid value"),
    (catalog.exp, [1000.0], None, "overflow"),
    (catalog.log, [0.0], None, "divide by zero"),
    (catalog.log, [-1.0], None, "invalid value"),
    (catalog.log1p, [-2.0], None, "invalid value"),
    (catalog.atanh, [1.0], None, "divide by zero"),
    (catalog.acosh, [0.5], None, "invalid value"),
    (catalog.asin, [2.0], None, "invalid value"),
    (catalog.rsqrt, [0.0], None, "divide by zero"),
    (catalog.pow, [0.0], [-1.0], "divide by zero"),
    (catalog.pow, [-1.5], [0.5], "invalid value"),
    (catalog.pow, [1e300], [2.0], "overflow"),
    (catalog.remainder, [1.0], [0.0], "invalid value"),
    (catalog.fmod, [1.0], [0.0], "invalid value"),
    (catalog.floor_divide, [1.0], [0.0], "divide by zero"),
    (catalog.nextafter, [1.7976931348623157e308], [np.inf], "overflow"),
]


@pytest.mark.parametrize("n", [1, 7, 8, 100, 40000])
@pytest.mark.parametrize(("primitive", "x", "y", "text"), WARNINGS, ids=lambda v: getattr(v, "name", None))
def test_warnings_are_numpys(primitive: Any, x: list[float], y: Any, text: str, n: int) -> None:
    entry, _ = pair_of(primitive, "float64")
    usual = np.full(n, 1.5 if primitive is catalog.acosh else 0.5)
    args = []
    for value in (x, y)[: len(primitive.operands)]:
        args.append(usual.copy())
        args[-1][-1:] = value
    with pytest.warns(RuntimeWarning, match=text):
        entry(*args)
    with np.errstate(all="raise"), pytest.raises(FloatingPointError, match=text):
        entry(*args)
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("error")
        entry(*args)
        entry(*[usual] * len(args))


@pytest.mark.parametrize("n", [1, 3, 5, 8, 13, 100])
@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("primitive", SAME_DTYPES, ids=lambda p: p.name)
def test_ordinary_numbers_stay_native(primitive: Any, dtype: str, n: int, monkeypatch: pytest.MonkeyPatch) -> None:
    try:
        entry, calls = count_fallbacks(primitive, dtype, monkeypatch)
    except TypeError:
        pytest.skip("no such dtype")
    pair = pair_of(primitive, dtype)
    if pair is None or pair[0] is pair[1] or not has_form(primitive, *[dtype] * len(primitive.operands)):
        pytest.skip("no native form on this processor")
    x = np.linspace(1.1, 2.0, n).astype(dtype) * (1 if primitive is catalog.acosh else np.dtype(dtype).type(0.4))
    entry(*[x] * len(primitive.operands))
    assert not calls, "the NumPy kernel ran too"


@pytest.mark.parametrize(
    ("primitive", "x", "text"),
    [
        (catalog.log, 0, "divide by zero"),
        (catalog.log10, 0, "divide by zero"),
        (catalog.exp, 1e4 + 1j, "overflow"),
        (catalog.cosh, 1e4 + 1j, "overflow"),
        (catalog.exp, complex(1, np.inf), "invalid value"),
        (catalog.rsqrt, 0, "divide by zero|invalid value"),
    ],
    ids=lambda v: getattr(v, "name", None),
)
def test_warnings_of_complex_functions_are_numpys(primitive: Any, x: complex, text: str) -> None:
    entry, _ = pair_of(primitive, "complex128")
    z = np.full(9, 0.5 + 0.25j)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        entry(z)
    z[-1] = x
    with pytest.warns(RuntimeWarning, match=text):
        entry(z)


@pytest.mark.parametrize("dtype", ["int8", "uint16", "int32", "int64", "uint64"])
@pytest.mark.parametrize("primitive", [catalog.floor_divide, catalog.remainder, catalog.fmod], ids=lambda p: p.name)
def test_integers_divided_by_zero_warn_as_numpy_does(primitive: Any, dtype: str) -> None:
    entry, _ = pair_of(primitive, dtype)
    x, y = np.arange(1, 12).astype(dtype), np.arange(1, 12).astype(dtype)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        entry(x, y)
    y[7] = 0
    with pytest.warns(RuntimeWarning, match="divide by zero"):
        assert entry(x, y)[7] == 0


@FUNCTIONS
def test_error_functions_load_scipy_only_where_the_entry_does_not_serve() -> None:
    loaded: list[Any] = []

    def reference(ins: Any, outs: Any) -> Any:
        loaded.append(ins)
        return REFERENCE[catalog.erf](ins, outs)

    spec = Spec((4,), np.dtype("float64"))
    run = _eager.entries({catalog.erf: reference})[catalog.erf]((spec,), (spec,))
    assert run(np.arange(3.0))[0] == 0.0
    assert not loaded
    for other in (np.arange(6.0)[::2], np.arange(6.0).astype(">f8")[::2]):
        assert not loaded
        np.testing.assert_allclose(run(other), [0.0, 0.9953222650189527, 0.9999999845827421], rtol=1e-15)
    assert loaded


@FUNCTIONS
def test_long_arrays_go_to_numpy_where_it_is_faster(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_eager, "_short", lambda primitive, dtype: primitive is catalog.log)
    monkeypatch.setattr(_eager, "_kernels", {})  # those of earlier tests know their own limit
    entry, calls = count_fallbacks(catalog.log, "float64", monkeypatch)
    for n in (_eager.CALL_BOUND_MAX_ELEMENTS, _eager.CALL_BOUND_MAX_ELEMENTS + 1):
        np.testing.assert_allclose(entry(np.full(n, 2.0)), np.log(2.0), rtol=1e-15)
    assert [len(args[0]) for args in calls] == [_eager.CALL_BOUND_MAX_ELEMENTS + 1]


def test_nothing_is_written_outside_of_the_result() -> None:
    entry, _ = pair_of(catalog.mul, "float32")
    for n in range(70):
        memory = np.full(n + 64, -7.0, "float32")
        x = np.arange(n, dtype="float32")
        entry(x, x, memory[32 : 32 + n])
        np.testing.assert_array_equal(memory[32 : 32 + n], x * x)
        assert (memory[:32] == -7).all()
        assert (memory[32 + n :] == -7).all()


def test_no_reference_leaks() -> None:
    entry, _ = pair_of(catalog.div, "float64")
    x, y, out, number = np.arange(1.0, 9.0), np.arange(2.0, 10.0), np.zeros(8), 12345.678
    watched = [x, y, out, number, x.dtype, np.ndarray, entry]

    def all_ways() -> None:
        entry(x, y)
        entry(x, number)
        entry(number, y)
        entry(x, y, out)
        entry(x, y[::2].repeat(2))
        with np.errstate(all="ignore"):
            entry(x, 0.0)
        for bad in ((x, y[:3]), (x, "a"), (x,)):
            try:
                entry(*bad)
            except (ValueError, TypeError):
                pass

    all_ways()
    gc.collect()
    before = [sys.getrefcount(o) for o in watched]
    for _ in range(2000):
        all_ways()
    gc.collect()
    after = [sys.getrefcount(o) for o in watched]
    assert max(abs(a - b) for a, b in zip(after, before)) < 10


def test_memory_stays_level_over_many_calls() -> None:
    tracemalloc = pytest.importorskip("tracemalloc")
    entry, _ = pair_of(catalog.add, "float64")
    x = np.arange(2000.0)
    entry(x, x)
    tracemalloc.start()
    try:
        entry(x, x)
        start = tracemalloc.get_traced_memory()[0]
        for _ in range(100_000):
            entry(x, x)
        assert tracemalloc.get_traced_memory()[0] - start < 20_000
    finally:
        tracemalloc.stop()


def test_many_threads_at_once() -> None:
    entry, _ = pair_of(catalog.mul, "float64")
    wrong: list[Any] = []

    def work(seed: int) -> None:
        for n in (8, 100, 40_000) * 20:
            x = np.full(n, float(seed))
            if not (entry(x, x) == seed * seed).all():
                wrong.append((seed, n))

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_the_function_keeps_what_it_refers_to_alive() -> None:
    class Kernel:
        def __call__(self, *args: Any) -> str:
            return "fallback"

    kernel = Kernel()
    entry = compiled.ElementwiseEntry(0, (np.dtype("float64"),) * 2, kernel, kernel)
    del kernel
    gc.collect()
    assert entry("x") == "fallback"


def test_a_compiler_that_is_too_old_is_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_jit, "_version", lambda origin: (0, 44))
    assert "older than 0.45" in str(_jit.unavailable.__wrapped__())


@pytest.mark.parametrize("dtype", ["float64", "float32", "int64", "int8"])
def test_three_operands_with_numbers_at_every_size(dtype: str) -> None:
    """Beyond what the caches hold, the kernel itself takes numbers as well."""
    entry, run = pair_of(catalog.clamp, dtype)
    rng = np.random.default_rng(0)
    for n in (3, 5000, _eager.TERNARY_MIN_ELEMENTS + 7, 700_000):
        x = numbers(rng, dtype, n, special=True)
        for low, high in ((-3, 5), (x[0], 7), (-2, x[::-1].copy())):
            for _ in range(2):
                found = entry(x, low, high)
                assert found.dtype == x.dtype
                np.testing.assert_array_equal(found, run(x, low, high))
    if dtype == "int8":
        for _ in range(2):
            with pytest.raises(OverflowError):
                entry(x, -3, 1000)


@pytest.mark.parametrize("dtype", ["float64", "float32", "int64", "int8", "uint16"])
def test_squares_are_those_of_numpy(dtype: str) -> None:
    entry, run = pair_of(catalog.pow, dtype)
    rng = np.random.default_rng(0)
    for n in (1, 3, 5000, 700_000):
        x = numbers(rng, dtype, n, special=True)
        for exponent in (2, 2.0) if np.dtype(dtype).kind == "f" else (2,):
            for y in (x, x[::-1], x[None, ::2]):
                said: list[list[str]] = []
                results: list[Any] = []
                for power in (entry, run):
                    with warnings.catch_warnings(record=True) as seen:
                        warnings.simplefilter("always")
                        found = power(y, exponent)
                    said.append([str(w.message) for w in seen])
                    assert found.dtype == x.dtype
                    results.append(found)
                assert said[0] == said[1]
                np.testing.assert_array_equal(*results)
