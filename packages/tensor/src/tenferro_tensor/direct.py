"""Functions with a direct form: on concrete arrays in main memory they are one call of NumPy.

A public function is written with primitives, so that it means the same for every kind of value. Where NumPy has the
same function, it may be given a direct form beside it::

    @direct(lambda x, /, axis=None: np.flip(x, axis))
    def flip(x, /, axis=None): ...

The form is called as the function is, with raw arrays in place of concrete tensors, also in lists or tuples (which it
gets as tuples); numbers, texts, dtypes and ``None`` are passed as they are. It returns raw arrays: one, or a tuple, a
list, or a named tuple of them. It decides nothing:

- its results are those of the function bit for bit, and of the same dtype; `tests/agreement/test_direct_forms.py`
  compares the two for every function that has a form;
- whatever it cannot do, or should refuse, it leaves to the function, which words the error: it raises anything, or
  returns ``None``;
- it is not called with arrays of more than `most` bytes, for which kernels and pooled memory of the backend are better,
  nor while a scope selects a device or is told of decisions, nor with values that are recorded, traced or batched, lie
  in other memory or name a compute device.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import update_wrapper
from typing import Any, Final, TypeVar

from tenferro_tensor.calls import DIRECT_MAX_BYTES, DirectFunction, forget_specs, kept_specs
from tenferro_tensor.tables import TABLES

__all__ = ["ANY_SIZE", "DIRECT", "direct"]

ANY_SIZE: Final = 1 << 62
"""`most` of forms that return views, or in which NumPy is as good as any kernel."""

DIRECT: Final[list[DirectFunction]] = []
"""The functions that have a direct form."""

_F = TypeVar("_F", bound=Callable[..., Any])


def direct(form: Callable[..., Any], most: int = DIRECT_MAX_BYTES) -> Callable[[_F], _F]:
    """Give the decorated function a direct form.

    Args:
        form: the function on raw arrays.
        most: bytes of the largest array that the form accepts.

    Returns:
        A decorator.
    """

    def decorate(function: _F) -> _F:
        made = DirectFunction(function, form, most)
        DIRECT.append(made)
        return update_wrapper(made, function)  # type: ignore[return-value]

    return decorate


class _Specs:
    """The cache of specs of raw arrays, which C code keeps."""

    name: Final = "specs of raw arrays"
    entries: Final[tuple[Any, ...]] = ()
    """No keys in Python: an entry is found by the dtype object, the number of axes and the extents."""

    def stats(self) -> dict[str, int]:
        size, bound = kept_specs()
        return {"size": size, "bound": bound}

    def clear(self) -> None:
        forget_specs()


TABLES.append(_Specs())  # type: ignore[arg-type]
