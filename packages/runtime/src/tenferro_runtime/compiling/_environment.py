"""The data that a function reads from closure cells and globals.

These values are part of the key of a program, so that rebinding one of them causes a new trace, and a differentiated
value is never treated as a constant. Functions that the function calls are searched as well. Attributes of modules, and
changes deep inside objects, are not seen.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dis import get_instructions
from functools import partial
from types import BuiltinFunctionType, CodeType, FunctionType, MethodType, ModuleType
from typing import Any, Final, NamedTuple

import numpy as np

from tenferro_runtime.compiling._entry import Entrance
from tenferro_runtime.ir._source import here
from tenferro_runtime.trees._tree import TreeDef, flatten
from tenferro_tensor import Array, Primitive, Tensor
from tenferro_tensor.identity import identity
from tenferro_tensor.views import replace
from tenferro_tensor_core import TracingError, key_of

MISSING: Final = object()
_CODE: Final = (ModuleType, type, BuiltinFunctionType, Primitive, np.ufunc, np.dtype)
_FOLLOWED: Final = (FunctionType, MethodType, partial)
_MAX_FUNCTIONS: Final = 200
"""Largest number of functions that are searched."""


class Slot(NamedTuple):
    """A variable or attribute that a function reads."""

    name: str
    read: Callable[[], Any]


def slots_of(f: Any) -> tuple[Slot, ...]:
    """The data that `f` and the functions it calls read from closures and globals."""
    found: dict[tuple[Any, ...], Slot] = {}
    seen: set[int] = set()
    queue = [f]
    while queue and len(seen) < _MAX_FUNCTIONS:
        g = queue.pop()
        if id(g) in seen:
            continue
        seen.add(id(g))
        for key, slot in _slots(g):
            value = slot.read()
            if callable(value) and not isinstance(value, (*_CODE, Array)):
                queue.append(value)
                if not isinstance(value, _FOLLOWED) and not _ours(type(value).__module__):
                    found.setdefault(key, slot)
            elif not isinstance(value, _CODE):
                found.setdefault(key, slot)
    return tuple(found.values())


def _slots(g: Any) -> Iterator[tuple[tuple[Any, ...], Slot]]:
    if isinstance(g, MethodType):
        yield _fixed("self", g.__self__)
        yield _fixed("function", g.__func__)
    elif isinstance(g, partial):
        for i, value in enumerate((g.func, *g.args, *g.keywords.values())):
            yield _fixed(f"partial argument {i}", value)
    elif isinstance(g, Entrance):
        yield _fixed("wrapped function", g.__wrapped__)
    elif isinstance(g, FunctionType):
        ours = _ours(g.__globals__.get("__name__"))
        if "__wrapped__" in g.__dict__:
            yield _fixed("wrapped function", g.__wrapped__)  # type: ignore[attr-defined]
        for name, cell in zip(g.__code__.co_freevars, g.__closure__ or (), strict=True):
            value = _read_cell(cell)
            if not ours or callable(value) or _holds_arrays(value):
                yield (id(cell), name), Slot(name, partial(_read_cell, cell))
        for i, value in enumerate((*(g.__defaults__ or ()), *(g.__kwdefaults__ or {}).values())):
            if callable(value) or _holds_arrays(value):
                yield _fixed(f"default {i}", value)
        if not ours:
            for name in sorted(_global_names(g.__code__)):
                if name in g.__globals__:
                    yield (id(g.__globals__), name), Slot(name, partial(g.__globals__.get, name, MISSING))
    else:
        yield _fixed("self", g)
        yield _fixed("function", type(g).__call__)
        for name, value in _attributes(g):
            if callable(value):
                yield _fixed(name, value)


def _ours(module: Any) -> bool:
    return str(module).startswith(("tenferro_", "numpy"))


def _holds_arrays(value: Any) -> bool:
    return any(isinstance(leaf, Array) for leaf in flatten(value)[0])


def _fixed(name: str, value: Any) -> tuple[tuple[Any, ...], Slot]:
    return (id(value), name), Slot(name, lambda: value)


def _read_cell(cell: Any) -> Any:
    try:
        return cell.cell_contents
    except ValueError:  # not assigned yet
        return MISSING


def _global_names(code: CodeType) -> set[str]:
    # Not co_names: attributes are there as well, and `x.data` does not read a global `data`.
    names = {i.argval for i in get_instructions(code) if i.opname in ("LOAD_GLOBAL", "LOAD_NAME")}
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            names |= _global_names(constant)
    return names


def _attributes(obj: Any) -> Iterator[tuple[str, Any]]:
    yield from getattr(obj, "__dict__", {}).items()
    for cls in type(obj).__mro__:
        slots = cls.__dict__.get("__slots__", ())
        for name in (slots,) if isinstance(slots, str) else slots:
            value = getattr(obj, name, MISSING)
            if value is not MISSING and name != "__weakref__":
                yield name, value


def _equal(x: Array, y: Array) -> bool:
    """Whether concrete values are equal bit by bit; memory may have been copied to own it."""
    return x.__class__ is y.__class__ is Tensor and x.spec is y.spec and x._data.tobytes() == y._data.tobytes()


class Untouched:
    """A scope in which a function is traced, which may not assign to arrays that it reads from outside.

    The trace runs once, so that later calls would not repeat the assignment.

    Args:
        title: name of the function.
        slots: the data that it reads.
    """

    def __init__(self, title: str, slots: Sequence[Slot]) -> None:
        self.title = title
        self._arrays = [(s.name, x) for s in slots for x in flatten(s.read())[0] if isinstance(x, Array)]
        self._before = [x._alias() for _, x in self._arrays]  # which also keeps memory from being written to

    def __enter__(self) -> None:
        """Nothing to do."""

    def __exit__(self, kind: Any, error: Any, traceback: Any) -> None:
        """Give changed arrays their values again.

        Raises:
            TracingError: there are some.
        """
        changed = [
            (name, x, value)
            for (name, x), value in zip(self._arrays, self._before, strict=True)
            if identity(x) != identity(value) and not _equal(x, value)
        ]
        for _, x, value in changed:
            replace(x, value)
        if changed and error is None:
            name, x, _ = changed[0]
            raise TracingError(
                f"{self.title} is compiled, and assigns to elements of {name}, a {x.spec!r} from outside{here()}: "
                "later calls would not repeat that; pass the array as an argument, or assign to a copy and return it"
            )


def outer_values(f: Any) -> Iterator[tuple[str, Any]]:
    """Differentiated and traced values that a function reads from closures and globals.

    Args:
        f: the function.

    Yields:
        The name of the variable, and a value in it.
    """
    for slot in slots_of(f):
        value = slot.read()
        if value.__class__ not in _VALUES:
            yield from [(slot.name, leaf) for leaf in _arrays(value)[0] if leaf.level]


def slots_in(name: str, value: Any) -> tuple[Slot, ...]:
    """The data that a function may read from a constant argument: its attributes, and the data of functions."""
    if isinstance(value, _CODE):
        return ()
    if isinstance(value, _FOLLOWED):
        return slots_of(value)
    return tuple([Slot(f"{name}.{n}", partial(getattr, value, n, MISSING)) for n, _ in _attributes(value)])


def same_data(slots: tuple[Slot, ...]) -> Callable[[], bool]:
    """A function that returns whether all slots still hold their present values."""
    pairs = [(slot.read, slot.read()) for slot in slots]
    # Memory that is referenced here is not overwritten: assigning to elements gives the array new memory.
    arrays = [(value, value._inside) for _, value in pairs if isinstance(value, Array)]

    def unchanged() -> bool:
        for read, value in pairs:
            if read() is not value:
                return False
        for array, inside in arrays:
            if array._inside is not inside:
                return False
        return True

    return unchanged


class Snapshot(NamedTuple):
    """The values of all slots at one moment.

    Attributes:
        key: equal keys share a program; tensors and objects compare by identity.
        kept: objects whose identity is in the key, which must stay alive with it.
        outer: differentiated and traced values, in order.
        plain: whether comparing the slots by identity detects every change.
    """

    key: tuple[Any, ...]
    kept: tuple[Any, ...]
    outer: tuple[Any, ...]
    plain: bool


def snapshot(slots: tuple[Slot, ...]) -> Snapshot:
    """Read all slots.

    Numbers and text compare by value, concrete arrays by identity, differentiated and traced ones by spec; lists, dicts
    and objects by the arrays in them, or by identity if they hold none.
    """
    keys: list[Any] = []
    kept: list[Any] = []
    outer: list[Any] = []
    plain = True
    for slot in slots:
        value = slot.read()
        if value.__class__ in _VALUES or isinstance(value, np.generic):
            keys.append(key_of(value))
            continue
        arrays, treedef = _arrays(value)
        parts: list[Any] = [treedef]
        if not isinstance(value, Array):
            plain = plain and not arrays and not hasattr(value, "__dict__")
            kept.append(value)
            parts.append(id(value))
        for leaf in arrays:
            if leaf.level:
                outer.append(leaf)
                parts.append(("outer", leaf.spec))
            else:
                kept.append(leaf._alias())
                parts.append(identity(leaf))
        keys.append(tuple(parts))
    return Snapshot(tuple(keys), tuple(kept), tuple(outer), plain and not outer)


_VALUES: Final = frozenset({bool, int, float, complex, str, bytes, type(None)})


def _arrays(value: Any) -> tuple[list[Any], TreeDef | None]:
    """The arrays in a container or in the attributes of an object, and their structure."""
    if isinstance(value, (Tensor, Array)):
        return [value], None
    leaves, treedef = flatten(value)
    if treedef.kind is None:
        leaves, treedef = flatten([part for _, part in _attributes(value)])
    arrays = [leaf for leaf in leaves if isinstance(leaf, Array)]
    return arrays, treedef if arrays else None
