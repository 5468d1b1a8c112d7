"""Derivatives of `custom_root`: linear equations at the solution.

With f(c, x) = 0, J the derivative of f in x and df its tangent in c: J dx = -df. For a cotangent g of x, with w the
solution of J^H w = g, the cotangent of c follows from -<w, df>.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tenferro_ad._dual import JVP_RULES, dual
from tenferro_ad._eager import wrap_many
from tenferro_ad._node import make_node
from tenferro_ad._record import RECORDERS
from tenferro_ad._zeros import zeros_like
from tenferro_ad.implicit._derived_programs import linearised, pulled_back, tangents_of
from tenferro_ad.implicit._linear_rules import negated, solved_adjoint
from tenferro_runtime.equations import linear_solve, parted, root
from tenferro_runtime.ir import applied
from tenferro_tensor import Op
from tenferro_tensor.calls import Node


def at_solution(op: Op, operands: Sequence[Any], x: Sequence[Any]) -> tuple[Op, list[Any]]:
    """The linear equation at the solution x, and the captured values of its programs."""
    p, count = op.params, len(x)
    for_f, _, for_tangent, for_adjoint, _ = parted(operands, p["consts"])
    step = linear_solve.op(
        matvec=linearised(p["f"], len(for_f)), solve=p["tangent_solve"], transpose_solve=p["adjoint_solve"],
        consts=(len(for_f) + count, len(for_tangent) + count, len(for_adjoint) + count), unconjugated=False,
    )  # fmt: skip
    return step, [*for_f, *x, *for_tangent, *x, *for_adjoint, *x]


def _record(op: Op, level: int, lower: list[Any], need: tuple[int, ...], parents: tuple[Node, ...]) -> Any:
    p = op.params
    outs = op(*lower)
    moving = tuple([i for i in need if i < p["consts"][0]])
    if not moving:
        return outs  # neither the initial guess nor values that only the solvers read are part of the equation
    start, count = sum(p["consts"]), len(p["f"].output_ids)

    def pull(gs: list[Any], saved: tuple[Any, ...]) -> list[Any]:
        operands, x = saved[:start], saved[start:]
        step, fixed = at_solution(op, operands, x)
        w = solved_adjoint(step, fixed, [zeros_like(v) if g is None else g for g, v in zip(gs, x, strict=True)])
        pulled = negated(pulled_back(p["f"], moving, [*operands[: p["consts"][0]], *x], w))
        found = dict(zip(moving, pulled, strict=True))
        return [found.get(i) for i in need]

    pull.op = op  # type: ignore[attr-defined]
    x = outs[:count]
    return *wrap_many(x, level, make_node(pull, parents, (*lower[:start], *x))), *outs[count:]


def _push(op: Op, level: int, lower: list[Any], need: tuple[int, ...], tangents: list[Any]) -> Any:
    p = op.params
    outs = op(*lower)
    moving = tuple([i for i in need if i < p["consts"][0]])
    if not moving:
        return outs
    count = len(p["f"].output_ids)
    x = outs[:count]
    ts = [t for i, t in zip(need, tangents, strict=True) if i < p["consts"][0]]
    step, fixed = at_solution(op, lower, x)
    rhs = negated(applied(tangents_of(p["f"], moving), [*lower[: p["consts"][0]], *x, *ts]))
    pushed = step(*fixed, *rhs)[:count]
    return *[dual(v, t, level) for v, t in zip(x, pushed, strict=True)], *outs[count:]


RECORDERS[root] = _record
JVP_RULES[root] = _push
