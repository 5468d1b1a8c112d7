"""What NumPy's users read from ``x.flags``."""

from __future__ import annotations

from typing import Any, Final

_NAMES: Final = (
    "aligned",
    "behaved",
    "c_contiguous",
    "contiguous",
    "f_contiguous",
    "fnc",
    "forc",
    "fortran",
    "owndata",
)


class MemoryFlags:
    """How the memory of a concrete value is laid out now, under NumPy's names.

    Unlike the flags of an array these are a record, and `writeable` is true: a write to a value works whoever shares
    its memory.

    >>> tr.zeros((2, 3)).flags.c_contiguous, tr.zeros((2, 3)).T.flags["C_CONTIGUOUS"]
    (True, False)
    """

    __slots__ = (*_NAMES, "writeable")

    def __init__(self, raw: Any) -> None:
        for name in _NAMES:
            setattr(self, name, getattr(raw.flags, name))
        self.writeable = True

    def __getitem__(self, name: str) -> bool:
        """A flag by NumPy's name of it, such as ``"C_CONTIGUOUS"``."""
        return getattr(self, {"C": "c_contiguous", "F": "f_contiguous", "W": "writeable"}.get(name, name.lower()))  # type: ignore[no-any-return]

    def __repr__(self) -> str:
        return f"MemoryFlags({', '.join(f'{name}={getattr(self, name)}' for name in self.__slots__)})"
