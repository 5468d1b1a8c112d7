"""Operations as they run: values, ops, entries and the state that every call reads, in C where that is installed."""

from tenferro_tensor._interpreted import SCALARS, key_parts

try:
    from tenferro_tensor._accelerated import (
        DIRECT_MAX_BYTES,
        DirectFunction,
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
        broadcasted,
        counted,
        forget_specs,
        kept_specs,
        operator,
        reflected,
        reshaped,
        spec_of_raw,
        state,
        swapped,
        transposed,
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
        operator,
        reflected,
        state,
        unary,
    )
    from tenferro_tensor._interpreted_backward import Steps, backward  # type: ignore[assignment]
    from tenferro_tensor._interpreted_direct import (  # type: ignore[assignment]
        DIRECT_MAX_BYTES,
        DirectFunction,
        forget_specs,
        kept_specs,
        spec_of_raw,
    )
    from tenferro_tensor._interpreted_forms import (
        broadcasted,
        counted,
        reshaped,
        swapped,
        transposed,
    )

__all__ = [
    "DIRECT_MAX_BYTES",
    "SCALARS",
    "DirectFunction",
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
    "broadcasted",
    "counted",
    "forget_specs",
    "kept_specs",
    "key_parts",
    "operator",
    "reflected",
    "reshaped",
    "spec_of_raw",
    "state",
    "swapped",
    "transposed",
    "unary",
]
