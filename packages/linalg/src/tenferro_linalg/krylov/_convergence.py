"""How an iteration ended: a report for callers, and a test that raises if the tolerance was not reached."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from tenferro_linalg._errors import ConvergenceError, DegenerateError
from tenferro_linalg._fallible import register_formula
from tenferro_runtime.batching import on_stacks
from tenferro_runtime.extension import Array, General, Registry, Spec, primitive


class KrylovInfo(NamedTuple):
    """How an iteration ended.

    Attributes:
        converged: whether the residual reached the tolerance.
        iterations: number of steps, each with one or two products with the operator.
        residual: Euclidean norm of the residual.
    """

    converged: Array
    iterations: Array
    residual: Array


@primitive(family="tenferro-linalg.converged.v1", extension="linalg")
def converged_(x: Spec, reached: Spec, iterations: Spec, residual: Spec, *, what: str, degenerate: bool) -> Spec:
    """`x`, after the test that the iteration named `what` reached its tolerance."""
    return x


def require_converged(x: Any, info: KrylovInfo, what: str, *, degenerate: bool = False) -> Any:
    """Return `x`, or raise when it is computed.

    Args:
        x: the result.
        info: how the iteration ended.
        what: name of the result in messages.
        degenerate: whether equal eigenvalues are the reason for not converging.

    Raises:
        DegenerateError: the iteration has not converged and `degenerate` is set.
        ConvergenceError: the iteration has not converged, now or when a compiled program runs.
    """
    return converged_(x, info.converged, info.iterations, info.residual, what=what, degenerate=degenerate)


def _kernel(la: Any, ins: Any, outs: Any, *, what: str, degenerate: bool) -> Callable[..., Any]:
    def run(x: Any, reached: Any, iterations: Any, residual: Any) -> Any:
        if not bool(reached.all()):
            raise _report(what, degenerate, *map(la.local, (reached, iterations, residual)))
        return x

    return run


def _report(what: str, degenerate: bool, reached: Any, iterations: Any, residual: Any) -> Exception:
    at = np.argwhere(~np.atleast_1d(reached))
    batch = tuple(at[0].tolist()) if reached.ndim else ()
    steps, norm = int(iterations[batch]), float(residual[batch])
    which = f" for {len(at)} of {reached.size} operators of the batch, the first at index {batch}," if batch else ""
    if not np.isfinite(norm):
        reason = (
            "the residual is not finite: the operator, the right-hand side or the initial guess has entries that are "
            "not finite, or the iteration diverged"
        )
    elif degenerate:
        return DegenerateError(
            f"{what} does not exist{which}: an eigenvalue of the subspace equals, or is too close to, one outside, "
            f"so the subspace is an arbitrary choice within a multiplet (after {steps} steps the norm of the residual "
            f"is {norm:.3g}); choose k so that it includes the whole multiplet",
            batch=batch, iterations=steps, residual=norm,
        )  # fmt: skip
    else:
        reason = (
            f"the norm of the residual is {norm:.3g}; raise maxiter, loosen the tolerance, pass a preconditioner M "
            "or a larger ncv, or use the last iterate of a solver with throw=False; the method does not converge for a "
            "singular operator or one of the wrong kind"
        )
    return ConvergenceError(
        f"{what} has not converged{which} after {steps} steps: {reason}", batch=batch, iterations=steps, residual=norm
    )


def _formula(xp: Any, x: Any, reached: Any, *info: Any, **_: Any) -> tuple[Any, Any]:
    return x, ~reached


def register(registry: Registry) -> None:
    """Kernels and rules of the primitive of this module."""
    from tenferro_linalg._providers import kernels

    kernels(registry, converged_, _kernel, blas=False)
    registry.batching(converged_, on_stacks(converged_))
    register_formula(registry, converged_, _formula)
    registry.rule(
        converged_,
        General(
            jvp=lambda primals, tangents, outs, **_: (tangents[0],),
            vjp=lambda primals, outs, cotangents, **_: (cotangents[0], None, None, None),
        ),
    )
