"""The CPU as a public device: toolchains by name, and the allocator that a context has chosen."""

import numpy as np
import pytest

import tenferro_cpu
import tenferro_runtime as tr
from hand_written import mapped, of_op, reducing
from tenferro_cpu import CpuContext, CpuPool, MemoryPool, NumpyMemory, memory_pool
from tenferro_cpu.native import available
from tenferro_tensor import compute_context
from tenferro_tensor.catalog import arithmetic, comparison
from tenferro_tensor.device_model import CompiledSpec, CompileError, ProgramSpec
from tenferro_tensor_core import ArgumentError, ShapeError

WAYS = ["numpy", pytest.param("llvm", marks=pytest.mark.skipif(not available(), reason="native kernels are off"))]
pooled = pytest.mark.skipif(memory_pool() is None, reason="there is no memory pool")


def product():
    return of_op(arithmetic.mul.op(), "float64", "float64")


def test_toolchains_have_names_and_write_for_their_device():
    device = tenferro_cpu.device()
    assert device is tenferro_cpu.device() and device.kind == "cpu"
    assert list(device.toolchains) == (["llvm", "numpy"] if available() else ["numpy", "llvm"])
    assert device.renderer.device == device.toolchain("numpy").renderer.device == "cpu"
    with pytest.raises(ArgumentError, match="cpu has no toolchain 'mlir'; it has (llvm, numpy|numpy, llvm)"):
        device.build(product(), using="mlir")


@pytest.mark.parametrize("using", WAYS)
def test_kernels_run_by_every_toolchain(using):
    device, x, y = tenferro_cpu.device(), np.arange(12.0).reshape(3, 4), np.arange(1.0, 5.0)
    out, total, columns, number = np.zeros(4), np.zeros(()), np.zeros(4), np.array([3.0])
    device.build(product(), "x y", using)([x[1], y, out], [4])
    np.testing.assert_array_equal(out, x[1] * y)
    times = mapped(["float64"] * 2, lambda w, xs: [w.let(arithmetic.mul.op(), *xs)], fixed=[1])
    device.build(times, "x a", using)([x[1], number, out], [4])
    np.testing.assert_array_equal(out, x[1] * 3)
    device.build(reducing("sum", "float64", 0, 1), "total", using)([y, total], [4])
    assert total == y.sum()
    device.build(reducing("sum", "float64", 1, 1, leading=True), "columns", using)([x, columns], [3, 4])
    np.testing.assert_array_equal(columns, x.sum(0))
    found = np.zeros(4, "bool")
    device.build(of_op(comparison.lt.op(), "float64", "float64"), "less", using)([x[0], y, found], [4])
    np.testing.assert_array_equal(found, x[0] < y)


@pytest.mark.parametrize("using", WAYS)
def test_programs_of_every_toolchain_refuse_what_does_not_reach(using):
    program = tenferro_cpu.device().build(product(), "x y", using)
    with pytest.raises(ShapeError, match="buffer 1 of x_y is a contiguous array of shape \\(4,\\)"):
        program([np.ones(4), np.ones(3), np.ones(4)], [4])
    memory = np.ones(9)
    with pytest.raises(ArgumentError, match="buffer 0 of x_y shares memory with buffer 2"):
        program([memory[:4], np.ones(4), memory[1:5]], [4])


@pytest.mark.parametrize("using", WAYS)
def test_no_source_that_was_written_by_hand_runs(using):
    tools = tenferro_cpu.device().toolchain(using)
    with pytest.raises(CompileError, match="f was written by hand; the CPU runs kernels that were rendered"):
        tools.program(CompiledSpec(ProgramSpec("text", "f", (), 0, (), ()), 0, "key"))


@pytest.mark.optimised
@pytest.mark.skipif(not available(), reason="native kernels are off")
def test_text_is_written_only_for_code_that_is_nowhere():
    tools = tenferro_cpu.device().toolchain("llvm")
    tools.compiled(product(), "known")
    assert tools.at_hand(product(), "known")
    spec = tools.renderer.render(product(), "known")

    def unexpected():
        raise AssertionError("the code is there")

    again = ProgramSpec(unexpected, *[getattr(spec, name) for name in spec.__slots__[1:]])
    assert again == spec and tools.compiler.compile(again) == tools.compiled(product(), "known")


@pooled
def test_results_come_from_the_allocator_of_the_context():
    x, own, device = tr.ones(1 << 17), MemoryPool(8 << 20), tenferro_cpu.device()
    double, whole = tr.compile(lambda v: tr.exp(v) * v), memory_pool().stats()
    with compute_context(CpuContext(allocator=own)):
        assert device.memory is own is not device.allocator
        values = [x + x, double(x), tr.sum(tr.reshape(x, (2, -1)), axis=0), tr.exp(x.reshape(512, 256).T)]
    assert own.stats()["live"] >= 3 * x.data.nbytes + (x.data.nbytes // 2)
    assert memory_pool().stats()["live"] == whole["live"] and device.memory is device.allocator
    with compute_context(CpuContext(allocator=NumpyMemory())):
        values.append(x * x)
    assert memory_pool().stats()["live"] == whole["live"]
    values.append(x * x)
    assert memory_pool().stats()["live"] > whole["live"]
    del values
    assert own.stats()["live"] == 0


@pooled
def test_an_error_gives_the_allocator_back():
    own, device = MemoryPool(1 << 20), tenferro_cpu.device()
    with pytest.raises(ZeroDivisionError), compute_context(CpuContext(allocator=own)):
        with compute_context(CpuContext(allocator=NumpyMemory())):
            assert isinstance(device.memory, NumpyMemory)
        assert device.memory is own  # type: ignore[comparison-overlap]  # mypy keeps what the inner block found out
        raise ZeroDivisionError
    x = tr.ones(1 << 16) * 2.0
    assert own.stats()["live"] == 0 and device.memory is device.allocator and x.shape == (1 << 16,)


@pooled
def test_pools_keep_their_own_memory():
    own = MemoryPool(8 << 20)
    with CpuPool() as pool:
        with pytest.raises(ArgumentError, match="whose memory is its own; open it with CpuPool"):
            CpuContext(pool, allocator=own)
        x = tr.ones(1 << 17).with_compute_device(pool.device)
        with compute_context(CpuContext(allocator=own)):
            y = x + x
        assert own.stats()["live"] == 0 and pool.memory.stats()["live"] >= y.data.nbytes
