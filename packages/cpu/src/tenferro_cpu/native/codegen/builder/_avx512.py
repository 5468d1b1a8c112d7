"""AVX-512 instructions on full vector registers."""

from typing import Final

from tenferro_cpu.native.codegen.builder._types import BITS, LLVM_TYPES, number
from tenferro_cpu.native.codegen.builder._vectors import Vec

ENTRIES: Final = 16
"""Size of the table that one instruction looks up."""


def _call(name: str, x: Vec, operands: str, *more: Vec) -> Vec:
    """An AVX-512 instruction; `operands` has ``%s`` for vectors, V for their type, and M for a mask of all lanes."""
    v = x.block.vector(x.kind)
    letters, mask = ("pd", "i8 -1") if x.kind == "f64" else ("ps", "i16 -1")
    where = operands.replace("V", v).replace("M", mask)
    return x.block.apply(f"call {v} @llvm.x86.avx512.{name}.{letters}.512({where})", x.kind, x, *more)


def lookup(index: Vec, table: tuple[float, ...], kind: str) -> Vec:
    """Look up numbers in a table by the lowest four bits of integer lanes."""
    b, t = index.block, LLVM_TYPES[kind]
    v, w, lanes = b.vector(kind), b.vector(index.kind), b.lanes
    parts = [
        f"{v} <{', '.join(f'{t} {number(kind, x)}' for x in table[k : k + lanes])}>" for k in range(0, ENTRIES, lanes)
    ]
    if kind == "f32":
        return b.apply(f"call {v} @llvm.x86.avx512.permvar.sf.512({parts[0]}, {w} %s)", kind, index)
    return b.apply(f"call {v} @llvm.x86.avx512.vpermi2var.pd.512({parts[0]}, {w} %s, {parts[1]})", kind, index)


def scaled(x: Vec, n: Vec) -> Vec:
    """``x * 2**floor(n)``, rounded once."""
    return _call("mask.scalef", x, "V %s, V %s, V zeroinitializer, M, i32 4", n)


def bounded(x: Vec, low: float, high: float) -> Vec:
    """Clamp to bounds; NaN stays NaN, because these instructions then return their second operand."""
    x = _call("min", x.like(high), "V %s, V %s, i32 4", x)
    return _call("max", x.like(low), "V %s, V %s, i32 4", x)


def reciprocal(x: Vec) -> Vec:
    """``1 / x`` to 14 bits."""
    return _call("rcp14", x, "V %s, V zeroinitializer, M")


def mantissa(x: Vec) -> Vec:
    """The number without its power of two, between 3/4 and 3/2."""
    return _call("mask.getmant", x, "V %s, i32 7, V zeroinitializer, M, i32 4")


def exponent(x: Vec) -> Vec:
    """The binary exponent, as a floating-point number."""
    return _call("mask.getexp", x, "V %s, V zeroinitializer, M, i32 4")


def fixed(x: Vec, result: Vec, classes: int) -> Vec:
    """`result`, replaced for special `x` as `classes` says: four bits each for NaN, zero, one, infinities, signs."""
    bits = BITS[x.kind]
    table = f"<{x.block.lanes} x i{bits}> splat (i{bits} {classes})"
    return _call("mask.fixupimm", result, f"V %s, V %s, {table}, i32 0, M, i32 4", x)
