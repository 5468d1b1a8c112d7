"""LLVM text of running a kernel: allocation, the interpreter lock, and NumPy's warnings."""

from typing import Final

from tenferro_cpu.native._layout import DATA, DIMS, FLAGS, NDIM, TYPE, WRITEABLE
from tenferro_cpu.native._operand_text import DESCR_OUT, LIMIT, SCAN, SIZE_IN, SIZE_OUT, WATCH

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

RUN: Final = f"""
; Run a kernel on operands that were checked, into a new array like `like`, or into `out`.
define private ptr @run(ptr %self, ptr %p, ptr %args, i64 %nargs, ptr %kernel, ptr %frame, i64 %nin, ptr %like,
                        ptr %out) {{
  %descr = call ptr @field(ptr %p, i64 {DESCR_OUT})
  %n = call i64 @elements(ptr %like)
  %limit = call i64 @number(ptr %p, i64 {LIMIT})
  %within = icmp sle i64 %n, %limit
  br i1 %within, label %begin, label %refuse
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
  %status = phi i32 [ %seen, %read ], [ %seen_alone, %alone ], [ 0, %unwatched ]
  %special = phi i32 [ 0, %read ], [ %scan_alone, %alone ], [ %scan_short, %unwatched ]
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
