"""`Call` statements: kernels for whole arrays, reached through the context of the run.

Kernels with a symbol may be called directly from here; all others go through ``context->call``.
"""

from __future__ import annotations

from typing import Final

from tenferro_cpu.native.codegen.builder import Int, Pointer, Vec
from tenferro_cpu.native.codegen.whole._fortran import fortran, has_routine
from tenferro_cpu.native.codegen.whole._frame import Frame
from tenferro_cpu.native.codegen.whole._values import store, stored_type
from tenferro_tensor.loop_ir import Call, Foreign, View

COUNTDOWN: Final = 0
POLL: Final = 8
CALL: Final = 16
PARALLEL_FOR: Final = 24
THREADS: Final = 32
"""Offsets of the fields of ``struct tenferro_whole``."""

FIRST_REPORT: Final = 2
"""Status with which a function without Python ends at its first `Call`; later calls have consecutive numbers."""


def write_call(frame: Frame, call: Call, number: int) -> None:
    """Run statement `number` of the function's calls; leave the function with its status unless that is 0."""
    if frame.alone:
        leave_with(frame, Int(frame.block, str(FIRST_REPORT + number)))
        return
    b, views = frame.block, (*call.operands, *call.results)
    pointers = frame.reserved("ptr", len(views))
    extents = frame.reserved("i64", sum([len(v.shape) + len(v.strides) for v in views]))
    place = 0
    for i, view in enumerate(views):
        b.do(f"store ptr {_first(frame, view).name}, ptr {pointers.element('ptr', i).name}, align 8")
        for extent in (*view.shape, *view.strides):
            extents.element("i64", place).store("i64", frame.size(extent).name, 8)
            place += 1
    function = Pointer(b, "%context").element("i8", CALL).load_pointer()
    status = b.raw(f"call i64 {function.name}(ptr %context, i64 {number}, ptr {pointers.name}, ptr {extents.name})")
    leave_with(frame, Int(b, status))


def _first(frame: Frame, view: View) -> Pointer:
    """The first element of a view."""
    dtype = view.buffer.dtype
    llvm = f"[{dtype.itemsize} x i8]" if dtype.kind == "c" else stored_type(dtype)[0]
    return frame.pointer(view.buffer).element(llvm, frame.place(view.at))


def write_foreign(frame: Frame, s: Foreign) -> None:
    """Call a subroutine by reference; a routine without an address is skipped."""
    if "." in s.symbol and (frame.alone or not has_routine(s.symbol)):
        assert s.info is not None
        frame.registers[s.info.number] = Vec(frame.block, "i64", ("-1",))
        return
    b, (symbol, width) = frame.block, (f"{s.symbol}_", 4) if frame.alone else fortran(s.symbol)
    integer = f"i{8 * width}"
    addresses = []
    for a in s.arguments:
        if isinstance(a, View):
            addresses.append(_first(frame, a))
        elif isinstance(a, str):
            cell = frame.reserved("i8", 1)
            cell.store("i8", str(ord(a)), 1)
            addresses.append(cell)
        elif a.dtype.kind in "iu":
            addresses.append(_integer(frame, frame.index(a), integer))
        else:
            cell = frame.reserved(stored_type(a.dtype)[0], 2)
            store(b, a.dtype, cell, 0, frame.value(a))
            addresses.append(cell)
    if s.info is not None:
        addresses.append(_integer(frame, Int(b, "0"), integer))
    b.module.require(symbol, lambda: f"declare void @{symbol}({', '.join(['ptr'] * len(addresses))})")
    b.do(f"call void @{symbol}({', '.join(f'ptr {p.name}' for p in addresses)})")
    if s.info is not None:
        found = addresses[-1].load(integer, width)
        wide = found if width == 8 else b.raw(f"sext {integer} {found} to i64")
        frame.registers[s.info.number] = Vec(b, "i64", (wide,))


def _integer(frame: Frame, value: Int, llvm: str) -> Pointer:
    b, cell = frame.block, frame.reserved(llvm, 1)
    name = value.name if llvm == "i64" else b.raw(f"trunc i64 {value.name} to {llvm}")
    cell.store(llvm, name, int(llvm[1:]) // 8)
    return cell


def leave_with(frame: Frame, status: Int) -> None:
    """End the function with a nonzero status."""
    b = frame.block
    left, on = b.new_label("left"), b.new_label("on")
    b.branch(status.differs(0).name, left, on, rarely=True)
    b.begin(left)
    b.do(f"ret i64 {status.name}")
    b.begin(on)
