"""The agreement of the processes of a run while they write a checkpoint: a number, and whether all succeed."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from tenferro_tensor_core.forks import importing
from tenferro_xla.checkpoints._index import CheckpointError
from tenferro_xla.distributed import losses_named


def process() -> int:
    """Return the index of this process."""
    with importing():
        import jax

    return int(jax.process_index())


def agreed_number(choose: Callable[[], int]) -> int:
    """Return the number that process 0 chooses.

    Raises:
        CheckpointError: process 0 failed to choose it.
    """
    number, cause = -1, None
    if process() == 0:
        try:
            number = choose()
        except OSError as error:
            cause = error
    found = int(_all(number)[0])
    if found < 0:
        raise CheckpointError(f"writing the checkpoint cannot start{_why(cause)}") from cause
    return found


@contextmanager
def all_succeed(what: str) -> Iterator[None]:
    """Context manager that all processes leave together, all with an error if one of them failed.

    Raises:
        CheckpointError: a process failed.
        ProcessLostError: a process is lost.
    """
    cause: Exception | None = None
    try:
        yield
    except (OSError, CheckpointError) as error:
        cause = error
    failed = np.flatnonzero(_all(0 if cause is None else 1))
    if len(failed):
        raise CheckpointError(
            f"{what} failed in process{'es' if len(failed) > 1 else ''} {', '.join(map(str, failed))}{_why(cause)}; "
            "the previous checkpoint, if any, is intact"
        ) from cause


def _why(cause: Exception | None) -> str:
    return "" if cause is None else f": {cause}"


def _all(number: int) -> Any:
    """Return the numbers of all processes, after waiting for all of them."""
    with importing():
        import jax
    if jax.process_count() == 1:
        return np.array([number])
    from jax.experimental.multihost_utils import process_allgather

    with losses_named():
        return process_allgather(np.int32(number)).reshape(-1)
