"""Public functions, and their direct forms: one call of NumPy on concrete arrays in main memory.

A public function is written with primitives, so that it means the same for every kind of value. Where NumPy has the
same function, a direct form can be added::

    @direct(lambda x, /, axis=None: np.flip(x, axis))
    def flip(x, /, axis=None): ...

The form has the parameters of the function and receives raw arrays in place of concrete tensors, also inside lists and
tuples (both arrive as tuples); numbers, strings, dtypes and ``None`` are passed unchanged. It returns raw arrays: one,
or a tuple, list or named tuple of them. It makes no decisions:

- its results equal those of the function bit for bit, dtypes included; `tests/agreement/test_direct_forms.py` compares
  the two for every function that has a form;
- it leaves everything that it cannot do, or should refuse, to the function, which formats the error: to decline, the
  form raises any exception or returns ``None``;
- it is not called for arrays larger than `most` bytes, for which the backend's kernels and pooled memory are faster,
  nor while a scope selects a device or records decisions, nor for values that are recorded, traced, batched, in other
  memory or bound to a compute device.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import update_wrapper
from sys import modules
from types import FunctionType
from typing import Any, Final, TypeVar

from tenferro_tensor.calls import DIRECT_MAX_BYTES, DirectFunction, OpBase, forget_specs, kept_specs
from tenferro_tensor.tables import TABLES
from tenferro_tensor_core.tracebacks import refused

__all__ = ["ANY_SIZE", "DIRECT", "direct", "public"]


def __dir__() -> list[str]:
    return __all__.copy()


ANY_SIZE: Final = 1 << 62
"""`most` for forms that return views, or in which NumPy is as fast as any kernel."""

DIRECT: Final[list[DirectFunction]] = []
"""The functions that have a direct form."""

_F = TypeVar("_F", bound=Callable[..., Any])


def direct(form: Callable[..., Any], most: int = DIRECT_MAX_BYTES, views: bool = False) -> Callable[[_F], _F]:
    """Give the decorated function a direct form.

    Args:
        form: the function on raw arrays.
        most: bytes of the largest array that the form accepts.
        views: whether results in the memory of the first argument are views of it; `views.linked` links others.

    Returns:
        A decorator.
    """

    def decorate(function: _F) -> _F:
        made = DirectFunction(function, form, refused, most, views)
        DIRECT.append(made)
        return update_wrapper(made, function)  # type: ignore[return-value]

    return decorate


_OP: Any = None
_ONLY_AN_OP: Final = {f.__code__.co_code: n for n, f in ((1, lambda x: _OP(x)), (2, lambda x1, x2: _OP(x1, x2)))}
"""Number of operands, by the code of functions that only call an op with their operands."""


def public(found: _F) -> _F:
    """The form of a function in which users call it.

    Its errors hide frames of this library, and name the right keyword for a wrong one. A function that only calls an
    op with its operands becomes that call. The function is replaced in its module too.

    Args:
        found: a function as a module of this library defines it; other objects, and functions that are decorated, are
            returned as they are.

    Returns:
        The public function, the same one at every call.
    """
    if not isinstance(found, FunctionType) or hasattr(found, "__wrapped__"):
        return found
    home = modules[found.__module__]
    known = getattr(home, found.__name__)
    if known is not found:
        return known  # type: ignore[no-any-return]
    code = found.__code__
    op = found.__globals__.get(code.co_names[0]) if code.co_names else None
    arity = _ONLY_AN_OP.get(code.co_code, -1) if isinstance(op, OpBase) else -1
    made = DirectFunction(found, None if arity < 0 else op, refused, arity=arity)
    setattr(home, found.__name__, update_wrapper(made, found))
    return made  # type: ignore[return-value]


class _Specs:
    """The cache of `spec_of_raw`."""

    name: Final = "specs of raw arrays"
    entries: Final[tuple[Any, ...]] = ()
    """Empty, since entries have no Python key: dtype object, number of axes and extents identify them."""

    def stats(self) -> dict[str, int]:
        size, bound = kept_specs()
        return {"size": size, "bound": bound}

    def clear(self) -> None:
        forget_specs()


TABLES.append(_Specs())  # type: ignore[arg-type]
