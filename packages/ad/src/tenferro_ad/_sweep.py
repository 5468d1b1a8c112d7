"""The reverse sweep: from cotangents of outputs to cotangents of leaves, each node once.

One pass serves any number of roots and leaves. Its state is local, so sweeps may nest and run in threads.
Cotangents are values like all others: whatever interprets them records or traces the sweep itself.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from operator import attrgetter
from typing import Any, Final, NoReturn

import numpy as np

from tenferro_ad._node import Node, SourcedNode, leaf, pick, released
from tenferro_tensor import HOST, Tensor
from tenferro_tensor._shortcuts import Shortcuts, Sweeping, when_offered
from tenferro_tensor.transfers import forbidding
from tenferro_tensor_core import GradientError

CHECKS: Final[list[Callable[[Iterable[Node]], None]]] = []
"""What looks at the nodes of a sweep before it begins, where transfers are forbidden."""

_new = object.__new__
_seq = attrgetter("seq")
_compiled: Callable[..., None] | None = None
"""The loop as machine code, where a backend offers it."""


def sweep(roots: Iterable[tuple[Node, Any]], *, release: bool = False) -> dict[Node, Any]:
    """Carry cotangents from root nodes to the leaves below them.

    Args:
        roots: nodes of outputs with their cotangents.
        release: let go of every visited node's saved values as soon as it is done, so that memory falls while the
            sweep runs; the graph cannot be swept again.

    Returns:
        The cotangents of the leaves that were reached; a leaf without an entry has the cotangent zero.
    """
    if forbidding():
        roots = list(roots)
        for check in CHECKS:
            check(reachable([node for node, _ in roots]))
    # Slopes at poles are infinite, and rules know what to do with them: NumPy's warnings about them are no news.
    with np.errstate(divide="ignore", invalid="ignore"):
        return _swept(roots, release)


def _swept(roots: Iterable[tuple[Node, Any]], release: bool) -> dict[Node, Any]:
    cotangents: dict[Node, Any] = {}
    take, find = cotangents.pop, cotangents.get
    for node, g in roots:
        have = cotangents.get(node)
        cotangents[node] = g if have is None else have + g
    if _compiled is not None:
        where: list[Any] = [None]
        try:
            _compiled(cotangents, release or None, where)
        except Exception as error:
            if where[0] is not None:
                _tell_where(error, where[0])
            raise
        return cotangents
    order = reachable(cotangents)
    while order:
        node = order.pop()
        pull = node.pull
        if pull is leaf:
            continue
        g = take(node, None)
        if g is not None:
            if pull is pick:
                _collect(cotangents, node, g)
            else:
                try:
                    pulled = pull(g, node.saved)
                except Exception as error:
                    _tell_where(error, node)
                    raise
                for parent, c in zip(node.parents, pulled):
                    if c is not None:
                        have = find(parent)
                        if have is None:
                            cotangents[parent] = c
                        else:
                            cotangents[parent] = _total(have, c)
        if release:
            node.pull, node.parents, node.saved = released, (), None
    return cotangents


def _total(have: Any, c: Any) -> Any:
    """The sum of two cotangents of one value."""
    if not (have.__class__ is Tensor is c.__class__ and c.spec.place is HOST):
        return have + c
    z = _new(Tensor)  # NumPy arrays of one spec: their own sum is the kernel
    z._data, z.spec = have._data + c._data, c.spec
    return z


def reachable(roots: Iterable[Node]) -> list[Node]:
    """The roots and all nodes below them in the order of recording."""
    order = list(roots)
    seen = set(order)
    for node in order:  # grows while it is walked
        for parent in node.parents:
            if parent not in seen:
                seen.add(parent)
                order.append(parent)
    order.sort(key=_seq)
    return order


def _collect(cotangents: dict[Node, Any], node: Node, g: Any) -> None:
    """Put the cotangent of one output where the operation of several outputs finds it."""
    index, count = node.saved
    slots = cotangents.setdefault(node.parents[0], [None] * count)
    slots[index] = g if slots[index] is None else slots[index] + g


def _tell_where(error: Exception, node: Node) -> None:
    op = getattr(node.pull, "op", None) or getattr(getattr(node.pull, "__self__", None), "op", None)
    if op is None:
        return
    told = node if isinstance(node, SourcedNode) else node.pull
    line = getattr(told, "where", "")
    where = f", recorded at {line}" if line else ""
    error.add_note(f"while pulling a cotangent back through {op!r}{where}")


def _newest_first(nodes: list[Node], _: None) -> None:
    nodes.sort(key=_seq, reverse=True)


def _damaged(node: Any) -> NoReturn:
    raise GradientError(
        f"the graph holds {node!r:.80} where a node with a pull and a tuple of parents is due; nodes belong to the "
        "library: record the value anew, and leave them as they are"
    )


def _shorten(shortcuts: Shortcuts) -> None:
    global _compiled
    _compiled = shortcuts.sweep(Sweeping(Node, leaf, pick, released, _collect, _total, _newest_first, _damaged))


when_offered(_shorten)
