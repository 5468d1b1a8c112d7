"""`Exported`: conversion of values to Python numbers, NumPy arrays and DLPack capsules."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

import numpy as np

from tenferro_tensor._spec import Spec
from tenferro_tensor.backends import get_backend
from tenferro_tensor.ownership import read_only
from tenferro_tensor_core import ArgumentError, HostAdapterError, PlacementError, ShapeError


class Exported:
    """Export of the elements of a value; nothing is transferred implicitly."""

    __slots__ = ()
    spec: Spec

    @abstractmethod
    def _concrete(self) -> np.ndarray[Any, Any]:
        """The elements as a host array, if they are known."""

    def __bool__(self) -> bool:
        if self.spec.size != 1:
            raise ArgumentError(
                f"the truth value of {self.spec!r} is undefined: it does not have one element; use any() or all()",
                shape=self.spec.shape,
            )
        return bool(self._concrete())

    def __int__(self) -> int:
        return int(self._single("int()"))

    def __float__(self) -> float:
        return float(self._single("float()"))

    def __complex__(self) -> complex:
        return complex(self._single("complex()"))

    def __index__(self) -> int:
        if self.spec.dtype.kind not in "iu":
            raise TypeError(f"only integer tensors can be an index, got {self.spec!r}")
        return int(self._single("an index"))

    def item(self) -> Any:
        """The only element as a Python scalar."""
        return self._single("item()")

    def _single(self, asked: str) -> Any:
        if self.spec.size != 1:
            raise ShapeError(
                f"{asked} needs a tensor of one element, got {self.spec!r}; index or reduce it first",
                shape=self.spec.shape,
            )
        return self._concrete().item()

    def __format__(self, form: str) -> str:
        return format(self._single("formatting"), form) if form else str(self)

    def tolist(self) -> Any:
        """The elements as nested lists of Python scalars."""
        return self._concrete().tolist()

    def numpy(self) -> np.ndarray[Any, Any]:
        """The elements as a NumPy array."""
        return np.array(self._concrete())

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray[Any, Any]:
        self._require_host("np.asarray()")
        return np.array(read_only(self._concrete()), dtype=dtype, copy=copy)

    def __dlpack__(
        self,
        *,
        stream: Any = None,
        max_version: tuple[int, int] | None = None,
        dl_device: tuple[int, int] | None = None,
        copy: bool | None = None,
    ) -> Any:
        if not self.spec.place.on_host:
            options = {"stream": stream, "max_version": max_version, "dl_device": dl_device, "copy": copy}
            given = {name: option for name, option in options.items() if option is not None}
            return get_backend(self.spec.place.device.kind).exported(self._raw(), **given)
        host = self.__array__(copy=copy)
        # Consumers of DLPack before 1.0 may write to the memory; reversed axes make PyTorch 2.13 abort.
        old = (max_version is None or max_version[0] < 1) and not host.flags.writeable
        if old or any(step < 0 for step in host.strides):
            if copy is False:
                raise HostAdapterError(
                    f"{self.spec!r} cannot be shared through DLPack without a copy, which copy=False forbids: it has "
                    f"{'read-only memory, which the consumer may not support' if old else 'reversed axes'}; pass "
                    f"copy=None{', or max_version=(1, 0)' if old else ''}",
                    strides=host.strides,
                )
            host = host.copy()
        wanted: dict[str, Any] = {"stream": stream, "max_version": max_version, "dl_device": dl_device, "copy": copy}
        if host.dtype.kind != "V":
            return host.__dlpack__(**wanted)
        from tenferro_tensor_core import exported_bfloat16  # deferred: it loads ctypes

        return exported_bfloat16(host, **wanted)

    def __dlpack_device__(self) -> tuple[int, int]:
        if self.spec.place.on_host:
            return 1, 0
        return self._raw().__dlpack_device__()  # type: ignore[no-any-return]

    def _raw(self) -> Any:
        raise PlacementError(f"{type(self).__name__} exports no device memory; detach it first")

    def _require_host(self, asked: str) -> None:
        if not self.spec.place.on_host:
            raise PlacementError(
                f"{asked} of {self.spec!r} would copy it to main memory; nothing is transferred implicitly: call "
                ".numpy(), or .to_device('cpu:0') first",
                device=str(self.spec.place.device),
            )
