"""A process of the run that was lost: JAX's errors about it as one typed error."""

from __future__ import annotations

import atexit
import os
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from time import sleep
from typing import Any, Final

from tenferro_runtime.extension import TenferroError


class ProcessLostError(TenferroError, RuntimeError):
    """Another process of the run has ended or does not answer, so what all compute together cannot go on."""


_SIGNS: Final = re.compile(
    r"[Gg]loo|heartbeat|CoordinationService|coordination service|Connection (closed|reset|refused)|remote task|NCCL"
)
"""What JAX, XLA and Gloo write about it; they raise `ValueError`, `RuntimeError` and errors of jaxlib's own."""


@contextmanager
def losses_named() -> Iterator[None]:
    """Within this block, JAX's errors about a lost process are `ProcessLostError`.

    Raises:
        ProcessLostError: a computation of several processes has failed because one of them has gone.
    """
    try:
        yield
    except TenferroError:
        raise
    except (ValueError, RuntimeError) as cause:
        if not _SIGNS.search(str(cause)):
            raise
        _leave_at_exit()
        first = str(cause).strip().splitlines()[0]
        raise ProcessLostError(
            f"another process of the run has ended or does not answer ({first:.200}); see its own output, end this one "
            "and start all of them again, from the last checkpoint"
        ) from cause


_LEAVING: Final[list[Any]] = []

COORDINATOR_LINGERS: Final = 2.0
"""Seconds for which process 0 outlives the error: JAX ends the others, whatever they do, as soon as it has gone."""


def _leave_at_exit() -> None:
    """End without JAX's farewell, which would wait for the lost process; so the others hear of it at once, too."""
    if not _LEAVING:
        _LEAVING.append(atexit.register(_leave))


def _leave() -> None:
    import jax

    if getattr(jax.config, "jax_enable_recoverability", False):
        return
    sys.stdout.flush()
    sys.stderr.flush()
    if jax.process_index() == 0:
        sleep(COORDINATOR_LINGERS)
    os._exit(1)
