"""Rendered CUDA sources compile for three architectures, without warnings and with few registers."""

import pytest

import cuda_sources
from nvrtc_census import ARCHITECTURES, SMALL_SPILL, examined
from tenferro_gpu.compiling import runtime_library
from tenferro_tensor_core import BackendUnavailableError

NAMES = [f"tenferro_runtime.{name}" for name in ("softmax", "cumulative_sum", "while_loop, bounded", "switch")]


@pytest.fixture(scope="module")
def nvrtc():
    try:
        return runtime_library("cuda")
    except BackendUnavailableError as reason:
        pytest.skip(str(reason))


@pytest.fixture(scope="module")
def source():
    """Programs as one kernel and spread out, and their gradients."""
    found = cuda_sources.programs(["float64"], NAMES)
    assert len(found.texts) > 2 * len(NAMES) and not found.refused
    ((_, text, owners),) = cuda_sources.joined(found.texts, most=10_000)
    assert len(owners) > len(NAMES)
    return text


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_kernels_compile_for(nvrtc, source, architecture):
    for text in (source, *[text for _, text in cuda_sources.reductions(["float32"])][::3]):
        found = examined(nvrtc, text, architecture)
        assert not found.warnings
        assert max(k.spilled for k in found.kernels) <= SMALL_SPILL
        assert max(k.registers for k in found.kernels) <= 128


def test_warnings_and_spills_are_found(nvrtc):
    head = 'extern "C" __global__ void __launch_bounds__(256) '
    found = examined(nvrtc, head + "f(double* x) {\n int unused = 1; x[0] = 2; }", "90")
    assert len(found.warnings) == 1 and "unused" in found.warnings[0]
    loads = "".join(f"double r{k} = x[{k}];" for k in range(300))
    stores = "".join(f"x[{k}] = r{299 - k};" for k in range(300))
    (kernel,) = examined(nvrtc, f"{head}g(volatile double* x) {{ {loads} {stores} }}", "90").kernels
    assert kernel.spilled > SMALL_SPILL
