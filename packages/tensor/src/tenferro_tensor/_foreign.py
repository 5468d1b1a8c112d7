"""Operands of operators that are no arrays of tenferro's, but look like some."""

from __future__ import annotations

from typing import Any, Final

from tenferro_tensor_core import ForeignFunctionError

_LIBRARIES: Final = frozenset({"cupy", "jax", "jaxlib", "mlx", "tensorflow", "torch"})
"""Packages whose arrays compute with their own kind only; others may know what to do with a tensor."""


def require_no_array(x: Any) -> None:
    """Refuse an array of another library, or a sequence, as the operand of an operator.

    Raises:
        ForeignFunctionError: it is one; the text says how to make it a tensor.
    """
    cls = type(x)
    library = cls.__module__.partition(".")[0]
    if library in _LIBRARIES and hasattr(x, "__dlpack__"):
        raise ForeignFunctionError(
            f"a {library} array ({cls.__name__}) stands beside a tensor: nothing is converted between libraries "
            "implicitly, where derivatives and devices would get lost; write tr.asarray(...) of it, which shares its "
            "memory where that is possible"
        )
    if isinstance(x, (list, tuple)):
        raise ForeignFunctionError(
            f"a {cls.__name__} stands beside a tensor; make it a tensor first, as in x + tr.asarray([1, 2])"
        )
