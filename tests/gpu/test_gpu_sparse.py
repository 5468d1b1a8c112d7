"""Sparse matrices on GPUs: products by cuSPARSE, and what is computed around them beside the entries."""

import numpy as np
import pytest

import tenferro_linalg as tl
import tenferro_runtime as tr
from fake_cupy import FakeCupy
from tenferro_ad import grad, jvp
from tenferro_gpu import CudaContext
from tenferro_tensor import compute_context
from tenferro_tensor_core import UnsupportedError

RNG = np.random.default_rng(2)
PLACES = ([0, 3, 0, 1, 1], [1, 0, 1, 2, 0])
DATA, X, M = RNG.normal(size=5), RNG.normal(size=3), RNG.normal(size=(3, 2))


def used(data, x, m):
    """A number from everything that a sparse matrix offers."""
    a = tl.coo_array((data, PLACES), (4, 3))
    y = a @ x
    return (
        tr.sum(y * y)
        + tr.sum((a @ m) ** 2)
        + tr.sum((y @ a) * x)
        + tr.sum(a.todense() ** 2)
        + tr.sum(a.diagonal()) * a.sum()
        + tr.sum(a.sum(0) * x)
        + tr.sum((a * tr.reshape(y, (4, 1))).sum(1))
        + tr.sum(tr.abs(a.mH @ y))
    )


@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64", "complex128"])
def test_values_and_derivatives(with_cupy, dtype):
    with_cupy()
    require_the_cpus(dtype, "cuda:1")


def require_the_cpus(dtype, device):
    """Compare values and derivatives on a device with those of the CPU."""
    arrays = [x.astype(dtype) for x in (DATA, X, M)]

    def real(*values):
        return tr.real(used(*values))

    def found(device):
        values = [tr.asarray(x, device=device) for x in arrays]
        slope = grad(real, argnums=(0, 1, 2))
        results = (
            real(*values),
            *slope(*values),
            *tr.compile(slope)(*values),
            jvp(real, tuple(values), tuple(values))[1],
        )
        assert all(str(r.device) == device for r in results)
        return [np.asarray(r.to_device("cpu:0")) for r in results]

    tolerance = 1e-4 if np.finfo(dtype).bits == 32 else 1e-10
    for got, want in zip(found(device), found("cpu:0"), strict=True):
        np.testing.assert_allclose(got, want, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("shape", [(4, 3), (0, 3), (4, 0)])
@pytest.mark.parametrize("columns", [(), (0,), (1,), (2,)])
def test_matrices_and_operands_without_elements(with_cupy, shape, columns):
    with_cupy()
    nowhere = np.zeros(0, int)
    empty = tl.coo_array((tr.asarray(np.zeros(0), device="cuda:0"), (nowhere, nowhere)), shape)
    x = tr.asarray(np.ones((shape[1], *columns)), device="cuda:0")
    got = empty @ x
    assert got.shape == (shape[0], *columns) and not np.asarray(got.to_device("cpu:0")).any()


def test_positions_are_checked_once_for_each_stream(with_cupy):
    with_cupy()
    a = tl.coo_array((tr.asarray(DATA, device="cuda:0"), PLACES), (4, 3))
    x = tr.asarray(X, device="cuda:0")
    a @ x
    FakeCupy.synchronized.clear()
    first = a @ x
    assert not FakeCupy.synchronized
    with compute_context(CudaContext("cuda:0")):
        second = a @ x
    np.testing.assert_array_equal(np.asarray(first.to_device("cpu:0")), np.asarray(second.to_device("cpu:0")))


def test_equations_are_left_to_the_cpu(with_cupy):
    with_cupy()
    a = tl.coo_array((tr.asarray(np.ones(2), device="cuda:0"), ([0, 1], [0, 1])), (2, 2))
    b = tr.asarray(np.ones(2), device="cuda:0")
    with pytest.raises(UnsupportedError, match="solve has no kernel for cuda:0; cpu has one"):
        tl.spsolve(a, b)
    with tr.host_fallback():
        np.testing.assert_array_equal(np.asarray(tl.spsolve(a, b).to_device("cpu:0")), [1.0, 1.0])


@pytest.mark.gpu
@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64", "complex128"])
def test_on_hardware(dtype):
    require_the_cpus(dtype, "cuda:0")
