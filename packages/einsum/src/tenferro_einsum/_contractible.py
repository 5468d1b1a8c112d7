"""Contractions of operands that are no arrays, such as sparse matrices: each step is done by such an operand.

The order of the steps is that of arrays of the same shapes, so `optimize=` and parentheses mean the same.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from tenferro_einsum._tree import Numbers, Steps, structure
from tenferro_tensor import Spec, tensor
from tenferro_tensor.contractible import contract, is_contractible


def stand_in(x: Any) -> Any:
    """The spec of an array in place of an operand that is none; other operands as they are."""
    return Spec(x.shape, x.dtype) if is_contractible(x) else x


def dense(x: Any) -> Any:
    """The array of all elements of such an operand."""
    axes = tuple(range(len(x.shape)))
    return _alone(x, axes, axes)


def run_steps(inputs: Steps, output: Numbers, steps: Steps, values: Sequence[Any], einsum: Callable[..., Any]) -> Any:
    """Contract values step by step.

    Args:
        inputs: labels of the operands; the extents of a label agree.
        output: labels of the result, all different.
        steps: numbers of the values that each step takes, operands first.
        values: operands.
        einsum: contraction of arrays.

    Returns:
        A value.
    """
    if not steps:
        return _alone(values[0], inputs[0], output)
    terms = list(structure(inputs, output, steps).values)
    found = list(values)
    for n, x in enumerate(values):
        once = tuple(dict.fromkeys(terms[n]))
        if once != terms[n] and not is_contractible(x):
            found[n], terms[n] = einsum(x, terms[n], once), once
    for step, out in zip(steps, terms[len(values) :], strict=True):
        if not any(is_contractible(found[v]) for v in step):
            found.append(einsum(*[part for v in step for part in (found[v], terms[v])], out))
        elif len(step) == 1:
            found.append(_alone(found[step[0]], terms[step[0]], out))
        else:
            x, y = step
            found.append(contract(found[x], terms[x], found[y], terms[y], out))
    return found[-1]


def _alone(x: Any, labels: Numbers, out: Numbers) -> Any:
    return contract(x, labels, tensor(1, dtype=x.dtype), (), out)
