"""`contract`: a contraction of any number of operands along a tree, as one primitive.

If the backend has an engine for whole contractions (`Backend.contraction`), one call computes all steps; otherwise the
backend's kernels contract pair by pair.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from tenferro_einsum._pairwise import Pairwise
from tenferro_einsum._tree import Numbers, Steps, extents_by_label, structure, with_extents
from tenferro_runtime.extension import (
    ArgumentError,
    Cost,
    DimLike,
    DTypeError,
    Op,
    Spec,
    Tensor,
    get_backend,
    primitive,
    require_equal,
)
from tenferro_runtime.tracing import staged
from tenferro_tensor.device_model import ContractionKernel


@primitive(family="tenferro-einsum.contract.v1", extension="einsum", widens=True)
def contract(*xs: Spec, inputs: Steps, output: Numbers, steps: Steps, kept: Numbers = ()) -> Any:
    """Sum of products over numbered labels: operand ``i`` has labels ``inputs[i]``, the result has labels `output`.

    Labels are 0, 1, ...; a label may occur on any number of operands, and several times on one (its diagonal), but only
    once in the output. Values are numbered, operands first; each of `steps` takes one or two values and produces the
    next. The values in `kept` are further outputs, for use by derivatives; their axes are in the order in which the
    operands of their step have the labels. Products of integers wrap; booleans combine by and, then or.
    """
    sizes = checked_extents("contract", xs, inputs)
    tree = structure(inputs, output, steps, kept)
    outs = [xs[0].with_(shape=tuple([sizes[x] for x in tree.values[v]])) for v in kept]
    result = xs[0].with_(shape=tuple([sizes[x] for x in output]))
    return (result, *outs) if kept else result


def checked_extents(what: str, xs: tuple[Spec, ...], inputs: Steps) -> list[DimLike]:
    """The extent of each label, after checking that operands fit their labels and each other."""
    if len(xs) != len(inputs) or any(s.ndim != len(labels) for s, labels in zip(xs, inputs)):
        raise ArgumentError(f"{what}: the operands {', '.join(map(repr, xs))} do not have the axes of inputs={inputs}")
    if any(s.dtype != xs[0].dtype for s in xs):
        raise DTypeError(f"{what} needs operands of one dtype, got {', '.join(map(repr, xs))}; convert them first")
    sizes = extents_by_label(inputs, [s.shape for s in xs])
    for i, (s, labels) in enumerate(zip(xs, inputs, strict=True)):
        for axis, (d, x) in enumerate(zip(s.shape, labels, strict=True)):
            if d is not sizes[x]:
                require_equal(d, sizes[x], f"{what}: label {x} on axis {axis} of operand {i}")
    return sizes


def engine(ins: tuple[Spec, ...], inputs: Steps, output: Numbers, steps: Steps, kept: Numbers) -> Any:
    """The backend's kernel for the whole contraction, or ``None``."""
    device = ins[0].place.device
    sizes = extents_by_label(inputs, [s.shape for s in ins])
    ir = with_extents(structure(inputs, output, steps, kept), ins[0].dtype, sizes)
    found: ContractionKernel | None = get_backend(device.kind).contraction(ir, device)
    return found


def kernel(
    ins: tuple[Spec, ...], outs: tuple[Spec, ...], *, inputs: Steps, output: Numbers, steps: Steps, kept: Numbers = ()
) -> Callable[..., Any]:
    """The engine of the backend, or the pairwise steps on tensors."""
    found = engine(ins, inputs, output, steps, kept)
    if found is not None:
        return found.direct()
    sizes = extents_by_label(inputs, [s.shape for s in ins])
    way, wrap = Pairwise(inputs, output, steps, kept, sizes), Tensor.wrap

    def run(*raws: Any) -> Any:
        results = way(*[wrap(x, s) for x, s in zip(raws, ins, strict=True)])
        return tuple([z._data for z in results]) if kept else results[0]._data

    return run


def cost(
    ins: tuple[Spec, ...], outs: tuple[Spec, ...], *, inputs: Steps, output: Numbers, steps: Steps, kept: Numbers = ()
) -> Cost:
    """The operation counts of all steps."""
    sizes = extents_by_label(inputs, [s.shape for s in ins])
    ir = with_extents(structure(inputs, output, steps, kept), ins[0].dtype, sizes)
    return Cost(ir.flops)


def prune(op: Op, used: tuple[bool, ...]) -> tuple[Op, tuple[int | None, ...]] | None:
    """Drop unused kept values."""
    kept = op.params["kept"]
    left = tuple([v for v, u in zip(kept, used[1:]) if u])
    if left == kept:
        return None
    where = tuple([left.index(v) + 1 if v in left else None for v in kept])
    return contract.op(**{**op.params, "kept": left}), (0, *where)


def by_pairs(*xs: Any, inputs: Steps, output: Numbers, steps: Steps, kept: Numbers = ()) -> Any:
    """The expansion of a contraction into pairwise steps, for loop nests."""
    results = Pairwise(inputs, output, steps, kept, extents_by_label(inputs, [x.spec.shape for x in xs]))(*xs)
    return tuple(results) if kept else results[0]


def lower(
    e: Any, xs: Any, outs: Any, *, inputs: Steps, output: Numbers, steps: Steps, kept: Numbers = ()
) -> Sequence[Any]:
    """The lowering to StableHLO: pairwise steps, with operands in the order that XLA's matrix products prefer."""
    extents = extents_by_label(inputs, [x.spec.shape for x in xs])
    way = Pairwise(inputs, output, steps, kept, extents, turned=True)
    found: Sequence[Any] = e.inline(staged(way, [x.spec for x in xs]).program, xs)
    return found
