"""LLVM text of the entry of products: the C function that Python calls with two arrays.

Its `self` is a tuple: a ``bytes`` object with the numbers of `PAYLOAD`, the fallback, and what must live as long. Two
arrays of exactly the dtype and the shapes that the payload names, in an order of memory that the kernel takes, are
multiplied into a fresh array; everything else is handed to the fallback, untouched.
"""

import re
from collections.abc import Sequence
from typing import Final

from tenferro_cpu.native.python._layout import ALIGNED, BYTES, C_CONTIGUOUS, DATA, DESCR, DIMS, FLAGS, NDIM, TYPE

F_CONTIGUOUS: Final = 0x2
AXES: Final = 8
"""Most axes of an operand or of the result."""

PAYLOAD: Final = (
    "kernel",  # void(ptr left, ptr right, ptr out, i64 left flags, i64 right flags, ptr payload)
    "descr",
    "orders",  # flags of contiguity, of which an operand must have one
    "alone",  # whether the kernel runs without the interpreter lock
    "most",  # BLAS threads that the work pays for; 0: BLAS takes one thread by itself
    "left_axes",
    "right_axes",
    "out_axes",
    "rows",
    "inner",
    "columns",
    "count",
    "swap_left",
    "swap_right",
    "left_step",
    "right_step",
    "small",
    "square",  # whether an operand times its own transpose is left to the fallback, which needs half of the work
)
"""The 64-bit numbers of the payload in order; the extents of left, right and out follow, `AXES` places for each."""


def word(name: str) -> int:
    """Place of a number in the payload.

    >>> word("descr")
    1
    """
    return PAYLOAD.index(name)


SHAPES: Final = len(PAYLOAD)


def entered(tuple_items: int, flags: Sequence[str], then: str) -> str:
    """The blocks of an entry from ``first`` on: the operands, and from ``run`` on the product, or else the fallback.

    Args:
        tuple_items: bytes before the items of a tuple.
        flags: calls that give the flags of ``%x`` and ``%y`` with their axes, 0 where the kernel does not take them.
        then: the block for operands that it takes.
    """
    return f"""first:
  %x = load ptr, ptr %args
  %x_axes = call i64 @number(ptr %p, i64 {word("left_axes")})
  %fx = call i64 {flags[0]}
  %x_good = icmp ne i64 %fx, 0
  br i1 %x_good, label %second, label %slow
second:
  %y = call ptr @field(ptr %args, i64 8)
  %y_axes = call i64 @number(ptr %p, i64 {word("right_axes")})
  %fy = call i64 {flags[1]}
  %y_good = icmp ne i64 %fy, 0
  br i1 %y_good, label %{then}, label %slow
run:
  %r = call ptr @multiplied(ptr %x, ptr %y, i64 %fx, i64 %fy, ptr %p, ptr %self, ptr %args, i64 %nargs)
  ret ptr %r
slow:
  %fallback = call ptr @field(ptr %self, i64 {tuple_items + 8})
  %s = call ptr @tenferro_vectorcall(ptr %fallback, ptr %args, i64 %nargs, ptr null)
  ret ptr %s"""


def over_stack(body: str, operands: Sequence[str], steps: Sequence[str]) -> str:
    """The loop over the matrices of a stack, from ``test`` on, which ``entry`` leads to; `body` works on %l, %r and %o.

    Args:
        body: lines for one matrix.
        operands: where left, right and result begin.
        steps: bytes from one matrix of each to the next.
    """
    left, right, out = operands
    return f"""test:
  %i = phi i64 [0, %entry], [%i1, %body]
  %l = phi ptr [{left}, %entry], [%l1, %body]
  %r = phi ptr [{right}, %entry], [%r1, %body]
  %o = phi ptr [{out}, %entry], [%o1, %body]
  %more = icmp slt i64 %i, %count
  br i1 %more, label %body, label %done
body:
{body}
  %i1 = add i64 %i, 1
  %l1 = getelementptr i8, ptr %l, i64 {steps[0]}
  %r1 = getelementptr i8, ptr %r, i64 {steps[1]}
  %o1 = getelementptr i8, ptr %o, i64 {steps[2]}
  br label %test
done:
  ret void"""


def entry_text(tuple_items: int) -> str:
    """Text of ``PyObject *product(self, args, nargs)``.

    Args:
        tuple_items: bytes before the items of a tuple.
    """
    flags = [
        f"@operand(ptr %{x}, ptr %p, i64 %{x}_axes, i64 {shape})" for x, shape in (("x", SHAPES), ("y", SHAPES + AXES))
    ]
    return f"""
@tenferro_ndarray = external global i8
@tenferro_blas_state = external global [36 x i64]
declare void @tenferro_blas_enter(i64, i64)
declare void @tenferro_blas_leave()
declare ptr @tenferro_new_from_descr(ptr, ptr, i32, ptr, ptr, ptr, i32, ptr)
declare ptr @tenferro_return(ptr)
declare void @tenferro_incref(ptr)
declare ptr @tenferro_vectorcall(ptr, ptr, i64, ptr)
declare ptr @tenferro_save_thread()
declare void @tenferro_restore_thread(ptr)

define private i64 @number(ptr %p, i64 %at) alwaysinline {{
  %q = getelementptr i64, ptr %p, i64 %at
  %v = load i64, ptr %q
  ret i64 %v
}}
define private ptr @field(ptr %o, i64 %at) alwaysinline {{
  %q = getelementptr i8, ptr %o, i64 %at
  %v = load ptr, ptr %q
  ret ptr %v
}}

; The flags of an array of the dtype, the number of axes and the order that the payload names, else 0.
define private i64 @array(ptr %o, ptr %p, i64 %axes) {{
  %type = call ptr @field(ptr %o, i64 {TYPE})
  %is_array = icmp eq ptr %type, @tenferro_ndarray
  br i1 %is_array, label %array, label %no
array:
  %descr = call ptr @field(ptr %o, i64 {DESCR})
  %wanted_word = call i64 @number(ptr %p, i64 {word("descr")})
  %wanted = inttoptr i64 %wanted_word to ptr
  %same = icmp eq ptr %descr, %wanted
  %flags_at = getelementptr i8, ptr %o, i64 {FLAGS}
  %flags32 = load i32, ptr %flags_at
  %flags = zext i32 %flags32 to i64
  %orders = call i64 @number(ptr %p, i64 {word("orders")})
  %ordered_bits = and i64 %flags, %orders
  %ordered = icmp ne i64 %ordered_bits, 0
  %aligned_bit = and i64 %flags, {ALIGNED}
  %aligned = icmp ne i64 %aligned_bit, 0
  %ndim_at = getelementptr i8, ptr %o, i64 {NDIM}
  %ndim = load i32, ptr %ndim_at
  %axes32 = trunc i64 %axes to i32
  %rank = icmp eq i32 %ndim, %axes32
  %a = and i1 %same, %ordered
  %b = and i1 %aligned, %rank
  %c = and i1 %a, %b
  %result = select i1 %c, i64 %flags, i64 0
  ret i64 %result
no:
  ret i64 0
}}
; The flags of an operand that the kernel takes, else 0.
define private i64 @operand(ptr %o, ptr %p, i64 %axes, i64 %shape) {{
  %flags = call i64 @array(ptr %o, ptr %p, i64 %axes)
  %good = icmp ne i64 %flags, 0
  br i1 %good, label %sizes, label %no
sizes:
  %dims = call ptr @field(ptr %o, i64 {DIMS})
  %expected = getelementptr i64, ptr %p, i64 %shape
  br label %test
test:
  %i = phi i64 [0, %sizes], [%i1, %equal]
  %more = icmp slt i64 %i, %axes
  br i1 %more, label %compare, label %yes
compare:
  %n_at = getelementptr i64, ptr %dims, i64 %i
  %n = load i64, ptr %n_at
  %e_at = getelementptr i64, ptr %expected, i64 %i
  %e = load i64, ptr %e_at
  %fits = icmp eq i64 %n, %e
  br i1 %fits, label %equal, label %no
equal:
  %i1 = add i64 %i, 1
  br label %test
yes:
  ret i64 %flags
no:
  ret i64 0
}}

define ptr @product(ptr %self, ptr %args, i64 %nargs) nounwind {{
entry:
  %bytes = call ptr @field(ptr %self, i64 {tuple_items})
  %p = getelementptr i8, ptr %bytes, i64 {BYTES}
  %two = icmp eq i64 %nargs, 2
  br i1 %two, label %first, label %slow
{entered(tuple_items, flags, "run")}
}}

; The product of two operands that the kernel takes, or what the fallback makes of the arguments.
define private ptr @multiplied(ptr %x, ptr %y, i64 %fx, i64 %fy, ptr %p, ptr %self, ptr %args, i64 %nargs) {{
  %xd = call ptr @field(ptr %x, i64 {DATA})
  %yd = call ptr @field(ptr %y, i64 {DATA})
  %one = icmp eq ptr %xd, %yd
  %square_word = call i64 @number(ptr %p, i64 {word("square")})
  %square = icmp ne i64 %square_word, 0
  %leave_it = and i1 %one, %square
  br i1 %leave_it, label %slow, label %limits
limits:
  %most = call i64 @number(ptr %p, i64 {word("most")})
  %shared = icmp ne i64 %most, 0
  %scopes = call i64 @number(ptr @tenferro_blas_state, i64 1)
  %scoped = icmp ne i64 %scopes, 0
  %ask = and i1 %shared, %scoped
  br i1 %ask, label %slow, label %allocate
allocate:
  %descr_word = call i64 @number(ptr %p, i64 {word("descr")})
  %descr = inttoptr i64 %descr_word to ptr
  call void @tenferro_incref(ptr %descr)
  %o_axes = call i64 @number(ptr %p, i64 {word("out_axes")})
  %o_axes32 = trunc i64 %o_axes to i32
  %o_shape = getelementptr i64, ptr %p, i64 {SHAPES + 2 * AXES}
  %o = call ptr @tenferro_new_from_descr(ptr @tenferro_ndarray, ptr %descr, i32 %o_axes32, ptr %o_shape, ptr null, \
ptr null, i32 0, ptr null)
  %made = icmp ne ptr %o, null
  br i1 %made, label %run, label %failed
failed:
  ret ptr null
run:
  %kernel_word = call i64 @number(ptr %p, i64 {word("kernel")})
  %kernel = inttoptr i64 %kernel_word to ptr
  %od = call ptr @field(ptr %o, i64 {DATA})
  br i1 %shared, label %enter, label %lock
enter:
  call void @tenferro_blas_enter(i64 %most, i64 0)
  br label %lock
lock:
  %alone_word = call i64 @number(ptr %p, i64 {word("alone")})
  %alone = icmp ne i64 %alone_word, 0
  br i1 %alone, label %unlocked, label %locked
unlocked:
  %state = call ptr @tenferro_save_thread()
  call void %kernel(ptr %xd, ptr %yd, ptr %od, i64 %fx, i64 %fy, ptr %p)
  call void @tenferro_restore_thread(ptr %state)
  br label %after
locked:
  call void %kernel(ptr %xd, ptr %yd, ptr %od, i64 %fx, i64 %fy, ptr %p)
  br label %after
after:
  br i1 %shared, label %leave, label %done
leave:
  call void @tenferro_blas_leave()
  br label %done
done:
  %no_axes = icmp eq i64 %o_axes, 0
  br i1 %no_axes, label %number, label %array
array:
  ret ptr %o
number:
  ; What has no axes is a NumPy scalar; the function takes the array over.
  %s = call ptr @tenferro_return(ptr %o)
  ret ptr %s
slow:
  %fallback = call ptr @field(ptr %self, i64 {tuple_items + 8})
  %r = call ptr @tenferro_vectorcall(ptr %fallback, ptr %args, i64 %nargs, ptr null)
  ret ptr %r
}}

; A stack of small matrices: the straight-line kernel of the size.
define void @stack(ptr %x, ptr %y, ptr %o, i64 %fx, i64 %fy, ptr %p) nounwind {{
  %kernel_word = call i64 @number(ptr %p, i64 {word("small")})
  %kernel = inttoptr i64 %kernel_word to ptr
  %count = call i64 @number(ptr %p, i64 {word("count")})
  %ls = call i64 @number(ptr %p, i64 {word("left_step")})
  %rs = call i64 @number(ptr %p, i64 {word("right_step")})
  call void %kernel(ptr %x, ptr %y, ptr %o, i64 %count, i64 %ls, i64 %rs)
  ret void
}}
"""


_READ: Final = re.compile(r"^  (%\w+) = call (i64|ptr) @(number|field)\(ptr ([%@]\w+), i64 (\S+)\)$", re.MULTILINE)


def inlined(text: str) -> str:
    """The text with what the calls of its smallest functions do in their place: no optimiser runs that would see to it.

    >>> print(inlined("  %n = call i64 @number(ptr %p, i64 3)"))
      %n.at = getelementptr i64, ptr %p, i64 3
      %n = load i64, ptr %n.at
    """

    def read(found: re.Match[str]) -> str:
        name, kind, how, base, at = found.groups()
        step = "i64" if how == "number" else "i8"
        return f"  {name}.at = getelementptr {step}, ptr {base}, i64 {at}\n  {name} = load {kind}, ptr {name}.at"

    return _READ.sub(read, text)


def gemm_text(symbol: str, integer_bytes: int, real: str, parts: int) -> str:
    """Text of the kernel that calls Fortran's ``xGEMM``, once for each matrix of a stack.

    Fortran stores columns, so a result in rows is its transpose: out' = right' left', where a matrix in rows is the
    transpose already. An operand whose two axes are in Fortran's order is the transpose of the other kind.

    Args:
        symbol: name of the function.
        integer_bytes: bytes of its integers.
        real: LLVM's name of the reals.
        parts: 2 for complex numbers, else 1.
    """
    i = f"i{8 * integer_bytes}"
    narrow = "add i64 0, {}" if integer_bytes == 8 else "trunc i64 {} to i32"
    one = ", ".join([f"{real} 1.0", f"{real} 0.0"][:parts])
    zero = ", ".join([f"{real} 0.0"] * parts)
    item = parts * (4 if real == "float" else 8)

    def number(target: str, name: str) -> str:
        return f"  %{target} = call i64 @number(ptr %p, i64 {word(name)})\n"

    def passed(name: str, source: str) -> str:
        return f"  %{name}n = {narrow.format(source)}\n  %{name} = alloca {i}\n  store {i} %{name}n, ptr %{name}\n"

    def transposed(side: str, flags: str) -> str:
        # Both flags: a row or a column, which is the same in either order; rows then.
        return f"""
  %{side}_bits = and i64 {flags}, {C_CONTIGUOUS | F_CONTIGUOUS}
  %{side}_fortran = icmp eq i64 %{side}_bits, {F_CONTIGUOUS}
  %{side}_flip = zext i1 %{side}_fortran to i64
  %{side}_swapped = xor i64 %{side}_flip, %swap_{side}
  %{side}_is = icmp ne i64 %{side}_swapped, 0
"""

    product = (
        f"  call void @{symbol}(ptr %right_letter, ptr %left_letter, ptr %n, ptr %m, ptr %k, ptr @one_{real}_{parts}, "
        f"ptr %r, ptr %ldb, ptr %l, ptr %lda, ptr @zero_{real}_{parts}, ptr %o, ptr %n)"
    )
    return f"""
declare void @{symbol}(ptr, ptr, ptr, ptr, ptr, ptr, ptr, ptr, ptr, ptr, ptr, ptr, ptr)
@one_{real}_{parts} = private constant [{parts} x {real}] [{one}]
@zero_{real}_{parts} = private constant [{parts} x {real}] [{zero}]
@letters = private constant [2 x i8] c"NT"
define private i64 @number(ptr %p, i64 %at) alwaysinline {{
  %q = getelementptr i64, ptr %p, i64 %at
  %v = load i64, ptr %q
  ret i64 %v
}}
define void @gemm(ptr %x, ptr %y, ptr %out, i64 %fx, i64 %fy, ptr %p) nounwind {{
entry:
{number("rows", "rows")}{number("inner", "inner")}{number("columns", "columns")}{number("count", "count")}
{number("swap_left", "swap_left")}{number("swap_right", "swap_right")}
{number("ls", "left_step")}{number("rs", "right_step")}
{transposed("left", "%fx")}{transposed("right", "%fy")}
  %lda64 = select i1 %left_is, i64 %rows, i64 %inner
  %ldb64 = select i1 %right_is, i64 %inner, i64 %columns
  %left_letter = getelementptr i8, ptr @letters, i64 %left_swapped
  %right_letter = getelementptr i8, ptr @letters, i64 %right_swapped
{passed("m", "%rows")}{passed("n", "%columns")}{passed("k", "%inner")}{passed("lda", "%lda64")}{passed("ldb", "%ldb64")}
  %area = mul i64 %rows, %columns
  %step = mul i64 %area, {item}
  br label %test
{over_stack(product, ("%x", "%y", "%out"), ("%ls", "%rs", "%step"))}
}}
"""
