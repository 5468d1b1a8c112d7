"""Pytrees: nested containers of leaves.

Containers are lists, tuples, dicts, OrderedDicts, defaultdicts, deques, namedtuples, None (without leaves) and
registered classes; every other object is a leaf. The structure of a tree is an interned `TreeDef`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Final, overload
from weakref import WeakValueDictionary

from tenferro_runtime.trees._containers import container_of, is_container
from tenferro_tensor.calls import ValueBase
from tenferro_tensor_core import ArgumentError, key_of
from tenferro_tensor_core.forks import new_lock

if TYPE_CHECKING:
    from tenferro_runtime._signatures import T
    from tenferro_tensor import Array

_interned: WeakValueDictionary[Any, TreeDef] = WeakValueDictionary()
_lock = new_lock()


class TreeDef:
    """The structure of a tree; equal structures are one object.

    Attributes:
        kind: class of the container, or ``None`` for a leaf.
        names: keys of a dict, or fields of a namedtuple or dataclass, else ``()``.
        children: structures of the parts.
        aux: static data of the container: the factory of a defaultdict, the length of a deque, static fields.
        size: number of leaves.
    """

    __slots__ = ("__weakref__", "aux", "children", "kind", "names", "size")
    kind: type | None
    names: tuple[Any, ...]
    children: tuple[TreeDef, ...]
    aux: Any
    size: int

    def __new__(
        cls, kind: type | None, names: tuple[Any, ...], children: tuple[TreeDef, ...], aux: Any = None
    ) -> TreeDef:
        key = (kind, key_of(names), children) if aux is None else (kind, key_of(names), children, key_of(aux))
        with _lock:
            self = _interned.get(key)
            if self is None:
                self = object.__new__(cls)
                self.kind, self.names, self.children, self.aux = kind, names, children, aux
                self.size = 1 if kind is None else sum(c.size for c in children)
                _interned[key] = self
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        return TreeDef, (self.kind, self.names, self.children, self.aux)

    def __repr__(self) -> str:
        return f"TreeDef({self.show()})"

    def show(self) -> str:
        """The structure as text, with ``*`` for leaves."""
        inner = [c.show() for c in self.children]
        if self.kind is None:
            return "*"
        if self.kind is type(None):
            return "None"
        if self.kind is list:
            return f"[{', '.join(inner)}]"
        if self.kind is tuple:
            return f"({', '.join(inner)}{',' if len(inner) == 1 else ''})"
        name = self.kind.__name__
        container = container_of(self.kind)
        if container is not None and container.keyed:
            text = f"{{{', '.join(f'{k!r}: {v}' for k, v in zip(self.names, inner, strict=True))}}}"
            return text if name == "dict" else f"{name}({_shown(self.aux)}{text})"
        parts = [f"{k}={v}" for k, v in zip(self.names, inner, strict=True)] if self.names else inner
        if container is not None and container.static:
            parts += [f"{k}={_named(v)}" for k, v in self.aux]
        elif self.aux is not None:
            parts.append(_named(self.aux))
        return f"{name}({', '.join(parts)})"

    def parts(self) -> Iterator[TreeDef]:
        """This structure and those of all parts, recursively."""
        yield self
        for child in self.children:
            yield from child.parts()

    def paths(self) -> Iterator[str]:
        """The path of each leaf as an indexing expression, ``[0]['w']``; empty for a single leaf."""
        if self.kind is None:
            yield ""
        for i, child in enumerate(self.children):
            yield from (self.step(i) + rest for rest in child.paths())

    def step(self, i: int) -> str:
        """The expression that accesses a part: ``['w']``, ``.w`` or ``[0]``.

        Args:
            i: position of the part.

        Returns:
            The text.
        """
        if not self.names:
            return f"[{i}]"
        assert self.kind is not None, "a leaf has no parts"
        container = container_of(self.kind)
        return f"[{self.names[i]!r}]" if container is not None and container.keyed else f".{self.names[i]}"


def _named(aux: Any) -> str:
    """Static data as text; classes and functions by name."""
    return str(getattr(aux, "__name__", None) or f"{aux!r:.60}")


def _shown(aux: Any) -> str:
    return "" if aux is None else f"{_named(aux)}, "


LEAF: Final = TreeDef(None, (), ())
"""The structure of a single leaf."""

_NONE: Final = TreeDef(type(None), (), ())
_flat: Final[dict[tuple[type, int], TreeDef]] = {}


class _Unhashable(Exception):
    """Static data of a container cannot be compared."""


def flatten(tree: Any) -> tuple[list[Any], TreeDef]:
    """The leaves of a tree in order, and its structure.

    Args:
        tree: the tree.

    Returns:
        The leaves and the structure.

    Raises:
        ArgumentError: the static data of a registered class are not hashable.

    >>> flatten({"a": 1, "b": [2, (3, None)]})
    ([1, 2, 3], TreeDef({'a': *, 'b': [*, (*, None)]}))
    """
    if isinstance(tree, ValueBase):
        return [tree], LEAF
    leaves: list[Any] = []
    try:
        return leaves, _flatten(tree, leaves)
    except _Unhashable as error:
        raise _refusal(tree, error.args[0]) from None


def _flatten(tree: Any, leaves: list[Any]) -> TreeDef:
    kind = tree.__class__
    if kind is tuple or kind is list:
        for part_kind in {x.__class__ for x in tree}:
            if is_container(part_kind):
                return TreeDef(kind, (), tuple([_flatten(part, leaves) for part in tree]))
        leaves += tree
        shape = _flat.get((kind, len(tree)))
        if shape is None:
            shape = TreeDef(kind, (), (LEAF,) * len(tree))
            if len(tree) < 64:
                _flat[kind, len(tree)] = shape
        return shape
    if kind is dict:
        return TreeDef(dict, tuple(tree), tuple([_flatten(part, leaves) for part in tree.values()]))
    if tree is None:
        return _NONE
    container = container_of(kind)
    if container is None:
        leaves.append(tree)
        return LEAF
    parts, aux, names = container.take(tree)
    return _shape(tree, names, tuple([_flatten(part, leaves) for part in parts]), aux)


def flatten_until(tree: Any, is_leaf: Callable[[Any], Any]) -> tuple[list[Any], TreeDef]:
    """The leaves of a tree in order, and its structure; a subtree that `is_leaf` accepts is a leaf."""
    leaves: list[Any] = []

    def shape_of(part: Any) -> TreeDef:
        container = None if is_leaf(part) else container_of(part.__class__)
        if container is None:
            leaves.append(part)
            return LEAF
        parts, aux, names = container.take(part)
        return _shape(part, names, tuple([shape_of(p) for p in parts]), aux)

    try:
        return leaves, shape_of(tree)
    except _Unhashable as error:
        raise _refusal(tree, error.args[0]) from None


def _shape(tree: Any, names: tuple[Any, ...], children: tuple[TreeDef, ...], aux: Any) -> TreeDef:
    try:
        return TreeDef(tree.__class__, names, children, aux)
    except TypeError:
        raise _Unhashable(tree) from None


def _refusal(tree: Any, culprit: Any) -> ArgumentError:
    """The error about a container whose static data are not hashable."""

    def path_to(part: Any) -> str | None:
        if part is culprit:
            return ""
        container = container_of(part.__class__)
        if container is not None:
            parts, _, names = container.take(part)
            for i, child in enumerate(parts):
                rest = path_to(child)
                if rest is not None:
                    step = f"[{names[i]!r}]" if container.keyed else f".{names[i]}" if names else f"[{i}]"
                    return step + rest
        return None

    path = path_to(tree) or ""
    where = f" at {path}" if path else ""
    return ArgumentError(
        f"the static data of the {type(culprit).__name__}{where} are not hashable; make arrays in them parts of the "
        "tree, and lists tuples",
        path=path,
    )


def unflatten(treedef: TreeDef, leaves: Sequence[Any]) -> Any:
    """Build a tree from its structure and leaves.

    Args:
        treedef: the structure.
        leaves: the leaves.

    Returns:
        The tree.

    Raises:
        ArgumentError: the number of leaves is not that of the structure.

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
    container = container_of(kind)
    assert container is not None, "only containers have shapes"
    return container.make(treedef.aux, treedef.names, parts)


def flatten_like(treedef: TreeDef, tree: Any, what: str = "tree", *, none: bool = False) -> list[Any]:
    """The leaves of a tree that must have a given structure, up to the order of dict keys.

    Args:
        treedef: the structure; at its leaves, the tree may have any subtree.
        tree: the tree.
        what: names the tree in errors.
        none: whether the tree may have None at a leaf.

    Returns:
        The leaves or subtrees.

    Raises:
        ArgumentError: the structures differ; the message says where.
    """
    leaves: list[Any] = []
    if not _match(treedef, tree, leaves, none):
        path, problem = _difference(treedef, tree, none) or ("", "")
        raise ArgumentError(
            f"{what} must have the structure {treedef.show()}, got {flatten(tree)[1].show()}"
            f" ({path and f'at {path}: '}{problem}); give it the same nesting",
            expected=treedef.show(),
            path=path,
        )
    return leaves


def _match(treedef: TreeDef, tree: Any, leaves: list[Any], none: bool) -> bool:
    kind = tree.__class__
    if treedef.kind is None:
        leaves.append(tree)
        return none or tree is not None
    if kind is not treedef.kind:
        return False
    sequence = kind is list or kind is tuple
    parts = tree if sequence and len(tree) == len(treedef.children) else None
    if not sequence:
        parts = _parts_in_order(treedef, tree)
    if parts is None:
        return False
    for child, part in zip(treedef.children, parts, strict=True):
        if not _match(child, part, leaves, none):
            return False
    return True


def parts_like(treedef: TreeDef, tree: Any) -> Sequence[Any] | None:
    """The parts of a tree in the order of a structure; static data are not compared.

    Args:
        treedef: the structure.
        tree: the tree.

    Returns:
        The parts, or ``None`` if the tree has others.
    """
    kind: Any = treedef.kind
    container = None if kind is None or type(tree) is not kind else container_of(kind)
    if container is None:
        return None
    parts, _, names = container.take(tree)
    if len(parts) != len(treedef.children):
        return None
    if not container.keyed:
        return parts if names == treedef.names else None
    return None if tree.keys() != {*treedef.names} else [tree[name] for name in treedef.names]


def _parts_in_order(treedef: TreeDef, tree: Any) -> Sequence[Any] | None:
    """As `parts_like`, with the same static data."""
    container = container_of(tree.__class__)
    assert container is not None, "only containers have shapes"
    if key_of(container.take(tree)[1]) != key_of(treedef.aux):
        return None
    return parts_like(treedef, tree)


def _difference(treedef: TreeDef, tree: Any, none: bool) -> tuple[str, str] | None:
    """The first difference of a tree from a structure, and its path."""
    if treedef.kind is None:
        return None if none or tree is not None else ("", "None instead of a leaf")
    if tree.__class__ is not treedef.kind:
        return "", f"a {type(tree).__name__} instead of a {treedef.kind.__name__}"
    parts = _parts_in_order(treedef, tree)
    if parts is None:
        return "", _other_parts(treedef, tree)
    for i, (child, part) in enumerate(zip(treedef.children, parts, strict=True)):
        found = _difference(child, part, none)
        if found is not None:
            return treedef.step(i) + found[0], found[1]
    return None


def _other_parts(treedef: TreeDef, tree: Any) -> str:
    container = container_of(tree.__class__)
    assert container is not None, "only containers have shapes"
    parts, aux, names = container.take(tree)
    missing = [name for name in treedef.names if name not in names]
    extra = [name for name in names if name not in treedef.names]
    if missing or extra:
        both = (("without", missing), ("with", extra))
        told = [f"{word} {', '.join(map(repr, found))}" for word, found in both if found]
        return f"a {type(tree).__name__} {' and '.join(told)}"
    if len(parts) != len(treedef.children):
        return f"{len(parts)} parts instead of {len(treedef.children)}"
    return f"the static data {aux!r:.60} instead of {treedef.aux!r:.60}"


@overload
def map_tree(f: Callable[..., Array], tree: T, *others: Any) -> T: ...
@overload
def map_tree(f: Callable[..., Any], tree: Any, *others: Any) -> Any: ...
def map_tree(f: Callable[..., Any], tree: Any, *others: Any) -> Any:
    """Apply a function to each leaf, together with those of other trees of equal structure.

    Args:
        f: the function.
        tree: the tree.
        others: trees of equal structure.

    Returns:
        The tree of results.

    >>> map_tree(lambda x, y: x + y, {"a": 1, "b": (2,)}, {"a": 10, "b": (20,)})
    {'a': 11, 'b': (22,)}
    """
    if not others and isinstance(tree, ValueBase):
        return f(tree)
    leaves, treedef = flatten(tree)
    columns = [flatten_like(treedef, other, f"tree {i}") for i, other in enumerate(others, 1)]
    return unflatten(treedef, [f(*row) for row in zip(leaves, *columns, strict=True)])
