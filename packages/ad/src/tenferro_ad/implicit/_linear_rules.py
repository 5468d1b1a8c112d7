"""Derivatives of `custom_linear_solve`: the same linear equation, or its adjoint, for other right-hand sides.

With A x = b: A dx = db - dA x. For a cotangent g of x, the solution w of A^H w = g is the cotangent of b, and the
cotangent of A follows from -<w, dA x>.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tenferro_ad._dual import JVP_RULES, dual
from tenferro_ad._eager import wrap_many
from tenferro_ad._node import make_node
from tenferro_ad._record import RECORDERS
from tenferro_ad._reverse import conjugated
from tenferro_ad._zeros import zeros_like
from tenferro_ad.implicit._derived_programs import adjoint_of, pulled_back, tangents_of
from tenferro_runtime.equations import linear_solve, parted
from tenferro_runtime.ir import applied
from tenferro_tensor import Op
from tenferro_tensor.calls import Node
from tenferro_tensor_core import GradientError


def solved_adjoint(op: Op, operands: Sequence[Any], cotangents: Sequence[Any]) -> tuple[Any, ...]:
    """The solution w of the adjoint equation.

    Args:
        op: a `custom_linear_solve`.
        operands: the captured values of its programs.
        cotangents: the right-hand side.

    Raises:
        GradientError: there is no solver of the adjoint equation.
    """
    p = op.params
    matvec, unconjugated = p["matvec"], p["unconjugated"]
    if p["transpose_solve"] is None:
        raise GradientError(
            "reverse mode of the solution of an equation solves the transposed linear equation, but there is no solver "
            "for it: pass transpose_solve or symmetric=True to custom_linear_solve; for custom_root, make the function "
            "differentiable in reverse mode; or use forward mode (jvp)"
        )
    for_matvec, for_solve, for_transpose, _ = parted(operands, p["consts"])
    counts = len(for_matvec), len(for_transpose), len(for_solve)
    turned = linear_solve.op(
        matvec=adjoint_of(matvec, len(for_matvec), unconjugated), solve=p["transpose_solve"],
        transpose_solve=p["solve"], consts=counts, unconjugated=unconjugated,
    )  # fmt: skip
    rhs = [conjugated(g) for g in cotangents] if unconjugated else cotangents
    found = turned(*for_matvec, *for_transpose, *for_solve, *rhs)[: len(rhs)]
    return tuple([conjugated(w) for w in found]) if unconjugated else found


def negated(values: Sequence[Any]) -> list[Any]:
    """Each value with its sign changed; ``None`` stays."""
    return [None if v is None else -v for v in values]


def _record(op: Op, level: int, lower: list[Any], need: tuple[int, ...], parents: tuple[Node, ...]) -> Any:
    p = op.params
    matvec: Any = p["matvec"]
    outs = op(*lower)
    moving = tuple([i for i in need if i < p["consts"][0]])
    start, count = sum(p["consts"]), len(matvec.output_ids)
    if not moving and need[-1] < start:
        return outs  # values that only the solvers read are not part of the equation

    def pull(gs: list[Any], saved: tuple[Any, ...]) -> list[Any]:
        operands, x = saved[:start], saved[start:]
        w = solved_adjoint(op, operands, [zeros_like(v) if g is None else g for g, v in zip(gs, x, strict=True)])
        found: dict[int, Any] = {start + i: c for i, c in enumerate(w)}
        if moving:
            pulled = pulled_back(matvec, moving, [*operands[: p["consts"][0]], *x], w)
            found.update(zip(moving, negated(pulled), strict=True))
        return [found.get(i) for i in need]

    pull.op = op  # type: ignore[attr-defined]
    x = outs[:count]
    return *wrap_many(x, level, make_node(pull, parents, (*lower[:start], *x))), *outs[count:]


def _push(op: Op, level: int, lower: list[Any], need: tuple[int, ...], tangents: list[Any]) -> Any:
    p = op.params
    matvec: Any = p["matvec"]
    outs = op(*lower)
    start, count = sum(p["consts"]), len(matvec.output_ids)
    given = dict(zip(need, tangents, strict=True))
    moving = tuple([i for i in need if i < p["consts"][0]])
    if not moving and need[-1] < start:
        return outs
    x = outs[:count]
    rhs = [given.get(start + i) for i in range(count)]
    if moving:
        ts = [given[i] for i in moving]
        moved = negated(applied(tangents_of(matvec, moving), [*lower[: p["consts"][0]], *x, *ts]))
        rhs = [m if r is None else r + m for r, m in zip(rhs, moved, strict=True)]
    rhs = [zeros_like(v) if r is None else r for r, v in zip(rhs, x, strict=True)]
    pushed = op(*lower[:start], *rhs)[:count]
    return *[dual(v, t, level) for v, t in zip(x, pushed, strict=True)], *outs[count:]


RECORDERS[linear_solve] = _record
JVP_RULES[linear_solve] = _push
