"""Derivatives of contractions: environments are shared along the tree.

A step ``z = sum x y`` hands the cotangent of z on as ``sum g conj(y)`` to x and ``sum g conj(x)`` to y: two
contractions of the size of the step itself. So all gradients together cost twice the operations of the contraction,
and once more where its intermediates were not kept, for any number of operands; tangents cost the same on the way up.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tenferro_einsum._contract import contract
from tenferro_einsum._pair import pair
from tenferro_einsum._pairwise import spread_diagonals
from tenferro_einsum._tree import Numbers, Steps, intermediates, numbered, structure
from tenferro_runtime.extension import DimLike
from tenferro_tensor import catalog

Maybe = Any | None


def pull(
    primals: Sequence[Any],
    outs: Sequence[Any],
    cotangents: Sequence[Maybe],
    *,
    inputs: Steps,
    output: Numbers,
    steps: Steps,
    kept: Numbers = (),
) -> tuple[Maybe, ...]:
    """Cotangents of all operands from those of the result and of the values that were kept."""
    tree = structure(inputs, output, steps, kept)
    found: dict[int, Any] = dict(zip(kept, cotangents[1:]))
    last = len(tree.values) - 1
    found[last] = cotangents[0]
    if not steps:
        return (_spread(found[0], output, inputs[0], primals[0].spec.shape),)
    values = _values(primals, outs, inputs, output, steps, kept)
    for number in reversed(range(len(steps))):
        g = found.pop(len(inputs) + number, None)
        if g is None:
            continue
        step, of_z = steps[number], tree.values[len(inputs) + number]
        for v, other in zip(step, reversed(step), strict=True):
            of_v, h, of_h = tree.values[v], g, of_z
            if len(step) == 2:
                of_h = tuple([x for x in dict.fromkeys(of_v) if x in of_z or x in tree.values[other]])
                h = pair(g, of_z, _conj(values[other]), tree.values[other], of_h)
            h = _spread(h, of_h, of_v, values[v].spec.shape)
            before = found.get(v)
            found[v] = h if before is None else before + h
    return tuple([found.get(v) for v in range(len(inputs))])


def push(
    primals: Sequence[Any],
    tangents: Sequence[Maybe],
    outs: Sequence[Any],
    *,
    inputs: Steps,
    output: Numbers,
    steps: Steps,
    kept: Numbers = (),
) -> tuple[Maybe, ...]:
    """Tangents of the result and of the values that were kept."""
    tree = structure(inputs, output, steps, kept)
    moved: list[Maybe] = list(tangents)
    if not steps:
        return (contract(moved[0], inputs=inputs, output=output, steps=steps),)
    values = _values(primals, outs, inputs, output, steps, kept)
    for number, step in enumerate(steps):
        of_z = tree.values[len(inputs) + number]
        terms = []
        for v, other in zip(step, reversed(step), strict=True):
            t = moved[v]
            if t is None:
                continue
            if len(step) == 1:
                (of_t,), of_out = numbered([tree.values[v]], of_z)
                terms.append(contract(t, inputs=(of_t,), output=of_out, steps=()))
            else:
                terms.append(pair(t, tree.values[v], values[other], tree.values[other], of_z))
        moved.append(None if not terms else terms[0] if len(terms) == 1 else terms[0] + terms[1])
    return (moved[-1], *[moved[v] for v in kept])


def _values(
    primals: Sequence[Any], outs: Sequence[Any], inputs: Steps, output: Numbers, steps: Steps, kept: Numbers
) -> list[Any]:
    """Every value but the last: those that were not kept are computed once more, in one contraction."""
    every = intermediates(inputs, steps)
    if kept == every:
        return [*primals, *outs[1:]]
    return [*primals, *contract(*primals, inputs=inputs, output=output, steps=steps, kept=every)[1:]]


def _conj(x: Any) -> Any:
    return catalog.conj(x) if x.spec.cplx else x


def _spread(g: Maybe, have: Numbers, want: Numbers, shape: tuple[DimLike, ...]) -> Maybe:
    """Transpose of taking diagonals and summing: repeated along labels that `have` lacks, zero off diagonals."""
    if g is None or have == want:
        return g
    distinct = tuple(dict.fromkeys(want))
    order = tuple([have.index(x) for x in distinct if x in have])
    if order != tuple(range(len(order))):
        g = catalog.transpose(g, permutation=order)
    if len(order) < len(distinct):
        g = catalog.broadcast_in_dim(
            g,
            shape=tuple([shape[want.index(x)] for x in distinct]),
            dims=tuple([a for a, x in enumerate(distinct) if x in have]),
        )
    diagonals = spread_diagonals(want)
    return g if diagonals is None else diagonals(g)
