"""Array functions under the package of a value's class.

Libraries without a list of array libraries, such as opt_einsum and autoray, import the package that defines the class
of an array and look there for ``einsum`` or ``linalg.svd``. So each package that defines a kind of value exposes the
functions of the namespace.
"""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType
from typing import Any

from tenferro_tensor._array import Array
from tenferro_tensor_core.absent import AbsentNameError

__all__ = ["class_home"]


def __dir__() -> list[str]:
    return __all__.copy()


def class_home(package: str) -> Callable[[str], Any]:
    """Create a module's ``__getattr__`` that resolves the public names of the array namespace once that is imported.

    Args:
        package: ``__name__`` of the package, for errors.

    Returns:
        The function.

    >>> import tenferro_tensor
    >>> tenferro_tensor.sin is tr.sin
    True
    """

    def get(name: str) -> Any:
        namespace = Array.namespace
        if namespace is not None and not name.startswith("_"):
            found = _found(package, name)
            # A submodule of the namespace's package may share its name with a module of this one.
            inside = isinstance(found, ModuleType) and found.__name__.startswith(f"{namespace.__name__}.")
            if found is not None and not inside:
                return found
        raise AttributeError(f"module {package!r} has no attribute {name!r}")

    return get


def _found(package: str, name: str) -> Any:
    """The attribute of the namespace or None; the error for a name of another library says what to write instead."""
    try:
        return getattr(Array.namespace, name)
    except AbsentNameError as error:
        message = f"module {package!r} has no attribute {name!r}"
        raise AbsentNameError(message, error.advice, name=name) from None
    except AttributeError:
        return None
