"""`source_of`: all kernels of a function as one text."""

from __future__ import annotations

from collections.abc import Iterator

from tenferro_gpu.source import library
from tenferro_gpu.whole._steps import LaunchSequence
from tenferro_tensor.loop_ir import LoopFunction, everything, registers
from tenferro_tensor_core import DType, is_narrow


def source_of(function: LoopFunction, sequence: LaunchSequence) -> str:
    """The source text to compile.

    Args:
        function: the function.
        sequence: its kernels.

    Returns:
        The text, with all kernels.

    Raises:
        UnsupportedError: an op has no form in a kernel; the text names it.
    """
    dtypes = set(_dtypes(function))
    functions = library(any(d.kind == "c" for d in dtypes), any(map(is_narrow, dtypes)))
    return "\n".join([functions, *[kernel.text() for kernel in sequence.kernels]])


def _dtypes(function: LoopFunction) -> Iterator[DType]:
    yield from [reg.dtype for s in everything(function.body) for reg in registers(s)]
    yield from [b.dtype for b in (*function.inputs, *function.outputs, *function.temporaries)]
