"""What the processes of a run tell each other while they write a checkpoint: a number, and whether all went well."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from tenferro_tensor_core.forks import importing
from tenferro_xla.checkpoints._index import CheckpointError
from tenferro_xla.distributed import losses_named


def process() -> int:
    """The number of this process."""
    with importing():
        import jax

    return int(jax.process_index())


def agreed_number(choose: Callable[[], int]) -> int:
    """The number that process 0 chooses.

    Raises:
        CheckpointError: it could not.
    """
    number, cause = -1, None
    if process() == 0:
        try:
            number = choose()
        except OSError as error:
            cause = error
    found = int(_all(number)[0])
    if found < 0:
        raise CheckpointError(f"the checkpoint cannot be begun{_why(cause)}") from cause
    return found


@contextmanager
def all_succeed(what: str) -> Iterator[None]:
    """All processes leave this block together, and all with an error where one has failed.

    Raises:
        CheckpointError: a process has failed.
        ProcessLostError: a process is not there any more.
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
            "the checkpoint before it, if any, is still there"
        ) from cause


def _why(cause: Exception | None) -> str:
    return "" if cause is None else f": {cause}"


def _all(number: int) -> Any:
    """The numbers of all processes, when all have come here."""
    with importing():
        import jax
    if jax.process_count() == 1:
        return np.array([number])
    from jax.experimental.multihost_utils import process_allgather

    with losses_named():
        return process_allgather(np.int32(number)).reshape(-1)
