"""Joining and leaving a run of several processes."""

from __future__ import annotations

import os
import socket
from inspect import signature
from typing import Any, Final

from tenferro_runtime.extension import ArgumentError, TenferroError

COORDINATOR: Final = "TENFERRO_COORDINATOR"
PROCESSES: Final = "TENFERRO_PROCESSES"
PROCESS: Final = "TENFERRO_PROCESS"
"""Variables of the environment that `tenferro_xla.launch` sets."""


class ProcessesError(TenferroError, RuntimeError):
    """The processes of a run do not come together."""


def initialize(
    coordinator: str | None = None,
    processes: int | None = None,
    index: int | None = None,
    *,
    join_timeout: float = 60,
    heartbeat_timeout: float = 10,
    recoverable: bool = False,
) -> None:
    """Join a run of several processes; afterwards a `Mesh` spans the devices of all of them.

    Each process runs the same script and calls this first, before anything computes with XLA. Without arguments the
    run is that of ``python -m tenferro_xla.launch``, or else the one that JAX finds: Slurm, Open MPI, Kubernetes, a
    TPU pod.

    When a process is lost later, computations of the others raise `ProcessLostError` as soon as a connection breaks.
    JAX ends all processes, with a message and a status other than 0, when one has been silent for `heartbeat_timeout`,
    or when process 0, which keeps the list of all, has gone.

    Args:
        coordinator: ``"host:port"`` of process 0, as the others reach it.
        processes: number of processes.
        index: number of this process, from 0.
        join_timeout: seconds to wait for the others; JAX ends the process, with a message, where they do not come.
        heartbeat_timeout: seconds of silence after which a process counts as lost.
        recoverable: whether the others may go on without a lost process, other than 0: for runs that deal out tasks
            with `workers`. A computation of all processes then waits for one that is silent as long as its connection
            lasts.

    Raises:
        ArgumentError: some of `coordinator`, `processes` and `index` are given without the others, or make no sense.
        ProcessesError: XLA has been used before, or there is no run to be found.
    """
    given = (coordinator, processes, index)
    if all(x is None for x in given) and COORDINATOR in os.environ:
        coordinator = os.environ[COORDINATOR]
        processes, index = int(os.environ[PROCESSES]), int(os.environ[PROCESS])
    elif any(x is None for x in given) and not all(x is None for x in given):
        raise ArgumentError(
            f"initialize takes coordinator, processes and index together, got {coordinator!r}, {processes!r} and "
            f"{index!r}; without any of them it takes those of `python -m tenferro_xla.launch`, or asks JAX"
        )
    if processes is not None and index is not None and not 0 <= index < processes:
        raise ArgumentError(f"initialize got process {index} of {processes}; they are numbered from 0")
    import jax

    _configure(jax, recoverable)
    _HOSTS[:] = [] if coordinator is None else [coordinator.rpartition(":")[0]]
    seconds = {
        "initialization_timeout": round(join_timeout),
        "heartbeat_timeout_seconds": round(heartbeat_timeout),
        "shutdown_timeout_seconds": round(heartbeat_timeout),
    }
    known = signature(jax.distributed.initialize).parameters  # the oldest JAX has not all of them
    try:
        jax.distributed.initialize(coordinator, processes, index, **{k: v for k, v in seconds.items() if k in known})
    except (RuntimeError, ValueError) as cause:
        first = str(cause).strip().splitlines()[0]
        raise ProcessesError(
            f"this process cannot join a run ({first:.200}); call initialize once, before anything runs on XLA, in a "
            "script that `python -m tenferro_xla.launch` starts, or with coordinator, processes and index"
        ) from cause


def _configure(jax: Any, recoverable: bool) -> None:
    jax.config.update("jax_cpu_collectives_implementation", "gloo")
    try:
        jax.config.update("jax_enable_recoverability", recoverable)
    except AttributeError as cause:
        if recoverable:
            raise ProcessesError(
                f"JAX {jax.__version__} cannot go on without a lost process; install a newer one, or leave out "
                "recoverable=True"
            ) from cause


_HOSTS: Final[list[str]] = []
"""The host of process 0, where the user or the launcher has said it."""


def coordinator_host() -> str:
    """The host of process 0, as the others reach it; asked for there."""
    return _HOSTS[0] if _HOSTS else socket.getfqdn()


def launched() -> bool:
    """Whether ``python -m tenferro_xla.launch`` has started this process."""
    return COORDINATOR in os.environ


def shutdown() -> None:
    """Leave the run. The end of the script does it too."""
    import jax

    jax.distributed.shutdown()


def process_index() -> int:
    """The number of this process in the run, 0 without one."""
    import jax

    return int(jax.process_index())


def process_count() -> int:
    """The number of processes in the run, 1 without one."""
    import jax

    return int(jax.process_count())
