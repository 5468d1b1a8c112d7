"""`Process`: a worker as the campaign sees it; its death and its silence are failures with a case."""

import contextlib
import json
import mmap
import os
import re
import signal
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import Any, Self

from fuzzing.area import WITHOUT

STARTUP = 240.0
"""Seconds until a worker must be ready; machines under load import slowly."""


class Gone(Exception):
    """The worker died or hung; `failure` is what a reply would have said, `number` the case it was in."""

    def __init__(self, kind: str, text: str, number: int) -> None:
        super().__init__(f"{kind}: {text}")
        self.failure = {"kind": kind, "text": text, "place": _deepest(text)}
        self.number = number


class Stopped(Exception):
    """The campaign ends."""


class Process:
    """One child process.

    Args:
        machine: how it uses machine code.
        patience: seconds that one case may take.
        stopping: once set, waiting for the child ends with `Stopped`.
    """

    def __init__(self, machine: str, patience: float, stopping: threading.Event | None = None) -> None:
        self._stopping = stopping or threading.Event()
        self._log = tempfile.NamedTemporaryFile("w+", suffix=".log", errors="replace")
        self._counter = tempfile.NamedTemporaryFile("w+b")
        self._counter.truncate(16)
        self._map = mmap.mmap(self._counter.fileno(), 16)
        # Machine code depends on `machine`, which keys of the cache do not tell.
        self._cache = tempfile.TemporaryDirectory(
            ignore_cleanup_errors=True
        )  # of machine code, as it depends on `machine`
        environment = os.environ | {
            "TENFERRO_CPU_JIT": "0" if machine == WITHOUT else "1",
            "TENFERRO_CACHE_DIR": self._cache.name,
            "JAX_PLATFORMS": "cpu",
        }
        path = [str(Path(__file__).parents[1]), os.environ.get("PYTHONPATH", "")]
        environment["PYTHONPATH"] = os.pathsep.join(p for p in path if p)
        command = [sys.executable, "-m", "fuzzing.worker", self._counter.name, machine]
        self._child = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self._log, text=True, env=environment,
            start_new_session=True,
        )  # fmt: skip
        self._lines: SimpleQueue[str | None] = SimpleQueue()
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()
        self._patience = STARTUP
        try:
            self._next()
        except BaseException:
            self.close()
            raise
        self._patience = patience

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    def ask(self, request: dict[str, Any]) -> Any:
        """Send a request; yield its replies, the last one with ``done``.

        Raises:
            Gone: the worker died, or one case took longer than its patience.
        """
        assert self._child.stdin is not None
        try:
            self._child.stdin.write(json.dumps(request) + "\n")
            self._child.stdin.flush()
        except OSError:
            raise self._gone() from None
        while True:
            reply = self._next()
            yield reply
            if "done" in reply:
                return

    @property
    def number(self) -> int:
        """The case that the worker is in."""
        return int.from_bytes(self._map[:8], "little")

    @property
    def trials(self) -> int:
        """The comparisons of the batch before that case."""
        return int.from_bytes(self._map[8:], "little")

    def close(self) -> None:
        """End the child and all that it started; files go with this object."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._child.pid, signal.SIGKILL)
        self._child.wait()
        self._reader.join()
        assert self._child.stdin is not None and self._child.stdout is not None
        with contextlib.suppress(OSError):  # a request that the child no longer took
            self._child.stdin.close()
        self._child.stdout.close()
        self._cache.cleanup()

    def _read(self) -> None:
        assert self._child.stdout is not None
        for line in self._child.stdout:
            self._lines.put(line)
        self._lines.put(None)

    def _next(self) -> Any:
        before, since = self.number, time.monotonic()
        while True:
            try:
                line = self._lines.get(timeout=0.2)
            except Empty:
                if self._stopping.is_set():
                    raise Stopped from None
                if self.number != before:
                    before, since = self.number, time.monotonic()
                if time.monotonic() - since > self._patience:
                    raise self._gone(hung=True) from None
                continue
            if line is None:
                raise self._gone()
            return json.loads(line)

    def _gone(self, hung: bool = False) -> Gone:
        if hung:
            os.kill(self._child.pid, signal.SIGUSR1)  # faulthandler writes where it is
            time.sleep(1.0)
        number = self.number
        self.close()
        status = self._child.returncode
        kind = "Hang" if hung else f"Crash {signal.Signals(-status).name}" if status < 0 else f"Exit {status}"
        self._log.seek(0)
        return Gone(kind, self._log.read()[-4000:], number)


def _deepest(trace: str) -> str:
    """What a sanitizer sums up, or file and function of the innermost frame that faulthandler wrote."""
    for line in trace.splitlines():
        if line.startswith("SUMMARY: "):  # of a sanitizer
            return re.sub(r"\S*/", "", line.removeprefix("SUMMARY: "))
        if line.strip().startswith("File ") and " in " in line:
            return f"{Path(line.split(chr(34))[1]).name}:{line.rpartition(' in ')[2]}"
    return ""
