"""The CPU backend as a whole: discovery, laziness, views, contexts and the report."""

import subprocess
import sys
from typing import Any

import numpy as np
import pytest

import tenferro_cpu
from kernel_check import kernel_of, spec_of
from tenferro_cpu import CpuBackend, CpuContext, make_backend
from tenferro_tensor import (
    REGISTRY,
    ComputeDevice,
    Spec,
    compute_context,
    get_backend,
    primitive,
    tensor,
)
from tenferro_tensor import catalog as c
from tenferro_tensor_core import PlacementError, UnsupportedError


def test_is_found_by_name() -> None:
    backend = get_backend("cpu")
    assert isinstance(backend, CpuBackend)
    assert backend.devices() == (ComputeDevice("cpu:0"),)
    backend.synchronize()


def test_making_it_again_registers_the_same_kernels() -> None:
    get_backend("cpu")
    before = REGISTRY.find("kernel", c.add, "cpu")
    make_backend()
    assert REGISTRY.find("kernel", c.add, "cpu") is before


def test_moving_data_within_main_memory_copies_nothing() -> None:
    backend, x = make_backend(), np.ones(3)
    assert backend.upload(x, ComputeDevice("cpu:0")) is x
    assert backend.download(x) is x
    zero = backend.download(np.float32(2))
    assert isinstance(zero, np.ndarray) and zero.shape == () and zero.dtype == np.float32


def test_a_primitive_without_a_kernel_is_a_typed_error() -> None:
    @primitive
    def unheard_of(x: Spec) -> Spec:
        return x

    text = r"unheard_of has no kernel for cpu:0; no backend has one. Move the operands .* or install a distribution"
    with pytest.raises(UnsupportedError, match=text):
        unheard_of(tensor([1.0]))


SCRIPT = """
import sys
import tenferro_cpu
from tenferro_tensor import catalog, tensor
x = tensor([0.5, 1.5])
assert (x + x).tolist() == [1.0, 3.0]
assert "scipy" not in sys.modules, "SciPy was imported early"
catalog.lgamma(x)
assert "scipy.special" in sys.modules
"""


def test_scipy_is_loaded_by_the_first_special_function() -> None:
    done = subprocess.run([sys.executable, "-c", SCRIPT], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def run(p: Any, *arrays: Any, **params: Any) -> Any:
    return kernel_of(p, tuple(map(spec_of, arrays)), params)[0](*arrays)


def test_structural_kernels_return_views() -> None:
    x = np.arange(12.0).reshape(3, 4)
    z, zero = x * 1j, np.float64(0)
    views = [
        run(c.transpose, x, permutation=(1, 0)),
        run(c.reshape, x, shape=(4, 3)),
        run(c.reverse, x, axes=(0,)),
        run(c.slice_, x, start=(0, 1), limit=(3, 3), stride=(2, 1)),
        run(c.pad, x, zero, low=(-1, 0), high=(0, -1), interior=(0, 0)),
        run(c.broadcast_in_dim, x, shape=(1000, 3, 4), dims=(1, 2)),
    ]
    assert all(np.shares_memory(x, v) for v in views)
    assert np.shares_memory(z, run(c.real, z)) and np.shares_memory(z, run(c.imag, z))


def test_kernels_that_have_nothing_to_do_return_the_operand() -> None:
    x = np.arange(12.0).reshape(3, 4)
    assert run(c.transpose, x, permutation=(0, 1)) is x
    assert run(c.reduce_sum, x, axes=()) is x
    assert run(c.convert, x, dtype=x.dtype) is x
    assert run(c.conj, x) is x
    assert run(c.concatenate, x, axis=0) is x
    assert run(c.stop_gradient, x) is x


def test_context_runs_on_the_calling_thread() -> None:
    with compute_context(CpuContext()):
        assert (tensor([1.0]) + 1).tolist() == [2.0]


def test_context_of_another_device() -> None:
    with pytest.raises(
        PlacementError, match="a CpuContext was requested on cuda:0, which is not a CPU device; use 'cpu:"
    ):
        CpuContext(ComputeDevice("cuda:0"))
    with pytest.raises(PlacementError, match="cpu:9 was requested, but no such pool was ever opened; open it with"):
        CpuContext("cpu:9")


def test_info_names_what_computes() -> None:
    report = tenferro_cpu.info()
    assert report["numpy"] == np.__version__
    assert report["cores"] >= 1
    assert report["blas"] != "unknown"
