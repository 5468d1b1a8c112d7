"""Bounded tables in which functions cache the results of earlier calls, so that a repeated call is one look-up."""

from typing import Any, Final, TypeVar

from tenferro_tensor.calls import OpBase
from tenferro_tensor_core.tracebacks import hide_frames

T = TypeVar("T")

__all__ = ["TABLES", "EntryTable", "Table"]


def __dir__() -> list[str]:
    return __all__.copy()


TABLES: Final[list["Table | EntryTable"]] = []
"""Every table of this package, for inspection and clearing."""


class Table(dict[Any, Any]):
    """A dictionary that is cleared when it is full; its entries are results of pure functions.

    Attributes:
        name: description of its contents.
        bound: largest number of entries.
    """

    def __init__(self, name: str, bound: int = 2048) -> None:
        super().__init__()
        self.name: str = name
        self.bound: int = bound
        TABLES.append(self)

    def remember(self, key: Any, entry: T) -> T:
        """Store an entry.

        Args:
            key: the key.
            entry: the entry.

        Returns:
            The entry.
        """
        if len(self) >= self.bound:
            self.clear()
        self[key] = entry
        return entry

    def stats(self) -> dict[str, int]:
        """Number of entries, and its bound."""
        return {"size": len(self), "bound": self.bound}


class EntryTable(OpBase):
    """Entries of the ops among which one function selects.

    Attributes:
        name: description of its contents.
    """

    __slots__ = ("name",)

    def __init__(self, name: str, bound: int = 2048) -> None:
        self.name: str = name
        self.bound: int = bound
        TABLES.append(self)

    def evaluate(self, operands: tuple[Any, ...]) -> Any:
        """Call the function with concrete operands.

        Args:
            operands: the operands.

        Returns:
            The result.
        """
        try:
            return self.generic(operands)
        except Exception as error:
            hide_frames(error)
            raise

    def generic(self, operands: tuple[Any, ...]) -> Any:
        """Call the function with operands of any kind.

        Args:
            operands: the operands.

        Returns:
            The result.
        """
        raise NotImplementedError

    def clear(self) -> None:
        """Remove all entries."""
        self.forget()

    def stats(self) -> dict[str, int]:
        """Number of entries, and its bound."""
        return {"size": len(self.entries), "bound": self.bound}
