"""Derives the missing side of a rule, by transposing a linear function with a backward pass.

The transpose of a jvp is a vjp and the transpose of a vjp is a jvp, so one function serves both.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from tenferro_ad._backward import backward_pass
from tenferro_ad._differentiated import running
from tenferro_ad._eager import EagerTensor, all_watched
from tenferro_ad._zeros import zeros_like
from tenferro_tensor import next_level


def transposed(linear: Callable[..., Sequence[Any]], like: Sequence[Any], cotangents: Sequence[Any]) -> list[Any]:
    """Cotangents of the arguments of a linear function, from cotangents of its results.

    The function runs at zero, so it must not branch on values or divide by its arguments.

    Args:
        linear: a function linear over the reals, of values to a sequence of values; ``None`` is zero.
        like: values with the specs of its arguments.
        cotangents: cotangents of its results, ``None`` for zero.
    """
    level = next_level()
    leaves = all_watched([zeros_like(x) for x in like], level)
    outs = running(level, linear, *leaves)
    roots = [
        (out.node, c)
        for out, c in zip(outs, cotangents)
        if c is not None and out.__class__ is EagerTensor and out.level == level
    ]
    reached = backward_pass(roots, release=True)
    return [reached.get(x.node) for x in leaves]
