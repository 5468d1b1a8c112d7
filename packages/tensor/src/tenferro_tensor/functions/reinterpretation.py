"""``x.view(dtype)``: the same bits under another dtype."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tenferro_tensor import catalog
from tenferro_tensor.functions.joining import stack
from tenferro_tensor.operands import host_elements, own
from tenferro_tensor_core import DTYPES, UnsupportedError, complex_of, real_of

if TYPE_CHECKING:
    from tenferro_tensor._array import Array

__all__: list[str] = []


def __dir__() -> list[str]:
    return __all__.copy()


def view(x: Any, dtype: Any) -> Array:
    """Reinterpret the bits as another dtype; the last axis absorbs the difference in size, as in NumPy.

    Between a complex dtype and the real dtype of its parts, derivatives pass, and traced values have such views as
    well. Other views exist for concrete values only. For a dtype that only NumPy supports, the result is a NumPy array.

    Args:
        x: the array.
        dtype: the dtype, or a name of it.

    Returns:
        Array of the given dtype.

    Raises:
        UnsupportedError: the bits of a traced or differentiated value, or of one on an accelerator.

    >>> tr.asarray([1 + 2j, 3j]).view("float64")
    Tensor([1., 2., 0., 3.])
    """
    have, goal = x.spec.dtype, np.dtype(dtype)
    if goal == have:
        return catalog.reshape(x, shape=x.spec.shape)
    if have.kind == "c" and goal == real_of(have) and x.spec.ndim:
        parts = stack([catalog.real(x), catalog.imag(x)], axis=-1)
        return catalog.reshape(parts, shape=(*x.spec.shape[:-1], 2 * x.spec.shape[-1]))
    if goal.kind == "c" and have.kind == "f" and goal == complex_of(have) and x.spec.ndim and x.spec.shape[-1] % 2 == 0:
        return catalog.complex(x[..., ::2], x[..., 1::2])
    host = None if x.requires_grad else host_elements(x)
    if host is None:
        raise UnsupportedError(f"{x.spec!r} cannot be viewed as {goal}: its bits are not there to be looked at")
    bits = np.ascontiguousarray(host).reshape(host.shape).view(goal)
    if not any(goal == known for known in DTYPES):
        bits.flags.writeable = False
        return bits
    return own(bits.copy(), x.spec.place)
