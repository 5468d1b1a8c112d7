"""Calls of Python functions as steps of a program."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, Final

import numpy as np

from tenferro_runtime._rules import Inactive
from tenferro_runtime.ir._effects import CALLBACKS, EFFECTS
from tenferro_runtime.tracing.effects._recording import perform, run_or_record
from tenferro_runtime.trees._tree import TreeDef, flatten, unflatten
from tenferro_tensor import HOST, REGISTRY, Array, Op, Primitive, Spec
from tenferro_tensor.operands import value
from tenferro_tensor_core import bool_

_DONE: Final = np.False_


class Callback:
    """A call of a Python function whose arguments are filled in later.

    Compared by identity: each call site in a program has its own.
    """

    __slots__ = ("arrays", "f", "leaves", "tree")

    def __init__(self, f: Callable[..., Any], tree: TreeDef, leaves: list[Any], arrays: list[int]) -> None:
        self.f, self.tree, self.leaves, self.arrays = f, tree, leaves, arrays

    def __call__(self, *raws: Any) -> None:
        """Call the function with copies of the arrays, now or after the current attempt has succeeded."""
        leaves = list(self.leaves)
        for i, raw in zip(self.arrays, raws):
            leaves[i] = np.array(raw)
        args, kwargs = unflatten(self.tree, leaves)
        perform(partial(self.f, *args, **kwargs))

    def __repr__(self) -> str:
        return getattr(self.f, "__qualname__", type(self.f).__name__)


def _debug_callback(*xs: Spec, callback: Callback) -> Spec:
    """Call a Python function with the elements of the operands, in the order of the program; returns nothing."""
    return Spec((), bool_, xs[0].place if xs else HOST)


class _CallbackPrimitive(Primitive):
    def op(self, **params: Any) -> Op:
        return Op(self, params)  # no two ops are equal, so that no table needs to hold them


_debug_callback.__name__ = "debug_callback"
callback_primitive = _CallbackPrimitive(_debug_callback)


def _kernel(ins: tuple[Spec, ...], outs: tuple[Spec, ...], *, callback: Callback) -> Callable[..., Any]:
    def run(*raws: Any) -> Any:
        callback(*raws)
        return np.asarray(_DONE)

    return run


EFFECTS.add(callback_primitive)
CALLBACKS.add(callback_primitive)
REGISTRY.kernel(callback_primitive, "cpu", _kernel)
REGISTRY.rule(callback_primitive, Inactive())


def call_back(f: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    """Call a Python function, now or as a step of the program that is being recorded.

    Args:
        f: the function.
        args: positional arguments.
        kwargs: keyword arguments.
    """
    leaves, tree = flatten((args, kwargs))
    places = [i for i, x in enumerate(leaves) if _is_number(x)]
    values = [value(leaves[i]) for i in places]
    rest = [None if i in places else x for i, x in enumerate(leaves)]
    callback = Callback(f, tree, rest, places)
    run_or_record(lambda: callback_primitive.op(callback=callback), values, callback)


def _is_number(x: Any) -> bool:
    return isinstance(x, (Array, np.ndarray)) or hasattr(x, "__dim__")
