"""Arguments and results of transforms: selects the differentiated leaves and rebuilds containers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tenferro_runtime.trees import TreeDef, flatten, map_tree, unflatten
from tenferro_tensor import Array, Spec, tensor
from tenferro_tensor.identity import aliased, handed
from tenferro_tensor.ownership import owned
from tenferro_tensor_core import ArgumentError, GradientError, TenferroError

CONVENTIONS = ("tenferro", "jax")


def as_value(x: Any) -> Any:
    """A leaf as a value: host arrays and numbers become tensors."""
    return aliased(x) if isinstance(x, Array) else tensor(x)


def as_values(leaves: Sequence[Any], tree: TreeDef, what: str, *, copy: bool = False) -> list[Any]:
    """The leaves of a tree as values, protected from assignment; `copy` also copies host arrays.

    Raises:
        ArgumentError: a leaf is neither an array nor a number; the message names its path.
    """
    found: list[Any] = []
    try:
        for x in leaves:
            if isinstance(x, Array):
                found.append(aliased(owned(x) if copy else x))
            else:
                found.append(tensor(x, copy=True) if copy else tensor(x))
    except TenferroError as cause:
        x = leaves[len(found)]
        if isinstance(x, (np.ndarray, np.generic)):
            raise
        path = list(tree.paths())[len(found)]
        raise ArgumentError(
            f"{what}{path and f' at {path}'} is a {type(x).__name__}, neither an array nor a number; close over it, "
            "make it a static field, or register its class with register_dataclass or register_node",
            path=path,
        ) from cause
    return found


def require_convention(convention: str) -> None:
    """Raise unless `convention` is one of the two conventions for gradients of complex values."""
    if convention not in CONVENTIONS:
        raise ArgumentError(
            f"convention={convention!r} is unknown; use 'tenferro', which pairs as Re(conj(a) b), so that a complex "
            "gradient points uphill, or 'jax' for its conjugate",
            convention=convention,
        )


class Picked:
    """The positional arguments of a function, with the leaves of those to differentiate.

    Attributes:
        values: leaves of the chosen arguments, as values.
        tree: structure of the chosen argument, or of the tuple of arguments that `argnums` lists.
    """

    def __init__(self, args: tuple[Any, ...], argnums: int | Sequence[int], what: str) -> None:
        self.single = isinstance(argnums, int)
        nums = (argnums,) if isinstance(argnums, int) else tuple(argnums)
        if not ({*map(type, nums)} == {int} and min(nums) >= 0 and max(nums) < len(args)):
            nums = _checked(nums, len(args), what)
        if len({*nums}) != len(nums):
            raise ArgumentError(f"{what}: argnums={argnums} names an argument twice", argnums=nums)
        self.args, self.nums = args, nums
        chosen: Any = args[self.nums[0]] if self.single else tuple([args[n] for n in self.nums])
        leaves, self.tree = flatten(chosen)
        self.values = as_values(leaves, self.tree, f"an argument of {what}", copy=True)
        require_differentiable([v.spec for v in self.values], self.tree, what)

    def call(self, f: Callable[..., Any], leaves: Sequence[Any], kwargs: dict[str, Any]) -> Any:
        """Call the function with other leaves in the chosen arguments."""
        chosen = unflatten(self.tree, leaves)
        args = list(self.args) if len(self.args) == len(self.nums) else [map_tree(handed, x) for x in self.args]
        for n, x in zip(self.nums, (chosen,) if self.single else chosen):
            args[n] = x
        return f(*args, **map_tree(handed, kwargs)) if kwargs else f(*args)


def _checked(nums: tuple[Any, ...], count: int, what: str) -> tuple[int, ...]:
    """Argument positions, with negative ones counted from the end.

    Raises:
        ArgumentError: a position is out of range.
    """
    for n in nums:
        if n.__class__ is not int or not -count <= n < count:
            raise ArgumentError(
                f"{what} was asked to differentiate argument {n!r}, but {count} positional arguments were "
                "given; argnums counts positional arguments from 0",
                argnums=nums,
            )
    return tuple([n % count for n in nums])


def require_differentiable(specs: Sequence[Spec], tree: TreeDef, what: str) -> None:
    """Raise unless all leaves are real or complex floating point."""
    if all(spec.inexact for spec in specs):
        return
    for spec, path in zip(specs, tree.paths()):
        if not spec.inexact:
            where = f" at {path}" if path else ""
            raise GradientError(
                f"{what} cannot differentiate with respect to {spec!r}{where}: only real and complex floating-point "
                "values have derivatives; convert it with .astype('float64'), or close over it",
                spec=repr(spec),
            )


def split_aux(out: Any, has_aux: bool, what: str) -> tuple[Any, Any]:
    """Split a function's result into the value and aux."""
    if not has_aux:
        return out, None
    if not isinstance(out, tuple) or len(out) != 2:
        raise ArgumentError(
            f"{what} with has_aux=True needs a function that returns a pair (value, aux), got {type(out).__name__}"
        )
    return out
