"""Pytrees: nested containers of leaves, taken apart and put together again.

Containers are lists, tuples, dicts, namedtuples, None (a container without leaves) and registered dataclasses;
everything else is a leaf. The shape of a tree is a `TreeDef`, interned: equal shapes are one object.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final, TypeVar
from weakref import WeakValueDictionary

from tenferro_tensor_core import ArgumentError, key_of
from tenferro_tensor_core.forks import new_lock

T = TypeVar("T")

_interned: WeakValueDictionary[Any, TreeDef] = WeakValueDictionary()
_dataclasses: dict[type, tuple[str, ...]] = {}
_lock = new_lock()


class TreeDef:
    """The shape of a tree; equal shapes are one object.

    Attributes:
        kind: class of the container, or ``None`` at a leaf.
        names: keys of a dict, fields of a namedtuple or dataclass, else ``()``.
        children: shapes of the parts.
        size: number of leaves.
    """

    __slots__ = ("__weakref__", "children", "kind", "names", "size")
    kind: type | None
    names: tuple[Any, ...]
    children: tuple[TreeDef, ...]
    size: int

    def __new__(cls, kind: type | None, names: tuple[Any, ...], children: tuple[TreeDef, ...]) -> TreeDef:
        key = (kind, key_of(names), children)
        with _lock:
            self = _interned.get(key)
            if self is None:
                self = object.__new__(cls)
                self.kind, self.names, self.children = kind, names, children
                self.size = 1 if kind is None else sum(c.size for c in children)
                _interned[key] = self
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        return TreeDef, (self.kind, self.names, self.children)

    def __repr__(self) -> str:
        return f"TreeDef({self.show()})"

    def show(self) -> str:
        """The shape as text, leaves as ``*``."""
        inner = [c.show() for c in self.children]
        if self.kind is None:
            return "*"
        if self.kind is type(None):
            return "None"
        if self.kind is list:
            return f"[{', '.join(inner)}]"
        if self.kind is tuple:
            return f"({', '.join(inner)}{',' if len(inner) == 1 else ''})"
        if self.kind is dict:
            return f"{{{', '.join(f'{k!r}: {v}' for k, v in zip(self.names, inner, strict=True))}}}"
        return f"{self.kind.__name__}({', '.join(f'{k}={v}' for k, v in zip(self.names, inner, strict=True))})"

    def paths(self) -> Iterator[str]:
        """Where each leaf is, as an indexing expression: ``[0]['w']``; empty for a single leaf."""
        if self.kind is None:
            yield ""
        for i, child in enumerate(self.children):
            if self.kind is dict:
                step = f"[{self.names[i]!r}]"
            else:
                step = f".{self.names[i]}" if self.names else f"[{i}]"
            yield from (step + rest for rest in child.paths())


LEAF: Final = TreeDef(None, (), ())
"""The shape of a tree that is one leaf."""

_NONE: Final = TreeDef(type(None), (), ())
_flat: Final[dict[tuple[type, int], TreeDef]] = {}
_CONTAINERS: Final = (list, tuple, dict, type(None))


def flatten(tree: Any) -> tuple[list[Any], TreeDef]:
    """The leaves of a tree in order, and its shape.

    >>> flatten({"a": 1, "b": [2, (3, None)]})
    ([1, 2, 3], TreeDef({'a': *, 'b': [*, (*, None)]}))
    """
    leaves: list[Any] = []
    return leaves, _flatten(tree, leaves)


def _flatten(tree: Any, leaves: list[Any]) -> TreeDef:
    kind = tree.__class__
    if kind is tuple or kind is list:
        for part_kind in {x.__class__ for x in tree}:
            if _is_container(part_kind):
                return TreeDef(kind, (), tuple([_flatten(part, leaves) for part in tree]))
        leaves += tree
        shape = _flat.get((kind, len(tree)))
        if shape is None:
            shape = TreeDef(kind, (), (LEAF,) * len(tree))
            if len(tree) < 64:
                _flat[kind, len(tree)] = shape
        return shape
    if not _is_container(kind):
        leaves.append(tree)
        return LEAF
    if tree is None:
        return _NONE
    if kind is dict:
        return TreeDef(dict, tuple(tree), tuple([_flatten(part, leaves) for part in tree.values()]))
    if kind in _dataclasses:
        names = _dataclasses[kind]
        return TreeDef(kind, names, tuple([_flatten(getattr(tree, name), leaves) for name in names]))
    return TreeDef(kind, kind._fields, tuple([_flatten(part, leaves) for part in tree]))


def _is_container(kind: type) -> bool:
    if kind in _CONTAINERS or kind in _dataclasses:
        return True
    return issubclass(kind, tuple) and isinstance(getattr(kind, "_fields", None), tuple)


def unflatten(treedef: TreeDef, leaves: Sequence[Any]) -> Any:
    """The tree of the given shape and leaves.

    Raises:
        ArgumentError: the number of leaves is not that of the shape.

    >>> unflatten(flatten({"a": 1, "b": [2, 3]})[1], "xyz")
    {'a': 'x', 'b': ['y', 'z']}
    """
    if len(leaves) != treedef.size:
        raise ArgumentError(
            f"the tree {treedef.show()} has {treedef.size} leaves, but {len(leaves)} were given",
            expected=treedef.size,
            given=len(leaves),
        )
    return _unflatten(treedef, iter(leaves))


def _unflatten(treedef: TreeDef, leaves: Iterator[Any]) -> Any:
    kind = treedef.kind
    if kind is None:
        return next(leaves)
    parts = [next(leaves) if child is LEAF else _unflatten(child, leaves) for child in treedef.children]
    if kind is list:
        return parts
    if kind is tuple:
        return tuple(parts)
    if kind is dict:
        return dict(zip(treedef.names, parts, strict=True))
    if kind is type(None):
        return None
    if kind in _dataclasses:
        return kind(**dict(zip(treedef.names, parts, strict=True)))
    return kind(*parts)


def flatten_like(treedef: TreeDef, tree: Any, what: str = "tree") -> list[Any]:
    """The leaves of a tree that must have the given shape; the keys of a dict may come in another order.

    Raises:
        ArgumentError: the shapes differ.
    """
    leaves: list[Any] = []
    if not _match(treedef, tree, leaves):
        raise ArgumentError(
            f"{what} must have the structure {treedef.show()}, got {flatten(tree)[1].show()}; give it the same nesting",
            expected=treedef.show(),
        )
    return leaves


def _match(treedef: TreeDef, tree: Any, leaves: list[Any]) -> bool:
    kind = tree.__class__
    if treedef.kind is None:
        leaves.append(tree)
        return tree is not None
    if kind is not treedef.kind:
        return False
    if kind is dict:
        return tree.keys() == set(treedef.names) and all(
            _match(child, tree[name], leaves) for name, child in zip(treedef.names, treedef.children, strict=True)
        )
    parts = [getattr(tree, name) for name in treedef.names] if kind in _dataclasses else list(tree or ())
    return len(parts) == len(treedef.children) and all(
        _match(child, part, leaves) for child, part in zip(treedef.children, parts, strict=True)
    )


def fields_of(cls: type) -> tuple[str, ...] | None:
    """Names of the parts of a namedtuple or registered dataclass; ``None`` for other classes."""
    if cls in _dataclasses:
        return _dataclasses[cls]
    return getattr(cls, "_fields", None) if issubclass(cls, tuple) else None


def map_tree(f: Callable[..., Any], tree: Any, *others: Any) -> Any:
    """Apply `f` to each leaf, beside the leaves of other trees of the same shape.

    >>> map_tree(lambda x, y: x + y, {"a": 1, "b": (2,)}, {"a": 10, "b": (20,)})
    {'a': 11, 'b': (22,)}
    """
    leaves, treedef = flatten(tree)
    columns = [flatten_like(treedef, other, f"tree {i}") for i, other in enumerate(others, 1)]
    return unflatten(treedef, [f(*row) for row in zip(leaves, *columns, strict=True)])


def register_dataclass(cls: type[T]) -> type[T]:
    """Make a dataclass a container whose fields are parts of the tree; usable as a decorator.

    Raises:
        ArgumentError: the class is no dataclass, or has fields that its constructor does not take.

    >>> @register_dataclass
    ... @dataclasses.dataclass
    ... class Layer:
    ...     w: float
    ...     b: float
    >>> map_tree(lambda x: 2 * x, Layer(1.0, 2.0))
    Layer(w=2.0, b=4.0)
    """
    if not dataclasses.is_dataclass(cls):
        raise ArgumentError(f"{cls.__name__} is not a dataclass; put @dataclasses.dataclass on it first")
    fields = dataclasses.fields(cls)
    derived = [f.name for f in fields if not f.init]
    if derived:
        raise ArgumentError(
            f"{cls.__name__} has fields that its constructor does not take: {', '.join(derived)}; "
            "make them properties, or keep such objects out of arguments and results",
            fields=tuple(derived),
        )
    with _lock:
        _dataclasses[cls] = tuple(f.name for f in fields)
    return cls
