"""The CPU as a device: functions rendered, compiled and run through the contracts, and what programs refuse."""

import numpy as np
import pytest

from hand_written import mapped, reducing
from tenferro_cpu.native import available
from tenferro_tensor.catalog import analytic, arithmetic, numbers
from tenferro_tensor_core import ArgumentError, ShapeError

pytestmark = pytest.mark.skipif(not available(), reason="native kernels are off")


@pytest.fixture(scope="module")
def device():
    from tenferro_cpu import device

    return device()


def scaled():
    """An array times one number."""
    return mapped(["float64", "float64"], lambda w, xs: [w.let(arithmetic.mul.op(), *xs)], fixed=[1])


def test_a_function_becomes_a_program(device):
    program = device.build(scaled(), "x*a")
    spec = program.compiled.spec
    assert spec.entry == "x_a" and spec.reads == (0, 1) and spec.writes == (2,)
    assert [v.name for v in spec.variables] == ["n"]
    x, out = np.arange(11.0), np.zeros(11)
    program([x, np.array([3.0]), out], [11])
    np.testing.assert_array_equal(out, 3 * x)
    assert device.compiler.compile(spec) == program.compiled


def test_what_it_can_render(device):
    assert device.renderer.supports(analytic.exp, "float64") and device.renderer.supports(numbers.conj, "complex64")
    assert not device.renderer.supports(analytic.lgamma, "float64")
    assert device.renderer.supports(arithmetic.floor_divide, "int64", "int64")
    assert not device.renderer.supports(arithmetic.pow, "int64", "int64")


@pytest.mark.parametrize("leading", [False, True])
@pytest.mark.parametrize("kind", ["sum", "prod", "max", "min"])
def test_reductions(device, kind, leading):
    x = np.random.default_rng(0).random((40, 300))
    program = device.build(reducing(kind, "float64", 1, 1, leading=leading), kind)
    out = np.zeros(300 if leading else 40)
    program([x, out], x.shape)
    np.testing.assert_allclose(out, getattr(np, kind)(x, axis=0 if leading else 1), rtol=1e-12)


@pytest.mark.parametrize(
    ("make", "kind", "text"),
    [
        (lambda x, a, y: [x[:-1], a, y], ShapeError, r"buffer 0 of kernel is a contiguous array of shape \(11,\)"),
        (lambda x, a, y: [x, x, y], ShapeError, r"buffer 1 of kernel is a contiguous array of shape \(1,\)"),
        (lambda x, a, y: [np.zeros(22)[::2], a, y], ShapeError, r"with strides \(16,\); pass other sizes, or a copy"),
        (lambda x, a, y: [x, a, y[:-1]], ShapeError, "buffer 2 of kernel is a contiguous array of shape"),
        (
            lambda x, a, y: [x.astype("float32"), a, y],
            ArgumentError,
            "buffer 0 of kernel is an array of float64, got",
        ),
        (lambda x, a, y: [x, a, None], ArgumentError, "buffer 2 of kernel is an array of float64"),
        (lambda x, a, y: [x, a, np.frombuffer(bytes(88))], ArgumentError, "is written to, and cannot be"),
        (lambda x, a, y: [np.zeros(89, "u1")[1:].view("f8"), a, y], ArgumentError, "buffer 0 of kernel is an aligned"),
    ],
)
def test_programs_refuse_what_does_not_fit(device, make, kind, text):
    buffers = make(np.arange(11.0), np.array([2.0]), np.zeros(11))
    with pytest.raises(kind, match=text):
        device.build(scaled())(buffers, [11])


def test_programs_refuse_buffers_that_share_memory_with_a_written_one(device):
    program = device.build(scaled(), "x*a")
    memory, two = np.arange(20.0), np.array([2.0])
    for move in (-1, 0, 1, 5):
        with pytest.raises(ArgumentError, match="buffer 0 of x_a shares memory with buffer 2, which is written; copy"):
            program([memory[6:12], two, memory[6 + move : 12 + move]], [6])
    with pytest.raises(ArgumentError, match="buffer 1 of x_a shares memory with buffer 2"):
        program([np.ones(6), memory[2:3], memory[:6]], [6])
    program([memory[:6], two, memory[6:12]], [6])
    np.testing.assert_array_equal(memory[6:12], [0, 2, 4, 6, 8, 10])


def test_several_results_lie_apart(device):
    both = lambda w, xs: [w.let(arithmetic.neg.op(), *xs), w.let(arithmetic.abs.op(), *xs)]
    program = device.build(mapped(["float64"], both))
    x, out, other = np.arange(-2.0, 3.0), np.zeros(5), np.zeros(5)
    with pytest.raises(ArgumentError, match="buffer 1 of kernel shares memory with buffer 2"):
        program([x, out, out], [5])
    program([x, out, other], [5])
    np.testing.assert_array_equal(out, -x)
    np.testing.assert_array_equal(other, abs(x))


@pytest.mark.parametrize("value", [2.5, "3", None, True, 3.0])
def test_extents_are_integers(device, value):
    with pytest.raises(ArgumentError, match="n of the kernel is an integer, got"):
        device.build(scaled())([np.ones(3), np.array([1.0]), np.ones(3)], [value])


def test_memory_is_given_and_taken_back(device):
    block = device.allocator.allocate(1 << 20)
    assert block.nbytes >= 1 << 20 and block.ctypes.data % 64 == 0
    assert device.allocator.stats()["live"] > 0
    device.allocator.clear()
