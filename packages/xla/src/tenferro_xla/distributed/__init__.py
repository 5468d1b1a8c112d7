"""Runs of several processes, on one machine or many."""

from tenferro_xla.distributed._losses import ProcessLostError, losses_named
from tenferro_xla.distributed._start import ProcessesError, initialize, launched, process_count, process_index, shutdown
from tenferro_xla.distributed._workers import workers

__all__ = [
    "ProcessLostError",
    "ProcessesError",
    "initialize",
    "launched",
    "losses_named",
    "process_count",
    "process_index",
    "shutdown",
    "workers",
]


def __dir__() -> list[str]:
    return __all__.copy()
