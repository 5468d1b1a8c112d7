"""Device selection: one function and the open scopes decide which device runs an op.

Order of decision:

1. the explicit ``device=`` argument of functions that make or move arrays (`explicit`);
2. the operands' own compute device (``x.with_compute_device("cpu:1")``), which results inherit;
3. ``with compute_device(...)``;
4. ``with compute_context(...)``, even if it is the inner one of the two scopes;
5. the memory space, when all operands share one;
6. else a typed error that lists every operand.

Operands are never transferred to make an op run.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from contextvars import ContextVar
from enum import Enum
from typing import Any, NamedTuple, Protocol, TypeVar, runtime_checkable

from tenferro_tensor._counted import Counted, CountedScope
from tenferro_tensor._place import HOST, ComputeDevice
from tenferro_tensor._refusal import refuse, spec_of
from tenferro_tensor._spec import common_place
from tenferro_tensor.calls import state
from tenferro_tensor.origins import EVERYWHERE
from tenferro_tensor_core import ArgumentError

T = TypeVar("T")

__all__ = [
    "Activated", "ComputeContext", "Decision", "Recorder", "Rule", "common_place", "compute_context", "compute_device",
    "decide", "explicit", "recorder", "recording", "scoped_context", "scoped_device", "selecting", "spec_of",
]  # fmt: skip


def __dir__() -> list[str]:
    return __all__.copy()


class Rule(Enum):
    """The rule that chose a device, as messages and `explain_dispatch` state it."""

    EXPLICIT = "an explicit device"
    OWN = "the operands' own compute device"
    DEVICE_SCOPE = "with compute_device(...)"
    CONTEXT_SCOPE = "with compute_context(...)"
    MEMORY = "the operands' memory"
    DEFAULT = "the default device"


class Decision(NamedTuple):
    """A result of `decide`.

    Attributes:
        what: name of the op.
        device: the chosen device.
        rule: the rule that chose it.
        operands: the operands, or their specs.
    """

    what: str
    device: ComputeDevice
    rule: Rule
    operands: tuple[Any, ...]


Recorder = Callable[[Decision], None]


class ComputeContext(Protocol):
    """An execution resource (thread pool, stream and allocator) bound to one device."""

    @property
    def device(self) -> ComputeDevice:
        """The device that the context runs work on."""


@runtime_checkable
class Activated(Protocol):
    """A context that holds more than a device, active while its scope is open."""

    def activate(self) -> AbstractContextManager[Any]:
        """A context manager, entered and left with the scope."""


_device: ContextVar[ComputeDevice | None] = ContextVar("tenferro compute device", default=None)
_context: ContextVar[ComputeContext | None] = ContextVar("tenferro compute context", default=None)
_recorder: ContextVar[Recorder | None] = ContextVar("tenferro dispatch recorder", default=None)

state.open_scopes = int(EVERYWHERE)  # never 0 while the lines of results are recorded
_scopes = Counted(state, "open_scopes")


def compute_device(device: str | ComputeDevice) -> CountedScope[ComputeDevice]:
    """Run ops on a device if their operands do not specify one; new tensors are created there too.

    Operands in memory that the device cannot access are an error; nothing is transferred.

    Args:
        device: device or its name.

    Returns:
        A context manager, which returns the device.

    >>> with compute_device("cpu:0") as d:
    ...     print(d)
    cpu:0
    """
    return _scopes.scope(_device, ComputeDevice(device))


def explicit(device: str | ComputeDevice | None) -> AbstractContextManager[Any]:
    """Run the operations that create a value on its ``device=``, regardless of open scopes.

    Args:
        device: device, its name, or None.

    Returns:
        A context manager.
    """
    return nullcontext() if device is None or not state.open_scopes else compute_device(device)


def compute_context(context: ComputeContext) -> CountedScope[ComputeContext]:
    """Run ops with the resources of a context; an advanced override with lower priority than `compute_device`.

    Args:
        context: the context.

    Returns:
        A context manager, which returns the context.

    Raises:
        ArgumentError: `context` has no compute device.

    >>> from tenferro_cpu import CpuContext
    >>> with compute_context(CpuContext(threads=1)) as context:
    ...     print(tr.ones(2).device)
    cpu:0
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
    """The device that an open scope selects in this context.

    Returns:
        The device, or None.
    """
    return _scoped()[0] if state.open_scopes else None


def _scoped() -> tuple[ComputeDevice | None, Rule]:
    device = _device.get()
    if device is not None:
        return device, Rule.DEVICE_SCOPE
    context = _context.get()
    return (None, Rule.MEMORY) if context is None else (context.device, Rule.CONTEXT_SCOPE)


def decide(what: str, operands: Sequence[Any], record: Recorder | None = None) -> ComputeDevice:
    """The device that runs an op on operands, by rules 2 to 6.

    Args:
        what: name of the op.
        operands: specs or values; Python numbers have no place and are left out.
        record: called with the decision.

    Returns:
        The device.

    Raises:
        AmbiguousPlacementError: the operands are in several memory spaces, name several devices, or a scope selects a
            device that cannot access them.
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
    """The resources that an open scope selects in this context.

    Returns:
        The compute context, or None.
    """
    return _context.get() if state.open_scopes else None


def recording(record: Recorder) -> CountedScope[Recorder]:
    """Call a function with every decision of this context; every op takes the slow path.

    Args:
        record: called with each `Decision`.

    Returns:
        A context manager.
    """
    return _scopes.scope(_recorder, record)


def selecting(var: ContextVar[T], value: T) -> CountedScope[T]:
    """Set a variable that affects how ops run; fast paths, which do not read it, are disabled.

    Args:
        var: the variable.
        value: its value.

    Returns:
        A context manager.
    """
    return _scopes.scope(var, value)


def recorder() -> Recorder | None:
    """The callback of `recording` in this context; call it only while `state.open_scopes` is nonzero.

    Returns:
        The callback, or None.
    """
    return _recorder.get()
