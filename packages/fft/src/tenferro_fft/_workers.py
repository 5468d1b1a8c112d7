"""The number of threads for transforms of several lines on the CPU."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from tenferro_tensor_core import ArgumentError
from tenferro_tensor_core.tracebacks import boundary


@contextmanager
def set_workers(workers: int, /) -> Iterator[None]:
    """Context manager: transforms on the CPU, called in this thread, share their lines among several threads.

    Outside such scopes they use one thread. Transforms on other devices are not affected.

    Args:
        workers: number of threads; negative numbers count from the number of processors, -1 for all.

    Returns:
        A context manager.

    Raises:
        ArgumentError: `workers` is 0, not an integer, or less than minus the number of processors.

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


@boundary
def get_workers() -> int:
    """The number of threads for transforms on the CPU that this thread calls.

    Returns:
        The number of threads.

    See also:
        set_workers: changes it.

    >>> get_workers()
    1
    """
    from scipy import fft

    return int(fft.get_workers())
