"""LLVM text of the entries: C functions that Python calls, which check arrays, allocate, and run a kernel.

An entry is ``PyObject *f(self, args, nargs)`` (METH_FASTCALL). Its `self` is a tuple: a ``bytes`` object with the
numbers of `Payload`, the fallback, three objects that must live as long, and what to call for arrays above the limit.
Operands that are not what the kernel takes go to the fallback, untouched.

While a kernel of arithmetic runs, the floating-point status is watched: where NumPy would warn (or raise, under
``numpy.errstate``), its kernel runs again in place of ours, so that the warning is NumPy's own.
"""

from tenferro_cpu.native.kernels._run_text import PIECE, RUN, SCANS
from tenferro_cpu.native.python._layout import BYTES
from tenferro_cpu.native.python._operand_text import (
    ARRAY_SCALAR,
    DECLARED,
    KERNEL,
    OPERAND,
    PAST,
    PAST_ARRAY_SCALAR,
    PAST_SCALAR_ARRAY,
    SCALAR_ARRAY,
    STATUS,
    architecture,
)  # fmt: skip


def entry_text(triple: str, tuple_items: int) -> str:
    """The module with the entries ``call_1`` and ``call_2``."""
    return (
        DECLARED
        + STATUS[architecture(triple)]
        + OPERAND
        + f"""
define private ptr @large(ptr %self, ptr %args, i64 %nargs) noinline {{
  %other = call ptr @field(ptr %self, i64 {tuple_items + 40})
  %r = call ptr @tenferro_vectorcall(ptr %other, ptr %args, i64 %nargs, ptr null)
  ret ptr %r
}}
define private ptr @fall_back(ptr %self, ptr %args, i64 %nargs) noinline {{
  %fallback = call ptr @field(ptr %self, i64 {tuple_items + 8})
  %r = call ptr @tenferro_vectorcall(ptr %fallback, ptr %args, i64 %nargs, ptr null)
  ret ptr %r
}}
"""
        + SCANS
        + PIECE
        + RUN
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
  %past = call ptr @field(ptr %p, i64 {PAST})
  %r = call ptr @run(ptr %self, ptr %p, ptr %args, i64 %nargs, ptr %kernel, ptr %past, ptr %frame, i64 1, i64 0,
                     ptr %x, ptr %out)
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
  %at = phi i64 [ {PAST}, %arrays ], [ {PAST_ARRAY_SCALAR}, %array_scalar ], [ {PAST_SCALAR_ARRAY}, %scalar_array ]
  %still = phi i64 [ 0, %arrays ], [ 2, %array_scalar ], [ 1, %scalar_array ]
  %there = icmp ne ptr %kernel, null
  br i1 %there, label %run, label %refuse
run:
  %past = call ptr @field(ptr %p, i64 %at)
  %r = call ptr @run(ptr %self, ptr %p, ptr %args, i64 %nargs, ptr %kernel, ptr %past, ptr %frame, i64 2, i64 %still,
                     ptr %like, ptr %out)
  ret ptr %r
refuse:
  %f = call ptr @fall_back(ptr %self, ptr %args, i64 %nargs)
  ret ptr %f
}}
"""
    )
