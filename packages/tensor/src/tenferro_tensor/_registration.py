"""`Registration`: one entry of the registry, its owner, and how to undo it."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Any

from tenferro_tensor._owners import Owner
from tenferro_tensor._primitive import Primitive


class Registration:
    """An entry of the registry; `undo`, or the end of a ``with`` block, removes it.

    If the entry replaced another one, that one becomes valid again.

    Attributes:
        table: name of the table, as in ``"kernel"``.
        primitive: the primitive.
        backend: backend name of a kernel, else ``None``.
        entry: the registered object.
        owner: the code that registered it.
        replaced: the registration that it replaced, or ``None``.
    """

    __slots__ = ("_undo", "backend", "entry", "owner", "primitive", "replaced", "table")

    def __init__(
        self,
        table: str,
        primitive: Primitive,
        backend: str | None,
        entry: Any,
        owner: Owner,
        replaced: Registration | None,
        undo: Callable[[Registration], None],
    ) -> None:
        self.table: str = table
        self.primitive: Primitive = primitive
        self.backend: str | None = backend
        self.entry: Any = entry
        self.owner: Owner = owner
        self.replaced: Registration | None = replaced
        self._undo = undo

    @property
    def key(self) -> Hashable:
        """The key of the entry in its table."""
        return self.primitive if self.backend is None else (self.primitive, self.backend)

    def undo(self) -> None:
        """Remove the entry; a second call has no effect."""
        self._undo(self)

    def __enter__(self) -> Registration:
        return self

    def __exit__(self, *_: object) -> None:
        self.undo()

    def __repr__(self) -> str:
        place = f" for {self.backend!r}" if self.backend else ""
        instead = f", in place of that of {self.replaced.owner}" if self.replaced else ""
        return f"<the {self.table} of {self.primitive.name}{place}: that of {self.owner}{instead}>"
