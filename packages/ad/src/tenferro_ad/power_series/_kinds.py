"""Selects the Taylor rule of a primitive, and makes its recurrence."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, Final

from tenferro_ad._apply import CallSite
from tenferro_ad._dual import jvp_rule_of
from tenferro_ad._rules import rule_of
from tenferro_ad.power_series._coefficients import Coefficients
from tenferro_ad.power_series._derived import Recurrence, constant_slopes, linear, pushed, solved
from tenferro_ad.power_series.rules import RULES
from tenferro_runtime.extension import REGISTRY, Inactive, Linear, Slopes
from tenferro_runtime.tracing.expanding import apply_expansion, has_expansion
from tenferro_tensor import Op, Primitive
from tenferro_tensor.promotion import describe

DIRECT: Final[dict[Primitive, Callable[[Op, tuple[Any, ...]], Callable[[], Any] | None]]] = {}
"""Primitives with programs as metadata: ``DIRECT[p](op, operands)`` returns a function that runs them on series."""

PROGRAMS: Final[dict[Primitive, Callable[[Op, list[Coefficients], tuple[int, ...]], Recurrence]]] = {}
"""Primitives with programs as metadata: recurrences that run programs of coefficients."""


def _registered(p: Primitive) -> Any:
    found = REGISTRY.find("taylor", p)
    return RULES.get(p) if found is None else found


def _expands(p: Primitive) -> bool:
    """Whether a primitive's expansion is its Taylor rule."""
    return (
        _registered(p) is None
        and p not in PROGRAMS
        and jvp_rule_of(p) is None
        and REGISTRY.find("rule", p) is None
        and p.family is not None
        and has_expansion(p)
    )


def directly(op: Op, operands: tuple[Any, ...]) -> Callable[[], Any] | None:
    """A function that computes the results by other ops on the same series, or ``None``."""
    make = DIRECT.get(op.primitive)
    if make is not None:
        return make(op, operands)
    return partial(_by_expansion, op, operands) if _expands(op.primitive) else None


def _by_expansion(op: Op, operands: tuple[Any, ...]) -> Any:
    outs = apply_expansion(op, operands)
    return outs if isinstance(op.infer(*[a.spec for a in operands]), tuple) else outs[0]


def recurrence_of(op: Op, xs: list[Coefficients], need: tuple[int, ...]) -> Recurrence | None:
    """The recurrence of an op whose operands at `need` are series; ``None`` for a constant result."""
    p = op.primitive
    program = PROGRAMS.get(p)
    if program is not None:
        return program(op, xs, need)
    own = _registered(p)
    if own is not None:
        out = None if p.elementwise else op.infer(*_specs(xs))
        return Recurrence(own(*xs, **op.params), len(out) if isinstance(out, tuple) else None)
    if jvp_rule_of(p) is not None:
        return pushed(op, xs, need)
    rule = rule_of(op)
    if isinstance(rule, Inactive):
        return None
    if isinstance(rule, Linear):
        return Recurrence(linear(op, rule, xs, need), None)
    if isinstance(rule, Slopes) and not any(map(callable, rule.operands.values())):
        return Recurrence(constant_slopes(op, rule, xs, need), None)
    site = CallSite(op, rule, need, _specs(xs))
    if not site.active:
        return None
    return Recurrence(solved(op, site, xs, need), len(site.outs) if site.many else None)


def _specs(xs: list[Coefficients]) -> tuple[Any, ...]:
    return describe(tuple([x[0] for x in xs]))


def taylor_kind(primitive: Primitive) -> str:
    """Name the kind of Taylor rule of a primitive.

    Args:
        primitive: the primitive.

    Returns:
        - ``"recurrence"``: a registered recurrence;
        - ``"program"``: the programs in its metadata, on series;
        - ``"linear"``: the primitive on each coefficient, or Cauchy products;
        - ``"derivative rule"``: the recurrence of its derivative rule;
        - ``"nested jvp"``: its own forward-mode function, nested once for each order;
        - ``"expansion"``: its expansion, on series;
        - ``"constant"``: its derivative is zero.

    Raises:
        MissingRuleError: the primitive has no derivative.

    See also:
        taylor: computes the derivatives.

    >>> from tenferro_tensor import catalog
    >>> taylor_kind(catalog.exp), taylor_kind(catalog.reshape), taylor_kind(catalog.lgamma)
    ('recurrence', 'linear', 'derivative rule')
    """
    if primitive in PROGRAMS:
        return "program"
    if _registered(primitive) is not None:
        return "recurrence"
    if jvp_rule_of(primitive) is not None:
        return "nested jvp"
    if _expands(primitive):
        return "expansion"
    rule = rule_of(Op(primitive, {}))
    if isinstance(rule, Inactive):
        return "constant"
    if isinstance(rule, Linear) or (isinstance(rule, Slopes) and not any(map(callable, rule.operands.values()))):
        return "linear"
    return "derivative rule"
