"""float16 and bfloat16: every public function on them, eager, as a program and as machine code, to the bit."""

import re
import shutil
import warnings
from contextlib import suppress

import numpy as np
import pytest

import tenferro_linalg as tl
import tenferro_runtime as tr
from narrow_floats import NARROW, bits, chain, close, require_alike, sums
from tenferro_ad import check_grads, grad, jvp, sparse_jacobian, variable, vjp
from tenferro_cpu.native import available
from tenferro_runtime.lowering import lower
from tenferro_runtime.trees import flatten
from tenferro_tensor import get_backend
from tenferro_tensor.loop_interpreter import interpret
from tenferro_tensor_core import DTypeError, UnsupportedError, dtype
from vmap_calls import CALLS, OF_DATA

REFUSED = re.compile("is not computed in b?float16|complex is not defined for b?float16")
"""What is computed in float32 and wider types only says so: decompositions, Fourier transforms, complex numbers."""


@pytest.fixture(autouse=True)
def _quiet():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # of numbers beyond the range, as NumPy warns
        yield


def operands(call, narrow):
    """Narrow operands and the same numbers as float32; None for calls of complex numbers only."""
    try:
        hosts = [make(np.dtype("float32")) for make in call.operands]
    except DTypeError:
        return None
    few = [tr.asarray(h.astype(narrow) if h.dtype.kind == "f" else h) for h in hosts]
    return few, [x.astype(tr.float32) if x.dtype == narrow else x for x in few]


@pytest.mark.parametrize("name", NARROW)
def test_every_function_agrees_with_float32_and_with_its_program(name):
    narrow, refused = dtype(name), []
    for key, call in CALLS.items():
        given = operands(call, narrow)
        if given is None:
            continue
        few, wide = given
        try:
            eager = flatten(call.f(*few))[0]
        except DTypeError as error:
            assert REFUSED.search(str(error)), (key, error)
            assert "convert" in str(error)
            refused.append(key)
            continue
        for x, y in zip(eager, flatten(call.f(*wide))[0], strict=True):
            assert x.dtype in (y.dtype, narrow), key
            assert x.dtype.kind == "i" or close(x, y, 8, narrow), key
        if key not in OF_DATA:
            program = tr.trace(call.f, *few)
            require_alike(eager, program.run(*few), key)
    assert len(refused) > 20


@pytest.mark.parametrize("name", NARROW)
def test_derivatives_are_close_to_those_in_float32_and_have_the_dtype(name):
    narrow = dtype(name)
    for key, call in CALLS.items():
        given = operands(call, narrow)
        if given is None or not key.startswith("primitives.") or key.startswith("primitives.complex"):
            continue
        few, wide = (_pulled(call.f, xs) for xs in given)
        for x, g, w in zip(given[0], few, wide, strict=True):
            assert g.dtype == x.dtype, key
            assert close(g, w, 24, narrow), key


def _pulled(f, xs):
    out, pull = vjp(f, *xs)
    return pull(tr.tree_map(lambda x: tr.ones_like(x) + 0.25 * tr.arange(x.size, dtype=x.dtype).reshape(x.shape), out))


@pytest.mark.parametrize("name", NARROW)
@pytest.mark.parametrize("f", [chain, sums])
def test_machine_code_rounds_after_every_step(name, f):
    rng = np.random.default_rng(0)
    x, y = (tr.asarray(rng.normal(size=(33, 47)), dtype=name) for _ in range(2))
    eager, summed = f(x, y), f is sums
    program = tr.trace(f, x, y)
    function = lower(program)
    require_alike(interpret(function, [v.numpy() for v in (x, y)]), eager, "loop nests", summed)
    native = None
    with suppress(UnsupportedError):  # the vector level has no machine code of functions
        native = get_backend("cpu").whole(function)
    if native is not None:
        require_alike(native.run((), x.numpy(), y.numpy()), eager, "machine code", summed)
    for deterministic in (False, True):
        require_alike(tr.compile(f, deterministic=deterministic)(x, y), eager, "compiled", summed)


def test_a_fused_chain_is_not_kept_in_float32():
    # 1 + 2**-11 lies between two numbers of float16: rounded at once it is 1, and twice of it is 2.
    x = tr.asarray([2.0**-11] * 64, dtype=tr.float16)

    def twice(x):
        return (x + 1.0) * 2.0 - 2.0

    assert twice(x).tolist() == [0.0] * 64
    assert tr.compile(twice)(x).tolist() == [0.0] * 64
    assert tr.trace(twice, x).run(x)[0].tolist() == [0.0] * 64


def every_number(name):
    return np.arange(1 << 16, dtype=np.uint16).view(dtype(name))


@pytest.mark.parametrize("name", NARROW)
def test_conversions_of_every_number_are_those_of_numpy(name):
    host = every_number(name)
    x, seen = tr.asarray(host), ~np.isnan(host.astype(np.float32))
    for goal in ("float32", "float64", "complex64", "bool"):
        assert np.array_equal(x.astype(goal).numpy()[seen], host.astype(goal)[seen])
        wide = tr.compile(lambda x, goal=goal: tr.astype(x, goal))(x)
        assert np.array_equal(wide.numpy()[seen], host.astype(goal)[seen])
    assert np.isnan(x.astype("float32").numpy()[~seen]).all()
    assert np.array_equal((x.astype("float32").astype(name)).numpy().view("u2")[seen], host.view("u2")[seen])


@pytest.mark.parametrize("name", NARROW)
@pytest.mark.parametrize("source", ["float32", "float64", "int32", "int64", "uint8", "bool"])
def test_rounding_to_narrow_numbers_is_that_of_numpy(name, source):
    rng = np.random.default_rng(1)
    if source.startswith("float"):
        near = every_number(name).astype(source)  # numbers, halves of the way between them, and their neighbours
        near = near[np.isfinite(near)]
        steps = np.concatenate([near, (near[1:] + near[:-1]) / 2]).astype(source)
        wide = np.float64(1) + rng.integers(0, 1 << 12, 4000) * 2.0**-12 + rng.choice([-1, 1], 4000) * 2.0**-40
        host = np.concatenate([steps, np.nextafter(steps, np.inf), np.nextafter(steps, -np.inf), wide.astype(source)])
        host = np.concatenate([host, [np.inf, -np.inf, 0.0, -0.0, 1e-45]]).astype(source)
    else:
        most = 1 if source == "bool" else np.iinfo(source).max
        host = rng.integers(0, most, 4000, endpoint=True).astype(source) >> rng.integers(0, 8, 4000).astype("u1")
        host = host.astype(source)
    want = host.astype(dtype(name)).view("u2")
    assert np.array_equal(tr.asarray(host).astype(name).numpy().view("u2"), want)
    compiled = tr.compile(lambda x: tr.astype(x, name), deterministic=True)
    program = tr.trace(lambda x: tr.astype(x, name), tr.asarray(host))
    native = get_backend("cpu").whole(lower(program), bare=True)
    assert np.array_equal(compiled(tr.asarray(host)).numpy().view("u2"), want)
    if native is not None:
        assert np.array_equal(native.run((), host).view("u2"), want)


@pytest.mark.parametrize("name", NARROW)
def test_sums_and_products_are_made_in_float32(name):
    ones = tr.ones(5000, dtype=name)
    assert float(tr.sum(ones)) == float(np.float32(5000).astype(dtype(name)))
    assert float(ones @ ones) == float(np.float32(5000).astype(dtype(name)))
    assert tr.sum(ones).dtype == tr.mean(ones).dtype == dtype(name)
    large = tr.full((5000,), 1000.0, dtype=name)
    for mean in (tr.mean, tr.nanmean, tr.average, lambda x: tr.average(x, weights=tr.ones_like(x))):
        assert float(mean(large)) == 1000.0
    for spread in (tr.var, tr.std, tr.nanvar, tr.nanstd, tr.cov):
        assert float(spread(large)) == 0.0
        assert spread(large).dtype == dtype(name)
    lines = tr.asarray([[0.0, 300.0, 600.0, 900.0], [900.0, 600.0, 300.0, 0.0]], dtype=name)
    assert tr.corrcoef(lines).tolist() == tr.corrcoef(lines[0], lines[1]).tolist() == [[1.0, -1.0], [-1.0, 1.0]]


@pytest.mark.parametrize("name", NARROW)
def test_numbers_beside_narrow_arrays_are_rounded_first(name):
    x = tr.asarray([3.0, 5.0], dtype=name)
    tenth = np.asarray(0.1, dtype(name)).astype(np.float32)
    want = (x.numpy().astype(np.float32) * tenth).astype(dtype(name))
    assert bits(x * 0.1) == bits(want) == bits(tr.compile(lambda x: x * 0.1)(x))
    assert (x * 2).dtype == (x + True).dtype == (x / 3.0).dtype == dtype(name)
    assert (x * 1j).dtype == tr.complex64
    assert (x + tr.asarray([1, 2])).dtype == tr.float64
    assert (x + tr.asarray([1, 2], dtype="int8")).dtype == dtype(name)


@pytest.mark.parametrize("name", NARROW)
def test_derivatives_are_checked_against_differences_in_float32(name):
    x, y = tr.asarray([0.5, 1.25, 2.0], dtype=name), tr.asarray([1.5, 0.75, -1.0], dtype=name)
    check_grads(lambda x, y: tr.sum(tr.sin(x) * tr.exp(y)) + x @ y, (x, y))
    with pytest.raises(Exception, match="disagrees"):
        check_grads(lambda x: tr.sum(tr.stop_gradient(x) * x), (x,))
    assert grad(lambda x: tr.sum(x * x))(x).dtype == dtype(name)
    assert jvp(tr.sin, (x,), (tr.ones_like(x),))[1].dtype == dtype(name)
    v = variable(x)
    tr.sum(v * v * 2.0).backward()
    assert v.grad.dtype == dtype(name)


@pytest.mark.parametrize("name", NARROW)
def test_arrays_come_in_and_go_out(name, tmp_path):
    import pickle

    x = tr.asarray([[1.5, -2.0, np.inf]], dtype=name)
    assert x.numpy().dtype == dtype(name)
    assert x.numpy().flags.writeable
    assert bits(tr.asarray(x.numpy())) == bits(tr.from_dlpack(x)) == bits(pickle.loads(pickle.dumps(x))) == bits(x)
    assert x.tolist() == [[1.5, -2.0, np.inf]]
    assert (float(x[0, 0]), x[0, 1].item()) == (1.5, -2.0)
    assert repr(x).endswith(f"dtype={name})")
    assert bits(tr.arange(5, dtype=name)) == bits(np.arange(5).astype(dtype(name)))
    for made in (tr.zeros(2, dtype=name), tr.full((2,), 0.1, dtype=name), tr.eye(2, dtype=name), tr.ones_like(x)):
        assert made.dtype == dtype(name)
    third = np.asarray([1 / 3, 2.0], dtype(name))
    f = tr.compile(lambda x: x * third + tr.linspace(0, 1, 2, dtype=name))
    path = tmp_path / "f.tfp"
    f.save(path, x[0, :2])
    assert bits(tr.load(path)(x[0, :2])) == bits(f(x[0, :2]))


def test_jax_reads_and_makes_bfloat16_through_dlpack():
    jnp = pytest.importorskip("jax.numpy")
    x = tr.asarray([1.5, -2.25], dtype=tr.bfloat16)
    assert jnp.from_dlpack(x).dtype == jnp.bfloat16
    assert bits(tr.from_dlpack(jnp.asarray([1.5, -2.25], dtype=jnp.bfloat16))) == bits(x)


@pytest.mark.parametrize("name", NARROW)
def test_decompositions_say_what_to_convert_to(name):
    x = tr.eye(2, dtype=name)
    with pytest.raises(DTypeError, match=f"svd is not computed in {name}.*x.astype\\(float32\\)"):
        tl.svd(x)
    with pytest.raises(DTypeError, match=f"Fourier transform is not computed in {name}"):
        tr.fft.fft(x)
    assert float(tl.vector_norm(tr.asarray([300.0, 400.0], dtype=name))) == 500.0


def test_the_standard_lists_its_own_dtypes():
    assert not {"float16", "bfloat16"} & set(tr.__array_namespace_info__().dtypes())
    assert set(tr.__array_namespace_info__().dtypes(kind="real floating")) == {"float32", "float64"}


@pytest.mark.parametrize("name", NARROW)
def test_sparse_derivatives_are_matrices_of_float32(name):
    pytest.importorskip("scipy")
    found = sparse_jacobian(lambda x: x * x)(tr.asarray([1.0, 2.5], dtype=name))
    assert found.dtype == np.float32
    assert found.toarray().tolist() == [[2.0, 0.0], [0.0, 5.0]]


@pytest.mark.parametrize("name", NARROW)
def test_parts_of_narrow_arrays_are_assigned(name):
    def assigned(x):
        y = x * 2
        y[0] = 7.1
        y[1:] += 0.1
        y[y > 7.0] = 1.5
        return y

    x = tr.asarray([1.0, 2.0, 4.0], dtype=name)
    want = (x.numpy() * 2).astype(dtype(name))
    want[0] = 7.1
    want[1:] = (want[1:].astype("f4") + np.asarray(0.1, dtype(name)).astype("f4")).astype(dtype(name))
    want[want > 7] = 1.5
    assert bits(assigned(x)) == bits(tr.compile(assigned)(x)) == bits(want)


@pytest.mark.skipif(shutil.which("cc") is None, reason="there is no C compiler to link with")
@pytest.mark.skipif(not available(), reason="native kernels are off")
@pytest.mark.parametrize("name", NARROW)
def test_libraries_take_arrays_of_bits(name, tmp_path):
    def f(x, y):
        return (x * y + 0.5) * x, tr.astype(tr.astype(x, "float64") * 1.37, name)

    rng = np.random.default_rng(0)
    x, y = (tr.asarray(rng.normal(size=37), dtype=name) for _ in range(2))
    files = tr.export_library(tmp_path / "f", {"f": tr.trace(f, x, y)})
    assert "int f(const uint16_t *x0, const uint16_t *x1, uint16_t *result" in files.header.read_text()
    require_alike(tr.load_library(files.library, "f")["f"](x.numpy(), y.numpy()), f(x, y), "library", sums=False)
