"""The text of planning in machine code: operands of any strides, for one call of the driver.

What `Fused` does in Python for a layout, this does in every call: extents and strides of the iteration space, axes
merged where they lie in one walk, the axis that is read best as the row, machine code for how the operands lie along
it, and the words of the driver. Nothing depends on sizes, so that a new shape costs what a known one does.
"""

from typing import Final

from tenferro_cpu.native.kernels._body import Body, Fields, Loop, item, quotient
from tenferro_cpu.native.kernels._combined_text import MOST
from tenferro_cpu.native.kernels._driver import CUT, ELEMENTS, SHARES
from tenferro_cpu.native.kernels._fused_entry_text import OBJECTS, TEAM
from tenferro_cpu.native.kernels._numbers_text import NUMBERS, python_number
from tenferro_cpu.native.kernels._results_text import give_results
from tenferro_cpu.native.kernels._run_text import ALONE, SCANS
from tenferro_cpu.native.python._layout import ALIGNED, BYTES, DATA, DESCR, DIMS, FLAGS, NDIM, NUMBER, STRIDES
from tenferro_cpu.native.python._operand_text import STATUS, architecture

AXES: Final = 8
"""Axes of the largest iteration space."""

HEAD: Final = Fields("table inputs outputs rank most shared grain watch scan")
"""Numbers before those of the operands. `table` has pairs of the accesses along a row and machine code, up to one
without code; the team is asked from `shared` elements on, in pieces of at least `grain`. A `rank` of 0 is the largest
of the operands, whose axes are the last ones. Calls that raise a floating-point status of `watch`, or whose only result
is not finite where `scan` is the size of its numbers, are done again by the fallback; no team takes part in them."""

OPERAND: Final = Fields("descr itemsize ndim scalar python axes")
"""Numbers of each operand and result; byte a of `axes` is the operand's own axis for axis a of the space, or 255.
Objects of the class `scalar` hold the number itself; `python` says what Python's numbers become."""

UNIT, FIXED, STRIDED = 0, 1, 2
"""Two bits of the accesses for each operand."""

_DRIVER: Final = """declare void @tenferro_drive(ptr, ptr)
declare void @tenferro_drive_piece(ptr, i64)
"""


def strided_text(triple: str, tuple_items: int) -> str:
    """LLVM text of ``strided(self, args, nargs)``; `self` is a tuple of the numbers as bytes, the fallback, what they
    need to live, and what to call for spaces of more than `most` elements."""
    b = Body("ptr @strided(ptr %self, ptr %args, i64 %nargs)")
    s = _State(b, tuple_items)
    s.extents()
    s.walk()
    s.row()
    s.results()
    s.block()
    s.run()
    s.judge()
    give_results(b, s.nout, s.made, (s.k, s.d), tuple_items)
    for label, at in (("refuse", 8), ("large", 24)):
        b.label(label)
        b.give(b.call("tenferro_vectorcall", b.load("%self", tuple_items + at), "%args", "i64 %nargs", "null"))
    return OBJECTS + TEAM + NUMBERS + _DRIVER + STATUS[architecture(triple)] + SCANS + b.text()


class _State:
    """The parts of the function, which share the names of its values."""

    def __init__(self, b: Body, tuple_items: int) -> None:
        self.b = b
        self.k, self.d, self.e = (b.variable("i64") for _ in range(3))
        self.total, self.axes, self.best, self.merit = (b.variable("i64") for _ in range(4))
        self.code = b.variable()
        self.made = b.variable(f"[{MOST} x ptr]")
        # Extents of the space, and where a row of strides of the merged axes begins: operands are its columns.
        self.dims, self.merged = b.variable(f"[{AXES} x i64]"), b.variable(f"[{AXES} x i64]")
        self.steps = b.variable(f"[{(AXES + 1) * MOST} x i64]")
        self.words = b.variable(f"[{4 + 3 * MOST + AXES * (MOST + 1)} x i64]")
        self.slots, self.real, self.overflow = b.variable(f"[{MOST} x i64]"), b.variable("double"), b.variable("i32")
        self.cut = b.variable(f"[{len(CUT.names)} x i64]")
        self.pieces, self.threads, self.extent = (b.variable("i64") for _ in range(3))
        self.access, self.plain, self.wanted = (b.variable("i64") for _ in range(3))
        self.numbers = b.at(b.load("%self", tuple_items), BYTES)
        self.operands = b.at(self.numbers, 8 * len(HEAD.names))
        self.nin, self.nout, fixed = (b.load(self.numbers, at, "i64") for at in (HEAD.inputs, HEAD.outputs, HEAD.rank))
        self.every = b.get(f"add i64 {self.nin}, {self.nout}")
        self.data = b.at(self.words, 32)
        b.guard(b.get(f"icmp eq i64 %nargs, {self.nin}"), "refuse")
        self.open = b.get(f"icmp eq i64 {fixed}, 0")
        b.store(fixed, self.axes, kind="i64")

    def extents(self) -> None:
        """Check the operands, and the space that they broadcast to."""
        b = self.b
        with Loop(b, self.k, self.nin, "operand") as at:
            p, x = self._numbers(at), b.load(item(b, "%args", at))
            b.branch(b.same(b.type_of(x), "@tenferro_ndarray"), "array", "scalar")
            b.label("scalar")
            b.store(b.at(x, NUMBER), item(b, self.data, at))
            b.branch(b.same(b.type_of(x), b.load(p, OPERAND.scalar)), "taken", "python")
            b.label("python")
            slot = item(b, self.slots, at)
            b.store(slot, item(b, self.data, at))
            python_number(b, x, slot, b.load(p, OPERAND.python, "i64"), (self.real, self.overflow))
            b.label("array")
            b.require([(b.load(x, DESCR), b.load(p, OPERAND.descr))], "refuse")
            aligned = b.get(f"and i32 {b.load(x, FLAGS, 'i32')}, {ALIGNED}")
            b.guard(b.get(f"icmp ne i32 {aligned}, 0"), "refuse")
            ndim = self._ndim(x)
            expected = b.get(f"icmp eq i64 {ndim}, {b.load(p, OPERAND.ndim, 'i64')}")
            b.guard(b.get(f"or i1 {self.open}, {expected}"), "refuse")
            least = b.load(self.axes, kind="i64")
            b.store(self._larger(least, ndim), self.axes, kind="i64")
            b.store(b.load(x, DATA), item(b, self.data, at))
            b.jump("taken")
            b.label("taken")
        self.rank = b.load(self.axes, kind="i64")
        # Without axes NumPy gives scalars.
        b.guard(b.get(f"icmp ult i64 {b.get(f'sub i64 {self.rank}, 1')}, {AXES}"), "refuse")
        b.store("1", self.total, kind="i64")
        with Loop(b, self.d, self.rank, "axis") as axis:
            b.store("1", self.extent, kind="i64")
            with Loop(b, self.k, self.nin, "fit") as at:
                x = b.load(item(b, "%args", at))
                own = self._own(x, at, axis, "fit")
                d = b.load(item(b, b.load(x, DIMS), own), kind="i64")
                known = b.load(self.extent, kind="i64")
                b.branch(b.get(f"icmp eq i64 {d}, 1"), "fit.next", "fit.wide")
                b.label("fit.wide")
                b.store(d, self.extent, kind="i64")
                b.branch(b.get(f"icmp eq i64 {known}, 1"), "fit.next", "fit.same")
                b.label("fit.same")
                b.guard(b.get(f"icmp eq i64 {known}, {d}"), "refuse")
                b.jump("fit.next")
                b.label("fit.next")
            extent = b.load(self.extent, kind="i64")
            b.store(extent, item(b, self.dims, axis), kind="i64")
            b.store(b.get(f"mul i64 {b.load(self.total, kind='i64')}, {extent}"), self.total, kind="i64")
        self.count = b.load(self.total, kind="i64")
        b.guard(b.get(f"icmp ule i64 {self.count}, {b.load(self.numbers, HEAD.most, 'i64')}"), "large")
        self.none = b.get(f"icmp eq i64 {self.count}, 0")
        b.branch(self.none, "make", "some")
        b.label("some")

    def results(self) -> None:
        """Make the results; NumPy refuses extents whose product overflows."""
        b = self.b
        b.jump("make")
        b.label("make")
        axes = b.get(f"trunc i64 {self.rank} to i32")
        with Loop(b, self.k, self.nout, "result") as at:
            slot = b.get(f"add i64 {at}, {self.nin}")
            descr = b.load(self._numbers(slot), OPERAND.descr)
            b.hold(descr)
            out = b.call("tenferro_new_from_descr", "@tenferro_ndarray", descr, f"i32 {axes}", self.dims, "null",
                         "null", "i32 0", "null")  # fmt: skip
            b.present(out, "failed")
            b.store(out, item(b, self.made, at))
            b.store(b.load(out, DATA), item(b, self.data, slot))
        b.branch(self.none, "finite", "filled")
        b.label("filled")

    def walk(self) -> None:
        """Strides of the operands along the axes, from the last one on; an axis that goes on where the one before it
        ends is merged with that."""
        b = self.b
        b.store("0", self.axes, kind="i64")
        b.store("1", self.total, kind="i64")
        with Loop(b, self.d, self.rank, "step") as back:
            axis = b.get(f"sub i64 {b.get(f'sub i64 {self.rank}, 1')}, {back}")
            extent = b.load(item(b, self.dims, axis), kind="i64")
            inside = b.load(self.total, kind="i64")
            b.branch(b.get(f"icmp eq i64 {extent}, 1"), "step.next", "step.read")
            b.label("step.read")
            many = b.load(self.axes, kind="i64")
            here = self._steps(many)
            with Loop(b, self.k, self.nin, "stride") as at:
                b.store("0", item(b, here, at), kind="i64")
                x = b.load(item(b, "%args", at))
                own = self._own(x, at, axis, "stride")
                repeated = b.get(f"icmp eq i64 {b.load(item(b, b.load(x, DIMS), own), kind='i64')}, 1")
                stride = b.load(item(b, b.load(x, STRIDES), own), kind="i64")
                b.store(b.get(f"select i1 {repeated}, i64 0, i64 {stride}"), item(b, here, at), kind="i64")
                b.jump("stride.next")
                b.label("stride.next")
            with Loop(b, self.k, self.nout, "hop") as at:
                slot = b.get(f"add i64 {at}, {self.nin}")
                size = b.load(self._numbers(slot), OPERAND.itemsize, "i64")
                b.store(b.get(f"mul i64 {inside}, {size}"), item(b, here, slot), kind="i64")
            b.store(b.get(f"mul i64 {inside}, {extent}"), self.total, kind="i64")
            b.branch(b.get(f"icmp eq i64 {many}, 0"), "apart", "compare")
            b.label("compare")
            last = b.get(f"sub i64 {many}, 1")
            before, size = self._steps(last), b.load(item(b, self.merged, last), kind="i64")
            with Loop(b, self.k, self.every, "meet") as at:
                ends = b.get(f"mul i64 {b.load(item(b, before, at), kind='i64')}, {size}")
                b.guard(b.get(f"icmp eq i64 {ends}, {b.load(item(b, here, at), kind='i64')}"), "apart")
            b.store(b.get(f"mul i64 {size}, {extent}"), item(b, self.merged, last), kind="i64")
            b.jump("step.next")
            b.label("apart")
            b.store(extent, item(b, self.merged, many), kind="i64")
            b.store(b.get(f"add i64 {many}, 1"), self.axes, kind="i64")
            b.jump("step.next")
            b.label("step.next")
        b.branch(b.get(f"icmp eq i64 {b.load(self.axes, kind='i64')}, 0"), "single", "planned")
        b.label("single")
        b.store("1", self.merged, kind="i64")
        with Loop(b, self.k, self.every, "alone") as at:
            size = b.load(self._numbers(at), OPERAND.itemsize, "i64")
            b.store(size, item(b, self.steps, at), kind="i64")
        b.store("1", self.axes, kind="i64")
        b.jump("planned")
        b.label("planned")

    def row(self) -> None:
        """The axis of a row, as `Fused` chooses it, and the machine code for it."""
        b = self.b
        b.store("-1", self.merit, kind="i64")
        with Loop(b, self.d, b.load(self.axes, kind="i64"), "choose") as axis:
            b.store("0", self.access, kind="i64")
            b.store(self.every, self.plain, kind="i64")
            here = self._steps(axis)
            with Loop(b, self.k, self.every, "access") as at:
                stride = b.load(item(b, here, at), kind="i64")
                size = b.load(self._numbers(at), OPERAND.itemsize, "i64")
                still = b.get(f"select i1 {b.get(f'icmp eq i64 {stride}, 0')}, i64 {FIXED}, i64 {STRIDED}")
                which = b.get(f"select i1 {b.get(f'icmp eq i64 {stride}, {size}')}, i64 {UNIT}, i64 {still}")
                moved = b.get(f"shl i64 {b.load(self.access, kind='i64')}, 2")
                b.store(b.get(f"or i64 {moved}, {which}"), self.access, kind="i64")
                less = b.get(f"lshr i64 {which}, 1")
                b.store(b.get(f"sub i64 {b.load(self.plain, kind='i64')}, {less}"), self.plain, kind="i64")
            extent = b.load(item(b, self.merged, axis), kind="i64")
            some = b.get(f"select i1 {b.get(f'icmp ult i64 {extent}, 64')}, i64 {extent}, i64 64")
            quarters = b.get(f"shl i64 {b.load(self.plain, kind='i64')}, 1")
            merit = b.get(f"shl i64 {some}, {quarters}")
            better = b.get(f"icmp sgt i64 {merit}, {b.load(self.merit, kind='i64')}")
            found = b.load(self.access, kind="i64")
            for value, slot in ((merit, self.merit), (axis, self.best), (found, self.wanted)):
                b.store(b.get(f"select i1 {better}, i64 {value}, i64 {b.load(slot, kind='i64')}"), slot, kind="i64")
        wanted = b.load(self.wanted, kind="i64")
        b.store(b.load(self.numbers, HEAD.table), self.code)
        b.jump("find")
        b.label("find")
        entry = b.load(self.code)
        b.present(b.load(entry, 8), "refuse")
        b.branch(b.get(f"icmp eq i64 {b.load(entry, kind='i64')}, {wanted}"), "found", "other")
        b.label("other")
        b.store(b.at(entry, 16), self.code)
        b.jump("find")
        b.label("found")
        b.store(b.load(entry, 8), self.code)

    def block(self) -> None:
        """The words of the driver."""
        b = self.b
        self.kernel, best = b.load(self.code), b.load(self.best, kind="i64")
        width = b.load(item(b, self.merged, best), kind="i64")
        self.many = b.load(self.axes, kind="i64")
        self.outside = b.get(f"sub i64 {self.many}, 1")
        for place, value in enumerate((self.every, width, self.outside, "1")):
            b.store(value, self.words, 8 * place, kind="i64")
        inner = item(b, self.data, self.every)
        rows = item(b, inner, self.every)
        counts = item(b, rows, self.every)
        hops = item(b, counts, self.outside)
        self._copy(self._steps(best), inner, "inner")
        with Loop(b, self.k, self.every, "rows") as at:
            b.store("0", item(b, rows, at), kind="i64")
        b.store("0", self.e, kind="i64")
        with Loop(b, self.d, self.many, "outer") as back:
            axis = b.get(f"sub i64 {self.outside}, {back}")
            b.branch(b.get(f"icmp eq i64 {axis}, {best}"), "outer.next", "outer.note")
            b.label("outer.note")
            at = b.load(self.e, kind="i64")
            b.store(b.load(item(b, self.merged, axis), kind="i64"), item(b, counts, at), kind="i64")
            self._copy(self._steps(axis), item(b, hops, b.get(f"mul i64 {at}, {self.every}")), "note")
            b.store(b.get(f"add i64 {at}, 1"), self.e, kind="i64")
            b.jump("outer.next")
            b.label("outer.next")

    def run(self) -> None:
        """Call the driver, or the team for pieces of the axis that gives most of them."""
        b = self.b
        drive = f"call void @tenferro_drive(ptr {self.kernel}, ptr {self.words})"
        watch = b.load(self.numbers, HEAD.watch, "i64")
        b.branch(b.get(f"icmp eq i64 {watch}, 0"), "start", "wipe")
        b.label("wipe")
        b.do(f"call void @clear(i32 {b.call('status', result='i32')})")
        b.jump("start")
        b.label("start")
        b.branch(b.get(f"icmp ugt i64 {self.count}, {ALONE}"), "release", "keep")
        b.label("keep")
        b.do(drive)
        b.jump("judge")
        b.label("release")
        b.store("1", self.threads, kind="i64")
        b.branch(b.get(f"icmp uge i64 {self.count}, {b.load(self.numbers, HEAD.shared, 'i64')}"), "ask", "alone_")
        b.label("ask")
        b.store(b.call("tenferro_allowed", result="i64"), self.threads, kind="i64")
        b.jump("alone_")
        b.label("alone_")
        thread, team = b.call("tenferro_save_thread"), b.load(self.threads, kind="i64")
        b.branch(b.get(f"icmp sgt i64 {team}, 1"), "cut", "whole")
        b.label("cut")
        self._cut(team)
        pieces = b.load(self.pieces, kind="i64")
        b.do(f"call void @tenferro_parallel_for(ptr @tenferro_drive_piece, ptr {self.cut}, i64 {pieces}, i64 {team})")
        b.jump("regain")
        b.label("whole")
        b.do(drive)
        b.jump("regain")
        b.label("regain")
        b.call("tenferro_restore_thread", thread, result="void")
        b.jump("judge")

    def judge(self) -> None:
        """Leave it to the fallback to warn, where NumPy would."""
        b = self.b
        b.label("judge")
        watch, scan = (b.load(self.numbers, at, "i64") for at in (HEAD.watch, HEAD.scan))
        b.branch(b.get(f"icmp eq i64 {b.get(f'or i64 {watch}, {scan}')}, 0"), "finite", "look")
        b.label("look")
        raised = b.get(f"and i32 {b.call('status', result='i32')}, {b.get(f'trunc i64 {watch} to i32')}")
        size = b.load(self._numbers(self.nin), OPERAND.itemsize, "i64")
        total = b.get(f"mul i64 {self.count}, {size}")
        odd = b.call("scan", b.load(b.load(self.made), DATA), f"i64 {total}", f"i64 {scan}", result="i32")
        b.branch(b.get(f"icmp eq i32 {b.get(f'or i32 {raised}, {odd}')}, 0"), "finite", "discard")
        b.label("discard")
        with Loop(b, self.d, self.nout, "forget") as at:
            b.drop(b.load(item(b, self.made, at)))
        b.jump("refuse")

    def _cut(self, team: str) -> None:
        """What the pieces are told. The row is cut in steps of whole vectors, other axes anywhere."""
        b = self.b
        grains = b.get(f"udiv i64 {self.count}, {b.load(self.numbers, HEAD.grain, 'i64')}")
        shares = b.get(f"mul i64 {team}, {SHARES}")
        few = b.get(f"select i1 {b.get(f'icmp ult i64 {grains}, {shares}')}, i64 {grains}, i64 {shares}")
        most = self._larger(few, "1")
        # One word after the other: row, outer axes; the row's words are elsewhere.
        b.store("0", self.pieces, kind="i64")
        inner = b.get(f"add i64 {self.every}, 4")
        counts = b.get(f"add i64 {inner}, {b.get(f'mul i64 {self.every}, 2')}")
        hops = b.get(f"add i64 {counts}, {self.outside}")
        with Loop(b, self.d, self.many, "piece") as at:
            is_row = b.get(f"icmp eq i64 {at}, 0")
            axis = b.get(f"sub i64 {at}, 1")
            place = b.get(f"select i1 {is_row}, i64 1, i64 {b.get(f'add i64 {counts}, {axis}')}")
            outer = b.get(f"add i64 {hops}, {b.get(f'mul i64 {axis}, {self.every}')}")
            strides = b.get(f"select i1 {is_row}, i64 {inner}, i64 {outer}")
            unit = b.get(f"select i1 {is_row}, i64 {ELEMENTS}, i64 1")
            extent = b.load(item(b, self.words, place), kind="i64")
            length = b.get(f"mul i64 {quotient(b, extent, b.get(f'mul i64 {most}, {unit}'))}, {unit}")
            many = quotient(b, extent, length)
            better = b.get(f"icmp ugt i64 {many}, {b.load(self.pieces, kind='i64')}")
            fields = ((strides, CUT.strides_place), (place, CUT.place), (length, CUT.length), (extent, CUT.extent))
            for value, field in fields:
                old = b.load(self.cut, field, "i64")
                b.store(b.get(f"select i1 {better}, i64 {value}, i64 {old}"), self.cut, field, "i64")
            b.store(self._larger(many, b.load(self.pieces, kind="i64")), self.pieces, kind="i64")
        words = b.get(f"add i64 {hops}, {b.get(f'mul i64 {self.outside}, {self.every}')}")
        b.store(self.kernel, self.cut, CUT.kernel)
        b.store(self.words, self.cut, CUT.block)
        b.store(words, self.cut, CUT.words, "i64")

    def _own(self, x: str, at: str, axis: str, name: str) -> str:
        """The operand's own axis for an axis of the space; where there is none, go on with the next operand."""
        b = self.b
        b.branch(b.same(b.type_of(x), "@tenferro_ndarray"), f"{name}.array", f"{name}.next")
        b.label(f"{name}.array")
        ndim = self._ndim(x)
        last = b.get(f"sub i64 {axis}, {b.get(f'sub i64 {self.rank}, {ndim}')}")
        byte = b.get(f"lshr i64 {b.load(self._numbers(at), OPERAND.axes, 'i64')}, {b.get(f'shl i64 {axis}, 3')}")
        given = b.get(f"and i64 {byte}, 255")
        own = b.get(f"select i1 {self.open}, i64 {last}, i64 {given}")
        b.branch(b.get(f"icmp ult i64 {own}, {ndim}"), f"{name}.own", f"{name}.next")
        b.label(f"{name}.own")
        return own

    def _copy(self, source: str, target: str, name: str) -> None:
        b = self.b
        with Loop(b, self.k, self.every, name) as at:
            b.store(b.load(item(b, source, at), kind="i64"), item(b, target, at), kind="i64")

    def _steps(self, axis: str) -> str:
        return item(self.b, self.steps, self.b.get(f"mul i64 {axis}, {MOST}"))

    def _numbers(self, index: str) -> str:
        return self.b.at(self.operands, self.b.get(f"mul i64 {index}, {8 * len(OPERAND.names)}"))

    def _ndim(self, x: str) -> str:
        return self.b.get(f"zext i32 {self.b.load(x, NDIM, 'i32')} to i64")

    def _larger(self, x: str, y: str) -> str:
        return self.b.get(f"select i1 {self.b.get(f'icmp ugt i64 {x}, {y}')}, i64 {x}, i64 {y}")
