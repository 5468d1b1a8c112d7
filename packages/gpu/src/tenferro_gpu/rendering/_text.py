"""The text of one kernel: how the iteration space is walked, and what is done with each element."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from tenferro_gpu.rendering._expressions import Define, applied
from tenferro_gpu.rendering._functions import TYPES, literal
from tenferro_gpu.rendering._group_writer import BLOCK
from tenferro_tensor.device_model import Access, KernelIR, Literal, Over


class KernelText:
    """Writes one kernel; see `CudaRenderer` for its arguments."""

    def __init__(self, kernel: KernelIR, entry: str, rank: int, reduced: int, wide: bool) -> None:
        self.kernel, self.entry = kernel, entry
        self.rank, self.reduced = rank, reduced if kernel.reduction is not None else 0
        self.strided = any(o.access is Access.STRIDED for o in kernel.inputs)
        self.index = "long long" if wide else "int"
        self.unsigned = "unsigned long long" if wide else "unsigned int"

    def text(self) -> str:
        """The whole function."""
        reduction = self.kernel.reduction
        if reduction is None:
            lines = [*self._head(["n"]), *self._elements()]
        else:
            over = self._group if reduction.over is Over.TRAILING else self._item
            lines = [*self._head(["rows", "length", "parts"]), *over()]
        return "\n".join([*lines, "    }", "}", ""])

    def _head(self, counts: list[str]) -> Iterator[str]:
        kernel = self.kernel
        arguments = [f"const {TYPES[o.dtype.name]}* __restrict__ x{k}" for k, o in enumerate(kernel.inputs)]
        arguments += [f"{TYPES[o.dtype.name]}* __restrict__ y{k}" for k, o in enumerate(kernel.written)]
        names = [*counts, *[f"e{a}" for a in range(1, self.rank)], *[f"r{a}" for a in range(1, self.reduced)]]
        for k, operand in enumerate(kernel.inputs):
            if operand.access is Access.STRIDED:
                names += [f"s{k}_{a}" for a in range(self.rank + self.reduced)]
        arguments += [f"long long {name}_" for name in names]
        yield f'extern "C" __global__ void __launch_bounds__({BLOCK}) {self.entry}('
        yield f"    {', '.join(arguments)})"
        yield "{"
        for name in names:
            yield f"    const {self.index} {name} = ({self.index}){name}_;"

    def _elements(self) -> Iterator[str]:
        yield from self._walk("i", "n")
        if self.strided:
            yield from self._coordinates("i", "c", "e", self.rank)
        yield from self._lines("i", [f"c{a}" for a in range(self.rank)])
        for k, v in enumerate(self.kernel.outputs):
            yield f"        y{k}[i] = v{v};"

    def _walk(self, name: str, end: str) -> Iterator[str]:
        """A loop in which every work item takes one of so many until all are taken."""
        index = self.index
        yield f"    const {index} start = ({index})blockIdx.x * blockDim.x + threadIdx.x;"
        yield f"    const {index} step = ({index})gridDim.x * blockDim.x;"
        yield f"    for ({index} {name} = start; {name} < {end}; {name} += step) {{"

    def _item(self) -> Iterator[str]:
        """A work item for each result, or part of it; neighbours take neighbouring results."""
        yield from self._walk("item", "rows * parts")
        yield f"        const {self.index} row = item % rows, part = item / rows;"
        yield from self._share("0", "1")
        for k in range(len(self.kernel.outputs)):
            yield f"        y{k}[row * parts + part] = a{k};"

    def _group(self) -> Iterator[str]:
        """A group of work items for each result, or part of it; what they have is joined in halves."""
        outputs = range(len(self.kernel.outputs))
        for k, o in enumerate(self.kernel.written):
            yield f"    __shared__ {TYPES[o.dtype.name]} shared{k}[{BLOCK}];"
        yield "    const int me = threadIdx.x;"
        yield f"    for ({self.index} item = blockIdx.x; item < rows * parts; item += gridDim.x) {{"
        yield f"        const {self.index} row = item / parts, part = item % parts;"
        yield from self._share("me", "blockDim.x")
        for k in outputs:
            yield f"        shared{k}[me] = a{k};"
        yield "        __syncthreads();"
        yield "        for (int half = blockDim.x / 2; half > 0; half /= 2) {"
        yield "            if (me < half) {"
        for k in outputs:
            yield f"                shared{k}[me] = {self._joined(f'shared{k}[me]', f'shared{k}[me + half]')};"
        yield "            }"
        yield "            __syncthreads();"
        yield "        }"
        for k in outputs:
            yield f"        if (me == 0) y{k}[item] = shared{k}[0];"
        yield "        __syncthreads();"

    def _share(self, offset: str, step: str) -> Iterator[str]:
        """Joins what goes into one part, from an element on and in steps, to one value of each output."""
        index = self.index
        yield f"        const {index} share = (length + parts - 1) / parts, first = part * share;"
        yield f"        const {index} last = first + share < length ? first + share : length;"
        if self.strided:
            yield from self._coordinates("row", "c", "e", self.rank)
        assert self.kernel.reduction is not None
        for k, o in enumerate(self.kernel.written):
            name = TYPES[o.dtype.name]
            yield f"        {name} a{k} = tf_start_{self.kernel.reduction.kind}<{name}>();"
        yield f"        for ({index} j = first + {offset}; j < last; j += {step}) {{"
        if self.strided:
            yield from self._coordinates("j", "d", "r", self.reduced, "    ")
        axes = [f"c{a}" for a in range(self.rank)] + [f"d{a}" for a in range(self.reduced)]
        yield from self._lines("row * length + j", axes, "    ")
        for k, v in enumerate(self.kernel.outputs):
            yield f"            a{k} = {self._joined(f'a{k}', f'v{v}')};"
        yield "        }"

    def _joined(self, x: str, y: str) -> str:
        assert self.kernel.reduction is not None
        return f"tf_join_{self.kernel.reduction.kind}({x}, {y})"

    def _coordinates(self, number: str, name: str, extent: str, rank: int, indent: str = "") -> Iterator[str]:
        """The coordinates of an element of some axes, by its number in their order."""
        indent += "        "
        if rank > 1:
            yield f"{indent}{self.unsigned} left_{name} = {number};"
            for a in range(rank - 1, 0, -1):
                yield f"{indent}const {self.index} {name}{a} = left_{name} % ({self.unsigned}){extent}{a};"
                yield f"{indent}left_{name} /= ({self.unsigned}){extent}{a};"
        if rank:
            yield f"{indent}const {self.index} {name}0 = {f'left_{name}' if rank > 1 else number};"

    def _lines(self, number: str, coordinates: list[str], indent: str = "") -> Iterator[str]:
        """The values of one element: inputs read, literals and applications."""
        indent += "        "
        kernel = self.kernel
        for k, operand in enumerate(kernel.inputs):
            where = {Access.UNIT: number, Access.FIXED: "0"}.get(operand.access)
            where = where or " + ".join([f"{c} * s{k}_{a}" for a, c in enumerate(coordinates)])
            yield f"{indent}const {TYPES[operand.dtype.name]} v{k} = x{k}[{where}];"
        for v, line in enumerate(kernel.lines, len(kernel.inputs)):
            written: list[str] = []
            if isinstance(line, Literal):
                right = literal(line)
            else:
                operands = [self._operand(i) for i in line.args]
                right = applied(line.op, operands, [f"v{i}" for i in line.args], _definer(v, written))
            yield from [indent + text for text in written]
            yield f"{indent}const {TYPES[kernel.dtypes[v].name]} v{v} = {right};"

    def _operand(self, number: int) -> Literal | np.dtype[Any]:
        """A literal, or the dtype of another value."""
        line = self.kernel.lines[number - len(self.kernel.inputs)] if number >= len(self.kernel.inputs) else None
        return line if isinstance(line, Literal) else self.kernel.dtypes[number]


def _definer(v: int, written: list[str]) -> Define:
    """Names what a line is written out in."""

    def define(dtype: np.dtype[Any], text: str) -> str:
        name = f"t{v}_{len(written)}"
        written.append(f"const {TYPES[dtype.name]} {name} = {text};")
        return name

    return define
