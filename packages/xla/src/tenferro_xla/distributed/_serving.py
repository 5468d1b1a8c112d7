"""Tasks for the devices of other processes: the protocol of a connection, on both ends."""

from __future__ import annotations

import os
import pickle
import tempfile
from collections.abc import Sequence
from multiprocessing.connection import Client, Connection
from threading import Thread
from time import monotonic
from typing import Any, Final

import numpy as np

import tenferro_runtime as tr
from tenferro_runtime.extension import Program, Tensor
from tenferro_xla._workers import LocalDevice, LostDeviceError

FUNCTION, PROGRAM, RUN, END = "function", "program", "run", "end"
"""Requests of process 0: call a function, store a program, run a stored program, end the connection."""

_OPEN_CONNECTIONS: Final[list[Connection]] = []
"""Connections that stay open until this process ends, so that the other side detects its end."""

FAREWELL_SECONDS: Final = 10.0


def outlive_others() -> None:
    """Wait, for at most `FAREWELL_SECONDS`, until the processes that served this one have ended.

    JAX terminates processes that are still running when process 0 ends.
    """
    end = monotonic() + FAREWELL_SECONDS
    for connection in _OPEN_CONNECTIONS:
        connection.poll(max(0.0, end - monotonic()))


class RemoteDevice:
    """A device of another process as a worker.

    Args:
        connection: connection to the thread that serves this device.
        timeout: seconds after which a process with an unfinished task counts as lost; ``None`` for no limit.
    """

    def __init__(self, connection: Connection, timeout: float | None) -> None:
        self._connection, self._timeout = connection, timeout
        self._known: set[str] = set()

    def call(self, fn: Any, args: Any, kwargs: Any) -> Any:
        """Call a function in the other process, which imports it by name."""
        return self._ask(FUNCTION, pickle.dumps((fn, args, kwargs)))

    def run(self, program: Program, arrays: Sequence[Any]) -> tuple[Any, ...]:
        """Run a program in the other process; each program is sent once."""
        name, data = _file_of(program)
        if name not in self._known:
            self._ask(PROGRAM, (name, data))
            self._known.add(name)
        plain = [x._concrete() if isinstance(x, Tensor) else np.asarray(x) for x in arrays]
        return tuple(self._ask(RUN, (name, plain)))

    def _ask(self, what: str, payload: Any) -> Any:
        try:
            self._connection.send((what, payload))
            if not self._connection.poll(self._timeout):
                raise TimeoutError(f"no response for {self._timeout:g} seconds")
            done, found = self._connection.recv()
        except (EOFError, OSError) as cause:
            self._connection.close()
            raise LostDeviceError(
                f"a process of the run is lost: {str(cause) or 'its connection is closed'}"
            ) from cause
        if not done:
            raise found
        return found

    def close(self) -> None:
        """End the thread in the other process."""
        try:
            self._connection.send((END, None))
        except OSError:  # the process has ended
            return
        _OPEN_CONNECTIONS.append(self._connection)


def serve(address: tuple[str, int], key: bytes, devices: Sequence[LocalDevice]) -> None:
    """Serve the requests of process 0, with a thread for each device, until it ends the connections."""
    threads = [Thread(target=_serve_device, args=(address, key, device)) for device in devices]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def _serve_device(address: tuple[str, int], key: bytes, device: LocalDevice) -> None:
    programs: dict[str, Program] = {}
    try:
        connection = Client(address, authkey=key)
        _OPEN_CONNECTIONS.append(connection)
        while (asked := connection.recv())[0] != END:
            what, payload = asked
            try:
                answer = True, _done(what, payload, programs, device)
            except Exception as error:
                answer = False, error
            connection.send(_sendable(answer))
    except (EOFError, OSError):  # process 0 has ended, or considers this process lost
        return


def _done(what: str, payload: Any, programs: dict[str, Program], device: LocalDevice) -> Any:
    if what == FUNCTION:
        fn, args, kwargs = pickle.loads(payload)
        return fn(*args, **kwargs)
    if what == PROGRAM:
        name, data = payload
        programs[name] = _program_of(data)
        return None
    name, arrays = payload
    return [np.asarray(x) for x in device.run(programs[name], arrays)]


def _sendable(answer: tuple[bool, Any]) -> tuple[bool, Any]:
    try:
        pickle.loads(pickle.dumps(answer))
    except Exception as error:
        return False, RuntimeError(f"the result or error of a task cannot be pickled, {answer[1]!r:.200}: {error}")
    return answer


def _file_of(program: Program) -> tuple[str, bytes]:
    """Return a program as the bytes of a file, with its name, which is a hash of its meaning."""
    found: tuple[str, bytes] | None = program.memo.get("tenferro_xla: file")
    if found is None:
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "program")
            name = program.save(path)
            with open(path, "rb") as file:
                found = program.memo["tenferro_xla: file"] = name, file.read()
    return found


def _program_of(data: bytes) -> Program:
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "program")
        with open(path, "wb") as file:
            file.write(data)
        program: Program = tr.load(path)
        return program
