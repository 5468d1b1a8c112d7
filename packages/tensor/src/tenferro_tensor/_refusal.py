"""The error for operands that no single device can compute on: the place and origin of each, and remedies."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NoReturn

from tenferro_tensor._place import ComputeDevice, Place
from tenferro_tensor_core import AmbiguousPlacementError


def refuse(
    what: str, why: str, operands: Sequence[Any], target: ComputeDevice | None = None, way_out: str = ""
) -> NoReturn:
    """Raise an error for operands that no device can compute on together.

    Args:
        what: name of the operation.
        why: what is wrong with the places of its operands, as the end of a sentence.
        operands: values, or their specs.
        target: the device to move all operands to; by default the one that needs the least data moved.
        way_out: a further remedy, as the end of a sentence.

    Raises:
        AmbiguousPlacementError: always.
    """
    specs = [spec_of(x) for x in operands]
    goal = target or _nearest(specs)
    moves = [
        f"operand {i} with .to_device({str(goal)!r})"
        for i, s in enumerate(specs)
        if s.place.memory_space is not goal.memory_space or s.place.compute_device not in (None, goal)
    ]
    listing = "\n".join(f"  operand {i}: {line}" for i, line in enumerate(_lines(operands, specs)))
    raise AmbiguousPlacementError(
        f"{what} {why}:\n{listing}\nnothing is transferred implicitly: move {', '.join(moves)}{way_out}",
        primitive=what,
        devices=tuple(str(s.place.device) for s in specs),
        memory_spaces=tuple(str(s.place.memory_space) for s in specs),
        target=str(goal),
    )


def spec_of(operand: Any) -> Any:
    """The spec of a value; a spec is returned itself.

    Args:
        operand: value or spec.

    Returns:
        The spec.
    """
    return getattr(operand, "spec", operand)


def shown(spec: Any) -> str:
    """Dtype, shape and place: ``float64[2, 3] in host memory, computed on cpu:1``."""
    return f"{spec.dtype.name}[{', '.join(map(str, spec.shape))}] in {_home(spec.place)}"


def _home(place: Place) -> str:
    own = place.compute_device
    return f"{place.memory_space} memory, {'no compute device of its own' if own is None else f'computed on {own}'}"


def _lines(operands: Sequence[Any], specs: Sequence[Any]) -> Iterator[str]:
    for x, spec in zip(operands, specs, strict=True):
        yield shown(spec) if x is spec else f"{shown(spec)}, {x._origin()}"


def _nearest(specs: Sequence[Any]) -> ComputeDevice:
    """The device of an operand to which the fewest bytes must move; the first of several."""

    def moved(device: ComputeDevice) -> int:
        away = [s for s in specs if s.place.memory_space is not device.memory_space and not s.symbolic]
        return sum([s.size * s.dtype.itemsize for s in away])

    devices: list[ComputeDevice] = [s.place.compute_device for s in specs if s.place.compute_device is not None]
    devices += [s.place.device for s in specs]
    return min(devices, key=moved)
