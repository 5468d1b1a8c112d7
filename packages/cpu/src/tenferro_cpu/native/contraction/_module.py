"""The machine code of the engine: one module for each dtype, whatever is contracted."""

import ctypes
from functools import cache
from typing import Any, Final

from tenferro_cpu.native._jit import Engine, engine
from tenferro_cpu.native._layout import DATA, Layout
from tenferro_cpu.native._team import team
from tenferro_cpu.native.contraction import _elementwise_text as elementwise
from tenferro_cpu.native.contraction import _product_text as products
from tenferro_cpu.native.contraction._code import Code, Kind
from tenferro_cpu.native.contraction._pack_text import pack
from tenferro_cpu.native.contraction._record import KERNELS, PLACE, WORDS
from tenferro_cpu.native.contraction._tile_text import tiles

_FUNCTIONS: Final = {
    "gemm": "product_pp", "gemm direct rows": "product_dp", "gemm direct": "product_dd", "elementwise": "elementwise",
    "scaling": "scaling", "gather": "gather", "dot": "dot", "fill": "fill",
}  # fmt: skip
_STEP: Final = "ptr, ptr, ptr, i64, i64"


def source(kind: Kind, shared: bool, items: int) -> str:
    """The module.

    Args:
        kind: dtype and host.
        shared: whether there is a team of threads to call.
        items: bytes before the items of a tuple.
    """
    widths = {kind.width, kind.columns}
    parts = [
        _declarations(kind, shared),
        tiles(kind),
        *[pack(kind, width) for width in sorted(widths)],
        products.packed(kind),
        products.direct(kind, "dp"),
        products.direct(kind, "dd"),
        elementwise.runs(kind, False),
        elementwise.runs(kind, True),
        elementwise.gather(kind),
        elementwise.dot(kind),
        elementwise.fill(kind),
        f"@steps = private constant [{len(KERNELS)} x ptr] [ "
        + ", ".join(f"ptr @{_FUNCTIONS[kernel]}" for kernel in KERNELS)
        + " ]",
        _piece(kind),
        _run(kind, shared, items),
    ]
    return "\n".join(parts)


def _declarations(kind: Kind, shared: bool) -> str:
    v, n, s = kind.vector, kind.lanes, kind.suffix
    return f"""
declare i64 @llvm.smin.i64(i64, i64)
declare {v} @llvm.fma.{s}({v}, {v}, {v})
declare {v} @llvm.masked.load.{s}.p0(ptr, i32, <{n} x i1>, {v})
declare void @llvm.masked.store.{s}.p0({v}, ptr, i32, <{n} x i1>)
{"declare void @tenferro_parallel_for(ptr, ptr, i64, i64)" if shared else ""}
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


def _run(kind: Kind, shared: bool, items: int) -> str:
    """All steps of a plan in order; pointers are those of the arrays of a tuple, which the caller keeps alive."""
    code = Code("run", "ptr %objects, ptr %header, i64 %threads", kind.host.attributes)
    job = code.raw("alloca [4 x i64]")
    steps, count, arena, scratch_at = (code.word("%header", number) for number in range(4))
    records = code.pointer("%header", 4)
    bases = code.raw(f"alloca ptr, i64 {count}")
    values = code.at("%objects", items)
    with code.loop(0, count) as n:
        data = code.raw(f"load ptr, ptr {code.at(code.pointer(values, n), DATA)}")
        code.do(f"store ptr {data}, ptr {code.raw(f'getelementptr ptr, ptr {bases}, i64 {n}')}")
    scratch = code.at(code.pointer(bases, arena), scratch_at)
    with code.loop(0, steps) as n:
        record = code.raw(f"getelementptr i64, ptr {records}, i64 {code.let('mul', n, WORDS)}")
        pieces = code.least(code.word(record, PLACE["pieces"]), "%threads") if shared else "1"
        with code.when_else(code.test("sgt", pieces, 1)) as alone:
            if shared:
                for number, value in enumerate((f"ptr {record}", f"ptr {bases}", f"ptr {scratch}", f"i64 {pieces}")):
                    code.do(f"store {value}, ptr {code.at(job, 8 * number)}")
                code.do(f"call void @tenferro_parallel_for(ptr @piece, ptr {job}, i64 {pieces}, i64 {pieces})")
            next(alone)
            _call(code, record, bases, scratch, "0", "1")
    code.do("ret void")
    return code.text("")


def load(have: Engine, char: str) -> tuple[Kind, Any]:
    """What `have` renders a dtype for, and ``run(tuple of arrays, header of a plan, threads)``."""
    kind, helpers, layout = Kind(char, have.host), team(), Layout.found()
    assert layout is not None
    text = source(kind, helpers is not None, layout.tuple_items)
    address = have.function(text, "run", None if helpers is None else helpers.symbols)
    return kind, ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64)(address)


@cache
def machine(char: str) -> tuple[Kind, Any]:
    """`load` of the engine of the process.

    Raises:
        BackendUnavailableError: native kernels cannot be had.
    """
    return load(engine(), char)
