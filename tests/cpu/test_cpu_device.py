"""The CPU as a public device: toolchains by name, and the allocator that a context has chosen."""

import numpy as np
import pytest

import tenferro_cpu
import tenferro_runtime as tr
from tenferro_cpu import CpuContext, CpuPool, MemoryPool, NumpyMemory, memory_pool
from tenferro_cpu.native import available
from tenferro_tensor import compute_context
from tenferro_tensor.catalog import arithmetic, comparison
from tenferro_tensor.device_model import Access, Apply, CompileError, KernelIR, Operand, Over, ProgramSpec, Reduction
from tenferro_tensor_core import ArgumentError, ShapeError

F8 = Operand(np.dtype("float64"))
WAYS = ["numpy", pytest.param("llvm", marks=pytest.mark.skipif(not available(), reason="native kernels are off"))]
pooled = pytest.mark.skipif(memory_pool() is None, reason="there is no memory pool")


def product(reduction=None, access=Access.UNIT):
    inputs = (F8, Operand(F8.dtype, access))
    return KernelIR(inputs, (Apply(arithmetic.mul.op(), (0, 1)),), (2,), reduction=reduction)


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
    out, total, columns, number = np.zeros(4), np.zeros(1), np.zeros(4), np.array(3.0)
    device.build(product(), "x y", using)([x[1], y, out], [4])
    np.testing.assert_array_equal(out, x[1] * y)
    device.build(product(access=Access.FIXED), "x a", using)([x[1], number, out], [4])
    np.testing.assert_array_equal(out, x[1] * 3)
    device.build(product(Reduction("sum")), "dot", using)([x[1], y, total], [4])
    assert total[0] == x[1] @ y
    device.build(product(Reduction("sum", Over.LEADING)), "columns", using)([x, y, columns], [4, 3])
    np.testing.assert_array_equal(columns, (x * y).sum(0))
    located = np.zeros(1, "int64")
    device.build(product(Reduction("argmax")), "where", using)([x[1], -y, located], [4])
    assert located[0] == np.argmax(x[1] * -y)
    less = KernelIR((F8, F8), (Apply(comparison.lt.op(), (0, 1)),), (2,), reduction=Reduction("max"))
    found = np.zeros(1, "bool")
    device.build(less, "any", using)([x[1], y, found], [4])
    assert not found[0]


@pytest.mark.parametrize("using", WAYS)
def test_programs_of_every_toolchain_refuse_what_does_not_reach(using):
    program = tenferro_cpu.device().build(product(), "x y", using)
    with pytest.raises(ShapeError, match="buffer 1 of x_y of shape \\(3,\\) does not broadcast"):
        program([np.ones(4), np.ones(3), np.ones(4)], [4])
    memory = np.ones(9)
    with pytest.raises(ArgumentError, match="buffer 0 of x_y shares memory with buffer 2"):
        program([memory[:4], np.ones(4), memory[1:5]], [4])


def test_numpy_takes_no_source_that_was_written_by_hand():
    compiler = tenferro_cpu.device().toolchain("numpy").compiler
    with pytest.raises(CompileError, match="f was written by hand"):
        compiler.compile(ProgramSpec("text", "f", (), 0, (), ()))


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
