"""`transfers`: a log of the transfers between memories in a scope."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from tenferro_runtime.reports import Transfers
from tenferro_tensor.transfers import booking


@contextmanager
def transfers() -> Iterator[Transfers]:
    """Context manager that returns a log: bytes, direction and line of every transfer between memories.

    Those of compiled programs are booked on the line that was traced, those of gradients on the line of the transfer
    that they go back through. Transfers of threads that are started inside are theirs alone.

    >>> with tr.transfers() as log:
    ...     _ = tr.asarray([1.0, 2.0]).to_device("cpu:0") + 1
    >>> log.count
    0
    """
    log = Transfers()
    with booking(log.add):
        yield log
