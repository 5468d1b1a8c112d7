"""Tensors of PyTorch as values and back, in the same memory."""

from __future__ import annotations

import sys
from functools import lru_cache
from typing import Any, Final

import numpy as np

from tenferro_ad.adapters.torch._library import torch
from tenferro_runtime import asarray, from_dlpack
from tenferro_tensor import SCALARS, Array, Spec, Tensor
from tenferro_tensor.backends import place_of
from tenferro_tensor_core import ArgumentError, dtype

_NAMES: Final = (
    "bool int8 int16 int32 int64 uint8 uint16 uint32 uint64 float16 float32 float64 complex64 complex128".split()
)
_NUMPY: Final[dict[Any, Any]] = {getattr(torch, n): np.dtype(n) for n in _NAMES if hasattr(torch, n)}
_SHARED: Final = frozenset(_NUMPY.values())
_DTYPES: Final[dict[Any, Any]] = {**_NUMPY, torch.bfloat16: dtype("bfloat16")}


def spec_of(x: Any) -> Any:
    """The spec of a tensor or an array; a number as it is.

    Raises:
        ArgumentError: tenferro has no such elements, layout or device.
    """
    if isinstance(x, torch.Tensor):
        return _spec(x.dtype, x.shape, x.device, x.layout)
    return x.spec if isinstance(x, Array) else x


@lru_cache(4096)
def _spec(kind: Any, shape: Any, device: Any, layout: Any) -> Spec:
    if kind not in _DTYPES or layout is not torch.strided:
        raise ArgumentError(
            f"as_torch takes dense tensors of real or complex numbers, integers or booleans, got {kind} in the layout "
            f"{layout}; convert the tensor, as in x.to(torch.float32) or x.to_dense()"
        )
    if device.type == "cpu":
        return Spec(tuple(shape), _DTYPES[kind])
    if device.type != "cuda":
        raise ArgumentError(f"as_torch computes on cpu and cuda, got a tensor on {device}; move it, as in x.cpu()")
    return Spec(tuple(shape), _DTYPES[kind], place_of(f"{'rocm' if torch.version.hip else 'cuda'}:{device.index or 0}"))


def value_of(x: Any) -> Any:
    """A tensor as a value that sees the same memory; arrays and numbers as they are."""
    if not isinstance(x, torch.Tensor):
        return x
    x = x.detach()
    if x.is_conj() or x.is_neg():
        x = x.resolve_conj().resolve_neg()
    if x.device.type == "cpu" and x.dtype in _NUMPY:
        # The same memory as by DLPack, in a tenth of the time.
        return Tensor.wrap(x.numpy(), _spec(x.dtype, x.shape, x.device, x.layout))
    return from_dlpack(x)


def operand(x: Any) -> Any:
    """An argument as it is passed on: tensors and numbers as they are, other arrays as values."""
    return x if isinstance(x, (torch.Tensor, Array)) or x.__class__ in SCALARS else asarray(x)


def is_operand(x: Any) -> bool:
    """Whether an argument is an array or a number; all else is a constant of the function."""
    return isinstance(x, (torch.Tensor, np.ndarray, Array)) or x.__class__ in SCALARS


def tensors_of(results: Any) -> tuple[Any, ...]:
    """Values as tensors in the same memory, or in copies where anything else sees that memory.

    PyTorch may write to its tensors, hence no operand, constant or other result may share their memory.
    """
    found, seen = [], set()
    for result in results:
        owner = _owner(result)
        if owner is None or owner in seen:
            found.append(_copied(result))
        else:
            seen.add(owner)
            found.append(torch.from_numpy(result._data))
    return tuple(found)


def borrowed(result: Any) -> Any:
    """A value as a tensor in the same memory, which nobody may write to."""
    raw = result._data
    if raw.__class__ is np.ndarray and raw.flags.writeable and raw.dtype in _SHARED:
        return torch.from_numpy(raw)
    return torch.from_dlpack(result)


def _copied(result: Any) -> Any:
    raw = result._data
    if isinstance(raw, (np.ndarray, np.generic)):
        return torch.from_numpy(np.array(raw, order="C")) if raw.dtype in _SHARED else torch.from_dlpack(result).clone()
    return torch.from_dlpack(result)


def _owner(holder: Any) -> int | None:
    """The identity of the array that owns the elements which a value alone holds; made writable.

    ``None`` where others may hold them, or where PyTorch cannot take them.
    """
    raw = holder._data
    if raw.__class__ is not np.ndarray or sys.getrefcount(raw) != _ALONE or raw.dtype not in _SHARED:
        return None
    flags = raw.flags
    if not flags.forc or not flags.aligned:
        return None
    if flags.owndata:
        raw.flags.writeable = True
        return id(raw)
    owner = raw.base
    if owner.__class__ is not np.ndarray or not owner.flags.owndata or sys.getrefcount(owner) != _ALONE:
        return None
    owner.flags.writeable = True
    raw.flags.writeable = True
    return id(owner)


class _Sample:
    __slots__ = ("_data",)

    def __init__(self) -> None:
        self._data = np.empty(1)


def _references(holder: Any) -> int:
    raw = holder._data
    return sys.getrefcount(raw)


_ALONE: Final = _references(_Sample())
"""References that are counted to an array with one holder; another number in other versions of Python."""
