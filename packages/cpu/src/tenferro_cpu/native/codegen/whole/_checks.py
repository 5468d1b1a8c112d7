"""The checked form of machine code: every access is compared with the extent of its buffer when it is executed.

Accesses are proved to be inside or bounded when a program is lowered, so that ordinary code compares nothing.
``TENFERRO_CHECKED=1`` shows that this holds: with it, loops are scalar, an access that would leave its buffer touches
spare memory instead, and the call ends with an error that names the buffer, the element and the user's line.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Final, NoReturn

from tenferro_cpu.native.codegen.builder import Flag, Int, Module, Pointer, ScalarBlock
from tenferro_cpu.native.codegen.whole._calls import COUNTDOWN
from tenferro_cpu.native.codegen.whole._frame import Frame
from tenferro_tensor.loop_ir import (
    Buffer,
    Call,
    Foreign,
    Load,
    LoopFunction,
    LoopIRError,
    Reg,
    Statement,
    Store,
    Touch,
    declared,
    everything,
    head,
    touches,
)
from tenferro_tensor_core import DimLike, evaluate

FIRST_FAULT: Final = 1 << 32
"""Status of a function whose first access leaves its buffer; those of later accesses follow."""

SPARE_BYTES: Final = 64


class Checks:
    """The comparisons of one function.

    Args:
        function: the function.
        module: where the record of a fault is defined: number of the access, counted from 1, and its position.
    """

    def __init__(self, function: LoopFunction, module: Module) -> None:
        self.number = {id(s): k for k, s in enumerate(_accesses(function), 1)}
        module.require("fault", lambda: "@fault = internal global [2 x i64] zeroinitializer")
        module.require("spare", lambda: f"@spare = internal global [{SPARE_BYTES} x i8] zeroinitializer, align 64")

    def start(self, block: ScalarBlock) -> None:
        """Forget the fault of an earlier run."""
        Pointer(block, "@fault").store("i64", "0", 8)

    def end(self, block: ScalarBlock) -> None:
        """Leave the function with the status of a fault, whose position is left in the countdown of the run."""
        fault = Pointer(block, "@fault")
        number = fault.load_int()
        left, on = block.new_label("faulty"), block.new_label("faultless")
        block.branch(number.differs(0).name, left, on, rarely=True)
        block.begin(left)
        position = fault.element("i64", 1).load_int()
        Pointer(block, "%context").element("i8", COUNTDOWN).store("i64", position.name, 8)
        block.do(f"ret i64 {(number + (FIRST_FAULT - 1)).name}")
        block.begin(on)

    def element(self, frame: Frame, s: Load | Store) -> tuple[Pointer, Int]:
        """The buffer and the index of an access; spare memory if it is outside."""
        b, at = frame.block, frame.number(s.at)
        inside = self._inside(frame, s, s.buffer, at, at)
        spare = b.raw(f"select i1 {inside.name}, ptr {frame.pointer(s.buffer).name}, ptr @spare")
        return Pointer(b, spare), inside.choose(at, 0)

    def views(self, frame: Frame, s: Call | Foreign) -> None:
        """Compare the views of a call, and leave the function before it if one is outside."""
        for t in touches([s]):
            first, last = self._ends(frame, t)
            self._inside(frame, s, t.buffer, first, last, empty=[frame.size(n) < 1 for n, _ in t.axes])
        self.end(frame.block)

    def _ends(self, frame: Frame, t: Touch) -> tuple[Int, Int]:
        first = last = frame.number(t.at)
        for extent, by in t.axes:
            along = (frame.size(extent) - 1) * frame.size(by)
            forward = along > 0
            first, last = first + forward.opposite().choose(along, 0), last + forward.choose(along, 0)
        return first, last

    def _inside(
        self, frame: Frame, s: Statement, buffer: Buffer, first: Int, last: Int, empty: list[Flag] | None = None
    ) -> Flag:
        """Whether positions are inside a buffer; the first of all faults that is seen is recorded."""
        b = frame.block
        count: DimLike = math.prod(buffer.shape)
        low = first < 0
        outside = b.raw(f"or i1 {low.name}, {(last > frame.size(count).plus(-1)).name}")
        for flag in empty or ():
            outside = b.raw(f"and i1 {outside}, {flag.opposite().name}")
        bad, on = b.new_label("outside"), b.new_label("inside")
        b.branch(outside, bad, on, rarely=True)
        b.begin(bad)
        fault = Pointer(b, "@fault")
        fault.store("i64", str(self.number.get(id(s), 0)), 8)
        fault.element("i64", 1).store("i64", low.choose(first, last).name, 8)
        b.jump(on)
        b.begin(on)
        return Flag(b, outside).opposite()


def report(function: LoopFunction, status: int, position: int, sizes: Mapping[str, int]) -> NoReturn:
    """Raise the error of a fault.

    Args:
        function: the function.
        status: its status.
        position: the position that the access has.
        sizes: values of the sizes by name.

    Raises:
        LoopIRError: always.
    """
    s = _accesses(function)[status - FIRST_FAULT]
    buffers = [t.buffer for t in touches([s])]
    seen = " or ".join(f"{declared(b)} of {math.prod([evaluate(n, sizes) for n in b.shape])} elements" for b in buffers)
    made = s.result if isinstance(s, Load) else s.value if isinstance(s, Store) else None
    where = s.where if isinstance(s, Call) else function.where(made.number) if isinstance(made, Reg) else ""
    raise LoopIRError(
        f"{head(s)} leaves {seen}: element {position}, with the sizes {dict(sizes)}{f', at {where}' if where else ''}",
        statement=head(s),
        position=position,
    )


def _accesses(function: LoopFunction) -> list[Load | Store | Call | Foreign]:
    return [s for s in everything(function.body) if isinstance(s, Load | Store | Call | Foreign)]
