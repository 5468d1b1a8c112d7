"""The machine code of the engine: one module for each dtype, whatever is contracted."""

from functools import cache
from typing import Final, NamedTuple

from tenferro_cpu.native.contraction import _elementwise_text as elementwise
from tenferro_cpu.native.contraction import _product_text as products
from tenferro_cpu.native.contraction._blocks_text import blocks
from tenferro_cpu.native.contraction._code import Code, Kind
from tenferro_cpu.native.contraction._entry_text import enter
from tenferro_cpu.native.contraction._pack_text import pack, pack_tile
from tenferro_cpu.native.contraction._record import KERNELS, PLACE, WORDS
from tenferro_cpu.native.contraction._strip_text import strips
from tenferro_cpu.native.contraction._tile_text import tiles
from tenferro_cpu.native.machine._jit import Engine, engine
from tenferro_cpu.native.python._builtin import FASTCALL, MethodDef, definition
from tenferro_cpu.native.python._capi import symbols
from tenferro_cpu.native.python._layout import BYTES, DATA, Layout
from tenferro_cpu.native.threads._team import team

_FUNCTIONS: Final = {
    "gemm": "product_pp", "gemm direct rows": "product_dp", "gemm direct": "product_dd", "elementwise": "elementwise",
    "scaling": "scaling", "gather": "gather", "dot": "dot", "lanes": "lanes",
    "turn": "turn", "fill": "fill", "blocks": "blocks",
}  # fmt: skip
_STEP: Final = "ptr, ptr, ptr, i64, i64"


def source(kind: Kind, tuple_items: int) -> str:
    """The module; `tuple_items` is where the items of a tuple begin."""
    widths = {kind.width, kind.columns}
    parts = [
        _declarations(kind),
        tiles(kind),
        *[pack(kind, width) for width in sorted(widths)],
        pack_tile(kind),
        products.packed(kind),
        products.direct(kind, "dp"),
        products.direct(kind, "dd"),
        elementwise.runs(kind, False),
        elementwise.runs(kind, True),
        elementwise.gather(kind),
        strips(kind, "dot"),
        strips(kind, "lanes"),
        products.turn(kind),
        elementwise.fill(kind),
        blocks(kind),
        f"@steps = private constant [{len(KERNELS)} x ptr] [ "
        + ", ".join(f"ptr @{_FUNCTIONS[kernel]}" for kernel in KERNELS)
        + " ]",
        _piece(kind),
        _run(kind),
        enter(kind, tuple_items),
    ]
    return "\n".join(parts)


def _declarations(kind: Kind) -> str:
    v = kind.vector
    masked = ""
    for n in sorted({kind.lanes, kind.columns * kind.parts}):
        w, s = f"<{n} x {kind.real}>", f"v{n}f{8 * kind.real_bytes}"
        masked += f"""
declare {w} @llvm.masked.load.{s}.p0(ptr, i32, <{n} x i1>, {w})
declare void @llvm.masked.store.{s}.p0({w}, ptr, i32, <{n} x i1>)"""
    return f"""{masked}
declare i64 @llvm.smin.i64(i64, i64)
declare void @llvm.prefetch.p0(ptr, i32, i32, i32)
declare {v} @llvm.fma.{kind.suffix}({v}, {v}, {v})
declare void @tenferro_parallel_for(ptr, ptr, i64, i64)
declare i64 @tenferro_allowed()
declare ptr @tenferro_save_thread()
declare void @tenferro_restore_thread(ptr)
declare void @tenferro_incref(ptr)
@tenferro_ndarray = external global i8
declare ptr @tenferro_new_from_descr(ptr, ptr, i32, ptr, ptr, ptr, i32, ptr)
declare ptr @tenferro_vectorcall(ptr, ptr, i64, ptr)
declare void @llvm.codeview.annotation(metadata)
!0 = !{{i32 1}}
!1 = !{{!""}}
"""


def _call(code: Code, record: str, bases: str, scratch: str, piece: str, pieces: str) -> None:
    number = code.word(record, PLACE["kernel"])
    step = code.raw(f"load ptr, ptr {code.raw(f'getelementptr ptr, ptr @steps, i64 {number}')}")
    code.do(f"call void {step}(ptr {record}, ptr {bases}, ptr {scratch}, i64 {piece}, i64 {pieces})")


def _piece(kind: Kind) -> str:
    """One piece of a step in one thread of the team, with a part of the scratch memory of its own."""
    code = Code("piece", "ptr %job, i64 %number", kind.host.attributes)
    record, bases, scratch = (code.pointer("%job", i) for i in range(3))
    mine = code.at(scratch, code.let("mul", "%number", code.word(record, PLACE["scratch"])))
    _call(code, record, bases, mine, "%number", code.word("%job", 3))
    code.do("ret void")
    return code.text()


HEADER: Final = ("steps", "count", "arena", "scratch", "records", "pieces", "long")
"""Words of a plan: number of records and of pointers, place of the arena's pointer and of packed panels in the arena,
address of the records, threads that pay, whether the work is worth giving the interpreter's lock away."""


def _run(kind: Kind) -> str:
    """``run(*arrays)``: all steps of a plan in order; gives back the array after the arena, the result.

    A function with a plan's header as its ``self``; the arrays are the operands, arena, result, kept values and one.
    """
    code = Code("run", "ptr %self, ptr %args, i64 %n", kind.host.attributes, "ptr")
    job, threads = code.raw("alloca [4 x i64]"), code.raw("alloca i64")
    header = code.at("%self", BYTES)
    word = {name: code.word(header, number) for number, name in enumerate(HEADER)}
    records = code.pointer(header, HEADER.index("records"))
    bases = code.raw(f"alloca ptr, i64 {word['count']}")
    with code.loop(0, word["count"]) as n:
        data = code.raw(f"load ptr, ptr {code.at(code.pointer('%args', n), DATA)}")
        code.do(f"store ptr {data}, ptr {code.raw(f'getelementptr ptr, ptr {bases}, i64 {n}')}")
    code.do(f"store i64 1, ptr {threads}")
    with code.when(code.test("sgt", word["pieces"], 1)):
        code.do(f"store i64 {code.raw('call i64 @tenferro_allowed()')}, ptr {threads}")
    most = code.raw(f"load i64, ptr {threads}")
    result = code.pointer("%args", code.let("add", word["arena"], 1))
    code.do(f"call void @tenferro_incref(ptr {result})")
    work = f"call void @work(ptr {records}, i64 {word['steps']}, ptr {bases}, ptr %scratch, i64 {most}, ptr {job})"
    work = work.replace("%scratch", code.at(code.pointer(bases, word["arena"]), word["scratch"]))
    with code.when_else(code.test("ne", word["long"], 0)) as short:
        state = code.raw("call ptr @tenferro_save_thread()")
        code.do(work)
        code.do(f"call void @tenferro_restore_thread(ptr {state})")
        next(short)
        code.do(work)
    code.do(f"ret ptr {result}")
    return _work(kind) + code.text("")


def _work(kind: Kind) -> str:
    """The steps, each in as many pieces as there are threads for."""
    parameters = "ptr %records, i64 %steps, ptr %bases, ptr %scratch, i64 %threads, ptr %job"
    code = Code("work", parameters, kind.host.attributes + " noinline")
    with code.loop(0, "%steps") as n:
        record = code.raw(f"getelementptr i64, ptr %records, i64 {code.let('mul', n, WORDS)}")
        pieces = code.least(code.word(record, PLACE["pieces"]), "%threads")
        with code.when_else(code.test("sgt", pieces, 1)) as alone:
            for number, value in enumerate((f"ptr {record}", "ptr %bases", "ptr %scratch", f"i64 {pieces}")):
                code.do(f"store {value}, ptr {code.at('%job', 8 * number)}")
            code.do(f"call void @tenferro_parallel_for(ptr @piece, ptr %job, i64 {pieces}, i64 {pieces})")
            next(alone)
            _call(code, record, "%bases", "%scratch", "0", "1")
    code.do("ret void")
    return code.text()


class Machine(NamedTuple):
    """What a dtype is rendered for, the function that runs plans, and the entry of small contractions."""

    kind: Kind
    run: MethodDef
    enter: MethodDef


def load(have: Engine, char: str) -> Machine:
    """The machine code of a dtype from `have`."""
    kind, helpers, known, layout = Kind(char, have.host), team(), symbols(), Layout.found()
    assert helpers is not None and known is not None and layout is not None
    text = source(kind, layout.tuple_items)
    run, quick = have.functions(text, ("run", "enter"), known | helpers.symbols)
    return Machine(kind, definition("contract", run, FASTCALL), definition("contract", quick, FASTCALL))


@cache
def machine(char: str) -> Machine:
    """`load` of the engine of the process.

    Raises:
        BackendUnavailableError: native kernels cannot be had.
    """
    return load(engine(), char)
