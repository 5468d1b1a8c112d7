"""`variable`: makes the leaves that `backward` differentiates with respect to."""

from __future__ import annotations

from typing import Any, Final
from weakref import ref

from tenferro_ad._dual import Dual
from tenferro_ad._eager import EagerTensor, require_inexact, wrap
from tenferro_ad._node import make_variable_leaf
from tenferro_tensor import Array, catalog, next_level, tensor
from tenferro_tensor.identity import aliased
from tenferro_tensor.ownership import owned
from tenferro_tensor_core import GradientError
from tenferro_tensor_core import dtype as dtype_of

_VARIABLES: Final = next_level()
_over: dict[int, int] = {}


def _level_for(value: Any) -> int:
    """One level for all concrete variables; one level above each trace for the variables made in it."""
    if value.level < _VARIABLES:
        return _VARIABLES
    if len(_over) >= 1024:
        _over.clear()
    return _over.setdefault(value.level, next_level())


def variable(x: Any, *, dtype: Any = None) -> EagerTensor:
    """Make a variable: a value that `EagerTensor.backward` differentiates with respect to.

    Args:
        x: a number, a nested sequence, a NumPy array or a tensor, with real or complex floating-point elements.
        dtype: dtype of the variable; by default that of `x`.

    Returns:
        An `EagerTensor` with the shape of `x`; its ``grad`` accumulates the gradient.

    Raises:
        GradientError: `x` has integers or booleans, or is itself being differentiated.

    See also:
        grad: the functional form, without variables.

    >>> from tenferro_ad import variable
    >>> w = variable(3.0)
    >>> (w * w + w).backward()
    >>> w.grad
    Tensor(7.)
    """
    if isinstance(x, (EagerTensor, Dual)):
        raise GradientError(
            f"variable() was given a {type(x).__name__} {x.spec!r}, which is being differentiated already; "
            "use it as it is, or variable(x.detach()) to start anew from its value"
        )
    if not isinstance(x, Array):
        x = tensor(x, dtype=dtype, copy=True)
    elif dtype is not None:
        x = catalog.convert(x, dtype=dtype_of(dtype))
    require_inexact(x, "variable()")
    leaf = make_variable_leaf()
    made = wrap(aliased(owned(x)), _level_for(x), leaf)
    leaf.variable = ref(made)
    return made
