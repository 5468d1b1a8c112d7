"""Entries without a compiler: the inner loops of NumPy's ufuncs with their bits, reductions compiled ahead of time."""

import warnings
from typing import Any

import numpy as np
import pytest

from native_rooms import compiled
from tenferro_cpu.native import available
from tenferro_cpu.native.eager import _eager, _eager_reduce
from tenferro_tensor import Spec, catalog
from tenferro_tensor.reference import kernels

pytestmark = pytest.mark.skipif(compiled is None, reason="there is no C extension")

REFERENCE = kernels(np, lambda: None)
DTYPES = ("float64", "float32", "complex128", "complex64", "int64", "int32", "int8", "uint64", "uint16", "bool")
PRIMITIVES = [p for p in _eager.EAGER if p not in (catalog.convert, catalog.erf, catalog.erfc)]


def looped(primitive: Any, dtype: str) -> Any:
    """The entry of a primitive and its ufunc, or None where it is not one ufunc without conversions."""
    ins = (Spec((4,), np.dtype(dtype)),) * len(primitive.operands)
    try:
        out = primitive.infer(*ins)
    except TypeError:
        return None
    made = _eager._maker_of_loops(primitive, REFERENCE[primitive])(ins, (out,))
    return (made, REFERENCE[primitive](ins, (out,))) if isinstance(made, compiled.ElementwiseEntry) else None


def values(dtype: str, n: int, seed: int) -> Any:
    rng, d = np.random.default_rng(seed), np.dtype(dtype)
    if d.kind in "biu":
        return rng.integers(-100, 100, n).astype(d)
    real = rng.normal(size=n) * 3
    real[::5] = rng.choice([np.nan, np.inf, -np.inf, 0.0, -0.0, 1e-310, 1e300], len(real[::5]))
    with np.errstate(all="ignore"):
        return (real + 1j * real[::-1] if d.kind == "c" else real).astype(d)


def outcome(run: Any, *args: Any) -> tuple[Any, ...]:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        found = run(*args)
    return type(found), found.dtype, found.shape, found.tobytes(), sorted(str(w.message) for w in caught)


@pytest.mark.parametrize("primitive", PRIMITIVES, ids=lambda p: p.name)
@pytest.mark.parametrize("dtype", DTYPES)
def test_bits_and_warnings_are_those_of_the_ufunc(primitive: Any, dtype: str) -> None:
    found = looped(primitive, dtype)
    if found is None:
        return
    entry, ufunc = found
    for n in (0, 1, 7, 64, 1001, 40_000):
        args = [values(dtype, n, seed) for seed, _ in enumerate(primitive.operands)]
        assert outcome(entry, *args) == outcome(ufunc, *args)
        if n < 4:
            continue
        with np.errstate(all="ignore"):
            calm = [np.ones(n, dtype)] * len(args)
            np.testing.assert_array_equal(entry(*calm, into := np.empty_like(ufunc(*calm))), ufunc(*calm))
            assert entry(*calm, into) is into
        if len(args) == 2:
            number = args[1][1]
            assert outcome(entry, args[0], number) == outcome(ufunc, args[0], number)
            assert outcome(entry, number, args[0]) == outcome(ufunc, number, args[0])


def test_all_but_composed_functions_have_an_entry() -> None:
    having = [p for p in PRIMITIVES if looped(p, "float64") is not None]
    assert {catalog.add, catalog.mul, catalog.exp, catalog.lt, catalog.atan2, catalog.abs} < set(having)
    assert looped(catalog.rsqrt, "float64") is None
    assert looped(catalog.sin, "float64")[0].owner is np.sin


@pytest.mark.parametrize("state", ["raise", "warn", "ignore"])
def test_errstate_is_obeyed(state: Any) -> None:
    entry, _ = looped(catalog.div, "float64")
    one, zero = np.ones(9), np.zeros(9)
    with np.errstate(all=state):
        if state == "raise":
            with pytest.raises(FloatingPointError):
                entry(one, zero)
        elif state == "warn":
            with pytest.warns(RuntimeWarning, match="divide by zero"):
                entry(one, zero)
        else:
            assert np.isinf(entry(one, zero)).all()
    loop, _ = looped(catalog.exp, "float64")
    with np.errstate(under="raise"), pytest.raises(FloatingPointError):
        loop(np.full(9, -745.0))


def test_only_loops_of_a_ufunc_for_its_dtypes_are_taken() -> None:
    f8, i1 = np.dtype("f8"), np.dtype("i1")
    for loop, out in ((len, f8), (np.add, i1), (np.negative, f8), (np.divmod, f8), (np.matmul, f8)):
        with pytest.raises(TypeError, match="loop"):
            compiled.ElementwiseEntry(0, (f8, f8, out), len, len, loop=loop)  # type: ignore[arg-type]


REDUCTIONS = [
    (p, d) for p, (_, kinds) in _eager_reduce._KINDS.items() for d in DTYPES if np.dtype(d).kind in kinds
]  # fmt: skip


@pytest.mark.parametrize(("primitive", "dtype"), REDUCTIONS, ids=str)
def test_reductions_agree_with_numpy_and_with_compiled_ones(primitive: Any, dtype: str) -> None:
    kind, kinds = _eager_reduce._KINDS[primitive]
    makers = [_eager_reduce._maker_of_rows, *([_eager_reduce._maker] if available() else [])]
    for shape in ((40,), (12, 11), (700, 3), (3, 700), (60, 800), (5, 6, 7)):
        x = values(dtype, int(np.prod(shape)), 1).reshape(shape)
        x = np.where(np.isfinite(x) & (np.abs(x) < 100), x, np.ones((), dtype)).astype(dtype)
        for count in range(1, len(shape) + 1):
            for axes in {tuple(range(count)), tuple(range(len(shape) - count, len(shape)))}:
                spec = Spec(shape, x.dtype)
                out = primitive.infer(spec, axes=axes)
                plain = REFERENCE[primitive]((spec,), (out,), axes=axes)
                made = [make(kind, kinds, REFERENCE[primitive])((spec,), (out,), axes=axes) for make in makers]
                assert all(isinstance(entry, compiled.FusedEntry) for entry in made)
                with np.errstate(all="ignore"):
                    found, wanted = [entry(x) for entry in made], plain(x)
                assert len({f.tobytes() for f in found}) == 1
                scale = np.finfo(x.dtype).eps * x.size if x.dtype.kind in "fc" else 0
                if not np.isfinite(wanted).all():  # products leave the range
                    continue
                np.testing.assert_allclose(found[0], wanted, rtol=scale, atol=scale * np.abs(x).max())
                assert found[0].dtype == wanted.dtype


def test_sums_that_are_not_finite_are_numpys() -> None:
    spec = Spec((40,), np.dtype("f8"))
    entry = _eager_reduce._maker_of_rows("sum", "f", REFERENCE[catalog.reduce_sum])(
        (spec,), (Spec((), spec.dtype),), axes=(0,)
    )
    with pytest.warns(RuntimeWarning, match="overflow"):
        entry(np.full(40, 1e308))
