"""Execution selection: which device runs an op, decided by one function and by scopes.

Order of decision: explicit ``device=`` argument; the operands' own compute device; ``with compute_device(...)``;
``with compute_context(...)``; the memory space, when all operands share one; else a typed error that lists
every operand. Nothing is ever transferred to make an op fit.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, Protocol

from tenferro_tensor._place import HOST, ComputeDevice, Place
from tenferro_tensor._spec import Spec
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
        # The count goes down even where `reset` fails, as it does in a generator resumed in another context.
        with _lock:
            open_scopes -= 1
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


def place_of(device: str | ComputeDevice | None) -> Place:
    """The place of new data: of an explicit device, of the scope's device, else main memory."""
    chosen = scoped_device() if device is None else ComputeDevice(device)
    if chosen is None or (chosen.kind == "cpu" and chosen.index == 0):
        return HOST
    return Place(chosen.memory_space, chosen if chosen.kind == "cpu" else None)


def decide(what: str, specs: Iterable[Spec]) -> ComputeDevice:
    """The device that runs an op on operands of the given specs.

    Raises:
        PlacementError: the operands lie in several memory spaces, name several devices, or a scope names a device
            that does not reach them.
    """
    specs = tuple(specs)
    named = {s.place.compute_device for s in specs} - {None}
    spaces = {s.place.memory_space for s in specs}
    if len(named) > 1 or len(spaces) > 1:
        listing = "; ".join(
            f"operand {i}: {s.dtype.name}{list(s.shape)} on {s.place.device}" for i, s in enumerate(specs)
        )
        target = specs[0].place.device
        raise PlacementError(
            f"{what} has operands on several devices ({listing}); nothing is transferred implicitly: "
            f"move the others with .to_device({str(target)!r})",
            devices=tuple(str(s.place.device) for s in specs),
        )
    if named:
        return named.pop()  # type: ignore[return-value]
    scoped = scoped_device()
    if not spaces:
        return scoped or HOST.device
    space = spaces.pop()
    if scoped is None:
        return space.default_device
    if scoped.memory_space is not space:
        raise PlacementError(
            f"{what} was asked to run on {scoped} by the enclosing scope, but its operands lie in {space} memory; "
            f"move them with .to_device({str(scoped)!r}) or leave the scope",
            device=str(scoped),
            memory_space=str(space),
        )
    return scoped
