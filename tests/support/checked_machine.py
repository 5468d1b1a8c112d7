"""A machine for plans: pools of one thread each and the simulated accelerator, every hand-over seen by its checker."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any
from unittest import mock

from simulated.clocks import Checker
from simulated.runtime import SimRuntime
from tenferro_runtime.placement import TimelineSignal, _executor
from tenferro_runtime.placement._executor import Accelerator
from tenferro_tensor import ComputeDevice, current_stream
from thread_pools import ThreadPools


class CheckedMachine(ThreadPools):
    """Pools and simulated devices; what a thread learns from another one, its clock learns too."""

    def __init__(self, runtime: SimRuntime, *pools: str) -> None:
        super().__init__(*pools)
        self.runtime, self.checker = runtime, runtime.checker
        self.beside: dict[Any, Any] = {}

    def post(self, pool: ComputeDevice, run: Callable[[], None]) -> None:
        seen = self.checker.publish()

        def job() -> None:
            self.checker.observe(seen)
            run()

        super().post(pool, job)

    def accelerator(self, device: ComputeDevice) -> Any:
        return Accelerator(self.runtime, self.runtime.device(device.index))

    def stream(self, queue: Any) -> Any:
        device = self.runtime.device(queue.device.index)
        if queue.role == "compute 2":
            return self.beside.setdefault(device, device.stream())
        return device.copy_stream if queue.role == "copy" else current_stream(device)

    def joined(self) -> None:
        """The caller has waited for all pools."""
        for thread in self.threads:
            self.checker.observe(self.checker._host.get(("host", thread.ident), {}))


@contextmanager
def checked_timelines(checker: Checker) -> Iterator[None]:
    """Timelines of runs carry clocks: who reads a number knows what the thread had seen that set it."""

    class Checked(TimelineSignal):
        __slots__ = ("_number", "_seen")

        @property
        def value(self) -> int:
            number, seen = self._number, self._seen
            checker.observe(seen)
            return number

        @value.setter
        def value(self, number: int) -> None:
            self._seen = checker.publish()  # first: who sees the number sees the clock
            self._number = number

    with mock.patch.object(_executor, "TimelineSignal", Checked):
        yield
