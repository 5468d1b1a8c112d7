"""Regions as rendered GPU kernels, run by the processor: every layout, every reduction, symbolic sizes."""

from math import prod
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from host_kernels import COMPILER, HostCompiler, HostFunction
from native_kernels import meaning, values
from nest_kernels import HostTarget
from tenferro_gpu.rendering import CudaRenderer
from tenferro_gpu.running import GpuProgram, RegionKernel, _layout, _program, laid
from tenferro_tensor.catalog import arithmetic, comparison
from tenferro_tensor.device_model import Access, Apply, KernelIR, Literal, Operand, Over, Reduction, Region
from tenferro_tensor_core import ArgumentError, ShapeError, UnsupportedError
from thorough import tries

pytestmark = pytest.mark.skipif(COMPILER is None, reason="there is no g++ to compile rendered kernels with")

F8 = Operand(np.dtype("float64"))


class Host:
    """The processor in the place of a GPU, for kernels written by hand."""

    def __init__(self):
        self.compiler, self.functions = HostCompiler(), []

    def load(self, compiled, device):
        self.functions.append(HostFunction(compiled.code, compiled.spec.entry))
        return self.functions[-1]


def no_fallback(*raws):
    raise AssertionError("the fallback is not needed")


def muladd(dtype="float64"):
    operand = Operand(np.dtype(dtype))
    lines = (Apply(arithmetic.mul.op(), (0, 1)), Apply(arithmetic.add.op(), (3, 2)))
    return KernelIR((operand,) * 3, lines, (4,))


REDUCE = {"sum": np.add, "prod": np.multiply, "max": np.maximum, "min": np.minimum}


def expected_of(region, arrays, extents):
    """The region op by op on NumPy."""
    full = []
    for x, axes in zip(arrays, region.axes, strict=True):
        full.append(x[tuple([slice(None) if a in axes else None for a in range(region.rank)])])
    found = [np.broadcast_to(v, extents) for v in meaning(region.kernel, *full)]
    if region.kernel.reduction is None:
        return found
    ufunc = REDUCE[region.kernel.reduction.kind]
    return [ufunc.reduce(v, region.reduced, dtype=v.dtype) for v in found]


def strided_values(rng, dtype, shape, draw):
    """An array with its axes in any order in memory, with gaps, some of them backwards."""
    order = draw(st.permutations(range(len(shape))))
    steps = [draw(st.sampled_from([1, 1, 2, -1, -2])) for _ in shape]
    base = np.zeros([shape[k] * abs(steps[k]) for k in order], dtype).transpose(np.argsort(order))
    x = base[tuple(slice(None, None, s) for s in steps) + (...,)]
    x[...] = np.asarray(values(rng, dtype, shape))
    return x


@settings(max_examples=tries(8, 25), deadline=None)
@given(st.data())
def test_regions_of_any_layout(data):
    rng = np.random.default_rng(data.draw(st.integers(0, 99)))
    rank = data.draw(st.integers(1, 3))
    extents = tuple(data.draw(st.sampled_from([1, 2, 3, 5, 40])) for _ in range(rank))
    every = tuple(range(rank))
    axes = (every, *[tuple(a for a in every if data.draw(st.booleans())) for _ in range(2)])
    kind = data.draw(st.sampled_from([None, "sum", "max"]))
    reduced = tuple(a for a in every if data.draw(st.booleans())) if kind else ()
    kernel = muladd()
    if reduced:
        kernel = KernelIR(kernel.inputs, kernel.lines, (4, 3), reduction=Reduction(kind))
    region = Region(kernel, rank, axes, reduced)
    dtype = kernel.inputs[0].dtype
    arrays = [strided_values(rng, dtype, tuple(extents[a] for a in own), data.draw) for own in axes]
    later = []
    run = RegionKernel(region, KERNELS, lambda *raws: None, later.append)
    got = run(*arrays)
    while later:  # the kernel of a layout that is met for the first time is compiled
        later.pop()()
        got = run(*arrays)
    got = got if isinstance(got, tuple) else (got,)
    for y, expected in zip(got, expected_of(region, arrays, extents), strict=True):
        assert y.dtype == expected.dtype and y.shape == expected.shape
        np.testing.assert_allclose(y, expected, rtol=1e-12, atol=1e-11)


KERNELS = HostTarget()


@pytest.mark.parametrize(
    ("dtype", "kind"),
    [("float32", "sum"), ("complex128", "prod"), ("bool", "sum"), ("bool", "min"), ("int8", "prod"), ("uint64", "max")],
)
def test_reductions_of_every_kind(dtype, kind):
    operand = Operand(np.dtype(dtype))
    kernel = KernelIR((operand,), (Apply(arithmetic.mul.op(), (0, 0)),), (1,), reduction=Reduction(kind))
    rng = np.random.default_rng(1)
    for reduced, shape in (((1,), (3, 700)), ((0,), (500, 4)), ((0, 1), (30, 50)), ((1,), (70, 3))):
        x = np.asarray(values(rng, dtype, shape))
        if x.dtype.kind in "fc" and kind == "prod":
            x = np.sign(x.real).astype(dtype)
        region = Region(kernel, 2, ((0, 1),), reduced)
        (expected,) = expected_of(region, [x], shape)
        later = []
        run = RegionKernel(region, KERNELS, lambda *raws: None, later.append)
        got = run(x)
        while later:
            later.pop()()
            got = run(x)
        tolerance = 1e-4 if dtype == "float32" else 1e-10
        np.testing.assert_allclose(got, expected, rtol=tolerance, atol=tolerance)


def test_nan_wins_and_infinities_count():
    kernel = KernelIR((F8,), (Apply(arithmetic.mul.op(), (0, 0)),), (1,), reduction=Reduction("max"))
    run = RegionKernel(Region(kernel, 1, ((0,),), (0,)), KERNELS, no_fallback, no_fallback)
    x = np.linspace(0.0, 9.0, 300)
    assert run(x) == 81.0
    x[123] = np.nan
    assert np.isnan(run(x))
    x[123] = np.inf
    assert run(x) == np.inf


def test_one_kernel_serves_all_sizes():
    host = HostTarget()
    run = RegionKernel(Region(muladd(), 2, ((0, 1),) * 3), host, no_fallback, no_fallback)
    rng = np.random.default_rng(0)
    for shape in ((1, 1), (3, 4), (7, 300), (1, 1000)):
        xs = [rng.standard_normal(shape) for _ in range(3)]
        np.testing.assert_array_equal(run(*xs), xs[0] * xs[1] + xs[2])
    assert len(host.sources) == 1


def test_large_reductions_are_split_and_joined():
    host = HostTarget()
    kernel = KernelIR((F8, F8), (Apply(arithmetic.mul.op(), (0, 1)),), (2,), reduction=Reduction("sum"))
    later = []
    run = RegionKernel(Region(kernel, 1, ((0,), (0,)), (0,)), host, lambda *raws: "slow", later.append)
    x = np.random.default_rng(0).standard_normal(50_000)
    assert run(x, x) == "slow"
    later.pop()()
    assert np.isclose(run(x, x), x @ x, rtol=1e-12)
    assert [groups for _, groups in host.launches] == [48, 1]  # a group for each of 48 parts, one for the rest
    run = RegionKernel(Region(kernel, 2, ((0, 1), (0, 1)), (1,)), host, lambda *raws: None, later.append)
    for y in (x.reshape(5, 10_000), x.reshape(10_000, 5).T):
        host.launches.clear()
        assert run(y, y) is None
        later.pop()()
        np.testing.assert_allclose(run(y, y), (y * y).sum(1), rtol=1e-12)
        assert [groups for _, groups in host.launches] == [45, 5]


def test_several_results_and_literals():
    f4 = Operand(np.dtype("float32"))
    lines = (Literal(2.0, f4.dtype), Apply(arithmetic.mul.op(), (0, 1)), Apply(comparison.gt.op(), (2, 0)))
    run = RegionKernel(Region(KernelIR((f4,), lines, (2, 3)), 1, ((0,),)), KERNELS, no_fallback, no_fallback)
    x = np.arange(-3, 4, dtype="float32")
    doubled, larger = run(x)
    np.testing.assert_array_equal(doubled, 2 * x)
    np.testing.assert_array_equal(larger, x > 0)


def test_what_is_empty_or_out_of_step_with_its_elements_is_left_to_the_fallback():
    run = RegionKernel(Region(muladd(), 1, ((0,),) * 3), KERNELS, lambda *raws: "op by op", no_fallback)
    empty = np.zeros(0)
    assert run(empty, empty, empty) == "op by op"
    odd = np.zeros(40, np.uint8)[:36].view("V12")  # elements 12 bytes apart
    odd = np.ndarray((3,), "float64", odd.tobytes(), strides=(12,))
    assert run(odd, odd, odd) == "op by op"


def test_a_kernel_is_asked_for_once_and_its_plan_is_kept(monkeypatch):
    monkeypatch.setattr("tenferro_gpu.running._region.MAX_LAUNCH_PLANS", 3)
    later = []
    run = RegionKernel(Region(muladd(), 2, ((0, 1),) * 3), KERNELS, lambda *raws: None, later.append)
    x = np.random.default_rng(0).standard_normal((4, 5)).T
    c = np.ones((5, 4))
    assert run(x, c, c) is None and run(x, c, c) is None
    assert len(later) == 1
    later.pop()()
    for n in range(2, 12):
        x, c = np.arange(4.0 * n).reshape(4, n).T, np.ones((n, 4))
        np.testing.assert_array_equal(run(x, c, c), x + 1)
        assert len(run._plans) <= 3


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


@given(st.data())
def test_a_layout_reaches_the_elements_that_its_operands_have(data):
    rank = data.draw(st.integers(0, 4))
    extents = tuple(data.draw(st.sampled_from([1, 2, 3, 4])) for _ in range(rank))
    x = np.arange(prod(extents)).reshape(extents)
    x = x.transpose(data.draw(st.permutations(range(rank))))
    reduced = tuple(a for a in range(rank) if data.draw(st.booleans()))
    found = laid(x.shape, (tuple(s // x.itemsize for s in x.strides),), reduced)
    stay = tuple(a for a in range(rank) if a not in reduced)
    (strides,) = found.strides
    space = (*found.kept, *found.reduced)
    offsets = sum(
        (np.arange(n).reshape([-1 if a == b else 1 for b in range(len(space))]) * s)
        for a, (n, s) in enumerate(zip(space, strides, strict=True))
    )
    np.testing.assert_array_equal(np.ravel(offsets), x.transpose(stay + reduced).reshape(-1))
    unit = _layout.access_of(strides, space) is Access.UNIT
    assert unit == (list(np.ravel(offsets)) == list(range(x.size)))


def test_launches_of_large_spaces_go_round(monkeypatch):
    monkeypatch.setattr(_program, "MAX_WORK_GROUPS", 2)
    host = Host()
    spec = CudaRenderer().render(KernelIR((F8,), (Apply(arithmetic.neg.op(), (0,)),), (1,)), "negative")
    program = GpuProgram(host.compiler.compile(spec), host.load)
    x, y = np.arange(1000.0).view(OnDevice), np.zeros(1000).view(OnDevice)
    program((x, y), (1000,))
    np.testing.assert_array_equal(y, -x)
    assert host.functions[0].launches == [(2, 256)]
