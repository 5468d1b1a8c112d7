"""Checks of what every backend and every device runtime promise, for their authors.

- `_check_backend`: `check_backend`; `_backend` is the backend under check, `_backend_checks` are the checks, and
  `_examples` the operations with operands
- `_check_runtime`: `check_device_runtime`; `_runtime` is the runtime under check, `_runtime_checks` and
  `_stream_checks` are the checks
"""

from tenferro_tensor.conformance._check_backend import check_backend
from tenferro_tensor.conformance._check_runtime import check_device_runtime

__all__ = ["check_backend", "check_device_runtime"]


def __dir__() -> list[str]:
    return __all__.copy()
