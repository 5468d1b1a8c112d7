"""`fixed_point`: fixed-point iteration, with the derivative of its limit."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, overload

import tenferro_runtime as tr
from tenferro_ad.implicit._custom_root import custom_root
from tenferro_ad.implicit._real_space import RealSpace
from tenferro_ad.implicit._values import matched, require_functions, unknowns
from tenferro_runtime.batching import inner_array
from tenferro_runtime.ir import here
from tenferro_runtime.trees import map_tree, unflatten
from tenferro_tensor import Tensor
from tenferro_tensor_core import ArgumentError, NumericalError, finfo

if TYPE_CHECKING:
    from tenferro_ad._signatures import Leaf, R
    from tenferro_tensor import Array


class FixedPointStatus(NamedTuple):
    """The status of a fixed-point iteration at its end.

    Attributes:
        converged: whether the residual is within the tolerance; a 0-d boolean array.
        steps: number of steps; a 0-d integer array.
        residual: Euclidean norm of f(x) - x at the result; a 0-d real array.
    """

    converged: Any
    steps: Any
    residual: Any


@overload
def fixed_point(
    f: Callable[..., Any], init: Leaf, *args: Any, tol: float | None = ..., max_steps: int = ...,
    tangent_solve: Callable[..., Any] | None = ..., has_status: Literal[False] = ...,
) -> Array: ...  # fmt: skip
@overload
def fixed_point(
    f: Callable[..., R], init: Any, *args: Any, tol: float | None = ..., max_steps: int = ...,
    tangent_solve: Callable[..., Any] | None = ..., has_status: Literal[False] = ...,
) -> R: ...  # fmt: skip
@overload
def fixed_point(
    f: Callable[..., Any], init: Leaf, *args: Any, tol: float | None = ..., max_steps: int = ...,
    tangent_solve: Callable[..., Any] | None = ..., has_status: Literal[True],
) -> tuple[Array, FixedPointStatus]: ...  # fmt: skip
@overload
def fixed_point(
    f: Callable[..., R], init: Any, *args: Any, tol: float | None = ..., max_steps: int = ...,
    tangent_solve: Callable[..., Any] | None = ..., has_status: Literal[True],
) -> tuple[R, FixedPointStatus]: ...  # fmt: skip
def fixed_point(
    f: Callable[..., Any],
    init: Any,
    *args: Any,
    tol: float | None = None,
    max_steps: int = 1000,
    tangent_solve: Callable[..., Any] | None = None,
    has_status: bool = False,
) -> Any:
    """Iterate ``x = f(x, *args)`` to convergence, with the derivatives of the equation instead of the iteration's.

    The iteration stops when the Euclidean norm of f(x) - x is at most ``tol * (1 + norm(x))``. Derivatives with respect
    to `args`, and to values that f closes over, solve linear equations with J - 1, where J is the derivative of f at
    the result. Memory does not grow with the number of steps, and derivatives of any order are those of the limit.

    Args:
        f: a function of x, a pytree of arrays, and `args`, that returns the structure, shapes and dtypes of x.
        init: the starting point x; it has no derivative.
        args: further arguments of `f`.
        tol: the tolerance; by default eps to the power 3/4, which is 2e-12 for float64.
        max_steps: maximum number of steps.
        tangent_solve: ``tangent_solve(g, y)`` solves ``g(x) == y`` for the linear function J - 1 or its adjoint; by
            default GMRES, which restarts beyond 256 unknowns.
        has_status: return a pair ``(x, FixedPointStatus)``, whether or not the iteration converged.

    Returns:
        The fixed point, with the structure, shapes and dtypes of `init`.

    Raises:
        ArgumentError: `f` is not callable, or `max_steps` is not an integer of at least 0.
        GradientError: `init` is not real or complex floating point.
        NumericalError: the iteration has not converged. A compiled program returns NaN instead; with `has_status` the
            result is the last x in either case.
        StructureError: `f` returns another structure, shape or dtype than `init` has.

    See also:
        custom_root: any solver for f(x) = 0.

    >>> from tenferro_ad import fixed_point, grad
    >>> def root(a):
    ...     return fixed_point(lambda x, a: 0.5 * (x + a / x), 1.0, a)
    >>> root(2.0), grad(root)(2.0)
    (Tensor(1.41421356), Tensor(0.35355339))
    """
    require_functions("fixed_point", f=f)
    if max_steps.__class__ is not int or max_steps < 0:
        raise ArgumentError(f"fixed_point needs an integer max_steps of at least 0{here()}, got {max_steps!r}")
    values, tree = unknowns(init, "fixed_point: the start x", lambda x: f(x, *args))
    start, specs = unflatten(tree, values), [v.spec for v in values]
    space = RealSpace(start)
    limit = finfo(space.dtype).eps ** 0.75 if tol is None else tol

    def residual(x: Any) -> Any:
        after = unflatten(tree, matched(f(x, *args), tree, specs, "the function of fixed_point", "the start"))
        return map_tree(lambda new, old: new - old, after, x)

    def iterate(g: Callable[[Any], Any], x: Any) -> tuple[Any, FixedPointStatus]:
        def unfinished(state: Any) -> Any:
            x, step, steps = state
            size = space.norm(space.parts(step))
            enough = size <= limit * (1 + space.norm(space.parts(x)))
            return ~enough & (steps < max_steps) & tr.isfinite(size)

        def following(state: Any) -> Any:
            x, step, steps = state
            x = map_tree(lambda old, d: old + d, x, step)
            return x, g(x), steps + 1

        x, step, steps = tr.while_loop(unfinished, following, (x, g(x), tr.asarray(0)))
        size = space.norm(space.parts(step))
        converged = size <= limit * (1 + space.norm(space.parts(x)))
        status = FixedPointStatus(converged, steps, size)
        return (x if has_status else _marked(x, status.converged)), status

    x, status = custom_root(residual, start, iterate, tangent_solve, has_aux=True)
    if has_status:
        return x, status
    _require_converged(status, limit)
    return x


def _marked(x: Any, converged: Any) -> Any:
    """The result of a traced iteration, with NaN elements if it has not converged."""
    if converged.__class__ is Tensor:
        return x
    return map_tree(lambda v: tr.where(converged, v, tr.astype(float("nan"), v.dtype)), x)


def _require_converged(status: FixedPointStatus, limit: float) -> None:
    """Raise if an iteration, or one lane of a batch, is known not to have converged."""
    converged, steps, residual = map(inner_array, status)
    if converged.__class__ is not Tensor or bool(tr.all(converged)):
        return
    lanes = f" in {int(tr.sum(~converged))} of {converged.size} lanes" if converged.ndim else ""
    most, worst = int(tr.max(steps)), float(tr.max(residual))
    raise NumericalError(
        f"fixed_point{here()} has not converged after {most} steps{lanes}: the norm of f(x) - x is {worst:.3g}, the "
        f"tolerance {limit:.3g} relative to 1 + norm(x); start nearer, damp the iteration, raise max_steps or tol, or "
        "take the last x with has_status=True",
        steps=most,
        residual=worst,
    )
