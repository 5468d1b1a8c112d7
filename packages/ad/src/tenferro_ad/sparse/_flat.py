"""A function as a map from the leaves of its arguments, the chosen ones first, to the leaves of its value."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from tenferro_ad._trees import as_value, require_differentiable
from tenferro_ad.sparse._patterns import sizes_by_name
from tenferro_runtime import compile as compiled
from tenferro_runtime import trace
from tenferro_runtime.extension import Program, UnsupportedError
from tenferro_runtime.ir import sizes_of
from tenferro_runtime.trees import TreeDef, flatten, unflatten
from tenferro_tensor import SCALARS, Array, Spec, Tensor, tensor
from tenferro_tensor_core import ArgumentError


class Arguments(NamedTuple):
    """Arguments of a call.

    Attributes:
        leaves: the leaves that are arrays and numbers, the chosen ones first.
        chosen: number of chosen leaves.
        tree: structure of the chosen arguments.
        key: a key that is equal for calls that differ only in their leaves.
        rebuild: maps leaves to positional and keyword arguments.
    """

    leaves: tuple[Any, ...]
    chosen: int
    tree: TreeDef
    key: tuple[Any, ...]
    rebuild: Callable[[Sequence[Any]], tuple[Any, Any]]


def split_arguments(
    args: tuple[Any, ...], kwargs: dict[str, Any], argnums: int | Sequence[int], what: str
) -> Arguments:
    """The leaves of arguments, those of `argnums` first.

    Raises:
        ArgumentError: `argnums` names no argument.
        GradientError: a chosen argument holds integers or booleans.
    """
    nums = [argnums] if isinstance(argnums, int) else list(argnums)
    for n in nums:
        if not isinstance(n, int) or not -len(args) <= n < len(args):
            raise ArgumentError(
                f"{what} was asked to differentiate argument {n!r}, but {len(args)} positional arguments were given; "
                "argnums counts positional arguments from 0",
                argnums=argnums,
            )
    nums = [n % len(args) for n in nums]
    if len({*nums}) < len(nums):
        raise ArgumentError(f"{what}: argnums={argnums} names an argument twice", argnums=argnums)
    leaves, tree = flatten((args, kwargs))
    owner = [n for n, x in enumerate(args) for _ in flatten(x)[0]]
    owner += [-1] * (len(leaves) - len(owner))
    chosen = [i for n in nums for i, m in enumerate(owner) if m == n]
    dynamic = [i for i, x in enumerate(leaves) if i not in chosen and _is_value(x)]
    order = [*chosen, *dynamic]
    static = {i: x for i, x in enumerate(leaves) if i not in order}
    picked = args[nums[0]] if isinstance(argnums, int) else tuple([args[n] for n in nums])
    values = [leaves[i] if isinstance(leaves[i], Spec) else as_value(leaves[i]) for i in chosen]
    chosen_tree = flatten(picked)[1]
    require_differentiable([v if isinstance(v, Spec) else v.spec for v in values], chosen_tree, what)
    total = len(leaves)

    def rebuild(given: Sequence[Any]) -> tuple[Any, Any]:
        slots: list[Any] = [None] * total
        for i, x in (*static.items(), *zip(order, given, strict=True)):
            slots[i] = x
        positional, named = unflatten(tree, slots)
        return positional, named

    key = (tree, tuple(order), tuple(static.items()))
    return Arguments((*values, *[leaves[i] for i in dynamic]), len(chosen), chosen_tree, key, rebuild)


def _is_value(x: Any) -> bool:
    return isinstance(x, (Array, np.ndarray, np.generic, Spec)) or x.__class__ in SCALARS


class FlatFunction:
    """A function of leaves, with its compiled programs.

    Attributes:
        rebuild: maps leaves to arguments.
    """

    def __init__(self, f: Callable[..., Any], given: Arguments) -> None:
        self.f, self.rebuild = f, given.rebuild
        self.compiled = compiled(self)
        self._tree: TreeDef | None = None

    def __call__(self, *leaves: Any) -> tuple[Any, ...]:
        args, kwargs = self.rebuild(leaves)
        outs, self._tree = flatten(self.f(*args, **kwargs))
        return tuple([x if isinstance(x, Array) else tensor(x) for x in outs])

    def traced(self, leaves: Sequence[Any]) -> tuple[Program, TreeDef, dict[str, int] | None]:
        """The program for leaves, the structure of its result, and the values of its symbolic sizes.

        The values are ``None`` if a leaf is a `Spec` with symbolic sizes.
        """
        if any(isinstance(x, Spec) for x in leaves):
            program = trace(self, *leaves)
            assert self._tree is not None
            return program, self._tree, {} if not program.symbolic else None
        require_concrete(leaves)
        program = self.compiled.program(*leaves)
        if len(program.input_ids) > len(leaves):
            raise UnsupportedError(
                "the function of a sparse derivative closes over a differentiated or traced value; a sparse "
                "derivative needs concrete values: pass value.detach(), or use jvp and vjp"
            )
        tree: Any = program.memo.setdefault("structure of the result", self._tree)
        specs = [as_value(x).spec for x in leaves]
        sizes = sizes_by_name(program, sizes_of(program, specs)) if program.symbolic else {}
        return program, tree, sizes


def require_concrete(leaves: Sequence[Any]) -> None:
    """Raise unless all arrays are concrete, because SciPy's arrays cannot be traced or differentiated.

    Raises:
        UnsupportedError: a leaf is traced or differentiated.
    """
    for x in leaves:
        if isinstance(x, Array) and x.__class__ is not Tensor:
            raise UnsupportedError(
                f"a sparse derivative is an array of SciPy, so it needs concrete arguments, but one is {x.spec!r} of "
                f"class {type(x).__name__}; call it outside of compile, vmap and other derivatives, or use jvp and vjp"
            )
