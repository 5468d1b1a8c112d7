"""Execution selection: which device runs an op, decided by one function and by scopes.

Order of decision:

1. the explicit ``device=`` argument of functions that make or move arrays (`explicit`);
2. the operands' own compute device (``x.with_compute_device("cpu:1")``), which results inherit;
3. ``with compute_device(...)``;
4. ``with compute_context(...)``, also where it is the inner one of the two;
5. the memory space, when all operands share one;
6. else a typed error that lists every operand.

Nothing is ever transferred to make an op fit.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from contextvars import ContextVar
from enum import Enum
from typing import Any, NamedTuple, Protocol, runtime_checkable

from tenferro_tensor._counted import Counted
from tenferro_tensor._place import HOST, ComputeDevice
from tenferro_tensor._refusal import refuse, spec_of
from tenferro_tensor._spec import common_place
from tenferro_tensor.calls import state
from tenferro_tensor.origins import EVERYWHERE
from tenferro_tensor_core import ArgumentError

__all__ = [
    "Activated", "ComputeContext", "Decision", "Recorder", "Rule", "common_place", "compute_context", "compute_device",
    "decide", "explicit", "recorder", "recording", "scoped_context", "scoped_device", "selecting", "spec_of",
]  # fmt: skip


class Rule(Enum):
    """Why a device was chosen, in the words of messages and of `explain_dispatch`."""

    EXPLICIT = "an explicit device"
    OWN = "the operands' own compute device"
    DEVICE_SCOPE = "with compute_device(...)"
    CONTEXT_SCOPE = "with compute_context(...)"
    MEMORY = "the operands' memory"
    DEFAULT = "the default device"


class Decision(NamedTuple):
    """The result of `decide`.

    Attributes:
        what: name of the op.
        device: the device that runs it.
        rule: why.
        operands: the operands, or their specs.
    """

    what: str
    device: ComputeDevice
    rule: Rule
    operands: tuple[Any, ...]


Recorder = Callable[[Decision], None]


class ComputeContext(Protocol):
    """An execution resource (thread pool, stream and allocator) that pins work to one device."""

    @property
    def device(self) -> ComputeDevice:
        """The device that the context runs work on."""


@runtime_checkable
class Activated(Protocol):
    """A context that holds more than the name of a device, in force while its scope is open."""

    def activate(self) -> AbstractContextManager[Any]:
        """A context manager, entered and left with the scope."""


_device: ContextVar[ComputeDevice | None] = ContextVar("tenferro compute device", default=None)
_context: ContextVar[ComputeContext | None] = ContextVar("tenferro compute context", default=None)
_recorder: ContextVar[Recorder | None] = ContextVar("tenferro dispatch recorder", default=None)

state.open_scopes = int(EVERYWHERE)  # never 0 where lines are kept
_scopes = Counted(state, "open_scopes")


def compute_device(device: str | ComputeDevice) -> Any:
    """Context manager: run ops on `device` where their operands do not say otherwise.

    New tensors are created there too. Operands that live elsewhere are an error, never transferred.

    >>> with compute_device("cpu:0") as d:
    ...     print(d)
    cpu:0
    """
    return _scopes.scope(_device, ComputeDevice(device))


def explicit(device: str | ComputeDevice | None) -> AbstractContextManager[Any]:
    """Context manager: run the steps that make a value where its ``device=`` says, whatever scope is open."""
    return nullcontext() if device is None or not state.open_scopes else compute_device(device)


def compute_context(context: ComputeContext) -> Any:
    """Context manager: run ops with the resources of `context`; an advanced override, ranked after `compute_device`.

    Raises:
        ArgumentError: `context` names no compute device, as every context does.
    """
    if not isinstance(getattr(context, "device", None), ComputeDevice):
        raise ArgumentError(
            f"compute_context was given {context!r}, which is no context: it has no compute device; pass a CpuContext "
            "or a StreamContext, or use compute_device() for the name of a device",
            context=repr(context),
        )
    return _context_scope(context)


@contextmanager
def _context_scope(context: ComputeContext) -> Iterator[ComputeContext]:
    with ExitStack() as stack:
        if isinstance(context, Activated):
            stack.enter_context(context.activate())
        yield stack.enter_context(_scopes.scope(_context, context))


def scoped_device() -> ComputeDevice | None:
    """The device that an open scope names in this context, if any."""
    return _scoped()[0] if state.open_scopes else None


def _scoped() -> tuple[ComputeDevice | None, Rule]:
    device = _device.get()
    if device is not None:
        return device, Rule.DEVICE_SCOPE
    context = _context.get()
    return (None, Rule.MEMORY) if context is None else (context.device, Rule.CONTEXT_SCOPE)


def decide(what: str, operands: Sequence[Any], record: Recorder | None = None) -> ComputeDevice:
    """The device that runs an op on operands, which are specs or values: rules 2 to 6.

    Args:
        what: name of the op.
        operands: the operands; Python numbers have no place and are left out.
        record: called with the decision.

    Raises:
        AmbiguousPlacementError: the operands lie in several memory spaces, name several devices, or a scope names a
            device that does not compute on them.
    """
    place = common_place(what, operands)
    scoped, rule = _scoped() if state.open_scopes else (None, Rule.MEMORY)
    if place is None:
        device, rule = (HOST.device, Rule.DEFAULT) if scoped is None else (scoped, rule)
    elif place.compute_device is not None:
        device, rule = place.compute_device, Rule.OWN
    elif scoped is None:
        device = place.device
    elif scoped.memory_space is place.memory_space:
        device = scoped
    else:
        why = f"was asked to run on {scoped} by `{rule.value}`, which computes on other memory"
        refuse(what, why, operands, scoped, ", or leave the scope")
    if record is not None:
        record(Decision(what, device, rule, tuple(operands)))
    return device


def scoped_context() -> ComputeContext | None:
    """The resources that an open scope names here, if any."""
    return _context.get() if state.open_scopes else None


def recording(record: Recorder) -> Any:
    """Context manager: call `record` with every decision of this context; every op takes the slow path."""
    return _scopes.scope(_recorder, record)


def selecting(var: ContextVar[Any], value: Any) -> Any:
    """Context manager: a variable that selects how things run has a value; fast paths, which do not ask, are left."""
    return _scopes.scope(var, value)


def recorder() -> Recorder | None:
    """The callback of `recording` in this context, if any; ask only while `state.open_scopes`."""
    return _recorder.get()
