"""LLVM text of the entries: C functions that Python calls, which check arrays, allocate, and run a kernel.

An entry is ``PyObject *f(self, args, nargs)`` (METH_FASTCALL). Its `self` is a tuple: a ``bytes`` object with the
numbers of `Payload`, the fallback, and whatever must live as long. Operands that are not what the kernel takes go to
the fallback, untouched.

While a kernel of arithmetic runs, the floating-point status is watched: where NumPy would warn (or raise, under
``numpy.errstate``), its kernel runs again in place of ours, so that the warning is NumPy's own.
"""

from typing import Final

from tenferro_cpu.native._layout import (
    ALIGNED,
    BYTES,
    C_CONTIGUOUS,
    DATA,
    DESCR,
    DIMS,
    FLAGS,
    NDIM,
    NUMBER,
    TYPE,
    WRITEABLE,
)

ALONE: Final = 32768
"""Elements above which a kernel runs without the interpreter lock."""

_STATUS: Final = {
    "x86_64": """
declare void @llvm.x86.sse.stmxcsr(ptr)
declare void @llvm.x86.sse.ldmxcsr(ptr)
define private i32 @status() alwaysinline {
  %s = alloca i32
  call void @llvm.x86.sse.stmxcsr(ptr %s)
  %v = load i32, ptr %s
  ret i32 %v
}
define private void @clear(i32 %v) alwaysinline {
  %s = alloca i32
  %clean = and i32 %v, -64
  store i32 %clean, ptr %s
  call void @llvm.x86.sse.ldmxcsr(ptr %s)
  ret void
}
""",
    "aarch64": """
declare i64 @llvm.aarch64.get.fpsr()
declare void @llvm.aarch64.set.fpsr(i64)
define private i32 @status() alwaysinline {
  %w = call i64 @llvm.aarch64.get.fpsr()
  %v = trunc i64 %w to i32
  ret i32 %v
}
define private void @clear(i32 %v) alwaysinline {
  %clean = and i32 %v, -160
  %w = zext i32 %clean to i64
  call void @llvm.aarch64.set.fpsr(i64 %w)
  ret void
}
""",
    "": """
define private i32 @status() alwaysinline { ret i32 0 }
define private void @clear(i32 %v) alwaysinline { ret void }
""",
}

WATCHED: Final = {"x86_64": 0x0D, "aarch64": 0x07, "": 0}
"""Bits of the status for an invalid operation, a division by zero and an overflow."""


def architecture(triple: str) -> str:
    """The key of the tables above."""
    first = triple.partition("-")[0]
    return "aarch64" if first == "arm64" else first if first in _STATUS else ""


_DECLARED: Final = """
@tenferro_ndarray = external global i8
@tenferro_float = external global i8
@tenferro_int = external global i8
@tenferro_complex = external global i8
declare ptr @tenferro_new_from_descr(ptr, ptr, i32, ptr, ptr, ptr, i32, ptr)
declare void @tenferro_incref(ptr)
declare void @tenferro_decref(ptr)
declare ptr @tenferro_vectorcall(ptr, ptr, i64, ptr)
declare ptr @tenferro_save_thread()
declare void @tenferro_restore_thread(ptr)
declare i64 @tenferro_long_as_long(ptr, ptr)
declare double @llvm.fabs.f64(double)

define private ptr @field(ptr %o, i64 %at) alwaysinline {
  %p = getelementptr i8, ptr %o, i64 %at
  %v = load ptr, ptr %p
  ret ptr %v
}
define private i64 @number(ptr %o, i64 %at) alwaysinline {
  %p = getelementptr i8, ptr %o, i64 %at
  %v = load i64, ptr %p
  ret i64 %v
}
define private i32 @small(ptr %o, i64 %at) alwaysinline {
  %p = getelementptr i8, ptr %o, i64 %at
  %v = load i32, ptr %p
  ret i32 %v
}
"""

# Offsets in the payload; `Payload` in _entry.py writes them in this order.
KERNEL, ARRAY_SCALAR, SCALAR_ARRAY, DESCR_IN, DESCR_OUT, KIND, SCALAR_TYPE, LOW, HIGH, WATCH, SIZE_IN, SIZE_OUT = range(
    0, 96, 8
)

# What Python scalars become: a double, a float, a complex of doubles, of floats, an integer between LOW and HIGH.
NONE, F64, F32, C128, C64, INT = range(6)

_OPERAND: Final = f"""
define private i32 @array(ptr %o, ptr %descr) alwaysinline {{
  %have = call ptr @field(ptr %o, i64 {DESCR})
  %flags = call i32 @small(ptr %o, i64 {FLAGS})
  %ndim = call i32 @small(ptr %o, i64 {NDIM})
  %bits = and i32 %flags, {C_CONTIGUOUS | ALIGNED}
  %plain = icmp eq i32 %bits, {C_CONTIGUOUS | ALIGNED}
  %same = icmp eq ptr %have, %descr
  %axes = icmp sgt i32 %ndim, 0
  %a = and i1 %plain, %same
  %b = and i1 %a, %axes
  %r = zext i1 %b to i32
  ret i32 %r
}}

; 1: an array, its elements are at *where; 2: a scalar, its value is at *where, maybe in the slot; 0: neither.
define private i32 @operand(ptr %o, ptr %p, ptr %slot, ptr %where) {{
  %type = call ptr @field(ptr %o, i64 {TYPE})
  %is_array = icmp eq ptr %type, @tenferro_ndarray
  br i1 %is_array, label %array, label %scalar
array:
  %descr = call ptr @field(ptr %p, i64 {DESCR_IN})
  %good = call i32 @array(ptr %o, ptr %descr)
  %data = call ptr @field(ptr %o, i64 {DATA})
  store ptr %data, ptr %where
  ret i32 %good
scalar:
  %value = getelementptr i8, ptr %o, i64 {NUMBER}
  store ptr %value, ptr %where
  %own = call ptr @field(ptr %p, i64 {SCALAR_TYPE})
  %is_own = icmp eq ptr %type, %own
  br i1 %is_own, label %in_place, label %python
in_place:
  ret i32 2
no:
  ret i32 0
python:
  %kind = call i64 @number(ptr %p, i64 {KIND})
  %is_float = icmp eq ptr %type, @tenferro_float
  br i1 %is_float, label %float, label %not_float
float:
  %v = load double, ptr %value
  br label %real
real:
  %d = phi double [ %v, %float ], [ %from_int, %exact ]
  store ptr %slot, ptr %where
  %imag = getelementptr i8, ptr %slot, i64 8
  %imag4 = getelementptr i8, ptr %slot, i64 4
  %narrow = fptrunc double %d to float
  switch i64 %kind, label %no [ i64 {F64}, label %f64
                                i64 {F32}, label %f32
                                i64 {C128}, label %c128
                                i64 {C64}, label %c64 ]
f64:
  store double %d, ptr %slot
  ret i32 2
c128:
  store double %d, ptr %slot
  store double 0.0, ptr %imag
  ret i32 2
f32:
  store float %narrow, ptr %slot
  br label %fits
c64:
  store float %narrow, ptr %slot
  store float 0.0, ptr %imag4
  br label %fits
fits:
  ; NumPy warns where a finite number leaves the range.
  %wide = fpext float %narrow to double
  %difference = fsub double %wide, %d
  %distance = call double @llvm.fabs.f64(double %difference)
  %lost = fcmp oeq double %distance, 0x7FF0000000000000
  %verdict = select i1 %lost, i32 0, i32 2
  ret i32 %verdict
not_float:
  %is_int = icmp eq ptr %type, @tenferro_int
  br i1 %is_int, label %int, label %not_int
int:
  %overflow = alloca i32
  %i = call i64 @tenferro_long_as_long(ptr %o, ptr %overflow)
  %over = load i32, ptr %overflow
  %is_over = icmp ne i32 %over, 0
  br i1 %is_over, label %no, label %int_fits
int_fits:
  %integral = icmp eq i64 %kind, {INT}
  br i1 %integral, label %bounded, label %to_float
bounded:
  %low = call i64 @number(ptr %p, i64 {LOW})
  %high = call i64 @number(ptr %p, i64 {HIGH})
  %above = icmp sge i64 %i, %low
  %below = icmp sle i64 %i, %high
  %within = and i1 %above, %below
  store i64 %i, ptr %slot
  store ptr %slot, ptr %where
  %answer = select i1 %within, i32 2, i32 0
  ret i32 %answer
to_float:
  %from_int = sitofp i64 %i to double
  %magnitude = call double @llvm.fabs.f64(double %from_int)
  %is_exact = fcmp olt double %magnitude, 0x4330000000000000
  br i1 %is_exact, label %exact, label %no
exact:
  br label %real
not_int:
  %is_complex = icmp eq ptr %type, @tenferro_complex
  %takes = icmp eq i64 %kind, {C128}
  %both = and i1 %is_complex, %takes
  br i1 %both, label %in_place, label %no
}}

define private i1 @same_dims(ptr %x, ptr %y) alwaysinline {{
  %m = call i32 @small(ptr %x, i64 {NDIM})
  %n = call i32 @small(ptr %y, i64 {NDIM})
  %ranks = icmp eq i32 %m, %n
  br i1 %ranks, label %start, label %out
start:
  %dx = call ptr @field(ptr %x, i64 {DIMS})
  %dy = call ptr @field(ptr %y, i64 {DIMS})
  %last = zext i32 %m to i64
  br label %loop
loop:
  %i = phi i64 [ 0, %start ], [ %j, %loop ]
  %px = getelementptr i64, ptr %dx, i64 %i
  %py = getelementptr i64, ptr %dy, i64 %i
  %ex = load i64, ptr %px
  %ey = load i64, ptr %py
  %equal = icmp eq i64 %ex, %ey
  %j = add i64 %i, 1
  %more = icmp slt i64 %j, %last
  %go = and i1 %equal, %more
  br i1 %go, label %loop, label %out
out:
  %r = phi i1 [ false, %0 ], [ %equal, %loop ]
  ret i1 %r
}}

define private i64 @elements(ptr %x) alwaysinline {{
  %m = call i32 @small(ptr %x, i64 {NDIM})
  %d = call ptr @field(ptr %x, i64 {DIMS})
  %last = zext i32 %m to i64
  br label %loop
loop:
  %i = phi i64 [ 0, %0 ], [ %j, %loop ]
  %n = phi i64 [ 1, %0 ], [ %k, %loop ]
  %p = getelementptr i64, ptr %d, i64 %i
  %e = load i64, ptr %p
  %k = mul i64 %n, %e
  %j = add i64 %i, 1
  %more = icmp slt i64 %j, %last
  br i1 %more, label %loop, label %out
out:
  ret i64 %k
}}
"""

_RUN: Final = f"""
; Run a kernel on operands that were checked, into a new array like `like`, or into `out`.
define private ptr @run(ptr %self, ptr %p, ptr %args, i64 %nargs, ptr %kernel, ptr %frame, i64 %nin, ptr %like, ptr %out) {{
  %descr = call ptr @field(ptr %p, i64 {DESCR_OUT})
  %n = call i64 @elements(ptr %like)
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
  %new = call ptr @tenferro_new_from_descr(ptr @tenferro_ndarray, ptr %descr, i32 %ndim, ptr %shape, ptr null, ptr null, i32 0, ptr null)
  %made = icmp ne ptr %new, null
  br i1 %made, label %ready, label %failed
failed:
  ret ptr null
ready:
  %result = phi ptr [ %out, %take ], [ %new, %make ]
  %data = call ptr @field(ptr %result, i64 {DATA})
  %last = getelementptr ptr, ptr %frame, i64 %nin
  store ptr %data, ptr %last
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
  call void %kernel(ptr %frame, i64 %n)
  br label %done
alone:
  %thread = call ptr @tenferro_save_thread()
  call void %kernel(ptr %frame, i64 %n)
  %seen_alone = call i32 @status()
  call void @tenferro_restore_thread(ptr %thread)
  br label %judge
done:
  br i1 %watching, label %read, label %finish
read:
  %seen = call i32 @status()
  br label %judge
judge:
  %status = phi i32 [ %seen, %read ], [ %seen_alone, %alone ]
  %raised = and i32 %status, %watch
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


def entry_text(triple: str, tuple_items: int) -> str:
    """The module with the entries ``call_1`` and ``call_2``."""
    return (
        _DECLARED
        + _STATUS[architecture(triple)]
        + _OPERAND
        + f"""
define private ptr @fall_back(ptr %self, ptr %args, i64 %nargs) noinline {{
  %fallback = call ptr @field(ptr %self, i64 {tuple_items + 8})
  %r = call ptr @tenferro_vectorcall(ptr %fallback, ptr %args, i64 %nargs, ptr null)
  ret ptr %r
}}
"""
        + _RUN
        + f"""
define ptr @call_1(ptr %self, ptr %args, i64 %nargs) nounwind {{
  %bytes = call ptr @field(ptr %self, i64 {tuple_items})
  %p = getelementptr i8, ptr %bytes, i64 {BYTES}
  %frame = alloca [2 x ptr]
  %slot = alloca [2 x i64], align 16
  switch i64 %nargs, label %refuse [ i64 1, label %look
                                     i64 2, label %into ]
into:
  %given = call ptr @field(ptr %args, i64 8)
  br label %look
look:
  %out = phi ptr [ null, %0 ], [ %given, %into ]
  %x = load ptr, ptr %args
  %kind = call i32 @operand(ptr %x, ptr %p, ptr %slot, ptr %frame)
  %good = icmp eq i32 %kind, 1
  br i1 %good, label %go, label %refuse
go:
  %kernel = call ptr @field(ptr %p, i64 {KERNEL})
  %r = call ptr @run(ptr %self, ptr %p, ptr %args, i64 %nargs, ptr %kernel, ptr %frame, i64 1, ptr %x, ptr %out)
  ret ptr %r
refuse:
  %f = call ptr @fall_back(ptr %self, ptr %args, i64 %nargs)
  ret ptr %f
}}

define ptr @call_2(ptr %self, ptr %args, i64 %nargs) nounwind {{
  %bytes = call ptr @field(ptr %self, i64 {tuple_items})
  %p = getelementptr i8, ptr %bytes, i64 {BYTES}
  %frame = alloca [3 x ptr]
  %slot = alloca [2 x i64], align 16
  switch i64 %nargs, label %refuse [ i64 2, label %look
                                     i64 3, label %into ]
into:
  %given = call ptr @field(ptr %args, i64 16)
  br label %look
look:
  %out = phi ptr [ null, %0 ], [ %given, %into ]
  %x = load ptr, ptr %args
  %y = call ptr @field(ptr %args, i64 8)
  %frame_y = getelementptr ptr, ptr %frame, i64 1
  %kx = call i32 @operand(ptr %x, ptr %p, ptr %slot, ptr %frame)
  %ky = call i32 @operand(ptr %y, ptr %p, ptr %slot, ptr %frame_y)
  %ky4 = shl i32 %ky, 2
  %both = or i32 %kx, %ky4
  switch i32 %both, label %refuse [ i32 5, label %arrays
                                    i32 9, label %array_scalar
                                    i32 6, label %scalar_array ]
arrays:
  %same = call i1 @same_dims(ptr %x, ptr %y)
  %k_arrays = call ptr @field(ptr %p, i64 {KERNEL})
  br i1 %same, label %go, label %refuse
array_scalar:
  %k_as = call ptr @field(ptr %p, i64 {ARRAY_SCALAR})
  br label %go
scalar_array:
  %k_sa = call ptr @field(ptr %p, i64 {SCALAR_ARRAY})
  br label %go
go:
  %kernel = phi ptr [ %k_arrays, %arrays ], [ %k_as, %array_scalar ], [ %k_sa, %scalar_array ]
  %like = phi ptr [ %x, %arrays ], [ %x, %array_scalar ], [ %y, %scalar_array ]
  %there = icmp ne ptr %kernel, null
  br i1 %there, label %run, label %refuse
run:
  %r = call ptr @run(ptr %self, ptr %p, ptr %args, i64 %nargs, ptr %kernel, ptr %frame, i64 2, ptr %like, ptr %out)
  ret ptr %r
refuse:
  %f = call ptr @fall_back(ptr %self, ptr %args, i64 %nargs)
  ret ptr %f
}}
"""
    )
