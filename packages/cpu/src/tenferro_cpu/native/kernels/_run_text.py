"""LLVM text of running a kernel: allocation, the interpreter lock, and NumPy's warnings."""

from typing import Final

from tenferro_cpu.native.kernels._body import Fields
from tenferro_cpu.native.kernels._driver import ELEMENTS, SHARES
from tenferro_cpu.native.python._layout import DATA, DIMS, FLAGS, NDIM, TYPE, WRITEABLE
from tenferro_cpu.native.python._operand_text import DESCR_OUT, LIMIT, SCAN, SHARED, SIZE_IN, SIZE_OUT, WATCH

ALONE: Final = 32768
"""Elements above which a kernel runs without the interpreter lock."""


def _scan(bits: int, exponent: int) -> str:
    return f"""
define private i32 @scan_{bits}(ptr %data, i64 %n) alwaysinline {{
  br label %loop
loop:
  %i = phi i64 [ 0, %0 ], [ %j, %body ]
  %bad = phi i32 [ 0, %0 ], [ %worse, %body ]
  %go = icmp slt i64 %i, %n
  br i1 %go, label %body, label %out
body:
  %p = getelementptr i{bits}, ptr %data, i64 %i
  %v = load i{bits}, ptr %p
  %e = and i{bits} %v, {exponent}
  %special = icmp eq i{bits} %e, {exponent}
  %one = zext i1 %special to i32
  %worse = or i32 %bad, %one
  %j = add i64 %i, 1
  br label %loop
out:
  ret i32 %bad
}}
"""


SCANS: Final = (
    _scan(64, 0x7FF0000000000000)
    + _scan(32, 0x7F800000)
    + """
; Whether some floating-point number of 4 or 8 bytes is infinite or NaN; of 0 bytes, none is.
define private i32 @scan(ptr %data, i64 %total, i64 %bytes) {
  switch i64 %bytes, label %no [ i64 8, label %wide
                                 i64 4, label %narrow ]
wide:
  %n_wide = lshr i64 %total, 3
  %w = call i32 @scan_64(ptr %data, i64 %n_wide)
  ret i32 %w
narrow:
  %n_narrow = lshr i64 %total, 2
  %v = call i32 @scan_32(ptr %data, i64 %n_narrow)
  ret i32 %v
no:
  ret i32 0
}
"""
)

_JOB: Final = Fields("kernel frame operands still n length size_in size_out watch scanned status special")

PIECE: Final = f"""
declare void @tenferro_parallel_for(ptr, ptr, i64, i64)
declare i64 @tenferro_allowed()

; A piece for the team. The floating-point status belongs to a thread, so every piece reports its own.
define private void @element_piece(ptr %job, i64 %piece) {{
entry:
  %own = alloca [3 x ptr]
{_JOB.unpacked("%job", "kernel frame")}
  %mask = trunc i64 %watch to i32
  %from = mul i64 %piece, %length
  %left = sub i64 %n, %from
  %part = call i64 @llvm.smin.i64(i64 %left, i64 %length)
  br label %move
move:
  %j = phi i64 [ 0, %entry ], [ %j1, %move ]
  %moved = lshr i64 %still, %j
  %bit = trunc i64 %moved to i1
  %step = select i1 %bit, i64 0, i64 %size_in
  %hop = mul i64 %step, %from
  %here = getelementptr ptr, ptr %frame, i64 %j
  %old = load ptr, ptr %here
  %new = getelementptr i8, ptr %old, i64 %hop
  %there = getelementptr ptr, ptr %own, i64 %j
  store ptr %new, ptr %there
  %j1 = add i64 %j, 1
  %more = icmp slt i64 %j1, %operands
  br i1 %more, label %move, label %go
go:
  %result_at = getelementptr ptr, ptr %frame, i64 %operands
  %result = load ptr, ptr %result_at
  %skipped = mul i64 %size_out, %from
  %to = getelementptr i8, ptr %result, i64 %skipped
  %to_at = getelementptr ptr, ptr %own, i64 %operands
  store ptr %to, ptr %to_at
  %before = call i32 @status()
  %stale = and i32 %before, %mask
  %is_stale = icmp ne i32 %stale, 0
  br i1 %is_stale, label %wipe, label %run
wipe:
  call void @clear(i32 %before)
  br label %run
run:
  call void %kernel(ptr %own, i64 %part, ptr null)
  %seen = call i32 @status()
  %flags = and i32 %seen, %mask
  %flags64 = zext i32 %flags to i64
  %bytes = mul i64 %part, %size_out
  %odd = call i32 @scan(ptr %to, i64 %bytes, i64 %scanned)
  %special64 = zext i32 %odd to i64
  %s = atomicrmw or ptr %status.at, i64 %flags64 monotonic
  %t = atomicrmw or ptr %special.at, i64 %special64 monotonic
  ret void
}}
declare i64 @llvm.smin.i64(i64, i64)
"""


_NOTED: Final = _JOB.packed("%job", {
    "kernel": "ptr %kernel", "frame": "ptr %frame", "operands": "i64 %nin", "still": "i64 %still", "n": "i64 %n",
    "length": "i64 %length", "size_in": "i64 %job_in", "size_out": "i64 %job_out", "watch": "i64 %watch64",
    "scanned": "i64 %scanned", "status": "i64 0", "special": "i64 0",
})  # fmt: skip

RUN: Final = f"""
; Run a kernel on operands that were checked, into a new array like `like`, or into `out`; `past` is the one that writes
; past the caches, or null; bit i of `still` says that operand i is one element for all.
define private ptr @run(ptr %self, ptr %p, ptr %args, i64 %nargs, ptr %usual, ptr %past, ptr %frame, i64 %nin,
                        i64 %still, ptr %like, ptr %out) {{
  %job = alloca [{len(_JOB.names)} x i64]
  %descr = call ptr @field(ptr %p, i64 {DESCR_OUT})
  %n = call i64 @elements(ptr %like)
  %limit = call i64 @number(ptr %p, i64 {LIMIT})
  %within = icmp sle i64 %n, %limit
  br i1 %within, label %begin, label %above
above:
  %l = call ptr @large(ptr %self, ptr %args, i64 %nargs)
  ret ptr %l
begin:
  %given = icmp ne ptr %out, null
  br i1 %given, label %check, label %make
check:
  %type = call ptr @field(ptr %out, i64 {TYPE})
  %is_array = icmp eq ptr %type, @tenferro_ndarray
  br i1 %is_array, label %check_array, label %refuse
check_array:
  %good = call i32 @array(ptr %out, ptr %descr)
  %goods = icmp ne i32 %good, 0
  br i1 %goods, label %check_dims, label %refuse
check_dims:
  %flags = call i32 @small(ptr %out, i64 {FLAGS})
  %bit = and i32 %flags, {WRITEABLE}
  %open = icmp ne i32 %bit, 0
  %dims = call i1 @same_dims(ptr %out, ptr %like)
  %fits = and i1 %open, %dims
  br i1 %fits, label %check_apart, label %refuse
check_apart:
  ; Operands that share memory with the result go the safe way.
  %to = call ptr @field(ptr %out, i64 {DATA})
  %to_i = ptrtoint ptr %to to i64
  %size_in = call i64 @number(ptr %p, i64 {SIZE_IN})
  %size_out = call i64 @number(ptr %p, i64 {SIZE_OUT})
  %bytes_in = mul i64 %n, %size_in
  %bytes_out = mul i64 %n, %size_out
  %to_end = add i64 %to_i, %bytes_out
  br label %apart
apart:
  %i = phi i64 [ 0, %check_apart ], [ %j, %apart ]
  %clash = phi i1 [ false, %check_apart ], [ %clashes, %apart ]
  %pa = getelementptr ptr, ptr %frame, i64 %i
  %a = load ptr, ptr %pa
  %a_i = ptrtoint ptr %a to i64
  %a_end = add i64 %a_i, %bytes_in
  %before = icmp ule i64 %a_end, %to_i
  %after = icmp uge i64 %a_i, %to_end
  %free = or i1 %before, %after
  %shared = xor i1 %free, true
  %clashes = or i1 %clash, %shared
  %j = add i64 %i, 1
  %more = icmp slt i64 %j, %nin
  br i1 %more, label %apart, label %decided
decided:
  br i1 %clashes, label %refuse, label %take
take:
  call void @tenferro_incref(ptr %out)
  br label %ready
make:
  %ndim = call i32 @small(ptr %like, i64 {NDIM})
  %shape = call ptr @field(ptr %like, i64 {DIMS})
  call void @tenferro_incref(ptr %descr)
  %new = call ptr @tenferro_new_from_descr(ptr @tenferro_ndarray, ptr %descr, i32 %ndim, ptr %shape, ptr null,
                                           ptr null, i32 0, ptr null)
  %made = icmp ne ptr %new, null
  br i1 %made, label %ready, label %failed
failed:
  ret ptr null
ready:
  %result = phi ptr [ %out, %take ], [ %new, %make ]
  %data = call ptr @field(ptr %result, i64 {DATA})
  %last = getelementptr ptr, ptr %frame, i64 %nin
  store ptr %data, ptr %last
  %place = ptrtoint ptr %data to i64
  %offset = and i64 %place, 63
  %aligned = icmp eq i64 %offset, 0
  %has_past = icmp ne ptr %past, null
  %takes_past = and i1 %aligned, %has_past
  %kernel = select i1 %takes_past, ptr %past, ptr %usual
  %scanned = call i64 @number(ptr %p, i64 {SCAN})
  %width = call i64 @number(ptr %p, i64 {SIZE_OUT})
  %total = mul i64 %n, %width
  %watch64 = call i64 @number(ptr %p, i64 {WATCH})
  %watch = trunc i64 %watch64 to i32
  %watching = icmp ne i32 %watch, 0
  br i1 %watching, label %look, label %start
look:
  %old = call i32 @status()
  %stale = and i32 %old, %watch
  %is_stale = icmp ne i32 %stale, 0
  br i1 %is_stale, label %wipe, label %start
wipe:
  call void @clear(i32 %old)
  br label %start
start:
  %long = icmp sgt i64 %n, {ALONE}
  br i1 %long, label %alone, label %short
short:
  call void %kernel(ptr %frame, i64 %n, ptr null)
  br label %done
alone:
  %from = call i64 @number(ptr %p, i64 {SHARED})
  %pays = icmp sge i64 %n, %from
  br i1 %pays, label %ask, label %single
ask:
  %team = call i64 @tenferro_allowed()
  %several = icmp sgt i64 %team, 1
  br i1 %several, label %cut, label %single
cut:
  %shares = mul i64 %team, {SHARES}
  %share = udiv i64 %n, %shares
  %parts = udiv i64 %share, {ELEMENTS}
  %parts1 = add i64 %parts, 1
  %length = mul i64 %parts1, {ELEMENTS}
  %up = add i64 %n, %length
  %up1 = sub i64 %up, 1
  %pieces = udiv i64 %up1, %length
  %job_in = call i64 @number(ptr %p, i64 {SIZE_IN})
  %job_out = call i64 @number(ptr %p, i64 {SIZE_OUT})
{_NOTED}
  %thread_team = call ptr @tenferro_save_thread()
  call void @tenferro_parallel_for(ptr @element_piece, ptr %job, i64 %pieces, i64 %team)
  call void @tenferro_restore_thread(ptr %thread_team)
  %status_team64 = load i64, ptr %status.in
  %status_team = trunc i64 %status_team64 to i32
  %special_team64 = load i64, ptr %special.in
  %special_team = trunc i64 %special_team64 to i32
  br label %judge
single:
  %thread = call ptr @tenferro_save_thread()
  call void %kernel(ptr %frame, i64 %n, ptr null)
  %seen_alone = call i32 @status()
  %scan_alone = call i32 @scan(ptr %data, i64 %total, i64 %scanned)
  call void @tenferro_restore_thread(ptr %thread)
  br label %judge
done:
  br i1 %watching, label %read, label %unwatched
read:
  %seen = call i32 @status()
  br label %judge
unwatched:
  %scan_short = call i32 @scan(ptr %data, i64 %total, i64 %scanned)
  br label %judge
judge:
  %status = phi i32 [ %seen, %read ], [ %seen_alone, %single ], [ %status_team, %cut ], [ 0, %unwatched ]
  %special = phi i32 [ 0, %read ], [ %scan_alone, %single ], [ %special_team, %cut ], [ %scan_short, %unwatched ]
  %flagged = and i32 %status, %watch
  %raised = or i32 %flagged, %special
  %warn = icmp ne i32 %raised, 0
  br i1 %warn, label %again, label %finish
again:
  call void @tenferro_decref(ptr %result)
  br label %refuse
finish:
  ret ptr %result
refuse:
  %r = call ptr @fall_back(ptr %self, ptr %args, i64 %nargs)
  ret ptr %r
}}
"""
