"""Kernels of all core primitives over an array module with NumPy's interface.

The CPU backend uses them with NumPy, the GPU backends with CuPy. They are also the reference for the tests of every
faster kernel. Each module holds the kernels of the catalog module of the same name.
"""

from typing import Any

from tenferro_tensor.reference import (
    analytic,
    arithmetic,
    bits,
    comparison,
    contraction,
    creation,
    indexing,
    numbers,
    placement,
    reduction,
    scan,
    sorting,
    structure,
)
from tenferro_tensor.reference._table import Special, Table

__all__ = ["kernels"]


def __dir__() -> list[str]:
    return __all__.copy()


_MODULES = (
    arithmetic, analytic, bits, comparison, numbers, structure, indexing, reduction, scan, sorting, contraction,
    creation, placement,
)  # fmt: skip


def kernels(xp: Any, special: Special) -> Table:
    """Kernel makers of all core primitives.

    A kernel takes raw arrays with any strides, or NumPy scalars for 0-d arrays. Element-wise kernels
    broadcast, and accept Python scalars as operands. Results may be views, since values are immutable.

    Args:
        xp: array module with NumPy's interface: NumPy or CuPy.
        special: loads the module of special functions on first call: ``scipy.special`` or ``cupyx.scipy.special``.

    Returns:
        The kernel makers by primitive.

    >>> import numpy as np
    >>> from tenferro_tensor import Spec, catalog
    >>> make = kernels(np, lambda: __import__("scipy.special").special)[catalog.reduce_sum]
    >>> rows = Spec((2, 3), np.dtype("float64"))
    >>> make((rows,), (catalog.reduce_sum.infer(rows, axes=(1,)),), axes=(1,))(np.ones((2, 3)))
    array([3., 3.])
    """
    return {primitive: make for module in _MODULES for primitive, make in module.kernels(xp, special).items()}
