"""Forward mode: `jvp`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, overload

from tenferro_ad._differentiated import running
from tenferro_ad._dual import Dual, dual
from tenferro_ad._eager import EagerTensor, watched
from tenferro_ad._limits_at_degeneracy import forced, found_directions, limit, ratio, size
from tenferro_ad._seed import fitted
from tenferro_ad._trees import as_values, split_aux
from tenferro_ad._zeros import zeros_like
from tenferro_runtime.trees import flatten, flatten_like, map_tree, unflatten
from tenferro_tensor import next_level
from tenferro_tensor.identity import handed
from tenferro_tensor_core import ArgumentError, GradientError
from tenferro_tensor_core.tracebacks import boundary

if TYPE_CHECKING:
    from typing import Literal

    from tenferro_ad._signatures import Aux, R


@overload
def jvp(
    f: Callable[..., R], primals: Sequence[Any], tangents: Sequence[Any], *, has_aux: Literal[False] = ...
) -> tuple[R, R]: ...
@overload
def jvp(
    f: Callable[..., tuple[R, Aux]], primals: Sequence[Any], tangents: Sequence[Any], *, has_aux: Literal[True]
) -> tuple[R, R, Aux]: ...
@overload
def jvp(
    f: Callable[..., Any], primals: Sequence[Any], tangents: Sequence[Any], *, has_aux: bool
) -> tuple[Any, ...]: ...
@boundary
def jvp(
    f: Callable[..., Any], primals: Sequence[Any], tangents: Sequence[Any], *, has_aux: bool = False
) -> tuple[Any, ...]:
    """Compute the value of a function and its derivative along tangents, J t.

    One forward run, whatever the number of arguments; nothing is saved for a backward pass.

    Args:
        f: a function of pytrees of arrays to a pytree of arrays.
        primals: tuple of the arguments.
        tangents: tuple of their tangents, each with the structure, shapes and dtypes of its argument; tangents of
            integers and booleans are ignored.
        has_aux: `f` returns a pair ``(value, aux)``; aux is returned undifferentiated.

    Returns:
        ``(value, tangent)``, or ``(value, tangent, aux)``. The tangent has the structure, shapes and dtypes of the
        value; it is zero where the value does not depend on the arguments, and ``None`` for integers and booleans.

    Raises:
        ArgumentError: `primals` or `tangents` is not a tuple.
        GradientError: the shape or dtype of a tangent differs from its argument's.
        MissingRuleError: an operation has no derivative rule.

    See also:
        vjp: reverse mode.
        linearize: the same derivative as a function of the tangents.

    >>> from tenferro_ad import jvp
    >>> jvp(lambda x: x * x, (3.0,), (1.0,))
    (Tensor(9.), Tensor(6.))
    """
    if not isinstance(primals, (tuple, list)) or not isinstance(tangents, (tuple, list)):
        raise ArgumentError("jvp takes tuples of primals and of tangents, as in jvp(f, (x,), (t,))")
    leaves, tree = flatten(tuple(primals))
    values = as_values(leaves, tree, "an argument of jvp")
    given = flatten_like(tree, tuple(tangents), "the tangents given to jvp")
    ts = [fitted(t, v.spec, "jvp: the tangent") if v.spec.inexact else None for t, v in zip(given, values)]
    out, pushed, aux = pushed_through(f, values, ts, tree, has_aux)
    return (out, pushed, aux) if has_aux else (out, pushed)


def pushed_through(
    f: Callable[..., Any], values: Sequence[Any], tangents: Sequence[Any], tree: Any, has_aux: bool = False
) -> tuple[Any, Any, Any]:
    """Value, tangent and aux of a function at given leaves and their tangents, ``None`` for no tangent."""
    known, error = found_directions(), forced()
    if error is None:
        try:
            return _pushed(f, values, tangents, tree, has_aux)
        except GradientError as seen:
            error = seen
    return _limit_nearby(error, known, f, values, tangents, tree, has_aux)


def _pushed(
    f: Callable[..., Any], values: Sequence[Any], tangents: Sequence[Any], tree: Any, has_aux: bool
) -> tuple[Any, Any, Any]:
    level = next_level()

    def lowered(x: Any) -> Any:
        return x.value if x.__class__ is Dual and x.level == level else x

    args = unflatten(tree, [handed(v if t is None else dual(v, t, level)) for v, t in zip(values, tangents)])
    out, aux = split_aux(running(level, f, *args), has_aux, "jvp")
    outs, out_tree = flatten(out)
    results = as_values([lowered(o) for o in outs], out_tree, "the result of a function differentiated in forward mode")
    pushed = [
        o.tangent._alias() if o.__class__ is Dual and o.level == level else zeros_like(r) if r.spec.inexact else None
        for o, r in zip(outs, results)
    ]
    return unflatten(out_tree, results), unflatten(out_tree, pushed), map_tree(lowered, aux)


def _limit_nearby(
    error: GradientError,
    known: int | None,
    f: Callable[..., Any],
    values: Sequence[Any],
    tangents: Sequence[Any],
    tree: Any,
    has_aux: bool,
) -> tuple[Any, Any, Any]:
    """`_pushed` at a degenerate point: the limit of tangents at nearby points."""
    level = next_level()

    def lowered(x: Any) -> Any:
        return x.value if x.__class__ is EagerTensor and x.level == level else x

    def run() -> tuple[Any, Any]:
        args = unflatten(tree, [handed(v if t is None else watched(v, level)) for v, t in zip(values, tangents)])
        return split_aux(running(level, f, *args), has_aux, "jvp")

    def derivative() -> list[Any]:
        return flatten(_pushed(f, values, tangents, tree, has_aux)[1])[0]

    def sizes(at: tuple[Any, Any]) -> list[Any]:
        rate = ratio(size(*tangents), size(*values))
        return [rate * size(lowered(o)) for o in flatten(at[0])[0]]

    (out, aux), pushed = limit(error, run, derivative, sizes, known)
    outs, out_tree = flatten(out)
    results = as_values([lowered(o) for o in outs], out_tree, "the result of a function differentiated in forward mode")
    return unflatten(out_tree, results), unflatten(out_tree, pushed), map_tree(lowered, aux)
