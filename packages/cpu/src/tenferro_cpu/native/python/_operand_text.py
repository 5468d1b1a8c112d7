"""LLVM text of the checks of operands, and of the floating-point status."""

from typing import Final

from tenferro_cpu.native.python._layout import ALIGNED, C_CONTIGUOUS, DATA, DESCR, DIMS, FLAGS, NDIM, NUMBER, TYPE

STATUS: Final = {
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
    return "aarch64" if first == "arm64" else first if first in STATUS else ""


DECLARED: Final = """
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

# Offsets in the payload; `elementwise` writes them in this order.
(
    KERNEL,
    ARRAY_SCALAR,
    SCALAR_ARRAY,
    DESCR_IN,
    DESCR_OUT,
    KIND,
    SCALAR_TYPE,
    LOW,
    HIGH,
    WATCH,
    SIZE_IN,
    SIZE_OUT,
    SCAN,
    LIMIT,
    SHARED,
    PAST,
    PAST_ARRAY_SCALAR,
    PAST_SCALAR_ARRAY,
) = range(0, 144, 8)

# What Python scalars become: a double, a float, a complex of doubles, of floats, an integer between LOW and HIGH.
NONE, F64, F32, C128, C64, INT = range(6)

OPERAND: Final = f"""
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
