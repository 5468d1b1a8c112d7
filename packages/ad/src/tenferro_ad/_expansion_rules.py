"""Rules of primitives that have an expansion but no rule: the expansion is differentiated."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from tenferro_ad._backward import backward_pass
from tenferro_ad._differentiated import running
from tenferro_ad._dual import Dual, dual
from tenferro_ad._eager import EagerTensor, all_watched
from tenferro_ad._rules import RULE_MAKERS
from tenferro_runtime.extension import General, interpret
from tenferro_runtime.tracing.expanding import apply_expansion, expansion_of, has_expansion
from tenferro_tensor import Op, Primitive, next_level
from tenferro_tensor_core import decisions


def rule_of_expansion(primitive: Primitive) -> General | None:
    """The rule that differentiates the expansion of a primitive; ``None`` if it has no expansion.

    The backward pass reruns the expansion from the operands, so any kernel may run the primitive itself.
    """
    if not has_expansion(primitive):
        return None

    def jvp(primals: tuple[Any, ...], tangents: tuple[Any, ...], outs: tuple[Any, ...], **params: Any) -> Any:
        expansion, level = _expansion(primitive.op(**params), primals), next_level()
        values = [x if t is None else dual(x, t, level) for x, t in zip(primals, tangents, strict=True)]
        found = running(level, expansion, values)
        return tuple([y.tangent if y.__class__ is Dual and y.level == level else None for y in found])

    def vjp(primals: tuple[Any, ...], outs: tuple[Any, ...], cotangents: tuple[Any, ...], **params: Any) -> Any:
        expansion, level = _expansion(primitive.op(**params), primals), next_level()
        places = [i for i, x in enumerate(primals) if x.spec.inexact]
        leaves = dict(zip(places, all_watched([primals[i] for i in places], level), strict=True))
        values = [leaves.get(i, x) for i, x in enumerate(primals)]
        found = running(level, expansion, values)
        roots = [
            (y.node, c)
            for y, c in zip(found, cotangents, strict=True)
            if c is not None and y.__class__ is EagerTensor and y.level == level
        ]
        reached = backward_pass(roots, release=True)
        return tuple([reached.get(leaves[i].node) if i in leaves else None for i in range(len(primals))])

    return General(jvp=jvp, vjp=vjp)


def _expansion(op: Op, primals: tuple[Any, ...]) -> Callable[[Sequence[Any]], tuple[Any, ...]]:
    """The expansion as a function of operands: its program, or its own steps if sizes are missing for a program."""
    sizes = decisions()
    known = () if sizes is None else tuple(sizes.guards)
    specs = tuple([x.spec for x in primals])
    program = expansion_of(op, specs, known, None if sizes is None else sizes.examples)
    return partial(apply_expansion, op) if program is None else partial(interpret, program)


RULE_MAKERS.append(rule_of_expansion)
