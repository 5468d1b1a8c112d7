"""How many threads transforms of several lines on the CPU may use."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from tenferro_tensor_core import ArgumentError


@contextmanager
def set_workers(workers: int, /) -> Iterator[None]:
    """A scope in which transforms on the CPU, called in this thread, share their lines among so many threads.

    Outside of such scopes they use one. Transforms on other devices are not concerned.

    Args:
        workers: number of threads; negative ones count from the number of processors, -1 for all.

    Raises:
        ArgumentError: it is 0, no integer, or less than minus the number of processors.

    >>> with set_workers(2):
    ...     print(get_workers())
    2
    """
    from scipy import fft

    try:
        scope = fft.set_workers(workers)
        scope.__enter__()
    except (TypeError, ValueError) as cause:
        raise ArgumentError(f"set_workers takes a number of threads, got {workers!r}: {cause}") from None
    try:
        yield
    finally:
        scope.__exit__(None, None, None)


def get_workers() -> int:
    """The number of threads that transforms on the CPU, called in this thread, may use."""
    from scipy import fft

    return int(fft.get_workers())
