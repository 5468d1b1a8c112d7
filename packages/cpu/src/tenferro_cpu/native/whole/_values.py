"""Numbers in registers and in memory: a complex one is two, a boolean one a bit in a register and a byte in memory."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from tenferro_cpu.native.builder import LLVM_TYPES, Int, Phis, Pointer, ScalarBlock, Vec
from tenferro_cpu.native.operations._ops import apply, rule_for
from tenferro_cpu.native.operations._value import Pair, Value, kind_of, literal
from tenferro_tensor import Op
from tenferro_tensor.device_model import Apply, Literal, expansion
from tenferro_tensor_core import UnsupportedError


def parts(value: Value) -> tuple[Vec, ...]:
    """The real numbers that make a number."""
    return (value.re, value.im) if isinstance(value, Pair) else (value,)


def joined(numbers: Sequence[Vec]) -> Value:
    """The number of these `parts`."""
    return Pair(*numbers) if len(numbers) == 2 else numbers[0]


def head(phis: Phis, value: Value) -> Value:
    """The number in registers of its own, at the head of a basic block."""
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


def applied(
    block: ScalarBlock, op: Op, operands: Sequence[np.dtype[Any] | Literal], out: np.dtype[Any], args: Sequence[Value]
) -> Value:
    """One application of an element-wise op, written out in simpler ones where it has no form of its own.

    Args:
        block: where.
        op: what is applied.
        operands: the dtype of each operand, or the number where it is a literal.
        out: dtype of the result.
        args: the operands.

    Raises:
        UnsupportedError: this processor has no form of it.
    """
    dtypes = tuple([o.dtype if isinstance(o, Literal) else o for o in operands])
    if rule_for(op.primitive, dtypes, block.fused) is not None:
        return apply(block, op, dtypes, out, *args)
    simpler = expansion(op, *operands)
    if simpler is None:
        shown = ", ".join([d.name for d in dtypes])
        raise UnsupportedError(
            f"{op!r} of {shown} has no native form on this CPU, so the program cannot be one native function; "
            "it runs step by step",
            primitive=op.primitive.name,
            dtypes=shown,
        )
    values = list(args)
    for line, dtype in zip(simpler.lines, simpler.dtypes[len(args) :], strict=True):
        if isinstance(line, Apply):
            inner = [simpler.dtypes[i] for i in line.args]
            values.append(applied(block, line.op, inner, dtype, [values[i] for i in line.args]))
        else:
            values.append(literal(block, line.value, dtype))
    return values[simpler.outputs[0]]
