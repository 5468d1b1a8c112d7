"""`RowRenderer`: element-wise kernels over one row, ``void(ptr data, i64 n, ptr strides)``.

`data` holds one pointer per operand, inputs first, `strides` one stride in bytes per operand, read only where the
access is strided. A main loop takes several vectors at once, a masked loop the rest.
"""

import re
from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Any

import numpy as np

from tenferro_cpu.native.machine._host import Host
from tenferro_cpu.native.memory._memory import (
    Port,
    fixed_value,
    lane_numbers,
    load,
    load_fixed,
    number_bits,
    open_port,
    store,
)
from tenferro_cpu.native.operations._emit import Block, Module
from tenferro_cpu.native.operations._ops import apply, rule_for
from tenferro_cpu.native.operations._value import Value, literal
from tenferro_tensor import Primitive
from tenferro_tensor.device_model import Access, Apply, KernelIR, Literal, Operand, Over, ProgramSpec, Variable
from tenferro_tensor_core import UnsupportedError

LIGHT, CHAIN, HEAVY, HUGE = 24, 100, 600, 1500
"""Instructions of one vector's work where the interleaving changes.

Code size is compile time. Very short loops pay for their counter, long chains wait for their own results; in between
the processor looks far enough ahead by itself.
"""


def lanes_for(kernel: KernelIR, host: Host) -> int:
    """Elements per vector: the widest number of the kernel fills a register."""
    operands = [*kernel.inputs, *kernel.written, *(Operand(d) for d in kernel.dtypes)]
    bits = max(number_bits(o) for o in operands)
    if any(o.access is Access.STRIDED for o in (*kernel.inputs, *kernel.written)):
        bits = max(bits, 64)  # lanes of gathers are addressed one by one
    return 8 * host.vector_bytes // bits


def fused_host(host: Host) -> bool:
    """Whether the processor multiplies and adds in one rounding, which the function library builds on."""
    return host.level != "generic"


def require_rendered(kernel: KernelIR, host: Host) -> None:
    """Raise the typed error that names what cannot be rendered."""
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
    """The instructions of the kernel's lines; gives the values of its outputs."""
    values = list(inputs)
    for line, dtype in zip(kernel.lines, kernel.dtypes[len(inputs) :]):
        if isinstance(line, Apply):
            dtypes = tuple(kernel.dtypes[i] for i in line.args)
            values.append(apply(block, line.op, dtypes, dtype, *(values[i] for i in line.args)))
        else:
            values.append(literal(block, line.value, dtype))
    return [values[i] for i in kernel.outputs]


def work(kernel: KernelIR, host: Host) -> int:
    """Instructions of one vector's work."""
    block = Block(Module(), lanes_for(kernel, host), tables=host.tables)
    ports = [Port(o, "%p", "%s", "%o") for o in kernel.inputs]
    evaluate(block, kernel, [load(block, port, ["%i"]) for port in ports])
    return len(block.lines)


def cost(kernel: KernelIR, host: Host) -> float:
    """Nanoseconds of one element, roughly: instructions, and bytes that come from memory or go there."""
    lanes = lanes_for(kernel, host)
    moved = sum(o.dtype.itemsize for o in (*kernel.inputs, *kernel.written) if o.access is not Access.FIXED)
    return 0.16 * work(kernel, host) / lanes + 0.02 * moved


def interleaving(instructions: int, host: Host) -> int:
    """How many vectors the main loop takes at once; a power of two, for the trip count is masked with it."""
    most = 4 if host.registers >= 32 else 2
    if instructions <= LIGHT or CHAIN < instructions <= HEAVY:
        return most
    return 1 if instructions > HUGE else 2


class Row:
    """The frame of a function over one row: ports, and the two loops around a body."""

    def __init__(self, kernel: KernelIR, host: Host, instructions: int = 0) -> None:
        self.kernel, self.host = kernel, host
        self.module = Module()
        lanes = lanes_for(kernel, host)
        self.width = interleaving(instructions or work(kernel, host), host)
        self.block = Block(self.module, lanes, self.width, fused_host(host), host.tables)
        self.inputs: list[Port] = []
        self.outputs: list[Port] = []
        self._fixed: dict[int, tuple[str, ...]] = {}

    def open(self, data: str = "%data", strides: str = "%strides") -> None:
        """Read the argument arrays."""
        for number, operand in enumerate((*self.kernel.inputs, *self.kernel.written)):
            port = open_port(self.block, operand, data, strides, number)
            (self.inputs if number < len(self.kernel.inputs) else self.outputs).append(port)

    def fix(self) -> None:
        """Load the operands that stay the same along the row."""
        for number, port in enumerate(self.inputs):
            if port.operand.access is Access.FIXED:
                self._fixed[number] = load_fixed(self.block, port)

    def read(self, starts: list[str], mask: str = "", known: Mapping[int, Value] = MappingProxyType({})) -> list[Value]:
        """The kernel's output values for the elements from `starts` on; `known` are inputs that need no load."""
        values = [
            known[number]
            if number in known
            else fixed_value(self.block, port, self._fixed[number])
            if number in self._fixed
            else load(self.block, port, starts, mask)
            for number, port in enumerate(self.inputs)
        ]
        return evaluate(self.block, self.kernel, values)

    def starts(self, counter: str) -> list[str]:
        """First elements of the interleaved vectors."""
        b = self.block
        return [counter, *(b.raw(f"add i64 {counter}, {k * b.lanes}") for k in range(1, b.interleave))]

    def mask(self, counter: str, limit: str) -> str:
        """Lanes whose element number is below the limit."""
        b = self.block
        v = f"<{b.lanes} x i64>"
        left = b.raw(f"sub i64 {limit}, {counter}")
        first = b.raw(f"insertelement {v} poison, i64 {left}, i64 0")
        wide = b.raw(f"shufflevector {v} {first}, {v} poison, <{b.lanes} x i32> zeroinitializer")
        return b.raw(f"icmp slt {v} {lane_numbers(b.lanes)}, {wide}")

    def patch(self, mark: str, label: str) -> None:
        """Fill a label in that was not known when a phi was written."""
        self.block.lines = [line.replace(mark, label) for line in self.block.lines]


def render_row(kernel: KernelIR, name: str, host: Host, stream: bool = False) -> str:
    """LLVM text of an element-wise kernel; `stream` writes past the cache, to outputs aligned to 64 bytes."""
    require_rendered(kernel, host)
    row = Row(kernel, host)
    b, step = row.block, row.block.lanes * row.width
    b.begin("entry")
    row.open()
    b.do("%some = icmp sgt i64 %n, 0")
    b.do("br i1 %some, label %start, label %done")
    b.begin("start")
    row.fix()
    b.do(f"%main = and i64 %n, {-step}")
    b.do("%whole = icmp sgt i64 %main, 0")
    b.do("br i1 %whole, label %loop, label %rest")
    b.begin("loop")
    b.do("%i = phi i64 [ 0, %start ], [ %i.next, %LATCH1 ]")
    starts = row.starts("%i")
    for port, value in zip(row.outputs, row.read(starts)):
        store(b, port, starts, value, stream=stream)
    b.do(f"%i.next = add i64 %i, {step}")
    b.do("%more = icmp ult i64 %i.next, %main")
    b.do("br i1 %more, label %loop, label %rest")
    row.patch("%LATCH1", f"%{b.label}")
    b.begin("rest")
    b.do("%left = icmp ult i64 %main, %n")
    b.do("br i1 %left, label %tail, label %done")
    b.interleave = 1
    b.begin("tail")
    b.do("%j = phi i64 [ %main, %rest ], [ %j.next, %LATCH2 ]")
    mask = row.mask("%j", "%n")
    for port, value in zip(row.outputs, row.read(["%j"], mask)):
        store(b, port, ["%j"], value, mask)
    b.do(f"%j.next = add i64 %j, {b.lanes}")
    b.do("%again = icmp ult i64 %j.next, %n")
    b.do("br i1 %again, label %tail, label %done")
    row.patch("%LATCH2", f"%{b.label}")
    b.begin("done")
    if stream:
        b.do("fence seq_cst")
    b.do("ret void")
    head = f"define void @{name}(ptr %data, i64 %n, ptr %strides) {host.attributes} {{"
    return row.module.text(head, *b.lines, "}")


def row_spec(kernel: KernelIR, name: str, source: str) -> ProgramSpec:
    """The spec of a rendered kernel: one variable, the length of a row; over rows a second, their number."""
    inputs, outputs = len(kernel.inputs), len(kernel.written)
    over = None if kernel.reduction is None else kernel.reduction.over
    # A row that is reduced writes one element.
    written = kernel.written if over is not Over.TRAILING else [replace(o, access=Access.FIXED) for o in kernel.written]
    return ProgramSpec(
        source,
        name,
        (Variable("n", 1), Variable("m", 1)) if over is Over.LEADING else (Variable("n"),),
        inputs + outputs,
        tuple(range(inputs)),
        tuple(range(inputs, inputs + outputs)),
        operands=(*kernel.inputs, *written),
    )


def supported(primitive: Primitive, dtypes: tuple[np.dtype[Any], ...], host: Host) -> bool:
    """Whether `render_row` takes an application of `primitive`."""
    return rule_for(primitive, dtypes, fused_host(host)) is not None


def entry_name(text: str) -> str:
    """An identifier that LLVM takes unquoted.

    >>> entry_name("a*b+c")
    'a_b_c'
    """
    return re.sub(r"\W", "_", text) or "kernel"
