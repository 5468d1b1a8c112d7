"""Fused regions and whole programs on the devices of a kind: which ops are fused, and where kernels are compiled."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np

from tenferro_gpu._target import FusionBackend, GpuTarget
from tenferro_gpu.compiling import RuntimeCompiler, compiler
from tenferro_gpu.devices import PoolAllocator
from tenferro_gpu.rendering import BLOCK, CudaRenderer, rendered
from tenferro_gpu.running import GpuProgram, RegionKernel
from tenferro_gpu.whole import KernelSequence
from tenferro_tensor import Op, catalog
from tenferro_tensor.backends import NativeProgram
from tenferro_tensor.device_model import (
    CompiledSpec,
    Device,
    Later,
    Literal,
    Region,
    Toolchain,
    expansion,
)
from tenferro_tensor.loop_ir import LoopFunction
from tenferro_tensor_core import BackendUnavailableError, UnsupportedError, is_inexact, is_narrow
from tenferro_tensor_core.forks import cached_property

_REDUCED: Final = frozenset({
    catalog.reduce_sum, catalog.reduce_prod, catalog.reduce_max, catalog.reduce_min, catalog.reduce_all,
    catalog.reduce_any,
})  # fmt: skip

TOOLCHAINS: Final = {"cuda": "nvrtc", "rocm": "hiprtc"}
"""Name of the toolchain by kind of device."""

_MAX_ARRAY_AXES: Final = 60
"""Maximum arrays times axes of a region; with all strides its arguments stay below 4 KiB, the limit of old drivers."""

_MAX_SHARED_BYTES: Final = 48 << 10
"""Shared memory of one group in bytes, which must hold its part of every reduction result."""


class Fusing:
    """Fusion for a backend: which programs are fused, and how they run."""

    def __init__(self, backend: FusionBackend) -> None:
        self._backend = backend
        self._compilers: dict[str, RuntimeCompiler] = {}

    def compiler(self, ordinal: int) -> RuntimeCompiler:
        """The compiler for a device, shared by devices of one architecture."""
        architecture = self._backend.runtime.device(ordinal).capabilities.architecture
        found = self._compilers.get(architecture)
        if found is None:
            major = None
            if self._backend.kind == "cuda":  # the driver used by CuPy accepts code of its own version
                major = int(self._backend.runtime.cupy.cuda.runtime.runtimeGetVersion()) // 1000
            found = self._compilers[architecture] = compiler(self._backend.kind, architecture, major)
        return found

    @cached_property
    def available(self) -> bool:
        """Whether kernels can be compiled."""
        try:
            self.compiler(0)
        except BackendUnavailableError:
            return False
        return True

    @cached_property
    def _target(self) -> GpuTarget:
        return GpuTarget(self._backend, self.compiler)

    def whole(self, function: LoopFunction, bare: bool, otherwise: Callable[..., Any] | None) -> NativeProgram | None:
        """A whole program as kernels, compiled for the first device, or None without a compiler.

        Raises:
            UnsupportedError: it has no form as kernels; the text gives the reason.
            CompileError: the compiler rejects it.
        """
        if not self.available:
            return None
        made = KernelSequence(function, self._target, bare=bare, otherwise=otherwise)
        return NativeProgram(made)

    def fuses(self, op: Op, operands: tuple[np.dtype[Any] | Literal, ...], result: np.dtype[Any]) -> bool:
        """Whether an op may be part of a region."""
        dtypes = tuple([o.dtype if isinstance(o, Literal) else o for o in operands])
        if op.primitive.widens and any(map(is_narrow, dtypes)):
            return False  # operands are widened first
        if op.primitive in _REDUCED:
            return self.available
        if op.primitive is catalog.convert and is_inexact(dtypes[0]) and result.kind in "iu":
            return False  # out of range, CuPy's own conversion defines the result
        if not op.primitive.elementwise:
            return False
        return (rendered(op.primitive, dtypes) or expansion(op, *operands) is not None) and self.available

    def fused(self, region: Region, fallback: Callable[..., Any], later: Later) -> Callable[..., Any] | None:
        """The region as a function of raw arrays, or None if it has no kernel."""
        if not self.available or len(region.axes) + len(region.kernel.outputs) > _MAX_ARRAY_AXES // max(region.rank, 1):
            return None
        if region.reduced and BLOCK * sum([o.dtype.itemsize for o in region.kernel.written]) > _MAX_SHARED_BYTES:
            return None
        try:
            return RegionKernel(region, self._target, fallback, later)
        except UnsupportedError:
            return None

    def compiled(self) -> int:
        """Number of compiled sources."""
        return sum([c.stats()["loaded"] for c in self._compilers.values()])

    def model(self, ordinal: int) -> Device:
        """A device as allocator and toolchain, for hand-written kernels.

        Raises:
            BackendUnavailableError: there is no such device.
        """
        device = self._backend.runtime.device(ordinal)
        return Device(
            self._backend.kind,
            PoolAllocator(device),
            {TOOLCHAINS[self._backend.kind]: lambda: self.toolchain(ordinal)},
        )

    def toolchain(self, ordinal: int = 0) -> Toolchain:
        """The renderer for CUDA C, the run-time compiler for a device, and programs.

        Raises:
            BackendUnavailableError: there is no compiler.
        """
        renderer = CudaRenderer(device=self._backend.kind)
        return Toolchain(renderer, self.compiler(ordinal), lambda compiled: GpuProgram(compiled, self._load))

    def _load(self, compiled: CompiledSpec, ordinal: int) -> Any:
        code = self.compiler(ordinal).compile(compiled.spec).code
        module = self._backend.runtime.cupy.cuda.function.Module()
        module.load(code)
        return module.get_function(compiled.spec.entry)
