"""Applies a derivative rule to one op: cotangents backward, tangents forward.

This is the reference meaning of the three kinds of rule. It works on values of every level, so a derivative can itself
be differentiated or traced; `_derivative` traces it once and keeps the steps.

The pairing is Re(conj(a) b): an elementwise holomorphic derivative D maps a tangent to t * D and a cotangent to
g * conj(D). `None` stands for zero.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tenferro_ad._derive import transposed
from tenferro_ad._rules import Scope, indices_wanted, missing_operand, operand_name
from tenferro_ad._zeros import zeros_like
from tenferro_runtime.extension import General, Inactive, Linear, Slopes
from tenferro_tensor import SCALARS, Array, Op, Primitive, Spec, catalog
from tenferro_tensor.promotion import broadcasts_to, brought, stretched, targets
from tenferro_tensor_core import GradientError, RegistryError, ask, likely

Maybe = Any
"""A value, or ``None`` for zero."""


class CallSite:
    """An op, the specs of its operands, and which operands are differentiated.

    Attributes:
        op: the op.
        rule: the op's derivative rule.
        need: positions of the differentiated operands.
        given: spec of each operand, or the class of a Python scalar.
        specs: operand specs as the rule sees them; for elementwise ops, broadcast and promoted to one spec.
        outs: specs of the outputs.
        many: whether the op returns a tuple.
        save: positions among (operands..., outputs...) of the values that the rule reads.
    """

    __slots__ = ("given", "many", "need", "op", "outs", "rule", "save", "specs")

    def __init__(self, op: Op, rule: Any, need: tuple[int, ...], given: tuple[Any, ...]) -> None:
        self.op, self.rule, self.need, self.given = op, rule, need, given
        self.specs: tuple[Spec, ...] = targets(op, given) if op.primitive.elementwise else given
        out = op.infer(*self.specs)
        self.many = isinstance(out, tuple)
        self.outs: tuple[Spec, ...] = out if isinstance(out, tuple) else (out,)
        if len(self.outs) != 1 and isinstance(rule, (Slopes, Linear)):
            raise RegistryError(
                f"{op.primitive.name} has {len(self.outs)} outputs, but its rule is {rule!r:.80}, which is for one; "
                "use General",
                primitive=op.primitive.name,
            )
        self.save = tuple(sorted(self._named()))

    @property
    def active(self) -> bool:
        """Whether the op propagates derivatives at all."""
        return not isinstance(self.rule, Inactive) and any(s.inexact for s in self.outs)

    def _named(self) -> set[int]:
        count, nout = len(self.given), len(self.outs)
        if isinstance(self.rule, General):
            return set(range(count + nout))
        found: set[int] = set()
        for function in self.functions().values():
            if callable(function):
                found |= indices_wanted(self.op, count, nout, function)
        return found

    def functions(self) -> dict[int, Any]:
        """The elementwise derivative or transpose of each differentiated operand."""
        if not self.active:
            return {}
        table = self.rule.operands
        found = {}
        for i in self.need:
            name = operand_name(self.op.primitive, i)
            if name not in table:
                raise missing_operand(self.op, name)
            found[i] = table[name]
        return found

    def complete(self, ins: list[Maybe]) -> list[Maybe]:
        """Operands as the rule sees them; unsaved operands stay ``None``.

        Python scalars, and 0-d arrays that stand for them, are left unchanged.
        """
        if self.op.primitive.elementwise:
            return [
                a if a is None or given in SCALARS else brought(a, s)
                for a, s, given in zip(ins, self.specs, self.given)
            ]
        return ins

    def without_scalars(self, ins: list[Maybe]) -> list[Maybe]:
        """Operands with every Python scalar replaced by an array of full shape."""
        return [
            self.stand_in(i, a) if given in SCALARS and a is not None else a
            for i, (a, given) in enumerate(zip(ins, self.given))
        ]

    def stand_in(self, i: int, a: Any) -> Any:
        """An array that replaces a Python scalar."""
        spec = self.specs[i]
        if a.__class__ in SCALARS:
            a = Primitive.adopt(a, dtype=spec.dtype, device=spec.place.device)
        return brought(a, spec)


def apply_vjp(site: CallSite, ins: list[Maybe], outs: list[Maybe], cts: Sequence[Maybe]) -> tuple[Maybe, ...]:
    """Cotangents of the differentiated operands, each in its operand's spec.

    Args:
        site: the op and its operand specs.
        ins: operands; ``None`` where the rule does not read one.
        outs: outputs, likewise.
        cts: cotangents of the outputs, at least one of them nonzero.
    """
    rule = site.rule
    ins = site.complete(ins)
    if isinstance(rule, General):
        pulled = _vjp_general(site, rule, site.without_scalars(ins), outs, cts)
    else:
        try:
            pulled = _vjp_one(site, rule, ins, outs, cts[0])
        except (ZeroDivisionError, OverflowError, AttributeError):
            if not any(a.__class__ in SCALARS for a in ins):
                raise
            # Python's scalar arithmetic raised where NumPy's does not: 1 / 0.0 must be an infinity here.
            pulled = _vjp_one(site, rule, site.without_scalars(ins), outs, cts[0])
    return tuple([_returned(site, i, c) for i, c in zip(site.need, pulled)])


def _vjp_one(site: CallSite, rule: Any, ins: list[Maybe], outs: list[Maybe], g: Any) -> list[Maybe]:
    scope = Scope(site.op, site.specs, ins, outs, g)
    functions = site.functions()
    if isinstance(rule, Slopes):
        return [_scaled(g, f, site, scope, conjugate=True) for f in functions.values()]
    pulled = []
    tails: dict[int, Any] = {}
    variadic = len(site.op.primitive.operands) - 1
    for i, f in functions.items():
        if i >= variadic and site.op.primitive.operands[variadic].startswith("*"):
            if id(f) not in tails:
                tails[id(f)] = scope.call(f)
            pulled.append(tails[id(f)][i - variadic])
        else:
            pulled.append(scope.call(f))
    return pulled


def _scaled(v: Any, f: Any, site: CallSite, scope: Scope, *, conjugate: bool) -> Maybe:
    """A cotangent or tangent times an elementwise derivative; derivatives 1, -1 and 0 need no product."""
    slope = scope.call(f) if callable(f) else f
    if slope.__class__ in SCALARS:
        if slope == 1:
            return v
        if slope == 0 and slope is f:
            return None  # a constant zero of the rule, not a scalar operand that happens to be zero
        return -v if slope == -1 else v * (slope.conjugate() if conjugate else slope)  # type: ignore[attr-defined]
    slope = _adopted(slope)
    if not isinstance(slope, Array):
        raise GradientError(
            f"the elementwise derivative of {site.op.primitive.name} is {slope!r:.80}, which is neither an array nor a "
            "number; return one of them from the function in Slopes",
            primitive=site.op.primitive.name,
        )
    goal = site.outs[0]
    if slope.spec.shape != goal.shape and not broadcasts_to(slope.spec.shape, goal.shape):
        raise GradientError(
            f"the elementwise derivative of {site.op.primitive.name} is a {slope.spec!r}, which does not broadcast to "
            f"the output, a {goal!r}; return an array of the output's shape, or a number, from the function in Slopes",
            primitive=site.op.primitive.name,
        )
    if conjugate and slope.spec.cplx:
        slope = catalog.conj(slope)
    return catalog.absorbing_mul(v, slope) if site.rule.singular else v * slope


def _vjp_general(site: CallSite, rule: General, ins: list[Any], outs: list[Any], cts: Sequence[Maybe]) -> list[Maybe]:
    primals, results, params = tuple(ins), tuple(outs), site.op.params
    if rule.vjp is not None:
        pulled = rule.vjp(primals, results, tuple(cts), **params)
        _require_count(site, "vjp", pulled, len(primals), "operand")
        return [pulled[i] for i in site.need]
    jvp = rule.jvp
    assert jvp is not None

    def push(*ts: Any) -> Any:
        pushed = jvp(primals, _spread(len(primals), site.need, ts), results, **params)
        _require_count(site, "jvp", pushed, len(site.outs), "output")
        return [_tangent_out(site, k, t) for k, t in enumerate(pushed)]

    return transposed(push, [primals[i] for i in site.need], cts)


def _spread(count: int, positions: tuple[int, ...], values: Sequence[Any]) -> tuple[Maybe, ...]:
    full: list[Maybe] = [None] * count
    for i, v in zip(positions, values):
        full[i] = v
    return tuple(full)


def _require_count(site: CallSite, which: str, got: Any, count: int, what: str) -> None:
    if not isinstance(got, (tuple, list)) or len(got) != count:
        seen = f"{len(got)} values" if isinstance(got, (tuple, list)) else f"a {type(got).__name__}"
        raise GradientError(
            f"the {which} of {site.op.primitive.name} must return a tuple with one value or None for each {what}, "
            f"{count} in all, but returned {seen}",
            primitive=site.op.primitive.name,
        )


def _adopted(x: Any) -> Any:
    """Convert a host array that a user's rule returned to a tensor."""
    return Primitive.adopt(x) if isinstance(x, (np.ndarray, np.generic)) else x


def same_sizes(x: Any, goal: Spec) -> Any:
    """Rename the symbolic sizes of a value to those of `goal` where they are known to be equal."""
    spec = getattr(x, "spec", None)
    if spec is None or spec.shape == goal.shape or spec.ndim != goal.ndim or not (spec.symbolic or goal.symbolic):
        return x
    if all(likely(d, "==", e) and ask(d, "==", e) for d, e in zip(spec.shape, goal.shape)):
        return catalog.reshape(x, shape=goal.shape)
    return x


def _returned(site: CallSite, i: int, c: Maybe) -> Maybe:
    """A cotangent in the spec of the operand as the caller passed it."""
    if c is None:
        return None
    given = site.given[i]
    if given is site.specs[i] and getattr(c, "spec", None) is given:
        return c
    return _at_home(unbrought(_cotangent(site, i, c), given), given)


def _cotangent(site: CallSite, i: int, c: Maybe) -> Maybe:
    """Check that a cotangent has the spec of its operand as the rule sees it."""
    if c is None:
        return None
    goal = site.specs[i]
    c = same_sizes(_adopted(c), goal)
    spec = getattr(c, "spec", None)
    if spec is not goal and not (spec is not None and spec.shape == goal.shape and spec.dtype == goal.dtype):
        name = operand_name(site.op.primitive, i)
        raise GradientError(
            f"the rule of {site.op.primitive.name} returned a cotangent {spec!r} for its operand {name!r}, which is "
            f"{goal!r}; a cotangent has the shape and dtype of its operand",
            primitive=site.op.primitive.name,
            operand=name,
        )
    return c


def _at_home(c: Any, spec: Spec) -> Any:
    """Move a cotangent to its operand's device within one memory, where cotangents are summed."""
    place = c.spec.place
    if place is spec.place or place.memory_space is not spec.place.memory_space:
        return c
    return catalog.transfer(c, place=spec.place)


def unbrought(g: Any, spec: Spec) -> Any:
    """The transpose of `brought`: sum a cotangent over broadcast axes and convert its dtype.

    A real operand of a complex function takes the real part.
    """
    have = g.spec
    if have is spec:
        return g
    if have.cplx and not spec.cplx:
        g = catalog.real(g)
    shape = spec.shape
    if have.shape != shape:
        lead = have.ndim - len(shape)
        goal = have.shape
        kept = [i for i, d in enumerate(shape) if not stretched(d, goal[lead + i])]
        axes = set(range(have.ndim)) - {lead + i for i in kept}
        g = catalog.reduce_sum(g, axes=tuple(sorted(axes)))
        if len(kept) < len(shape):
            g = catalog.reshape(g, shape=shape)
    return g if g.spec.dtype == spec.dtype else catalog.convert(g, dtype=spec.dtype)


def apply_jvp(
    site: CallSite, ins: list[Any], tangents: Sequence[Any], outs: list[Any] | None
) -> tuple[list[Any], list[Maybe]]:
    """Outputs and their tangents.

    Args:
        site: the op and its operand specs.
        ins: all operands.
        tangents: tangents of the operands at ``site.need``.
        outs: outputs if they are already known, else ``None``.
    """
    rule, op = site.rule, site.op
    if outs is None and not (isinstance(rule, General) and rule.forward is not None):
        out = op(*ins)
        outs = list(out) if site.many else [out]
    full = site.complete(ins)
    if op.primitive.elementwise:
        tangents = [brought(t, site.specs[i]) for i, t in zip(site.need, tangents)]
    if isinstance(rule, General):
        return _jvp_general(site, rule, site.without_scalars(full), tangents, outs)
    assert outs is not None
    if isinstance(rule, Slopes):
        try:
            return outs, [_jvp_slopes(site, full, outs, tangents)]
        except (ZeroDivisionError, OverflowError, AttributeError):
            if not any(a.__class__ in SCALARS for a in full):
                raise
            return outs, [_jvp_slopes(site, site.without_scalars(full), outs, tangents)]
    return outs, _jvp_linear(site, rule, full, tangents)


def _jvp_slopes(site: CallSite, ins: list[Any], outs: list[Any], tangents: Sequence[Any]) -> Maybe:
    scope = Scope(site.op, site.specs, ins, outs)
    total = None
    for f, t in zip(site.functions().values(), tangents):
        pushed = _scaled(t, f, site, scope, conjugate=False)
        if pushed is not None:
            total = pushed if total is None else total + pushed
    return _tangent_out(site, 0, total)


def _jvp_linear(site: CallSite, rule: Linear, ins: list[Any], tangents: Sequence[Any]) -> list[Maybe]:
    """A linear op is its own derivative: in each operand with the others fixed, or jointly in all named operands."""
    site.functions()
    op = site.op
    if rule.joint:
        there = dict(zip(site.need, tangents))
        moved = [
            there[i] if i in there
            else zeros_like(site.stand_in(i, a)) if operand_name(op.primitive, i) in rule.operands
            else a
            for i, a in enumerate(ins)
        ]  # fmt: skip
        return _as_list(site, op(*moved))
    total: list[Maybe] = []
    for i, t in zip(site.need, tangents):
        term = _as_list(site, op(*[t if k == i else a for k, a in enumerate(ins)]))
        total = term if not total else [a + b for a, b in zip(total, term)]
    return total


def _as_list(site: CallSite, out: Any) -> list[Any]:
    return list(out) if site.many else [out]


def _jvp_general(
    site: CallSite, rule: General, ins: list[Any], tangents: Sequence[Any], outs: list[Any] | None
) -> tuple[list[Any], list[Maybe]]:
    primals, params = tuple(ins), site.op.params
    spread = _spread(len(primals), site.need, tangents)
    if rule.forward is not None and outs is None:
        both = rule.forward(primals, spread, **params)
        if not isinstance(both, (tuple, list)) or len(both) != 2:
            raise GradientError(
                f"the forward of {site.op.primitive.name} must return outputs and their tangents, two tuples, but "
                f"returned {both!r:.80}",
                primitive=site.op.primitive.name,
            )
        for part in both:
            _require_count(site, "forward", part, len(site.outs), "output")
        results, pushed = both
        return list(results), [_tangent_out(site, k, t) for k, t in enumerate(pushed)]
    assert outs is not None
    results = tuple(outs)
    if rule.jvp is not None:
        pushed = rule.jvp(primals, spread, results, **params)
        _require_count(site, "jvp", pushed, len(site.outs), "output")
        return outs, [_tangent_out(site, k, t) for k, t in enumerate(pushed)]
    vjp = rule.vjp
    assert vjp is not None

    def pull(*gs: Any) -> Any:
        pulled = vjp(primals, results, _spread(len(results), places, gs), **params)
        _require_count(site, "vjp", pulled, len(primals), "operand")
        return [_cotangent(site, i, pulled[i]) for i in site.need]

    places = tuple(k for k, s in enumerate(site.outs) if s.inexact)
    pushed = transposed(pull, [results[k] for k in places], tangents)
    return outs, list(_spread(len(results), places, pushed))


def _tangent_out(site: CallSite, k: int, t: Maybe) -> Maybe:
    goal = site.outs[k]
    if t is None or getattr(t, "spec", None) is goal:
        return t
    t = same_sizes(_adopted(t), goal)
    spec = getattr(t, "spec", None)
    if spec is None or spec.shape != goal.shape or spec.dtype != goal.dtype:
        raise GradientError(
            f"the rule of {site.op.primitive.name} returned a tangent {spec!r} for output {k}, which is {goal!r}; "
            "a tangent has the shape and dtype of its output",
            primitive=site.op.primitive.name,
        )
    return t
