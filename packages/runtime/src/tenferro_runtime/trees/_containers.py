"""The classes that are containers, and how each is flattened and unflattened."""

from __future__ import annotations

import dataclasses
from collections import OrderedDict, defaultdict, deque
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final, TypeVar, overload

from tenferro_tensor_core import ArgumentError
from tenferro_tensor_core.forks import new_lock

T = TypeVar("T")

Parts = tuple[Sequence[Any], Any, tuple[Any, ...]]
"""Parts of a container, its static data, and the names of the parts (``()`` if they are numbered)."""


@dataclasses.dataclass(frozen=True, slots=True)
class Container:
    """How objects of one class are flattened and unflattened.

    Attributes:
        take: returns the parts of an object.
        make: makes an object from static data, names and parts.
        keyed: whether a part is accessed by indexing with its name, not as an attribute.
        fields: names of the parts of all objects of the class, or ``None`` if objects differ.
        parameters: names of the constructor's parameters for these parts, if it takes no others.
        static: names of the fields whose values are static data.
    """

    take: Callable[[Any], Parts]
    make: Callable[[Any, tuple[Any, ...], Sequence[Any]], Any]
    keyed: bool = False
    fields: tuple[str, ...] | None = None
    parameters: tuple[str, ...] | None = None
    static: tuple[str, ...] = ()


_BUILT_IN: Final[dict[type, Container]] = {
    list: Container(lambda x: (x, None, ()), lambda aux, names, parts: list(parts)),
    tuple: Container(lambda x: (x, None, ()), lambda aux, names, parts: tuple(parts)),
    type(None): Container(lambda x: ((), None, ()), lambda aux, names, parts: None),
    dict: Container(
        lambda x: (list(x.values()), None, tuple(x)),
        lambda aux, names, parts: dict(zip(names, parts, strict=True)),
        keyed=True,
    ),
    OrderedDict: Container(
        lambda x: (list(x.values()), None, tuple(x)),
        lambda aux, names, parts: OrderedDict(zip(names, parts, strict=True)),
        keyed=True,
    ),
    defaultdict: Container(
        lambda x: (list(x.values()), x.default_factory, tuple(x)),
        lambda aux, names, parts: defaultdict(aux, zip(names, parts, strict=True)),
        keyed=True,
    ),
    deque: Container(lambda x: (list(x), x.maxlen, ()), lambda aux, names, parts: deque(parts, maxlen=aux)),
}

_containers: Final[dict[type, Container]] = dict(_BUILT_IN)
_namedtuples: Final[dict[type, Container]] = {}
"""Cache of namedtuple classes, cleared when it is full."""

_lock = new_lock()


def container_of(kind: type) -> Container | None:
    """The container of a class, or ``None`` for the class of a leaf."""
    found = _containers.get(kind) or _namedtuples.get(kind)
    if found is None and is_container(kind):
        if len(_namedtuples) >= 256:
            _namedtuples.clear()
        found = _namedtuples[kind] = _namedtuple(kind, kind._fields)  # type: ignore[attr-defined]
    return found


def _namedtuple(kind: type, fields: tuple[str, ...]) -> Container:
    return Container(
        lambda x: (x, None, fields), lambda aux, names, parts: kind(*parts), fields=fields, parameters=fields
    )


def is_container(kind: type) -> bool:
    """Whether a class is a container; unlike `container_of`, adds nothing to the cache."""
    return kind in _containers or (issubclass(kind, tuple) and isinstance(getattr(kind, "_fields", None), tuple))


@overload
def register_dataclass(cls: type[T], /, *, static: Iterable[str] = ...) -> type[T]: ...
@overload
def register_dataclass(cls: None = None, /, *, static: Iterable[str] = ...) -> Callable[[type[T]], type[T]]: ...
def register_dataclass(cls: Any = None, /, *, static: Iterable[str] = ()) -> Any:
    """Make a dataclass, or an attrs class, a container whose fields are parts of the tree; usable as a decorator.

    Args:
        cls: the class; without it, a decorator is returned.
        static: names of fields that belong to the structure instead: hashable settings such as the name of a function
            or a number of layers. Fields with the metadata ``static=True`` are static too. A compiled function is
            traced for each of their values.

    Returns:
        The class, or a decorator.

    Raises:
        ArgumentError: the class is not a dataclass, it has fields that its constructor does not take, or `static` names
            something other than a field.

    >>> import dataclasses
    >>> import tenferro_runtime as tr
    >>> @tr.register_dataclass(static=["name"])
    ... @dataclasses.dataclass
    ... class Layer:
    ...     w: float
    ...     b: float
    ...     name: str = "linear"
    >>> tr.tree_map(lambda x: 2 * x, Layer(1.0, 2.0))
    Layer(w=2.0, b=4.0, name='linear')
    """
    if cls is None:
        return lambda c: _register_dataclass(c, (static,) if isinstance(static, str) else tuple(static))
    return _register_dataclass(cls, (static,) if isinstance(static, str) else tuple(static))


def _register_dataclass(cls: Any, static: tuple[str, ...]) -> Any:
    title = getattr(cls, "__name__", repr(cls))
    if isinstance(cls, type) and dataclasses.is_dataclass(cls):
        fields: Any = dataclasses.fields(cls)
    elif isinstance(cls, type) and isinstance(getattr(cls, "__attrs_attrs__", None), tuple):
        fields = cls.__attrs_attrs__  # type: ignore[attr-defined]  # a class of attrs, which need not be imported here
    else:
        raise ArgumentError(
            f"{title} is not a dataclass; put @dataclasses.dataclass on it first, or register how it is flattened "
            "with register_node"
        )
    names = tuple([f.name for f in fields])
    unknown = [name for name in static if name not in names]
    if unknown:
        raise ArgumentError(f"static names {', '.join(unknown)}, but the fields of {title} are {', '.join(names)}")
    derived = [f.name for f in fields if not f.init]
    if derived:
        raise ArgumentError(
            f"{title} has fields that its constructor does not take: {', '.join(derived)}; "
            "make them properties, or keep such objects out of arguments and results",
            fields=tuple(derived),
        )
    called = {f.name: getattr(f, "alias", None) or f.name for f in fields}
    fixed = tuple([f.name for f in fields if f.name in static or f.metadata.get("static", False)])
    parts = tuple([name for name in names if name not in fixed])

    def take(x: Any) -> Parts:
        aux = tuple([(name, getattr(x, name)) for name in fixed]) if fixed else None
        return [getattr(x, name) for name in parts], aux, parts

    def make(aux: Any, names: tuple[Any, ...], values: Sequence[Any]) -> Any:
        given = {called[name]: value for name, value in zip(names, values, strict=True)}
        return cls(**given, **{called[name]: value for name, value in aux or ()})

    known = _containers.get(cls)
    if known is None or (known.fields, known.static) != (parts, fixed):
        parameters = None if fixed else tuple([called[name] for name in parts])
        _register(cls, Container(take, make, fields=parts, parameters=parameters, static=fixed))
    return cls


def register_node(
    cls: type[T],
    flatten: Callable[[T], tuple[Any, ...]],
    unflatten: Callable[[Any, Any], T],
) -> None:
    """Make a class a container.

    Args:
        cls: the class itself; subclasses must be registered separately.
        flatten: returns ``(parts, static)``, the parts of the tree and hashable data that belong to its structure, or
            ``(parts, static, names)`` with a name for each part, which paths show.
        unflatten: ``unflatten(static, parts)`` makes an object. The parts may be arrays, traced values or other leaves,
            so it must not check or convert them.

    Raises:
        ArgumentError: the class is already a container.

    >>> import tenferro_runtime as tr
    >>> class Interval:
    ...     def __init__(self, low, high):
    ...         self.low, self.high = low, high
    >>> tr.register_node(Interval, lambda x: ((x.low, x.high), None, ("low", "high")), lambda _, ends: Interval(*ends))
    >>> tr.tree_leaves([Interval(1.0, 2.0), 3.0])
    [1.0, 2.0, 3.0]
    >>> tr.compile(lambda x: x.high - x.low)(Interval(1.0, 3.5))
    Tensor(2.5)
    """
    if not isinstance(cls, type):
        raise ArgumentError(f"register_node takes a class, got {cls!r:.80}")

    def take(x: Any) -> Parts:
        found = flatten(x)
        if not isinstance(found, tuple) or len(found) not in (2, 3):
            raise ArgumentError(
                f"the function that flattens {cls.__name__} returned {found!r:.80}; it should return the tuple "
                "(parts, static) or (parts, static, names)"
            )
        parts, names = tuple(found[0]), tuple(found[2]) if len(found) == 3 else ()
        if names and len(names) != len(parts):
            raise ArgumentError(
                f"the function that flattens {cls.__name__} returned {len(parts)} parts, but {len(names)} names"
            )
        return parts, found[1], names

    _register(cls, Container(take, lambda aux, names, parts: unflatten(aux, tuple(parts))))


def _register(cls: type, container: Container) -> None:
    with _lock:
        if is_container(cls):
            raise ArgumentError(
                f"{cls.__name__} is already a container; register a class once, before it is used",
                container=cls.__name__,
            )
        _containers[cls] = container
