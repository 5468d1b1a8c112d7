"""Entries of fused kernels: contiguous operands of one shape, small enough that the call itself counts.

Like the entries of single operations, they are built-in functions that read arrays in place; whatever they do not
take goes to the fallback, which plans for any layout.
"""

import struct
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

from tenferro_cpu.native._builtin import FASTCALL, MethodDef, builtin, definition
from tenferro_cpu.native._capi import symbols
from tenferro_cpu.native._driver import ELEMENTS, SHARES
from tenferro_cpu.native._jit import available, engine
from tenferro_cpu.native._layout import ALIGNED, BYTES, C_CONTIGUOUS, DATA, DESCR, DIMS, FLAGS, NDIM, TYPE, Layout
from tenferro_cpu.native._team import team

MOST = 16
"""Operands that an entry takes."""

OPERANDS = 64
"""Place of the operands among the numbers, in bytes."""

ALONE = 32768
"""Elements above which the kernel runs without the interpreter lock."""

NEVER = 2**62


def _text(tuple_items: int) -> str:
    good = C_CONTIGUOUS | ALIGNED
    return f"""
@tenferro_ndarray = external global i8
declare ptr @tenferro_new_from_descr(ptr, ptr, i32, ptr, ptr, ptr, i32, ptr)
declare void @tenferro_incref(ptr)
declare ptr @tenferro_vectorcall(ptr, ptr, i64, ptr)
declare ptr @tenferro_save_thread()
declare void @tenferro_restore_thread(ptr)

define private ptr @field(ptr %o, i64 %at) alwaysinline {{
  %p = getelementptr i8, ptr %o, i64 %at
  %v = load ptr, ptr %p
  ret ptr %v
}}
define private i64 @word(ptr %o, i64 %at) alwaysinline {{
  %p = getelementptr i8, ptr %o, i64 %at
  %v = load i64, ptr %p
  ret i64 %v
}}
define private i32 @small(ptr %o, i64 %at) alwaysinline {{
  %p = getelementptr i8, ptr %o, i64 %at
  %v = load i32, ptr %p
  ret i32 %v
}}

declare void @tenferro_parallel_for(ptr, ptr, i64, i64)
declare i64 @tenferro_allowed()

; Rows of `width` elements; the pointers of the frame are moved on.
define private void @rows(ptr %p, ptr %frame, i64 %nin, i64 %width, i64 %many) {{
entry:
  %pt = getelementptr ptr, ptr %frame, i64 %nin
  %kernel = call ptr @field(ptr %p, i64 0)
  %size = call i64 @word(ptr %p, i64 32)
  br label %loop
loop:
  %r = phi i64 [ 0, %entry ], [ %r1, %step ]
  %go = icmp ult i64 %r, %many
  br i1 %go, label %call, label %done
call:
  call void %kernel(ptr %frame, i64 %width, ptr null, i64 1, ptr null)
  %r1 = add i64 %r, 1
  br label %move
move:
  %j = phi i64 [ 0, %call ], [ %j1, %move ]
  call void @shift(ptr %p, ptr %frame, i64 %j, i64 %width)
  %j1 = add i64 %j, 1
  %again = icmp ult i64 %j1, %nin
  br i1 %again, label %move, label %step
step:
  %vo = load ptr, ptr %pt
  %no = getelementptr i8, ptr %vo, i64 %size
  store ptr %no, ptr %pt
  br label %loop
done:
  ret void
}}

; Move the pointer of operand j by some elements.
define private void @shift(ptr %p, ptr %frame, i64 %j, i64 %elements) alwaysinline {{
  %at2 = shl i64 %j, 4
  %at = add i64 %at2, {OPERANDS + 8}
  %bytes = call i64 @word(ptr %p, i64 %at)
  %hop = mul i64 %bytes, %elements
  %pj = getelementptr ptr, ptr %frame, i64 %j
  %vj = load ptr, ptr %pj
  %nj = getelementptr i8, ptr %vj, i64 %hop
  store ptr %nj, ptr %pj
  ret void
}}

; A piece for the team: some elements, or some rows. Context: numbers, frame, operands, elements of a row (0: no rows),
; length of a piece, length of all.
define private void @piece(ptr %context, i64 %piece) {{
entry:
  %own = alloca [{MOST + 1} x ptr]
  %p = load ptr, ptr %context
  %frame = call ptr @field(ptr %context, i64 8)
  %nin = call i64 @word(ptr %context, i64 16)
  %row = call i64 @word(ptr %context, i64 24)
  %length = call i64 @word(ptr %context, i64 32)
  %total = call i64 @word(ptr %context, i64 40)
  %from = mul i64 %piece, %length
  %left = sub i64 %total, %from
  %short = icmp slt i64 %left, %length
  %n = select i1 %short, i64 %left, i64 %length
  %reduces = icmp ne i64 %row, 0
  %unit = select i1 %reduces, i64 %row, i64 1
  %elements = mul i64 %from, %unit
  %bytes8 = shl i64 %nin, 3
  %bytes = add i64 %bytes8, 8
  call void @llvm.memcpy.p0.p0.i64(ptr %own, ptr %frame, i64 %bytes, i1 false)
  br label %move
move:
  %j = phi i64 [ 0, %entry ], [ %j1, %move ]
  call void @shift(ptr %p, ptr %own, i64 %j, i64 %elements)
  %j1 = add i64 %j, 1
  %again = icmp ult i64 %j1, %nin
  br i1 %again, label %move, label %result
result:
  %pt = getelementptr ptr, ptr %own, i64 %nin
  %to = load ptr, ptr %pt
  %size = call i64 @word(ptr %p, i64 32)
  %hop = mul i64 %size, %from
  %place = getelementptr i8, ptr %to, i64 %hop
  store ptr %place, ptr %pt
  %width = select i1 %reduces, i64 %row, i64 %n
  %many = select i1 %reduces, i64 %n, i64 1
  call void @rows(ptr %p, ptr %own, i64 %nin, i64 %width, i64 %many)
  ret void
}}

; Numbers: 0 kernel, 8 operands, 16 most elements, 24 dtype of the result, 32 its bytes, 40 least row (0: no rows),
; 48 longest row, 56 elements from which the team is called, then dtype and bytes of every operand.
define ptr @fused(ptr %self, ptr %args, i64 %nargs) nounwind {{
entry:
  %frame = alloca [{MOST + 1} x ptr]
  %context = alloca [6 x i64]
  %numbers = call ptr @field(ptr %self, i64 {tuple_items})
  %p = getelementptr i8, ptr %numbers, i64 {BYTES}
  %nin = call i64 @word(ptr %p, i64 8)
  %count = icmp eq i64 %nargs, %nin
  br i1 %count, label %begin, label %refuse
begin:
  %first = load ptr, ptr %args
  %type0 = call ptr @field(ptr %first, i64 {TYPE})
  %isarray0 = icmp eq ptr %type0, @tenferro_ndarray
  br i1 %isarray0, label %shape, label %refuse
shape:
  %ndim = call i32 @small(ptr %first, i64 {NDIM})
  %rank = zext i32 %ndim to i64
  %dims = call ptr @field(ptr %first, i64 {DIMS})
  br label %operand
operand:
  %k = phi i64 [ 0, %shape ], [ %k1, %matched ]
  %pa = getelementptr ptr, ptr %args, i64 %k
  %a = load ptr, ptr %pa
  %type = call ptr @field(ptr %a, i64 {TYPE})
  %isarray = icmp eq ptr %type, @tenferro_ndarray
  br i1 %isarray, label %array, label %refuse
array:
  %descr = call ptr @field(ptr %a, i64 {DESCR})
  %at2 = shl i64 %k, 4
  %at = add i64 %at2, {OPERANDS}
  %want = call ptr @field(ptr %p, i64 %at)
  %flags = call i32 @small(ptr %a, i64 {FLAGS})
  %bits = and i32 %flags, {good}
  %plain = icmp eq i32 %bits, {good}
  %typed = icmp eq ptr %descr, %want
  %n.d = call i32 @small(ptr %a, i64 {NDIM})
  %ranks = icmp eq i32 %n.d, %ndim
  %c.1 = and i1 %plain, %typed
  %c.2 = and i1 %c.1, %ranks
  br i1 %c.2, label %extents, label %refuse
extents:
  %data = call ptr @field(ptr %a, i64 {DATA})
  %pf = getelementptr ptr, ptr %frame, i64 %k
  store ptr %data, ptr %pf
  %own = call ptr @field(ptr %a, i64 {DIMS})
  br label %extent
extent:
  %d = phi i64 [ 0, %extents ], [ %d1, %same ]
  %n = phi i64 [ 1, %extents ], [ %n1, %same ]
  %past = icmp uge i64 %d, %rank
  br i1 %past, label %matched, label %compare
compare:
  %px = getelementptr i64, ptr %own, i64 %d
  %py = getelementptr i64, ptr %dims, i64 %d
  %x = load i64, ptr %px
  %y = load i64, ptr %py
  %equal = icmp eq i64 %x, %y
  br i1 %equal, label %same, label %refuse
same:
  %d1 = add i64 %d, 1
  %n1 = mul i64 %n, %x
  br label %extent
matched:
  %k1 = add i64 %k, 1
  %more = icmp ult i64 %k1, %nin
  br i1 %more, label %operand, label %sized
sized:
  %most = call i64 @word(ptr %p, i64 16)
  %fits = icmp ule i64 %n, %most
  br i1 %fits, label %rows, label %refuse
rows:
  ; A reduction takes one axis away and calls the kernel row by row.
  %least = call i64 @word(ptr %p, i64 40)
  %reduces = icmp ne i64 %least, 0
  br i1 %reduces, label %last, label %make
last:
  %axes = icmp ne i32 %ndim, 0
  br i1 %axes, label %row_length, label %refuse
row_length:
  %up = sub i64 %rank, 1
  %pl = getelementptr i64, ptr %dims, i64 %up
  %row = load i64, ptr %pl
  %longest = call i64 @word(ptr %p, i64 48)
  %not_less = icmp uge i64 %row, %least
  %not_more = icmp ule i64 %row, %longest
  %enough = and i1 %not_less, %not_more
  br i1 %enough, label %divide, label %refuse
divide:
  %many.r = udiv i64 %n, %row
  %less = sub i32 %ndim, 1
  br label %make
make:
  %width = phi i64 [ %n, %rows ], [ %row, %divide ]
  %many = phi i64 [ 1, %rows ], [ %many.r, %divide ]
  %nd = phi i32 [ %ndim, %rows ], [ %less, %divide ]
  %out.descr = call ptr @field(ptr %p, i64 24)
  call void @tenferro_incref(ptr %out.descr)
  %out = call ptr @tenferro_new_from_descr(ptr @tenferro_ndarray, ptr %out.descr, i32 %nd, ptr %dims,
                                           ptr null, ptr null, i32 0, ptr null)
  %made = icmp ne ptr %out, null
  br i1 %made, label %run, label %failed
failed:
  ret ptr null
run:
  %to = call ptr @field(ptr %out, i64 {DATA})
  %pt = getelementptr ptr, ptr %frame, i64 %nin
  store ptr %to, ptr %pt
  %long = icmp ugt i64 %n, {ALONE}
  br i1 %long, label %release, label %short
short:
  call void @rows(ptr %p, ptr %frame, i64 %nin, i64 %width, i64 %many)
  br label %give
release:
  %from.n = call i64 @word(ptr %p, i64 56)
  %pays = icmp uge i64 %n, %from.n
  br i1 %pays, label %ask, label %alone
ask:
  %threads = call i64 @tenferro_allowed()
  br label %alone
alone:
  %team = phi i64 [ 1, %release ], [ %threads, %ask ]
  %thread = call ptr @tenferro_save_thread()
  %several = icmp sgt i64 %team, 1
  br i1 %several, label %cut, label %single
single:
  call void @rows(ptr %p, ptr %frame, i64 %nin, i64 %width, i64 %many)
  br label %regain
cut:
  %total = select i1 %reduces, i64 %many, i64 %n
  %shares = mul i64 %team, {SHARES}
  %part = udiv i64 %total, %shares
  %unit = select i1 %reduces, i64 1, i64 {ELEMENTS}
  %parts = udiv i64 %part, %unit
  %parts1 = add i64 %parts, 1
  %length = mul i64 %parts1, %unit
  %up.t = add i64 %total, %length
  %up.t1 = sub i64 %up.t, 1
  %pieces = udiv i64 %up.t1, %length
  %row.c = select i1 %reduces, i64 %width, i64 0
  store ptr %p, ptr %context
  %c1 = getelementptr i64, ptr %context, i64 1
  store ptr %frame, ptr %c1
  %c2 = getelementptr i64, ptr %context, i64 2
  store i64 %nin, ptr %c2
  %c3 = getelementptr i64, ptr %context, i64 3
  store i64 %row.c, ptr %c3
  %c4 = getelementptr i64, ptr %context, i64 4
  store i64 %length, ptr %c4
  %c5 = getelementptr i64, ptr %context, i64 5
  store i64 %total, ptr %c5
  call void @tenferro_parallel_for(ptr @piece, ptr %context, i64 %pieces, i64 %team)
  br label %regain
regain:
  call void @tenferro_restore_thread(ptr %thread)
  br label %give
give:
  ret ptr %out
refuse:
  %fallback = call ptr @field(ptr %self, i64 {tuple_items + 8})
  %answer = call ptr @tenferro_vectorcall(ptr %fallback, ptr %args, i64 %nargs, ptr null)
  ret ptr %answer
}}
"""


@cache
def _definition() -> MethodDef | None:
    layout = Layout.found() if available() else None
    known = symbols() if layout is not None else None
    helpers = team() if known is not None else None
    if layout is None or known is None or helpers is None:
        return None
    known = known | helpers.symbols
    return definition("fused", engine().function(_text(layout.tuple_items), "fused", known, level=2), FASTCALL)


def entry(
    kernel: int,
    dtypes: tuple[np.dtype[Any], ...],
    out: np.dtype[Any],
    most: int,
    fallback: Callable[..., Any],
    least_row: int = 0,
    longest_row: int = NEVER,
    shared: int = NEVER,
) -> Callable[..., Any]:
    """A built-in function of arrays that runs a kernel with one output, or `fallback` where entries cannot be had.

    Args:
        kernel: address of machine code for neighbouring elements.
        dtypes: dtypes of the operands, at most `MOST`.
        out: dtype of the result.
        most: elements up to which the call is taken.
        fallback: called with the same arguments for everything else.
        least_row: for kernels that reduce the last axis, its least extent.
        longest_row: and its largest one.
        shared: elements from which the thread team is called.
    """
    made = _definition()
    if made is None or not 0 < len(dtypes) <= MOST:
        return fallback
    numbers = [kernel, len(dtypes), most, id(out), out.itemsize, least_row, longest_row, shared]
    for dtype in dtypes:
        numbers += [id(dtype), dtype.itemsize]
    receiver = (struct.pack(f"={len(numbers)}Q", *numbers), fallback, dtypes, out)
    return builtin(made, receiver)  # type: ignore[no-any-return]
