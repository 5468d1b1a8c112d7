"""Programs compiled by XLA on arrays in main memory: tensors and NumPy's arrays of every layout, run while the caller
waits."""

import sys
from concurrent.futures import ThreadPoolExecutor

import jax
import jaxlib
import numpy as np
import pytest

import tenferro_linalg as tl
import tenferro_runtime as tr
from tenferro_tensor_core import DTypeError, NumericalError
from tenferro_xla import lower_to_stablehlo
from tenferro_xla._jax_modules import scope_of_wide_numbers, wide_numbers
from tenferro_xla._jitted import jitted
from tenferro_xla._places import host_device, jax_devices

ALIGNMENT = 64
"""In bytes, of memory that XLA reads in place."""


def aligned(x, offset=0):
    """A copy that begins at so many bytes after a multiple of the alignment."""
    room = np.zeros(x.nbytes + 2 * ALIGNMENT, np.uint8)
    start = -room.ctypes.data % ALIGNMENT + offset
    found = room[start : start + x.nbytes].view(x.dtype).reshape(x.shape)
    found[...] = x
    return found


X = np.arange(24.0).reshape(4, 6)
LAYOUTS = {
    "row-major": X,
    "column-major": np.asfortranarray(X),
    "transposed": X.T,
    "reversed": X[::-1, ::-2],
    "repeated": np.broadcast_to(X[0], (3, 6)),
    "aligned": aligned(X),
    "not aligned to the element": aligned(X, 3),
    "foreign byte order": X.astype(">f8"),
    "a field": np.zeros(4, [("a", "i4"), ("b", "f8")])["b"],
    "no elements": X[:0],
    "one element": X[:1, :1],
    "no axes": np.asarray(2.5),
    "a scalar": np.float64(2.5),
    "large": np.linspace(0.0, 1.0, 50_000),
}


def several(x):
    return {"double": 2 * x, "same": x, "sum": tr.sum(x), "large": (x > 1.0, tr.reshape(x, (-1,)))}


@pytest.mark.parametrize("name", LAYOUTS)
def test_layouts_and_repeated_calls(name):
    x = LAYOUTS[name]
    f = tr.compile(several, backend="xla")
    for given in (x, tr.asarray(x), x, x, tr.asarray(x)):  # traced, compiled, and by the fast paths
        got = f(given)
        np.testing.assert_array_equal(got["double"], 2 * x)
        np.testing.assert_array_equal(got["same"], x)
        np.testing.assert_allclose(got["sum"], np.sum(x))
        np.testing.assert_array_equal(got["large"][0], x > 1)
        np.testing.assert_array_equal(got["large"][1], np.reshape(x, -1))
    assert f.cache_info().traces == 1


@pytest.mark.parametrize("wide", [False, True], ids=["JAX narrows", "JAX keeps wide numbers"])
@pytest.mark.parametrize("dtype", ["bool", "int8", "uint32", "int64", "uint64", "float16", "float32", "float64",
                                   "complex64", "complex128"])  # fmt: skip
def test_dtypes_whatever_jax_is_set_to(dtype, wide):
    x = np.asarray([0, 1, 3]).astype(dtype)
    f = tr.compile(lambda x: (x == x, tr.concat([x, x])), backend="xla")
    with scope_of_wide_numbers()(wide):
        for given in (x, x, tr.asarray(x)):
            same, twice = f(given)
            assert (same.dtype, twice.dtype) == (np.bool_, dtype)
            np.testing.assert_array_equal(twice, np.concatenate([x, x]))
        assert jax.numpy.arange(2.0).dtype == ("float64" if wide else "float32")


@pytest.mark.parametrize("offset", [0, 8])
@pytest.mark.parametrize("size", [3, 1000])
def test_results_share_no_memory_and_keep_what_they_show(offset, size):
    x = aligned(np.zeros(size), offset)
    f = tr.compile(lambda x: (x, x + 1, tr.reshape(x, (1, -1))), backend="xla")
    kept = []
    for k in range(4):
        x[...] = k
        kept.append(f(x))
        assert not any(np.shares_memory(np.asarray(y), x) for y in kept[-1])
        x[...] = -1
    kept[0][1][0] = 9.0  # which belongs to nobody else
    f(x)
    for k, (same, after, row) in enumerate(kept):
        np.testing.assert_array_equal(same, np.full(size, k))
        np.testing.assert_array_equal(after, [9.0 if k == 0 else k + 1, *[k + 1] * (size - 1)])
        np.testing.assert_array_equal(row, np.full((1, size), k))


def test_sizes_take_turns():
    f = tr.compile(lambda x: tr.sum(x * x) + x, backend="xla")
    for n in (3, 0, 1, 3, 0, 1, 17, 3):
        x = np.arange(float(n))
        for given in (x, tr.asarray(x)):
            np.testing.assert_allclose(f(given), np.sum(x * x) + x)
    assert f.cache_info().traces == 1


def test_containers_numbers_and_tensors_mixed():
    @tr.compile(backend="xla")
    def f(state, k):
        return {"w": state["w"] * k + state["b"][0], "b": [state["b"][0] - 1]}

    w, b = np.arange(3.0), tr.asarray([1.0])
    for k in (2.0, 3, 2.0):
        got = f({"w": w, "b": (b, None)}, k)
        np.testing.assert_array_equal(got["w"], w * k + 1)
        np.testing.assert_array_equal(got["b"][0], [0.0])
        w = w + 1
    got = f({"w": tr.asarray(w), "b": (np.asarray([2.0]), None)}, 1)
    np.testing.assert_array_equal(got["w"], w + 2)


def test_donated_tensors():
    f = tr.compile(lambda x, y: x + y, donate=0, backend="xla")
    y = np.ones(3)
    for _ in range(3):
        x = tr.asarray(np.arange(3.0))
        np.testing.assert_array_equal(f(x, y), [1.0, 2.0, 3.0])
        with pytest.raises(tr.DonatedError):
            x + 1
    np.testing.assert_array_equal(f(y, y), [2.0, 2.0, 2.0])
    np.testing.assert_array_equal(y, [1.0, 1.0, 1.0])


def test_failures_at_every_call():
    inverse = tr.compile(tl.inv, backend="xla")
    singular = np.ones((2, 2))
    for x in (singular, singular, np.eye(2), singular):
        if x is singular:
            with pytest.raises(NumericalError, match="inv"):
                inverse(x)
        else:
            np.testing.assert_array_equal(inverse(x), x)
    double = tr.compile(lambda x: 2 * x, backend="xla")
    double(np.ones(2))
    for _ in range(2):
        with pytest.raises(DTypeError, match="datetime64"):
            double(np.zeros(2, "M8[s]"))


def test_threads():
    f = tr.compile(lambda x: tr.cumulative_sum(tr.sin(x)) * 2, backend="xla")

    def work(n):
        for k in range(20):
            x = np.linspace(0.0, k, n)
            np.testing.assert_allclose(f(x if k % 2 else tr.asarray(x)), np.cumsum(np.sin(x)) * 2, atol=1e-9)

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(work, (1, 5, 2000, 5, 2000, 0, 1, 300)))


def test_a_program_has_run_when_its_call_returns():
    program = tr.trace(lambda x: tr.fori_loop(0, 20_000, lambda i, c: tr.sin(c) + x, x), np.ones(100))
    run = jitted(lower_to_stablehlo(program), device=host_device())
    with wide_numbers():
        run(np.ones(100))
        assert all(run(np.ones(100))[0].is_ready() for _ in range(3))


def test_without_such_a_device_jax_has_one(monkeypatch):
    assert host_device() not in jax_devices("cpu")
    monkeypatch.setattr(jaxlib.xla_client, "make_cpu_client", lambda: None)  # with other parameters
    assert host_device.__wrapped__() is jax_devices("cpu")[0]
    monkeypatch.setitem(sys.modules, "jaxlib.xla_client", None)
    monkeypatch.delattr(jaxlib, "xla_client")
    assert host_device.__wrapped__() is jax_devices("cpu")[0]
