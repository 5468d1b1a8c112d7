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
"""Environment variables that `tenferro_xla.launch` sets."""


class ProcessesError(TenferroError, RuntimeError):
    """The processes of a run cannot connect."""


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

    Each process runs the same script and calls this function before any computation with XLA. Without arguments it
    joins the run of ``python -m tenferro_xla.launch``, or the run that JAX detects: Slurm, Open MPI, Kubernetes or a
    TPU pod.

    If a process is lost later, computations of the others raise `ProcessLostError` as soon as a connection breaks. JAX
    terminates all processes, with a message and a nonzero status, when one has been silent for `heartbeat_timeout`
    seconds, or when process 0, which coordinates the run, has ended.

    Args:
        coordinator: ``"host:port"`` of process 0, reachable by the others.
        processes: number of processes.
        index: index of this process, from 0.
        join_timeout: seconds to wait for the other processes; then JAX terminates the process with a message.
        heartbeat_timeout: seconds of silence after which a process counts as lost.
        recoverable: whether the run continues after the loss of a process other than process 0; for runs that
            distribute tasks with `workers`. A collective computation then waits for a silent process as long as its
            connection lasts.

    Raises:
        ArgumentError: `coordinator`, `processes` and `index` are incomplete or inconsistent.
        ProcessesError: XLA has been used before, or JAX detects no run.

    See also:
        `shutdown`, `process_index` and `process_count`.
    """
    given = (coordinator, processes, index)
    if all(x is None for x in given) and COORDINATOR in os.environ:
        coordinator = os.environ[COORDINATOR]
        processes, index = int(os.environ[PROCESSES]), int(os.environ[PROCESS])
    elif any(x is None for x in given) and not all(x is None for x in given):
        raise ArgumentError(
            f"initialize takes coordinator, processes and index together, got {coordinator!r}, {processes!r} and "
            f"{index!r}; without arguments it uses those of `python -m tenferro_xla.launch`, or of JAX"
        )
    if processes is not None and index is not None and not 0 <= index < processes:
        raise ArgumentError(f"initialize got process {index} of {processes}; indices start at 0")
    import jax

    _configure(jax, recoverable)
    _HOSTS[:] = [] if coordinator is None else [coordinator.rpartition(":")[0]]
    seconds = {
        "initialization_timeout": round(join_timeout),
        "heartbeat_timeout_seconds": round(heartbeat_timeout),
        "shutdown_timeout_seconds": round(heartbeat_timeout),
    }
    known = signature(jax.distributed.initialize).parameters  # old versions of JAX lack some of them
    try:
        jax.distributed.initialize(coordinator, processes, index, **{k: v for k, v in seconds.items() if k in known})
    except (RuntimeError, ValueError) as cause:
        first = str(cause).strip().splitlines()[0]
        raise ProcessesError(
            f"this process cannot join a run ({first:.200}); call initialize once, before any computation with XLA, in "
            "a script started by `python -m tenferro_xla.launch`, or with coordinator, processes and index"
        ) from cause


def _configure(jax: Any, recoverable: bool) -> None:
    jax.config.update("jax_cpu_collectives_implementation", "gloo")
    try:
        jax.config.update("jax_enable_recoverability", recoverable)
    except AttributeError as cause:
        if recoverable:
            raise ProcessesError(
                f"JAX {jax.__version__} cannot continue after the loss of a process; install a newer version, or omit "
                "recoverable=True"
            ) from cause


_HOSTS: Final[list[str]] = []
"""The host of process 0, if the user or the launcher has specified it."""


def coordinator_host() -> str:
    """Return the host of process 0, reachable by the others; called in process 0."""
    return _HOSTS[0] if _HOSTS else socket.getfqdn()


def launched() -> bool:
    """Return whether ``python -m tenferro_xla.launch`` has started this process.

    Returns:
        Whether the environment names a coordinator.
    """
    return COORDINATOR in os.environ


def shutdown() -> None:
    """Leave the run; the end of the script does so too."""
    import jax

    jax.distributed.shutdown()


def process_index() -> int:
    """Return the index of this process in the run.

    Returns:
        The index, from 0; 0 without a run.
    """
    import jax

    return int(jax.process_index())


def process_count() -> int:
    """Return the number of processes in the run.

    Returns:
        The number; 1 without a run.
    """
    import jax

    return int(jax.process_count())
