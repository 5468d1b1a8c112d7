"""`Call` statements: kernels for whole arrays, reached through the context of the run.

A kernel with a symbol of its own may be called from here directly; all others go through ``context->call``.
"""

from __future__ import annotations

from typing import Final

from tenferro_cpu.native.builder import Int, Pointer
from tenferro_cpu.native.whole._frame import Frame
from tenferro_cpu.native.whole._values import stored_type
from tenferro_tensor.loop_ir import Call

COUNTDOWN: Final = 0
POLL: Final = 8
CALL: Final = 16
"""Offsets of the fields of ``struct tenferro_whole``."""


def write_call(frame: Frame, call: Call, number: int) -> None:
    """Run statement `number` of the function's calls; leave the function with its status where that is not 0."""
    b, views = frame.block, (*call.operands, *call.results)
    pointers = frame.reserved("ptr", len(views))
    extents = frame.reserved("i64", sum([len(v.shape) + len(v.strides) for v in views]))
    place = 0
    for i, view in enumerate(views):
        dtype = view.buffer.dtype
        llvm = f"[{dtype.itemsize} x i8]" if dtype.kind == "c" else stored_type(dtype)[0]
        first = frame.pointer(view.buffer).element(llvm, frame.place(view.at))
        b.do(f"store ptr {first.name}, ptr {pointers.element('ptr', i).name}, align 8")
        for extent in (*view.shape, *view.strides):
            extents.element("i64", place).store("i64", frame.size(extent).name, 8)
            place += 1
    function = Pointer(b, "%context").element("i8", CALL).load_pointer()
    status = b.raw(f"call i64 {function.name}(ptr %context, i64 {number}, ptr {pointers.name}, ptr {extents.name})")
    leave_with(frame, Int(b, status))


def leave_with(frame: Frame, status: Int) -> None:
    """End the function with a status that is not 0."""
    b = frame.block
    left, on = b.new_label("left"), b.new_label("on")
    b.branch(status.differs(0).name, left, on, rarely=True)
    b.begin(left)
    b.do(f"ret i64 {status.name}")
    b.begin(on)
