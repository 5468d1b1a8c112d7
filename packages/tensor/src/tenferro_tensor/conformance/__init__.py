"""Checks of what every backend and every device runtime promise, for their authors.

- `_check_backend`: `check_backend`; `_backend` is the backend under check, `_backend_checks` are the checks, and
  `_examples` the operations with operands
"""

from tenferro_tensor.conformance._check_backend import check_backend

__all__ = ["check_backend"]


def __dir__() -> list[str]:
    return __all__.copy()
