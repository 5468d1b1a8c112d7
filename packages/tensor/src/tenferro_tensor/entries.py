"""Entries: the device, kernel and output specs of an op for operands of given specs, found once and cached."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from tenferro_tensor import catalog
from tenferro_tensor._place import HOST, ComputeDevice
from tenferro_tensor._primitive import LIVE_OPS, PLANNED, Op, primitives
from tenferro_tensor._refusal import spec_of
from tenferro_tensor._registry import REGISTRY
from tenferro_tensor._spec import Spec
from tenferro_tensor.backends import Backend, get_backend
from tenferro_tensor.calls import SCALARS, Entry, state
from tenferro_tensor.dispatch import Decision, Recorder, Rule, decide, recorder, scoped_device
from tenferro_tensor.kernels import kernel_of
from tenferro_tensor.numpy_warnings import at_user_line
from tenferro_tensor.origins import EVERYWHERE, noted
from tenferro_tensor.promotion import Operand, materialised, targets
from tenferro_tensor.tables import TABLES
from tenferro_tensor.transfers import Booked
from tenferro_tensor_core import AmbiguousPlacementError, ArgumentError, Dim, TracingError, home_of

__all__ = ["OpenStep", "clear_plans", "device_of", "entry_of", "evaluate", "open_step", "plan_stats"]


def __dir__() -> list[str]:
    return __all__.copy()


def evaluate(op: Op, operands: tuple[Any, ...]) -> Any:
    """Run an op on concrete operands by the generic path, whatever scopes are open.

    Args:
        op: the op.
        operands: tensors and Python scalars.

    Returns:
        The tensor, or tuple of tensors.
    """
    tensor, parts, raws = state.tensor, [], []
    for a in operands:
        concrete = a.__class__ is tensor
        parts.append(a.spec if concrete else a.__class__)
        raws.append(a._data if concrete else a)
    scoped = scoped_device() if state.open_scopes else None
    key: tuple[Any, ...] = (0, *parts) if scoped is None else (scoped, 0, *parts)
    entry = op.entries.get(key)
    new = entry is None
    if entry is None:
        if op.symbolic:
            return _join(op, operands)
        if not SCALARS.isdisjoint(parts):
            usable = adapted(op, operands)
            if usable is not operands:
                return evaluate(op, usable)
        try:
            entry = op.remember(_made(op, key, tuple(parts)))
        except AmbiguousPlacementError:
            device_of(op, [a for a in operands if a.__class__ not in SCALARS])  # the same error, with source lines
            raise
    try:
        out = at_user_line(entry.run, *raws) if new else entry.run(*raws)
    except OverflowError as cause:
        raise ArgumentError(
            f"{op.primitive.name}: {cause}; convert the array to a wider dtype or the number to an array first",
            primitive=op.primitive.name,
        ) from cause
    if state.open_scopes:
        return _observed(op, operands, entry, out)
    if entry.many:
        return tuple([tensor.wrap(raw, spec) for raw, spec in zip(out, entry.out, strict=True)])
    return tensor.wrap(out, entry.out)


def adapted(op: Op, operands: tuple[Any, ...]) -> tuple[Any, ...]:
    """Convert the Python scalars among concrete operands that the kernel does not accept to tensors."""
    if not op.primitive.elementwise:
        return materialised(operands)
    if all(a.__class__ in SCALARS for a in operands):
        return (state.tensor.adopt(operands[0]), *operands[1:])
    return operands


def _observed(op: Op, operands: tuple[Any, ...], entry: Entry, out: Any) -> Any:
    """The results of an op, after notifying recorders of decisions and source lines."""
    record = recorder()
    if record is not None:
        device_of(op, [a for a in operands if a.__class__ not in SCALARS], record)
    pairs = zip(out, entry.out, strict=True) if entry.many else [(out, entry.out)]
    made = [state.tensor.wrap(raw, spec) for raw, spec in pairs]
    if EVERYWHERE:
        for z in made:
            noted(z)
    return tuple(made) if entry.many else made[0]


def _join(op: Op, args: tuple[Any, ...]) -> Any:
    """Record an op with symbolic sizes in its metadata in the trace that owns these sizes."""
    sizes = list(_open_sizes(op.params.values()))
    home: Any = home_of(*sizes)
    if home is None:
        raise TracingError(
            f"{op!r} of concrete operands has the symbolic sizes {', '.join(sorted(map(str, sizes)))}, which have no "
            "value outside the trace that they belong to; use them while the function is traced",
            primitive=op.primitive.name,
        )
    return home.bind(op, args)


def _open_sizes(values: Iterable[Any]) -> Iterator[Dim]:
    for value in values:
        if isinstance(value, Dim):
            yield value
        elif value.__class__ is tuple:
            yield from _open_sizes(value)


def entry_of(op: Op, operands: tuple[Operand, ...]) -> Entry:
    """The entry of an op for operands on the device of this context.

    Kernels of element-wise ops broadcast; only operands of another dtype are converted first.

    Args:
        op: the op.
        operands: specs, or classes of Python scalars.

    Returns:
        The entry.
    """
    scoped = scoped_device()
    key = (0, *operands) if scoped is None else (scoped, 0, *operands)
    entry = op.entries.get(key)
    return op.remember(_made(op, key, operands)) if entry is None else entry


def _made(op: Op, key: tuple[Any, ...], operands: tuple[Operand, ...]) -> Entry:
    """Select the device, infer the outputs and specialise the kernel."""
    places, given = set(), []
    for o in operands:
        if isinstance(o, Spec):
            places.add(o.place)
            given.append(o)
    specs: Any = targets(op, operands) if op.primitive.elementwise and operands else operands
    if len(places) == 1 and not state.open_scopes and op.primitive is not catalog.transfer:
        device = places.pop().device  # the result of `device_of`, since there is no choice
    else:
        device = device_of(op, given)
    out = op.infer(*specs)
    outs = out if isinstance(out, tuple) else (out,)
    run = kernel_of(get_backend(device.kind), op, specs, outs, device)
    if specs is operands and op.primitive is not catalog.transfer:
        return Entry(key, run, out)
    if op.primitive is catalog.transfer and specs[0].place.memory_space is not outs[0].place.memory_space:
        run = Booked(run, specs[0].place.memory_space, outs[0].place.memory_space)
    casts = [
        (i, _cast(o, t.dtype, device))
        for i, (o, t) in enumerate(zip(operands, specs, strict=True))
        if isinstance(o, Spec) and isinstance(t, Spec) and o.dtype != t.dtype
    ]
    return Entry(key, _with_casts(run, casts) if casts else run, out)


class OpenStep(NamedTuple):
    """An op on operands with symbolic sizes, and the backend that creates its kernels.

    Attributes:
        op: the op.
        operands: specs of the operands, including those of Python scalars.
        outputs: specs of the outputs.
        backend: the backend.
        device: the device.
    """

    op: Op
    operands: tuple[Spec, ...]
    outputs: tuple[Spec, ...]
    backend: Backend
    device: ComputeDevice


def open_step(op: Op, operands: tuple[Operand, ...], outs: tuple[Spec, ...]) -> OpenStep:
    """Select the device of an op whose operands are in program form (broadcast and promoted).

    Args:
        op: the op.
        operands: specs, or classes of Python scalars.
        outs: specs of the outputs.

    Returns:
        The step.
    """
    given = [o for o in operands if isinstance(o, Spec)]
    device = device_of(op, given) if given else outs[0].place.device
    specs: Any = targets(op, operands) if op.primitive.elementwise else operands
    return OpenStep(op, specs, outs, get_backend(device.kind), device)


def device_of(op: Op, operands: Sequence[Any], record: Recorder | None = None) -> ComputeDevice:
    """The device of an op on array operands.

    Scopes have no effect if the metadata name the place, as for creation and transfer. A transfer ignores the compute
    device of its operand, whose pool may be closed.

    Args:
        op: the op.
        operands: specs or values.
        record: called with the decision.

    Returns:
        The device.
    """
    if operands and op.primitive.anywhere and len({spec_of(x).place for x in operands}) > 1:
        # The op runs in the calling thread, which dispatches the steps of its programs to their devices.
        if record is not None:
            record(Decision(op.primitive.name, HOST.device, Rule.DEFAULT, tuple(operands)))
        return HOST.device
    if operands and op.primitive is not catalog.transfer:
        return decide(op.primitive.name, operands, record)
    if operands:
        device: ComputeDevice = spec_of(operands[0]).place.memory_space.default_device
    else:
        out = op.infer()
        device = (out[0] if isinstance(out, tuple) else out).place.device
    if record is not None:
        record(Decision(op.primitive.name, device, Rule.EXPLICIT, tuple(operands)))
    return device


def _cast(x: Spec, goal: np.dtype[Any], device: ComputeDevice) -> Callable[[Any], Any]:
    """The conversion of an operand: NumPy's method in main memory, else the kernel of the device."""
    if device.kind == "cpu":
        return lambda raw: raw.astype(goal)
    op = catalog.convert.op(dtype=goal)
    return kernel_of(get_backend(device.kind), op, (x,), (x.with_(dtype=goal),), device)


def _with_casts(run: Callable[..., Any], casts: list[tuple[int, Callable[[Any], Any]]]) -> Callable[..., Any]:
    def run_converted(*raws: Any) -> Any:
        converted = list(raws)
        for i, cast in casts:
            converted[i] = cast(raws[i])
        return run(*converted)

    return run_converted


def plan_stats() -> list[dict[str, Any]]:
    """Owner, size and bound of each table of forward plans, one for each primitive, and of the tables of array
    functions.

    Returns:
        A list of dictionaries.

    >>> _ = tr.asarray([1.0]) + tr.asarray([2.0])
    >>> [row["owner"] for row in plan_stats() if row["owner"] == "forward plans: add"]
    ['forward plans: add']
    """
    rows = []
    for p in primitives():
        ops = list(p.live_ops())
        size = sum([len(op.entries) for op in ops])
        if size:
            bound = ops[0].bound * (LIVE_OPS if p.metadata else 1)
            rows.append({"owner": f"forward plans: {p.name}", "size": size, "bound": bound, "ops": len(ops)})
    return rows + [{"owner": f"array functions: {t.name}", **t.stats()} for t in TABLES]


def clear_plans() -> None:
    """Clear the tables of `plan_stats`; entries are recreated when needed.

    >>> clear_plans()
    """
    for held in PLANNED.copy():
        PLANNED.discard(held)
        op = held()
        if op is not None:
            op.forget()
    for table in TABLES:
        table.clear()


REGISTRY.changed.append(clear_plans)
