"""Jacobians and Hessians, with batched tangents or cotangents, and Hessian-vector products."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import wraps
from typing import TYPE_CHECKING, Any, overload

from tenferro_ad._basis import on_basis
from tenferro_ad._forward import jvp, pushed_through
from tenferro_ad._reverse import Recorded, conjugated, grad
from tenferro_ad._trees import Picked, require_convention
from tenferro_runtime.trees import flatten, unflatten
from tenferro_tensor import Array, Spec, catalog
from tenferro_tensor_core import ArgumentError, GradientError
from tenferro_tensor_core.tracebacks import boundary, hiding

if TYPE_CHECKING:
    from typing import Concatenate, Literal

    from tenferro_ad._signatures import Aux, Derived, Leaf, OfNumber, P, Same, Single, T


@overload
def jacfwd(
    f: Callable[Concatenate[Single, P], Array], argnums: Literal[0] = ..., *, has_aux: Literal[False] = ...,
    holomorphic: bool = ..., convention: str = ..., memory_budget: int | None = ...,
) -> Callable[Concatenate[Single, P], Single]: ...  # fmt: skip
@overload
def jacfwd(
    f: OfNumber[P, Array], argnums: Literal[0] = ..., *, has_aux: Literal[False] = ...,
    holomorphic: bool = ..., convention: str = ..., memory_budget: int | None = ...,
) -> Derived[P, Array]: ...  # fmt: skip
@overload
def jacfwd(
    f: Callable[P, Array], argnums: Sequence[int], *, has_aux: Literal[False] = ...,
    holomorphic: bool = ..., convention: str = ..., memory_budget: int | None = ...,
) -> Same[P, tuple[Array, ...]]: ...  # fmt: skip
@overload
def jacfwd(
    f: Callable[Concatenate[Single, P], tuple[Array, Aux]], argnums: Literal[0] = ..., *, has_aux: Literal[True],
    holomorphic: bool = ..., convention: str = ..., memory_budget: int | None = ...,
) -> Callable[Concatenate[Single, P], tuple[Single, Aux]]: ...  # fmt: skip
@overload
def jacfwd(
    f: Callable[P, Any], argnums: int | Sequence[int] = ..., *, has_aux: bool = ...,
    holomorphic: bool = ..., convention: str = ..., memory_budget: int | None = ...,
) -> Callable[P, Any]: ...  # fmt: skip
@boundary
def jacfwd(
    f: Callable[..., Any],
    argnums: int | Sequence[int] = 0,
    *,
    has_aux: bool = False,
    holomorphic: bool = False,
    convention: str = "tenferro",
    memory_budget: int | None = None,
) -> Callable[..., Any]:
    """Make a function that returns the Jacobian of `f`, by forward mode.

    Efficient for few arguments and many values. Where the argument z is complex and the value real, an entry is the
    gradient d f / d Re z + i d f / d Im z.

    Args:
        f: a function of pytrees of arrays to a pytree of arrays.
        argnums: position of the argument to differentiate, or several positions.
        has_aux: `f` returns a pair ``(value, aux)``; the result is then ``(jacobian, aux)``.
        holomorphic: `f` is holomorphic; required if both argument and value are complex.
        convention: ``"tenferro"``, or ``"jax"``, which conjugates derivatives of real values by complex arguments.
        memory_budget: limit, in bytes, on the memory of one batch of columns; by default all columns are one batch.

    Returns:
        A function with the arguments of `f`. For a value of shape s and an argument of shape t, the Jacobian has shape
        s + t and their common dtype; the structure of the arguments nests inside that of the value.

    Raises:
        ArgumentError: `convention` is unknown, or `argnums` names no argument.
        GradientError: argument and value are both complex and `holomorphic` is not set; or an argument or value is
            not real or complex floating point.
        MissingRuleError: an operation has no derivative rule.

    See also:
        jacrev: the same matrix by reverse mode.
        sparse_jacobian: for a Jacobian with few nonzero entries.

    >>> from tenferro_ad import jacfwd
    >>> import numpy as np
    >>> jacfwd(lambda x: x * x)(np.array([1.0, 2.0]))
    Tensor([[2., 0.],
            [0., 4.]])
    """
    require_convention(convention)

    @hiding
    @wraps(f)
    def jacobian(*args: Any, **kwargs: Any) -> Any:
        run = _Pushed(f, Picked(args, argnums, "jacfwd"), kwargs, has_aux, holomorphic)
        columns = []
        for j, x in enumerate(run.picked.values):
            of_x = on_basis(run.along(j), x.spec, 1, memory_budget)
            if x.spec.cplx and not holomorphic:
                turned = on_basis(run.along(j), x.spec, 1j, memory_budget)
                sign = 1j if convention == "tenferro" else -1j
                of_x = [a + sign * b for a, b in zip(of_x, turned, strict=True)]
            columns.append([_last(c, x.spec) for c in of_x])
        nested = _nested(run.tree, run.picked.tree, [list(row) for row in zip(*columns, strict=True)])
        return (nested, run.aux) if has_aux else nested

    return jacobian


class _Pushed:
    """A function that runs with tangents of one argument.

    Attributes:
        picked: the arguments.
        tree: structure of the function's value.
        aux: the auxiliary result of the function.
    """

    tree: Any
    aux: Any

    def __init__(
        self, f: Callable[..., Any], picked: Picked, kwargs: dict[str, Any], has_aux: bool, holomorphic: bool
    ) -> None:
        self.picked, self.has_aux, self.holomorphic = picked, has_aux, holomorphic
        self.f = lambda *leaves: picked.call(f, leaves, kwargs)
        self.leaves = flatten(tuple(picked.values))[1]

    def along(self, j: int) -> Callable[[Any], list[Any]]:
        """The map from a tangent of leaf `j` of the arguments to tangents of the values."""
        values = self.picked.values

        def push(tangent: Any) -> list[Any]:
            tangents = [tangent if i == j else None for i in range(len(values))]
            value, pushed, self.aux = pushed_through(self.f, values, tangents, self.leaves, self.has_aux)
            outs, self.tree = flatten(value)
            require_floats([o.spec for o in outs], "jacfwd")
            require_kind([o.spec for o in outs], values[j].spec, self.holomorphic, "jacfwd")
            return flatten(pushed)[0]

        return push


@overload
def jacrev(
    f: Callable[Concatenate[Single, P], Array], argnums: Literal[0] = ..., *, has_aux: Literal[False] = ...,
    holomorphic: bool = ..., convention: str = ..., memory_budget: int | None = ...,
) -> Callable[Concatenate[Single, P], Single]: ...  # fmt: skip
@overload
def jacrev(
    f: OfNumber[P, Array], argnums: Literal[0] = ..., *, has_aux: Literal[False] = ...,
    holomorphic: bool = ..., convention: str = ..., memory_budget: int | None = ...,
) -> Derived[P, Array]: ...  # fmt: skip
@overload
def jacrev(
    f: Callable[P, Array], argnums: Sequence[int], *, has_aux: Literal[False] = ...,
    holomorphic: bool = ..., convention: str = ..., memory_budget: int | None = ...,
) -> Same[P, tuple[Array, ...]]: ...  # fmt: skip
@overload
def jacrev(
    f: Callable[Concatenate[Single, P], tuple[Array, Aux]], argnums: Literal[0] = ..., *, has_aux: Literal[True],
    holomorphic: bool = ..., convention: str = ..., memory_budget: int | None = ...,
) -> Callable[Concatenate[Single, P], tuple[Single, Aux]]: ...  # fmt: skip
@overload
def jacrev(
    f: Callable[P, Any], argnums: int | Sequence[int] = ..., *, has_aux: bool = ...,
    holomorphic: bool = ..., convention: str = ..., memory_budget: int | None = ...,
) -> Callable[P, Any]: ...  # fmt: skip
@boundary
def jacrev(
    f: Callable[..., Any],
    argnums: int | Sequence[int] = 0,
    *,
    has_aux: bool = False,
    holomorphic: bool = False,
    convention: str = "tenferro",
    memory_budget: int | None = None,
) -> Callable[..., Any]:
    """Make a function that returns the Jacobian of `f`, by reverse mode.

    The same matrix as `jacfwd`; efficient for many arguments and few values.

    Args:
        f: a function of pytrees of arrays to a pytree of arrays.
        argnums: position of the argument to differentiate, or several positions.
        has_aux: `f` returns a pair ``(value, aux)``; the result is then ``(jacobian, aux)``.
        holomorphic: `f` is holomorphic; required if both argument and value are complex.
        convention: ``"tenferro"``, or ``"jax"``, which conjugates derivatives of real values by complex arguments.
        memory_budget: limit, in bytes, on the memory of one batch of rows; by default all rows are one batch.

    Returns:
        A function with the arguments of `f`. For a value of shape s and an argument of shape t, the Jacobian has shape
        s + t and their common dtype; the structure of the arguments nests inside that of the value.

    Raises:
        ArgumentError: `convention` is unknown, or `argnums` names no argument.
        GradientError: argument and value are both complex and `holomorphic` is not set; or an argument or value is
            not real or complex floating point.
        MissingRuleError: an operation has no derivative rule.

    See also:
        jacfwd: the same matrix by forward mode.
        sparse_jacobian: for a Jacobian with few nonzero entries.

    >>> from tenferro_ad import jacrev
    >>> import numpy as np
    >>> jacrev(lambda x: (x * x).sum())(np.array([1.0, 2.0]))
    Tensor([2., 4.])
    """
    require_convention(convention)

    @hiding
    @wraps(f)
    def jacobian(*args: Any, **kwargs: Any) -> Any:
        picked = Picked(args, argnums, "jacrev")
        run = Recorded(f, picked, kwargs, has_aux, "jacrev")
        outs = [o.spec for o in run.outs]
        require_floats(outs, "jacrev")
        for x in picked.values:
            require_kind(outs, x.spec, holomorphic, "jacrev")
        blocks = []
        for k, out in enumerate(run.outs):

            def pull(g: Any, k: int = k) -> list[Any]:
                return run.pull([g if i == k else None for i in range(len(run.outs))], release=False)

            of_out = on_basis(pull, out.spec, 1, memory_budget)
            if holomorphic or (convention == "jax" and not out.spec.cplx):
                of_out = [conjugated(r) for r in of_out]
            elif out.spec.cplx:
                turned = on_basis(pull, out.spec, 1j, memory_budget)
                of_out = [a + 1j * b for a, b in zip(of_out, turned, strict=True)]
            blocks.append([_first(r, out.spec) for r in of_out])
        nested = _nested(run.tree, picked.tree, blocks)
        return (nested, run.aux) if has_aux else nested

    return jacobian


@overload
def hessian(
    f: Callable[Concatenate[Single, P], Any], argnums: Literal[0] = ..., *, has_aux: Literal[False] = ...,
    memory_budget: int | None = ...,
) -> Callable[Concatenate[Single, P], Single]: ...  # fmt: skip
@overload
def hessian(
    f: OfNumber[P, Any], argnums: Literal[0] = ..., *, has_aux: Literal[False] = ..., memory_budget: int | None = ...,
) -> Derived[P, Array]: ...  # fmt: skip
@overload
def hessian(
    f: Callable[P, Any], argnums: Sequence[int], *, has_aux: Literal[False] = ..., memory_budget: int | None = ...,
) -> Same[P, tuple[Any, ...]]: ...  # fmt: skip
@overload
def hessian(
    f: Callable[Concatenate[Single, P], tuple[Any, Aux]], argnums: Literal[0] = ..., *, has_aux: Literal[True],
    memory_budget: int | None = ...,
) -> Callable[Concatenate[Single, P], tuple[Single, Aux]]: ...  # fmt: skip
@overload
def hessian(
    f: Callable[P, Any], argnums: int | Sequence[int] = ..., *, has_aux: bool = ..., memory_budget: int | None = ...,
) -> Callable[P, Any]: ...  # fmt: skip
@boundary
def hessian(
    f: Callable[..., Any],
    argnums: int | Sequence[int] = 0,
    *,
    has_aux: bool = False,
    memory_budget: int | None = None,
) -> Callable[..., Any]:
    """Make a function that returns the Hessian of a real function of real arguments.

    Forward over reverse mode: the gradient runs once, with a batch of unit tangents.

    Args:
        f: a function of pytrees of arrays to one real number.
        argnums: position of the argument to differentiate, or several positions.
        has_aux: `f` returns a pair ``(value, aux)``; the result is then ``(hessian, aux)``.
        memory_budget: limit, in bytes, on the memory of one batch of columns; by default all columns are one batch.

    Returns:
        A function with the arguments of `f`. For an argument of shape t, the Hessian has shape t + t and the
        argument's dtype; for containers, blocks nest as in `jacfwd` of the gradient.

    Raises:
        ArgumentError: `argnums` names no argument.
        GradientError: the value is not one real number, or an argument is not real floating point.
        MissingRuleError: an operation has no derivative rule.

    See also:
        hvp: Hessian-vector products without the matrix.
        sparse_hessian: for a Hessian with few nonzero entries.

    >>> from tenferro_ad import hessian
    >>> import numpy as np
    >>> hessian(lambda x: (x * x * x).sum())(np.array([1.0, 2.0]))
    Tensor([[ 6.,  0.],
            [ 0., 12.]])
    """
    gradient = grad(f, argnums, has_aux=has_aux)
    return jacfwd(gradient, argnums, has_aux=has_aux, memory_budget=memory_budget)


@overload
def hvp(f: Callable[..., Any], primals: tuple[Leaf], tangents: Sequence[Any]) -> Array: ...
@overload
def hvp(f: Callable[..., Any], primals: tuple[T], tangents: Sequence[Any]) -> T: ...
@overload
def hvp(
    f: Callable[..., Any], primals: tuple[Leaf, Leaf, *tuple[Leaf, ...]], tangents: Sequence[Any]
) -> tuple[Array, ...]: ...
@overload
def hvp(f: Callable[..., Any], primals: Sequence[Any], tangents: Sequence[Any]) -> Any: ...
@boundary
def hvp(f: Callable[..., Any], primals: Sequence[Any], tangents: Sequence[Any]) -> Any:
    """Multiply the Hessian of a real function by tangents, without forming the Hessian: the jvp of the gradient.

    Args:
        f: a function of pytrees of arrays to one real number.
        primals: tuple of the arguments, all of which are differentiated.
        tangents: tuple of their tangents, each with the structure, shapes and dtypes of its argument.

    Returns:
        The product, with the structure, shapes and dtypes of the argument; a tuple of them for several arguments.

    Raises:
        ArgumentError: `primals` is not a nonempty tuple.
        GradientError: the value is not one real number, or a tangent does not fit its argument.
        MissingRuleError: an operation has no derivative rule.

    See also:
        hessian: the matrix itself.

    >>> from tenferro_ad import hvp
    >>> hvp(lambda x: x * x * x, (2.0,), (1.0,))
    Tensor(12.)
    """
    if not isinstance(primals, (tuple, list)) or not primals:
        raise ArgumentError("hvp takes tuples of primals and of tangents, as in hvp(f, (x,), (t,))")
    argnums = 0 if len(primals) == 1 else tuple(range(len(primals)))
    return jvp(grad(f, argnums), primals, tangents)[1]


def require_floats(outs: Sequence[Spec], what: str) -> None:
    """Raise unless all values are inexact.

    Raises:
        GradientError: one is not.
    """
    for out in outs:
        if not out.inexact:
            raise GradientError(
                f"{what} needs a function with real or complex floating-point values, but one value is {out!r}; "
                "leave it out of the result"
            )


def require_kind(outs: Sequence[Spec], x: Spec, holomorphic: bool, what: str) -> None:
    """Raise unless the values have a single derivative: with complex arguments, only holomorphic functions do.

    Raises:
        GradientError: they do not, or `holomorphic` is set for real arguments or values.
    """
    for out in outs:
        if holomorphic and not (out.cplx and x.cplx):
            raise GradientError(
                f"{what} with holomorphic=True needs complex arguments and values, but got {x!r} and "
                f"{out!r}; leave holomorphic out"
            )
        if not holomorphic and out.cplx and x.cplx:
            raise GradientError(
                f"{what} of the complex value {out!r} with respect to the complex {x!r}: only a holomorphic "
                "function has a complex derivative; pass holomorphic=True if it is, else differentiate real and "
                "imaginary parts"
            )


def _first(x: Any, spec: Spec) -> Any:
    """Rows, one for each element of a spec, with the axes of the spec leading."""
    return x if spec.ndim == 1 else catalog.reshape(x, shape=(*spec.shape, *x.spec.shape[1:]))


def _last(x: Any, spec: Spec) -> Any:
    """Columns, one for each element of a spec, with the axes of the spec trailing."""
    turned = catalog.transpose(x, permutation=(*range(1, x.spec.ndim), 0))
    return turned if spec.ndim == 1 else catalog.reshape(turned, shape=(*turned.spec.shape[:-1], *spec.shape))


def _nested(out_tree: Any, in_tree: Any, blocks: list[list[Any]]) -> Any:
    return unflatten(out_tree, [unflatten(in_tree, row) for row in blocks])
