"""The native forms of primitives.

A real value is a `Vec`, a complex one a `Pair`, a boolean one a mask. Every element-wise primitive is in these tables
for each dtype that it supports, or in `RESERVED` with the reason.
"""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType
from typing import Any, Final

import numpy as np

from tenferro_cpu.native._host import Host
from tenferro_cpu.native.codegen.builder import Block, Vec
from tenferro_cpu.native.codegen.operations import (
    _arithmetic,
    _bits,
    _comparison,
    _convert,
    _division,
    _math,
    _math_circular,
    _math_complex,
    _math_erf,
    _math_power,
    _narrow,
)
from tenferro_cpu.native.codegen.operations._value import OpContext, Pair, Rule, Value, literal, real
from tenferro_tensor import Op, Primitive
from tenferro_tensor.catalog import analytic, arithmetic, bits, comparison, numbers
from tenferro_tensor.loop_ir import WRITTEN_OUT, Literal, expansion
from tenferro_tensor.loop_ir import Value as Operand
from tenferro_tensor_core import is_narrow


def _conj(context: OpContext, x: Value) -> Value:
    return Pair(x.re, -x.im) if isinstance(x, Pair) else x


def _real_part(context: OpContext, x: Value) -> Value:
    return x.re if isinstance(x, Pair) else x


def _imaginary_part(context: OpContext, x: Value) -> Value:
    return x.im if isinstance(x, Pair) else x.like(0)


def _same(context: OpContext, x: Value) -> Value:
    return x


def _nextafter(context: OpContext, x: Vec, y: Vec) -> Value:
    return _narrow.nextafter(context, x, y) if is_narrow(context.dtype) else _arithmetic.nextafter(context, x, y)


# Kinds of dtype for which a rule holds, as NumPy's letters and "n" for narrow floats, and the rule.
RULES: dict[Primitive, tuple[str, Rule]] = {
    arithmetic.add: ("biufc", _arithmetic.logical_or(_arithmetic.parts(lambda x, y: x + y), lambda x, y: x | y)),
    arithmetic.sub: ("iufc", _arithmetic.parts(lambda x, y: x - y)),
    arithmetic.mul: ("biufc", _arithmetic.logical_or(_arithmetic.mul, lambda x, y: x & y)),
    arithmetic.absorbing_mul: ("biufc", _arithmetic.absorbing_mul),
    arithmetic.div: ("fc", _arithmetic.div),
    arithmetic.floor_divide: ("iu", _division.floor_divide),
    arithmetic.remainder: ("iu", _division.remainder),
    arithmetic.fmod: ("iu", _division.fmod),
    arithmetic.neg: ("iufc", _arithmetic.parts(lambda x: -x)),
    arithmetic.abs: ("biuf", _arithmetic.magnitude),
    arithmetic.sign: ("iuf", _arithmetic.sign),
    arithmetic.maximum: ("biuf", _arithmetic.larger),
    arithmetic.minimum: ("biuf", _arithmetic.smaller),
    arithmetic.clamp: ("biuf", _arithmetic.clamp),
    arithmetic.copysign: ("f", real(_math.with_sign)),
    arithmetic.nextafter: ("fn", _nextafter),
    arithmetic.floor: ("biuf", _arithmetic.whole("floor")),
    arithmetic.ceil: ("biuf", _arithmetic.whole("ceil")),
    arithmetic.trunc: ("biuf", _arithmetic.whole("trunc")),
    arithmetic.round: ("biufc", _arithmetic.whole("roundeven")),
    numbers.conj: ("biufcn", _conj),
    numbers.real: ("biufcn", _real_part),
    numbers.imag: ("biufcn", _imaginary_part),
    numbers.complex: ("f", lambda context, re, im: Pair(re, im)),
    numbers.convert: ("biufcn", _convert.convert),
    numbers.stop_gradient: ("biufcn", _same),
    comparison.eq: ("biufc", _comparison.eq),
    comparison.ne: ("biufc", _comparison.ne),
    comparison.lt: ("biuf", _comparison.comparison("olt", "slt")),
    comparison.le: ("biuf", _comparison.comparison("ole", "sle")),
    comparison.gt: ("biuf", _comparison.comparison("ogt", "sgt")),
    comparison.ge: ("biuf", _comparison.comparison("oge", "sge")),
    comparison.is_nan: ("biufc", _comparison.is_nan),
    comparison.is_inf: ("biufc", _comparison.is_inf),
    comparison.is_finite: ("biufc", _comparison.is_finite),
    comparison.signbit: ("f", _comparison.signbit),
    comparison.select: ("biufcn", _comparison.select),
    bits.bitwise_and: ("biu", real(lambda x, y: x & y)),
    bits.bitwise_or: ("biu", real(lambda x, y: x | y)),
    bits.bitwise_xor: ("biu", real(lambda x, y: x ^ y)),
    bits.bitwise_not: ("biu", real(lambda x: ~x)),
    bits.shift_left: ("iu", _bits.shift(True)),
    bits.shift_right: ("iu", _bits.shift(False)),
    bits.population_count: ("iu", _bits.population),
    analytic.sqrt: ("f", real(_math.sqrt)),
    analytic.rsqrt: ("f", _arithmetic.rsqrt),
}


def _library(kind: str, wrap: Callable[[Any], Rule], *modules: ModuleType) -> dict[Primitive, tuple[str, Rule]]:
    """The functions of modules that are named as analytic primitives; a name stands for the first module with it."""
    return {
        p: (kind, wrap(getattr(module, p.name)))
        for module in reversed(modules)
        for p in vars(analytic).values()
        if isinstance(p, Primitive) and hasattr(module, p.name) and kind not in RULES.get(p, ("",))[0]
    }


def _written_out(primitive: Primitive) -> Rule:
    """The statements of `loop_ir.expansion` as a rule."""

    def rule(context: OpContext, *xs: Vec, **params: Any) -> Value:
        simpler = expansion(primitive.op(**params), *[context.dtype] * len(xs))
        assert simpler is not None
        values: dict[int, Any] = {reg.number: x for reg, x in zip(simpler.args, xs, strict=True)}

        def value(of: Operand) -> Value:
            return literal(context.block, of.value, of.dtype) if isinstance(of, Literal) else values[of.number]

        for s in simpler.body:
            dtypes = tuple([a.dtype for a in s.args])
            values[s.result.number] = apply(context.block, s.op, dtypes, s.result.dtype, *map(value, s.args))
        return value(simpler.result)

    return rule


_SPECIAL: Final = "kernels write it out (`loop_ir.expansion`); SciPy's serves one by one, closer at the zeros"
_NEGATIVE: Final = "a negative exponent is an error, which a kernel cannot raise; known powers are written out"

RESERVED: Final[dict[Primitive, dict[str, str]]] = {
    arithmetic.pow: {"iu": _NEGATIVE},
    analytic.erfinv: {"f": _SPECIAL},
    analytic.lgamma: {"f": _SPECIAL},
    analytic.digamma: {"f": _SPECIAL},
    analytic.polygamma: {"f": _SPECIAL},
}
"""Kinds of dtype left to the reference kernels on purpose, with the reason."""

# The inline library is written for fused multiply-add.
FUSED_RULES: dict[Primitive, tuple[str, Rule]] = {
    **{p: ("f", _written_out(p)) for p in WRITTEN_OUT if p not in RESERVED},
    **_library("f", real, _math, _math_circular, _math_power, _math_erf),
    arithmetic.pow: ("f", real(_math_power.power)),
    arithmetic.floor_divide: ("f", _division.floor_divide),
    arithmetic.remainder: ("f", _division.remainder),
    arithmetic.fmod: ("f", _division.fmod),
}  # fmt: skip

# So are the functions of complex numbers.
COMPLEX_RULES: dict[Primitive, tuple[str, Rule]] = {
    **_library("c", _math_complex.wide, _math_complex),
    analytic.rsqrt: ("c", _math_complex.rsqrt),
    arithmetic.pow: ("c", _math_complex.power),
    arithmetic.abs: ("c", _arithmetic.magnitude),
    arithmetic.sign: ("c", _arithmetic.sign),
}  # fmt: skip


def rule_for(primitive: Primitive, dtypes: tuple[np.dtype[Any], ...], fused: bool) -> Rule | None:
    """The rule of a primitive for operands of these dtypes, or None if the reference must run.

    Args:
        primitive: the primitive.
        dtypes: dtypes of its operands.
        fused: whether the processor has fused multiply-add.
    """
    ruled = next((d for i, d in enumerate(dtypes) if i != primitive.chooser), None)
    for table in (RULES, FUSED_RULES, COMPLEX_RULES) if fused else (RULES,):
        kinds, rule = table.get(primitive, ("", None))
        if ruled is not None and ("n" if is_narrow(ruled) else ruled.kind) in kinds:
            return rule
    return None


def supported(primitive: Primitive, dtypes: tuple[np.dtype[Any], ...], host: Host) -> bool:
    """Whether a primitive has a native form for operands of these dtypes on a processor."""
    return rule_for(primitive, dtypes, host.level != "generic") is not None


def apply(block: Block, op: Op, dtypes: tuple[np.dtype[Any], ...], out: np.dtype[Any], *args: Value) -> Value:
    """The native form of one application; check `rule_for` first."""
    ruled = next(d for i, d in enumerate(dtypes) if i != op.primitive.chooser)
    rule = rule_for(op.primitive, dtypes, block.fused)
    assert rule is not None
    return rule(OpContext(block, ruled, out), *args, **op.params)
