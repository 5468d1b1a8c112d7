"""The CuPy backends without a GPU: what is said where something is missing, and the logic on a simulated CuPy."""

import re
import subprocess
import sys

import numpy as np
import pytest

import tenferro_runtime as tr
from fake_cupy import DeviceArray, FakeCupy
from tenferro_gpu import CudaContext, RocmContext, download, make_cuda_backend, upload
from tenferro_tensor import REGISTRY, Primitive, catalog, compute_context, compute_device, get_backend
from tenferro_tensor_core import BackendUnavailableError, PlacementError, UnsupportedError


@pytest.fixture
def without_cupy(fake_process, monkeypatch):
    monkeypatch.setitem(sys.modules, "cupy", None)


ASKED = {
    "backend": lambda: get_backend("cuda"),
    "creation": lambda: tr.asarray(np.ones(3), device="cuda:0"),
    "ones": lambda: tr.ones(3, device="cuda:0"),
    "to_device": lambda: tr.asarray(np.ones(3)).to_device("cuda:0"),
    "upload": lambda: upload(np.ones(3)),
    "context": lambda: CudaContext.for_device(0),
}


@pytest.mark.parametrize("how", ASKED)
def test_without_cupy_the_error_says_what_to_install(without_cupy, how):
    with pytest.raises(BackendUnavailableError, match=re.escape("pip install 'tenferro-gpu[cuda12]'")):
        ASKED[how]()


def test_without_cupy_rocm_has_its_own_advice(without_cupy):
    with pytest.raises(BackendUnavailableError, match=re.escape("pip install 'tenferro-gpu[rocm]'")):
        RocmContext.for_device(0)


def test_a_cupy_that_is_too_old_is_named(with_cupy):
    with_cupy().__version__ = "13.6.0"
    with pytest.raises(BackendUnavailableError, match=r"CuPy 13.6.0 is older than 14; pip install 'tenferro-gpu"):
        upload(np.ones(3))


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        (
            {"failure": "cudaErrorInsufficientDriver"},
            "no usable driver (cudaErrorInsufficientDriver); check that `nvidia-smi`",
        ),
        ({"count": 0}, "there is none; check that `nvidia-smi` lists one"),
        ({"is_hip": True}, "the installed CuPy is built for rocm"),
    ],
)
def test_a_missing_driver_or_device_is_named(with_cupy, kind, text):
    with_cupy(**kind)
    for ask in ASKED.values():
        with pytest.raises(BackendUnavailableError, match=re.escape(text)):
            ask()


def test_a_device_that_does_not_exist_is_named(with_cupy):
    with_cupy(count=2)
    for ask in (lambda: CudaContext.for_device(3), lambda: tr.asarray(np.ones(2), device="cuda:3")):
        with pytest.raises(
            BackendUnavailableError, match=re.escape("cuda:3 was requested, but there is only cuda:0 to cuda:1")
        ):
            ask()


def test_importing_the_package_does_not_import_cupy():
    script = "import sys; sys.modules['cupy'] = None; import tenferro_gpu; assert 'cupyx' not in sys.modules"
    subprocess.run([sys.executable, "-c", script], check=True)


def test_work_runs_on_the_device_of_its_operands_whatever_is_current(with_cupy):
    module = with_cupy(count=3)
    x = tr.asarray(np.arange(6.0).reshape(2, 3), device="cuda:2")
    for ambient in (0, 1, 2):
        FakeCupy.current = ambient
        y = tr.sum(tr.tanh(x @ x.mT) * 2.0 + x[:, :1], axis=0)
        assert FakeCupy.current == ambient
        assert isinstance(y.data, DeviceArray)
        assert y.data.device.id == 2
        assert str(y.device) == "cuda:2"
    raw = np.arange(6.0).reshape(2, 3)
    back = download(y)
    np.testing.assert_allclose(np.asarray(back), (np.tanh(raw @ raw.T) * 2 + raw[:, :1]).sum(0))
    assert isinstance(back.data, np.ndarray) and not isinstance(back.data, DeviceArray)
    get_backend("cuda").synchronize()
    assert [device for device, _ in FakeCupy.synchronized[-3:]] == [0, 1, 2]
    assert module.cuda.runtime.getDeviceCount() == 3


def test_an_error_in_a_kernel_restores_the_current_device(with_cupy):
    with_cupy()
    x = tr.asarray(np.ones(3), device="cuda:1")
    with pytest.raises(FloatingPointError), np.errstate(divide="raise"):
        x / 0.0
    assert FakeCupy.current == 0


def test_nothing_is_transferred_implicitly(with_cupy):
    with_cupy()
    host, one, other = tr.asarray(np.ones(2)), tr.asarray(np.ones(2), device="cuda:0"), upload(np.ones(2), "cuda:1")
    for mixed in (lambda: host + one, lambda: one * other, lambda: tr.concat([one, other])):
        with pytest.raises(
            PlacementError, match=r"operands in several memory spaces(.*\n)+nothing is transferred implicitly"
        ):
            mixed()
    with pytest.raises(PlacementError, match="would copy it to main memory"):
        np.asarray(one)
    np.testing.assert_array_equal(np.asarray(one.to_device("cpu:0") + host), [2.0, 2.0])


def test_scopes_place_new_data_and_refuse_data_elsewhere(with_cupy):
    with_cupy()
    host = tr.asarray(np.ones(2))
    for scope in (compute_device("cuda:1"), compute_context(CudaContext.for_device(1))):
        with scope:
            assert str(tr.ones(2).device) == "cuda:1"
            with pytest.raises(PlacementError, match="asked to run on cuda:1"):
                tr.tanh(host)
    assert str(tr.ones(2).device) == "cpu:0"


def test_gradients_come_home(with_cupy):
    from tenferro_ad import grad

    with_cupy()
    x = tr.asarray(np.array([0.5, 1.5]))
    g = grad(lambda x: tr.sum(tr.exp(x.to_device("cuda:1")) * 2.0).to_device("cpu:0"))(x)
    assert str(g.device) == "cpu:0"
    np.testing.assert_allclose(np.asarray(g), 2 * np.exp([0.5, 1.5]))


def test_every_core_primitive_has_a_kernel(with_cupy):
    with_cupy()
    make_cuda_backend()
    core = [p for p in vars(catalog).values() if isinstance(p, Primitive)]
    assert [p.name for p in core if REGISTRY.find("kernel", p, "cuda") is None] == []


def test_products_that_would_lose_factors_are_refused(with_cupy):
    with_cupy()
    x, at = tr.asarray(np.ones(4), device="cuda:0"), tr.asarray(np.array([[1], [1]]), device="cuda:0")
    updates = tr.asarray(np.full(2, 3.0), device="cuda:0")
    numbers = {"update_window_dims": (), "inserted_dims": (0,), "scatter_dims": (0,)}
    with pytest.raises(UnsupportedError, match="mode='mul' has no kernel on accelerators"):
        catalog.scatter(x, at, updates, mode="mul", **numbers)


def test_capabilities_are_reported(with_cupy):
    with_cupy()
    found = CudaContext.for_device(1).capabilities
    assert (found.name, found.warp, found.architecture) == ("Simulated", 32, "90")


@pytest.mark.gpu
def test_real_hardware_agrees_with_the_cpu():
    x = np.random.default_rng(0).standard_normal((64, 64))
    on_device = tr.asarray(x, device="cuda:0")
    got = download(tr.tanh(on_device @ on_device.mT) + tr.sort(on_device, axis=0))
    np.testing.assert_allclose(np.asarray(got), np.tanh(x @ x.T) + np.sort(x, 0), atol=1e-10)
