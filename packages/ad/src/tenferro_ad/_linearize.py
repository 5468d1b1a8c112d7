"""`linearize` and `linear_transpose`: the derivative at a point as a function, recorded once and called often."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from tenferro_ad._forward import pushed_through
from tenferro_ad._reverse import Recorded, conjugated
from tenferro_ad._seed import fitted
from tenferro_ad._trees import Picked, as_value, as_values, require_convention, require_differentiable
from tenferro_ad._zeros import full
from tenferro_runtime.extension import call, optimise
from tenferro_runtime.ir import open_sizes
from tenferro_runtime.tracing import staged
from tenferro_runtime.trees import flatten, flatten_like, unflatten
from tenferro_tensor import Spec
from tenferro_tensor_core import GradientError
from tenferro_tensor_core.tracebacks import boundary, hiding

if TYPE_CHECKING:
    from tenferro_ad._signatures import R


@boundary
def linearize(f: Callable[..., R], *primals: Any) -> tuple[R, Callable[..., R]]:
    """Compute the value of a function, and its derivative at that point as a function of tangents.

    The function runs once, on concrete values, so it may branch on them. Only the operations on tangents are recorded,
    as a program that the returned function replays.

    Args:
        f: a function of pytrees of arrays to a pytree of arrays.
        primals: the arguments; all leaves must be real or complex floating point.

    Returns:
        ``(value, jvp)``. ``jvp(*tangents)`` takes one tangent for each argument, with its structure, shapes and
        dtypes, and returns the tangent of the value, ``None`` for integers and booleans.

    Raises:
        GradientError: an argument holds integers or booleans.
        MissingRuleError: an operation has no derivative rule.

    See also:
        jvp: for a single tangent.
        linear_transpose: the transpose of a linear function.

    >>> from tenferro_ad import linearize
    >>> y, push = linearize(lambda x: x * x, 3.0)
    >>> y, push(1.0), push(10.0)
    (Tensor(9.), Tensor(6.), Tensor(60.))
    """
    leaves, tree = flatten(primals)
    values = as_values(leaves, tree, "an argument of linearize")
    specs = [v.spec for v in values]
    require_differentiable(specs, tree, "linearize")
    out: Any = None
    out_tree: Any = None

    def recorded(*tangents: Any) -> list[Any]:
        nonlocal out, out_tree
        out, pushed, _ = pushed_through(f, values, list(tangents), tree)
        outs, out_tree = flatten(pushed)
        return outs

    program, captured, _ = staged(recorded, specs)
    program = optimise(program)

    @hiding
    def push(*ts: Any) -> Any:
        given = flatten_like(tree, ts, "the tangents")
        fit = [fitted(t, s, "the linearized function: the tangent") for t, s in zip(given, specs)]
        try:
            return unflatten(out_tree, call(*fit, *captured, program=program, sizes=open_sizes(program)))
        except GradientError as error:
            if not error.payload.get("beside"):
                raise
            return pushed_through(f, values, fit, tree)[1]  # chooses bases of eigenspaces for this tangent

    return out, push


@boundary
def linear_transpose(
    f: Callable[..., Any], *like: Any, convention: str = "tenferro"
) -> Callable[[Any], tuple[Any, ...]]:
    """Make the transpose of a linear function: its adjoint under the pairing Re(conj(a) b).

    Args:
        f: a function of pytrees of arrays, jointly linear in all its arguments.
        like: arguments, or `Spec`s, that supply structure, shapes and dtypes; their elements are not used.
        convention: ``"tenferro"``, or ``"jax"`` for the transpose without conjugation.

    Returns:
        A function of a cotangent, with the structure, shapes and dtypes of the value. It returns a tuple with one
        cotangent for each argument.

    Raises:
        ArgumentError: `convention` is unknown.
        GradientError: an argument holds integers or booleans.
        MissingRuleError: an operation has no derivative rule.

    See also:
        vjp: the transpose of the derivative of any function.

    >>> from tenferro_ad import linear_transpose
    >>> import numpy as np
    >>> linear_transpose(lambda x: 3 * x, np.zeros(2))(np.array([1.0, 2.0]))
    (Tensor([3., 6.]),)
    """
    require_convention(convention)
    leaves, tree = flatten(like)
    zeros = unflatten(tree, [full(x if isinstance(x, Spec) else as_value(x).spec, 0) for x in leaves])
    run = Recorded(f, Picked(zeros, range(len(zeros)), "linear_transpose"), {}, False, "linear_transpose")

    @hiding
    def pull(cotangent: Any) -> Any:
        given = flatten_like(run.tree, cotangent, "the cotangent")
        fit = [fitted(c, o.spec, "the transposed function: the cotangent") for c, o in zip(given, run.outs)]
        if convention == "jax":
            return unflatten(tree, [conjugated(c) for c in run.pull([conjugated(c) for c in fit], release=False)])
        return unflatten(tree, run.pull(fit, release=False))

    return pull
