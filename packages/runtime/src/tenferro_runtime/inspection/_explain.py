"""`explain`: shapes, operations, bytes, device, kernel and source line of each step of a program."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any, Final

from tenferro_runtime import whole
from tenferro_runtime.costs._memory import MemoryPlan, plan_memory
from tenferro_runtime.costs._storage import Storage, nbytes
from tenferro_runtime.inspection._bodies import Inside, programs_inside
from tenferro_runtime.inspection._sizes import filled
from tenferro_runtime.ir._call import is_part
from tenferro_runtime.ir._program import Equation, Literal, Program
from tenferro_runtime.reports import BodyCost, Explanation, StepCost
from tenferro_runtime.running import _executables as executables
from tenferro_runtime.running._execute import lowered
from tenferro_runtime.runtime import promised_like
from tenferro_tensor import REGISTRY, Spec, get_backend
from tenferro_tensor_core import BackendUnavailableError, InconclusiveDimError

MAX_NAMED_STEPS: Final = 4
"""Largest number of steps in the name of a part."""


def explain(program: Program, donated: Sequence[int] = (), /, **sizes: int) -> Explanation:
    """The cost of each step of a program, and their sum; see `Explanation`.

    The steps are those that run: a part that is one native function is one step, unless the runtime disables fusion.
    The steps of loop bodies, branches and called programs follow the step that runs them, with the cost of one run.

    Args:
        program: the program.
        donated: positions of inputs whose memory results may reuse.
        sizes: values of the symbolic sizes, all or none; without them, counts are polynomials.

    Returns:
        An `Explanation`.
    """
    given = filled(program, sizes)
    program = lowered(promised_like(given, program))
    memory = plan_memory(program, donated)
    steps = step_costs(program, memory)
    compiler = executables.compiler_of(given)
    if compiler is not None:
        steps = tuple([replace(step, kernel=compiler.name) for step in steps])
    peak = None
    if sizes or not program.symbolic:
        natively = whole.memory(given, tuple(donated))
        peak = _peak(memory, sizes) if natively is None else natively
    known = [s.flops for s in steps if s.flops is not None]
    return Explanation(
        steps,
        sum(known),
        len(steps) - len(known),
        sum([s.bytes for s in steps]),
        sum([nbytes(program.specs[v]) for v in memory.victims]),
        memory.inputs,
        memory.constants,
        peak,
        dict(sizes),
        executables.how(given) or whole.how(given),
    )


def _peak(memory: MemoryPlan, sizes: dict[str, int]) -> int | None:
    try:
        return memory.peak(sizes)
    except InconclusiveDimError:  # a data-dependent size that is bounded by another size only
        return None


def step_costs(program: Program, memory: MemoryPlan) -> tuple[StepCost, ...]:
    """The cost of each step of a program, without further passes."""
    storage = Storage(program)
    steps = []
    for i, eq in enumerate(program.equations):
        c, outs = memory.costs[i], tuple([program.specs[v] for v in eq.results])
        device, kernel = _kernel(program, eq, storage)
        steps.append(
            StepCost(
                i, name_of(eq), _operands(program, eq), outs, _over(eq, memory.victims), c.flops,
                0 if c.bytes is None else c.bytes, c.workspace, memory.live[i], device, kernel, eq.where,
                tuple([_inside(inside) for inside in programs_inside(eq)]), _parts(eq),
            )
        )  # fmt: skip
    return tuple(steps)


def _inside(inside: Inside) -> BodyCost:
    """The cost of one run of the program inside a step."""
    program = lowered(inside.program)
    steps = step_costs(program, plan_memory(program, inside.donated))
    return BodyCost(inside.title, inside.times, inside.carried, steps, inside.most)


def name_of(eq: Equation) -> str:
    """Name of the primitive; for a part, the names of its steps."""
    names = _parts(eq)
    if not names:
        return eq.op.primitive.name
    rest = ", …" if len(names) > MAX_NAMED_STEPS else ""
    return f"fused({', '.join(names[:MAX_NAMED_STEPS])}{rest})"


def _parts(eq: Equation) -> tuple[str, ...]:
    """Names of the primitives of a part."""
    if not is_part(eq):
        return ()
    return tuple([inner.op.primitive.name for inner in eq.op.params["program"].equations])


def _over(eq: Equation, victims: Mapping[int, int]) -> tuple[int | None, ...]:
    """The operand whose memory each result reuses."""
    return tuple([eq.operands.index(victims[v]) if v in victims else None for v in eq.results])


def _operands(program: Program, eq: Equation) -> tuple[Spec | str, ...]:
    return tuple([repr(v.value) if isinstance(v, Literal) else program.specs[v] for v in eq.operands])


def _kernel(program: Program, eq: Equation, storage: Storage) -> tuple[str, str]:
    """Device of an equation, and the module that provides or replaced its kernel."""
    place = program.specs[(*eq.variables, *eq.results)[0]].place
    if storage.is_view(eq):
        return str(place.device), "view"
    with suppress(BackendUnavailableError):
        get_backend(place.device.kind)  # registers its kernels
    make: Any = REGISTRY.find("kernel", eq.op.primitive, place.device.kind)
    module = "none" if make is None else str(getattr(make, "__module__", type(make).__module__))
    made = REGISTRY.registration("kernel", eq.op.primitive, place.device.kind)
    if made is not None and made.replaced is not None:
        return str(place.device), f"replaced by {made.owner.distribution or made.owner.module}"
    return str(place.device), module.replace("tenferro_", "").replace("._", ".")
