"""The CPU as a device: kernels rendered, compiled and run through the contracts, and what programs refuse."""

import numpy as np
import pytest

from tenferro_cpu.native import available
from tenferro_tensor.catalog import analytic, arithmetic, numbers
from tenferro_tensor.device_model import Access, Apply, KernelIR, Operand, Over, Reduction
from tenferro_tensor_core import ArgumentError, ShapeError

pytestmark = pytest.mark.skipif(not available(), reason="native kernels are off")

F8 = np.dtype("float64")


@pytest.fixture(scope="module")
def device():
    from tenferro_cpu.native.kernels._device import device

    return device()


def scaled(access=Access.FIXED, reduction=None):
    inputs = (Operand(F8), Operand(F8, access))
    return KernelIR(inputs, (Apply(arithmetic.mul.op(), (0, 1)),), (2,), reduction=reduction)


def test_a_kernel_becomes_a_program(device):
    program = device.build(scaled(), "x*a")
    assert program.compiled.spec.entry == "x_a" and program.compiled.spec.writes == (2,)
    x, out = np.arange(11.0), np.zeros(11)
    program([x, np.array(3.0), out], [11])
    np.testing.assert_array_equal(out, 3 * x)
    assert device.compiler.compile(program.compiled.spec) == program.compiled


def test_what_it_can_render(device):
    assert device.renderer.supports(analytic.exp, "float64") and device.renderer.supports(numbers.conj, "complex64")
    assert not device.renderer.supports(analytic.lgamma, "float64")
    assert device.renderer.supports(arithmetic.floor_divide, "int64", "int64")
    assert not device.renderer.supports(arithmetic.pow, "int64", "int64")


def test_reductions_over_a_row_and_over_rows(device):
    x, y = np.arange(12.0).reshape(3, 4), np.arange(1.0, 5.0)
    total = np.zeros(1)
    device.build(scaled(Access.UNIT, Reduction("sum")))([x[1], y, total], [4])
    assert total[0] == x[1] @ y
    columns = np.zeros(4)
    device.build(scaled(Access.UNIT, Reduction("sum", Over.LEADING)))([x, y, columns], [4, 3])
    np.testing.assert_array_equal(columns, (x * y).sum(0))


@pytest.mark.parametrize(
    ("make", "kind", "text"),
    [
        (lambda x, a, y: [x[:-1], a, y], ShapeError, "buffer 0 of kernel of shape \\(10,\\) does not broadcast"),
        (
            lambda x, a, y: [a, a, y],
            ShapeError,
            "over 11 elements, but the kernel was rendered for unit access",
        ),
        (lambda x, a, y: [np.zeros(22)[::2], a, y], ShapeError, "render it for these strides"),
        (lambda x, a, y: [x, a, y[:-1]], ShapeError, "buffer 2 of kernel of shape \\(10,\\) does not broadcast"),
        (lambda x, a, y: [x.astype("float32"), a, y], ArgumentError, "an aligned array of float64, got float32"),
        (lambda x, a, y: [x, a, None], ArgumentError, "buffer 2 of kernel is an aligned array"),
        (lambda x, a, y: [x, a, np.broadcast_to(a, 11)], ArgumentError, "is written to, and cannot be"),
    ],
)
def test_programs_refuse_what_does_not_reach(device, make, kind, text):
    buffers = make(np.arange(11.0), np.array(2.0), np.zeros(11))
    with pytest.raises(kind, match=text):
        device.build(scaled())(buffers, [11])


def test_programs_refuse_buffers_that_share_memory_with_a_written_one(device):
    program = device.build(scaled(), "x*a")
    memory = np.arange(20.0)
    for move in (-1, 1, 5):
        with pytest.raises(ArgumentError, match="buffer 0 of x_a shares memory with buffer 2, which is written; copy"):
            program([memory[6:12], np.array(2.0), memory[6 + move : 12 + move]], [6])
    with pytest.raises(ArgumentError, match="buffer 1 of x_a shares memory with buffer 2"):
        program([np.ones(6), memory[2:3], memory[:6]], [6])
    program([memory[:6], np.array(2.0), memory[:6]], [6])
    np.testing.assert_array_equal(memory[:8], [0, 2, 4, 6, 8, 10, 6, 7])
    program([memory[:6], np.array(2.0), memory[6:12]], [6])
    np.testing.assert_array_equal(memory[6:12], [0, 4, 8, 12, 16, 20])
    rows = device.build(scaled(Access.UNIT, Reduction("sum", Over.LEADING)))
    grid = np.ones((3, 4))
    with pytest.raises(ArgumentError, match="buffer 0 of kernel shares memory with buffer 2"):
        rows([grid, np.ones(4), grid[0]], [4, 3])


def test_several_results_lie_apart(device):
    double = KernelIR((Operand(F8),), (Apply(arithmetic.neg.op(), (0,)), Apply(arithmetic.abs.op(), (0,))), (1, 2))
    program = device.build(double)
    x, out = np.arange(-2.0, 3.0), np.zeros(5)
    with pytest.raises(ArgumentError, match="buffer 2 of kernel shares memory with buffer 1"):
        program([x, out, out], [5])
    program([x, x, out], [5])
    np.testing.assert_array_equal(x, [2, 1, 0, -1, -2])
    np.testing.assert_array_equal(out, [2, 1, 0, 1, 2])


@pytest.mark.parametrize("value", [2.5, "3", None, True, 3.0])
def test_extents_are_integers(device, value):
    with pytest.raises(ArgumentError, match="n of the kernel is an integer, got"):
        device.build(scaled())([np.ones(3), np.array(1.0), np.ones(3)], [value])


def test_memory_is_given_and_taken_back(device):
    block = device.allocator.allocate(1 << 20)
    assert block.nbytes >= 1 << 20 and block.ctypes.data % 64 == 0
    assert device.allocator.stats()["live"] > 0
    device.allocator.clear()
