"""The values that a checkpoint saves besides its arguments: names, and policies that select.

A policy is called while a function is traced. Identity operations in the program mark the values that it selects, so
that programs derived from it know them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tenferro_ad._trees import as_value
from tenferro_runtime.extension import REGISTRY, Equation, Linear, Program
from tenferro_runtime.ir import kept
from tenferro_tensor import Array, Op, Primitive, Spec
from tenferro_tensor_core import ArgumentError

Policy = Callable[[Op], bool]
"""Returns whether to save the results of an operation."""


def _named(x: Spec, *, name: str) -> Spec:
    """The identity; marks `x` with a name for checkpoint policies."""
    return x


def _saved(x: Spec) -> Spec:
    """The identity; marks `x` as saved by its checkpoint."""
    return x


_named.__name__, _saved.__name__ = "named", "saved"
named = Primitive(_named, family="tenferro-ad.named.v1")
saved = Primitive(_saved, family="tenferro-ad.saved.v1")

REGISTRY.expansion(named, lambda x, name: x)
REGISTRY.expansion(saved, lambda x: x)
REGISTRY.rule(named, Linear(x=lambda g, name: g))
REGISTRY.rule(saved, Linear(x=lambda g: g))
REGISTRY.batching(named, lambda size, values, batched, name: named(values[0], name=name))
REGISTRY.batching(saved, lambda size, values, batched: saved(values[0]))


def checkpoint_name(x: Any, name: str) -> Array:
    """Name an array for the checkpoint policies `save_names` and `save_all_names_but`.

    Args:
        x: an array of any shape and dtype.
        name: the name; several values may share it.

    Returns:
        The same array, with its shape and dtype.

    Raises:
        ArgumentError: `name` is not a string.

    See also:
        checkpoint_policies.save_names: the policy that reads the names.

    >>> from tenferro_ad import checkpoint, checkpoint_name, checkpoint_policies, grad
    >>> def f(x):
    ...     y = checkpoint_name(tr.sin(x), "wave")
    ...     return tr.sum(tr.exp(y) * y)
    >>> grad(checkpoint(f, policy=checkpoint_policies.save_names("wave")))(tr.zeros(2))
    Tensor([1., 1.])
    """
    if not isinstance(name, str):
        raise ArgumentError(f"checkpoint_name takes a string as its name, got {name!r}")
    return named(as_value(x), name=name)


@kept
def marked(program: Program, policy: Policy) -> Program:
    """The program with the values marked that a policy saves."""
    specs, now = dict(program.specs), {v: v for v in program.specs}
    equations: list[Equation] = []
    for eq in program.equations:
        operands = tuple([now[v] if isinstance(v, int) else v for v in eq.operands])
        equations.append(Equation(eq.op, operands, eq.results, eq.source))
        if eq.op.primitive is saved or not policy(eq.op):
            continue
        for v in eq.results:
            if specs[v].inexact:
                now[v] = max(specs) + 1
                specs[now[v]] = specs[v]
                equations.append(Equation(saved.op(), (v,), (now[v],), eq.source))
    outputs = tuple([now[v] for v in program.output_ids])
    return program.with_(equations=tuple(equations), specs=specs, output_ids=outputs)


def kept_values(program: Program) -> tuple[int, ...]:
    """The variables of a program that a checkpoint saves."""
    return tuple([eq.results[0] for eq in program.equations if eq.op.primitive is saved])
