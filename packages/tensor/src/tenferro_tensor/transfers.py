"""The transfer log: records every move of data between memories with its line, or refuses it where forbidden.

Code that moves data between two memories calls `book` first: the kernel of `transfer`, uploads of new data, downloads
of results, and the executors of programs. Numbers that kernels take as arguments do not count as transfers.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from math import prod
from typing import Any, NamedTuple

from tenferro_tensor._counted import Counted, CountedScope
from tenferro_tensor._place import MemorySpace
from tenferro_tensor.origins import user_line
from tenferro_tensor_core import TransferForbiddenError

__all__ = [
    "Booked", "Move", "blaming", "book", "book_raw", "booking", "forbidding", "no_transfers", "require_allowed",
    "watching",
]  # fmt: skip


def __dir__() -> list[str]:
    return __all__.copy()


class Move(NamedTuple):
    """One transfer.

    Attributes:
        nbytes: number of bytes; ``None`` if it depends on unknown sizes.
        source: memory space to read.
        target: memory space to write.
        line: the user's source line; empty if unknown.
    """

    nbytes: int | None
    source: MemorySpace
    target: MemorySpace
    line: str

    def __str__(self) -> str:
        size = "data" if self.nbytes is None else f"{self.nbytes} bytes"
        return f"{size} from {self.source} to {self.target} memory{f' at {self.line}' if self.line else ''}"


Add = Callable[[Move], None]

_told: ContextVar[tuple[Add, ...]] = ContextVar("tenferro transfer logs", default=())
_forbidden: ContextVar[bool] = ContextVar("tenferro transfers forbidden", default=False)
_blamed: ContextVar[str] = ContextVar("tenferro line of transfers", default="")

watching = 0
"""Number of logs and prohibitions open in any thread; while it is 0, `book` does nothing. Read it as an attribute."""
_scopes = Counted(sys.modules[__name__], "watching")


def booking(add: Add) -> CountedScope[object]:
    """Call a function with every transfer of this context, in addition to the logs that are already open.

    Args:
        add: called with each `Move`.

    Returns:
        A context manager.
    """
    return _scopes.scope(_told, (*_told.get(), add))


def no_transfers() -> CountedScope[bool]:
    """Forbid moving data between memory spaces.

    A compiled program or a backward pass that would move data raises before it starts. Changing the compute device of a
    value moves nothing, and numbers may be passed to kernels.

    Returns:
        A context manager.

    Raises:
        TransferForbiddenError: inside, if data would move; names the line, the direction and the bytes. For a gradient,
            it names the line of the transfer that it reverses.

    >>> with no_transfers():
    ...     tr.asarray([1.0, 2.0]).with_compute_device("cpu:0") * 2.0
    Tensor([2., 4.])
    """
    return _scopes.scope(_forbidden, True)


def forbidding() -> bool:
    """Whether transfers are forbidden in this context.

    Returns:
        The answer.
    """
    return bool(watching) and _forbidden.get()


@contextmanager
def blaming(line: str) -> Iterator[None]:
    """Attribute transfers to a source line; those of gradients belong to the transfer that they reverse.

    Args:
        line: the line.

    Returns:
        A context manager.
    """
    token = _blamed.set(line)
    try:
        yield
    finally:
        _blamed.reset(token)


def require_allowed(moves: Iterable[Move], what: str = "") -> None:
    """Raise if there are transfers and this context forbids them.

    Args:
        moves: the transfers.
        what: the operation that needs them and has not started, worded as the end of a sentence.

    Raises:
        TransferForbiddenError: transfers are forbidden here.
    """
    if forbidding():
        for move in moves:
            raise TransferForbiddenError(
                f"{move} would be moved{what}, but no_transfers() forbids it here; keep the operands in one memory, "
                "or move them before the scope",
                nbytes=move.nbytes,
                source=str(move.source),
                target=str(move.target),
                line=move.line,
            )


def book(nbytes: int, source: MemorySpace, target: MemorySpace, line: str = "") -> None:
    """Record a transfer that is about to start in the open logs, or refuse it.

    Args:
        nbytes: bytes to move.
        source: memory space to read.
        target: memory space to write.
        line: the user's line; by default the running one.

    Raises:
        TransferForbiddenError: transfers are forbidden here.
    """
    if watching:
        move = Move(nbytes, source, target, line or _blamed.get() or user_line())
        require_allowed((move,))
        for add in _told.get():
            add(move)


def book_raw(source: MemorySpace, target: MemorySpace, line: str, raw: Any) -> None:
    """`book` for a raw array.

    Args:
        source: memory space to read.
        target: memory space to write.
        line: the user's line; by default the running one.
        raw: raw array.

    Raises:
        TransferForbiddenError: transfers are forbidden here.
    """
    if watching:
        book(prod(raw.shape) * raw.dtype.itemsize, source, target, line)


class Booked:
    """A kernel that moves data between memories and records each move on the running line.

    Attributes:
        run: the kernel, of one operand.
        source: memory space to read.
        target: memory space to write.
    """

    __slots__ = ("run", "source", "target")

    def __init__(self, run: Callable[..., Any], source: MemorySpace, target: MemorySpace) -> None:
        self.run: Callable[..., Any] = run
        self.source: MemorySpace = source
        self.target: MemorySpace = target

    def __call__(self, raw: Any) -> Any:
        book_raw(self.source, self.target, "", raw)
        return self.run(raw)
