"""The contract between kernels and devices: what to compute, how it is written, compiled and run.

A device owns an allocator, a renderer, a compiler and a program factory. The CPU implements them with LLVM; an
accelerator implements the same.
"""

from tenferro_tensor.device_model._errors import CompileError

__all__ = ["CompileError"]
