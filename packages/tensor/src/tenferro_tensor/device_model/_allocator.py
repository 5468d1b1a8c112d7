"""`Allocator`: the memory of a device."""

from abc import ABC, abstractmethod
from contextlib import AbstractContextManager
from typing import Any

from tenferro_tensor_core import UnsupportedError


class Allocator(ABC):
    """Allocates memory of one memory space, and frees it when nothing refers to it."""

    @abstractmethod
    def allocate(self, nbytes: int) -> Any:
        """Allocate a block, which is freed with its last reference, views included.

        Args:
            nbytes: smallest size in bytes.

        Returns:
            The block.
        """

    @abstractmethod
    def stats(self) -> dict[str, int]:
        """Counts and bytes, by name."""

    @abstractmethod
    def clear(self) -> None:
        """Return unused blocks to the system."""

    def serving(self) -> AbstractContextManager[Any]:
        """A context manager inside which results of operations are allocated here, as with a `compute_context` that has
        this allocator.

        Raises:
            UnsupportedError: it serves no operations.
        """
        raise UnsupportedError(f"{type(self).__name__} serves no operations; call its allocate(nbytes)")
