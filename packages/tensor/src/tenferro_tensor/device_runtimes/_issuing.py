"""The stream to which the calling thread issues work while `Stream.launch` calls a kernel."""

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
    """Issue the kernels that the block calls to a stream."""
    before, _local.stream = _local.stream, stream
    try:
        yield
    finally:
        _local.stream = before


def issuing_stream() -> Any:
    """The stream whose `launch` is calling a kernel in this thread, else ``None``."""
    return _local.stream
