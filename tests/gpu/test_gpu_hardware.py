"""What only hardware can show: agreement of all primitives, families and fused kernels, asynchrony, memory."""

import gc

import numpy as np
import pytest

import tenferro_runtime as tr
from device_cases import WIDER, elementwise, exact, families, require_digits, structure
from tenferro_ad import grad
from tenferro_einsum import einsum
from tenferro_gpu import CudaContext, download, upload
from tenferro_runtime.running.fusion import kernel_stats, wait
from tenferro_tensor import DeviceMemoryError, compute_context, device_runtime, get_backend

pytestmark = pytest.mark.gpu

CASES = {
    case.name: case
    for case in (
        *elementwise(("float32", "float64", "complex64", "complex128", "int32", "int64", "uint8", "bool")),
        *structure(),
        *families("float32"),
        *families("float64"),
        *families("complex128"),
    )
}


def on_device(x):
    return tr.asarray(x, device="cuda:0")


def parts(result):
    return result if isinstance(result, tuple) else (result,)


def close(found, expected, what):
    assert found.dtype == expected.dtype and found.shape == expected.shape, what
    tolerance = 2e-5 if found.dtype.name in WIDER else 1e-8
    np.testing.assert_allclose(
        np.asarray(download(found)), np.asarray(expected), rtol=tolerance, atol=tolerance, err_msg=what
    )


@pytest.mark.parametrize("name", CASES)
def test_agreement_with_the_cpu(name):
    case = CASES[name]
    with np.errstate(all="ignore"):
        expected = case.run(*map(tr.asarray, case.operands))
        wider = exact(case)
    results = zip(parts(case.run(*map(on_device, case.operands))), parts(expected), parts(wider), strict=True)
    for found, wanted, more in results:
        assert str(found.device) == "cuda:0"
        if wanted.dtype.name in WIDER:
            assert found.dtype == wanted.dtype and found.shape == wanted.shape
            require_digits(np.asarray(download(found)), np.asarray(wanted), np.asarray(more), name)
        else:
            close(found, wanted, name)


@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64", "complex128"])
def test_fused_kernels_agree_with_the_steps(dtype):
    rng = np.random.default_rng(0)

    def steps(x, row, column):
        y = tr.tanh(x * row) + tr.exp(-x * x) / (2.0 + tr.cos(column))
        return y, tr.sum(y * x, axis=0), tr.sum(y, axis=1), tr.sum(y)

    fused = tr.compile(steps)
    for m, n in ((300, 200), (7, 5), (1, 1000), (1000, 1), (64, 4096)):
        raw = [rng.standard_normal(shape).astype(dtype) for shape in ((m, n), (n,), (m, 1))]
        operands = [on_device(x) for x in raw]
        views = [operands[0].mT.mT, on_device(np.asfortranarray(raw[0])), on_device(np.repeat(raw[0], 2, 1))[:, ::2]]
        for x in views:
            for _ in range(3):
                found = fused(x, *operands[1:])
                wait()
            for a, b in zip(found, steps(x, *operands[1:]), strict=True):
                close(a, b.to_device("cpu:0"), f"{dtype} {m} x {n}")
    assert kernel_stats()["native"]
    assert get_backend("cuda").compiled()


@pytest.mark.parametrize("kind", ["sum", "prod", "max", "min"])
@pytest.mark.parametrize("axis", [0, 1, (0, 1)])
def test_fused_reductions_agree_with_numpy(kind, axis):
    f = tr.compile(lambda x: getattr(tr, kind)(x * 1.0 + 0.5, axis=axis))
    for shape in ((3, 100_000), (100_000, 3), (700, 900)):
        x = np.random.default_rng(1).uniform(-1, 1, shape) * (1e-3 if kind == "prod" else 1.0)
        for _ in range(3):
            found = f(on_device(x))
            wait()
        np.testing.assert_allclose(np.asarray(download(found)), getattr(np, kind)(x + 0.5, axis=axis), rtol=1e-9)


def test_more_elements_than_32_bits_count():
    if device_runtime("cuda").device(0).memory()["free"] < 12 << 30:
        pytest.skip("it takes 12 GiB of device memory")
    n = 2**31 + 5
    f = tr.compile(lambda x: (x ^ 1, tr.max(x & 7)))
    x = tr.zeros((n,), dtype="int8", device="cuda:0")
    for _ in range(3):
        y, largest = f(x)
        wait()
    assert download(y[-3:]).tolist() == [1, 1, 1] and download(largest).item() == 0


def test_no_call_waits_for_the_device():
    """Work that takes long is issued first; all that follows returns while an event after that work has not come."""
    import cupy

    context = CudaContext("cuda:0")
    fused = tr.compile(lambda x: tr.sum(tr.sin(x) * x + 1.0, axis=1))
    small = on_device(np.random.default_rng(0).standard_normal((64, 64)))
    at = on_device(np.array([1, 2]))
    x = on_device(np.ones((4096, 4096)))

    def calls():
        y = small * 2.0 + small
        z = einsum("ij,jk->ik", y, small) + tr.fft.fft(y).real
        z = tr.sort(z, axis=0)[at] + tr.cumulative_sum(z, axis=1)[at]
        return tr.where(z > 0, z, -z), fused(y), z.at[0].add(1.0), upload(np.ones(100), pending=True)

    with compute_context(context):
        for _ in range(3):
            calls()
            wait()
        tr.synchronize("cuda:0")
        with context.stream:  # type: ignore[attr-defined]
            for _ in range(40):
                cupy.matmul(x.data, x.data)
        busy = context.stream.record()
        kept = calls()
        returned_before = not busy.done
    assert returned_before, "a call waited for the device"
    assert kept[0].shape == (2, 64)


def test_results_do_not_depend_on_what_is_current():
    import cupy

    x = on_device(np.arange(1000.0))
    with cupy.cuda.Stream(non_blocking=True), cupy.cuda.Device(cupy.cuda.runtime.getDeviceCount() - 1):
        y = tr.sum(tr.sqrt(x) * 2.0)
        assert cupy.cuda.runtime.getDevice() == cupy.cuda.runtime.getDeviceCount() - 1
    np.testing.assert_allclose(download(y).item(), 2 * np.sqrt(np.arange(1000.0)).sum(), rtol=1e-12)


def test_dlpack_with_cupy_in_stream_order():
    import cupy

    with compute_context(CudaContext("cuda:0")):
        x = on_device(np.ones((512, 512)))
        for _ in range(20):
            x = x @ x / 512.0
    shared = cupy.from_dlpack(x)
    assert shared.data.ptr == x.data.data.ptr
    np.testing.assert_allclose(cupy.asnumpy(shared), 1.0)
    with cupy.cuda.Stream(non_blocking=True):
        y = cupy.ones(100_000) * 3
        z = tr.from_dlpack(y) + 1.0
    np.testing.assert_array_equal(np.asarray(download(z)), 4.0)


def test_gradients_of_compiled_programs():
    def loss(x, w):
        return tr.sum(tr.tanh(x @ w) ** 2)

    x, w = np.random.default_rng(0).standard_normal((2, 30, 30))
    expected = grad(loss, 1)(tr.asarray(x), tr.asarray(w))
    close(tr.compile(grad(loss, 1))(on_device(x), on_device(w)), expected, "gradient")


def test_memory_goes_back_and_too_much_is_refused():
    device = device_runtime("cuda").device(0)
    tr.synchronize("cuda:0")
    gc.collect()
    before = device.memory()["live"]
    for _ in range(50):
        x = on_device(np.ones(1_000_000))
        download(x * 2.0, pending=True).result()
    del x
    gc.collect()
    assert device.memory()["live"] <= before
    with pytest.raises(DeviceMemoryError, match="cuda:0 has no room"):
        tr.broadcast_to(on_device(np.ones(1)), (1 << 44,)) * 2.0
