"""Sliced contractions: one part of the extents of some labels at a time, so that intermediates are smaller.

A slice is a contraction of parts of the operands. Results of slices are summed, or concatenated along sliced labels of
the output. The gradient runs over the slices too, and recomputes their intermediates, so that neither direction needs
more memory than one slice, the operands' gradients and the result.

Values that are the same in every slice may be computed once, before the slices; the gradient then sums their cotangents
over the slices, and propagates them once, after the slices.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from tenferro_einsum import _derivatives
from tenferro_einsum._contract import by_pairs, checked_extents, contract
from tenferro_einsum._jobs import Job, flops_of, run
from tenferro_einsum._tree import Numbers, Sliced, Steps
from tenferro_runtime import trace
from tenferro_runtime.extension import Cost, General, Op, Registry, Spec, primitive


@primitive(family="tenferro-einsum.contract_slices.v1", extension="einsum", widens=True)
def contract_slices(
    *xs: Spec, inputs: Steps, output: Numbers, steps: Steps, sliced: Sliced, once: Numbers = (), branches: bool = False
) -> Spec:
    """Compute `contract` slice by slice; `sliced` holds pairs of a label and its number of parts.

    The values `once`, which do not depend on sliced labels, are computed before the slices. With `branches`, workers
    run branches of a single slice.
    """
    return contract.infer(*xs, inputs=inputs, output=output, steps=steps, kept=())  # type: ignore[return-value]


@primitive(family="tenferro-einsum.contract_slices_pull.v1", extension="einsum", widens=True)
def contract_slices_pull(
    g: Spec,
    *xs: Spec,
    inputs: Steps,
    output: Numbers,
    steps: Steps,
    sliced: Sliced,
    wanted: Numbers,
    once: Numbers = (),
    branches: bool = False,
) -> tuple[Spec, ...]:
    """Cotangents of the operands `wanted`, from the cotangent of `contract_slices`, slice by slice."""
    checked_extents("contract_slices_pull", (g, *xs), (output, *inputs))
    return tuple([xs[i] for i in wanted])


def _kernel(ins: Any, outs: Any, **params: Any) -> Callable[..., Any]:
    job = Job(specs=tuple(ins), **params)
    return lambda *raws: run(job, raws)[0]


def _pull_kernel(ins: Any, outs: Any, **params: Any) -> Callable[..., Any]:
    job = Job(specs=tuple(ins[1:]), **params)
    return lambda *raws: tuple(run(job, raws))


def _pull(primals: Sequence[Any], outs: Any, cotangents: Any, **params: Any) -> tuple[Any, ...]:
    return contract_slices_pull(cotangents[0], *primals, **params, wanted=tuple(range(len(primals))))


def _push(primals: Sequence[Any], tangents: Sequence[Any], outs: Any, **params: Any) -> tuple[Any, ...]:
    """The jvp, with one contraction for each tangent, because contractions are linear in each operand."""
    return (_sum([contract_slices(*_with(primals, i, t), **params) for i, t in _given(tangents)]),)


def _pull_pull(
    primals: Sequence[Any], outs: Any, cotangents: Any, *, wanted: Numbers, **params: Any
) -> tuple[Any, ...]:
    """The vjp of the vjp: cotangents of its outputs are tangents of the contraction."""
    g, *xs = primals
    given = [(wanted[k], h) for k, h in _given(cotangents)]
    back = _sum([contract_slices(*_with(xs, i, h), **params) for i, h in given])
    terms: list[list[Any]] = [[] for _ in xs]
    for i, h in given:
        others = tuple([j for j in range(len(xs)) if j != i])
        if others:
            found = contract_slices_pull(g, *_with(xs, i, h), **params, wanted=others)
            for j, part in zip(others, found, strict=True):
                terms[j].append(part)
    return (back, *map(_sum, terms))


def _pull_push(
    primals: Sequence[Any], tangents: Sequence[Any], outs: Any, *, wanted: Numbers, **params: Any
) -> tuple[Any, ...]:
    g, *xs = primals
    terms: list[list[Any]] = [[] for _ in wanted]
    for i, t in _given(tangents):
        h, ys = (t, xs) if i == 0 else (g, _with(xs, i - 1, t))
        others = tuple([j for j in wanted if j != i - 1])
        if others:
            for j, part in zip(others, contract_slices_pull(h, *ys, **params, wanted=others), strict=True):
                terms[wanted.index(j)].append(part)
    return tuple(map(_sum, terms))


def _given(values: Sequence[Any]) -> list[tuple[int, Any]]:
    return [(i, v) for i, v in enumerate(values) if v is not None]


def _with(xs: Sequence[Any], i: int, x: Any) -> list[Any]:
    return [x if k == i else y for k, y in enumerate(xs)]


def _sum(terms: list[Any]) -> Any:
    return None if not terms else sum(terms[1:], start=terms[0])


def _prune(op: Op, used: tuple[bool, ...]) -> tuple[Op, tuple[int | None, ...]] | None:
    wanted = op.params["wanted"]
    left = tuple([i for i, u in zip(wanted, used, strict=True) if u])
    if left == wanted or not left:
        return None
    where = tuple([left.index(i) if i in left else None for i in wanted])
    return contract_slices_pull.op(**{**op.params, "wanted": left}), where


def _cost(ins: Any, outs: Any, **params: Any) -> Cost:
    return Cost(flops_of(Job(specs=tuple(ins), **params)))


def _pull_cost(ins: Any, outs: Any, **params: Any) -> Cost:
    return Cost(flops_of(Job(specs=tuple(ins[1:]), **params)))


def _lower(
    e: Any, xs: Any, outs: Any, *, sliced: Sliced, once: Numbers = (), branches: bool = False, **params: Any
) -> Any:
    """Lower the whole contraction, because XLA plans memory itself."""
    (result,) = e.inline(trace(lambda *values: by_pairs(*values, **params), *[x.spec for x in xs]), xs)
    return result


def _lower_pull(
    e: Any,
    xs: Any,
    outs: Any,
    *,
    sliced: Sliced,
    wanted: Numbers,
    once: Numbers = (),
    branches: bool = False,
    **params: Any,
) -> Any:
    def pulled(g: Any, *values: Any) -> Any:
        found = _derivatives.vjp(values, (None,), (g,), **params)
        return tuple([found[i] for i in wanted])

    return tuple(e.inline(trace(pulled, *[x.spec for x in xs]), xs))


def register(registry: Registry) -> None:
    """Register kernels, rules, lowerings, costs and pruning."""
    registry.kernel(contract_slices, "*", _kernel)
    registry.kernel(contract_slices_pull, "*", _pull_kernel)
    registry.rule(contract_slices, General(jvp=_push, vjp=_pull))
    registry.rule(contract_slices_pull, General(jvp=_pull_push, vjp=_pull_pull))
    registry.lowering(contract_slices, _lower)
    registry.lowering(contract_slices_pull, _lower_pull)
    registry.cost(contract_slices, _cost)
    registry.cost(contract_slices_pull, _pull_cost)
    registry.pruning(contract_slices_pull, _prune, keeps_bits=True)
