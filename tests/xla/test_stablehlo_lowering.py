"""Every lowered primitive, compiled and run by XLA, agrees with the CPU kernel; special values included."""

import re

import numpy as np
import pytest

import tenferro_runtime as tr
import tenferro_tensor.catalog as c
from operations import OPERATIONS, dtypes_of
from simulated.installed import simulated
from tenferro_runtime import Program
from tenferro_runtime.extension import Builder, ProgramError, call
from tenferro_runtime.running.fusion import parts
from tenferro_tensor import ComputeDevice, MemorySpace, Place, Primitive, Spec, tensor
from tenferro_tensor_core import ArgumentError, BackendUnavailableError, PlacementError, UnsupportedError, dim
from tenferro_xla import XlaExecutor, lower_to_stablehlo
from tenferro_xla.lowerings import CORE

XLA = XlaExecutor()
NAN, INF = float("nan"), float("inf")
REAL = [0.0, -0.0, 0.5, -0.5, 1.5, 2.5, -2.5, 0.25, 3.0, -3.0, INF, -INF, NAN]
COMPLEX = [0.5 + 0.25j, -1.5 + 2j, 0.3 - 0.7j, -0.2 - 0.1j]
INTEGERS = [0, 1, 2, 3, 5, 7, 100]

REALS = ["float32", "float64"]
FLOATS = [*REALS, "complex64", "complex128"]
WHOLE = ["int8", "int32", "int64", "uint8", "uint64"]
NOT_LOWERED = {"define_size", "transfer"}


def program_of(f, *arrays):
    b = Builder()
    inputs = [b.input(Spec(a.shape, a.dtype)) for a in arrays]
    out = f(*inputs)
    return b.close(list(out) if isinstance(out, tuple) else [out])


def values(dtype):
    kind = np.dtype(dtype).kind
    if kind == "b":
        return np.array([False, True, True])
    if kind == "c":
        return np.array(COMPLEX, dtype)
    if kind == "f":
        return np.array(REAL, dtype)
    return np.array(INTEGERS + ([-1, -2, -7] if kind == "i" else []), dtype)


def agree(f, *arrays, ulps=64):
    """The program of `f` by XLA against `f` run by the CPU backend."""
    program = program_of(f, *arrays)
    with np.errstate(all="ignore"):
        want = f(*map(tensor, arrays))
    want = want if isinstance(want, tuple) else (want,)
    for got, w in zip(XLA.run(program, *arrays), want, strict=True):
        assert got.spec is w.spec
        a, b = got._concrete(), w._concrete()
        if w.spec.inexact:
            eps = np.finfo(w.dtype).eps
            np.testing.assert_allclose(a, b, rtol=ulps * eps, atol=ulps * eps)
        else:
            np.testing.assert_array_equal(a, b)


def lowered(arity):
    """Element-wise primitives without metadata, and the dtypes that they take."""
    return {
        p: dtypes_of(row.kinds, (*FLOATS, *WHOLE, "bool"))
        for p, row in OPERATIONS.items()
        if len(p.operands) == arity and not p.metadata and p not in TESTED_BELOW
    }


TESTED_BELOW = (c.pow, c.shift_left, c.shift_right)
UNARY = lowered(1)

# Where the libraries disagree about limits that no derivative or program should rest on.
INTERIOR = {c.digamma: [0.5, 1.5, 3.0], c.lgamma: [0.5, 1.5, 3.0, INF], c.erfinv: [0.5, -0.25, 0.0, 0.9],
            c.rsqrt: [0.5, 2.5, 3.0, INF]}  # fmt: skip


@pytest.mark.parametrize(("p", "dtype"), [(p, d) for p, ds in UNARY.items() for d in ds], ids=str)
def test_unary(p, dtype):
    x = values(dtype)
    if p in INTERIOR and x.dtype.kind == "f":
        x = np.array(INTERIOR[p], dtype)
    agree(p, x)


BINARY = lowered(2)


@pytest.mark.parametrize(("p", "dtype"), [(p, d) for p, ds in BINARY.items() for d in ds], ids=str)
def test_binary_on_all_pairs(p, dtype):
    v = values(dtype)
    x, y = (np.ascontiguousarray(a) for a in np.broadcast_arrays(v[:, None], v[None, :]))
    if p in (c.floor_divide, c.remainder, c.fmod) and x.dtype.kind == "f":
        # With infinite operands NumPy itself is not of one mind between versions.
        keep = np.isfinite(x) & np.isfinite(y) & (y != 0)
        x, y = x[keep], y[keep]
    agree(p, x, y)


def test_power():
    agree(c.pow, np.array([0.5, 2.0, -2.0, 0.0]), np.array([2.0, -1.5, 3.0, 0.0]))
    agree(c.pow, np.array(COMPLEX), np.array(COMPLEX[::-1]))
    agree(c.pow, np.array([2, 3, -2]), np.array([5, 0, 3]))


def test_shifts():
    for dtype in WHOLE:
        x = values(dtype)
        agree(c.shift_left, x, np.full_like(x, 2))
        agree(c.shift_right, x, np.full_like(x, 1))


@pytest.mark.parametrize("order", [0, 1, 2])
def test_polygamma(order):
    agree(lambda x: c.polygamma(x, order=order), np.array([0.5, 1.5, 3.0]), ulps=512)


@pytest.mark.parametrize("source", [*FLOATS, *WHOLE, "bool"])
@pytest.mark.parametrize("target", [*FLOATS, *WHOLE, "bool"])
def test_conversions(source, target):
    x = values(source)
    if np.dtype(source).kind in "fc" and np.dtype(target).kind in "iu":
        x = np.array([0.0, 0.5, 1.5, 7.9], source)  # what lies outside the range has no defined result
    agree(lambda x: c.convert(x, dtype=np.dtype(target)), x)


def test_choices():
    x, pred = np.array(REAL), np.arange(13) % 2 == 0
    agree(c.select, pred, x, -x)
    agree(lambda p, x: c.select(p, x, 0.5), pred, x)
    agree(lambda x: c.clamp(x, -1.0, 1.0), x)
    agree(lambda p: c.select(p, 1.0, 2.0), pred)


A = np.arange(24.0).reshape(2, 3, 4)
STRUCTURAL = {
    "broadcast": (lambda x: c.broadcast_in_dim(x, shape=(5, 2, 3, 4), dims=(1, 2, 3)), A),
    "reshape": (lambda x: c.reshape(x, shape=(6, 4)), A),
    "transpose": (lambda x: c.transpose(x, permutation=(2, 0, 1)), A),
    "slice": (lambda x: c.slice_(x, start=(0, 1, 0), limit=(2, 3, 4), stride=(1, 1, 2)), A),
    **{f"slice {mode} at {s}": (lambda x, u, s=s, mode=mode: c.update_slice(x, u, start=(1, 1, 0), stride=s, mode=mode),
                                A, np.full((1, 2, 2), 3.0)) for s in ((1, 1, 1), (2, 1, 3)) for mode in ("set", "add")},
    "pad": (lambda x: c.pad(x, 7.0, low=(1, -1, 0), high=(0, 2, -1), interior=(0, 1, 2)), A),
    "concatenate": (lambda x: c.concatenate(x, x, x, axis=1), A),
    "reverse": (lambda x: c.reverse(x, axes=(0, 2)), A),
    "iota": (lambda x: x + c.iota(shape=(2, 3, 4), dtype=np.dtype("float64"), axis=1, place=x.spec.place), A),
    "dot": (lambda x, y: c.dot_general(x, y, contract=((2,), (1,)), batch=((0,), (0,))), A, A.transpose(0, 2, 1) + 1),
    "dot of complex": (lambda x, y: c.dot_general(x, y, contract=((0, 2), (1, 0)), batch=((), ())), A + 1j,
                       A.transpose(2, 0, 1) - 2j),
    "dot of booleans": (lambda x, y: c.dot_general(x, y, contract=((1,), (0,)), batch=((), ())), np.eye(3, dtype=bool),
                        np.tri(3, dtype=bool)),
    "dot of integers": (lambda x, y: c.dot_general(x, y, contract=((1,), (0,)), batch=((), ())),
                        np.arange(6).reshape(2, 3), np.arange(6).reshape(3, 2)),
    "gather": (lambda x, i: c.gather(x, i, offset_dims=(1, 2), collapsed_dims=(1,), start_index_map=(1,),
                                     slice_sizes=(2, 1, 4)), A, np.array([[2], [0], [9], [-3]])),
    **{f"scatter {mode}": (lambda x, i, u, m=mode: c.scatter(x, i, u, update_window_dims=(1,), inserted_dims=(0,),
                                                             scatter_dims=(0,), mode=m),
                           A[0], np.array([[2], [0], [7]]), np.full((3, 4), 5.0)) for mode in
       ("set", "add", "mul", "min", "max")},
    "dynamic slice": (lambda x, *i: c.dynamic_slice(x, *i, sizes=(1, 2, 2)), A, *map(np.array, (1, 5, -2))),
    "dynamic update": (c.dynamic_update_slice, A, np.ones((1, 2, 2)), *map(np.array, (1, 0, 3))),
}  # fmt: skip


@pytest.mark.parametrize("name", STRUCTURAL)
def test_structure(name):
    f, *arrays = STRUCTURAL[name]
    agree(f, *arrays)


WITH_NAN = np.array([[3.0, NAN, 1.0, 3.0], [2.0, -1.0, -1.0, 0.0], [NAN, NAN, 5.0, INF]])


@pytest.mark.parametrize("dtype", ["float64", "int32", "uint8"])
@pytest.mark.parametrize("p", [c.reduce_sum, c.reduce_prod, c.reduce_max, c.reduce_min])
def test_reductions(p, dtype):
    x = WITH_NAN if dtype == "float64" else np.array([[3, 1, 2], [0, 2, 2]], dtype)
    for axes in [(), (0,), (1,), (0, 1)]:
        agree(lambda x, axes=axes: p(x, axes=axes), x)


def test_reductions_of_complex_numbers_and_booleans():
    z = np.array(COMPLEX).reshape(2, 2)
    agree(lambda x: c.reduce_sum(x, axes=(0,)), z)
    agree(lambda x: c.reduce_prod(x, axes=(1,)), z)
    flags = np.array([[True, False], [True, True]])
    agree(lambda x: c.reduce_all(x, axes=(1,)), flags)
    agree(lambda x: c.reduce_any(x, axes=(0,)), flags)


@pytest.mark.parametrize("axis", [0, 1])
def test_winners_scans_and_sorts(axis):
    for p in (c.argmax, c.argmin):
        agree(lambda x, p=p: p(x, axis=axis), WITH_NAN)
        agree(lambda x, p=p: p(x, axis=axis), np.array([[1, 3, 3], [0, 0, 2]]))
    numbers = np.nan_to_num(WITH_NAN, posinf=4.0)
    for p in (c.cumsum, c.cumprod, c.cummax, c.cummin, c.cumlogsumexp):
        for reverse in (False, True):
            agree(lambda x, p=p, r=reverse: p(x, axis=axis, reverse=r), numbers)
    for p in (c.sort, c.argsort):
        for descending in (False, True):
            agree(lambda x, p=p, d=descending: p(x, axis=axis, descending=d), WITH_NAN)


@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
def test_complex_numbers_are_sorted_by_real_part_first_and_nan_is_last(dtype):
    some = np.array([1.0, -2.0, 0.0, -0.0, np.nan, np.inf])
    z = np.random.default_rng(0).permutation([complex(a, b) for a in some for b in some]).astype(dtype)
    for descending in (False, True):
        agree(lambda x, d=descending: c.sort(x, axis=0, descending=d), z)
        agree(lambda x, d=descending: c.argsort(x, axis=1, descending=d), np.stack([z, z[::-1], np.ones_like(z)]))


def test_every_core_primitive_is_lowered_or_listed():
    core = {p.name for p in vars(c).values() if isinstance(p, Primitive)}
    assert core - {p.name for p in CORE} == NOT_LOWERED


@pytest.mark.parametrize("dtype", ["float64", "float32", "complex64", "int8", "uint64", "bool"])
@pytest.mark.parametrize("shape", [(), (1,), (3,), (2, 2), (0, 3)])
def test_constants_keep_every_bit(dtype, shape):
    k = (np.arange(np.prod(shape, dtype=int)) % 3).reshape(shape).astype(dtype)
    if k.dtype.kind == "f" and k.size > 1:
        k.ravel()[:2] = NAN, -0.0
    held = tensor(k)
    (got,) = XLA.run(program_of(lambda x: c.select(x, held, held), np.ones(shape, bool)), np.ones(shape, bool))
    assert got._concrete().tobytes() == k.tobytes()


def test_the_text_of_a_module():
    program = program_of(lambda x, y: c.reduce_sum(c.tanh(x) * y, axes=(1,)), np.ones((2, 3)), np.ones((2, 3)))
    module = lower_to_stablehlo(program)
    assert module.text == (
        "module @program {\n"
        "  func.func public @main(%0: tensor<2x3xf64>, %1: tensor<2x3xf64>) -> (tensor<2xf64>) {\n"
        '    %2 = "stablehlo.tanh"(%0) : (tensor<2x3xf64>) -> tensor<2x3xf64>\n'
        '    %3 = "stablehlo.multiply"(%2, %1) : (tensor<2x3xf64>, tensor<2x3xf64>) -> tensor<2x3xf64>\n'
        '    %4 = "stablehlo.constant"() {value = dense<"0x0000000000000000"> : tensor<f64>} : () -> tensor<f64>\n'
        '    %8 = "stablehlo.reduce"(%3, %4) ({\n'
        "    ^bb0(%5: tensor<f64>, %6: tensor<f64>):\n"
        '      %7 = "stablehlo.add"(%5, %6) : (tensor<f64>, tensor<f64>) -> tensor<f64>\n'
        '      "stablehlo.return"(%7) : (tensor<f64>) -> ()\n'
        "    }) {dimensions = array<i64: 1>} : (tensor<2x3xf64>, tensor<f64>) -> tensor<2xf64>\n"
        "    return %8 : tensor<2xf64>\n"
        "  }\n"
        "}"
    )
    assert module.fingerprint == lower_to_stablehlo(program).fingerprint


def test_executables_are_kept_by_content():
    xla = XlaExecutor()
    for _ in range(2):
        xla.run(program_of(lambda x: x * 2.0, np.ones(3)), np.ones(3))
    assert xla.cache.stats()["size"] == 1
    assert xla.cache.stats()["hits"] == 1


def test_mistakes_are_named():
    with pytest.raises(UnsupportedError, match=r"pure_callback \(.*test_stablehlo_lowering.py:\d+\) has no StableHLO"):
        lower_to_stablehlo(program_of(lambda x: tr.pure_callback(np.sin, x, x), np.ones(3)))
    n = dim("n")
    b = Builder()
    x = b.input(Spec((n,), np.dtype("float64")))
    with pytest.raises(UnsupportedError, match="needs fixed sizes"):
        lower_to_stablehlo(b.close([c.neg(x)]))
    with pytest.raises(ArgumentError, match=r"takes a program, got .*; trace the function with tr.trace"):
        lower_to_stablehlo(c.neg)  # type: ignore[arg-type]
    with pytest.raises(BackendUnavailableError, match="no 'abacus' devices"):
        XlaExecutor("abacus")
    with pytest.raises(BackendUnavailableError, match="no device cpu:99"):
        XlaExecutor("cpu", 99)
    program = program_of(c.neg, np.ones(3))
    assert isinstance(program, Program)
    with pytest.raises(ProgramError, match=re.escape("takes 1 arrays, got 0")):
        XLA.run(program)
    with pytest.raises(ProgramError, match=re.escape("argument 0 of the module is float64[3], got float64[4]")):
        XLA.run(program, np.ones(4))
    moved = program_of(lambda x: c.transfer(x, place=Place(MemorySpace("host"), ComputeDevice("cpu:1"))), np.ones(3))
    with pytest.raises(PlacementError, match="a StableHLO module runs on one"):
        lower_to_stablehlo(moved)


def test_parts_are_lowered_as_what_they_mean():
    x, y = np.random.default_rng(0).standard_normal((2, 3, 4))
    program = program_of(lambda x, y: c.reduce_sum(c.mul(c.tanh(c.mul(x, y)), x), axes=(0,)), x, y)
    program = parts(program, lambda part: True)
    assert [eq.op.primitive for eq in program.equations] == [call]
    (got,) = XLA.run(program, x, y)
    np.testing.assert_allclose(got._concrete(), (np.tanh(x * y) * x).sum(0), rtol=1e-12)


def test_the_executor_takes_and_returns_tensors_in_main_memory():
    with simulated():
        far, near = tr.ones(3, device="sim:0"), tr.ones(3)
        double, constant = (lambda v: v * 2), (lambda v: (v, far + 1))
        for f, x, what in ((double, far, "argument 0"), (constant, near, "result 1")):
            text = rf"{what} of the program is float64\[3\] at sim:0, but XlaExecutor takes and returns tensors in main"
            with pytest.raises(PlacementError, match=text):
                XLA.run(tr.trace(f, x), x)
        with pytest.raises(ProgramError, match=r"argument 0 of the module is float64\[3\], got float64\[3\] at sim:0"):
            XLA.run(tr.trace(double, near), far)
    with pytest.raises(ArgumentError, match="takes a program, got <function"):
        XLA.run(double, near)  # type: ignore[arg-type]
