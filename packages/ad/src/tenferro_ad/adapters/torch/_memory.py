"""Converts PyTorch tensors to values and back, without copies."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from functools import lru_cache
from typing import Any, Final

import numpy as np

from tenferro_ad.adapters.torch._library import torch
from tenferro_runtime import asarray, from_dlpack
from tenferro_tensor import SCALARS, Array, Spec, Tensor
from tenferro_tensor.backends import get_backend, place_of
from tenferro_tensor_core import ArgumentError, dtype

_NAMES: Final = (
    "bool int8 int16 int32 int64 uint8 uint16 uint32 uint64 float16 float32 float64 complex64 complex128".split()
)
_NUMPY: Final[dict[Any, Any]] = {getattr(torch, n): np.dtype(n) for n in _NAMES if hasattr(torch, n)}
_SHARED: Final = frozenset(_NUMPY.values())
_DTYPES: Final[dict[Any, Any]] = {**_NUMPY, torch.bfloat16: dtype("bfloat16")}


def spec_of(x: Any) -> Any:
    """The spec of a tensor or an array; a number is returned unchanged.

    Raises:
        ArgumentError: tenferro lacks the dtype, layout or device.
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


def is_fake(x: Any) -> bool:
    """Whether a tensor is a fake tensor, used by PyTorch's shape inference."""
    return type(x).__name__ == "FakeTensor"


def example_of(spec: Spec) -> Any:
    """An uninitialized tensor of a spec."""
    device = spec.place.device
    kind = next(torch_kind for torch_kind, known in _DTYPES.items() if known == spec.dtype)
    return torch.empty(spec.shape, dtype=kind, device="cpu" if spec.place.on_host else f"cuda:{device.index}")


def value_of(x: Any) -> Any:
    """A tensor as a value in the same memory; arrays and numbers are returned unchanged."""
    if not isinstance(x, torch.Tensor):
        return x
    x = x.detach()
    if x.is_conj() or x.is_neg():
        x = x.resolve_conj().resolve_neg()
    if x.device.type == "cpu" and x.dtype in _NUMPY:
        # Shares memory like DLPack, ten times faster.
        return Tensor.wrap(x.numpy(), _spec(x.dtype, x.shape, x.device, x.layout))
    return from_dlpack(x)


def operand(x: Any) -> Any:
    """An argument as an operand: tensors and numbers are unchanged, other arrays become values."""
    return x if isinstance(x, (torch.Tensor, Array)) or x.__class__ in SCALARS else asarray(x)


def is_operand(x: Any) -> bool:
    """Whether an argument is an array or a number; everything else is a constant of the function."""
    return isinstance(x, (torch.Tensor, np.ndarray, Array)) or x.__class__ in SCALARS


def tensors_of(results: Any) -> tuple[Any, ...]:
    """Values as tensors in the same memory, or copies if anything else shares that memory.

    PyTorch may write to its tensors, so no operand, constant or other result may share their memory.
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
    """A value as a tensor in the same memory, which must not be written to."""
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
    """The identity of the array that owns a value's elements, if only the value refers to it; made writable.

    ``None`` if there may be other references, or PyTorch does not support the array.
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


def tensor_in(raw: Any) -> Any:
    """A raw array as a tensor in the same memory, which must not be written to."""
    if isinstance(raw, (np.ndarray, np.generic)):
        array = np.asarray(raw)
        if any(step < 0 for step in array.strides):  # PyTorch has no negative strides
            array = array.copy()
        if array.dtype not in _SHARED:
            return torch.from_dlpack(array.view(np.int16)).view(torch.bfloat16)
        return torch.from_dlpack(array)
    return torch.from_dlpack(raw)


def raws_of(found: tuple[Any, ...], specs: Sequence[Spec], given: Sequence[Any], title: str) -> tuple[Any, ...]:
    """Results of a PyTorch function as raw arrays, copied if anything else refers to their memory.

    Raises:
        ArgumentError: they do not have the given specs.
    """
    starts = {x.untyped_storage().data_ptr() for x in given}
    alone = [_fresh(found, i) and x.untyped_storage().data_ptr() not in starts for i, x in enumerate(found)]
    raws = []
    for x, free, spec in zip(found, alone, specs, strict=True):
        if tuple(x.shape) != spec.shape or _DTYPES.get(x.dtype) != spec.dtype:
            raise ArgumentError(
                f"{title} returned {x.dtype} {[*x.shape]} where {spec!r} was expected; make the dtypes and shapes of "
                "its results depend only on those of its arguments, or correct infer="
            )
        y = x.detach().resolve_conj().resolve_neg()
        y = y.contiguous()
        if not free and y.untyped_storage().data_ptr() == x.untyped_storage().data_ptr():
            y = y.clone(memory_format=torch.contiguous_format)
        if y.device.type != "cpu":
            raws.append(get_backend(spec.place.device.kind).library("numpy").from_dlpack(y))
        elif y.dtype is torch.bfloat16:
            raws.append(y.view(torch.int16).numpy().view(spec.dtype))
        else:
            raws.append(y.numpy())
    return tuple(raws)


_storages: Final[Any] = getattr(torch._C, "_storage_Use_Count", None)


def _counts(found: tuple[Any, ...], i: int) -> tuple[int, int]:
    """Reference counts of a tensor in a tuple, and of its memory."""
    storage = found[i].untyped_storage()
    return sys.getrefcount(found[i]), _storages(storage._cdata)


def _fresh(found: tuple[Any, ...], i: int) -> bool:
    """Whether only a tuple refers to a tensor and its memory; always false if PyTorch does not tell."""
    return _storages is not None and _counts(found, i) == _FRESH


_FRESH: Final = (0, 0) if _storages is None else _counts((torch.zeros(1),), 0)


class _Sample:
    __slots__ = ("_data",)

    def __init__(self) -> None:
        self._data = np.empty(1)


def _references(holder: Any) -> int:
    raw = holder._data
    return sys.getrefcount(raw)


_ALONE: Final = _references(_Sample())
"""Reference count of an array with one holder, which depends on the version of Python."""
