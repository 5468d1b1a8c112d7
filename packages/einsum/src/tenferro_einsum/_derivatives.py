"""Derivatives of contractions: environments are shared along the tree, and all cotangents form one graph.

For any number of operands, all gradients together cost twice the operations of the contraction, and once more if its
intermediates were not kept; tangents cost the same.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tenferro_einsum._contractions import Maybe, graph_jvp, graph_vjp
from tenferro_einsum._graph import of_tree
from tenferro_einsum._tree import Numbers, Steps


def vjp(
    primals: Sequence[Any],
    outs: Sequence[Any],
    cotangents: Sequence[Maybe],
    *,
    inputs: Steps,
    output: Numbers,
    steps: Steps,
    kept: Numbers = (),
) -> tuple[Maybe, ...]:
    """Cotangents of all operands, from those of the result and of the kept values."""
    graph, last = of_tree(inputs, output, steps)
    return tuple(graph_vjp(primals, outs[1:] if kept else (), cotangents, inputs, graph, (last, *kept), kept))


def jvp(
    primals: Sequence[Any],
    tangents: Sequence[Maybe],
    outs: Sequence[Any],
    *,
    inputs: Steps,
    output: Numbers,
    steps: Steps,
    kept: Numbers = (),
) -> tuple[Maybe, ...]:
    """Tangents of the result and of the kept values."""
    graph, last = of_tree(inputs, output, steps)
    return tuple(graph_jvp(primals, outs[1:] if kept else (), tangents, inputs, graph, (last, *kept), kept))
