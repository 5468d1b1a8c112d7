"""How an operation is run: the objects that every call reads, and the functions that read them.

This is the whole mechanism in Python. `_accelerated` is the same in C, object by object and function by function;
`calls` chooses between the two when it is imported.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import count
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from tenferro_tensor._spec import Spec

ENTRIES_MAX: Final = 512
"""Entries of one op; the table starts anew when it is full."""


class TensorBase:
    """The fields of a concrete tensor.

    Attributes:
        _data: the raw array of the backend.
        spec: shape, dtype and place.
    """

    __slots__ = ("__weakref__", "_data", "spec")
    _data: Any
    spec: Spec


class RecordedBase:
    """The fields of a value that reverse mode records.

    Attributes:
        value: the value inside, of a lower level.
        spec: its spec.
        level: level of the differentiation that it belongs to.
        node: the record of the operation that made it.
    """

    __slots__ = ("__weakref__", "level", "node", "spec", "value")
    value: Any
    spec: Spec
    level: int
    node: Any


_next_seq = count().__next__


class Node:
    """What reverse mode remembers of one operation.

    Attributes:
        seq: place in the order of recording, drawn when the node is made; every parent has a smaller one.
        vjp: ``vjp(g, saved)`` carries a cotangent to the parents: one cotangent, or ``None``, for each; ``None`` where
            differentiation starts.
        parents: nodes of the operands that are differentiated.
        saved: what `vjp` needs of operands and outputs: a tuple, or ``None``.
    """

    __slots__ = ("parents", "saved", "seq", "vjp")

    def __init__(self, vjp: Callable[[Any, Any], Any] | None, parents: tuple[Any, ...], saved: Any) -> None:
        self.seq = _next_seq()
        self.vjp, self.parents, self.saved = vjp, parents, saved


class Entry:
    """How to run one op on operands of given specs; never changed, only replaced by another entry of its key.

    Attributes:
        key: see `OpBase.entries`.
        run: kernel on raw arrays (and Python scalars), specialised for the specs.
        out: spec of the result, or tuple of specs.
        many: whether ``out`` is a tuple and ``run`` returns one.
        save: positions, among operands and then outputs, of what a node saves.
        vjp: what nodes carry cotangents with; ``None`` where nothing is recorded.
    """

    __slots__ = ("key", "many", "out", "run", "save", "vjp")

    def __init__(self, key: tuple[Any, ...], run: Any, out: Any, save: tuple[int, ...] = (), vjp: Any = None) -> None:
        self.key, self.run, self.out, self.save, self.vjp = key, run, out, save, vjp
        self.many = isinstance(out, tuple)


class OpBase:
    """An op, which finds the entry of a call.

    Attributes:
        entries: by the tuple of the differentiated operands as bits of a number (0 where nothing is differentiated)
            and what each operand is: its spec, or the class of a Python scalar. Where an open scope selects a device,
            that comes first.
    """

    __slots__ = ("entries",)
    entries: dict[Any, Entry]

    def __new__(cls, *args: Any, **kwargs: Any) -> Any:
        self = object.__new__(cls)
        self.entries = {}
        return self

    def remember(self, entry: Entry, /) -> Entry:
        """Keep an entry, in the place of another of its key."""
        if len(self.entries) >= ENTRIES_MAX:
            self.entries.clear()
        self.entries[entry.key] = entry
        return entry

    def forget(self) -> None:
        """Drop all entries; they are made again when they are needed."""
        self.entries.clear()


class State:
    """What is read on every call.

    Attributes:
        open_scopes: scopes open in any thread that select a device, or that are told of decisions.
        recording_scopes: scopes open in any thread in which recording has to ask more.
        tensor: the class of concrete tensors, which derives from `TensorBase` and adds no fields.
        recorded: the class of recorded values, which derives from `RecordedBase` and adds no fields.
        record: ``record(level, op, operands)`` runs and records an op; some operands are of that level and of class
            `recorded`, and none of a higher level.
    """

    __slots__ = ("open_scopes", "record", "recorded", "recording_scopes", "tensor")

    def __init__(self) -> None:
        self.open_scopes = 0
        self.recording_scopes = 0
        self.tensor: Any = None
        self.recorded: Any = None
        self.record: Any = None


state: Final = State()
"""That of this process; read and set as attributes."""
