"""The public tree functions, such as `tree_map`."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Final, overload

from tenferro_runtime.trees._containers import container_of
from tenferro_runtime.trees._tree import TreeDef, flatten, flatten_like, flatten_until, unflatten
from tenferro_tensor_core import ArgumentError

if TYPE_CHECKING:
    from tenferro_runtime._signatures import Leaf, R, T
    from tenferro_tensor import Array

IsLeaf = Callable[[Any], Any]
_MISSING: Final[Any] = object()


class TreePath(tuple[Any, ...]):
    """The path to a leaf: keys, field names and positions; as text, an indexing expression.

    >>> import tenferro_runtime as tr
    >>> (path, leaf), = tr.tree_flatten_with_path({"w": [2.0]})[0]
    >>> path[0], path[1], str(path)
    ('w', 0, "['w'][0]")
    """

    text: str

    @classmethod
    def of(cls, entries: Sequence[Any], text: str) -> TreePath:
        """A path with its text.

        Args:
            entries: keys, field names and positions.
            text: the indexing expression.

        Returns:
            The path.
        """
        self = cls(entries)
        self.text = text
        return self

    def __str__(self) -> str:
        return self.text

    def __repr__(self) -> str:
        return f"TreePath({self.text})"

    def __reduce__(self) -> tuple[Any, ...]:
        return TreePath.of, (tuple(self), self.text)


def _flatten(tree: Any, is_leaf: IsLeaf | None) -> tuple[list[Any], TreeDef]:
    return flatten(tree) if is_leaf is None else flatten_until(tree, is_leaf)


def _paths(treedef: TreeDef, entries: tuple[Any, ...] = (), text: str = "") -> Iterator[TreePath]:
    if treedef.kind is None:
        yield TreePath.of(entries, text)
    for i, child in enumerate(treedef.children):
        yield from _paths(child, (*entries, treedef.names[i] if treedef.names else i), text + treedef.step(i))


def tree_flatten(tree: Any, is_leaf: IsLeaf | None = None) -> tuple[list[Any], TreeDef]:
    """Flatten a tree into its leaves and its structure.

    A tree is a leaf, or a container of trees: a list, tuple, dict, OrderedDict, defaultdict, deque, namedtuple, None
    (which has no leaves), or an object of a class registered with `register_dataclass` or `register_node`. Objects of
    all other classes are leaves. A dict keeps its own order of keys.

    Args:
        tree: the tree.
        is_leaf: called with each subtree, outermost first; a subtree for which it returns true is a leaf.

    Returns:
        The list of leaves, and the structure. Equal structures are one object.

    Raises:
        ArgumentError: the static data of a registered class are not hashable.

    >>> import tenferro_runtime as tr
    >>> tr.tree_flatten({"w": [1.0, 2.0], "b": None})
    ([1.0, 2.0], TreeDef({'w': [*, *], 'b': None}))
    >>> tr.tree_flatten({"w": [1.0, 2.0]}, is_leaf=lambda x: isinstance(x, list))
    ([[1.0, 2.0]], TreeDef({'w': *}))
    """
    return _flatten(tree, is_leaf)


def tree_unflatten(treedef: TreeDef, leaves: Any) -> Any:
    """Build a tree from its structure and leaves: the inverse of `tree_flatten`.

    Args:
        treedef: the structure.
        leaves: as many leaves as the structure has.

    Returns:
        The tree.

    Raises:
        ArgumentError: the number of leaves is not that of the structure.

    >>> import tenferro_runtime as tr
    >>> tr.tree_unflatten(tr.tree_structure({"a": 1, "b": (2, 3)}), "xyz")
    {'a': 'x', 'b': ('y', 'z')}
    """
    return unflatten(_required(treedef, "tree_unflatten"), list(leaves))


def tree_leaves(tree: Any, is_leaf: IsLeaf | None = None) -> list[Any]:
    """The leaves of a tree in order; see `tree_flatten`.

    Args:
        tree: the tree.
        is_leaf: as in `tree_flatten`.

    Returns:
        The list of leaves.

    >>> import tenferro_runtime as tr
    >>> tr.tree_leaves({"w": [1.0, 2.0], "b": None})
    [1.0, 2.0]
    """
    return _flatten(tree, is_leaf)[0]


def tree_structure(tree: Any, is_leaf: IsLeaf | None = None) -> TreeDef:
    """The structure of a tree; see `tree_flatten`.

    Args:
        tree: the tree.
        is_leaf: as in `tree_flatten`.

    Returns:
        The structure.

    >>> import tenferro_runtime as tr
    >>> tr.tree_structure((1.0, [2.0])) is tr.tree_structure((3.0, [4.0]))
    True
    """
    return _flatten(tree, is_leaf)[1]


@overload
def tree_map(f: Callable[..., R], tree: Leaf, *rest: Any, is_leaf: IsLeaf | None = ...) -> R: ...
@overload
def tree_map(f: Callable[..., Array], tree: T, *rest: Any, is_leaf: IsLeaf | None = ...) -> T: ...
@overload
def tree_map(f: Callable[..., Any], tree: Any, *rest: Any, is_leaf: IsLeaf | None = ...) -> Any: ...
def tree_map(f: Callable[..., Any], tree: Any, *rest: Any, is_leaf: IsLeaf | None = None) -> Any:
    """Apply a function to each leaf.

    Args:
        f: called with a leaf of `tree` and the subtrees at the same path of the other trees.
        tree: determines the structure of the result.
        rest: trees that have at least the containers of `tree`; dicts may have another order of keys.
        is_leaf: as in `tree_flatten`.

    Returns:
        The tree of results.

    Raises:
        ArgumentError: another tree differs; the message names the path.

    >>> import tenferro_runtime as tr
    >>> tr.tree_map(lambda p, g: p - 0.5 * g, {"w": 1.0, "b": (2.0,)}, {"w": 2.0, "b": (4.0,)})
    {'w': 0.0, 'b': (0.0,)}
    """
    leaves, treedef = _flatten(tree, is_leaf)
    return unflatten(treedef, [f(*row) for row in zip(leaves, *_columns(treedef, rest), strict=True)])


def tree_flatten_with_path(tree: Any, is_leaf: IsLeaf | None = None) -> tuple[list[tuple[TreePath, Any]], TreeDef]:
    """Flatten a tree into pairs of a path and a leaf; see `tree_flatten`.

    Args:
        tree: the tree.
        is_leaf: as in `tree_flatten`.

    Returns:
        The list of pairs, and the structure.

    >>> import tenferro_runtime as tr
    >>> for path, leaf in tr.tree_flatten_with_path({"w": [1.0, 2.0], "b": 3.0})[0]:
    ...     print(path, leaf)
    ['w'][0] 1.0
    ['w'][1] 2.0
    ['b'] 3.0
    """
    leaves, treedef = _flatten(tree, is_leaf)
    return list(zip(_paths(treedef), leaves, strict=True)), treedef


@overload
def tree_map_with_path(f: Callable[..., R], tree: Leaf, *rest: Any, is_leaf: IsLeaf | None = ...) -> R: ...
@overload
def tree_map_with_path(f: Callable[..., Array], tree: T, *rest: Any, is_leaf: IsLeaf | None = ...) -> T: ...
@overload
def tree_map_with_path(f: Callable[..., Any], tree: Any, *rest: Any, is_leaf: IsLeaf | None = ...) -> Any: ...
def tree_map_with_path(f: Callable[..., Any], tree: Any, *rest: Any, is_leaf: IsLeaf | None = None) -> Any:
    """Apply a function to each leaf and its path; see `tree_map`.

    Args:
        f: called with a path, a leaf of `tree` and the subtrees at the same path of the other trees.
        tree: determines the structure of the result.
        rest: trees that have at least the containers of `tree`.
        is_leaf: as in `tree_flatten`.

    Returns:
        The tree of results.

    >>> import tenferro_runtime as tr
    >>> tr.tree_map_with_path(lambda path, x: 0.0 if path[-1] == "bias" else 0.1 * x, {"w": 1.0, "bias": 2.0})
    {'w': 0.1, 'bias': 0.0}
    """
    leaves, treedef = _flatten(tree, is_leaf)
    rows = zip(_paths(treedef), leaves, *_columns(treedef, rest), strict=True)
    return unflatten(treedef, [f(*row) for row in rows])


def tree_reduce(f: Callable[[Any, Any], R], tree: Any, initial: Any = _MISSING, is_leaf: IsLeaf | None = None) -> R:
    """Combine the leaves from left to right: ``f(f(initial, leaf 0), leaf 1)`` and so on.

    Args:
        f: called with the accumulated value and the next leaf.
        tree: the tree.
        initial: the initial value; by default the first leaf.
        is_leaf: as in `tree_flatten`.

    Returns:
        The accumulated value.

    Raises:
        ArgumentError: the tree has no leaves, and there is no `initial`.

    >>> import tenferro_runtime as tr
    >>> tr.tree_reduce(lambda total, x: total + x, {"a": 1.0, "b": [2.0, 3.0]})
    6.0
    """
    leaves = tree_leaves(tree, is_leaf)
    if initial is not _MISSING:
        return functools.reduce(f, leaves, initial)
    if not leaves:
        raise ArgumentError("tree_reduce of a tree without leaves needs an initial value; pass initial=")
    return functools.reduce(f, leaves)


def tree_all(tree: Any, is_leaf: IsLeaf | None = None) -> bool:
    """Whether all leaves are true in Python's sense, which raises an error for traced arrays.

    Args:
        tree: the tree.
        is_leaf: as in `tree_flatten`.

    Returns:
        A Python boolean.

    >>> import tenferro_runtime as tr
    >>> tr.tree_all({"a": True, "b": [1, 0]}), tr.tree_all(None)
    (False, True)
    """
    return all(tree_leaves(tree, is_leaf))


def tree_transpose(outer: TreeDef, inner: TreeDef | None, tree: Any) -> Any:
    """Exchange the outer and the inner structure of a tree of trees.

    Args:
        outer: the outer structure.
        inner: the structure at each leaf of `outer`; by default that of the first one.
        tree: the tree.

    Returns:
        A tree with `inner` outside and `outer` inside.

    Raises:
        ArgumentError: the tree has another structure; the message names the path.

    >>> import tenferro_runtime as tr
    >>> rows = [{"x": 1, "y": 2}, {"x": 3, "y": 4}]
    >>> tr.tree_transpose(tr.tree_structure([0, 0]), tr.tree_structure({"x": 0, "y": 0}), rows)
    {'x': [1, 3], 'y': [2, 4]}
    """
    parts = flatten_like(_required(outer, "tree_transpose"), tree, "the tree given to tree_transpose", none=True)
    if inner is None:
        if not parts:
            raise ArgumentError("tree_transpose cannot find the inner structure: the outer one has no leaves; pass it")
        inner = flatten(parts[0])[1]
    shape = _required(inner, "tree_transpose")
    rows = [
        flatten_like(shape, part, f"the part{path and f' at {path}'} of the tree given to tree_transpose")
        for path, part in zip(outer.paths(), parts, strict=True)
    ]
    return unflatten(shape, [unflatten(outer, [row[i] for row in rows]) for i in range(shape.size)])


def _columns(treedef: TreeDef, rest: Sequence[Any]) -> list[list[Any]]:
    return [flatten_like(treedef, other, f"tree {i}", none=True) for i, other in enumerate(rest, 1)]


def _required(treedef: Any, what: str) -> TreeDef:
    if not isinstance(treedef, TreeDef):
        known = "a leaf" if container_of(type(treedef)) is None else "a tree"
        raise ArgumentError(
            f"{what} takes a structure, as tree_structure returns it, got {known}, {treedef!r:.60}; "
            "the structure comes first"
        )
    return treedef
