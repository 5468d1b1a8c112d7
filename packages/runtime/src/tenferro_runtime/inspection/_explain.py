"""`explain`: each step of a program with its shapes, operations, bytes, device, kernel and line."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

from tenferro_runtime._program import Equation, Literal, Program
from tenferro_runtime.inspection._costs import cost
from tenferro_runtime.inspection._memory import plan_memory
from tenferro_runtime.inspection._sizes import filled
from tenferro_runtime.inspection._storage import Storage
from tenferro_runtime.reports import Explanation, StepCost
from tenferro_tensor import REGISTRY, Spec, get_backend
from tenferro_tensor_core import BackendUnavailableError


def explain(program: Program, **sizes: int) -> Explanation:
    """What each step of a program costs, and all together; see `Explanation`.

    Args:
        program: the program.
        sizes: values of the open sizes; all of them, or none to see polynomials.
    """
    program = filled(program, sizes)
    storage, memory = Storage(program), plan_memory(program)
    steps = []
    for i, eq in enumerate(program.equations):
        c, outs = cost(program, eq, storage), tuple([program.specs[v] for v in eq.results])
        device, kernel = _kernel(program, eq, storage)
        steps.append(
            StepCost(
                i, eq.op.primitive.name, _operands(program, eq), outs, c.flops, 0 if c.bytes is None else c.bytes,
                c.workspace, memory.live[i], device, kernel, eq.where,
            )
        )  # fmt: skip
    known = [s.flops for s in steps if s.flops is not None]
    return Explanation(
        tuple(steps),
        sum(known),
        len(steps) - len(known),
        sum([s.bytes for s in steps]),
        memory.inputs,
        memory.constants,
        None if program.symbolic else memory.peak({}),
        dict(sizes),
    )


def _operands(program: Program, eq: Equation) -> tuple[Spec | str, ...]:
    return tuple([repr(v.value) if isinstance(v, Literal) else program.specs[v] for v in eq.operands])


def _kernel(program: Program, eq: Equation, storage: Storage) -> tuple[str, str]:
    """Device of an equation, and the module that brings its kernel."""
    place = program.specs[(*eq.variables, *eq.results)[0]].place
    if storage.is_view(eq):
        return str(place.device), "view"
    with suppress(BackendUnavailableError):
        get_backend(place.device.kind)  # registers its kernels
    make: Any = REGISTRY.find("kernel", eq.op.primitive, place.device.kind)
    module = "none" if make is None else str(getattr(make, "__module__", type(make).__module__))
    return str(place.device), module.replace("tenferro_", "").replace("._", ".")
