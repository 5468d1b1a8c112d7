"""Algebra: laws of arithmetic that hold in floating point, as a table.

A law of `EXACT` preserves every bit, including infinities, NaN (except payloads) and signs of zeros, for the reason
given with it. A law of `ROUNDING` holds for real numbers, and may change the last bit or a sign of zero. No law changes
a derivative, because programs are also differentiated after the passes.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any, Final, NamedTuple

import numpy as np

from tenferro_runtime.ir._program import Equation, Literal, Operand, Program
from tenferro_runtime.passes._kinds import Rearranging, Rounding
from tenferro_runtime.passes._rewriting import Rewriting, Rule, Rules
from tenferro_runtime.passes.common_subexpressions import COMMUTES
from tenferro_tensor import Primitive
from tenferro_tensor import catalog as c


class Hole(NamedTuple):
    """Matches any operand; the same hole matches equal operands."""

    name: str


class Pattern(NamedTuple):
    """A primitive applied to holes, numbers and patterns."""

    primitive: Primitive
    operands: tuple[Any, ...]


class Law(NamedTuple):
    """Replaces `left` by `right` if the dtype of the first array operand is of one of the kinds.

    Attributes:
        left: the pattern.
        right: the replacement.
        kinds: NumPy's kind letters of the dtype of the first array operand.
        why: why the bits stay, or how they change.
    """

    left: Pattern
    right: Hole | Pattern
    kinds: str
    why: str


def _(primitive: Primitive, *operands: Any) -> Pattern:
    return Pattern(primitive, operands)


X, Y, P = Hole("x"), Hole("y"), Hole("p")

EXACT: Final[tuple[Law, ...]] = (
    Law(_(c.mul, X, 1), X, "biuf", "a product with 1 is representable, so that nothing is rounded"),
    Law(_(c.div, X, 1), X, "f", "as a product with 1"),
    Law(_(c.mul, X, -1), _(c.neg, X), "if", "only the sign changes, of zeros and infinities too"),
    Law(_(c.div, X, -1), _(c.neg, X), "f", "as a product with -1"),
    Law(_(c.pow, X, 1), X, "iuf", "IEEE 754 says pow(x, 1) is x"),
    Law(_(c.add, X, -0.0), X, "f", "-0.0 is neutral: -0.0 + -0.0 is -0.0, 0.0 + -0.0 is 0.0; +0.0 is not"),
    Law(_(c.add, X, 0), X, "iu", "integers have one zero"),
    Law(_(c.sub, X, 0), X, "iufc", "-0.0 - 0.0 is -0.0, in each part of a complex number"),
    Law(_(c.sub, 0, X), _(c.neg, X), "iu", "modulo the range; of floats, 0.0 - 0.0 is not -0.0"),
    Law(_(c.add, X, _(c.neg, Y)), _(c.sub, X, Y), "iufc", "IEEE 754 defines x - y as x + (-y)"),
    Law(_(c.sub, X, _(c.neg, Y)), _(c.add, X, Y), "iufc", "the same from the other side"),
    Law(_(c.mul, _(c.neg, X), _(c.neg, Y)), _(c.mul, X, Y), "iufc", "signs multiply apart from magnitudes"),
    Law(_(c.div, _(c.neg, X), _(c.neg, Y)), _(c.div, X, Y), "f", "signs divide apart from magnitudes"),
    Law(_(c.neg, _(c.neg, X)), X, "iufc", "the sign bit is flipped twice"),
    Law(_(c.neg, _(c.sub, X, Y)), _(c.sub, Y, X), "iu", "modulo the range; of floats, -(x - x) is -0.0"),
    Law(_(c.abs, _(c.neg, X)), _(c.abs, X), "ifc", "the sign is dropped; hypot does not see signs"),
    Law(_(c.abs, _(c.conj, X)), _(c.abs, X), "biufc", "hypot does not see signs"),
    Law(_(c.abs, _(c.abs, X)), _(c.abs, X), "biuf", "idempotent"),
    Law(_(c.conj, X), X, "biuf", "real numbers are their own conjugates"),
    Law(_(c.conj, _(c.conj, X)), X, "c", "a sign bit is flipped twice"),
    Law(_(c.real, X), X, "biuf", "real numbers are their own real parts"),
    Law(_(c.real, _(c.complex, X, Y)), X, "c", "a part is copied in and out"),
    Law(_(c.imag, _(c.complex, X, Y)), Y, "c", "a part is copied in and out"),
    Law(_(c.real, _(c.conj, X)), _(c.real, X), "c", "the real part is not touched"),
    Law(_(c.imag, _(c.conj, X)), _(c.neg, _(c.imag, X)), "c", "the definition"),
    Law(_(c.complex, _(c.real, X), _(c.imag, X)), X, "f", "both parts are copied"),
    Law(_(c.select, P, X, X), X, "b", "both branches are one"),
    Law(_(c.select, True, X, Y), X, "b", "the branch is known"),
    Law(_(c.select, False, X, Y), Y, "b", "the branch is known"),
    Law(_(c.select, _(c.bitwise_not, P), X, Y), _(c.select, P, Y, X), "b", "the branches change places"),
    Law(_(c.maximum, X, X), X, "biuf", "idempotent, NaN included"),
    Law(_(c.minimum, X, X), X, "biuf", "idempotent, NaN included"),
    Law(_(c.floor, X), X, "biu", "integers are unchanged"),
    Law(_(c.ceil, X), X, "biu", "integers are unchanged"),
    Law(_(c.trunc, X), X, "biu", "integers are unchanged"),
    Law(_(c.round, X), X, "biu", "integers are unchanged"),
    Law(_(c.floor, _(c.floor, X)), _(c.floor, X), "f", "idempotent"),
    Law(_(c.ceil, _(c.ceil, X)), _(c.ceil, X), "f", "idempotent"),
    Law(_(c.trunc, _(c.trunc, X)), _(c.trunc, X), "f", "idempotent"),
    Law(_(c.round, _(c.round, X)), _(c.round, X), "fc", "idempotent"),
    Law(_(c.sign, _(c.sign, X)), _(c.sign, X), "iuf", "idempotent; of complex numbers, sign rounds again"),
    Law(_(c.bitwise_not, _(c.bitwise_not, X)), X, "biu", "every bit is flipped twice"),
    Law(_(c.bitwise_and, X, X), X, "biu", "idempotent"),
    Law(_(c.bitwise_or, X, X), X, "biu", "idempotent"),
    Law(_(c.bitwise_and, X, True), X, "b", "neutral"),
    Law(_(c.bitwise_or, X, False), X, "b", "neutral"),
    Law(_(c.bitwise_not, _(c.eq, X, Y)), _(c.ne, X, Y), "b", "the definition, NaN included; < and >= are no such pair"),
    Law(_(c.bitwise_not, _(c.ne, X, Y)), _(c.eq, X, Y), "b", "the definition, NaN included"),
)  # fmt: skip

ROUNDING: Final[tuple[Law, ...]] = (
    Law(_(c.mul, X, 1), X, "c", "(a + bi)(1 + 0i) has 0 * b in it: signs of zeros change, and NaN of infinities"),
    Law(_(c.div, X, 1), X, "c", "as a product with 1"),
    Law(_(c.mul, X, -1), _(c.neg, X), "c", "as a product with 1"),
    Law(_(c.pow, X, 2), _(c.mul, X, X), "iufc", "pow is off by less than a unit, the product by half of one"),
)


@Rearranging
def simplify(program: Program) -> Program:
    """Apply the laws that preserve every bit.

    Args:
        program: the program.

    Returns:
        The rewritten program.
    """
    return Rewriting(program, _EXACT_RULES).run()


@Rounding
def simplify_rounding(program: Program) -> Program:
    """Apply the laws that may change the last bit.

    Args:
        program: the program.

    Returns:
        The rewritten program.
    """
    return Rewriting(program, _ROUNDING_RULES).run()


def _rule(laws: tuple[Law, ...]) -> Rule:
    """The rule that applies the first matching law of one primitive."""

    def apply(work: Rewriting, eq: Equation) -> int | None:
        for v in eq.operands:
            if v.__class__ is int:
                kind = work.specs[v].dtype.kind
                break
        for law in laws:
            if kind in law.kinds:
                holes: dict[Hole, Operand] = {}
                if _matches(work, law.left.operands, eq.operands, holes):
                    found = _built(work, law.right, holes, eq)
                    if found is not None:
                        return found
        return None

    return apply


def _matches(work: Rewriting, wanted: tuple[Any, ...], operands: tuple[Operand, ...], holes: dict[Hole, Any]) -> bool:
    for pattern, v in zip(wanted, operands, strict=True):
        if pattern.__class__ is Hole:
            if holes.setdefault(pattern, v) != v:
                return False
        elif pattern.__class__ is Pattern:
            eq = work.maker(v, pattern.primitive)
            if eq is None or not _matches(work, pattern.operands, eq.operands, holes):
                return False
        elif not _is_number(work.number(v), pattern):
            return False
    return True


def _is_number(value: Any, pattern: complex) -> bool:
    """Whether two numbers are equal, including signs of zeros."""
    if value is None or value != pattern:
        return False
    x, y = complex(value), complex(pattern)
    return math.copysign(1, x.real) == math.copysign(1, y.real) and math.copysign(1, x.imag) == math.copysign(1, y.imag)


def _built(work: Rewriting, right: Hole | Pattern, holes: dict[Hole, Any], eq: Equation) -> int | None:
    """Build the right-hand side; the law applies only if all its values have the spec of the left-hand side."""
    spec = work.specs[eq.results[0]]
    if isinstance(right, Hole):
        v = holes[right]
        return v if v.__class__ is int and work.specs[v] is spec else None
    operands: list[Operand] = []
    for o in right.operands:
        v = holes[o] if isinstance(o, Hole) else _built(work, o, holes, eq)
        if v is None:
            return None
        operands.append(v)
    if all(isinstance(v, Literal) for v in operands):
        return None
    return work.emit(right.primitive.op(), operands, spec, eq.source)


def _division_by_power_of_two(work: Rewriting, eq: Equation) -> int | None:
    """``x / c`` is ``x * (1 / c)`` to the bit where ``1 / c`` is exact: both round the same real number."""
    spec = work.specs[eq.results[0]]
    value = work.number(eq.operands[1])
    if spec.dtype.kind != "f" or eq.operands[0].__class__ is not int or value.__class__ not in (int, float):
        return None
    if not math.isfinite(value) or not value:
        return None
    info = np.finfo(spec.dtype)
    fraction, _exponent = math.frexp(value)
    inverse = 1 / value
    if abs(fraction) != 0.5 or not float(info.tiny) <= abs(inverse) <= float(info.max) or abs(value) < float(info.tiny):
        return None
    return work.emit(c.mul.op(), (eq.operands[0], Literal(inverse)), spec, eq.source)


def _nothing_absorbs(work: Rewriting, eq: Equation) -> int | None:
    """With a nonzero first factor, the operation is an ordinary product."""
    value, spec = work.number(eq.operands[0]), work.specs[eq.results[0]]
    if value is None or value == 0 or eq.operands[1].__class__ is not int or spec.dtype.kind != "f":
        return None
    if value == 1 and work.specs[eq.operands[1]] is spec:
        return eq.operands[1]
    return work.emit(c.mul.op(), eq.operands, spec, eq.source)


def _table(laws: Iterable[Law]) -> dict[Primitive, tuple[Rule, ...]]:
    table: dict[Primitive, list[Law]] = {}
    for law in laws:
        known = table.setdefault(law.left.primitive, [])
        known.append(law)
        first, *rest = law.left.operands
        if law.left.primitive in COMMUTES and first.__class__ is not rest[0].__class__:
            known.append(law._replace(left=Pattern(law.left.primitive, (*rest, first))))
    return {primitive: (_rule(tuple(known)),) for primitive, known in table.items()}


_EXACT: Final[Mapping[Primitive, tuple[Rule, ...]]] = _table(EXACT)
_EXACT_RULES: Final[Rules] = {
    **_EXACT,
    c.div: (*_EXACT[c.div], _division_by_power_of_two),
    c.absorbing_mul: (_nothing_absorbs,),
}
_ROUNDING_RULES: Final[Rules] = _table(ROUNDING)
