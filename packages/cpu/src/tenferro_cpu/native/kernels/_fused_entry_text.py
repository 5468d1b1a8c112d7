"""The text of the entry of fused kernels: checks the operands, makes the results, walks the rows."""

from typing import Final

from tenferro_cpu.native.kernels._body import Body, Fields, Loop, item, quotient
from tenferro_cpu.native.kernels._combined_text import CHUNK, MOST, combined_text
from tenferro_cpu.native.kernels._driver import ELEMENTS, SHARES
from tenferro_cpu.native.kernels._results_text import give_results
from tenferro_cpu.native.kernels._run_text import ALONE, SCANS
from tenferro_cpu.native.python._layout import (
    ALIGNED,
    BYTES,
    C_CONTIGUOUS,
    DATA,
    DESCR,
    DIMS,
    FLAGS,
    NDIM,
    NUMBER,
    WRITEABLE,
)  # fmt: skip

HEAD: Final = Fields(
    "kernel inputs outputs most trailing least longest short few shared whole leading context scan rest widest"
)
"""Numbers before those of the operands. `context` is handed to the kernel in the place of strides, which rows
of operands that lie simply have not. Rows have `least` to `longest` elements; those of up to `short` elements are
taken where there are at most `few` elements in all. Rows that are combined have at most `widest` elements, and `rest`
is the machine code that combines partial results. Where `scan` is the size of a floating-point number, a reduced
result that is not finite is left to the fallback."""
OPERAND: Final = Fields("descr itemsize kind scalar")
"""Numbers of each operand and result."""

WORK: Final = Fields("kernel context frame hops operands width length total rows steps")
"""What the team is told: pieces are rows, or elements of the only row; `hops` leads from one of them to the next,
`steps` from row to row."""

OBJECTS: Final = """
@tenferro_ndarray = external global i8
declare ptr @tenferro_new_from_descr(ptr, ptr, i32, ptr, ptr, ptr, i32, ptr)
declare void @tenferro_incref(ptr)
declare void @tenferro_decref(ptr)
declare ptr @tenferro_tuple(i64)
declare ptr @tenferro_vectorcall(ptr, ptr, i64, ptr)
declare ptr @tenferro_save_thread()
declare void @tenferro_restore_thread(ptr)
"""
"""Declarations of what makes and holds objects, and of the lock."""

TEAM: Final = """declare void @tenferro_parallel_for(ptr, ptr, i64, i64)
declare i64 @tenferro_allowed()
"""


def fused_entry_text(tuple_items: int) -> str:
    """LLVM text of ``fused(self, args, nargs)``.

    `self` is a tuple: the numbers as bytes, the fallback, objects that must live as long, and the function for spaces
    of more than `most` elements.

    After the operands one array for each result may be given, or something else for none: it is written to where it
    fits. An operand may be written over, because all operands of an element are read before its results are written.
    """
    return OBJECTS + TEAM + SCANS + _walk() + _piece() + combined_text() + _entry(tuple_items)


def _walk() -> str:
    """Call the kernel row by row; the pointers of the frame move on."""
    b = Body(
        "private void @walk(ptr %kernel, ptr %context, ptr %frame, ptr %steps, i64 %operands, i64 %width, i64 %many)"
    )
    d, k = b.variable("i64"), b.variable("i64")
    with Loop(b, d, "%many", "row"):
        b.do("call void %kernel(ptr %frame, i64 %width, ptr %context, i64 1, ptr null)")
        with Loop(b, k, "%operands", "move") as at:
            slot = item(b, "%frame", at)
            moved = b.get(f"getelementptr i8, ptr {b.load(slot)}, i64 {b.load(item(b, '%steps', at), kind='i64')}")
            b.store(moved, slot)
    b.do("ret void")
    return b.text()


def _piece() -> str:
    """A piece for the team, with a frame of its own."""
    b = Body("private void @piece(ptr %work, i64 %piece)")
    own, k = b.variable(f"[{MOST} x i64]"), b.variable("i64")
    frame, hops, steps = (b.load("%work", at) for at in (WORK.frame, WORK.hops, WORK.steps))
    operands, width, length, total, rows = (
        b.load("%work", at, "i64") for at in (WORK.operands, WORK.width, WORK.length, WORK.total, WORK.rows)
    )
    start = b.get(f"mul i64 %piece, {length}")
    left = b.get(f"sub i64 {total}, {start}")
    n = b.get(f"select i1 {b.get(f'icmp slt i64 {left}, {length}')}, i64 {left}, i64 {length}")
    with Loop(b, k, operands, "place") as at:
        hop = b.get(f"mul i64 {start}, {b.load(item(b, hops, at), kind='i64')}")
        b.store(b.get(f"getelementptr i8, ptr {b.load(item(b, frame, at))}, i64 {hop}"), item(b, own, at))
    by_rows = b.get(f"icmp ne i64 {rows}, 0")
    row = b.get(f"select i1 {by_rows}, i64 {width}, i64 {n}")
    many = b.get(f"select i1 {by_rows}, i64 {n}, i64 1")
    kernel, context = b.load("%work", WORK.kernel), b.load("%work", WORK.context)
    b.do(f"call void @walk(ptr {kernel}, ptr {context}, ptr {own}, ptr {steps}, i64 {operands}, i64 {row}, i64 {many})")
    b.do("ret void")
    return b.text()


def _entry(tuple_items: int) -> str:
    b = Body("ptr @fused(ptr %self, ptr %args, i64 %nargs)")
    k, d, m, n = (b.variable("i64") for _ in range(4))
    frame, steps, units, made = (b.variable(f"[{MOST} x i64]") for _ in range(4))
    work, threads = b.variable(f"[{len(WORK.names)} x i64]"), b.variable("i64")
    partials, there, cells = b.variable(f"[{MOST} x i64]"), b.variable("i64"), b.variable("i64")
    numbers = b.at(b.load("%self", tuple_items), BYTES)
    operands = b.at(numbers, 8 * len(HEAD.names))
    nin, nout, trailing = (b.load(numbers, at, "i64") for at in (HEAD.inputs, HEAD.outputs, HEAD.trailing))
    least = b.load(numbers, HEAD.least, "i64")
    spare = b.get(f"icmp eq i64 %nargs, {b.get(f'add i64 {nin}, {nout}')}")
    b.guard(b.get(f"or i1 {spare}, {b.get(f'icmp eq i64 %nargs, {nin}')}"), "refuse")
    whole = b.load(item(b, "%args", b.load(numbers, HEAD.whole, "i64")))
    b.require([(b.type_of(whole), "@tenferro_ndarray")], "refuse")
    ndim = b.load(whole, NDIM, "i32")
    rank = b.get(f"zext i32 {ndim} to i64")
    dims = b.load(whole, DIMS)
    length = b.get(f"select i1 {b.get(f'icmp eq i64 {trailing}, 0')}, i64 {rank}, i64 {trailing}")
    b.guard(b.get(f"icmp uge i64 {rank}, {length}"), "refuse")
    lead = b.get(f"sub i64 {rank}, {length}")
    b.store("1", m, kind="i64")
    b.store("1", n, kind="i64")
    with Loop(b, d, rank, "extent") as at:
        extent = b.load(item(b, dims, at), kind="i64")
        into = b.get(f"select i1 {b.get(f'icmp ult i64 {at}, {lead}')}, ptr {m}, ptr {n}")
        b.store(b.get(f"mul i64 {b.load(into, kind='i64')}, {extent}"), into, kind="i64")
    width, many = b.load(n, kind="i64"), b.load(m, kind="i64")
    total = b.get(f"mul i64 {width}, {many}")
    b.guard(b.get(f"icmp ule i64 {total}, {b.load(numbers, HEAD.most, 'i64')}"), "large")
    b.guard(b.get(f"icmp uge i64 {width}, {least}"), "refuse")
    leading = b.load(numbers, HEAD.leading, "i64")
    combines = b.get(f"icmp ne i64 {leading}, 0")
    b.guard(b.get(f"icmp ule i64 {leading}, {many}"), "refuse")
    # Many rows of less than half a vector are read along their columns, by the fallback.
    tall = b.get(f"and i1 {b.get(f'icmp ult i64 {width}, 4')}, {b.get(f'icmp ugt i64 {total}, {ALONE}')}")
    b.guard(b.get(f"icmp eq i1 {b.get(f'and i1 {combines}, {tall}')}, false"), "refuse")
    goes = b.get(f"select i1 {combines}, i64 {many}, i64 {width}")
    b.guard(b.get(f"icmp ule i64 {goes}, {b.load(numbers, HEAD.longest, 'i64')}"), "refuse")
    b.guard(b.get(f"icmp ule i64 {width}, {b.load(numbers, HEAD.widest, 'i64')}"), "refuse")
    short = b.get(f"icmp ule i64 {width}, {b.load(numbers, HEAD.short, 'i64')}")
    many_elements = b.get(f"icmp ugt i64 {total}, {b.load(numbers, HEAD.few, 'i64')}")
    b.branch(b.get(f"and i1 {short}, {many_elements}"), "refuse", "sized")
    b.label("sized")
    with Loop(b, k, nin, "operand") as at:
        _operand(b, operands, at, dims, (rank, lead, length, width), d, (frame, steps, units))
    reduces = b.get(f"icmp ne i64 {least}, 0")
    # What is left: of rows that are reduced the axes that count them, of rows that are combined those of one row.
    left = b.get(f"select i1 {combines}, i64 {length}, i64 {b.get(f'select i1 {reduces}, i64 {lead}, i64 {rank}')}")
    axes = b.get(f"trunc i64 {left} to i32")
    outer = item(b, dims, b.get(f"select i1 {combines}, i64 {lead}, i64 0"))
    with Loop(b, k, nout, "result") as at:
        slot = b.get(f"add i64 {at}, {nin}")
        p = _numbers_of(b, operands, slot)
        descr = b.load(p, OPERAND.descr)
        b.guard(spare, "make")
        _given(b, b.load(item(b, "%args", slot)), descr, axes, outer, left, d)
        b.store(b.load(item(b, "%args", slot)), item(b, made, at))
        b.jump("placed")
        b.label("make")
        b.hold(descr)
        out = b.call("tenferro_new_from_descr", "@tenferro_ndarray", descr, f"i32 {axes}", outer, "null", "null",
                     "i32 0", "null")  # fmt: skip
        b.present(out, "failed")
        b.store(out, item(b, made, at))
        b.jump("placed")
        b.label("placed")
        b.store(b.load(b.load(item(b, made, at)), DATA), item(b, frame, slot))
        size = b.load(p, OPERAND.itemsize, "i64")
        b.store(b.get(f"select i1 {reduces}, i64 {size}, i64 {b.get(f'mul i64 {size}, {width}')}"),
                item(b, steps, slot), kind="i64")  # fmt: skip
        b.store(size, item(b, units, slot), kind="i64")
    kernel, context = b.load(numbers, HEAD.kernel), b.load(numbers, HEAD.context)
    every = b.get(f"add i64 {nin}, {nout}")
    some = b.get(f"select i1 {b.get(f'icmp eq i64 {width}, 0')}, i64 0, i64 {many}")
    walk = (
        f"call void @walk(ptr {kernel}, ptr {context}, ptr {frame}, ptr {steps}, i64 {every}, i64 {width}, i64 {some})"
    )
    b.branch(combines, "combine", "several_rows")
    b.label("combine")
    few = b.get(f"and i1 {b.get(f'icmp ule i64 {total}, {ALONE}')}, {b.get(f'icmp ule i64 {many}, {CHUNK}')}")
    b.branch(few, "combine_here", "combine_more")
    b.label("combine_here")
    b.do(f"call void {kernel}(ptr {frame}, i64 {width}, ptr null, i64 {many}, ptr {steps})")
    b.jump("give")
    b.label("combine_more")
    _combined(b, numbers, (operands, nin, nout), (width, many, total), (kernel, frame, steps, units),
              (partials, there, cells, threads, k, d))  # fmt: skip
    b.label("several_rows")
    b.branch(b.get(f"icmp ugt i64 {total}, {ALONE}"), "release", "short")
    b.label("short")
    b.do(walk)
    b.jump("give")
    b.label("release")
    b.store("1", threads, kind="i64")
    b.branch(b.get(f"icmp uge i64 {total}, {b.load(numbers, HEAD.shared, 'i64')}"), "ask", "alone")
    b.label("ask")
    b.store(b.call("tenferro_allowed", result="i64"), threads, kind="i64")
    b.jump("alone")
    b.label("alone")
    thread, team = b.call("tenferro_save_thread"), b.load(threads, kind="i64")
    b.branch(b.get(f"icmp sgt i64 {team}, 1"), "cut", "single")
    b.label("single")
    b.do(walk)
    b.jump("regain")
    b.label("cut")
    _share(b, work, team, (kernel, context, frame, every, width, many), (steps, units), reduces)
    b.jump("regain")
    b.label("regain")
    b.call("tenferro_restore_thread", thread, result="void")
    b.jump("give")
    b.label("give")
    scan = b.load(numbers, HEAD.scan, "i64")
    b.branch(b.get(f"icmp eq i64 {scan}, 0"), "finite", "scanning")
    b.label("scanning")
    # One result: as many elements as there are rows, or as a row has.
    result = b.load(made)
    count = b.get(f"select i1 {combines}, i64 {width}, i64 {many}")
    size = b.load(_numbers_of(b, operands, nin), OPERAND.itemsize, "i64")
    odd = b.call("scan", b.load(result, DATA), f"i64 {b.get(f'mul i64 {count}, {size}')}", f"i64 {scan}", result="i32")
    b.branch(b.get(f"icmp eq i32 {odd}, 0"), "finite", "discard")
    b.label("discard")
    b.drop(result)
    b.jump("refuse")
    give_results(b, nout, made, (k, d), tuple_items)
    others = []
    for label, place in (("refuse", 8), ("large", 24)):
        b.label(label)
        others.append(f"[ {b.load('%self', tuple_items + place)}, %{label} ]")
        b.jump("leave")
    b.label("leave")
    b.give(b.call("tenferro_vectorcall", b.get(f"phi ptr {', '.join(others)}"), "%args", "i64 %nargs", "null"))
    return b.text()


def _combined(
    b: Body,
    numbers: str,
    operands: tuple[str, str, str],
    sizes: tuple[str, str, str],
    what: tuple[str, str, str, str],
    variables: tuple[str, str, str, str, str, str],
) -> None:
    """Combine many rows, or wide ones: without the lock, with arrays for what chunks of rows leave."""
    fields, nin, nout = operands
    width, many, total = sizes
    kernel, frame, steps, units = what
    partials, there, cells, threads, k, d = variables
    b.guard(b.get(f"icmp ne i64 {width}, 0"), "give")
    chunks = quotient(b, many, str(CHUNK))
    b.store(b.get(f"mul i64 {chunks}, {width}"), cells, kind="i64")
    wanted = b.get(f"select i1 {b.get(f'icmp eq i64 {chunks}, 1')}, i64 0, i64 {nout}")
    with Loop(b, there, wanted, "spare") as at:
        descr = b.load(_numbers_of(b, fields, b.get(f"add i64 {at}, {nin}")), OPERAND.descr)
        b.hold(descr)
        array = b.call("tenferro_new_from_descr", "@tenferro_ndarray", descr, "i32 1", cells, "null", "null",
                       "i32 0", "null")  # fmt: skip
        b.present(array, "no_spare")
        b.store(array, item(b, partials, at))
    b.store("1", threads, kind="i64")
    b.branch(b.get(f"icmp uge i64 {total}, {b.load(numbers, HEAD.shared, 'i64')}"), "combine_ask", "combine_team")
    b.label("combine_ask")
    b.store(b.call("tenferro_allowed", result="i64"), threads, kind="i64")
    b.jump("combine_team")
    b.label("combine_team")
    thread, team = b.call("tenferro_save_thread"), b.load(threads, kind="i64")
    b.call("combine", kernel, b.load(numbers, HEAD.rest), frame, steps, units, partials,
           *[f"i64 {n}" for n in (nin, nout, width, many, team)], result="void")  # fmt: skip
    b.call("tenferro_restore_thread", thread, result="void")
    with Loop(b, d, wanted, "combined") as at:
        b.drop(b.load(item(b, partials, at)))
    b.jump("give")
    b.label("no_spare")
    with Loop(b, d, b.load(there, kind="i64"), "unspare") as at:
        b.drop(b.load(item(b, partials, at)))
    b.store(nout, k, kind="i64")
    b.jump("failed")


def _given(b: Body, x: str, descr: str, axes: str, dims: str, rank: str, d: str) -> None:
    """Take an array to write to, or go where one is made."""
    b.require([(b.type_of(x), "@tenferro_ndarray")], "make")
    b.require([(b.load(x, DESCR), descr)], "make")
    good = C_CONTIGUOUS | ALIGNED | WRITEABLE
    flags = b.get(f"and i32 {b.load(x, FLAGS, 'i32')}, {good}")
    b.guard(b.get(f"icmp eq i32 {flags}, {good}"), "make")
    b.guard(b.get(f"icmp eq i32 {b.load(x, NDIM, 'i32')}, {axes}"), "make")
    with Loop(b, d, rank, "fit") as axis:
        extents = [b.load(item(b, of, axis), kind="i64") for of in (b.load(x, DIMS), dims)]
        b.guard(b.get(f"icmp eq i64 {extents[0]}, {extents[1]}"), "make")
    b.hold(x)


def _share(
    b: Body, work: str, team: str, what: tuple[str, str, str, str, str, str], hops: tuple[str, str], reduces: str
) -> None:
    """Have the team do the rows, or parts of the only row, which begin where vectors and cache lines do."""
    kernel, context, frame, every, width, many = what
    steps, units = hops
    by_rows = b.get(f"or i1 {reduces}, {b.get(f'icmp ugt i64 {many}, 1')}")
    total = b.get(f"select i1 {by_rows}, i64 {many}, i64 {width}")
    unit = b.get(f"select i1 {by_rows}, i64 1, i64 {ELEMENTS}")
    share = b.get(f"udiv i64 {total}, {b.get(f'mul i64 {team}, {SHARES}')}")
    units_each = b.get(f"add i64 {b.get(f'udiv i64 {share}, {unit}')}, 1")
    length = b.get(f"mul i64 {units_each}, {unit}")
    pieces = quotient(b, total, length)
    for value, at in ((kernel, WORK.kernel), (context, WORK.context), (frame, WORK.frame), (steps, WORK.steps)):
        b.store(value, work, at)
    b.store(b.get(f"select i1 {by_rows}, ptr {steps}, ptr {units}"), work, WORK.hops)
    numbers = ((every, WORK.operands), (width, WORK.width), (length, WORK.length), (total, WORK.total))
    for value, at in (*numbers, (b.get(f"zext i1 {by_rows} to i64"), WORK.rows)):
        b.store(value, work, at, kind="i64")
    b.do(f"call void @tenferro_parallel_for(ptr @piece, ptr {work}, i64 {pieces}, i64 {team})")


def _operand(
    b: Body,
    operands: str,
    at: str,
    dims: str,
    sizes: tuple[str, str, str, str],
    d: str,
    into: tuple[str, str, str],
) -> None:
    """Check one operand; note where it starts, how far it moves from row to row and from element to element."""
    rank, lead, length, width = sizes
    frame, steps, units = into
    p, x = _numbers_of(b, operands, at), b.load(item(b, "%args", at))
    kind, size = b.load(p, OPERAND.kind, "i64"), b.load(p, OPERAND.itemsize, "i64")
    slot, step, unit = item(b, frame, at), item(b, steps, at), item(b, units, at)
    b.branch(b.same(b.type_of(x), "@tenferro_ndarray"), "array", "scalar")
    b.label("scalar")
    b.require([(b.type_of(x), b.load(p, OPERAND.scalar))], "refuse")
    b.store(b.at(x, NUMBER), slot)
    b.store("0", step, kind="i64")
    b.store("0", unit, kind="i64")
    b.jump("taken")
    b.label("array")
    good = C_CONTIGUOUS | ALIGNED
    b.require([(b.load(x, DESCR), b.load(p, OPERAND.descr))], "refuse")
    flags = b.get(f"and i32 {b.load(x, FLAGS, 'i32')}, {good}")
    b.guard(b.get(f"icmp eq i32 {flags}, {good}"), "refuse")
    is_row, is_column, is_number = (b.get(f"icmp eq i64 {kind}, {which}") for which in (1, 2, 3))
    # A whole operand has all axes, a row the last ones, a column the first ones, a number none.
    count = b.get(f"select i1 {is_row}, i64 {length}, i64 {rank}")
    count = b.get(f"select i1 {is_column}, i64 {lead}, i64 {count}")
    count = b.get(f"select i1 {is_number}, i64 0, i64 {count}")
    own = b.get(f"zext i32 {b.load(x, NDIM, 'i32')} to i64")
    b.guard(b.get(f"icmp eq i64 {own}, {count}"), "refuse")
    first = b.get(f"select i1 {is_row}, i64 {lead}, i64 0")
    mine = b.load(x, DIMS)
    with Loop(b, d, count, "compare") as axis:
        theirs = b.load(item(b, dims, b.get(f"add i64 {axis}, {first}")), kind="i64")
        b.guard(b.get(f"icmp eq i64 {b.load(item(b, mine, axis), kind='i64')}, {theirs}"), "refuse")
    b.store(b.load(x, DATA), slot)
    still = b.get(f"or i1 {is_row}, {is_number}")
    hop = b.get(f"select i1 {is_column}, i64 {size}, i64 {b.get(f'mul i64 {size}, {width}')}")
    b.store(b.get(f"select i1 {still}, i64 0, i64 {hop}"), step, kind="i64")
    fixed = b.get(f"or i1 {is_column}, {is_number}")
    b.store(b.get(f"select i1 {fixed}, i64 0, i64 {size}"), unit, kind="i64")
    b.jump("taken")
    b.label("taken")


def _numbers_of(b: Body, operands: str, index: str) -> str:
    return b.at(operands, b.get(f"mul i64 {index}, {8 * len(OPERAND.names)}"))
