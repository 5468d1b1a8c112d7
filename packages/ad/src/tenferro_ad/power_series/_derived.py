"""Recurrences derived from linear primitives and from derivative rules."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count
from typing import Any, NamedTuple

from tenferro_ad._apply import CallSite, apply_jvp
from tenferro_ad._differentiated import running
from tenferro_ad._dual import Dual, jvp_rule_of
from tenferro_ad._rules import missing_operand, operand_name
from tenferro_ad._zeros import zeros_like
from tenferro_ad.power_series._coefficients import Coefficients, Term, derivative, over, total
from tenferro_ad.power_series._series import Series, coefficients_of, series
from tenferro_runtime.extension import General, Linear, Slopes
from tenferro_tensor import Op, next_level
from tenferro_tensor_core import GradientError

Terms = list[Coefficients]


class Recurrence(NamedTuple):
    """A generator of coefficients of one output, or, unless `outputs` is ``None``, of tuples for that many outputs."""

    terms: Iterator[Any]
    outputs: int | None


def linear(op: Op, rule: Linear, xs: Terms, need: tuple[int, ...]) -> Iterator[Term]:
    """The op on each coefficient; Cauchy products where it is linear in each of several operands."""
    _require_operands(op, rule, need)
    values = [x[0] for x in xs]
    first = op(*values)
    if isinstance(first, tuple):
        CallSite(op, rule, need, tuple([v.spec for v in values]))  # raises, because Linear rules have one output
    yield first
    if rule.joint or len(need) == 1:
        named = [
            i for i in range(len(xs)) if i in need or (rule.joint and operand_name(op.primitive, i) in rule.operands)
        ]
        for k in count(1):
            yield _jointly(op, xs, values, named, k)
    for k in count(1):
        yield total([_product(op, xs, values, need, parts) for parts in _compositions(k, len(need))])


def _require_operands(op: Op, rule: Linear | Slopes, need: tuple[int, ...]) -> None:
    for i in need:
        if operand_name(op.primitive, i) not in rule.operands:
            raise missing_operand(op, operand_name(op.primitive, i))


def _jointly(op: Op, xs: Terms, values: list[Any], named: list[int], k: int) -> Term:
    terms = {i: xs[i][k] for i in named}
    if all(t is None for t in terms.values()):
        return None
    return op(*[a if i not in terms else _zero(a) if terms[i] is None else terms[i] for i, a in enumerate(values)])


def _zero(a: Any) -> Any:
    return zeros_like(a) if hasattr(a, "spec") else 0


def _compositions(k: int, parts: int) -> Iterator[tuple[int, ...]]:
    """All ways to write `k` as a sum of `parts` non-negative integers."""
    if parts == 1:
        yield (k,)
        return
    for first in range(k + 1):
        for rest in _compositions(k - first, parts - 1):
            yield (first, *rest)


def _product(op: Op, xs: Terms, values: list[Any], need: tuple[int, ...], parts: tuple[int, ...]) -> Term:
    terms = dict(zip(need, [xs[i][j] for i, j in zip(need, parts, strict=True)], strict=True))
    if any(t is None for t in terms.values()):
        return None
    return op(*[terms.get(i, a) for i, a in enumerate(values)])


def constant_slopes(op: Op, rule: Slopes, xs: Terms, need: tuple[int, ...]) -> Iterator[Term]:
    """Multiples of the coefficients by the constant derivatives of an elementwise op."""
    first = op(*[x[0] for x in xs])
    yield first
    _require_operands(op, rule, need)
    numbers = [(i, rule.operands[operand_name(op.primitive, i)]) for i in need]
    for k in count(1):
        yield total([_multiple(xs[i][k], n) for i, n in numbers if n != 0])


def _multiple(x: Term, n: Any) -> Term:
    return x if x is None or n == 1 else -x if n == -1 else x * n


def solved(op: Op, site: CallSite, xs: Terms, need: tuple[int, ...]) -> Iterator[Any]:
    """The recurrence of a derivative rule: coefficient k of ``y' = J(x, y) x'`` determines coefficient k + 1 of y.

    The rule runs once, on lazy series of a new level; y is one of its operands, with the coefficients found so far.
    """
    values = [x[0] for x in xs]
    outs, slopes = _start(op, site, xs, values, need)
    yield tuple(outs) if site.many else outs[0]
    ys = [Coefficients([y], source=_Unknown()) for y in outs]
    if slopes is not None:
        yield _appended(site, ys, slopes)
    pushed, level = _pushed(site, xs, ys, need)
    for k in count(1 if slopes is None else 2):
        yield _appended(site, ys, [over(_coefficient(t, level, k - 1), k) for t in pushed])


def _appended(site: CallSite, ys: Terms, terms: list[Term]) -> Any:
    for y, term in zip(ys, terms, strict=True):
        y.terms.append(term)
    return tuple(terms) if site.many else terms[0]


def _start(op: Op, site: CallSite, xs: Terms, values: list[Any], need: tuple[int, ...]) -> tuple[list[Any], Any]:
    """The outputs, and their first coefficients if the rule computes both together."""
    if isinstance(site.rule, General) and site.rule.forward is not None:
        tangents = [zeros_like(values[i]) if xs[i][1] is None else xs[i][1] for i in need]
        return apply_jvp(site, values, tangents, None)
    out = op(*values)
    return list(out) if site.many else [out], None


def _pushed(site: CallSite, xs: Terms, ys: Terms, need: tuple[int, ...]) -> tuple[list[Any], int]:
    """The derivatives of the outputs as series of a new level."""
    level = next_level()
    ins = [series(x, level) if i in need else x[0] for i, x in enumerate(xs)]
    tangents = [_slope(xs[i], level) for i in need]
    outs = [series(y, level) if y[0].spec.inexact else y[0] for y in ys]
    return running(level, apply_jvp, site, ins, tangents, outs)[1], level


def _slope(x: Coefficients, level: int) -> Series:
    found = derivative(x)
    if found[0] is None:
        found.terms[0] = zeros_like(x[0])
    return series(found, level)


def _coefficient(t: Any, level: int, k: int) -> Term:
    if t is None:
        return None
    terms = coefficients_of(t, level)
    return (t if k == 0 else None) if terms is None else terms[k]


def pushed(op: Op, xs: Terms, need: tuple[int, ...]) -> Recurrence:
    """The recurrence of a primitive with its own forward-mode function, which calls the primitive on series.

    So each order nests one more call of that function.
    """
    values = [x[0] for x in xs]
    outs = op(*values)
    level = next_level()

    def terms() -> Iterator[Any]:
        yield outs
        inner = next_level()
        ins = [series(x, level) if i in need else x[0] for i, x in enumerate(xs)]
        tangents = [_slope(xs[i], level) for i in need]
        rule = jvp_rule_of(op.primitive)
        assert rule is not None, "the primitive has its own forward-mode function"
        found = running(inner, rule, op, inner, ins, need, tangents)
        moved = [z.tangent if z.__class__ is Dual and z.level == inner else None for z in found]
        for k in count(1):
            yield tuple([over(_coefficient(t, level, k - 1), k) for t in moved])

    return Recurrence(terms(), len(outs))


class _Unknown:
    """The source of a result that is being solved for: a rule may only read coefficients that are known."""

    def advance(self) -> None:
        """Raise."""
        raise GradientError("a derivative rule reads a coefficient of its own output that is not yet known")
