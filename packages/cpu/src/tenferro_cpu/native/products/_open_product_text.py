"""LLVM text of products for all sizes: the entry that measures its operands, and the kernel of small matrices.

The entry fills the payload of `_product_text` from the shapes of the arrays that it is given, so that one function
serves every size, and goes on as the entry for one size does. What it leaves to its fallback is the same, with what is
the contraction engine's, and the kernel of small matrices adds in the order of the straight-line ones: for every size
the results have the same bits.
"""

from typing import Final

from tenferro_cpu.native.products._product_text import AXES, PAYLOAD, SHAPES, entered, word
from tenferro_cpu.native.products._small_matmul import LARGEST, TYPES
from tenferro_cpu.native.python._layout import BYTES, C_CONTIGUOUS, DIMS

PATTERN: Final = (
    "stack",  # leading axes of both operands, that are not summed
    "contracted",  # axes that are
    "item",  # bytes of an element
    "large_orders",  # flags of contiguity, of which an operand of a large product must have one
    "each",  # the kernel of small matrices
    "gemm",  # the kernel of large ones; 0: there is none
    "engine",  # multiplications of one matrix up to which stacks and turned ones are not the contraction engine's
)
"""The words that follow the payload and the shapes."""

WORDS: Final = SHAPES + 3 * AXES + len(PATTERN)


def _read(target: str, name: str) -> str:
    at = word(name) if name in PAYLOAD else SHAPES + 3 * AXES + PATTERN.index(name)
    return f"  %{target}_word = getelementptr i64, ptr %p, i64 {at}\n  %{target} = load i64, ptr %{target}_word\n"


def _write(name: str, value: str) -> str:
    return f"  %{name}_at = getelementptr i64, ptr %p, i64 {word(name)}\n  store i64 {value}, ptr %{name}_at\n"


def open_text(tuple_items: int, one_thread: int, per_thread: int, alone: int) -> str:
    """Text of ``PyObject *open_product(self, args, nargs)``, which belongs to the module of `entry_text`.

    Args:
        tuple_items: bytes before the items of a tuple.
        one_thread: multiplications and additions of one matrix up to which BLAS takes one thread by itself.
        per_thread: those that pay for one more thread.
        alone: those of the whole stack above which a kernel runs without the interpreter lock.
    """
    return f"""
; The extents from..to of dims go to out; their product.
define private i64 @copied(ptr %dims, i64 %from, i64 %to, ptr %out) {{
entry:
  br label %test
test:
  %i = phi i64 [%from, %entry], [%i1, %body]
  %o = phi ptr [%out, %entry], [%o1, %body]
  %total = phi i64 [1, %entry], [%total1, %body]
  %more = icmp slt i64 %i, %to
  br i1 %more, label %body, label %done
body:
  %n = call i64 @number(ptr %dims, i64 %i)
  store i64 %n, ptr %o
  %o1 = getelementptr i64, ptr %o, i64 1
  %i1 = add i64 %i, 1
  %total1 = mul i64 %total, %n
  br label %test
done:
  ret i64 %total
}}
; The product of count extents that are the same from xs and from ys on, else 0.
define private i64 @common(ptr %xs, i64 %x0, ptr %ys, i64 %y0, i64 %count) {{
entry:
  br label %test
test:
  %i = phi i64 [0, %entry], [%i1, %same]
  %total = phi i64 [1, %entry], [%total1, %same]
  %more = icmp slt i64 %i, %count
  br i1 %more, label %body, label %done
body:
  %xi = add i64 %x0, %i
  %yi = add i64 %y0, %i
  %n = call i64 @number(ptr %xs, i64 %xi)
  %m = call i64 @number(ptr %ys, i64 %yi)
  %equal = icmp eq i64 %n, %m
  br i1 %equal, label %same, label %other
same:
  %i1 = add i64 %i, 1
  %total1 = mul i64 %total, %n
  br label %test
done:
  ret i64 %total
other:
  ret i64 0
}}
; Fills the payload from the shapes; whether the fast way takes them.
define private i1 @measured(ptr %p, ptr %xs, ptr %ys) {{
{_read("stack", "stack")}{_read("summed", "contracted")}{_read("xn", "left_axes")}{_read("yn", "right_axes")}\
{_read("swap_left", "swap_left")}{_read("swap_right", "swap_right")}{_read("item", "item")}\
{_read("large_orders", "large_orders")}{_read("each", "each")}{_read("gemm", "gemm")}{_read("engine", "engine")}\
  %left_first = icmp ne i64 %swap_left, 0
  %right_last = icmp ne i64 %swap_right, 0
  %after = add i64 %stack, %summed
  %x_late = sub i64 %xn, %summed
  %y_late = sub i64 %yn, %summed
  %x_sum = select i1 %left_first, i64 %stack, i64 %x_late
  %x_free = select i1 %left_first, i64 %after, i64 %stack
  %x_end = select i1 %left_first, i64 %xn, i64 %x_late
  %y_sum = select i1 %right_last, i64 %y_late, i64 %stack
  %y_free = select i1 %right_last, i64 %stack, i64 %after
  %y_end = select i1 %right_last, i64 %y_late, i64 %yn
  %shape = getelementptr i64, ptr %p, i64 {SHAPES + 2 * AXES}
  %lead = call i64 @copied(ptr %xs, i64 0, i64 %stack, ptr %shape)
  %count = call i64 @common(ptr %xs, i64 0, ptr %ys, i64 0, i64 %stack)
  %inner = call i64 @common(ptr %xs, i64 %x_sum, ptr %ys, i64 %y_sum, i64 %summed)
  %shape_rows = getelementptr i64, ptr %shape, i64 %stack
  %rows = call i64 @copied(ptr %xs, i64 %x_free, i64 %x_end, ptr %shape_rows)
  %row_axes = sub i64 %x_end, %x_free
  %shape_columns = getelementptr i64, ptr %shape_rows, i64 %row_axes
  %columns = call i64 @copied(ptr %ys, i64 %y_free, i64 %y_end, ptr %shape_columns)
  %area = mul i64 %rows, %columns
  %work = mul i64 %area, %inner
  %all = mul i64 %work, %count
  %some = icmp sgt i64 %all, 0
  %heavy = icmp sgt i64 %work, {one_thread}
  %pays_for = sdiv i64 %work, {per_thread}
  %several = icmp sgt i64 %pays_for, 1
  %threads = select i1 %several, i64 %pays_for, i64 1
  %most = select i1 %heavy, i64 %threads, i64 0
  %unlocked = icmp sgt i64 %all, {alone}
  %alone = zext i1 %unlocked to i64
  %few_rows = icmp sle i64 %rows, {LARGEST}
  %few_columns = icmp sle i64 %columns, {LARGEST}
  %few_terms = icmp sle i64 %inner, {LARGEST}
  %few = and i1 %few_rows, %few_columns
  %small = and i1 %few, %few_terms
  %kernel = select i1 %small, i64 %each, i64 %gemm
  %orders = select i1 %small, i64 {C_CONTIGUOUS}, i64 %large_orders
  %one = icmp eq i64 %count, 1
  %one_word = zext i1 %one to i64
  %square = select i1 %small, i64 0, i64 %one_word
  %row = icmp eq i64 %rows, 1
  %column = icmp eq i64 %columns, 1
  %thin = or i1 %row, %column
  %vector = select i1 %small, i1 false, i1 %thin
  %full = xor i1 %vector, true
  %have = icmp ne i64 %kernel, 0
  %possible = and i1 %full, %have
  %stacked = icmp sgt i64 %count, 1
  %suited = or i1 %stacked, %right_last
  %short = icmp sle i64 %work, %engine
  %suited_not = xor i1 %suited, true
  %ours = or i1 %suited_not, %short
  %taken = and i1 %possible, %ours
  %good = and i1 %some, %taken
  %left_size = mul i64 %rows, %inner
  %left_step = mul i64 %left_size, %item
  %right_size = mul i64 %inner, %columns
  %right_step = mul i64 %right_size, %item
{_write("rows", "%rows")}{_write("inner", "%inner")}{_write("columns", "%columns")}{_write("count", "%count")}\
{_write("kernel", "%kernel")}{_write("orders", "%orders")}{_write("alone", "%alone")}{_write("square", "%square")}\
{_write("most", "%most")}{_write("left_step", "%left_step")}{_write("right_step", "%right_step")}\
  ret i1 %good
}}
declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)

define ptr @open_product(ptr %self, ptr %args, i64 %nargs) nounwind {{
entry:
  %p = alloca [{WORDS} x i64]
  %bytes = call ptr @field(ptr %self, i64 {tuple_items})
  %static = getelementptr i8, ptr %bytes, i64 {BYTES}
  call void @llvm.memcpy.p0.p0.i64(ptr %p, ptr %static, i64 {8 * WORDS}, i1 false)
  %two = icmp sge i64 %nargs, 2
  br i1 %two, label %first, label %slow
{entered(tuple_items, [f"@array(ptr %{x}, ptr %p, i64 %{x}_axes)" for x in "xy"], "sizes")}
sizes:
  %xs = call ptr @field(ptr %x, i64 {DIMS})
  %ys = call ptr @field(ptr %y, i64 {DIMS})
  %fits = call i1 @measured(ptr %p, ptr %xs, ptr %ys)
  br i1 %fits, label %order, label %slow
order:
  %orders = call i64 @number(ptr %p, i64 {word("orders")})
  %x_order = and i64 %fx, %orders
  %y_order = and i64 %fy, %orders
  %x_ordered = icmp ne i64 %x_order, 0
  %y_ordered = icmp ne i64 %y_order, 0
  %ordered = and i1 %x_ordered, %y_ordered
  br i1 %ordered, label %run, label %slow
}}
"""


def each_text(kind: str) -> str:
    """Text of ``void each(ptr left, ptr right, ptr out, i64, i64, ptr payload)`` for a dtype: small matrices, any size.

    Every element is a first product and then fused additions, in the order of the terms; of complex numbers the
    products with the real and with the imaginary part collect apart, as in `_small_matmul`. Some columns go side by
    side, so that no sum waits for another.
    """
    t = TYPES[kind]
    parts = 2 if kind in "FD" else 1
    lanes = 4 // parts
    size = parts * (4 if t == "float" else 8)
    reads = "".join(_read(name, name) for name in ("rows", "inner", "columns", "count", "swap_left", "swap_right"))
    return f"""
declare {t} @{_fma(t)}({t}, {t}, {t})
define void @each(ptr %x, ptr %y, ptr %out, i64 %fx, i64 %fy, ptr %p) nounwind {{
entry:
{reads}{_read("ls", "left_step")}{_read("rs", "right_step")}
  %left_swapped = icmp ne i64 %swap_left, 0
  %right_swapped = icmp ne i64 %swap_right, 0
  %x_row = select i1 %left_swapped, i64 1, i64 %inner
  %x_term = select i1 %left_swapped, i64 %rows, i64 1
  %y_term = select i1 %right_swapped, i64 1, i64 %columns
  %y_column = select i1 %right_swapped, i64 %inner, i64 1
  %area = mul i64 %rows, %columns
  %step = mul i64 %area, {size}
  br label %matrix
matrix:
  %c = phi i64 [0, %entry], [%c1, %next_matrix]
  %l = phi ptr [%x, %entry], [%l1, %next_matrix]
  %r = phi ptr [%y, %entry], [%r1, %next_matrix]
  %o = phi ptr [%out, %entry], [%o1, %next_matrix]
  br label %row
row:
  %i = phi i64 [0, %matrix], [%i1, %next_row]
  %x_at = mul i64 %i, %x_row
  %e_row = mul i64 %i, %columns
  br label %column
column:
  %j = phi i64 [0, %row], [%many_j, %many_store], [%one_j, %one_store]
  %e = add i64 %e_row, %j
  %left_over = sub i64 %columns, %j
  %many = icmp sge i64 %left_over, {lanes}
  br i1 %many, label %many_first, label %rest
rest:
  %some = icmp sgt i64 %left_over, 0
  br i1 %some, label %one_first, label %next_row
{_columns("many", t, parts, lanes)}
{_columns("one", t, parts, 1)}
next_row:
  %i1 = add i64 %i, 1
  %more_rows = icmp slt i64 %i1, %rows
  br i1 %more_rows, label %row, label %next_matrix
next_matrix:
  %c1 = add i64 %c, 1
  %l1 = getelementptr i8, ptr %l, i64 %ls
  %r1 = getelementptr i8, ptr %r, i64 %rs
  %o1 = getelementptr i8, ptr %o, i64 %step
  %more_matrices = icmp slt i64 %c1, %count
  br i1 %more_matrices, label %matrix, label %done
done:
  ret void
}}
"""


def _fma(t: str) -> str:
    return f"llvm.fma.f{32 if t == 'float' else 64}"


def _columns(name: str, t: str, parts: int, lanes: int) -> str:
    """The elements of a row in some columns from ``%j`` on; goes back to ``column``."""
    sums = [f"%{name}_s{n}" for n in range(lanes * parts * parts)]
    carried = "\n".join(
        f"  {s} = phi {t} [%{name}_a{n}, %{name}_first], [%{name}_b{n}, %{name}_add]" for n, s in enumerate(sums)
    )
    starts = "\n".join(
        f"  %{name}_j{lane} = add i64 %j, {lane}\n  %{name}_y{lane} = mul i64 %{name}_j{lane}, %y_column"
        for lane in range(lanes)
    )
    stores = "\n".join(_stored(name, lane, sums[lane * parts * parts :], t, parts) for lane in range(lanes))
    return f"""{name}_first:
{starts}
{_term(f"{name}_a", name, "0", [], t, parts, lanes)}
  br label %{name}_terms
{name}_terms:
  %{name}_k = phi i64 [1, %{name}_first], [%{name}_k1, %{name}_add]
{carried}
  %{name}_more = icmp slt i64 %{name}_k, %inner
  br i1 %{name}_more, label %{name}_add, label %{name}_store
{name}_add:
{_term(f"{name}_b", name, f"%{name}_k", sums, t, parts, lanes)}
  %{name}_k1 = add i64 %{name}_k, 1
  br label %{name}_terms
{name}_store:
{stores}
  %{name}_j = add i64 %j, {lanes}
  br label %column"""


def _term(result: str, name: str, k: str, sums: list[str], t: str, parts: int, lanes: int) -> str:
    """The sums of all columns with the products of the term at `k` added: left part by right part."""

    def loaded(value: str, base: str, start: str, stride: str) -> list[str]:
        lines = [f"  %{value}_k = mul i64 {k}, {stride}", f"  %{value}_i = add i64 %{value}_k, {start}"]
        lines.append(f"  %{value}_e = getelementptr [{parts} x {t}], ptr {base}, i64 %{value}_i")
        for part in range(parts):
            lines.append(f"  %{value}_p{part} = getelementptr {t}, ptr %{value}_e, i64 {part}")
            lines.append(f"  %{value}_v{part} = load {t}, ptr %{value}_p{part}")
        return lines

    lines = loaded(f"{result}_x", "%l", "%x_at", "%x_term")
    for lane in range(lanes):
        lines += loaded(f"{result}_y{lane}", "%r", f"%{name}_y{lane}", "%y_term")
        for i in range(parts):
            for j in range(parts):
                n = (lane * parts + i) * parts + j
                a, b = f"%{result}_x_v{i}", f"%{result}_y{lane}_v{j}"
                lines.append(
                    f"  %{result}{n} = call {t} @{_fma(t)}({t} {a}, {t} {b}, {t} {sums[n]})"
                    if sums
                    else f"  %{result}{n} = fmul {t} {a}, {b}"
                )
    return "\n".join(lines)


def _stored(name: str, lane: int, sums: list[str], t: str, parts: int) -> str:
    at = f"%{name}_o{lane}"
    lines = [
        f"  %{name}_e{lane} = add i64 %e, {lane}",
        f"  {at} = getelementptr [{parts} x {t}], ptr %o, i64 %{name}_e{lane}",
    ]
    if parts == 1:
        return "\n".join([*lines, f"  store {t} {sums[0]}, ptr {at}"])
    for part, (cross, sign, straight) in enumerate([(sums[3], "-1.0", sums[0]), (sums[2], "1.0", sums[1])]):
        lines += [
            f"  {at}_{part} = call {t} @{_fma(t)}({t} {cross}, {t} {sign}, {t} {straight})",
            f"  {at}_p{part} = getelementptr {t}, ptr {at}, i64 {part}",
            f"  store {t} {at}_{part}, ptr {at}_p{part}",
        ]
    return "\n".join(lines)
