"""Reports of calls: `explain_dispatch`, which device ran each operation and why; `transfers`, what they moved."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from tenferro_runtime.reports import Dispatch, DispatchStep, Transfers
from tenferro_tensor import Spec
from tenferro_tensor.dispatch import Decision, recording, spec_of
from tenferro_tensor.origins import user_line
from tenferro_tensor.transfers import booking


def explain_dispatch(f: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Dispatch:
    """Call a function and report the device of each operation, the rule that chose it, and the operands.

    The rules are those of `docs/placement.md`. In this call, compiled functions and programs run operation by
    operation.

    Args:
        f: the function.
        args: its arguments.
        kwargs: its keyword arguments.

    Returns:
        A `Dispatch`.

    Raises:
        AmbiguousPlacementError: an operation has no device, as in the call itself.

    >>> with tr.compute_device("cpu:0"):
    ...     report = tr.explain_dispatch(lambda x: -x, tr.asarray([1.0]))
    >>> report.steps[0].device, report.steps[0].rule
    ('cpu:0', 'with compute_device(...)')
    """
    steps: list[DispatchStep] = []

    def note(decision: Decision) -> None:
        operands = tuple([_brief(spec_of(x)) for x in decision.operands])
        rule, device = decision.rule.value, str(decision.device)
        steps.append(DispatchStep(len(steps), decision.what, device, rule, operands, user_line()))

    with recording(note):
        f(*args, **kwargs)
    return Dispatch(tuple(steps))


def _brief(spec: Spec) -> str:
    """``float64[2] host``, with the compute device if it is set: ``float64[2] host/cpu:1``."""
    own = "" if spec.place.compute_device is None else f"/{spec.place.compute_device}"
    return f"{spec.dtype.name}[{', '.join(map(str, spec.shape))}] {spec.place.memory_space}{own}"


@contextmanager
def transfers() -> Iterator[Transfers]:
    """Context manager that returns a log of transfers between memories: bytes, direction and source line of each.

    Transfers of compiled programs are attributed to the traced line, those of gradients to the line of the transfer
    that they reverse. Transfers of threads started inside are not included.

    Returns:
        A context manager for the log, a `Transfers`.

    >>> with tr.transfers() as log:
    ...     _ = tr.asarray([1.0, 2.0]).to_device("cpu:0") + 1
    >>> log.count
    0
    """
    log = Transfers()
    with booking(log.add):
        yield log
