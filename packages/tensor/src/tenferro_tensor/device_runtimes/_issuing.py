"""The stream that the calling thread issues work to, where a stream's own `launch` calls a kernel."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


class _Local(threading.local):
    stream: Any = None


_local = _Local()


@contextmanager
def issuing(stream: Any) -> Iterator[None]:
    """Have kernels that the block calls go to a stream."""
    before, _local.stream = _local.stream, stream
    try:
        yield
    finally:
        _local.stream = before


def issuing_stream() -> Any:
    """The stream whose `launch` is calling a kernel in this thread, else ``None``."""
    return _local.stream
