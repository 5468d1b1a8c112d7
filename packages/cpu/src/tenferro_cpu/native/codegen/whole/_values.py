"""Numbers in registers and in memory: a complex one is two, a boolean one a bit in a register and a byte in memory."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from tenferro_cpu.native.codegen.builder import LLVM_TYPES, Int, Phis, Pointer, ScalarBlock, Vec
from tenferro_cpu.native.codegen.operations._value import Pair, Value, kind_of


def parts(value: Value) -> tuple[Vec, ...]:
    """The real numbers that a number consists of."""
    return (value.re, value.im) if isinstance(value, Pair) else (value,)


def joined(numbers: Sequence[Vec]) -> Value:
    """The number of these `parts`."""
    return Pair(*numbers) if len(numbers) == 2 else numbers[0]


def head(phis: Phis, value: Value) -> Value:
    """Phis of a number at the head of a basic block."""
    return joined([phis.head(part) for part in parts(value)])


def names(values: Iterable[Value]) -> list[str]:
    """Registers of numbers."""
    return [name for value in values for part in parts(value) for name in part.names]


def stored_type(dtype: np.dtype[Any]) -> tuple[str, int]:
    """LLVM type and bytes of one real number in memory."""
    if dtype.kind == "b":
        return "i8", 1
    return LLVM_TYPES[kind_of(dtype)], dtype.itemsize // (2 if dtype.kind == "c" else 1)


def load(block: ScalarBlock, dtype: np.dtype[Any], buffer: Pointer, at: Int | int) -> Value:
    """The number at an index of a buffer."""
    llvm, align = stored_type(dtype)
    if dtype.kind == "c":
        first = buffer.element(f"[2 x {llvm}]", at)
        places = [first, first.element(llvm, 1)]
    else:
        places = [buffer.element(llvm, at)]
    read = [place.load(llvm, align) for place in places]
    if dtype.kind == "b":
        return Vec(block, "i8", (read[0],)).differs(0)
    return joined([Vec(block, kind_of(dtype), (name,)) for name in read])


def store(block: ScalarBlock, dtype: np.dtype[Any], buffer: Pointer, at: Int | int, value: Value) -> None:
    """Write a number at an index of a buffer."""
    llvm, align = stored_type(dtype)
    if isinstance(value, Pair):
        first = buffer.element(f"[2 x {llvm}]", at)
        first.store(llvm, value.re.names[0], align)
        first.element(llvm, 1).store(llvm, value.im.names[0], align)
        return
    kept = block.cast("zext", value, "i8") if dtype.kind == "b" else value
    buffer.element(llvm, at).store(llvm, kept.names[0], align)


def write_return(block: ScalarBlock, results: Sequence[Vec]) -> str:
    """End a function with its results; returns its return type."""
    types = [LLVM_TYPES[x.kind] for x in results]
    if not results:
        block.do("ret void")
        return "void"
    if len(results) == 1:
        block.do(f"ret {types[0]} {results[0].names[0]}")
        return types[0]
    whole = f"{{ {', '.join(types)} }}"
    made = "poison"
    for k, (llvm, x) in enumerate(zip(types, results, strict=True)):
        made = block.raw(f"insertvalue {whole} {made}, {llvm} {x.names[0]}, {k}")
    block.do(f"ret {whole} {made}")
    return whole
