"""Signatures of the functions that extensions register; registration refuses functions with other signatures."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any, Final

from tenferro_tensor._primitive import Primitive
from tenferro_tensor_core import RegistryError

__all__ = ["POSITIONAL", "require_call", "require_hook"]


def __dir__() -> list[str]:
    return __all__.copy()


POSITIONAL: Final[dict[str, tuple[str, ...]]] = {
    "kernel": ("ins", "outs"),
    "lowering": ("emitter", "operands", "outs"),
    "cost": ("ins", "outs"),
    "batching": ("size", "values", "batched"),
    "sparsity": ("step",),
    "prune": ("op", "used"),
    "encode": ("metadata",),
    "decode": ("metadata",),
}
"""Positional arguments of each hook; expansions and Taylor rules receive the operands. Kernels, lowerings, costs,
batching rules, expansions and Taylor rules also receive the metadata by name."""

_NAMED: Final = frozenset({"kernel", "lowering", "cost", "expansion", "batching", "taylor"})


def require_hook(hook: str, primitive: Primitive, function: Any) -> None:
    """Check that a registered function accepts the arguments of its hook.

    Args:
        hook: name of the hook, a key of `POSITIONAL` or ``"expansion"`` or ``"taylor"``.
        primitive: the primitive.
        function: the function.

    Raises:
        RegistryError: it does not; the text shows the call.
    """
    positional = primitive.operands if hook in ("expansion", "taylor") else POSITIONAL[hook]
    named = primitive.metadata if hook in _NAMED else ()
    require_call(
        f"the {hook} of {primitive.name}",
        primitive,
        function,
        positional,
        f"({', '.join([*positional, *named])})",
        named,
    )


def require_call(
    what: str,
    primitive: Primitive,
    function: Any,
    positional: tuple[Any, ...],
    shown: str,
    named: tuple[str, ...] = (),
) -> None:
    """Check that a function is callable with given arguments.

    Args:
        what: the function's role, for the error.
        primitive: the primitive, for the error.
        function: the function.
        positional: positional arguments.
        shown: the arguments as text.
        named: names of keyword arguments.

    Raises:
        RegistryError: it is not.
    """
    if not callable(function):
        raise RegistryError(f"{what} should be a function {shown}, got {function!r:.80}", primitive=primitive.name)
    taken = _takes(function, positional, named)
    if taken is not None:
        raise RegistryError(
            f"{what} is called with {shown}, but {function!r:.80} does not take that: {taken}", primitive=primitive.name
        )


def _takes(function: Callable[..., Any], positional: tuple[Any, ...], named: tuple[str, ...]) -> str | None:
    """Why a call would fail before it begins; ``None`` if it would not, or if the signature is unknown."""
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):  # functions in C may have no signature
        return None
    try:
        signature.bind(*positional, **dict.fromkeys(named))
    except TypeError as cause:
        return str(cause)
    return None
