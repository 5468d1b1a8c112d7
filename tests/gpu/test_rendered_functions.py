"""What the functions of rendered GPU kernels compute, run by the processor, against NumPy; NVRTC takes them, too."""

from functools import cache
from typing import Any

import numpy as np
import pytest

from hand_written import mapped, of_literals, of_op
from host_kernels import COMPILER, HostFunction, library_of
from native_kernels import DTYPES, meaning, values
from rendered_functions import NAMES, kernels_of, kind_in, specs_of
from tenferro_gpu.compiling import RuntimeCompiler, RuntimeLibrary, runtime_library
from tenferro_gpu.rendering import RESERVED, CudaRenderer
from tenferro_gpu.rendering._functions import KINDS
from tenferro_tensor import Primitive, catalog
from tenferro_tensor.catalog import analytic, arithmetic, numbers
from tenferro_tensor.loop_ir import Literal
from tenferro_tensor_core import BackendUnavailableError, UnsupportedError, is_inexact, is_narrow
from thorough import THOROUGH

DIVISIONS = (arithmetic.floor_divide, arithmetic.remainder, arithmetic.fmod)
INEXACT = "fc"

on_host = pytest.mark.skipif(COMPILER is None, reason="there is no g++ to compile rendered kernels with")


def run(spec, *arrays):
    """The kernel on contiguous arrays, by three groups of eight work items."""
    n = max(x.size for x in arrays)
    results = [np.zeros(n, b.dtype) for b in spec.kernel.outputs]
    HostFunction(library_of(spec.source), spec.entry)((3,), (8,), (*arrays, *results, n))
    return results


def drawn(rng, primitive, dtype, n=203):
    _, dtypes = kernels_of(dtype)[primitive.name]
    # Functions of complex numbers are NumPy's own for ordinary numbers only; see the test of special ones.
    special = np.dtype(dtype).kind == "f" and primitive is not analytic.logaddexp
    xs = [values(rng, d, n, special=special) for d in dtypes]
    if primitive.name.startswith("shift"):
        xs[1] = rng.integers(0, 80, n).astype(dtype)
    elif primitive is analytic.lgamma:
        xs[0][np.abs(xs[0]) < np.finfo(dtype).tiny] = 1  # SciPy's is infinite there
    elif primitive in DIVISIONS:
        xs[1][: n // 2] = rng.integers(-5, 6, n // 2).astype(dtype)
    return xs


def require_close(got, expected, dtype, scale):
    assert got.dtype == expected.dtype
    if expected.dtype.kind not in INEXACT:
        np.testing.assert_array_equal(got, expected)
        return
    eps = float(np.finfo(expected.dtype).eps)
    np.testing.assert_allclose(got, expected, rtol=scale * eps, atol=scale * eps)


@on_host
@pytest.mark.parametrize("dtype", NAMES)
def test_every_function_agrees_with_the_reference(dtype):
    rng = np.random.default_rng(3)
    for primitive, kinds in KINDS.items():
        if not kind_in(dtype, kinds) or primitive is numbers.convert:
            continue
        spec = specs_of(dtype)[primitive.name]
        xs = drawn(rng, primitive, dtype)
        expected = meaning(kernels_of(dtype)[primitive.name][0], *xs)
        (got,) = run(spec, *xs)
        scale = 200 if primitive is arithmetic.pow else 32 if np.dtype(dtype).kind == "c" else 16
        try:
            require_close(got, np.asarray(expected), dtype, scale)
        except AssertionError as failure:
            raise AssertionError(f"{primitive.name} of {dtype}") from failure


@on_host
@pytest.mark.parametrize("dtype", NAMES)
def test_conversions(dtype):
    rng = np.random.default_rng(5)
    for target in NAMES:
        (op, _), spec = kernels_of(dtype)[f"convert_{target}"], specs_of(dtype)[f"convert_{target}"]
        x = values(rng, dtype, 77)
        if is_inexact(np.dtype(dtype)) and np.dtype(target).kind == "u":
            x = np.abs(x).astype(dtype)  # NumPy leaves the others open
        comparable = "float32" if is_narrow(np.dtype(target)) else target
        found, wanted = (y.astype(comparable) for y in (run(spec, x)[0], meaning(op, x)))
        np.testing.assert_array_equal(found, wanted)


@on_host
@pytest.mark.parametrize("target", DTYPES["n"])
@pytest.mark.parametrize("source", DTYPES["n"] + DTYPES["f"])
def test_every_number_is_widened_and_rounded_as_numpy_does(source, target):
    each = np.arange(1 << 16, dtype=np.uint16).view(target)
    with np.errstate(all="ignore"):  # ml_dtypes warns of NaNs, and of what a narrow dtype cannot hold
        each = each[np.isfinite(each)].astype("float64")
        between = np.concatenate([each, (each[1:] + each[:-1]) / 2]).astype(source)
    if source not in DTYPES["n"]:
        between = np.concatenate([between, np.nextafter(between, np.inf), np.nextafter(between, -np.inf)])
    spec = specs_of(source)[f"convert_{target}"]
    with np.errstate(all="ignore"):
        np.testing.assert_array_equal(run(spec, between)[0].view("u2"), between.astype(target).view("u2"))


@on_host
@pytest.mark.parametrize("target", DTYPES["i"] + DTYPES["u"])
@pytest.mark.parametrize("source", DTYPES["f"])
def test_numbers_beyond_an_integer_dtype_become_its_nearest(source, target):
    info = np.iinfo(target)
    x = np.array([np.nan, np.inf, -np.inf, 1e30, -1e30, 2.9, -0.9, 0.0], source)
    expected = np.array([0, info.max, info.min, info.max, info.min, 2, 0, 0], target)
    np.testing.assert_array_equal(run(specs_of(source)[f"convert_{target}"], x)[0], expected)


@on_host
@pytest.mark.parametrize(
    "name",
    "sqrt exp log log1p log2 log10 expm1 exp2 sin cos tan sinh cosh tanh asin acos atan asinh acosh atanh sign".split(),
)
def test_functions_of_complex_numbers_far_out_and_on_their_branch_cuts(name):
    far = np.array([0.0, -0.0, 1e-12, 0.4, -0.5, 1.0, -1.0, 1.5, -2.5, 30.0, -45.0, 1e8, -1e8])
    z = (far[:, None] + 1j * far[None, :]).astype(complex)
    z.imag = far[None, :]  # the sum has lost signs of zeros
    z.real = far[:, None]
    z = z.reshape(-1)
    expected = meaning(kernels_of("complex128")[name][0], z)
    (got,) = run(specs_of("complex128")[name], z)
    finite = np.isfinite(expected)
    scale = np.abs(expected[finite])
    # Far out the angle of a sine is known as well as its argument's last place.
    bound = 1e-13 * scale + (1e-15 if name != "log1p" else 1e-9)
    bad = np.abs(got[finite] - expected[finite]) > bound
    assert not bad.any(), (z[finite][bad][:5], got[finite][bad][:5], expected[finite][bad][:5])


@on_host
def test_complex_numbers_that_are_not_finite():
    inf, nan = np.inf, np.nan
    cases: dict[str, list[Any]] = {
        "sqrt": [(inf, 1.0, inf), (-inf, 1.0, complex(0, inf)), (complex(2, inf), None, complex(inf, inf))],
        "exp": [(-inf, 2.0, 0.0), (inf, 0.0, complex(inf, 0))],
        "log": [(0.0, 0.0, complex(-inf, 0)), (inf, 0.0, complex(inf, 0))],
        "tanh": [(800.0, 1.0, 1.0), (-inf, 3.0, -1.0)],
        "abs": [(3e200, 4e200, 5e200), (nan, inf, inf)],
        "atanh": [(1.0, 0.0, complex(inf, 0))],
        "exp2": [(-3.0, 0.0, 0.125)],
    }
    for name, table in cases.items():
        spec = specs_of("complex128")[name]
        z = np.empty(len(table), complex)
        for k, (re, im, _) in enumerate(table):
            z[k] = re
            if im is not None:
                z.real[k], z.imag[k] = re, im
        expected = np.array([row[2] for row in table], spec.kernel.outputs[0].dtype)
        np.testing.assert_allclose(run(spec, z)[0], expected, err_msg=name)


@on_host
def test_literals_keep_their_bits():
    literals = [Literal(v, np.dtype("float64")) for v in (0.1, -0.0, 1e-310, 1.7e308, np.inf, -np.inf, np.nan, -3.0)]
    literals += [Literal(v, np.dtype("float32")) for v in (0.1, -0.0, 3e38)]
    literals += [Literal(v, np.dtype("int64")) for v in (-(2**63), 2**63 - 1, -1)]
    literals += [Literal(2**64 - 1, np.dtype("uint64")), Literal(-128, np.dtype("int8"))]
    literals += [Literal(complex(-0.0, 2.5), np.dtype("complex64")), Literal(True, np.dtype("bool"))]
    spec = CudaRenderer().render(of_literals(literals), "literals")
    for got, literal in zip(run(spec, np.zeros(1, np.int8)), literals, strict=True):
        expected = np.array([literal.value], literal.dtype)
        assert got.dtype == literal.dtype
        np.testing.assert_array_equal(got, expected)
        if literal.dtype.kind in "fc" and literal.value == literal.value:
            assert got.tobytes() == expected.tobytes()


@on_host
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_special_functions_are_written_out(dtype):
    renderer = CudaRenderer()
    rng = np.random.default_rng(8)
    ops = {"erfinv": analytic.erfinv.op(), "digamma": analytic.digamma.op(), "p2": analytic.polygamma.op(order=2)}
    kernels = {name: of_op(op, dtype) for name, op in ops.items()}
    x = rng.uniform(-0.95, 0.95, 100).astype(dtype)
    eps = float(np.finfo(dtype).eps)
    for spec, (name, op) in zip(renderer.together(kernels), ops.items(), strict=True):
        xs = x if name == "erfinv" else np.abs(x) * 20 + np.asarray(0.2, dtype)
        expected = meaning(op, xs)
        np.testing.assert_allclose(run(spec, xs)[0], expected, rtol=64 * eps, atol=64 * eps)


def test_every_elementwise_primitive_is_rendered_or_reserved_with_a_reason():
    catalogued = [p for p in vars(catalog).values() if isinstance(p, Primitive) and p.elementwise]
    assert len(catalogued) > 60
    for primitive in catalogued:
        have = KINDS.get(primitive, "") + "".join(RESERVED.get(primitive, {}))
        kinds = primitive.kinds
        assert sorted(have) == sorted(kinds), primitive
        assert all(len(reason) > 20 for reason in RESERVED.get(primitive, {}).values())


def test_what_has_no_form_is_named():
    kernel = of_op(arithmetic.pow.op(), "int64", "int64")
    with pytest.raises(UnsupportedError, match="pow of int64, int64 has no form in a kernel of a GPU"):
        CudaRenderer().render(kernel, "power")
    three = Literal(3, np.dtype("int64"))
    cube = mapped(["int64"], lambda w, xs: [w.let(arithmetic.pow.op(), *xs, three)])
    assert "tf_mul" in CudaRenderer().render(cube, "cube").source


@cache
def nvrtc(architecture):
    try:
        return RuntimeCompiler(runtime_library("cuda"), architecture)
    except BackendUnavailableError as reason:
        pytest.skip(str(reason))


@pytest.fixture
def quickly(monkeypatch):
    """Have NVRTC optimise less, which takes a quarter of the time: what it takes and refuses is the same."""
    usual = RuntimeLibrary.options

    def options(self, architecture):
        quick = self.version >= (13, 0) and not THOROUGH
        return (*usual(self, architecture), *(["--Ofast-compile=max"] if quick else []))

    monkeypatch.setattr(RuntimeLibrary, "options", options)


def _taken(dtype, architecture):
    (spec, *_) = specs_of(dtype).values()
    code = nvrtc(architecture).compile(spec).code
    assert code.startswith(b"\x7fELF")
    assert all(spec.entry.encode() in code for spec in specs_of(dtype).values())


# Compiling takes long: each dtype for one of two architectures, those of most code in the slow test.
@pytest.mark.usefixtures("quickly")
@pytest.mark.parametrize(
    ("dtype", "architecture"),
    [("int8", "80"), ("int64", "90"), ("float32", "80"), ("complex64", "90")],
)
def test_nvrtc_compiles_every_function(dtype, architecture):
    _taken(dtype, architecture)


@pytest.mark.slow
@pytest.mark.usefixtures("quickly")
@pytest.mark.parametrize(
    ("dtype", "architecture"),
    [("bool", "90"), ("uint16", "90"), ("uint64", "80"), ("float64", "90"), ("float64", "80"), ("complex128", "80")],
)
def test_nvrtc_compiles_every_function_of_other_dtypes(dtype, architecture):
    _taken(dtype, architecture)
