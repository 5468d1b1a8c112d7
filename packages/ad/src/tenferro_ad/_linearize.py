"""`linearize` and `linear_transpose`: the derivative at a point as a function of its own, run once and used often."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tenferro_ad._forward import pushed_through
from tenferro_ad._reverse import Recorded, conjugated
from tenferro_ad._seed import fitted
from tenferro_ad._trees import Picked, as_value, as_values, require_convention, require_differentiable
from tenferro_ad._zeros import full
from tenferro_runtime.extension import Builder, call, optimise
from tenferro_runtime.ir import open_sizes
from tenferro_runtime.trees import flatten, flatten_like, unflatten
from tenferro_tensor import Spec
from tenferro_tensor_core import GradientError


def linearize(f: Callable[..., Any], *primals: Any) -> tuple[Any, Callable[..., Any]]:
    """Value of a function, and its derivative there as a function of tangents.

    The function runs once, on values as they are, so it may branch on them. Only what tangents go through is recorded,
    as a program; the returned function replays it.

    Args:
        f: a function of arrays, in any containers, to arrays in any containers.
        primals: the arguments; all leaves real or complex floating point.

    Returns:
        ``(value, push)``; ``push(*tangents)`` is the tangent of the value, ``None`` for integers and booleans.

    Raises:
        GradientError: an argument holds integers or booleans.
        MissingRuleError: an operation has no derivative rule.

    >>> from tenferro_ad import linearize
    >>> y, push = linearize(lambda x: x * x, 3.0)
    >>> y, push(1.0), push(10.0)
    (Tensor(9.), Tensor(6.), Tensor(60.))
    """
    leaves, tree = flatten(primals)
    values = as_values(leaves, tree, "an argument of linearize")
    specs = [v.spec for v in values]
    require_differentiable(specs, tree, "linearize")
    builder = Builder()
    tangents = [builder.input(s) for s in specs]
    out, pushed, _ = pushed_through(f, values, tangents, tree)
    outs, out_tree = flatten(pushed)
    program = optimise(builder.close(outs))
    captured = [v for v, _ in builder.captured]

    def push(*ts: Any) -> Any:
        given = flatten_like(tree, ts, "the tangents")
        fit = [fitted(t, s, "the linearized function: the tangent") for t, s in zip(given, specs)]
        try:
            return unflatten(out_tree, call(*fit, *captured, program=program, sizes=open_sizes(program)))
        except GradientError as error:
            if not error.payload.get("beside"):
                raise
            return pushed_through(f, values, fit, tree)[1]  # which may choose bases for this tangent

    return out, push


def linear_transpose(f: Callable[..., Any], *like: Any, convention: str = "tenferro") -> Callable[..., Any]:
    """The transpose of a linear function: for the pairing Re(conj(a) b), its adjoint.

    Args:
        f: a function that is linear in all its arguments together, of arrays in any containers.
        like: arguments, or `Spec`s, of which only shapes and dtypes are used.
        convention: ``"jax"`` gives the transpose without conjugation.

    Returns:
        A function of a cotangent, in the containers of the value, to a tuple with a cotangent for each argument.

    >>> from tenferro_ad import linear_transpose
    >>> import numpy as np
    >>> linear_transpose(lambda x: 3 * x, np.zeros(2))(np.array([1.0, 2.0]))
    (Tensor([3., 6.]),)
    """
    require_convention(convention)
    leaves, tree = flatten(like)
    zeros = unflatten(tree, [full(x if isinstance(x, Spec) else as_value(x).spec, 0) for x in leaves])
    run = Recorded(f, Picked(zeros, range(len(zeros)), "linear_transpose"), {}, False, "linear_transpose")

    def pull(cotangent: Any) -> Any:
        given = flatten_like(run.tree, cotangent, "the cotangent")
        fit = [fitted(c, o.spec, "the transposed function: the cotangent") for c, o in zip(given, run.outs)]
        if convention == "jax":
            return unflatten(tree, [conjugated(c) for c in run.pull([conjugated(c) for c in fit], release=False)])
        return unflatten(tree, run.pull(fit, release=False))

    return pull
