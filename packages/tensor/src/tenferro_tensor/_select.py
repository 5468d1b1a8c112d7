"""Execution selection: which device runs an op, decided by one function and by scopes.

Order of decision:

1. the explicit ``device=`` argument of functions that make arrays (`_backend.place_of`);
2. the operands' own compute device (``x.with_compute_device("cpu:1")``), which results inherit;
3. ``with compute_device(...)``;
4. ``with compute_context(...)``, also where it is the inner one of the two;
5. the memory space, when all operands share one;
6. else a typed error that lists every operand.

Nothing is ever transferred to make an op fit.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from typing import Any, Protocol

from tenferro_tensor._place import HOST, ComputeDevice
from tenferro_tensor._spec import Spec, common_place
from tenferro_tensor_core import PlacementError


class ComputeContext(Protocol):
    """An execution resource (thread pool, stream and allocator) that pins work to one device."""

    @property
    def device(self) -> ComputeDevice:
        """The device that the context runs work on."""


_device: ContextVar[ComputeDevice | None] = ContextVar("tenferro compute device", default=None)
_context: ContextVar[ComputeContext | None] = ContextVar("tenferro compute context", default=None)

open_scopes = 0
"""Number of scopes open in any thread; fast paths read it before anything else."""
_lock = threading.Lock()


@contextmanager
def _scope(var: ContextVar[Any], value: Any) -> Iterator[Any]:
    global open_scopes
    with _lock:
        open_scopes += 1
    token = var.set(value)
    try:
        yield value
    finally:
        with _lock:
            open_scopes -= 1
        # The event loop or the garbage collector may close a generator in another context, where nothing is set.
        with suppress(ValueError):
            var.reset(token)


def compute_device(device: str | ComputeDevice) -> Any:
    """Context manager: run ops on `device` where their operands do not say otherwise.

    New tensors are created there too. Operands that live elsewhere are an error, never transferred.

    >>> with compute_device("cpu:0") as d:
    ...     print(d)
    cpu:0
    """
    return _scope(_device, ComputeDevice(device))


def compute_context(context: ComputeContext) -> Any:
    """Context manager: run ops with the resources of `context`; an advanced override, ranked after `compute_device`."""
    return _scope(_context, context)


def scoped_device() -> ComputeDevice | None:
    """The device that an open scope names in this context, if any."""
    if not open_scopes:
        return None
    device = _device.get()
    if device is None:
        context = _context.get()
        device = None if context is None else context.device
    return device


def scoped_context() -> ComputeContext | None:
    """The resources that an open scope names here, if any."""
    return _context.get() if open_scopes else None


def decide(what: str, specs: Iterable[Spec]) -> ComputeDevice:
    """The device that runs an op on operands of the given specs: rules 2 to 6.

    Raises:
        PlacementError: the operands lie in several memory spaces, name several devices, or a scope names a device
            that does not reach them.
    """
    place = common_place(what, tuple(specs))
    scoped = scoped_device()
    if place is None:
        return scoped or HOST.device
    if place.compute_device is not None or scoped is None:
        return place.device
    space = place.memory_space
    if scoped.memory_space is not space:
        raise PlacementError(
            f"{what} was asked to run on {scoped} by the enclosing scope, but its operands lie in {space} memory; "
            f"move them with .to_device({str(scoped)!r}) or leave the scope",
            device=str(scoped),
            memory_space=str(space),
        )
    return scoped
