"""Pools of one thread each for plans, without a backend behind them."""

import queue
import threading
from collections.abc import Callable
from typing import Any, Self

from tenferro_tensor import ComputeDevice


class ThreadPools:
    """A machine that has pools and no accelerator; ``with`` ends its threads."""

    def __init__(self, *names: str) -> None:
        self.queues: dict[ComputeDevice, queue.SimpleQueue[Any]] = {
            ComputeDevice(n): queue.SimpleQueue() for n in names
        }
        self.threads = [threading.Thread(target=self._work, args=(q,), daemon=True) for q in self.queues.values()]
        for thread in self.threads:
            thread.start()

    @staticmethod
    def _work(jobs: "queue.SimpleQueue[Callable[[], None] | None]") -> None:
        while (job := jobs.get()) is not None:
            job()
            del job  # an idle thread keeps no values alive

    def post(self, pool: ComputeDevice, run: Callable[[], None]) -> None:
        self.queues[pool].put(run)

    def accelerator(self, device: ComputeDevice) -> Any:
        raise AssertionError(f"{device} is no pool")

    def stream(self, queue: Any) -> Any:
        raise AssertionError(f"{queue} is no pool")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for jobs in self.queues.values():
            jobs.put(None)
        for thread in self.threads:
            thread.join(timeout=30)
            assert not thread.is_alive(), "a pool hangs"
