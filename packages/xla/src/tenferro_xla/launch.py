"""Starts the processes of a run on this machine: ``python -m tenferro_xla.launch -n 4 script.py``.

Each process runs the same script, which calls `tenferro_xla.distributed.initialize`. When one fails, the others have a
grace period to end with their own errors and are then terminated. The exit status is that of the first failed process.
"""

from __future__ import annotations

import argparse
import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Sequence
from math import inf
from queue import Empty, SimpleQueue
from time import monotonic
from types import FrameType
from typing import IO, Final

from tenferro_tensor_core.forks import new_lock
from tenferro_xla.distributed._start import COORDINATOR, PROCESS, PROCESSES

TERMINATION_SECONDS: Final = 5.0
"""Seconds between terminating a process and killing it."""


class Launcher:
    """The processes that were started on this machine.

    Args:
        count: number of processes of the whole run.
        grace: seconds until the other processes are terminated after one has failed.
    """

    def __init__(self, count: int, grace: float) -> None:
        self._count, self._grace = count, grace
        self._ended: SimpleQueue[int] = SimpleQueue()
        self._stopped: int | None = None
        self._deadline = inf
        self._readers: list[threading.Thread] = []
        self._writing = new_lock()
        self.processes: dict[int, subprocess.Popen[str]] = {}

    def start(self, command: Sequence[str], environments: dict[int, dict[str, str]]) -> None:
        """Start the processes; after a signal, no further ones.

        Args:
            command: the command of each process.
            environments: environment variables of each process, by its number in the run.
        """
        try:
            for number, environment in environments.items():
                if self._stopped is not None:
                    break
                self.processes[number] = process = subprocess.Popen(
                    command,
                    env=environment,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.STDOUT,
                    text=True,
                    errors="replace",
                )
                if self._stopped is not None:  # the signal came before the process was known
                    process.send_signal(self._stopped)
                assert process.stdout is not None
                self._thread(self._copy, number, process.stdout)
                self._thread(self._watch, number, process)
        except BaseException:
            self._end(self.processes)
            raise
        pids = ", ".join(f"{number} is {process.pid}" for number, process in self.processes.items())
        self._say(f"processes of {self._count}: {pids}")

    def _thread(self, work: object, *args: object) -> None:
        thread = threading.Thread(target=work, args=args, daemon=True)  # type: ignore[arg-type]
        thread.start()
        self._readers.append(thread)

    def _copy(self, number: int, lines: IO[str]) -> None:
        with lines:
            for line in lines:
                with self._writing:
                    print(f"[{number}] {line}", end="" if line.endswith("\n") else "\n", flush=True)

    def _watch(self, number: int, process: subprocess.Popen[str]) -> None:
        process.wait()
        self._ended.put(number)

    def stop(self, number: int, frame: FrameType | None) -> None:
        """Forward a signal to all processes, as a signal handler; `wait` terminates those that ignore it."""
        self._stopped = number
        self._deadline = min(self._deadline, monotonic() + self._grace)
        for process in self.processes.values():
            if process.poll() is None:
                process.send_signal(number)

    def wait(self) -> int:
        """Wait for all processes; return the exit status of the first that failed, or 0."""
        running, status = {*self.processes}, 0
        while running:
            try:
                number = self._ended.get(timeout=min(0.5, max(0.0, self._deadline - monotonic())))
            except Empty:
                if monotonic() >= self._deadline:
                    self._say(f"ending {_names(running)}, still running {self._grace:g} s later")
                    self._end({k: self.processes[k] for k in running})
                    self._deadline = inf
                continue
            running.discard(number)
            code = self.processes[number].returncode
            if code:
                self._say(f"process {number} of {self._count} {_ending(code)}")
                status = status or (128 - code if code < 0 else code)
                self._deadline = min(self._deadline, monotonic() + self._grace)
        for thread in self._readers:
            thread.join(1.0)  # a child process of the script may hold its pipe open
        return 128 + self._stopped if self._stopped is not None else status

    def _say(self, text: str) -> None:
        with self._writing:
            print(f"launch: {text}", file=sys.stderr, flush=True)

    def _end(self, processes: dict[int, subprocess.Popen[str]]) -> None:
        for process in processes.values():
            process.terminate()
        for process in processes.values():
            try:
                process.wait(TERMINATION_SECONDS)
            except subprocess.TimeoutExpired:
                process.kill()


def _names(numbers: set[int]) -> str:
    return f"process{'es' if len(numbers) > 1 else ''} {', '.join(map(str, sorted(numbers)))}"


def _ending(code: int) -> str:
    if code >= 0:
        return f"ended with status {code}"
    try:
        return f"was ended by {signal.Signals(-code).name}"
    except ValueError:
        return f"was ended by signal {-code}"


def _free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        port: int = found.getsockname()[1]
        return port


def main(argv: Sequence[str] | None = None) -> int:
    """Start the processes and wait for them.

    Args:
        argv: arguments of the command line; by default those of this process.

    Returns:
        The exit status of the first process that failed, 128 plus the number of the signal that killed it, or 0.
    """
    parser = argparse.ArgumentParser(
        prog="python -m tenferro_xla.launch",
        description="Start the processes of a run on this machine.",
        epilog="On several machines, pass the same --coordinator and --processes to each, and a different --first.",
    )
    parser.add_argument("-n", type=int, required=True, help="number of processes to start here")
    parser.add_argument("--devices", type=int, help="number of virtual CPU devices of each process")
    parser.add_argument("--coordinator", help="host:port of process 0 (default: a free port of this machine)")
    parser.add_argument("--processes", type=int, help="number of processes of the whole run (default: -n)")
    parser.add_argument("--first", type=int, default=0, help="number of the first process started here")
    parser.add_argument("--grace", type=float, default=15.0, help="seconds for the others after a failure")
    parser.add_argument("-m", dest="module", action="store_true", help="script is the name of a module")
    parser.add_argument("script")
    parser.add_argument("arguments", nargs=argparse.REMAINDER)
    given = parser.parse_args(argv)
    count = given.processes or given.n
    if given.n < 1 or given.first < 0 or given.first + given.n > count:
        parser.error(f"processes {given.first} to {given.first + given.n - 1} are not all among {count}, from 0")
    if given.coordinator is None and count > given.n:
        parser.error("a run on several machines needs --coordinator")
    coordinator = given.coordinator or f"127.0.0.1:{_free_port()}"
    environments = {}
    for number in range(given.first, given.first + given.n):
        own = {COORDINATOR: coordinator, PROCESSES: str(count), PROCESS: str(number), "PYTHONUNBUFFERED": "1"}
        environments[number] = {**os.environ, **own}
        if given.devices is not None:
            flags = f"{os.environ.get('XLA_FLAGS', '')} --xla_force_host_platform_device_count={given.devices}"
            environments[number]["XLA_FLAGS"] = flags.strip()
    command = [sys.executable, *(["-m"] if given.module else []), given.script, *given.arguments]
    launcher = Launcher(count, given.grace)
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, launcher.stop)
    launcher.start(command, environments)
    return launcher.wait()


if __name__ == "__main__":
    sys.exit(main())
