"""Automatic differentiation: eager tensors, transforms, and the checking of derivatives."""

from tenferro_ad import _call, _fast, _record  # noqa: F401 - sets how EagerTensor records
from tenferro_ad._eager import EagerTensor
from tenferro_ad._forward import jvp
from tenferro_ad._modes import no_grad, record_sources
from tenferro_ad._reverse import grad, value_and_grad, vjp
from tenferro_ad._variable import variable

__all__ = [
    "EagerTensor",
    "grad",
    "jvp",
    "no_grad",
    "record_sources",
    "value_and_grad",
    "variable",
    "vjp",
]
