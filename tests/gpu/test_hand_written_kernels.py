"""Kernels written by hand, rendered for GPUs and run by the processor."""

from typing import Any

import numpy as np
import pytest

from host_kernels import COMPILER, HostCompiler, HostFunction
from tenferro_gpu.rendering import CudaRenderer
from tenferro_gpu.running import GpuProgram, _program
from tenferro_tensor.catalog import arithmetic
from tenferro_tensor.device_model import Access, Apply, KernelIR, Operand, Over, Reduction
from tenferro_tensor_core import ArgumentError, ShapeError, UnsupportedError

pytestmark = pytest.mark.skipif(COMPILER is None, reason="there is no g++ to compile rendered kernels with")

F8 = Operand(np.dtype("float64"))


class Host:
    """Stands in for a GPU: compiles and runs hand-written kernels on the processor."""

    def __init__(self):
        self.compiler, self.functions = HostCompiler(), []

    def load(self, compiled, device):
        self.functions.append(HostFunction(compiled.code, compiled.spec.entry))
        return self.functions[-1]


class OnDevice(np.ndarray):
    device: Any = type("Device", (), {"id": 0})

    @property
    def flags(self):
        plain = self.view(np.ndarray).flags
        return type("Flags", (), {"c_contiguous": plain.c_contiguous})


def test_programs_check_what_they_are_given():
    host = Host()
    fixed = Operand(F8.dtype, Access.FIXED)
    spec = CudaRenderer().render(KernelIR((F8, fixed), (Apply(arithmetic.mul.op(), (0, 1)),), (2,)), "scale")
    program = GpuProgram(host.compiler.compile(spec), host.load)
    x, two, y = (a.view(OnDevice) for a in (np.arange(5.0), np.array([2.0]), np.zeros(5)))
    program((x, two, y), (5,))
    np.testing.assert_array_equal(y, 2 * np.arange(5.0))
    with pytest.raises(ShapeError, match=r"buffer 1 of kernel_scale of shape \(5,\) does not broadcast to \(4,\)"):
        program((x[:4], x, y[:4]), (4,))
    with pytest.raises(ShapeError, match="rendered for unit access; render it for these strides"):
        program((np.arange(10.0)[::2].view(OnDevice), two, y), (5,))
    with pytest.raises(ArgumentError, match="an array of float64, got int64"):
        program((np.arange(5).view(OnDevice), two, y), (5,))
    with pytest.raises(ShapeError, match="is written, in order, as an array of shape"):
        program((x, two, np.zeros(10).view(OnDevice)[::2]), (5,))


def test_reductions_as_programs():
    host = Host()
    kernel = KernelIR((F8,), (), (0,), reduction=Reduction("sum", Over.TRAILING))
    program = GpuProgram(host.compiler.compile(CudaRenderer().render(kernel, "rows")), host.load)
    x, y = np.arange(12.0).reshape(3, 4).view(OnDevice), np.zeros(3).view(OnDevice)
    program((x, y), (3, 4))
    np.testing.assert_array_equal(y, x.sum(1))
    y = np.full(3, 77.0).view(OnDevice)
    program((x[:, :0], y), (3, 0))
    np.testing.assert_array_equal(y, np.zeros(3))
    program((x[:0], y[:0]), (0, 4))
    assert len(host.functions[0].launches) == 2  # there is nothing to do for no results
    with pytest.raises(ArgumentError, match="kernel_rows runs on a device, got an array in main memory; upload it"):
        program((np.ones((3, 4)), y), (3, 4))


def test_what_is_not_rendered_is_named():
    located = KernelIR((F8,), (), (0,), reduction=Reduction("argmax"))
    with pytest.raises(UnsupportedError, match="argmax has no form in a kernel of a GPU"):
        CudaRenderer().render(located, "where")
    with pytest.raises(UnsupportedError, match="write results in order"):
        CudaRenderer().render(KernelIR((F8,), (), (0,), (Access.STRIDED,)), "gaps")


def test_launches_of_large_spaces_go_round(monkeypatch):
    monkeypatch.setattr(_program, "MAX_WORK_GROUPS", 2)
    host = Host()
    spec = CudaRenderer().render(KernelIR((F8,), (Apply(arithmetic.neg.op(), (0,)),), (1,)), "negative")
    program = GpuProgram(host.compiler.compile(spec), host.load)
    x, y = np.arange(1000.0).view(OnDevice), np.zeros(1000).view(OnDevice)
    program((x, y), (1000,))
    np.testing.assert_array_equal(y, -x)
    assert host.functions[0].launches == [(2, 256)]
