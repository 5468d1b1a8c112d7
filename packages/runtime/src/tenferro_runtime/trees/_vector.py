"""`ravel_tree`: a tree of arrays as one vector, and the way back."""

from __future__ import annotations

from collections.abc import Callable
from itertools import accumulate, pairwise
from math import prod
from typing import Any

from tenferro_runtime.trees._tree import flatten, unflatten
from tenferro_tensor import SCALARS, Array
from tenferro_tensor.functions import asarray, cast, concat, ravel, real, reshape, result_type, zeros
from tenferro_tensor.operands import value
from tenferro_tensor_core import ShapeError


def ravel_tree(tree: Any) -> tuple[Array, Callable[[Any], Any]]:
    """Join the elements of all leaves of a tree into a vector, for optimizers and solvers of vectors.

    Both directions can be differentiated, compiled and mapped.

    Args:
        tree: a tree of arrays and numbers.

    Returns:
        The vector, of the promoted dtype of the leaves and in their order; and a function that makes a tree with the
        structure, shapes and dtypes of `tree` from a vector of this length. It drops the imaginary part for leaves
        that are real, and decimals for integers.

    Raises:
        ShapeError: (the function) the vector has another shape.

    >>> import tenferro_runtime as tr
    >>> vector, unravel = tr.ravel_tree({"w": tr.asarray([[1.0, 2.0]]), "b": 3.0})
    >>> vector
    Tensor([1., 2., 3.])
    >>> unravel(2 * vector)
    {'w': Tensor([[2., 4.]]), 'b': Tensor(6.)}
    """
    leaves, treedef = flatten(tree)
    home = next((leaf.device for leaf in leaves if isinstance(leaf, Array)), None)
    arrays = [asarray(leaf, device=home) if leaf.__class__ in SCALARS else value(leaf) for leaf in leaves]
    specs = [x.spec for x in arrays]
    ends = [0, *accumulate([prod(spec.shape) for spec in specs])]

    def unravel(vector: Any) -> Any:
        x = value(vector)
        if x.spec.shape != (ends[-1],):
            raise ShapeError(
                f"unravel takes a vector of the {ends[-1]} elements of {treedef.show()}, got {x.spec!r}; "
                "give it a vector like the one that ravel_tree returned",
                shape=x.spec.shape,
            )
        return unflatten(treedef, [_part(x[i:j], spec) for (i, j), spec in zip(pairwise(ends), specs, strict=True)])

    if not arrays:
        return zeros(0), unravel
    dtype = result_type(*[spec.dtype for spec in specs])
    return concat([cast(ravel(x), dtype) for x in arrays]), unravel


def _part(x: Any, spec: Any) -> Any:
    """A part of the vector in the shape and dtype of its leaf."""
    return cast(reshape(real(x) if x.spec.cplx and not spec.cplx else x, spec.shape), spec.dtype)
