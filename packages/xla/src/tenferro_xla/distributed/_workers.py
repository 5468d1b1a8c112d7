"""`workers`: the devices of all processes of a run as one executor for process 0."""

from __future__ import annotations

import atexit
import json
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from multiprocessing import AuthenticationError
from multiprocessing.connection import Connection, Listener
from queue import Empty, SimpleQueue
from threading import Thread
from time import monotonic
from typing import Final

import numpy as np

from tenferro_xla._jax_modules import library
from tenferro_xla._workers import DeviceWorkers, LocalDevice
from tenferro_xla.distributed._losses import losses_named
from tenferro_xla.distributed._serving import RemoteDevice, outlive_others, serve
from tenferro_xla.distributed._start import ProcessesError, coordinator_host

JOIN_SECONDS: Final = 60.0
"""Seconds for the other processes to connect."""


@contextmanager
def workers(*, timeout: float | None = None) -> Iterator[DeviceWorkers | None]:
    """Run tasks of process 0 on the devices of all processes, inside a ``with`` block.

    All processes enter the block. Process 0 gets an executor for `tenferro_einsum.run_on`; the others get ``None`` and
    serve it until it leaves the block::


        distributed.initialize(recoverable=True)
        with distributed.workers() as executor:
            if executor is not None:
                with run_on(executor):
                    ...

    If a process other than process 0 is lost, another one repeats its task. The run continues without it if
    `initialize` was called with ``recoverable=True``.

    Args:
        timeout: seconds after which a process with an unfinished task counts as lost; ``None`` for no limit.

    Returns:
        The context manager; it yields the executor in process 0 and ``None`` in the others.

    Raises:
        ProcessesError: another process does not connect within a minute.
        ProcessLostError: a process was lost before the block.
    """
    jax = library()
    devices = [LocalDevice("cuda" if d.platform == "gpu" else d.platform, i) for i, d in enumerate(jax.local_devices())]
    if jax.process_index():
        host, port, key = _agreed(None)
        serve((host, port), bytes.fromhex(key), devices)
        yield None
        return
    remote = _remote(jax.device_count() - len(devices), timeout) if jax.process_count() > 1 else []
    pool = DeviceWorkers([*devices, *remote])
    try:
        yield pool
    finally:
        pool.shutdown(cancel_futures=True)


def _remote(count: int, timeout: float | None) -> list[RemoteDevice]:
    """Return the devices of the other processes, after all have connected."""
    key, host = secrets.token_bytes(32), coordinator_host()
    found: SimpleQueue[Connection | OSError | AuthenticationError] = SimpleQueue()
    with Listener((host, 0), backlog=count, authkey=key) as listener:

        def accept() -> None:
            for _ in range(count):
                try:
                    found.put(listener.accept())
                except (OSError, AuthenticationError) as error:
                    found.put(error)

        Thread(target=accept, daemon=True).start()
        _agreed((host, listener.address[1], key.hex()))
        connections: list[Connection] = []
        end = monotonic() + JOIN_SECONDS
        while len(connections) < count:
            try:
                one = found.get(timeout=max(0.0, end - monotonic()))
                if not isinstance(one, Connection):
                    raise one
            except (Empty, OSError, AuthenticationError) as cause:
                raise ProcessesError(
                    f"{len(connections)} of {count} devices of the other processes have connected to {host} within "
                    f"{JOIN_SECONDS:g} seconds; all processes must enter workers()"
                ) from cause
            connections.append(one)
    atexit.register(outlive_others)
    return [RemoteDevice(connection, timeout) for connection in connections]


def _agreed(mine: tuple[str, int, str] | None) -> tuple[str, int, str]:
    """Broadcast the address of process 0 and the authentication key; process 0 passes `mine`."""
    data = np.zeros(512, np.uint8)
    if mine is not None:
        text = json.dumps(mine).encode()
        data[: len(text)] = np.frombuffer(text, np.uint8)
    with losses_named():
        found = np.asarray(library("experimental.multihost_utils").broadcast_one_to_all(data), np.uint8)
    host, port, key = json.loads(found.tobytes().rstrip(b"\0"))
    return host, port, key
