"""Batching of equations: the equations of all lanes become one equation, with one solver and one derivative.

If lanes take different decisions in a solver, a recorded loop ends for each lane at its own step. A solver that needs
concrete elements is called lane by lane.
"""

from __future__ import annotations

from typing import Any

from tenferro_runtime.batching import Shared, all_with_lanes, batched_body
from tenferro_runtime.equations._primitives import linear_solve, parted, root
from tenferro_runtime.ir._program import Program
from tenferro_tensor import REGISTRY, Primitive
from tenferro_tensor_core import DimLike

_LINEAR = ("matvec", "solve", "transpose_solve")
_ROOT = ("f", "solve", "tangent_solve", "adjoint_solve")


def _batch(
    primitive: Primitive,
    names: tuple[str, ...],
    size: DimLike,
    values: tuple[Any, ...],
    batched: tuple[bool, ...],
    params: dict[str, Any],
) -> Any:
    consts = params["consts"]
    flags = parted(batched, consts)
    *fixed, unknowns = parted(values, consts)
    lanes = all_with_lanes(size, unknowns, flags[-1])
    count, made = len(lanes), dict(params)
    different: tuple[bool, ...] = ()
    for name, own in zip(names, flags, strict=False):
        program: Program | None = params[name]
        if program is None:
            continue
        rest = (True,) * (len(program.input_ids) - len(own))
        wanted = (*(True,) * count, *(False,) * (len(program.output_ids) - count))
        found = batched_body(program, (*own, *rest), size, wanted)
        made[name] = found.program
        if name == "solve":
            different = found.batched
    outs = primitive(*[x for part in fixed for x in part], *lanes, **made)
    return tuple([x if own else Shared(x) for x, own in zip(outs, different, strict=True)])


def _linear(size: DimLike, values: tuple[Any, ...], batched: tuple[bool, ...], **params: Any) -> Any:
    return _batch(linear_solve, _LINEAR, size, values, batched, params)


def _root(size: DimLike, values: tuple[Any, ...], batched: tuple[bool, ...], **params: Any) -> Any:
    return _batch(root, _ROOT, size, values, batched, params)


REGISTRY.batching(linear_solve, _linear)
REGISTRY.batching(root, _root)
