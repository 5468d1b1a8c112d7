"""`source_of`: all kernels of a function as one text."""

from __future__ import annotations

from collections.abc import Iterator

from tenferro_gpu.source import library
from tenferro_gpu.whole._steps import LaunchSequence
from tenferro_tensor.loop_ir import LoopFunction, everything, registers


def source_of(function: LoopFunction, sequence: LaunchSequence) -> str:
    """The text that is compiled.

    Raises:
        UnsupportedError: an op has no form in a kernel; the text says which.
    """
    return "\n".join([library("c" in _kinds(function)), *[kernel.text() for kernel in sequence.kernels]])


def _kinds(function: LoopFunction) -> set[str]:
    return set(_all_kinds(function))


def _all_kinds(function: LoopFunction) -> Iterator[str]:
    yield from [reg.dtype.kind for s in everything(function.body) for reg in registers(s)]
    yield from [b.dtype.kind for b in (*function.inputs, *function.outputs, *function.temporaries)]
