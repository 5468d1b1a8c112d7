"""The contract between kernels and devices: how a `LoopFunction` is written, compiled and run.

A device owns an allocator and one or more named toolchains, each consisting of a renderer, a compiler of its language,
and a function that loads compiled code as a program. The CPU has ``"llvm"`` and ``"numpy"``, CUDA ``"nvrtc"``, ROCm
``"hiprtc"``. Distributions offer further ones by entry points ``tenferro.toolchains``.
"""

from typing import TYPE_CHECKING

from tenferro_tensor_core.deferred import deferred

if TYPE_CHECKING:
    from tenferro_tensor.device_model._allocator import Allocator
    from tenferro_tensor.device_model._contraction import ContractionIR, ContractionKernel, StepReport
    from tenferro_tensor.device_model._contraction_graph import ContractionGraph, GraphStep, Labels
    from tenferro_tensor.device_model._device import Compiler, Device, Program, Renderer, Toolchain
    from tenferro_tensor.device_model._errors import CompileError
    from tenferro_tensor.device_model._object_cache import ObjectCache
    from tenferro_tensor.device_model._offered import chosen_toolchain
    from tenferro_tensor.device_model._program_spec import CompiledSpec, Launch, ProgramSpec, Variable
    from tenferro_tensor.device_model._user_cache import user_cache
else:
    __getattr__ = deferred(
        __name__,
        {
            "_allocator": "Allocator",
            "_contraction": "ContractionIR ContractionKernel StepReport",
            "_contraction_graph": "ContractionGraph GraphStep Labels",
            "_device": "Compiler Device Program Renderer Toolchain",
            "_errors": "CompileError",
            "_object_cache": "ObjectCache",
            "_offered": "chosen_toolchain",
            "_program_spec": "CompiledSpec Launch ProgramSpec Variable",
            "_user_cache": "user_cache",
        },
    )

__all__ = [
    "Allocator",
    "CompileError",
    "CompiledSpec",
    "Compiler",
    "ContractionGraph",
    "ContractionIR",
    "ContractionKernel",
    "Device",
    "GraphStep",
    "Labels",
    "Launch",
    "ObjectCache",
    "Program",
    "ProgramSpec",
    "Renderer",
    "StepReport",
    "Toolchain",
    "Variable",
    "chosen_toolchain",
    "user_cache",
]


def __dir__() -> list[str]:
    return __all__.copy()
