"""Reverse mode: `vjp`, `grad` and `value_and_grad`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial, wraps
from typing import TYPE_CHECKING, Any, overload

from tenferro_ad._backward import backward_pass
from tenferro_ad._differentiated import running
from tenferro_ad._eager import EagerTensor, all_watched
from tenferro_ad._limits_at_degeneracy import forced, limit, ratio, size
from tenferro_ad._seed import fitted, seed_of
from tenferro_ad._trees import Picked, as_values, require_convention, split_aux
from tenferro_ad._zeros import ones_like, zeros_like
from tenferro_runtime.trees import flatten, flatten_like, map_tree, unflatten
from tenferro_tensor import Array, catalog, next_level
from tenferro_tensor_core import GradientError
from tenferro_tensor_core.tracebacks import boundary, hide_frames, hiding

if TYPE_CHECKING:
    from typing import Concatenate, Literal

    from tenferro_ad._signatures import Aux, ByArgument, Leaf, P, R, Same, T


class Recorded:
    """One recorded run of a function: its outputs, and the graph from them to the leaves of its arguments."""

    def __init__(self, f: Callable[..., Any], picked: Picked, kwargs: dict[str, Any], has_aux: bool, what: str) -> None:
        self.again = partial(Recorded, f, picked, kwargs, has_aux, what)
        level = self.level = next_level()
        self.values = picked.values
        leaves = all_watched(picked.values, level)
        self.starts = [leaf.node for leaf in leaves]  # the function may assign to the leaves
        out, aux = split_aux(running(level, picked.call, f, leaves, kwargs), has_aux, what)
        outs, self.tree = flatten(out)
        self.nodes = [o.node if o.__class__ is EagerTensor and o.level == level else None for o in outs]
        self.outs = as_values([self.lowered(o) for o in outs], self.tree, f"the result of the function given to {what}")
        self.aux = map_tree(self.lowered, aux)

    def lowered(self, x: Any) -> Any:
        """The inner value of a result of this run."""
        return x.value if x.__class__ is EagerTensor and x.level == self.level else x

    def pull(self, cotangents: Sequence[Any], *, release: bool) -> list[Any]:
        """Cotangents of the leaves, zeros where none arrives; at a degenerate point, their limit."""
        error = forced()
        if error is None:
            try:
                return self._pull(cotangents, release)
            except GradientError as seen:
                error = seen

        def sizes(at: Recorded) -> list[Any]:
            out = size(*at.outs) * size(*cotangents)
            return [ratio(out, size(x)) for x in at.values]

        return limit(error, self.again, lambda: self.again()._pull(cotangents, True), sizes)[1]

    def _pull(self, cotangents: Sequence[Any], release: bool) -> list[Any]:
        roots = [(n, c) for n, c in zip(self.nodes, cotangents) if n is not None and c is not None]
        reached = backward_pass(roots, release=release)
        found = []
        for x, start in zip(self.values, self.starts):
            c = reached.get(start)
            found.append(zeros_like(x) if c is None else c._alias())
        return found


def conjugated(x: Any) -> Any:
    """The conjugate of a complex value; a real value itself."""
    return catalog.conj(x) if isinstance(x, Array) and x.spec.cplx else x


@overload
def vjp(
    f: Callable[..., R], *primals: Leaf, has_aux: Literal[False] = ..., convention: str = ...
) -> tuple[R, Callable[[Any], tuple[Array, ...]]]: ...
@overload
def vjp(
    f: Callable[..., R], *primals: Any, has_aux: Literal[False] = ..., convention: str = ...
) -> tuple[R, Callable[[Any], tuple[Any, ...]]]: ...
@overload
def vjp(
    f: Callable[..., tuple[R, Aux]], *primals: Any, has_aux: Literal[True], convention: str = ...
) -> tuple[R, Callable[[Any], tuple[Any, ...]], Aux]: ...
@overload
def vjp(f: Callable[..., Any], *primals: Any, has_aux: bool, convention: str = ...) -> tuple[Any, ...]: ...
@boundary
def vjp(f: Callable[..., Any], *primals: Any, has_aux: bool = False, convention: str = "tenferro") -> tuple[Any, ...]:
    """Compute the value of a function, and its pullback: the map from cotangents of the value to those of arguments.

    With J the derivative, the pullback is its adjoint under the pairing Re(conj(a) b): g -> J^H g.

    Args:
        f: a function of pytrees of arrays to a pytree of arrays.
        primals: the arguments; all leaves must be real or complex floating point.
        has_aux: `f` returns a pair ``(value, aux)``; aux is returned undifferentiated.
        convention: ``"tenferro"``, or ``"jax"``, which conjugates complex cotangents on input and output: g -> J^T g.

    Returns:
        ``(value, pullback)``, or ``(value, pullback, aux)``. The pullback takes a cotangent with the structure, shapes
        and dtypes of the value, and returns a tuple with one cotangent for each argument, with the argument's
        structure, shapes and dtypes. It can be called any number of times.

    Raises:
        ArgumentError: `convention` is unknown.
        GradientError: an argument holds integers or booleans; from the pullback: the cotangent does not fit.
        MissingRuleError: an operation has no derivative rule.

    See also:
        jvp: forward mode.
        grad: for one real value.

    >>> from tenferro_ad import vjp
    >>> y, pull = vjp(lambda a, b: a * b, 2.0, 3.0)
    >>> y, pull(1.0)
    (Tensor(6.), (Tensor(3.), Tensor(2.)))
    """
    require_convention(convention)
    run = Recorded(f, Picked(primals, range(len(primals)), "vjp"), {}, has_aux, "vjp")
    tree = flatten(primals)[1]

    @hiding
    def pullback(cotangent: Any) -> Any:
        given = flatten_like(run.tree, cotangent, "the cotangent given to the pullback")
        fit = [
            fitted(c, o.spec, "pullback: the cotangent") if o.spec.inexact else None for c, o in zip(given, run.outs)
        ]
        if convention == "jax":
            return unflatten(tree, [conjugated(c) for c in run.pull([conjugated(c) for c in fit], release=False)])
        return unflatten(tree, run.pull(fit, release=False))

    value = unflatten(run.tree, run.outs)
    return (value, pullback, run.aux) if has_aux else (value, pullback)


@overload
def value_and_grad(
    f: Callable[Concatenate[T, P], Any], argnums: Literal[0] = ..., *, has_aux: Literal[False] = ...,
    holomorphic: bool = ..., convention: str = ...,
) -> ByArgument[T, P, tuple[Array, Array], tuple[Array, T]]: ...  # fmt: skip
@overload
def value_and_grad(
    f: Callable[P, Any], argnums: int, *, has_aux: Literal[False] = ..., holomorphic: bool = ..., convention: str = ...,
) -> Same[P, tuple[Array, Array]]: ...  # fmt: skip
@overload
def value_and_grad(
    f: Callable[P, Any], argnums: Sequence[int], *, has_aux: Literal[False] = ...,
    holomorphic: bool = ..., convention: str = ...,
) -> Same[P, tuple[Array, tuple[Array, ...]]]: ...  # fmt: skip
@overload
def value_and_grad(
    f: Callable[Concatenate[T, P], tuple[Any, Aux]], argnums: Literal[0] = ..., *, has_aux: Literal[True],
    holomorphic: bool = ..., convention: str = ...,
) -> ByArgument[T, P, tuple[tuple[Array, Aux], Array], tuple[tuple[Array, Aux], T]]: ...  # fmt: skip
@overload
def value_and_grad(
    f: Callable[P, Any], argnums: int | Sequence[int] = ..., *, has_aux: bool = ...,
    holomorphic: bool = ..., convention: str = ...,
) -> Callable[P, Any]: ...  # fmt: skip
@boundary
def value_and_grad(
    f: Callable[..., Any],
    argnums: int | Sequence[int] = 0,
    *,
    has_aux: bool = False,
    holomorphic: bool = False,
    convention: str = "tenferro",
) -> Callable[..., Any]:
    """Make a function that returns the value of `f` and its gradient.

    Args:
        f: a function of pytrees of arrays to one real number.
        argnums: position of the argument to differentiate, or several positions; then the gradient is a tuple.
        has_aux: `f` returns a pair ``(value, aux)``; the result is then ``((value, aux), gradient)``.
        holomorphic: `f` is holomorphic and returns one complex number; the gradient is its complex derivative.
        convention: ``"tenferro"``, or ``"jax"`` for the conjugate of complex gradients.

    Returns:
        A function with the arguments of `f` that returns ``(value, gradient)``. The gradient has the structure, shapes
        and dtypes of the differentiated argument.

    Raises:
        ArgumentError: `convention` is unknown, or `argnums` names no argument.
        GradientError: the value is not a single real number, or an argument holds integers or booleans.
        MissingRuleError: an operation has no derivative rule.

    See also:
        grad: the gradient alone, and its convention for complex arguments.

    >>> from tenferro_ad import value_and_grad
    >>> value_and_grad(lambda x: x * x)(3.0)
    (Tensor(9.), Tensor(6.))
    """
    require_convention(convention)

    @wraps(f)
    def evaluate(*args: Any, **kwargs: Any) -> tuple[Any, Any]:
        try:
            picked = Picked(args, argnums, "grad")
            run = Recorded(f, picked, kwargs, has_aux, "grad")
            value = _only(run)
            if holomorphic:
                _require_holomorphic(value, picked.values)
                pulled = [conjugated(c) for c in run.pull([ones_like(value)], release=True)]
            else:
                pulled = run.pull([seed_of(value, None, "grad")], release=True)
                if convention == "jax":
                    pulled = [conjugated(c) for c in pulled]
            return (value, run.aux) if has_aux else value, unflatten(picked.tree, pulled)
        except Exception as error:
            hide_frames(error)
            raise

    return evaluate


@overload
def grad(
    f: Callable[Concatenate[T, P], Any], argnums: Literal[0] = ..., *, has_aux: Literal[False] = ...,
    holomorphic: bool = ..., convention: str = ...,
) -> ByArgument[T, P, Array, T]: ...  # fmt: skip
@overload
def grad(
    f: Callable[P, Any], argnums: int, *, has_aux: Literal[False] = ..., holomorphic: bool = ..., convention: str = ...,
) -> Same[P, Array]: ...  # fmt: skip
@overload
def grad(
    f: Callable[P, Any], argnums: Sequence[int], *, has_aux: Literal[False] = ...,
    holomorphic: bool = ..., convention: str = ...,
) -> Same[P, tuple[Array, ...]]: ...  # fmt: skip
@overload
def grad(
    f: Callable[Concatenate[T, P], tuple[Any, Aux]], argnums: Literal[0] = ..., *, has_aux: Literal[True],
    holomorphic: bool = ..., convention: str = ...,
) -> ByArgument[T, P, tuple[Array, Aux], tuple[T, Aux]]: ...  # fmt: skip
@overload
def grad(
    f: Callable[P, Any], argnums: int | Sequence[int] = ..., *, has_aux: bool = ...,
    holomorphic: bool = ..., convention: str = ...,
) -> Callable[P, Any]: ...  # fmt: skip
@boundary
def grad(
    f: Callable[..., Any],
    argnums: int | Sequence[int] = 0,
    *,
    has_aux: bool = False,
    holomorphic: bool = False,
    convention: str = "tenferro",
) -> Callable[..., Any]:
    """Make a function that returns the gradient of `f`.

    The gradient g of a real function satisfies df = Re(conj(g) dz): it is the direction of steepest ascent, also for
    complex arguments, and the gradient of sum |z|^2 is 2z. The gradient is zero for an argument that the value does
    not depend on.

    Args:
        f: a function of pytrees of arrays to one real number.
        argnums: position of the argument to differentiate, or several positions; then the gradient is a tuple.
        has_aux: `f` returns a pair ``(value, aux)``; the result is then ``(gradient, aux)``.
        holomorphic: `f` is holomorphic and returns one complex number; the result is its complex derivative in either
            convention.
        convention: ``"tenferro"``, or ``"jax"`` for the conjugate of complex gradients.

    Returns:
        A function with the arguments of `f`. The gradient has the structure, shapes and dtypes of the differentiated
        argument.

    Raises:
        ArgumentError: `convention` is unknown, or `argnums` names no argument.
        GradientError: the value is not a single real number, or an argument holds integers or booleans.
        MissingRuleError: an operation has no derivative rule.

    See also:
        value_and_grad: the value too.
        vjp: for values of any shape.
        jacrev: the whole Jacobian.

    >>> from tenferro_ad import grad
    >>> grad(lambda x: x * x * x)(2.0)
    Tensor(12.)
    >>> grad(grad(lambda x: x * x * x))(2.0)
    Tensor(12.)
    """
    both = value_and_grad(f, argnums, has_aux=has_aux, holomorphic=holomorphic, convention=convention)

    @wraps(f)
    def gradient(*args: Any, **kwargs: Any) -> Any:
        try:
            value, g = both(*args, **kwargs)
        except Exception as error:
            hide_frames(error)
            raise
        return (g, value[1]) if has_aux else g

    return gradient


def _only(run: Recorded) -> Any:
    if len(run.outs) != 1:
        raise GradientError(
            f"grad needs a function that returns one real number, got {run.tree.show()} with {len(run.outs)} leaves; "
            "return the rest as aux with has_aux=True, or use vjp or jacrev"
        )
    value = run.outs[0]
    if not value.spec.inexact:
        raise GradientError(
            f"grad needs a function that returns one real number, got {value.spec!r}, which has no derivative; "
            "compute the value in floating point"
        )
    return value


def _require_holomorphic(value: Any, leaves: Sequence[Any]) -> None:
    for x in (value, *leaves):
        if not x.spec.cplx:
            raise GradientError(
                f"holomorphic=True needs complex arguments and a complex value, but got {x.spec!r}; "
                "leave holomorphic out, or convert it to complex"
            )
    if value.spec.shape != ():
        raise GradientError(
            f"grad with holomorphic=True needs a function that returns one complex number, got {value.spec!r}; "
            "use jacfwd or jacrev with holomorphic=True"
        )
