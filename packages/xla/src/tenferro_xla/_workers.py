"""Devices as an executor of programs: each takes the next task when it has finished its last one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import Executor, Future
from dataclasses import dataclass
from queue import SimpleQueue
from threading import Lock, Thread
from typing import Any, Final, Protocol, TypeVar

from tenferro_runtime.extension import ArgumentError, Program
from tenferro_runtime.ir import kept
from tenferro_xla._executor import XlaExecutor
from tenferro_xla._jax_modules import library
from tenferro_xla._lower import StableHloModule, lower_to_stablehlo

R = TypeVar("R")

LOSSES_PER_TASK: Final = 2
"""Number of devices that may be lost while running a task; after one more, the task fails."""


class LostDeviceError(ConnectionError):
    """A device that runs tasks is lost."""


class Worker(Protocol):
    """Runs one task after the other; `call` and `run` raise `LostDeviceError` when the device is lost."""

    def call(self, fn: Callable[..., Any], args: Any, kwargs: Any) -> Any:
        """Call a function."""

    def run(self, program: Program, arrays: Sequence[Any]) -> Sequence[Any]:
        """Run a program of fixed sizes and return its results in main memory."""

    def close(self) -> None:
        """Release the device; called after the last task."""


@dataclass
class _Assignment:
    """A task, the future of its result, and the number of devices lost while running it."""

    begin: Callable[[Worker], Any]
    future: Future[Any]
    losses: int = 0


class DeviceWorkers(Executor):
    """Distributes tasks to workers, one at a time to each; the task of a lost worker goes to another one.

    Args:
        workers: one worker for each device.

    Attributes:
        lost: a message for each lost worker.

    See also:
        `XlaWorkers` for the devices of this process, and `tenferro_xla.distributed.workers` for those of all processes.
    """

    def __init__(self, workers: Sequence[Worker]) -> None:
        self.lost: list[str] = []
        self._queue: SimpleQueue[_Assignment | None] = SimpleQueue()
        self._ended, self._lock, self._left = False, Lock(), len(workers)
        self._threads = [Thread(target=self._work, args=(worker,), daemon=True) for worker in workers]
        for thread in self._threads:
            thread.start()

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        """Schedule a function call; the function itself selects the device that it computes on.

        Args:
            fn: the function.
            args: its positional arguments.
            kwargs: its keyword arguments.

        Returns:
            A future of its result.

        Raises:
            RuntimeError: the executor has been shut down, or all workers are lost.
        """
        return self._put(lambda worker: worker.call(fn, args, kwargs))

    def submit_program(self, program: Program, arrays: Sequence[Any]) -> Future[Sequence[Any]]:
        """Schedule a program of fixed sizes on the next free device.

        Args:
            program: the program; it is lowered once and compiled for each device.
            arrays: tensors or host arrays with the specs of its inputs.

        Returns:
            A future of its results, tensors or host arrays with the specs of its outputs.

        Raises:
            RuntimeError: the executor has been shut down, or all workers are lost.
        """
        return self._put(lambda worker: worker.run(program, arrays))

    def _put(self, begin: Callable[[Worker], Any]) -> Future[Any]:
        with self._lock:
            if self._ended:
                raise RuntimeError("the workers have been shut down")
            if not self._left:
                raise RuntimeError(f"all workers are lost: {'; '.join(self.lost)}")
            assignment = _Assignment(begin, Future())
            self._queue.put(assignment)
            return assignment.future

    def _work(self, worker: Worker) -> None:
        while (assignment := self._queue.get()) is not None:
            if not assignment.losses and not assignment.future.set_running_or_notify_cancel():
                continue
            try:
                found = assignment.begin(worker)
            except LostDeviceError as cause:
                self._lose(assignment, cause)
                return
            except BaseException as error:
                assignment.future.set_exception(error)
            else:
                assignment.future.set_result(found)
            del assignment
        self._queue.put(None)  # for the next thread
        worker.close()

    def _lose(self, assignment: _Assignment, cause: LostDeviceError) -> None:
        """Reassign the task of a lost worker; without any worker left, fail all tasks."""
        with self._lock:
            self.lost.append(str(cause))
            self._left -= 1
            assignment.losses += 1
            if self._left and not self._ended and assignment.losses <= LOSSES_PER_TASK:
                self._queue.put(assignment)
            else:
                assignment.future.set_exception(cause)
            while not self._left and not self._queue.empty():
                other = self._queue.get()
                if other is not None and (other.losses or other.future.set_running_or_notify_cancel()):
                    other.future.set_exception(cause)

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """Stop accepting tasks.

        Args:
            wait: whether to wait for the scheduled tasks.
            cancel_futures: whether to cancel the tasks that have not started.
        """
        with self._lock:
            if not self._ended:
                self._ended = True
                while cancel_futures and not self._queue.empty():
                    assignment = self._queue.get()
                    if assignment is not None:
                        assignment.future.cancel()
                        assignment.future.set_running_or_notify_cancel()
                self._queue.put(None)
        if wait:
            for thread in self._threads:
                thread.join()


class LocalDevice:
    """A device of this process as a worker for `DeviceWorkers`.

    Args:
        platform: PJRT platform, ``"cpu"``, ``"cuda"`` or ``"rocm"``.
        index: index of the device on the platform.

    Raises:
        BackendUnavailableError: JAX is missing, or has no such device.
    """

    platform: str

    def __init__(self, platform: str, index: int) -> None:
        self.platform, self._executor = platform, XlaExecutor(platform, index)

    def call(self, fn: Callable[..., R], args: Any, kwargs: Any) -> R:
        """Call a function.

        Args:
            fn: the function.
            args: sequence of its positional arguments.
            kwargs: mapping of its keyword arguments.

        Returns:
            Its result.
        """
        return fn(*args, **kwargs)

    def run(self, program: Program, arrays: Sequence[Any]) -> Sequence[Any]:
        """Run a program.

        Args:
            program: a program of fixed sizes.
            arrays: tensors or host arrays with the specs of its inputs.

        Returns:
            Tensors with the specs of its outputs.
        """
        return self._executor.compile(_lowered(program, self.platform))(*arrays)

    def close(self) -> None:
        """Do nothing: a local device holds no connection."""


class XlaWorkers(DeviceWorkers):
    """Runs programs on the XLA devices of this process, one at a time on each.

    `tenferro_einsum.run_on` distributes the slices or branches of a contraction over them. A task is one program,
    lowered once and compiled for each device; the device holds its parts of the operands, one slice and the sums.

    Args:
        platform: PJRT platform, ``"cpu"``, ``"cuda"`` or ``"rocm"``.
        indices: indices of the devices on the platform; ``None`` for all of them.

    Attributes:
        devices: names of the devices, ``"<platform>:<i>"``.

    Raises:
        ArgumentError: `indices` is empty or has duplicates.
        BackendUnavailableError: JAX is missing, or has no such device.

    >>> import numpy as np
    >>> from tenferro_einsum import einsum, run_on
    >>> x = np.ones((100, 100))
    >>> with XlaWorkers(indices=[0]) as devices, run_on(devices):
    ...     float(einsum("ij,jk,kl,li->", x, x, x, x, memory_budget=100_000))
    100000000.0
    """

    devices: tuple[str, ...]

    def __init__(self, platform: str = "cpu", indices: Sequence[int] | None = None) -> None:
        numbers = range(count(platform)) if indices is None else tuple(indices)
        if not numbers or len({*numbers}) < len(numbers):
            raise ArgumentError(
                f"XlaWorkers takes the indices of one or more devices without duplicates, got {indices!r}; omit "
                "indices for all devices"
            )
        self.devices = tuple([f"{platform}:{i}" for i in numbers])
        super().__init__([LocalDevice(platform, i) for i in numbers])


def count(platform: str) -> int:
    """Return the number of devices of a platform in this process."""
    XlaExecutor(platform)  # raises if JAX or the platform is missing
    return len(library().local_devices(backend=platform))


@kept
def _lowered(program: Program, platform: str) -> StableHloModule:
    return lower_to_stablehlo(program, platform)
