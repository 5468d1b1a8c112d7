"""Interned memory spaces (where data is stored), compute devices (where work runs) and places (both)."""

from __future__ import annotations

import re
from typing import Any, ClassVar, Final, NoReturn, Self

from tenferro_tensor_core import ArgumentError
from tenferro_tensor_core.forks import new_lock

_lock = new_lock()
_NAME: Final = re.compile(r"([A-Za-z_]\w*(?::[A-Za-z_]\w*(?=:))?)(?::([0-9]+))?", re.ASCII)
"""A kind has two parts if one library supports several kinds of hardware: ``xla:cpu:0`` is of kind ``xla:cpu``."""


class _Named:
    """A pair (kind, index), one object each: identity is equality."""

    __slots__ = ("index", "kind")
    kind: str
    index: int
    _what: ClassVar[str]
    _interned: ClassVar[dict[tuple[str, int], Any]]

    def __new__(cls, name: str | Self) -> Self:
        if isinstance(name, cls):
            return name
        found = _NAME.fullmatch(name) if isinstance(name, str) else None
        if found is None:
            raise ArgumentError(
                f"{cls._what} {name!r} is not of the form 'kind' or 'kind:index', for example 'cpu', 'cuda:0' "
                "or 'xla:cpu:0'",
                value=name,
            )
        key = (found[1], int(found[2] or 0))
        cls._require(*key)
        with _lock:
            self = cls._interned.get(key)
            if self is None:
                self = object.__new__(cls)
                self.kind, self.index = key
                self = cls._interned.setdefault(key, self)
        return self  # type: ignore[no-any-return]

    @classmethod
    def _require(cls, kind: str, index: int) -> None:
        """Raise an error for an impossible name."""

    def __reduce__(self) -> tuple[type[Self], tuple[str]]:
        return type(self), (str(self),)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({str(self)!r})"

    def __str__(self) -> str:
        return f"{self.kind}:{self.index}"


class MemorySpace(_Named):
    """A memory space of tensors: ``host``, or the memory of accelerator ``kind:index``.

    >>> MemorySpace("host") is MemorySpace("host")
    True
    >>> MemorySpace("cuda:1").default_device
    ComputeDevice('cuda:1')
    """

    __slots__ = ()
    _what = "memory space"
    _interned: ClassVar[dict[tuple[str, int], MemorySpace]] = {}

    @classmethod
    def _require(cls, kind: str, index: int) -> None:
        if kind == "cpu" or (kind == "host" and index):
            raise ArgumentError(
                f"there is no memory space '{kind}:{index}': main memory is one space, 'host', for all CPU pools",
                value=f"{kind}:{index}",
            )

    def __str__(self) -> str:
        return "host" if self.kind == "host" else super().__str__()

    @property
    def default_device(self) -> ComputeDevice:
        """The device that computes on this memory space by default."""
        return ComputeDevice("cpu:0" if self.kind == "host" else str(self))


class ComputeDevice(_Named):
    """A device that runs work: ``cpu:<pool>``, ``cuda:<i>``, ``rocm:<i>``, ``xla:<platform>:<i>``.

    Its kind, ``cpu`` or ``xla:cpu``, names the backend. The first CPU pool equals ``"cpu"``, the device of NumPy's
    arrays, since libraries of the Array API compare the devices of their arguments.

    >>> ComputeDevice("cpu")
    ComputeDevice('cpu:0')
    >>> import numpy as np
    >>> ComputeDevice("cpu") == np.ones(2).device
    True
    >>> ComputeDevice("cpu:0").memory_space
    MemorySpace('host')
    """

    __slots__ = ()
    _what = "compute device"
    _interned: ClassVar[dict[tuple[str, int], ComputeDevice]] = {}

    @classmethod
    def _require(cls, kind: str, index: int) -> None:
        if kind == "host":
            raise ArgumentError("'host' is a memory and runs nothing; its compute devices are 'cpu:<pool>'", value=kind)

    def __eq__(self, other: object) -> bool:
        return self is other or (other.__class__ is str and other == "cpu" and self.kind == "cpu" and not self.index)

    def __hash__(self) -> int:  # of a key in many tables, which name no strings
        return hash("cpu") if self.kind == "cpu" and not self.index else object.__hash__(self)

    @property
    def memory_space(self) -> MemorySpace:
        """The memory space that the device computes on: main memory for CPU pools, its own otherwise."""
        return MemorySpace("host" if self.kind == "cpu" else str(self))


class Place:
    """A memory space, and optionally the device that routes execution; interned.

    The place is part of a tensor's `Spec`, so that identical specs imply identical places.

    Attributes:
        memory_space: the memory space.
        compute_device: the device that routes execution, or ``None``.
        device: the device that runs work here, unless a scope selects another one.
        on_host: whether it is main memory, where raw arrays are NumPy's.
    """

    __slots__ = ("compute_device", "device", "memory_space", "on_host")
    memory_space: MemorySpace
    compute_device: ComputeDevice | None
    device: ComputeDevice
    on_host: bool
    _interned: ClassVar[dict[tuple[MemorySpace, ComputeDevice | None], Place]] = {}

    def __new__(cls, memory_space: MemorySpace, compute_device: ComputeDevice | None = None) -> Place:
        key = (memory_space, compute_device)
        if not isinstance(memory_space, MemorySpace) or not isinstance(compute_device, ComputeDevice | None):
            _refuse(key)
        if compute_device is not None and compute_device.memory_space is not memory_space:
            raise ArgumentError(
                f"{compute_device} cannot compute on {memory_space} memory; "
                f"move the data with to_device({str(compute_device)!r}) first",
                memory_space=str(memory_space),
                compute_device=str(compute_device),
            )
        with _lock:
            self = cls._interned.get(key)
            if self is None:
                self = object.__new__(cls)
                self.memory_space, self.compute_device = key
                self.device = compute_device or memory_space.default_device
                self.on_host = memory_space.kind == "host"
                self = cls._interned.setdefault(key, self)
        return self

    def __reduce__(self) -> tuple[type[Place], tuple[MemorySpace, ComputeDevice | None]]:
        return Place, (self.memory_space, self.compute_device)

    def __repr__(self) -> str:
        if self.compute_device is None:
            return f"Place({self.memory_space})"
        return f"Place({self.memory_space}, {self.compute_device})"


def _refuse(parts: tuple[object, object]) -> NoReturn:
    raise ArgumentError(
        f"a Place consists of a MemorySpace and a ComputeDevice or None, got {parts[0]!r} and {parts[1]!r}",
        given=parts,
    )


HOST: Final = Place(MemorySpace("host"))
"""Main memory, execution inferred."""
