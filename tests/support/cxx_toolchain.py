"""A toolchain of a third party for the CPU: loop nests as C++, compiled by the system's compiler, kept by content.

Expressions and statements are those of rendered GPU kernels, which one work item runs alone.
"""

import ctypes
import hashlib
import shutil
import tempfile
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from host_kernels import OPTIONS, compiled, header
from tenferro_gpu.rendering._expressions import INDEX_TYPE, Expressions
from tenferro_gpu.rendering._functions import TYPES, literal, rendered
from tenferro_gpu.rendering._item_writer import ItemWriter
from tenferro_gpu.source import library
from tenferro_tensor import Primitive
from tenferro_tensor.device_model import CompiledSpec, Compiler, ObjectCache, Program, ProgramSpec, Renderer, Toolchain
from tenferro_tensor.loop_ir import Buffer, Call, Foreign, Literal, LoopFunction, everything, swapped
from tenferro_tensor_core import UnsupportedError


class CxxRenderer(Renderer):
    """One C++ function of the buffers and of the sizes."""

    device = "cpu"

    def supports(self, primitive: Primitive, *dtypes: Any) -> bool:
        return rendered(primitive, tuple(map(np.dtype, dtypes)))

    def render(self, kernel: LoopFunction, name: str) -> ProgramSpec:
        if any(isinstance(s, Call | Foreign) for s in everything(kernel.body)) or any(swapped(kernel.body)):
            raise UnsupportedError(f"{name} calls libraries or swaps buffers, which has no form in C++ here")
        expressions = Expressions(kernel.sizes)
        writer = ItemWriter(expressions, [])
        for buffer, array in kernel.constants:
            numbers = ", ".join([literal(Literal(x, buffer.dtype)) for x in array.ravel().tolist()]) or "0"
            writer.line(f"{TYPES[buffer.dtype.name]} {buffer}[] = {{{numbers}}};")
        for buffer in kernel.temporaries:
            c = TYPES[buffer.dtype.name]
            count = " * ".join([expressions.factor(n) for n in buffer.shape]) or "1"
            writer.line(f"{c}* {buffer} = ({c}*)malloc(sizeof({c}) * ({count} + 1));")
        writer.write(kernel.body)
        for buffer in kernel.temporaries:
            writer.line(f"free({buffer});")
        buffers = [*kernel.inputs, *[b for b in kernel.outputs if b not in kernel.inputs]]
        arguments = [*map(_declared, buffers), *[f"{INDEX_TYPE} n{k}" for k in range(len(kernel.sizes))]]
        head = f'extern "C" void run({", ".join(arguments)}) {{'
        return ProgramSpec.of(kernel, "run", "\n".join([library(True, True), head, *writer.lines, "}\n"]))


def _declared(buffer: Buffer) -> str:
    return f"{TYPES[buffer.dtype.name]}* {buffer}"


class CxxCompiler(Compiler):
    """The system's compiler; shared libraries are kept by the content of their source.

    Attributes:
        compiled: number of sources that were compiled, and not found.
    """

    def __init__(self, folder: Path) -> None:
        self.kept, self.compiled = ObjectCache(folder), 0

    def compile(self, spec: ProgramSpec) -> CompiledSpec:
        key = hashlib.sha256("\n".join([*OPTIONS, spec.source]).encode()).hexdigest()
        found = self.kept.get(key)
        if found is None:
            self.compiled += 1
            path = Path(tempfile.mkdtemp()) / "run.so"
            compiled(spec.source, path, *OPTIONS, "-include", str(header(*OPTIONS)), "-shared", "-x", "c++", "-")
            found = path.read_bytes()
            shutil.rmtree(path.parent)
            self.kept.put(key, found)
        return CompiledSpec(spec, found, key)


class CxxProgram(Program):
    """A function of a shared library."""

    def __init__(self, compiled: CompiledSpec) -> None:
        self.compiled = compiled
        assert isinstance(compiled.code, bytes)
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / f"{compiled.cache_key}.so"
            path.write_bytes(compiled.code)
            self._run = ctypes.CDLL(str(path)).run

    def execute(self, buffers: Sequence[Any], values: Sequence[int]) -> None:
        self._run(*[ctypes.c_void_p(x.ctypes.data) for x in buffers], *[ctypes.c_longlong(n) for n in values])


@cache
def compiler() -> CxxCompiler:
    return CxxCompiler(Path(tempfile.mkdtemp()) / "objects")


def make() -> Toolchain:
    """The entry point."""
    return Toolchain(CxxRenderer(), compiler(), CxxProgram)
