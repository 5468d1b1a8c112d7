"""Machine code for the devices of a kind: of programs, and of kernels written by hand."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from tenferro_gpu._target import GpuTarget, KernelBackend
from tenferro_gpu.compiling import RuntimeCompiler, compiler
from tenferro_gpu.devices import PoolAllocator
from tenferro_gpu.rendering import CudaRenderer
from tenferro_gpu.running import GpuProgram
from tenferro_gpu.whole import KernelSequence
from tenferro_tensor.backends import NativeProgram
from tenferro_tensor.device_model import CompiledSpec, Device, Toolchain
from tenferro_tensor.loop_ir import LoopFunction
from tenferro_tensor_core import BackendUnavailableError
from tenferro_tensor_core.forks import cached_property

TOOLCHAINS: Final = {"cuda": "nvrtc", "rocm": "hiprtc"}
"""Name of the toolchain by kind of device."""


class MachineCode:
    """Machine code for a backend, by one compiler for each architecture."""

    def __init__(self, backend: KernelBackend) -> None:
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
