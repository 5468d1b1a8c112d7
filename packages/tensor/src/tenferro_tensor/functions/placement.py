"""The only function that moves data."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tenferro_tensor import catalog
from tenferro_tensor._place import ComputeDevice
from tenferro_tensor.backends import place_of
from tenferro_tensor.identity import aliased
from tenferro_tensor.operands import value
from tenferro_tensor.origins import noted
from tenferro_tensor_core import ArgumentError

if TYPE_CHECKING:
    from tenferro_tensor._array import Array

__all__ = ["to_device"]


def __dir__() -> list[str]:
    return __all__.copy()


def to_device(x: Any, device: str | ComputeDevice, /, *, stream: Any = None) -> Array:
    """Move an array to a device, copying only if the memory space differs.

    Args:
        x: array of any shape and dtype.
        device: the device, or its name.
        stream: must be None; the compute context orders the work.

    Returns:
        Array of the shape and dtype of `x`, at the device.

    Raises:
        ArgumentError: `stream` was given.
        PlacementError: there is no such device.
        TransferForbiddenError: transfers are forbidden here.

    >>> tr.to_device(tr.asarray([1.0]), "cpu:0").device
    ComputeDevice('cpu:0')
    """
    if stream is not None:
        raise ArgumentError(
            f"to_device takes no stream, got {stream!r}; enter a compute context that owns it", stream=repr(stream)
        )
    x, place = value(x), place_of(device)
    return aliased(x) if x.spec.place is place else noted(catalog.transfer(x, place=place))
