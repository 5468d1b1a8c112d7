"""Arrays of other libraries and sequences as operands of operators."""

from __future__ import annotations

from typing import Any, Final

from tenferro_tensor_core import ForeignFunctionError

_LIBRARIES: Final = frozenset({"cupy", "jax", "jaxlib", "mlx", "tensorflow", "torch"})
"""Packages whose arrays operate on their own kind only; others may support tensors."""


def class_of(x: Any) -> str:
    """The class of an object for messages, with the library that defines it: ``torch.Tensor``, ``list``.

    Args:
        x: any object.

    Returns:
        The name.

    >>> import numpy as np
    >>> class_of([]), class_of(np.ones(1))
    ('list', 'numpy.ndarray')
    """
    cls = type(x)
    library = cls.__module__.partition(".")[0]
    return cls.__name__ if library == "builtins" else f"{library}.{cls.__name__}"


def require_no_array(x: Any, products: bool = False) -> None:
    """Refuse an array of another library, or a sequence, as the operand of an operator.

    Args:
        x: the operand.
        products: whether a sparse array is fine, since SciPy multiplies it with the elements of a tensor.

    Raises:
        ForeignFunctionError: it is one; the text says how to make it a tensor.
    """
    cls = type(x)
    library = cls.__module__.partition(".")[0]
    if cls.__module__.startswith("scipy.sparse") and not products:
        raise ForeignFunctionError(
            f"a sparse array of SciPy ({cls.__name__}) and a tensor are operands of one operator; write "
            "tr.linalg.sparse_array(...) for a sparse array of tensors, or tr.asarray(s.toarray())"
        )
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
