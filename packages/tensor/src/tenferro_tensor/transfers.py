"""The transfer log: every move of data between memories is recorded here, with its line, or refused where forbidden.

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

from tenferro_tensor._counted import Counted
from tenferro_tensor._place import MemorySpace
from tenferro_tensor.origins import user_line
from tenferro_tensor_core import TransferForbiddenError

__all__ = [
    "Booked", "Move", "blaming", "book", "book_raw", "booking", "forbidding", "no_transfers", "require_allowed",
    "watching",
]  # fmt: skip


class Move(NamedTuple):
    """One transfer.

    Attributes:
        nbytes: its bytes, ``None`` where they depend on sizes that are not known yet.
        source: the memory that it reads.
        target: the memory that it writes.
        line: the user's line, empty where it is unknown.
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


def booking(add: Add) -> Any:
    """Context manager: call `add` with every transfer of this context, beside the logs that are open already."""
    return _scopes.scope(_told, (*_told.get(), add))


def no_transfers() -> Any:
    """Context manager: what would move data between memories raises instead.

    A compiled program and a backward sweep raise before their first step. Changing the compute device of a value moves
    nothing, and numbers may be passed to kernels.

    Raises:
        TransferForbiddenError: names the line, the direction and the bytes; of a gradient, the line of the transfer
            that it goes back through.

    >>> with no_transfers():
    ...     tr.asarray([1.0, 2.0]).with_compute_device("cpu:0") * 2.0
    Tensor([2., 4.])
    """
    return _scopes.scope(_forbidden, True)


def forbidding() -> bool:
    """Whether transfers are forbidden in this context."""
    return bool(watching) and _forbidden.get()


@contextmanager
def blaming(line: str) -> Iterator[None]:
    """Context manager: attribute transfers to `line`; those of gradients belong to the transfer that they reverse."""
    token = _blamed.set(line)
    try:
        yield
    finally:
        _blamed.reset(token)


def require_allowed(moves: Iterable[Move], what: str = "") -> None:
    """Raise if there are moves although transfers are forbidden.

    Args:
        moves: what would be moved.
        what: of what they are part, as the end of a sentence; that has not begun then.
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
    """Record a transfer that is about to be made in the open logs, or refuse it.

    Args:
        nbytes: bytes to move.
        source: the memory that they are in.
        target: the memory that they go to.
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
    """`book` for the bytes of a raw array."""
    if watching:
        book(prod(raw.shape) * raw.dtype.itemsize, source, target, line)


class Booked:
    """A kernel that moves data between memories and records each move on the running line.

    Attributes:
        run: the kernel, of one operand.
        source: the memory that it reads.
        target: the memory that it writes.
    """

    __slots__ = ("run", "source", "target")

    def __init__(self, run: Callable[..., Any], source: MemorySpace, target: MemorySpace) -> None:
        self.run, self.source, self.target = run, source, target

    def __call__(self, raw: Any) -> Any:
        book_raw(self.source, self.target, "", raw)
        return self.run(raw)
