"""Jacobians and Hessians, one tangent or cotangent after the other, and Hessian-vector products."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import wraps
from typing import Any

import numpy as np

from tenferro_ad._forward import jvp
from tenferro_ad._linearize import linearize
from tenferro_ad._reverse import Recorded, conjugated, grad
from tenferro_ad._trees import Picked, require_convention
from tenferro_ad._zeros import zeros_like
from tenferro_runtime.trees import flatten, unflatten
from tenferro_tensor import Spec, catalog, tensor
from tenferro_tensor_core import ArgumentError, GradientError, specialise


def jacfwd(
    f: Callable[..., Any],
    argnums: int | Sequence[int] = 0,
    *,
    holomorphic: bool = False,
    convention: str = "tenferro",
) -> Callable[..., Any]:
    """Make a function that returns the Jacobian of `f`, column by column in forward mode.

    For a value of shape s and an argument of shape t it has shape s + t; containers of arguments nest inside those of
    the value. Good for few arguments and many values. Where the argument is complex and the value real, an entry is
    the gradient d f / d Re z + i d f / d Im z.

    Args:
        f: a function of arrays, in any containers, to arrays in any containers.
        argnums: the positional argument to differentiate, or several of them.
        holomorphic: the function is holomorphic; needed where both argument and value are complex.
        convention: ``"jax"`` conjugates the entries of a real value with respect to a complex argument.

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
        picked = Picked(args, argnums, "jacfwd")
        out, push = linearize(lambda *leaves: picked.call(f, leaves, kwargs), *picked.values)
        outs, tree = flatten(out)
        _require_floats(outs, "jacfwd")
        zeros = [zeros_like(v) for v in picked.values]
        blocks: list[list[Any]] = [[] for _ in outs]
        for j, x in enumerate(picked.values):
            _require_kind(outs, x, holomorphic, "jacfwd")

            def column(t: Any, j: int = j) -> list[Any]:
                return flatten(push(*[t if i == j else z for i, z in enumerate(zeros)]))[0]

            columns = [column(t) for t in _basis(x.spec)]
            turned = [column(t) for t in _basis(x.spec, 1j)] if x.spec.cplx and not holomorphic else None
            for k, out_k in enumerate(outs):
                parts = [c[k] for c in columns]
                if turned is not None:
                    sign = 1j if convention == "tenferro" else -1j
                    parts = [a + sign * b[k] for a, b in zip(parts, turned)]
                blocks[k].append(_stacked(parts, out_k.spec, x.spec, last=True))
        return _nested(tree, picked.tree, blocks)

    return jacobian


def jacrev(
    f: Callable[..., Any],
    argnums: int | Sequence[int] = 0,
    *,
    holomorphic: bool = False,
    convention: str = "tenferro",
) -> Callable[..., Any]:
    """Make a function that returns the Jacobian of `f`, row by row in reverse mode.

    The same matrix as `jacfwd`; good for many arguments and few values.

    Args:
        f: a function of arrays, in any containers, to arrays in any containers.
        argnums: the positional argument to differentiate, or several of them.
        holomorphic: the function is holomorphic; needed where both argument and value are complex.
        convention: ``"jax"`` conjugates the entries of a real value with respect to a complex argument.

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
        run = Recorded(f, picked, kwargs, False, "jacrev")
        _require_floats(run.outs, "jacrev")
        for x in picked.values:
            _require_kind(run.outs, x, holomorphic, "jacrev")
        blocks = []
        for k, out in enumerate(run.outs):

            def row(g: Any, k: int = k) -> list[Any]:
                return run.pull([g if i == k else None for i in range(len(run.outs))], release=False)

            rows = [row(g) for g in _basis(out.spec)]
            turned = [row(g) for g in _basis(out.spec, 1j)] if out.spec.cplx and not holomorphic else None
            of_out = []
            for j, x in enumerate(picked.values):
                parts = [r[j] for r in rows]
                if holomorphic or (convention == "jax" and not out.spec.cplx):
                    parts = [conjugated(p) for p in parts]
                elif turned is not None:
                    parts = [a + 1j * b[j] for a, b in zip(parts, turned)]
                of_out.append(_stacked(parts, out.spec, x.spec, last=False))
            blocks.append(of_out)
        return _nested(run.tree, picked.tree, blocks)

    return jacobian


def hessian(f: Callable[..., Any], argnums: int | Sequence[int] = 0) -> Callable[..., Any]:
    """Make a function that returns the matrix of second derivatives of a real function of real arguments.

    Forward over reverse: the gradient is linearized once, and the linear program is run for each basis vector.

    Args:
        f: a function of arrays, in any containers, to one real number.
        argnums: the positional argument to differentiate, or several of them.

    >>> from tenferro_ad import hessian
    >>> import numpy as np
    >>> hessian(lambda x: (x * x * x).sum())(np.array([1.0, 2.0]))
    Tensor([[ 6.,  0.],
            [ 0., 12.]])
    """
    return jacfwd(grad(f, argnums), argnums)


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


def _require_floats(outs: Sequence[Any], what: str) -> None:
    for o in outs:
        if not o.spec.inexact:
            raise GradientError(
                f"{what} needs a function with real or complex floating-point values, but one value is {o.spec!r}; "
                "leave it out of the result"
            )


def _require_kind(outs: Sequence[Any], x: Any, holomorphic: bool, what: str) -> None:
    """Only a holomorphic function has one complex derivative."""
    for o in outs:
        if holomorphic and not (o.spec.cplx and x.spec.cplx):
            raise GradientError(
                f"{what} with holomorphic=True is for complex arguments and values, but there are {x.spec!r} and "
                f"{o.spec!r}; leave holomorphic out"
            )
        if not holomorphic and o.spec.cplx and x.spec.cplx:
            raise GradientError(
                f"{what} of the complex value {o.spec!r} with respect to the complex {x.spec!r}: only a holomorphic "
                "function has one complex derivative; say holomorphic=True if it is, else differentiate real and "
                "imaginary parts"
            )


def _basis(spec: Spec, unit: complex = 1) -> list[Any]:
    """The unit vectors of a spec, as many as it has elements: open sizes become those of the traced arguments."""
    shape = tuple([specialise(d, "a Jacobian, of which each column or row is computed,") for d in spec.shape])
    found = []
    for index in np.ndindex(shape):
        e = np.zeros(shape, spec.dtype)
        e[index] = unit
        x = tensor(e, device=spec.place.device)
        found.append(catalog.reshape(x, shape=spec.shape) if spec.symbolic else x)
    return found


def _stacked(parts: list[Any], out: Spec, x: Spec, *, last: bool) -> Any:
    """Columns (of the shape of the value) or rows (of the shape of the argument) as one block."""
    shape = (*out.shape, *x.shape)
    if not parts:
        dtype = np.result_type(out.dtype, x.dtype)
        return tensor(np.zeros(shape, dtype), device=out.place.device)
    spec = parts[0].spec
    flat = [catalog.reshape(p, shape=(*spec.shape, 1) if last else (1, *spec.shape)) for p in parts]
    block = catalog.concatenate(*flat, axis=spec.ndim if last else 0)
    return block if block.spec.shape == shape else catalog.reshape(block, shape=shape)


def _nested(out_tree: Any, in_tree: Any, blocks: list[list[Any]]) -> Any:
    return unflatten(out_tree, [unflatten(in_tree, row) for row in blocks])
