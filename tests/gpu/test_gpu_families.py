"""Every primitive and family on a simulated CuPy: the kernels exist, stay on their device, and mean the same."""

import sys
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

import tenferro_runtime as tr
from cupy_interface import faithful
from device_cases import elementwise, families, structure
from fake_cupy import DeviceArray, FakeCupy
from tenferro_einsum import einsum
from tenferro_gpu import CudaContext, download
from tenferro_gpu._contraction import CutensorContraction, taken
from tenferro_tensor import compute_context, device_runtime, get_backend
from tenferro_tensor.device_model import ContractionIR
from tenferro_tensor_core import UnsupportedError

CASES = [
    *elementwise(("float64", "complex128", "int64", "bool")),
    *structure(),
    *families("float64"),
    *families("complex128"),
]


def agree(case):
    expected = case.run(*map(tr.asarray, case.operands))
    FakeCupy.current = 0
    found = case.run(*[tr.asarray(x, device="cuda:1") for x in case.operands])
    assert FakeCupy.current == 0, case.name
    for y, z in zip(*[v if isinstance(v, tuple) else (v,) for v in (found, expected)], strict=True):
        assert str(y.device) == "cuda:1", case.name
        assert isinstance(y.data, DeviceArray) and y.data.device.id == 1, case.name
        assert y.dtype == z.dtype and y.shape == z.shape, case.name
        np.testing.assert_allclose(np.asarray(download(y)), np.asarray(z), rtol=1e-9, atol=1e-9, err_msg=case.name)


@pytest.mark.parametrize("start", range(0, len(CASES), 25))
def test_cases_agree_with_the_cpu(with_cupy, start):
    with_cupy()
    with np.errstate(all="ignore"):
        for case in CASES[start : start + 25]:
            agree(case)


def test_what_cannot_be_computed_is_found_on_the_device(with_cupy):
    with_cupy()
    with pytest.raises(Exception, match="finite|nan"):
        tr.linalg.svd(tr.asarray(np.array([[np.nan, 1.0], [0.0, 1.0]]), device="cuda:0"))


@pytest.mark.parametrize(
    "f", [lambda x: tr.linalg.schur(x)[0], lambda x: tr.linalg.ldl(x @ x.mT)[0]], ids=["schur", "ldl"]
)
def test_what_cupy_lacks_is_computed_on_the_cpu_if_that_is_allowed(with_cupy, f):
    with_cupy()
    here = np.arange(9.0).reshape(3, 3) % 4.0
    x = tr.asarray(here, device="cuda:1")
    for run in (f, tr.compile(f)):
        with pytest.raises(UnsupportedError, match=r"host_fallback\(\)"):
            run(x)
        with tr.host_fallback(), tr.transfers() as log:
            y = run(x)
        assert isinstance(y.data, DeviceArray) and y.data.device.id == 1
        assert {row.target for row in log.rows} == {"host", "cuda:1"}
        np.testing.assert_allclose(np.asarray(download(y)), np.asarray(f(tr.asarray(here))), atol=1e-12)


def test_contractions_go_to_cutensor_where_it_is_installed(with_cupy, monkeypatch):
    with_cupy()
    calls = []

    def contraction(alpha, x, mx, y, my, beta, out, mo):
        assert (alpha, beta) == (1.0, 0.0) and all(s > 0 for a in (x, y) for s in a.strides)
        calls.append(x.device.id)
        out.view(np.ndarray)[...] = np.einsum(x.view(np.ndarray), list(mx), y.view(np.ndarray), list(my), list(mo))

    monkeypatch.setitem(
        sys.modules,
        "cupyx.cutensor",
        SimpleNamespace(contraction=faithful("cupyx.cutensor", "contraction", contraction)),
    )
    rng = np.random.default_rng(0)
    a, b, c = (rng.standard_normal(shape) for shape in ((3, 4, 5), (5, 4, 6), (6, 3, 2)))
    on_device = [tr.asarray(x, device="cuda:1") for x in (a, b, c)]
    found = einsum("abc,cbd,dae->e", *on_device)
    assert calls == [1, 1] and str(found.device) == "cuda:1"
    np.testing.assert_allclose(np.asarray(download(found)), np.einsum("abc,cbd,dae->e", a, b, c), rtol=1e-12)
    reversed_ = on_device[0][:, ::-1, :]
    found = einsum("abc,cbd->bda", reversed_, on_device[1])
    np.testing.assert_allclose(np.asarray(download(found)), np.einsum("abc,cbd->bda", a[:, ::-1], b), rtol=1e-12)
    assert len(calls) == 3
    pair = ContractionIR(np.dtype("float64"), ((0, 1, 2), (2, 1, 3)), (3, 4, 5, 6), (0, 3), ((0, 1),))
    out = tr.zeros((3, 6), device="cuda:1").data
    kernel = get_backend("cuda").contraction(pair, on_device[0].device)
    with compute_context(CudaContext.for_device(1)):
        assert kernel(on_device[0].data, on_device[1].data, out=out) is out
    assert device_runtime("cuda").stream_of(out) is CudaContext.for_device(1).stream
    np.testing.assert_allclose(np.asarray(out), np.einsum("abc,cbd->ad", a, b), rtol=1e-12)
    calls.clear()
    for text, operands in (("abc,cbd->", on_device[:2]), ("abc,dae->e", [on_device[0], on_device[2]])):
        einsum(text, *operands)  # sums of one operand alone, and results without axes, go pair by pair
    assert not calls


def test_what_cutensor_takes():
    f8 = np.dtype("float64")
    pair = ContractionIR(f8, ((0, 1), (1, 2)), (2, 3, 4), (0, 2), ((0, 1),))
    assert taken(pair)
    kernel = CutensorContraction(pair, np, None, None)
    assert kernel.peak_bytes == 64 and kernel.flops == 48
    assert [(s.kernel, s.sizes, s.bytes) for s in kernel.report()] == [("cutensor", (1, 2, 4, 3), 26 * 8)]
    assert not taken(replace(pair, dtype=np.dtype("int64")))
    assert not taken(replace(pair, extents=(2, 0, 4)))
    assert not taken(replace(pair, output=(0,)))
    assert not taken(ContractionIR(f8, ((0, 0), (0, 1)), (2, 3), (0, 1), ((0, 1),)))
