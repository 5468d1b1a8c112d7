"""Arrays of other libraries and sequences as operands of operators."""

from __future__ import annotations

from typing import Any, Final

from tenferro_tensor_core import ForeignFunctionError

_LIBRARIES: Final = frozenset({"cupy", "jax", "jaxlib", "mlx", "tensorflow", "torch"})
"""Packages whose arrays operate on their own kind only; others may support tensors."""


def require_no_array(x: Any) -> None:
    """Refuse an array of another library, or a sequence, as the operand of an operator.

    Raises:
        ForeignFunctionError: it is one; the text says how to make it a tensor.
    """
    cls = type(x)
    library = cls.__module__.partition(".")[0]
    if library in _LIBRARIES and hasattr(x, "__dlpack__"):
        raise ForeignFunctionError(
            f"a {library} array ({cls.__name__}) and a tensor are operands of one operator: nothing is converted "
            "between libraries implicitly, which would lose derivatives and devices; write tr.asarray(...), which "
            "shares memory where possible"
        )
    if isinstance(x, (list, tuple)):
        raise ForeignFunctionError(
            f"a {cls.__name__} and a tensor are operands of one operator; make it a tensor first, as in "
            "x + tr.asarray([1, 2])"
        )
