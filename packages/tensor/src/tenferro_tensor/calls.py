"""Operations as they run: values, ops, entries and the state that every call reads, in C where that is installed."""

from tenferro_tensor._interpreted import SCALARS, key_parts

try:
    from tenferro_tensor._accelerated import (
        DualBase,
        Entry,
        Node,
        OpBase,
        ProgramEntry,
        ProgramsBase,
        RecordedBase,
        Steps,
        TensorBase,
        backward,
        item,
        operator,
        reflected,
        state,
        unary,
    )
except ModuleNotFoundError:
    from tenferro_tensor._interpreted import (  # type: ignore[assignment]
        DualBase,
        Entry,
        Node,
        OpBase,
        ProgramEntry,
        ProgramsBase,
        RecordedBase,
        TensorBase,
        item,
        operator,
        reflected,
        state,
        unary,
    )
    from tenferro_tensor._interpreted_backward import Steps, backward  # type: ignore[assignment]

__all__ = [
    "SCALARS",
    "DualBase",
    "Entry",
    "Node",
    "OpBase",
    "ProgramEntry",
    "ProgramsBase",
    "RecordedBase",
    "Steps",
    "TensorBase",
    "backward",
    "item",
    "key_parts",
    "operator",
    "reflected",
    "state",
    "unary",
]
