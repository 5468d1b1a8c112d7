"""Relations of solutions of equations, derived from the equation rather than from the solver.

The derivative of a solution is ``-J^-1 df``. The inverse of J is a polynomial in J, so the solution depends on what f
depends on, composed with any power of J.
"""

from __future__ import annotations

from collections.abc import Sequence

from tenferro_ad.sparse._loops import fixpoint
from tenferro_ad.sparse._read import STRUCTURED, Abstract, Reader
from tenferro_runtime.equations import linear_solve, root
from tenferro_runtime.extension import Op, Program, Spec


def _linear(
    reader: Reader, op: Op, ins: Sequence[Abstract], in_specs: tuple[Spec, ...], out_specs: tuple[Spec, ...]
) -> list[Abstract]:
    p = op.params
    return _solution(reader, p["matvec"], ins[: p["consts"][0]], ins[sum(p["consts"]) :], out_specs)


def _root(
    reader: Reader, op: Op, ins: Sequence[Abstract], in_specs: tuple[Spec, ...], out_specs: tuple[Spec, ...]
) -> list[Abstract]:
    f = op.params["f"]
    return _solution(reader, f, ins[: op.params["consts"][0]], [reader.nothing] * len(f.output_ids), out_specs)


def _solution(
    reader: Reader, f: Program, fixed: Sequence[Abstract], rhs: Sequence[Abstract], specs: tuple[Spec, ...]
) -> list[Abstract]:
    """The dependences of the solution of ``f(fixed, x) = rhs``; auxiliary results have no derivative."""

    def after_one(x: list[Abstract]) -> list[Abstract]:
        found = reader.read(f, [*fixed, *x])
        return [reader.joined(pair, s) for *pair, s in zip(found, rhs, specs, strict=False)]

    x = fixpoint(reader, [reader.nothing] * len(rhs), specs[: len(rhs)], after_one)
    return [*x, *[reader.nothing] * (len(specs) - len(rhs))]


STRUCTURED.update({linear_solve: _linear, root: _root})
