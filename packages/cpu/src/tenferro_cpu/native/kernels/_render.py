"""`RowRenderer`: element-wise kernels over one row, ``void(ptr data, i64 n, ptr strides)``.

`data` holds one pointer per operand, inputs first; `strides` one stride in bytes per operand, read only if the
access is strided. The main loop takes several vectors at once, a masked loop the remainder.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import Any

import numpy as np

from tenferro_cpu.native.builder import Block, Branch, DoLoop, Int, Module, Pointer, Vec
from tenferro_cpu.native.kernels._forms import lanes_for
from tenferro_cpu.native.kernels._ports import (
    Port,
    fixed_value,
    load,
    load_fixed,
    open_port,
    store,
)
from tenferro_cpu.native.machine._host import Host
from tenferro_cpu.native.operations._ops import apply, rule_for
from tenferro_cpu.native.operations._value import Value, literal
from tenferro_tensor import Primitive
from tenferro_tensor.device_model import Access, Apply, KernelIR, Literal, Over, ProgramSpec, Variable
from tenferro_tensor_core import UnsupportedError

LIGHT, CHAIN, HEAVY, HUGE = 24, 100, 600, 1500
"""Instruction counts of one vector's work at which the interleaving changes.

Code size is compile time. Very short loops are dominated by their counter, long chains wait for their own results; in
between the processor's out-of-order window suffices.
"""


def fused_host(host: Host) -> bool:
    """Whether the processor has fused multiply-add, which the function library requires."""
    return host.level != "generic"


def require_rendered(kernel: KernelIR, host: Host) -> None:
    """Raise a typed error that names an op that cannot be rendered."""
    for line in kernel.lines:
        if isinstance(line, Literal):
            continue
        dtypes = tuple(kernel.dtypes[i] for i in line.args)
        if rule_for(line.op.primitive, dtypes, fused_host(host)) is None:
            names = ", ".join(d.name for d in dtypes)
            raise UnsupportedError(
                f"{line.op!r} of {names} has no native form on this CPU; end the kernel before it and run it on NumPy",
                primitive=line.op.primitive.name,
                dtypes=names,
            )


def evaluate(block: Block, kernel: KernelIR, inputs: list[Value]) -> list[Value]:
    """Write the instructions of the kernel's lines; returns the values of its outputs."""
    values = list(inputs)
    for line, dtype in zip(kernel.lines, kernel.dtypes[len(inputs) :]):
        if isinstance(line, Apply):
            dtypes = tuple(kernel.dtypes[i] for i in line.args)
            values.append(apply(block, line.op, dtypes, dtype, *(values[i] for i in line.args)))
        else:
            values.append(literal(block, line.value, dtype))
    return [values[i] for i in kernel.outputs]


def work(kernel: KernelIR, host: Host) -> int:
    """Number of instructions for one vector."""
    block = Block(Module(), lanes_for(kernel, host), tables=host.tables)
    ports = [Port(o, Pointer(block, "%p"), Int(block, "%s"), Vec(block, "i64", ("%o",))) for o in kernel.inputs]
    evaluate(block, kernel, [load(block, port, [Int(block, "%i")]) for port in ports])
    return len(block.lines)


def cost(kernel: KernelIR, host: Host) -> float:
    """Approximate nanoseconds per element: instructions, and bytes moved from and to memory."""
    lanes = lanes_for(kernel, host)
    moved = sum(o.dtype.itemsize for o in (*kernel.inputs, *kernel.written) if o.access is not Access.FIXED)
    return 0.16 * work(kernel, host) / lanes + 0.02 * moved


def interleaving(instructions: int, host: Host) -> int:
    """Number of vectors that the main loop takes at once; a power of two, because the trip count is masked with it."""
    most = 4 if host.registers >= 32 else 2
    if instructions <= LIGHT or CHAIN < instructions <= HEAVY:
        return most
    return 1 if instructions > HUGE else 2


class Row:
    """The frame of a function over one row: ports, and the loops around a body.

    Attributes:
        block: the function under construction.
        width: vectors that the main loop takes at once.
        inputs: ports of the operands.
        outputs: ports of the results.
    """

    def __init__(self, kernel: KernelIR, host: Host) -> None:
        self.kernel, self.host = kernel, host
        lanes = lanes_for(kernel, host)
        self.width = interleaving(work(kernel, host), host)
        self.block = b = Block(Module(), lanes, self.width, fused_host(host), host.tables)
        b.begin("entry")
        data, strides = Pointer(b, "%data"), Pointer(b, "%strides")
        ports = [open_port(b, o, data, strides, number) for number, o in enumerate((*kernel.inputs, *kernel.written))]
        self.inputs, self.outputs = ports[: len(kernel.inputs)], ports[len(kernel.inputs) :]
        self.length = Int(b, "%n")
        self._fixed: dict[int, tuple[Vec, ...]] = {}

    def fix(self) -> None:
        """Load the operands that are constant along the row."""
        for number, port in enumerate(self.inputs):
            if port.operand.access is Access.FIXED:
                self._fixed[number] = load_fixed(self.block, port)

    def read(
        self,
        starts: Sequence[Int],
        mask: Vec | None = None,
        known: Mapping[int, Value] = MappingProxyType({}),
    ) -> list[Value]:
        """The kernel's output values for the elements from `starts`; `known` are inputs that need no load."""
        values = [
            known[number]
            if number in known
            else fixed_value(self.block, port, self._fixed[number])
            if number in self._fixed
            else load(self.block, port, starts, mask)
            for number, port in enumerate(self.inputs)
        ]
        return evaluate(self.block, self.kernel, values)

    def starts(self, first: Int) -> list[Int]:
        """First elements of the interleaved vectors."""
        return [first + k * self.block.lanes for k in range(self.block.interleave)]

    def over_elements(self, body: Callable[[list[Int], Vec | None], None]) -> None:
        """Call `body` for all elements: with several vectors at once, then for the remainder under a mask."""
        b, n = self.block, self.length
        step = b.lanes * self.width
        main = n & -step
        with Branch(b, main > 0), DoLoop(b, 0, main, step) as loop:
            body(self.starts(loop.index), None)
        b.interleave = 1
        with Branch(b, main < n), DoLoop(b, main, n, b.lanes) as loop:
            body([loop.index], b.below(loop.index, n))

    def text(self, name: str, parameters: str = "") -> str:
        """The finished module."""
        self.block.do("ret void")
        head = f"define void @{name}(ptr %data, i64 %n, ptr %strides{parameters}) {self.host.attributes} {{"
        return self.block.module.text(head, *self.block.lines, "}")


def render_row(kernel: KernelIR, name: str, host: Host, stream: bool = False) -> str:
    """LLVM text of an element-wise kernel; `stream` writes past the caches, to outputs aligned to 64 bytes."""
    require_rendered(kernel, host)
    row = Row(kernel, host)
    b = row.block

    def body(starts: list[Int], mask: Vec | None) -> None:
        for port, value in zip(row.outputs, row.read(starts, mask)):
            store(b, port, starts, value, mask, stream=stream)

    with Branch(b, row.length > 0):
        row.fix()
        row.over_elements(body)
    if stream:
        b.fence()
    return row.text(name)


def row_spec(kernel: KernelIR, name: str, source: str | Callable[[], str], identity: str = "") -> ProgramSpec:
    """The spec of a rendered kernel: one variable, the length of a row; over rows a second, their number."""
    inputs, outputs = len(kernel.inputs), len(kernel.written)
    over = None if kernel.reduction is None else kernel.reduction.over
    # A reduced row writes one element.
    written = kernel.written if over is not Over.TRAILING else [replace(o, access=Access.FIXED) for o in kernel.written]
    return ProgramSpec(
        source,
        name,
        (Variable("n", 1), Variable("m", 1)) if over is Over.LEADING else (Variable("n"),),
        inputs + outputs,
        tuple(range(inputs)),
        tuple(range(inputs, inputs + outputs)),
        operands=(*kernel.inputs, *written),
        identity=identity,
        kernel=kernel,
    )


def supported(primitive: Primitive, dtypes: tuple[np.dtype[Any], ...], host: Host) -> bool:
    """Whether `render_row` supports an application of `primitive`."""
    return rule_for(primitive, dtypes, fused_host(host)) is not None


def entry_name(text: str) -> str:
    """An identifier that LLVM accepts unquoted.

    >>> entry_name("a*b+c")
    'a_b_c'
    """
    return re.sub(r"\W", "_", text) or "kernel"
