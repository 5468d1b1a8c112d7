"""Rules of comparison, classification and selection."""

from __future__ import annotations

import math
from collections.abc import Callable

from tenferro_cpu.native.codegen.builder import Vec
from tenferro_cpu.native.codegen.operations import _math
from tenferro_cpu.native.codegen.operations._arithmetic import order
from tenferro_cpu.native.codegen.operations._value import OpContext, Pair, Rule, Value


def comparison(floating: str, signed: str) -> Rule:
    """An order, by LLVM's predicates."""

    def rule(context: OpContext, x: Vec, y: Vec) -> Value:
        if context.dtype.kind == "b":
            return x.compare("?", signed.replace("s", "u", 1), y)
        return order(context, x, floating, signed, y)

    return rule


def eq(context: OpContext, x: Value, y: Value) -> Value:
    if isinstance(x, Pair):
        assert isinstance(y, Pair)
        return x.re.equals(y.re) & x.im.equals(y.im)
    return x.equals(y)  # type: ignore[arg-type]


def ne(context: OpContext, x: Value, y: Value) -> Value:
    if isinstance(x, Pair):
        assert isinstance(y, Pair)
        return x.re.differs(y.re) | x.im.differs(y.im)
    return x.differs(y)  # type: ignore[arg-type]


def _class(test: Callable[[Vec], Vec], join: str, whole: bool) -> Rule:
    """A classification of floating-point numbers; for integers the result is `whole`."""

    def rule(context: OpContext, x: Value) -> Value:
        if isinstance(x, Pair):
            a, b = test(x.re), test(x.im)
            return a & b if join == "and" else a | b
        if context.dtype.kind == "f":
            return test(x)
        return context.block.splat("i1", whole)

    return rule


def _is_inf(x: Vec) -> Vec:
    return _math.absolute(x).equals(math.inf)


def _is_finite(x: Vec) -> Vec:
    return _math.absolute(x) < math.inf


is_nan = _class(lambda x: x.is_nan, "or", False)
is_inf = _class(_is_inf, "or", False)
is_finite = _class(_is_finite, "and", True)


def signbit(context: OpContext, x: Vec) -> Value:
    return x.bits < 0


def select(context: OpContext, pred: Vec, x: Value, y: Value) -> Value:
    if isinstance(x, Pair) and isinstance(y, Pair):
        return Pair(context.block.where(pred, x.re, y.re), context.block.where(pred, x.im, y.im))
    return context.block.where(pred, x, y)  # type: ignore[arg-type]
