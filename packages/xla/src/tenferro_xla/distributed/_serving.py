"""Tasks for the devices of other processes: what is said over a connection, on both of its ends."""

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
"""What process 0 asks for: a function is called, a program is kept, one that is kept is run, the connection ends."""

_FAREWELLS: Final[list[Connection]] = []
"""Connections that last until this process ends, so that its end is seen on the other side."""

FAREWELL_SECONDS: Final = 10.0


def outlive_others() -> None:
    """Wait until the processes that served this one have ended, but not for long.

    JAX ends those that are left when process 0 goes before them.
    """
    end = monotonic() + FAREWELL_SECONDS
    for connection in _FAREWELLS:
        connection.poll(max(0.0, end - monotonic()))


class RemoteDevice:
    """A device of another process as a worker.

    Args:
        connection: leads to a thread there that serves this device alone.
        timeout: seconds that a task may take before the process counts as lost, ``None`` for any time.
    """

    def __init__(self, connection: Connection, timeout: float | None) -> None:
        self._connection, self._timeout = connection, timeout
        self._known: set[str] = set()

    def call(self, fn: Any, args: Any, kwargs: Any) -> Any:
        """Call a function there; it is found by its name."""
        return self._ask(FUNCTION, pickle.dumps((fn, args, kwargs)))

    def run(self, program: Program, arrays: Sequence[Any]) -> tuple[Any, ...]:
        """Run a program there; each is sent once."""
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
                raise TimeoutError(f"it has not answered for {self._timeout:g} seconds")
            done, found = self._connection.recv()
        except (EOFError, OSError) as cause:
            self._connection.close()
            raise LostDeviceError(
                f"a process of the run is lost, {str(cause) or 'its connection has ended'}"
            ) from cause
        if not done:
            raise found
        return found

    def close(self) -> None:
        """Let the thread there end."""
        try:
            self._connection.send((END, None))
        except OSError:  # it has gone
            return
        _FAREWELLS.append(self._connection)


def serve(address: tuple[str, int], key: bytes, devices: Sequence[LocalDevice]) -> None:
    """Do what process 0 asks for, each device in a thread of its own, until it ends the connections."""
    threads = [Thread(target=_serve_device, args=(address, key, device)) for device in devices]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def _serve_device(address: tuple[str, int], key: bytes, device: LocalDevice) -> None:
    programs: dict[str, Program] = {}
    try:
        connection = Client(address, authkey=key)
        _FAREWELLS.append(connection)
        while (asked := connection.recv())[0] != END:
            what, payload = asked
            try:
                answer = True, _done(what, payload, programs, device)
            except Exception as error:
                answer = False, error
            connection.send(_sendable(answer))
    except (EOFError, OSError):  # process 0 has gone, or takes this one for lost
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
        return False, RuntimeError(f"what a task returned or raised cannot be sent, {answer[1]!r:.200}: {error}")
    return answer


def _file_of(program: Program) -> tuple[str, bytes]:
    """The program as the bytes of a file, and their name: the hash of what it means."""
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
