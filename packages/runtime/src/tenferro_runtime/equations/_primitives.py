"""The primitives `custom_linear_solve` and `custom_root`: their metadata are an equation and its solvers, as programs.

An operation is its solver; the equation is there for the derivative.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import accumulate, pairwise
from typing import Any, Final

from tenferro_runtime.ir import applied
from tenferro_runtime.ir._program import Program, ProgramError
from tenferro_runtime.running import call_kernel
from tenferro_tensor import REGISTRY, Op, Primitive, Spec
from tenferro_tensor_core import key_of


class _Equation(Primitive):
    """A primitive whose metadata hold programs; the solver owns the op, so that no table keeps programs alive."""

    anywhere = True

    def op(self, **params: Any) -> Op:
        ordered = {name: params.get(name) for name in self.metadata}
        solve = ordered["solve"]
        if len(params) != len(ordered) or not isinstance(solve, Program):
            raise ProgramError(f"{self.name} needs the metadata {', '.join(self.metadata)}, got {', '.join(params)}")
        key = (self, *map(key_of, ordered.values()))
        found: Op | None = solve.memo.get(key)
        return solve.memo.setdefault(key, Op(self, ordered)) if found is None else found


def parted(values: Sequence[Any], consts: tuple[int, ...]) -> list[tuple[Any, ...]]:
    """Split operands by their role: the leading operands of each program, then the unknowns.

    Args:
        values: the operands.
        consts: number of leading operands of each program.

    Returns:
        The parts.
    """
    return [tuple(values[i:j]) for i, j in pairwise((0, *accumulate(consts), len(values)))]


def _require_fit(name: str, what: str, program: Program | None, specs: tuple[Spec, ...]) -> None:
    if program is not None and program.inputs != specs:
        raise ProgramError(
            f"the {what} of {name} takes ({', '.join(map(repr, program.inputs))}), but its operands are "
            f"({', '.join(map(repr, specs))})"
        )


def _infer_linear(
    *xs: Spec,
    matvec: Program,
    solve: Program,
    transpose_solve: Program | None,
    consts: tuple[int, int, int],
    unconjugated: bool,
) -> tuple[Spec, ...]:
    """Solve ``matvec(x) == b`` with `solve`; returns the leaves of x, then other results of the solver.

    The operands are the constants of `matvec`, `solve` and `transpose_solve`, then the leaves of b. `transpose_solve`
    is for the adjoint of `matvec`, or its transpose if `unconjugated`.

    Args:
        xs: the constants of the programs, then the leaves of b.
        matvec: program of the linear function.
        solve: program that solves the equation.
        transpose_solve: program that solves the adjoint equation, or ``None``.
        consts: number of constants of each program.
        unconjugated: whether `transpose_solve` solves the transposed equation instead of the adjoint one.

    Returns:
        The leaves of x, then other results of the solver.
    """
    for_matvec, for_solve, for_transpose, b = parted(xs, consts)
    _require_fit("custom_linear_solve", "linear function", matvec, (*for_matvec, *b))
    _require_fit("custom_linear_solve", "solver", solve, (*for_solve, *b))
    _require_fit("custom_linear_solve", "solver of the transpose", transpose_solve, (*for_transpose, *b))
    return solve.outputs


def _infer_root(
    *xs: Spec,
    f: Program,
    solve: Program,
    tangent_solve: Program,
    adjoint_solve: Program | None,
    consts: tuple[int, int, int, int],
) -> tuple[Spec, ...]:
    """Solve ``f(x) == 0`` with `solve`; returns the leaves of x, then other results of the solver.

    The operands are the constants of `f`, `solve`, `tangent_solve` and `adjoint_solve`, then an initial guess. The last
    two programs also take x, and solve the linearization of f at x, and its adjoint, for a right-hand side.

    Args:
        xs: the constants of the programs, then an initial guess.
        f: program of the function.
        solve: program that finds a root.
        tangent_solve: program that solves the linearized equation, or ``None``.
        adjoint_solve: program that solves its adjoint, or ``None``.
        consts: number of constants of each program.

    Returns:
        The leaves of x, then other results of the solver.
    """
    for_f, for_solve, for_tangent, for_adjoint, x = parted(xs, consts)
    _require_fit("custom_root", "function", f, (*for_f, *x))
    _require_fit("custom_root", "solver", solve, (*for_solve, *x))
    _require_fit("custom_root", "solver for tangents", tangent_solve, (*for_tangent, *x, *x))
    _require_fit("custom_root", "solver for cotangents", adjoint_solve, (*for_adjoint, *x, *x))
    return solve.outputs


def _kernel(ins: tuple[Spec, ...], outs: tuple[Spec, ...], **params: Any) -> Callable[..., Any]:
    start, stop, unknown = _read(params)
    run = call_kernel((*ins[start:stop], *ins[unknown:]), outs, program=params["solve"], sizes=())
    return lambda *raws: run(*raws[start:stop], *raws[unknown:])


def _expansion(*xs: Any, **params: Any) -> tuple[Any, ...]:
    start, stop, unknown = _read(params)
    return applied(params["solve"], [*xs[start:stop], *xs[unknown:]])


def _read(params: dict[str, Any]) -> tuple[int, int, int]:
    """Ranges of the solver's operands: from the first to the second number, and from the third to the end."""
    consts = params["consts"]
    return consts[0], consts[0] + consts[1], sum(consts)


def _named(infer: Any, name: str) -> Primitive:
    infer.__name__ = name
    found = _Equation(infer, family=f"tenferro-runtime.{name}.v1")
    REGISTRY.kernel(found, "*", _kernel)
    REGISTRY.expansion(found, _expansion)
    return found


linear_solve: Final[Primitive] = _named(_infer_linear, "custom_linear_solve")
root: Final[Primitive] = _named(_infer_root, "custom_root")
