"""Operations as they run: values, ops, entries and the state that every call reads, in C where that is installed."""

try:
    from tenferro_tensor._accelerated import Entry, Node, OpBase, RecordedBase, TensorBase, state
except ImportError:
    from tenferro_tensor._interpreted import (  # type: ignore[assignment]
        Entry,
        Node,
        OpBase,
        RecordedBase,
        TensorBase,
        state,
    )

__all__ = ["Entry", "Node", "OpBase", "RecordedBase", "TensorBase", "state"]
