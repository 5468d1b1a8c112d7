"""Kernels with their work items in parallel: every kind of kernel at every kind of size, and planted races."""

import numpy as np
import pytest

import tenferro_runtime as tr
from every_kind import SIZES, every_kind, operands
from host_kernels import COMPILER, ORDERS, HostFunction, RaceError, library_of
from nest_kernels import HostTarget
from tenferro_gpu.rendering import BLOCK, Sharing
from tenferro_gpu.whole import KernelSequence, planned
from tenferro_runtime.lowering import lower
from tenferro_tensor import ComputeDevice, Place

pytestmark = pytest.mark.skipif(COMPILER is None, reason="there is no g++ to compile rendered kernels with")

GPU = Place(ComputeDevice("cuda:0").memory_space)


def lowered(f, *shapes):
    """A function of float64 arrays of a GPU."""
    spec = tr.asarray(np.ones(1)).spec
    return lower(tr.trace(f, *[spec.with_(place=GPU, shape=s) for s in shapes]), kind="cuda")


@pytest.fixture(scope="module")
def function():
    """`every_kind` of any sizes."""
    n, m = tr.dim("n", 0), tr.dim("m", 0)
    return lowered(every_kind, (n, m), (3, m), (40,))


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize(("n", "m"), SIZES)
def test_every_kind_of_kernel_at_every_kind_of_size(function, order, n, m):
    assert {k.sharing for k in planned(function).kernels} == set(Sharing)
    arrays = operands(n, m)
    sizes = tuple({"n": n, "m": m}[name] for name in function.sizes)
    found = KernelSequence(function, HostTarget(order, BLOCK))(sizes, *arrays)
    for got, want in zip(found, every_kind(*map(tr.asarray, arrays)), strict=True):
        np.testing.assert_allclose(got, np.asarray(want), rtol=1e-11, atol=1e-11)


class Without(HostTarget):
    """A target that leaves out one of the barriers of all kernels."""

    def __init__(self, order, barrier):
        super().__init__(order)
        self.barrier = barrier

    def functions(self, source, entries):
        parts = source.split("__syncthreads();")
        assert len(parts) > self.barrier + 1
        left = "__syncthreads();".join(parts[: self.barrier + 1]), "__syncthreads();".join(parts[self.barrier + 1 :])
        return super().functions("".join(left), entries)


def centred_twice(x):
    y = tr.flip(x) - tr.sum(x)
    return tr.flip(y) * tr.sum(y * y)


@pytest.mark.parametrize("order", ORDERS)
def test_a_removed_barrier_is_found_in_any_order(order):
    """Of the six, only the last protects nothing: no loop after it reuses the shared memory."""
    f, x = lowered(centred_twice, (40,)), np.arange(40.0)
    for barrier in range(5):
        with pytest.raises(RaceError, match="nest_0: work item . of group 0 (reads|writes) shared_float64_0"):
            KernelSequence(f, Without(order, barrier))((), x)
    (found,) = KernelSequence(f, Without(order, 5))((), x)
    np.testing.assert_allclose(found, centred_twice(tr.asarray(x)))


PLANTED = {
    "two_groups": (
        "b[threadIdx.x] = 1.0;",
        r"work item . of group . writes argument 0 \+ \d+ bytes, which work item . of group . writes",
    ),
    "neighbours": ("double x = b[(item + 1) % 16]; b[item] = x;", "work item . of group . (reads|writes) argument 0"),
    "same_value": ("b[16] = 2.0;", r"argument 0 \+ 128 bytes, which .* writes without a barrier between"),
    "read_early": (
        "shared_x[threadIdx.x] = item; b[item] = shared_x[7 - threadIdx.x];",
        "shared_x .*(nothing has written|without a barrier)",
    ),
    "never_written": ("b[item] = shared_x[threadIdx.x];", r"reads shared_x \+ \d+ bytes, which nothing has written"),
    "beyond": ("shared_x[threadIdx.x + 2] = 1.0;", "an access beyond the arrays in shared memory"),
    "some_meet": ("if (threadIdx.x < 3) __syncthreads();", "a barrier in line .* that some work items do not reach"),
    "two_barriers": (
        "if (threadIdx.x < 3) {\n __syncthreads();\n} else {\n __syncthreads();\n}",
        "wait at barriers in lines .* and",
    ),
    "other_group": (
        "if (blockIdx.x == 0) b[item] = 1.0;\n__syncthreads();\n"
        "if (blockIdx.x == 1) b[16 + threadIdx.x] = b[threadIdx.x];",
        "of group . (reads|writes) argument 0",
    ),
}
"""Bodies of kernels that are wrong, and what is said of them."""

RIGHT = """
b[item] = item; shared_x[threadIdx.x] = item; __syncthreads();
const double other = shared_x[7 - threadIdx.x] + b[blockIdx.x * 8 + 7 - threadIdx.x]; __syncthreads();
b[item] = other; shared_x[threadIdx.x] = b[16];
"""


@pytest.fixture(scope="module")
def planted():
    """All of these kernels, of one text."""
    head = 'extern "C" __global__ void __launch_bounds__(256) {name}(\n    double* b)\n{{\n'
    start = "    __shared__ double shared_x[8];\n    const int item = blockIdx.x * blockDim.x + threadIdx.x;\n"
    bodies = {"right": RIGHT, **{name: body for name, (body, _) in PLANTED.items()}}
    return library_of("\n".join([head.format(name=name) + start + body + "\n}\n" for name, body in bodies.items()]))


@pytest.mark.parametrize("order", ORDERS)
def test_planted_races_are_found(planted, order):
    b = np.zeros(24)
    HostFunction(planted, "right", order)((2,), (8,), (b,))
    np.testing.assert_array_equal(b[:16].reshape(2, 8)[:, ::-1], 2 * np.arange(16).reshape(2, 8))
    for name, (_, message) in PLANTED.items():
        with pytest.raises(RaceError, match=message):
            HostFunction(planted, name, order)((2,), (8,), (np.zeros(24),))
