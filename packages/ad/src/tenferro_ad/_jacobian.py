"""Jacobians and Hessians, all tangents or cotangents at a time, and Hessian-vector products."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import wraps
from typing import Any

from tenferro_ad._basis import on_basis
from tenferro_ad._forward import jvp, pushed_through
from tenferro_ad._reverse import Recorded, conjugated, grad
from tenferro_ad._trees import Picked, require_convention
from tenferro_runtime.trees import flatten, unflatten
from tenferro_tensor import Spec, catalog
from tenferro_tensor_core import ArgumentError, GradientError


def jacfwd(
    f: Callable[..., Any],
    argnums: int | Sequence[int] = 0,
    *,
    has_aux: bool = False,
    holomorphic: bool = False,
    convention: str = "tenferro",
    memory_budget: int | None = None,
) -> Callable[..., Any]:
    """Make a function that returns the Jacobian of `f`, in forward mode.

    For a value of shape s and an argument of shape t it has shape s + t; containers of arguments nest inside those of
    the value. Good for few arguments and many values. Where the argument is complex and the value real, an entry is
    the gradient d f / d Re z + i d f / d Im z.

    Args:
        f: a function of arrays, in any containers, to arrays in any containers.
        argnums: the positional argument to differentiate, or several of them.
        has_aux: the function returns a pair (value, aux); the result is then ``(jacobian, aux)``.
        holomorphic: the function is holomorphic; needed where both argument and value are complex.
        convention: ``"jax"`` conjugates the entries of a real value with respect to a complex argument.
        memory_budget: bytes that the values on the way may take: so many columns as fit are computed at a time. By
            default it is all of them.

    Raises:
        GradientError: both are complex, and `holomorphic` was not said; or an argument holds integers or booleans.

    >>> from tenferro_ad import jacfwd
    >>> import numpy as np
    >>> jacfwd(lambda x: x * x)(np.array([1.0, 2.0]))
    Tensor([[2., 0.],
            [0., 4.]])
    """
    require_convention(convention)

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
    """A function that is run with tangents of one argument.

    Attributes:
        picked: the arguments.
        tree: structure of its value.
        aux: what it returned beside that.
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
        """The tangents of the values, as a function of that of leaf `j` of the arguments."""
        values = self.picked.values

        def push(tangent: Any) -> list[Any]:
            tangents = [tangent if i == j else None for i in range(len(values))]
            value, pushed, self.aux = pushed_through(self.f, values, tangents, self.leaves, self.has_aux)
            outs, self.tree = flatten(value)
            require_floats([o.spec for o in outs], "jacfwd")
            require_kind([o.spec for o in outs], values[j].spec, self.holomorphic, "jacfwd")
            return flatten(pushed)[0]

        return push


def jacrev(
    f: Callable[..., Any],
    argnums: int | Sequence[int] = 0,
    *,
    has_aux: bool = False,
    holomorphic: bool = False,
    convention: str = "tenferro",
    memory_budget: int | None = None,
) -> Callable[..., Any]:
    """Make a function that returns the Jacobian of `f`, in reverse mode.

    The same matrix as `jacfwd`; good for many arguments and few values.

    Args:
        f: a function of arrays, in any containers, to arrays in any containers.
        argnums: the positional argument to differentiate, or several of them.
        has_aux: the function returns a pair (value, aux); the result is then ``(jacobian, aux)``.
        holomorphic: the function is holomorphic; needed where both argument and value are complex.
        convention: ``"jax"`` conjugates the entries of a real value with respect to a complex argument.
        memory_budget: bytes that the values on the way may take: so many rows as fit are computed at a time. By
            default it is all of them.

    Raises:
        GradientError: both are complex, and `holomorphic` was not said; or an argument holds integers or booleans.

    >>> from tenferro_ad import jacrev
    >>> import numpy as np
    >>> jacrev(lambda x: (x * x).sum())(np.array([1.0, 2.0]))
    Tensor([2., 4.])
    """
    require_convention(convention)

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


def hessian(
    f: Callable[..., Any],
    argnums: int | Sequence[int] = 0,
    *,
    has_aux: bool = False,
    memory_budget: int | None = None,
) -> Callable[..., Any]:
    """Make a function that returns the matrix of second derivatives of a real function of real arguments.

    Forward over reverse: the gradient runs once, and all unit vectors go through its derivative at a time.

    Args:
        f: a function of arrays, in any containers, to one real number.
        argnums: the positional argument to differentiate, or several of them.
        has_aux: the function returns a pair (value, aux); the result is then ``(hessian, aux)``.
        memory_budget: bytes that the values on the way may take: so many columns as fit are computed at a time.

    >>> from tenferro_ad import hessian
    >>> import numpy as np
    >>> hessian(lambda x: (x * x * x).sum())(np.array([1.0, 2.0]))
    Tensor([[ 6.,  0.],
            [ 0., 12.]])
    """
    gradient = grad(f, argnums, has_aux=has_aux)
    return jacfwd(gradient, argnums, has_aux=has_aux, memory_budget=memory_budget)


def hvp(f: Callable[..., Any], primals: Sequence[Any], tangents: Sequence[Any]) -> Any:
    """Product of the Hessian of a real function with tangents, without the Hessian: the jvp of the gradient.

    Args:
        f: a function of arrays, in any containers, to one real number.
        primals: tuple of the arguments, all differentiated.
        tangents: tuple of their tangents.

    Returns:
        The product for the only argument, or a tuple of products where there are several.

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
    """Raise unless the values have one derivative: of complex arguments only a holomorphic function has.

    Raises:
        GradientError: they have not, or `holomorphic` is said of real numbers.
    """
    for out in outs:
        if holomorphic and not (out.cplx and x.cplx):
            raise GradientError(
                f"{what} with holomorphic=True is for complex arguments and values, but there are {x!r} and "
                f"{out!r}; leave holomorphic out"
            )
        if not holomorphic and out.cplx and x.cplx:
            raise GradientError(
                f"{what} of the complex value {out!r} with respect to the complex {x!r}: only a holomorphic "
                "function has one complex derivative; say holomorphic=True if it is, else differentiate real and "
                "imaginary parts"
            )


def _first(x: Any, spec: Spec) -> Any:
    """Rows, one for each element of a spec, with the axes of the spec in front."""
    return x if spec.ndim == 1 else catalog.reshape(x, shape=(*spec.shape, *x.spec.shape[1:]))


def _last(x: Any, spec: Spec) -> Any:
    """Columns, one for each element of a spec, with the axes of the spec at the end."""
    turned = catalog.transpose(x, permutation=(*range(1, x.spec.ndim), 0))
    return turned if spec.ndim == 1 else catalog.reshape(turned, shape=(*turned.spec.shape[:-1], *spec.shape))


def _nested(out_tree: Any, in_tree: Any, blocks: list[list[Any]]) -> Any:
    return unflatten(out_tree, [unflatten(in_tree, row) for row in blocks])
