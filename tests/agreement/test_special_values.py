"""Zeros, infinities, NaN, subnormal and extreme numbers: every way to run a function gives what the reference gives.

Where NumPy and the array API standard differ the standard holds; `array_api_special` has its cases.
"""

import itertools
import math
from typing import Any

import numpy as np
import pytest

import tenferro_runtime as tr
from array_api_special import BINARY, COMPLEX, UNARY, collected
from tenferro_cpu.native import available
from tenferro_runtime.running import fusion
from tenferro_tensor import Primitive, Spec, catalog, tensor
from tenferro_tensor_core import DTYPES, TenferroError
from tenferro_xla import XlaExecutor
from ways import PLAIN

Array = np.ndarray[Any, Any]
pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")

INF, NAN = math.inf, math.nan
REAL = [d for d in DTYPES if d.kind != "c"]
COMPLEX_DTYPES = [d for d in DTYPES if d.kind == "c"]
ELSEWHERE = {
    "convert": "what is out of range in an integer is nobody's law",
    "shift_left": "C leaves shifts by more than the width open",
    "shift_right": "C leaves shifts by more than the width open",
    "pow": "of integers it refuses negative exponents; of complex numbers C99 leaves the edges open",
    "polygamma": "takes an order",
}
"""Primitives that the grid leaves out, and why."""

PRIMITIVES = sorted(
    {p for p in vars(catalog).values() if isinstance(p, Primitive) and p.elementwise and p.name not in ELSEWHERE},
    key=lambda p: p.name,
)


def grid(dtype: Any) -> Array:
    """The numbers of one operand."""
    if dtype.kind == "b":
        return np.array([False, True])
    if dtype.kind in "iu":
        limits = np.iinfo(dtype)
        numbers = {0, 1, 2, 3, 7, limits.max, limits.max - 1, limits.min, limits.min + 1}
        return np.array(sorted(numbers | ({-1, -2, -3, -7} if dtype.kind == "i" else set())), dtype)
    if dtype.kind == "c":
        parts = [0.0, -0.0, INF, -INF, NAN, 1.0, -2.5, 0.5]
        return np.array([complex(a, b) for a, b in itertools.product(parts, parts)], dtype)
    info = np.finfo(dtype)
    sizes = [0.0, INF, 1.0, 2.0, 0.5, 0.75, 1.5, 2.5, 3.0, 89.0, 100.0, 710.0, 1e-5, 1e10]
    sizes += [float(info.tiny), float(info.smallest_subnormal), float(info.max), float(info.eps)]
    return np.array([*sizes, *[-s for s in sizes], NAN], dtype)


def admitted(primitive: Primitive, dtype: Any) -> bool:
    specs = [Spec((), np.dtype(bool) if i == primitive.chooser else dtype) for i in range(len(primitive.operands))]
    try:
        primitive.infer(*specs)
    except TenferroError:
        return False
    return True


def operands(primitive: Primitive, dtype: Any) -> list[Array]:
    """All pairs; a third operand is the middle of the grid, again and again."""
    x = grid(dtype)
    count = len(primitive.operands) - (primitive.chooser is not None)
    if count > 1:
        some = x if x.size <= 40 else x[:: x.size // 40 + 1]
        x, y = (np.ascontiguousarray(a).ravel() for a in np.broadcast_arrays(x[:, None], some))
        found = [x, y, np.roll(y, 5)][:count]
    else:
        found = [x]
    if primitive.chooser is not None:
        found.insert(primitive.chooser, np.arange(x.size) % 2 == 0)
    return found


def wrong(got: Any, want: Array, slack: float) -> Array:
    """Where two results differ: NaN, infinities and zeros with their signs; beside a NaN signs are free."""
    got = np.asarray(got)
    assert got.dtype == want.dtype and got.shape == want.shape
    if want.dtype.kind not in "fc":
        return got != want
    if want.dtype.kind == "f":
        return _wrong(got, want, slack, np.abs(want))
    size = np.maximum(np.abs(want.real), np.abs(want.imag))
    blurred = np.isnan(want.real) | np.isnan(want.imag)
    pairs = [(got.real, want.real), (got.imag, want.imag)]
    exact = np.logical_or(*(_wrong(a, b, slack, size) for a, b in pairs))
    loose = np.logical_or(*(_wrong(np.abs(a), np.abs(b), slack, size) for a, b in pairs))
    return np.where(blurred, loose, exact)


def _wrong(got: Array, want: Array, slack: float, size: Array) -> Array:
    equal = (got == want) & (np.signbit(got) == np.signbit(want)) | (np.isnan(got) & np.isnan(want))
    ordinary = np.isfinite(got) & np.isfinite(want) & (want != 0)
    smallest = np.finfo(want.dtype).smallest_subnormal
    return ~(equal | (ordinary & (np.abs(got - want) <= slack * size + smallest)))


def stretched(x: Array) -> Array:
    return np.repeat(x, 2)[::2]


def ways(primitive: Primitive, xs: list[Array]) -> Any:
    op = primitive.op()
    plain = [tr.asarray(x) for x in xs]
    yield "eager", lambda: op(*plain).data
    yield "many", lambda: op(*[tr.asarray(np.tile(x, 7)) for x in xs]).data[-xs[0].size :]
    apart = [tr.asarray(stretched(x), copy=False) for x in xs]
    for time in range(4):
        yield f"in steps, {time}", lambda: op(*apart).data
    for deterministic in (False, True):
        compiled = tr.compile(lambda *xs: tr.stop_gradient(op(*xs)), deterministic=deterministic)
        compiled(*plain)
        fusion.wait()
        yield f"compiled, {deterministic=}", lambda compiled=compiled: compiled(*plain).data


UNLIKE = {
    ("log1p", "complex"), ("exp2", "complex"), ("lgamma", "float"), ("digamma", "float"), ("erfinv", "float"),
}  # fmt: skip
"""NumPy's or SciPy's are off by more than the slack, or machine code writes them out."""


@pytest.mark.parametrize("dtype", DTYPES, ids=lambda d: d.name)
def test_every_way_gives_what_the_reference_gives(dtype: Any) -> None:
    slack = 4e-6 if dtype in (np.dtype("float32"), np.dtype("complex64")) else 4e-14
    bad = []
    for primitive in PRIMITIVES:
        kind = {"f": "float", "c": "complex"}.get(dtype.kind, "")
        if not admitted(primitive, dtype) or (primitive.name, kind) in UNLIKE:
            continue
        xs = operands(primitive, dtype)
        specs = tuple([Spec(x.shape, x.dtype) for x in xs])
        want = np.asarray(PLAIN[primitive](specs, (primitive.infer(*specs),))(*xs))
        for name, run in ways(primitive, xs):
            where = np.flatnonzero(wrong(run(), want, slack))
            if where.size:
                i = where[0]
                bad.append((primitive.name, name, [x[i] for x in xs], np.asarray(run())[i], want[i]))
    assert not bad, "\n".join(map(str, bad))


H = math.sqrt(0.5)
DIRECTIONS = [
    (complex(0.0, 0.0), 0j), (complex(-0.0, -0.0), 0j), (complex(-0.0, 0.0), 0j),
    (complex(NAN, 1.0), complex(NAN, NAN)), (complex(1.0, NAN), complex(NAN, NAN)),
    (complex(INF, 1.0), complex(1.0, 0.0)), (complex(-INF, -1.0), complex(-1.0, -0.0)),
    (complex(2.0, -INF), complex(0.0, -1.0)), (complex(INF, INF), complex(H, H)), (complex(-INF, INF), complex(-H, H)),
    (complex(3.0, -4.0), complex(0.6, -0.8)), (complex(3e38, 3e38), complex(H, H)),
    (complex(1e-45, 1e-45), complex(H, H)),
]  # fmt: skip
"""Signs of complex numbers; those of infinite ones, which the array API standard leaves open, are directions."""

TABLES = {"f": (UNARY, BINARY), "c": (COMPLEX,)}
TABULATED = [
    (name, dtype)
    for dtype in DTYPES
    if dtype.kind in "fc" and dtype.itemsize >= 4
    for name in (("floor_divide", "pow", "remainder") if dtype.kind == "f" else ("expm1", "log1p", "tanh"))
]
"""Functions of which the reference departs from NumPy, or that the grid above leaves out."""


def alike(got: Any, want: complex, dtype: Any) -> bool:
    whole = np.array([want]).astype(dtype)
    return not wrong(np.asarray(got).astype(dtype).reshape(1), whole, 1e-6)[0]


def test_directions_of_complex_numbers() -> None:
    sign = catalog.sign
    for dtype in COMPLEX_DTYPES:
        x = np.array([z for z, _ in DIRECTIONS], dtype)
        spec = Spec(x.shape, dtype)
        found = {"reference": np.asarray(PLAIN[sign]((spec,), (sign.infer(spec),))(x))}
        found |= {way: np.asarray(run()) for way, run in ways(sign, [x])}
        found["without axes"] = np.array([sign.op()(tensor(z)).data for z in x])
        for way, values in found.items():
            assert [c for c, y in zip(DIRECTIONS, values, strict=True) if not alike(y, c[1], dtype)] == [], way


@pytest.mark.parametrize(("name", "dtype"), TABULATED, ids=lambda v: getattr(v, "name", v))
def test_cases_of_the_array_api_standard(name: str, dtype: Any) -> None:
    primitive: Primitive = getattr(catalog, name)
    cases = collected(dtype.name, *TABLES[dtype.kind])[name]
    for way, run in ways(primitive, cases.arrays()):
        assert not cases.wrong(np.asarray(run())), way


EDGES_OF_XLA = set("abs acos acosh asinh atanh cosh exp expm1 log log1p sinh sqrt tanh".split())
"""Functions of complex numbers that XLA has of its own, with NaN in more places than the standard."""


@pytest.mark.parametrize("dtype", [d for d in DTYPES if d.kind in "fc" and d.itemsize >= 4], ids=lambda d: d.name)
def test_cases_of_the_standard_in_xla(dtype: Any) -> None:
    names = collected(dtype.name, *TABLES[dtype.kind])
    tables = {n: cases for n, cases in names.items() if dtype.kind == "f" or n not in EDGES_OF_XLA}
    operands = [[tr.asarray(x) for x in cases.arrays()] for cases in tables.values()]

    def everything(*groups: Any) -> tuple[Any, ...]:
        return tuple([getattr(tr, n)(*xs) for n, xs in zip(tables, groups, strict=True)])

    found = XlaExecutor().run(tr.trace(everything, *operands), *[x for xs in operands for x in xs])
    assert not {n: bad for (n, c), got in zip(tables.items(), found, strict=True) if (bad := c.wrong(got.numpy()))}


def test_directions_of_complex_numbers_in_xla() -> None:
    # XLA takes subnormal numbers for zeros.
    cases = [(z, want) for z, want in DIRECTIONS if z == 0 or not abs(z) < 1e-30]
    for dtype in COMPLEX_DTYPES:
        x = tr.asarray(np.array([z for z, _ in cases], dtype))
        (got,) = XlaExecutor().run(tr.trace(lambda x: (tr.sign(x),), x), x)
        assert [c for c, y in zip(cases, got.numpy(), strict=True) if not alike(y, c[1], dtype)] == []


@pytest.mark.skipif(not available(), reason="there is no machine code")
def test_signs_of_zeros_in_reductions() -> None:
    for dtype in ("float32", "float64"):
        for n in (1, 5, 40, 3000):
            x = np.full(n, -0.0, dtype)
            for name in ("sum", "prod", "max", "min"):
                got, want = getattr(tr, name)(tr.asarray(x)), getattr(np, name)(x)
                assert np.signbit(got.data) == np.signbit(want), (name, n)
            for special in (INF, -INF, NAN):
                x[n // 2] = special
                for name in ("sum", "prod", "max", "min", "mean"):
                    got, want = getattr(tr, name)(tr.asarray(x)), getattr(np, name)(x)
                    np.testing.assert_array_equal(np.asarray(got.data), want)
