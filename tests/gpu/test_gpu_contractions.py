"""Contractions of many operands on a simulated CuPy, pair by pair and by cuTENSOR: values, gradients, slices."""

import sys
from types import SimpleNamespace

import numpy as np
import pytest

import tenferro_runtime as tr
from fake_cupy import DeviceArray, FakeCupy, as_device
from tenferro_ad import grad, hvp, value_and_grad
from tenferro_einsum import einsum, plan
from tenferro_gpu import download
from tenferro_gpu._contraction import CutensorContraction, taken
from tenferro_runtime import no_transfers
from tenferro_tensor.device_model import ContractionGraph

RING = ("abc,cde,efg,gah->bdfh", ((3, 4, 5), (5, 2, 6), (6, 4, 3), (3, 3, 2)))
CHAIN = ("abi,bcj,cdk,adl,i,j,k,l->", ((3, 4, 2), (4, 5, 3), (5, 6, 2), (3, 6, 3), (2,), (3,), (2,), (3,)))
HYPER = ("abx,bcx,cdx,dax->x", ((3, 4, 6), (4, 2, 6), (2, 5, 6), (5, 3, 6)))
NETWORKS = (RING, CHAIN, HYPER)


def drawn(shapes, dtype):
    rng = np.random.default_rng(1)
    xs = [rng.standard_normal(shape) for shape in shapes]
    if dtype.startswith("c"):
        xs = [x + 1j * rng.standard_normal(x.shape) for x in xs]
    return [x.astype(dtype) for x in xs]


def contraction(calls):
    """What stands for cuTENSOR's: sums along labels, nothing else."""

    def run(alpha, x, mx, y, my, beta, out, mo):
        assert alpha == 1.0 and all(s > 0 for a in (x, y) for s in a.strides) and len({*mo}) == len(mo) > 0
        calls.append(x.device.id)
        product = np.einsum(x.view(np.ndarray), list(mx), y.view(np.ndarray), list(my), list(mo))
        into = out.view(np.ndarray)
        into[...] = product if beta == 0.0 else product + beta * into

    return run


@pytest.fixture(params=["pairs", "cutensor"])
def calls(request, with_cupy, monkeypatch):
    """Devices of the calls of cuTENSOR; None where it is not installed."""
    with_cupy()
    if request.param == "pairs":
        return None
    found: list[int] = []
    monkeypatch.setitem(sys.modules, "cupyx.cutensor", SimpleNamespace(contraction=contraction(found)))
    return found


def there(xs):
    return [tr.asarray(x, device="cuda:1") for x in xs]


def close(found, expected):
    assert str(found.device) == "cuda:1" and isinstance(found.data, DeviceArray) and found.data.device.id == 1
    assert found.dtype == expected.dtype and found.shape == expected.shape
    np.testing.assert_allclose(np.asarray(download(found)), np.asarray(expected), rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("network", NETWORKS, ids=["ring", "chain", "hyper"])
@pytest.mark.parametrize("dtype", ["float64", "complex128"])
def test_networks_and_their_gradients(calls, network, dtype):
    """Where the operands are, without a transfer; eager, planned and compiled."""
    subscripts, shapes = network
    xs = drawn(shapes, dtype)
    every = tuple(range(len(xs)))

    def loss(*xs):
        return tr.sum(tr.abs(einsum(subscripts, *xs)) ** 2)

    here = [tr.asarray(x) for x in xs]
    value, gradients = einsum(subscripts, *here), grad(loss, every)(*here)
    mine = there(xs)
    with no_transfers():
        values = einsum(subscripts, *mine), plan(subscripts, *mine)(*mine)
        found = value_and_grad(loss, every)(*mine)[1], tr.compile(grad(loss, every))(*mine)
    for x in values:
        close(x, value)
    for way in found:
        for x, expected in zip(way, gradients, strict=True):
            close(x, expected)
    assert calls is None or (len(calls) > 20 and {*calls} == {1})
    assert FakeCupy.current == 0


def test_second_order(calls):
    subscripts, shapes = RING
    xs = drawn(shapes, "float64")

    def loss(x, *rest):
        return tr.sum(einsum(subscripts, x, *rest) ** 4)

    def product(xs):
        return hvp(lambda x: loss(x, *xs[1:]), (xs[0],), (xs[0],))

    found, expected = product(there(xs)), product([tr.asarray(x) for x in xs])
    for x, y in zip(*[v if isinstance(v, tuple) else (v,) for v in (found, expected)], strict=True):
        close(x, y)


@pytest.mark.parametrize("dtype", ["float64", "complex128"])
def test_a_memory_budget_slices_on_the_device(calls, dtype):
    """Result and gradients are those of the whole contraction."""
    subscripts, shapes = RING[0], ((8, 6, 7), (7, 6, 9), (9, 5, 8), (8, 8, 4))
    xs = drawn(shapes, dtype)
    here, mine = [tr.asarray(x) for x in xs], there(xs)
    whole = plan(subscripts, *here)
    planned = plan(subscripts, *mine, memory_budget=whole.peak_bytes // 2)
    assert planned.slicing is not None and planned.peak_bytes <= whole.peak_bytes // 2

    def gradients(xs, **options):
        loss = lambda *xs: tr.sum(tr.abs(einsum(subscripts, *xs, **options)) ** 2)
        return grad(loss, (0, 1, 2, 3))(*xs)

    with no_transfers():
        value, found = planned(*mine), gradients(mine, memory_budget=whole.backward_peak_bytes * 7 // 10)
    close(value, einsum(subscripts, *here))
    for x, expected in zip(found, gradients(here), strict=True):
        close(x, expected)


def test_graphs_go_to_cutensor(with_cupy):
    """Values that are used twice, sums of products, conjugation; what is spent is not counted."""
    cupy = with_cupy()
    steps = (((0, 2), ((0, 1),)), ((0, 0), ((0, 2),)))
    assert not taken(ContractionGraph(np.dtype("d"), ((0, 1), (1, 2), (2, 0)), (3, 4, 5), steps, (4,)))
    graph = ContractionGraph(
        np.dtype("complex128"), ((0, 1), (1, 2), (0, 2)), (3, 4, 5),
        (((0, 2), ((0, 1),)), ((1, 2), ((0, 3), (0, 2))), ((1, 0), ((4, 3), (1, 2)))), (3, 5), 2,
    )  # fmt: skip
    calls: list[int] = []
    a, b, c = drawn(((3, 4), (4, 5), (3, 5)), "complex128")
    kernel = CutensorContraction(graph, cupy, contraction(calls), lambda run, raws, written=(): run(*raws))
    first, last = kernel(*[as_device(x) for x in (a, b, c)])
    p, q = np.conj(a), np.conj(b)
    made = p @ q
    middle = p.T @ made + p.T @ c
    np.testing.assert_allclose(np.asarray(first), np.conj(made), rtol=1e-12)
    np.testing.assert_allclose(np.asarray(last), np.conj(middle @ made.T + q @ c.T), rtol=1e-12)
    assert len(calls) == 5 and taken(graph)
    assert kernel.peak_bytes == 16 * (15 + 20 + 12)
    assert [r.flops for r in kernel.report()] == [8 * 60, 16 * 60, 16 * 60]
    assert kernel.flops == 40 * 60
    out = as_device(np.empty((3, 5), complex))
    assert kernel(*[as_device(x) for x in (a, b, c)], out=out)[0] is out
