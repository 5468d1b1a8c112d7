"""The XLA devices of this process as an executor of programs: each takes the next task when it has finished one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from queue import SimpleQueue
from threading import Lock
from typing import Any

from tenferro_runtime.extension import ArgumentError, Program, Tensor
from tenferro_xla._executor import XlaExecutor
from tenferro_xla._lower import StableHloModule, lower_to_stablehlo


class XlaWorkers(Executor):
    """Runs programs on the XLA devices of this process, one on each at a time.

    `tenferro_einsum.run_on` spreads the slices or branches of a contraction over them: a task is one program, lowered
    once and compiled for each device, which holds the operands' parts, one slice and the sums.

    Args:
        platform: PJRT platform, ``"cpu"``, ``"cuda"`` or ``"rocm"``.
        indices: numbers of the devices on it, ``None`` for all.

    Raises:
        ArgumentError: there are no indices, or one is given twice.
        BackendUnavailableError: JAX is missing, or it has no such device.

    >>> import numpy as np
    >>> from tenferro_einsum import einsum, run_on
    >>> x = np.ones((100, 100))
    >>> with XlaWorkers() as devices, run_on(devices):
    ...     float(einsum("ij,jk,kl,li->", x, x, x, x, memory_budget=100_000))
    100000000.0
    """

    def __init__(self, platform: str = "cpu", indices: Sequence[int] | None = None) -> None:
        numbers = range(_count(platform)) if indices is None else tuple(indices)
        if not numbers or len({*numbers}) < len(numbers):
            raise ArgumentError(
                f"XlaWorkers takes the numbers of one or more devices, each once, got {indices!r}; leave indices out "
                "to take all"
            )
        self.devices = tuple([f"{platform}:{i}" for i in numbers])
        self._platform = platform
        self._free: SimpleQueue[XlaExecutor] = SimpleQueue()
        for i in numbers:
            self._free.put(XlaExecutor(platform, i))
        self._threads = ThreadPoolExecutor(len(numbers), thread_name_prefix="tenferro-xla")
        self._lowering = Lock()

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        """Schedule a function on a thread of this pool; what it does itself decides where that runs."""
        return self._threads.submit(fn, *args, **kwargs)

    def submit_program(self, program: Program, arrays: Sequence[Any]) -> Future[tuple[Tensor, ...]]:
        """Schedule a program of fixed sizes on the next device that is free.

        Args:
            program: what to run; kept lowered as long as it lives.
            arrays: tensors or host arrays with the specs of its inputs.

        Returns:
            A future of its results, in main memory.
        """
        return self._threads.submit(self._run, program, arrays)

    def _run(self, program: Program, arrays: Sequence[Any]) -> tuple[Tensor, ...]:
        executor = self._free.get()
        try:
            return executor.compile(self._lowered(program))(*arrays)
        finally:
            self._free.put(executor)

    def _lowered(self, program: Program) -> StableHloModule:
        key = ("tenferro_xla", self._platform)
        with self._lowering:
            found: StableHloModule | None = program.memo.get(key)
            if found is None:
                found = program.memo[key] = lower_to_stablehlo(program, self._platform)
            return found

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """Take no more tasks.

        Args:
            wait: whether to wait for those that run.
            cancel_futures: whether to cancel those that have not begun.
        """
        self._threads.shutdown(wait, cancel_futures=cancel_futures)


def _count(platform: str) -> int:
    """The number of devices of a platform in this process."""
    XlaExecutor(platform)  # says what is missing
    from jax import local_devices

    return len(local_devices(backend=platform))
