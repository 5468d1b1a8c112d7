"""The loss of a process of the run: converts JAX's errors about it to one typed error."""

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
    """Another process of the run has ended or does not respond, so that collective computations cannot continue."""


_LOSS_MESSAGE: Final = re.compile(
    r"[Gg]loo|heartbeat|CoordinationService|coordination service|Connection (closed|reset|refused)|remote task|NCCL"
)
"""Messages of JAX, XLA and Gloo about a lost process, raised as `ValueError`, `RuntimeError` and jaxlib's errors."""


@contextmanager
def losses_named() -> Iterator[None]:
    """Raise JAX's errors about a lost process as `ProcessLostError` inside a ``with`` block.

    Returns:
        The context manager.

    Raises:
        ProcessLostError: a collective computation failed because a process is lost.
    """
    try:
        yield
    except TenferroError:
        raise
    except (ValueError, RuntimeError) as cause:
        if not _LOSS_MESSAGE.search(str(cause)):
            raise
        _leave_at_exit()
        first = str(cause).strip().splitlines()[0]
        raise ProcessLostError(
            f"another process of the run has ended or does not respond ({first:.200}); see its output, then restart "
            "all processes from the last checkpoint"
        ) from cause


_LEAVING: Final[list[Any]] = []

COORDINATOR_LINGERS: Final = 2.0
"""Seconds for which process 0 outlives the error: JAX ends all other processes as soon as process 0 ends."""


def _leave_at_exit() -> None:
    """Exit without JAX's shutdown barrier, which would wait for the lost process."""
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
