"""A backend of a third party brings a provider, over which all kernels of a family are written."""

from importlib import import_module
from typing import Any
from unittest import mock

import numpy as np
import pytest
import scipy.fft

import tenferro_runtime as tr
from simulated.backend import BareBackend
from simulated.installed import no_accelerator, simulated
from tenferro_ad import grad
from tenferro_fft import providers as fft_providers
from tenferro_linalg import providers
from tenferro_runtime import fft, linalg
from tenferro_tensor import REGISTRY, Backend, ComputeDevice, backends
from tenferro_tensor.reference import kernels
from tenferro_tensor_core import RegistryError, UnsupportedError

RNG = np.random.default_rng(3)
S = RNG.standard_normal((2, 4, 4)) + 4 * np.eye(4)
B = RNG.standard_normal((2, 4, 3))

CASES: dict[str, Any] = {
    "solve": lambda s, b: linalg.solve(s, b),
    "svd": lambda s, b: linalg.svd(s)[1],
    "eigh": lambda s, b: linalg.eigh(s + s.mT)[0],
    "qr": lambda s, b: linalg.qr(s)[1] ** 2,
    "cholesky": lambda s, b: linalg.cholesky(s @ s.mT),
    "slogdet": lambda s, b: linalg.slogdet(s)[1],
    "fft": lambda s, b: tr.abs(fft.fft(b)),
    "fft2": lambda s, b: tr.real(fft.fft2(b)),
    "rfft": lambda s, b: fft.irfft(fft.rfft(s) * 2.0, n=4),
}


class Counting:
    """What is taken of a library, by name."""

    def __init__(self, library: Any) -> None:
        self.library, self.taken = library, set()

    def __getattr__(self, name: str) -> Any:
        self.taken.add(name)
        return getattr(self.library, name)


def numpy_provider() -> Any:
    """A provider of arrays that NumPy computes with."""
    return providers.LinalgProvider(lambda name: import_module(name))


def there(x: Any) -> Any:
    return tr.asarray(x).to_device("sim:1")


def here(x: Any) -> Any:
    return np.asarray(x.to_device("cpu:0"))


@pytest.mark.parametrize("name", CASES)
def test_the_kernels_of_a_provider_serve_values_and_derivatives(name: str) -> None:
    f = CASES[name]
    loss = lambda s, b: tr.sum(f(s, b) ** 2)
    wanted = [np.asarray(g(tr.asarray(S), tr.asarray(B))) for g in (f, grad(loss))]
    algebra, transforms = Counting(numpy_provider()), Counting(scipy.fft)
    with providers.register("sim", lambda: algebra), fft_providers.register("sim", lambda: transforms):
        with simulated(backend=BareBackend):
            s, b = there(S), there(B)
            with tr.no_transfers():
                found = [g(s, b) for g in (f, grad(loss), tr.compile(f), tr.compile(grad(loss)))]
            assert all(str(x.device) == "sim:1" for x in found)
            for x, y in zip(found, wanted * 2, strict=True):
                np.testing.assert_allclose(here(x), y, atol=1e-10)
    assert (transforms if "fft" in name else algebra).taken


def test_the_end_of_the_registration_takes_the_kernels_back() -> None:
    made = providers.register("sim", numpy_provider)
    with simulated(backend=BareBackend):
        s, b = there(S), there(B)
        np.testing.assert_allclose(here(linalg.solve(s, b)), np.linalg.solve(S, B))
        with pytest.raises(RegistryError, match="sim has a provider of linalg already"):
            providers.register("sim", numpy_provider)
        made.undo()
        made.undo()
        with pytest.raises(UnsupportedError, match="has no kernel for sim:1"):
            linalg.solve(s, b)
    with pytest.raises(RegistryError, match="cuda has a provider of fft already"):
        fft_providers.register("cuda", lambda: scipy.fft)


def test_a_kernel_of_its_own_goes_before_that_of_the_provider() -> None:
    solve_ = import_module("tenferro_linalg._solve").solve_
    linalg.solve(tr.asarray(S), tr.asarray(B))  # the family is loaded
    with REGISTRY.kernel(solve_, "sim", lambda ins, outs: lambda x, b: 7.0 * b):
        with providers.register("sim", numpy_provider), simulated(backend=BareBackend):
            np.testing.assert_allclose(here(linalg.solve(there(S), there(B))), 7.0 * B)
            np.testing.assert_allclose(here(linalg.det(there(S))), np.linalg.det(S))


class VellumBackend(Backend):
    """NumPy arrays as the memory of a device, which computes at once."""

    name = "vellum"

    def __init__(self) -> None:
        self.table = kernels(np, lambda: import_module("scipy.special"))

    def devices(self) -> tuple[ComputeDevice, ...]:
        return (ComputeDevice("vellum:0"),)

    def upload(self, array: Any, device: ComputeDevice) -> Any:
        return array.copy()

    def download(self, raw: Any) -> Any:
        return np.array(raw)

    def synchronize(self) -> None: ...

    def kernel(self, op: Any, ins: Any, outs: Any, device: ComputeDevice) -> Any:
        if op.primitive not in self.table:
            return super().kernel(op, ins, outs, device)
        return self.table[op.primitive](ins, outs, **op.params)


class Lacking(providers.LinalgProvider):
    """Without QR, and with a library that lacks what is not in NumPy."""

    def qr(self, x: Any, mode: str) -> Any:
        raise UnsupportedError("qr is not written yet")


class NoInverse:
    """Some transforms alone."""

    fft, rfft = staticmethod(scipy.fft.fft), staticmethod(scipy.fft.rfft)


def only_numpy(name: str) -> Any:
    if name != "numpy":
        raise UnsupportedError(f"there is no {name}")
    return np


@pytest.mark.parametrize(
    ("f", "text"),
    [
        (lambda s, b: linalg.qr(s)[0] ** 2, "qr is not written yet"),
        (lambda s, b: linalg.lu(s)[1], "there is no scipy.linalg"),
        (lambda s, b: linalg.ldl(s @ s.mT)[0], "ldl has no kernel on this device"),
        (lambda s, b: tr.real(fft.ifft(b)), "the provider of vellum has no ifft"),
        (lambda s, b: fft.irfft(fft.rfft(s) * 2.0, n=4), "the provider of vellum has no irfft"),
    ],
)
def test_what_a_provider_lacks_is_computed_on_the_cpu_if_that_is_allowed(f: Any, text: str) -> None:
    wanted = np.asarray(f(tr.asarray(S), tr.asarray(B)))
    vellum = VellumBackend()
    with (
        no_accelerator(),
        mock.patch.dict(backends._made, {"vellum": vellum}),
        providers.register("vellum", lambda: Lacking(only_numpy)),
        fft_providers.register("vellum", NoInverse),
    ):
        s, b = tr.asarray(S, device="vellum:0"), tr.asarray(B, device="vellum:0")
        for run in (f, tr.compile(f)):
            with pytest.raises(UnsupportedError, match=rf"{text}.*with host_fallback\(\) the CPU computes it"):
                run(s, b)
            with tr.host_fallback(), tr.transfers() as log:
                found = run(s, b)
            assert str(found.device) == "vellum:0"
            assert log.count >= 2
            np.testing.assert_allclose(here(found), wanted, atol=1e-12)
            with tr.transfers() as log:
                np.testing.assert_allclose(here(linalg.solve(s, b)), np.linalg.solve(S, B))
            assert log.count == 1  # that of this line
