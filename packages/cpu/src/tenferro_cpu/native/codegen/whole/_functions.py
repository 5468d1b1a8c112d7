"""Mathematics on single numbers: a private function for each op, defined once per module.

Bit-equal to the vector kernels: where those look numbers up in vector registers, the function fills one.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any, Final

import numpy as np

from tenferro_cpu.native.codegen.builder import BITS, LLVM_TYPES, Block, Module, ScalarBlock, Vec
from tenferro_cpu.native.codegen.operations._ops import COMPLEX_RULES, FUSED_RULES, apply, rule_for
from tenferro_cpu.native.codegen.operations._value import Pair, Value, kind_of, literal
from tenferro_cpu.native.codegen.whole._values import joined, parts
from tenferro_tensor import Op
from tenferro_tensor.loop_ir import Literal, expansion
from tenferro_tensor.loop_ir import Value as Number
from tenferro_tensor_core import UnsupportedError

WIDE_BITS: Final = 512
"""Bits of the vectors whose functions use table lookups (AVX-512)."""

DTypes = tuple[np.dtype[Any], ...]


def applied(
    block: ScalarBlock, op: Op, operands: Sequence[np.dtype[Any] | Literal], out: np.dtype[Any], args: Sequence[Value]
) -> Value:
    """One application of an element-wise op, decomposed into simpler ones if it has no native form.

    Args:
        block: where to write.
        op: the op.
        operands: the dtype of each operand, or the number if it is a literal.
        out: dtype of the result.
        args: the operands.

    Raises:
        UnsupportedError: it has no form on this processor.
    """
    dtypes = tuple([o.dtype if isinstance(o, Literal) else o for o in operands])
    if rule_for(op.primitive, dtypes, block.fused) is not None:
        return (called if is_function(op, dtypes) else apply)(block, op, dtypes, out, *args)
    simpler = expansion(op, *operands)
    if simpler is None:
        shown = ", ".join([d.name for d in dtypes])
        raise UnsupportedError(
            f"{op!r} of {shown} has no native form on this CPU, so the program cannot be one native function; "
            "it runs step by step",
            primitive=op.primitive.name,
            dtypes=shown,
        )
    values = {reg.number: x for reg, x in zip(simpler.args, args, strict=True)}

    def value(of: Number) -> Value:
        return literal(block, of.value, of.dtype) if isinstance(of, Literal) else values[of.number]

    for s in simpler.body:
        inner = [a if isinstance(a, Literal) else a.dtype for a in s.args]
        values[s.result.number] = applied(block, s.op, inner, s.result.dtype, [value(a) for a in s.args])
    return value(simpler.result)


def is_function(op: Op, dtypes: DTypes) -> bool:
    """Whether an op is written as a separate function."""
    return any(dtypes[0].kind in table.get(op.primitive, ("",))[0] for table in (FUSED_RULES, COMPLEX_RULES))


@lru_cache(1024)
def looks_up(op: Op, dtypes: DTypes, out: np.dtype[Any]) -> bool:
    """Whether the bits of an op come from tables in vector registers on processors that have them."""
    forms = []
    for tables in (False, True):
        block = Block(Module(), WIDE_BITS // BITS[kind_of(dtypes[0])], tables=tables)
        args = [_value(block, dtype, k) for k, dtype in enumerate(dtypes)]
        apply(block, op, dtypes, out, *args)
        forms.append(block.lines)
    return forms[0] != forms[1]


def _value(block: Block, dtype: np.dtype[Any], number: int) -> Value:
    kind = kind_of(dtype)
    if dtype.kind == "c":
        return Pair(Vec(block, kind, (f"%x{number}",)), Vec(block, kind, (f"%y{number}",)))
    return Vec(block, kind, (f"%x{number}",))


def called(block: ScalarBlock, op: Op, dtypes: DTypes, out: np.dtype[Any], *args: Value) -> Value:
    """The result of a function, which is defined when it is first called."""
    given = [part for arg in args for part in parts(arg)]
    kinds = [kind_of(out)] * (2 if out.kind == "c" else 1)
    types = [LLVM_TYPES[kind] for kind in kinds]
    returned = types[0] if len(types) == 1 else f"{{ {', '.join(types)} }}"
    name = f'"{op!r} {" ".join([d.name for d in dtypes])}"'
    block.module.require(f"function {name}", lambda: _definition(block, name, returned, op, dtypes, out))
    typed = ", ".join([f"{LLVM_TYPES[x.kind]} {x.names[0]}" for x in given])
    found = block.raw(f"call {returned} @{name}({typed})")
    if len(kinds) == 1:
        return Vec(block, kinds[0], (found,))
    split = [block.raw(f"extractvalue {returned} {found}, {k}") for k in range(2)]
    return Pair(*[Vec(block, kinds[0], (name,)) for name in split])


def _definition(caller: ScalarBlock, name: str, returned: str, op: Op, dtypes: DTypes, out: np.dtype[Any]) -> str:
    block: Block
    if caller.lookups and looks_up(op, dtypes, out):
        block = Block(caller.module, WIDE_BITS // BITS[kind_of(dtypes[0])], fused=caller.fused, tables=True)
    else:
        block = ScalarBlock(caller.module, caller.fused, caller.lookups)
    block.begin("entry")
    names, args = [], []
    for k, dtype in enumerate(dtypes):
        value = _value(block, dtype, k)
        names += [f"{LLVM_TYPES[x.kind]} {x.names[0]}" for x in parts(value)]
        wide = [block.repeated(x.kind, LLVM_TYPES[x.kind], x.names[0]) for x in parts(value)]
        args.append(joined(wide))
    results = [(LLVM_TYPES[x.kind], block.first_lane(x)) for x in parts(apply(block, op, dtypes, out, *args))]
    if len(results) == 1:
        block.do(f"ret {results[0][0]} {results[0][1]}")
    else:
        whole = "poison"
        for k, (llvm, x) in enumerate(results):
            whole = block.raw(f"insertvalue {returned} {whole}, {llvm} {x}, {k}")
        block.do(f"ret {returned} {whole}")
    wide_registers = (
        f'"min-legal-vector-width"="{WIDE_BITS}" "prefer-vector-width"="{WIDE_BITS}"' if block.tables else ""
    )
    head = f"define private {returned} @{name}({', '.join(names)}) noinline nounwind willreturn memory(none)"
    return "\n".join([f"{head} {wide_registers} {{", *block.lines, "}"])
