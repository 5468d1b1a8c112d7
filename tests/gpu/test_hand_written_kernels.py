"""Kernels written by hand, rendered for GPUs and run by the processor."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from hand_written import mapped, of_op, reducing
from host_kernels import COMPILER, HostCompiler, HostFunction
from tenferro_gpu.rendering import CudaRenderer
from tenferro_gpu.running import GpuProgram, _program
from tenferro_tensor.catalog import arithmetic
from tenferro_tensor.loop_ir import Buffer
from tenferro_tensor_core import ArgumentError, ShapeError, UnsupportedError

pytestmark = pytest.mark.skipif(COMPILER is None, reason="there is no g++ to compile rendered kernels with")


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
    times = mapped(["float64"] * 2, lambda w, xs: [w.let(arithmetic.mul.op(), *xs)], fixed=[1])
    spec = CudaRenderer().render(times, "scale")
    program = GpuProgram(host.compiler.compile(spec), host.load)
    x, two, y = (a.view(OnDevice) for a in (np.arange(5.0), np.array([2.0]), np.zeros(5)))
    program((x, two, y), (5,))
    np.testing.assert_array_equal(y, 2 * np.arange(5.0))
    with pytest.raises(ShapeError, match=r"buffer 1 of kernel_scale is a contiguous array of shape \(1,\)"):
        program((x[:4], x, y[:4]), (4,))
    with pytest.raises(ShapeError, match="pass other sizes, or a copy"):
        program((np.arange(10.0)[::2].view(OnDevice), two, y), (5,))
    with pytest.raises(ArgumentError, match="an array of float64, got int64"):
        program((np.arange(5).view(OnDevice), two, y), (5,))
    with pytest.raises(ShapeError, match="buffer 2 of kernel_scale is a contiguous array of shape"):
        program((x, two, np.zeros(10).view(OnDevice)[::2]), (5,))


def test_reductions_as_programs():
    host = Host()
    kernel = reducing("sum", "float64", 1, 1)
    program = GpuProgram(host.compiler.compile(CudaRenderer().render(kernel, "rows")), host.load)
    x, y = np.arange(12.0).reshape(3, 4).view(OnDevice), np.zeros(3).view(OnDevice)
    program((x, y), (3, 4))
    np.testing.assert_array_equal(y, x.sum(1))
    y = np.full(3, 77.0).view(OnDevice)
    program((np.zeros((3, 0)).view(OnDevice), y), (3, 0))
    np.testing.assert_array_equal(y, np.zeros(3))
    program((x[:0], y[:0]), (0, 4))
    assert len(host.functions[0].launches) == 2  # there is nothing to do for no results
    with pytest.raises(ArgumentError, match="kernel_rows runs on a device, got an array in main memory; upload it"):
        program((np.ones((3, 4)), y), (3, 4))


def test_one_group_runs_statements_in_order():
    host, leading = Host(), reducing("max", "float64", 1, 1, leading=True)
    both = of_op(arithmetic.neg.op(), "float64")
    program = GpuProgram(host.compiler.compile(CudaRenderer().render(leading, "columns")), host.load)
    x, y = np.arange(12.0).reshape(3, 4).view(OnDevice), np.zeros(4).view(OnDevice)
    program((x, y), (3, 4))
    np.testing.assert_array_equal(y, x.max(0))
    twice = replace(both, body=both.body * 2)
    program = GpuProgram(host.compiler.compile(CudaRenderer().render(twice, "twice")), host.load)
    program((y.copy(), y), (4,))
    np.testing.assert_array_equal(y, -x.max(0))
    assert host.functions[-1].launches == [(1, 256)]


def test_what_is_not_rendered_is_named():
    negative = of_op(arithmetic.neg.op(), "float64")
    beside = replace(negative, temporaries=(Buffer(9, np.dtype("float64"), (3,)),))
    with pytest.raises(UnsupportedError, match="kernel_more needs memory or libraries beside its buffers"):
        CudaRenderer().render(beside, "more")


def test_launches_of_large_spaces_go_round(monkeypatch):
    monkeypatch.setattr(_program, "MAX_WORK_GROUPS", 2)
    host = Host()
    spec = CudaRenderer().render(of_op(arithmetic.neg.op(), "float64"), "negative")
    program = GpuProgram(host.compiler.compile(spec), host.load)
    x, y = np.arange(1000.0).view(OnDevice), np.zeros(1000).view(OnDevice)
    program((x, y), (1000,))
    np.testing.assert_array_equal(y, -x)
    assert host.functions[0].launches == [(2, 256)]
