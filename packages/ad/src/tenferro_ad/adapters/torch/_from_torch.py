"""`from_torch`: a PyTorch function as a differentiable tenferro function."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from importlib import import_module
from typing import Any, Final

import numpy as np

from tenferro_ad.adapters.torch._guests import Specs, TorchFunction, torch_call
from tenferro_ad.adapters.torch._library import torch
from tenferro_ad.adapters.torch._memory import example_of, spec_of
from tenferro_runtime.extension import BoundedCache
from tenferro_runtime.trees import TreeDef, flatten, unflatten
from tenferro_tensor import Array
from tenferro_tensor.operands import value
from tenferro_tensor_core import ArgumentError, TracingError, key_of
from tenferro_tensor_core.forks import importing

STRUCTURES_MAX: Final = 256
"""Bound of the cache of argument structures of a function."""

METHODS: Final = ("vmap", "sequential")


def from_torch(
    g: Callable[..., Any], *, infer: Callable[..., Any] | None = None, vmap_method: str = "vmap"
) -> Callable[..., Any]:
    """Make a tenferro function from a PyTorch function.

    It runs as one operation, in eager calls and in compiled programs, in the memory and on the device of its arguments.
    Its derivatives are PyTorch's, by `torch.func.vjp` and `torch.func.jvp`, in both modes and at every order that
    PyTorch supports; `vmap` maps it by `torch.func.vmap`.

    Args:
        g: a function of pytrees of PyTorch tensors to a pytree of tensors. It must be pure: it may be called any number
            of times, and must not write to its arguments. Tensors that it closes over, such as the parameters of a
            module, are constants; to differentiate with respect to them, pass them as arguments, with
            `torch.func.functional_call` for a module. PyTorch does not record `g`; inside it, use `torch.func` for
            derivatives.
        infer: maps the `Spec`s of the arrays, in the containers of the arguments, to the `Spec`s of the result. By
            default PyTorch infers them by a run on fake tensors; then a compiled function is traced for each set of
            sizes, and `g` must not read elements.
        vmap_method: ``"vmap"``, or ``"sequential"`` to call `g` lane by lane if `torch.func.vmap` does not support it.

    Returns:
        A function with the arguments of `g`. Arrays and tensors among them are operands; everything else, including
        numbers, is a constant and must be hashable. The results have the shapes and dtypes of those of `g`.

    Raises:
        ArgumentError: `g` is not callable, `vmap_method` is unknown, or `g` returns something other than tensors of
            the specs that `infer` returned.

    See also:
        as_torch: the other direction.

    >>> import torch
    >>> import tenferro_runtime as tr
    >>> from tenferro_ad import grad
    >>> from tenferro_ad.adapters.torch import from_torch
    >>> f = from_torch(lambda x: torch.logsumexp(x, 0))
    >>> tr.compile(grad(f))(tr.zeros(4))
    Tensor([0.25, 0.25, 0.25, 0.25])
    """
    if not callable(g):
        raise ArgumentError(f"from_torch takes a function, got {g!r:.80}")
    if vmap_method not in METHODS:
        raise ArgumentError(f"from_torch: {vmap_method=} is unknown; use one of {', '.join(METHODS)}")
    title = getattr(g, "__qualname__", type(g).__name__)
    functions: BoundedCache[Any, TorchTreeFunction] = BoundedCache(f"from_torch({title})", STRUCTURES_MAX)

    @wraps(g)
    def called(*args: Any, **kwargs: Any) -> Any:
        leaves, tree = flatten((args, kwargs))
        static = {i: x for i, x in enumerate(leaves) if not isinstance(x, (Array, np.ndarray))}
        try:
            key = (tree, tuple([(i, key_of(x)) for i, x in static.items()]))
            found = functions.get_or_make(
                key, lambda: TorchTreeFunction(g, tree, static, infer, title, vmap_method == "sequential")
            )
        except TypeError as error:
            raise ArgumentError(
                f"from_torch: the arguments {[*static.values()]!r:.80} are neither arrays nor hashable, so they "
                f"cannot be constants of {title}; pass tensors, tuples or strings"
            ) from error
        return found.call([value(x) for i, x in enumerate(leaves) if i not in static])

    return called


class TorchTreeFunction:
    """A function of PyTorch for arguments of one structure.

    Args:
        g: the function.
        tree: structure of its arguments, ``(args, kwargs)``.
        static: the leaves that are not arrays, by position.
        infer: the user's inference, or ``None``.
        title: name for messages.
        sequential: whether to run lane by lane under `vmap`.
    """

    def __init__(
        self,
        g: Callable[..., Any],
        tree: TreeDef,
        static: dict[int, Any],
        infer: Callable[..., Any] | None,
        title: str,
        sequential: bool,
    ) -> None:
        self._g, self._tree, self._static, self._told, self._title = g, tree, static, infer, title
        self._trees: BoundedCache[Specs, TreeDef] = BoundedCache(f"from_torch({title}): containers", STRUCTURES_MAX)
        self._flat = TorchFunction(self._run, self._infer, title, sequential)

    def call(self, values: list[Any]) -> Any:
        """Apply the function to the arrays among the leaves of its arguments."""
        found = torch_call(*values, function=self._flat)
        specs = tuple([x.spec for x in values])
        tree = self._trees.get(specs)
        if tree is None:
            self._infer(specs)
            tree = self._trees.get(specs)
        assert tree is not None, "inference stores the structure of the result"
        return unflatten(tree, found)

    def _applied(self, f: Callable[..., Any], leaves: Any) -> Any:
        rest = iter(leaves)
        full = [self._static[i] if i in self._static else next(rest) for i in range(self._tree.size)]
        args, kwargs = unflatten(self._tree, full)
        return f(*args, **kwargs)

    def _run(self, *tensors: Any) -> tuple[Any, ...]:
        leaves, tree = flatten(self._applied(self._g, tensors))
        for x, path in zip(leaves, tree.paths(), strict=True):
            if not isinstance(x, torch.Tensor):
                raise ArgumentError(
                    f"{self._title} returned the {type(x).__name__} {x!r:.60}{path and f' at {path}'}, and from_torch "
                    "takes functions that return tensors; return torch.as_tensor of it"
                )
        return tuple(leaves)

    def _infer(self, specs: Specs) -> Specs:
        if self._told is not None:
            found, tree = flatten(self._applied(self._told, specs))
            self._trees.put(specs, tree)
            return tuple(found)
        if any(s.symbolic for s in specs):
            raise TracingError(
                f"the result of {self._title} for {', '.join(map(repr, specs))} is inferred by a run of PyTorch, which "
                "needs numeric sizes; pass from_torch(infer=...), or trace it for numbers"
            )
        with importing():
            fake = import_module("torch._subclasses.fake_tensor").FakeTensorMode(allow_non_fake_inputs=True)
        with fake, torch.no_grad():
            leaves, tree = flatten(self._applied(self._g, [example_of(s) for s in specs]))
            found = [spec_of(torch.as_tensor(x)) for x in leaves]
        self._trees.put(specs, tree)
        return tuple(found)
