"""The call path in Python: the objects that every call reads, and the functions that read them.

`_accelerated` is the same in C, object by object and function by function; `calls` chooses between the two at import.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from itertools import count
from operator import itemgetter
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from tenferro_tensor._spec import Spec

SCALARS: Final = frozenset({bool, int, float, complex})
"""Python scalars: weakly typed operands, which adopt the dtype of the array operands."""

ENTRIES_MAX: Final = 512
"""Largest number of entries of an op; other tables have their own bounds."""


_new: Any = object.__new__


class ValueBase:
    """The fields of a value of any kind; each kind has its own names for them.

    All kinds have one layout, so that an object can change its kind when its elements are assigned to.

    Attributes:
        spec: shape, dtype and place.
    """

    __slots__ = ("__weakref__", "_inside", "_level", "_link_", "_ring", "_view_", "spec")
    spec: Spec

    @property
    def _link(self) -> Any:
        """The second field, such as a node or a tangent; ``None`` if the kind has none."""
        return getattr(self, "_link_", None)

    @property
    def _view(self) -> Any:
        """The base and the steps to this view of it; ``None`` for others."""
        return getattr(self, "_view_", None)

    @_view.setter
    def _view(self, view: Any) -> None:
        self._view_ = view

    def __setitem__(self, key: Any, values: Any) -> None:
        self._assign(key, values)  # type: ignore[attr-defined]

    def _alias(self) -> Any:
        """Another object for the same value: assigning to one does not affect the other."""
        z = _new(self.__class__)
        for name in _FIELDS:
            with suppress(AttributeError):
                setattr(z, name, getattr(self, name))
        return z

    def _stand_for(self, other: ValueBase, /) -> None:
        """Make this object represent another value."""
        if self.__class__ is not other.__class__:
            self.__class__ = other.__class__
        for name in _FIELDS:
            try:
                setattr(self, name, getattr(other, name))
            except AttributeError:
                with suppress(AttributeError):
                    delattr(self, name)


_FIELDS: Final = ("_inside", "spec", "_level", "_link_")

# The slots of `ValueBase`, to which the kinds of values give their own names.
_inside: Any = ValueBase.__dict__["_inside"]
_level: Any = ValueBase.__dict__["_level"]
_link: Any = ValueBase.__dict__["_link_"]


class TensorBase(ValueBase):
    """The fields of a concrete tensor: the raw array of the backend."""

    __slots__ = ()
    _data: Any = _inside


class RecordedBase(ValueBase):
    """The fields of a value recorded by reverse mode: the inner value, and the node of its operation."""

    __slots__ = ()
    value: Any = _inside
    level: int = _level
    node: Any = _link


class DualBase(ValueBase):
    """The fields of a forward-mode value with a tangent."""

    __slots__ = ()
    value: Any = _inside
    level: int = _level
    tangent: Any = _link


class LanesBase(ValueBase):
    """The fields of the lanes of a batch."""

    __slots__ = ()
    value: Any = _inside
    level: int = _level


class SeriesBase(ValueBase):
    """The fields of a power series: the inner value and the coefficients."""

    __slots__ = ()
    value: Any = _inside
    level: int = _level
    expansion: Any = _link


class TracedBase(ValueBase):
    """The fields of a program variable: the trace that records the program, and the number of the variable."""

    __slots__ = ()
    home: Any = _inside
    level: int = _level
    id: int = _link


_next_seq = count().__next__


class Node:
    """The record of one operation in reverse mode.

    Attributes:
        seq: position in the order of recording, assigned on creation; every parent has a smaller one.
        vjp: ``vjp(g, saved)`` maps a cotangent to those of the parents: one cotangent, or ``None``, for each; ``None``
            at a leaf.
        parents: nodes of the differentiated operands.
        saved: residuals, operands and outputs that `vjp` needs: a tuple, or ``None``.
    """

    __slots__ = ("parents", "saved", "seq", "vjp")

    def __init__(self, vjp: Callable[[Any, Any], Any] | None, parents: tuple[Any, ...], saved: Any) -> None:
        self.seq = _next_seq()
        self.vjp, self.parents, self.saved = vjp, parents, saved


class Entry:
    """How to run one op on operands of given specs; immutable, and replaced by another entry of its key.

    Attributes:
        key: see `OpBase.entries`.
        run: kernel on raw arrays and Python scalars, specialised for the specs.
        out: spec of the result, or tuple of specs.
        many: whether ``out`` is a tuple and ``run`` returns one.
        save: indices, among operands and then outputs, of the residuals of a node.
        vjp: `Node.vjp` of the recorded nodes; ``None`` if nothing is recorded.
        kept: selects the residuals from operands and outputs.
    """

    __slots__ = ("kept", "key", "many", "out", "run", "save", "vjp")

    def __init__(self, key: tuple[Any, ...], run: Any, out: Any, save: tuple[int, ...] = (), vjp: Any = None) -> None:
        self.key, self.run, self.out, self.save, self.vjp = key, run, out, save, vjp
        self.many = isinstance(out, tuple)
        self.kept: Callable[[tuple[Any, ...]], tuple[Any, ...]] = picker(save)


def picker(positions: tuple[int, ...]) -> Callable[[Any], Any]:
    """A function that selects the items at some indices of a tuple or list."""
    if len(positions) > 1:
        return itemgetter(*positions)
    start = positions[0] if positions else 0
    return itemgetter(slice(start, start + len(positions)))


class ProgramEntry(Entry):
    """How to run a program on tensors of given specs.

    Attributes:
        run: ``run(values, *raws)``.
        out: spec of the result if it is one tensor, else ``None``.
        values: values of the symbolic sizes that the program needs.
        finish: ``finish(raw)`` creates the result from the raw outputs.
        fresh: ``fresh()`` tells whether the entry is up to date; ``None`` if it always is.
        failed: ``failed(error)`` is notified of an error of the program, and returns whether the generic path can
            handle it.
        step: kernel of the only equation of the program, a fast path to the same result, or ``None``.
        order: for each operand of `step` its index among the raw arrays followed by `extras`.
        extras: constants and numbers that `step` takes.
    """

    __slots__ = ("extras", "failed", "finish", "fresh", "order", "step", "values")

    def __init__(
        self,
        key: tuple[Any, ...],
        run: Callable[..., Any],
        out: Any,
        values: tuple[Any, ...],
        finish: Callable[[Any], Any],
        fresh: Callable[[], bool] | None,
        failed: Callable[[BaseException], bool],
        step: Callable[..., Any] | None,
        order: bytes,
        extras: tuple[Any, ...],
    ) -> None:
        super().__init__(key, run, out)
        self.values, self.finish, self.fresh, self.failed = values, finish, fresh, failed
        self.step, self.order, self.extras = step, order, extras


class OpBase:
    """An op, which finds the entry of a call.

    Its class implements ``generic(operands)`` for all other cases, and ``evaluate(operands)``, which C code calls
    directly if all operands are concrete.

    Attributes:
        entries: keyed by a bit mask of the differentiated operands (0 for none, its complement in forward mode),
            followed by the spec of each operand, or the class of a Python scalar. If an open scope selects a device,
            the device comes first.
        bound: largest number of entries; the table is cleared when it is full.
    """

    __slots__ = ("bound", "entries")
    entries: dict[Any, Entry]
    bound: int

    def __new__(cls, *args: Any, **kwargs: Any) -> Any:
        self = object.__new__(cls)
        self.entries, self.bound = {}, ENTRIES_MAX
        return self

    def __call__(self, *operands: Any) -> Any:
        n = len(operands)
        if not state.open_scopes:
            tensor = state.tensor
            if n == 1:  # `known`, unrolled
                (x,) = operands
                if x.__class__ is tensor:
                    entry = self.entries.get((0, x.spec))
                    if entry.__class__ is Entry and not entry.many:
                        z = _new(tensor)
                        z._data, z.spec = entry.run(x._data), entry.out
                        return z
            elif n == 2:
                x, y = operands
                if x.__class__ is y.__class__ is tensor:
                    entry = self.entries.get((0, x.spec, y.spec))
                    if entry.__class__ is Entry and not entry.many:
                        z = _new(tensor)
                        z._data, z.spec = entry.run(x._data, y._data), entry.out
                        return z
            result = known(self, operands)
            if result is not None:
                return result
        return self.generic(operands)  # type: ignore[attr-defined]

    def remember(self, entry: Entry, /) -> Entry:
        """Store an entry, replacing any other of its key.

        Args:
            entry: the entry.

        Returns:
            The entry.
        """
        if len(self.entries) >= self.bound:
            self.entries.clear()
        self.entries[entry.key] = entry
        return entry

    def forget(self) -> None:
        """Remove all entries; they are recreated when needed."""
        self.entries.clear()


class ProgramsBase(OpBase):
    """A function that runs programs: its entries are `ProgramEntry`s for concrete tensors. In C, `OpBase` does the
    same.

    Attributes:
        arity: number of positional operands that entries exist for; other calls go to the method ``bound_call(args,
            kwargs)``.
    """

    __slots__ = ("arity",)
    arity: int

    def __call__(self, *operands: Any, **named: Any) -> Any:
        if named or self.arity != len(operands):
            return self.bound_call(operands, named)  # type: ignore[attr-defined]
        if not state.open_scopes:
            tensor = state.tensor
            key: list[Any] = [0]
            raws: list[Any] = []
            for x in operands:
                if x.__class__ is not tensor:
                    return self.generic(operands)  # type: ignore[attr-defined]
                key.append(x.spec)
                raws.append(x._data)
            entry: Any = self.entries.get(tuple(key))
            if entry is not None and (entry.fresh is None or entry.fresh()):
                try:
                    raw = entry.run(entry.values, *raws)
                    if entry.out is None:
                        return entry.finish(raw)
                    z = _new(tensor)
                    z._data, z.spec = raw, entry.out
                    return z
                except Exception as error:
                    if not entry.failed(error):
                        raise
        return self.generic(operands)  # type: ignore[attr-defined]


class State:
    """State that every call reads.

    Attributes:
        open_scopes: number of scopes, in any thread, that select a device or record decisions.
        recording_scopes: number of scopes, in any thread, that affect recording.
        tensor: the class of concrete tensors, which derives from `TensorBase` and adds no fields.
        recorded: the class of recorded values, which derives from `RecordedBase` and adds no fields.
        dual: the class of values with tangents, which derives from `DualBase` and adds no fields.
        record: ``record(level, op, operands)`` runs and records an op; some operands are of that level and of class
            `recorded`, and none is of a higher level.
        parts: the class of cotangents in parts; a node of the backward pass gets their ``whole()``.
        spec: the class of specs.
        host: the place main memory, without a compute device.
    """

    __slots__ = ("dual", "host", "open_scopes", "parts", "record", "recorded", "recording_scopes", "spec", "tensor")

    def __init__(self) -> None:
        self.open_scopes = 0
        self.recording_scopes = 0
        self.tensor: Any = None
        self.recorded: Any = None
        self.dual: Any = None
        self.record: Any = None
        self.parts: Any = None
        self.spec: Any = None
        self.host: Any = None


state: Final = State()
"""The state of this process."""


def known(op: OpBase, operands: tuple[Any, ...]) -> Any:
    """The result of an op whose entry for these operands exists; ``None`` in all other cases."""
    tensor = state.tensor
    parts: list[Any] = [0]
    raws: list[Any] = []
    for x in operands:
        cls = x.__class__
        if cls is tensor:
            parts.append(x.spec)
            raws.append(x._data)
        elif cls in SCALARS:
            parts.append(cls)
            raws.append(x)
        else:
            return differentiated(op, operands)
    entry = op.entries.get(tuple(parts))
    if entry is None:
        return None
    try:
        raw = entry.run(*raws)
    except OverflowError:  # a number beyond the range of the dtype: the generic path raises the typed error
        return None
    return wrapped(entry, raw)


def differentiated(op: OpBase, operands: tuple[Any, ...]) -> Any:
    """The result of an op on recorded or dual, and concrete, operands; ``None`` to use the generic path.

    With recorded operands, the op runs on the inner values and one node is recorded. With dual ones, tangents are
    propagated along with the values.
    """
    now = state
    if now.recording_scopes:
        return None
    tensor, recorded, dual = now.tensor, now.recorded, now.dual
    kind = level = None
    mask, bit = 0, 1
    parts: tuple[Any, ...] = ()
    values: tuple[Any, ...] = ()
    raws: tuple[Any, ...] = ()
    links: tuple[Any, ...] = ()
    for x in operands:
        cls = x.__class__
        if cls is recorded or cls is dual:
            if kind is None:
                kind, level = cls, x.level
            elif cls is not kind or x.level != level:
                return None
            mask |= bit
            parts += (x.spec,)
            links += (x.node if cls is recorded else x.tangent,)
            x = x.value
            if x.__class__ is not tensor:
                return None
            raws += (x._data,)
        elif cls in SCALARS:
            parts += (cls,)
            raws += (x,)
        elif cls is tensor:
            parts += (x.spec,)
            raws += (x._data,)
        else:
            return None
        values += (x,)
        bit += bit
    entry = op.entries.get((mask if kind is recorded else ~mask, *parts))
    if entry is None or entry.run is None or entry.many:
        return None
    if kind is dual:
        z, t = entry.run([*values], links)
        if t is None:
            return z
        d = _new(dual)
        d.value, d.spec, d.level, d.tangent = z, z.spec, level, t
        return d
    if mask != bit - 1:  # nobody may write to residuals: see `ownership`
        for i in entry.save:
            if i < len(raws) and not mask >> i & 1 and getattr(raws[i], "base", None) is not None:
                return None
    z = _new(tensor)
    try:
        z._data = entry.run(*raws)
    except OverflowError:  # a number beyond the range of the dtype: the generic path raises the typed error
        return None
    z.spec = out = entry.out
    if entry.vjp is None:
        return z
    # A constant may be assigned to later: save its present value.
    values = (*[x._alias() if x.__class__ is tensor and not mask >> i & 1 else x for i, x in enumerate(values)], z)
    node = _new(Node)
    node.seq, node.vjp, node.parents = _next_seq(), entry.vjp, links
    node.saved = entry.kept(values)
    r = _new(recorded)
    r.value, r.spec, r.level, r.node = z, out, level, node
    return r


def wrapped(entry: Entry, raw: Any) -> Any:
    """The tensor, or tuple of tensors, for the result of a kernel."""
    if entry.many:
        return tuple([_tensor(r, spec) for r, spec in zip(raw, entry.out, strict=True)])
    return _tensor(raw, entry.out)


def _tensor(raw: Any, spec: Spec) -> Any:
    z = _new(state.tensor)
    z._data, z.spec = raw, spec
    return z


# Python's operators. Their class implements the slow path: ``_operate(op, x, y)``.


def operator(op: OpBase) -> Callable[[Any, Any], Any]:
    """The method ``op(self, other)``.

    Args:
        op: the op.

    Returns:
        The method.
    """
    find = op.entries.get

    def method(self: Any, other: Any) -> Any:
        tensor = state.tensor
        if self.__class__ is tensor and not state.open_scopes:  # `known`, unrolled
            kind = other.__class__
            if kind is tensor:
                entry = find((0, self.spec, other.spec))
                if entry is not None:
                    z = _new(tensor)
                    z._data, z.spec = entry.run(self._data, other._data), entry.out
                    return z
            elif kind in SCALARS:
                entry = find((0, self.spec, kind))
                if entry is not None:
                    z = _new(tensor)
                    try:
                        z._data, z.spec = entry.run(self._data, other), entry.out
                    except OverflowError:
                        return self._operate(op, self, other)
                    return z
        elif not state.open_scopes:
            found = differentiated(op, (self, other))
            if found is not None:
                return found
        return self._operate(op, self, other)

    return method


def reflected(op: OpBase) -> Callable[[Any, Any], Any]:
    """The method ``op(other, self)``.

    Args:
        op: the op.

    Returns:
        The method.
    """
    find = op.entries.get

    def method(self: Any, other: Any) -> Any:
        tensor = state.tensor
        if self.__class__ is tensor and other.__class__ in SCALARS and not state.open_scopes:
            entry = find((0, other.__class__, self.spec))
            if entry is not None:
                z = _new(tensor)
                try:
                    z._data, z.spec = entry.run(other, self._data), entry.out
                except OverflowError:
                    return self._operate(op, other, self)
                return z
        elif not state.open_scopes:
            found = differentiated(op, (other, self))
            if found is not None:
                return found
        return self._operate(op, other, self)

    return method


def augmented(op: OpBase, ufunc: Any = None) -> Callable[[Any, Any], Any]:
    """The method of an in-place operator; the class implements ``_augment(op, other)``.

    Args:
        op: the op.
        ufunc: NumPy's function, by which the C twin writes into memory.

    Returns:
        The method.
    """

    def method(self: Any, other: Any) -> Any:
        return self._augment(op, other)

    return method


def unary(op: OpBase) -> Callable[[Any], Any]:
    """The method ``op(self)``.

    Args:
        op: the op.

    Returns:
        The method.
    """
    find = op.entries.get

    def method(self: Any) -> Any:
        tensor = state.tensor
        if self.__class__ is tensor and not state.open_scopes:
            entry = find((0, self.spec))
            if entry is not None:
                z = _new(tensor)
                z._data, z.spec = entry.run(self._data), entry.out
                return z
        elif not state.open_scopes:
            found = differentiated(op, (self,))
            if found is not None:
                return found
        return op.generic((self,))  # type: ignore[attr-defined]

    return method


def key_parts(key: Any) -> tuple[Any, ...] | None:
    """Represent an index key of integers and slices in the key of a table: a slice by its class and its bounds.

    Args:
        key: the index key.

    Returns:
        A tuple; None for any other key.
    """
    if key.__class__ is int:
        return (key,)
    parts: list[Any] = []
    for part in key if key.__class__ is tuple else (key,):
        if part.__class__ is int or part is None or part is Ellipsis:
            parts.append(part)
        elif part.__class__ is slice:
            bounds = (part.start, part.stop, part.step)
            if not _BOUNDS.issuperset(map(type, bounds)):
                return None
            parts += (slice, *bounds)
        else:
            return None
    return tuple(parts)


_BOUNDS: Final = frozenset({int, type(None)})
