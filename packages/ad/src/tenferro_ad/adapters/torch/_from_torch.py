"""`from_torch`: a function of PyTorch as a differentiable function of tenferro."""

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

MAX_STRUCTURES: Final = 256
"""Largest number of structures of arguments that a function is kept for."""

METHODS: Final = ("vmap", "sequential")


def from_torch(
    g: Callable[..., Any], *, infer: Callable[..., Any] | None = None, vmap_method: str = "vmap"
) -> Callable[..., Any]:
    """Make a function of tensors of a PyTorch function.

    It runs as one operation, in eager calls and as a step of compiled programs, in the memory of its arguments and on
    their device. Its derivatives are those of PyTorch, by `torch.func.vjp` and `torch.func.jvp`, in both modes and at
    every order that PyTorch has; under `vmap` it is mapped by `torch.func.vmap`.

    Args:
        g: a function of PyTorch tensors, in any containers, to tensors in any containers. It must be pure: it may be
            called any number of times, and must not write to its arguments. Tensors that it uses from outside, such as
            the parameters of a module, are constants without a derivative; to have one, pass them as arguments, with
            `torch.func.functional_call` for a module. PyTorch does not record what it does; inside of it, derivatives
            are those of `torch.func`.
        infer: maps the `Spec`s of the arrays, in the containers of the arguments, to the `Spec`s of the result. By
            default PyTorch finds out, by a run without elements; then a compiled function is traced for each set of
            sizes, and `g` may not look at elements.
        vmap_method: ``"sequential"`` calls `g` for each lane of a batch, where `torch.func.vmap` cannot take it.

    Returns:
        A function of the same arguments. Arrays and tensors among them are operands; everything else, also numbers, is
        a constant, and needs a hash.

    Raises:
        ArgumentError: `g` is no function, or returns something else than tensors, or than `infer` says.

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
        raise ArgumentError(f"{vmap_method=} is not known to from_torch; use one of {', '.join(METHODS)}")
    title = getattr(g, "__qualname__", type(g).__name__)
    functions: BoundedCache[Any, TorchTreeFunction] = BoundedCache(f"from_torch({title})", MAX_STRUCTURES)

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
                f"from_torch: the arguments {[*static.values()]!r:.80} are no arrays and have no hash, so that they "
                f"cannot be constants of {title}; pass tensors, tuples or text"
            ) from error
        return found.call([value(x) for i, x in enumerate(leaves) if i not in static])

    return called


class TorchTreeFunction:
    """A function of PyTorch for arguments of one structure.

    Args:
        g: the function.
        tree: structure of its arguments, ``(args, kwargs)``.
        static: the leaves that are no arrays, by position.
        infer: what the user knows about the specs of the result, or ``None``.
        title: name for messages.
        sequential: whether it takes the lanes of a batch one after the other.
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
        self._trees: BoundedCache[Specs, TreeDef] = BoundedCache(f"from_torch({title}): containers", MAX_STRUCTURES)
        self._flat = TorchFunction(self._run, self._infer, title, sequential)

    def call(self, values: list[Any]) -> Any:
        """Apply the function to the arrays among the leaves of its arguments."""
        found = torch_call(*values, function=self._flat)
        specs = tuple([x.spec for x in values])
        tree = self._trees.get(specs)
        if tree is None:
            self._infer(specs)
            tree = self._trees.get(specs)
        assert tree is not None, "inference notes the containers of the result"
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
                f"what {self._title} returns for {', '.join(map(repr, specs))} is found out by a run of PyTorch, "
                "which takes sizes that are numbers; state it with from_torch(infer=...), or trace it for numbers"
            )
        with importing():
            fake = import_module("torch._subclasses.fake_tensor").FakeTensorMode(allow_non_fake_inputs=True)
        with fake, torch.no_grad():
            leaves, tree = flatten(self._applied(self._g, [example_of(s) for s in specs]))
            found = [spec_of(torch.as_tensor(x)) for x in leaves]
        self._trees.put(specs, tree)
        return tuple(found)
