"""The backward pass: from cotangents of outputs to cotangents of leaves, visiting each node once.

One pass serves any number of roots and leaves. Its state is local, so passes may nest and run in threads.
Cotangents are ordinary values, so the pass itself can be recorded or traced.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from operator import attrgetter
from typing import Any, Final

import numpy as np

from tenferro_ad._limits_at_degeneracy import quiet
from tenferro_ad._node import SourcedNode, released
from tenferro_ad._parts import Parts
from tenferro_tensor.calls import Node, backward
from tenferro_tensor.transfers import forbidding

CHECKS: Final[list[Callable[[Iterable[Node]], None]]] = []
"""Checks of the nodes of a backward pass, made before it starts if transfers are forbidden."""

_seq = attrgetter("seq")


def backward_pass(roots: Iterable[tuple[Node, Any]], *, release: bool = False) -> dict[Node, Any]:
    """Propagate cotangents from root nodes to the leaves that they depend on.

    Args:
        roots: nodes of outputs with their cotangents.
        release: drop each node's saved values once it has been visited, so that memory falls during the pass; the
            graph cannot be used again.

    Returns:
        The cotangents of the leaves that were reached; a leaf without an entry has cotangent zero.
    """
    if forbidding():
        roots = list(roots)
        for check in CHECKS:
            check(reachable([node for node, _ in roots]))
    cotangents: dict[Node, Any] = {}
    failed: list[Node] = []
    # Derivatives at poles are infinite, and rules handle them: silence NumPy's warnings.
    with np.errstate(divide="ignore", invalid="ignore"):
        for node, g in roots:
            have = cotangents.get(node)
            cotangents[node] = g if have is None else have + g
        try:
            with quiet():
                backward(cotangents, released if release else None, failed)
        except Exception as error:
            if failed:
                _note_source(error, failed[0])
            raise
        for node, g in cotangents.items():
            if g.__class__ is Parts:
                cotangents[node] = g.whole()
    return cotangents


def reachable(roots: Iterable[Node]) -> list[Node]:
    """The roots and all their ancestors, in the order of recording."""
    order = list(roots)
    seen = set(order)
    for node in order:  # grows during the loop
        for parent in node.parents:
            if parent not in seen:
                seen.add(parent)
                order.append(parent)
    order.sort(key=_seq)
    return order


def _note_source(error: Exception, node: Node) -> None:
    op = getattr(node.vjp, "op", None)
    if op is None:
        return
    sourced = node if isinstance(node, SourcedNode) else node.vjp
    line = getattr(sourced, "where", "")
    where = f", recorded at {line}" if line else ""
    error.add_note(f"while pulling a cotangent back through {op!r}{where}")
