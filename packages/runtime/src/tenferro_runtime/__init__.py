"""The array namespace, tracing, programs and executors."""

import sys
from typing import Any

from tenferro_runtime import _execute as _execute
from tenferro_runtime import _namespace
from tenferro_runtime._namespace import ARRAY_API_VERSION as __array_api_version__
from tenferro_runtime._namespace import MissingFamilyError, __array_namespace_info__, e, inf, nan, newaxis, pi
from tenferro_runtime._program import Program
from tenferro_runtime._traced import TracedTensor
from tenferro_tensor import functions
from tenferro_tensor.functions import *  # noqa: F403 - its `__all__` is the list of the array functions
from tenferro_tensor_core import bool_ as bool
from tenferro_tensor_core import (
    complex64,
    complex128,
    float32,
    float64,
    int8,
    int16,
    int32,
    int64,
    uint8,
    uint16,
    uint32,
    uint64,
)

__all__ = ["Program", "TracedTensor"]
__all__ += functions.__all__
__all__ += ["bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"]
__all__ += ["float32", "float64", "complex64", "complex128", "e", "inf", "nan", "newaxis", "pi"]
__all__ += ["MissingFamilyError", "__array_api_version__", "__array_namespace_info__"]

_namespace.register(sys.modules[__name__])


def __getattr__(name: str) -> Any:
    return _namespace.export(name)
