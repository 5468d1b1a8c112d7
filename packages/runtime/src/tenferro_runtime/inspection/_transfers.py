"""`transfers`: a log of the transfers between memories in a scope."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from tenferro_runtime.reports import Transfers
from tenferro_tensor.transfers import booking


@contextmanager
def transfers() -> Iterator[Transfers]:
    """Context manager that returns a log of transfers between memories: bytes, direction and source line of each.

    Transfers of compiled programs are attributed to the traced line, those of gradients to the line of the transfer
    that they reverse. Transfers of threads started inside are not included.

    Returns:
        A context manager for the log, a `Transfers`.

    >>> with tr.transfers() as log:
    ...     _ = tr.asarray([1.0, 2.0]).to_device("cpu:0") + 1
    >>> log.count
    0
    """
    log = Transfers()
    with booking(log.add):
        yield log
