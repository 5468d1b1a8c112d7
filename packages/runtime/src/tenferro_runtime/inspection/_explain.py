"""`explain`: shapes, operations, bytes, device, kernel and source line of each step of a program."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any, Final

from tenferro_runtime.costs._bodies import programs_inside
from tenferro_runtime.costs._memory import MemoryPlan, plan_memory
from tenferro_runtime.costs._storage import Storage, nbytes
from tenferro_runtime.ir._call import is_part
from tenferro_runtime.ir._data_sizes import definitions
from tenferro_runtime.ir._program import Equation, Literal, Program
from tenferro_runtime.ir._sizes import substitute
from tenferro_runtime.lowering import native
from tenferro_runtime.reports import BodyCost, Explanation, StepCost
from tenferro_runtime.running import _executables as executables
from tenferro_runtime.running._execute import lowered
from tenferro_runtime.runtime import promised_like
from tenferro_tensor import REGISTRY, AcceleratorBackend, Backend, get_backend
from tenferro_tensor_core import ArgumentError, BackendUnavailableError, Dim, InconclusiveDimError

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
    given = _filled(program, sizes)
    program = lowered(promised_like(given, program))
    memory = plan_memory(program, donated)
    steps = step_costs(program, memory)
    compiler = executables.compiler_of(given)
    if compiler is not None:
        steps = tuple([replace(step, kernel=compiler.name) for step in steps])
    peak = None
    if sizes or not program.symbolic:
        natively = native.memory(given, tuple(donated))
        with suppress(InconclusiveDimError):  # a data-dependent size that is bounded by another size only
            peak = memory.peak(sizes) if natively is None else natively
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
        executables.how(given) or native.how(given),
    )


def _filled(program: Program, sizes: Mapping[str, int]) -> Program:
    """The program with numbers for its symbolic sizes; itself if none are given, or if some depend on data."""
    if not sizes:
        return program
    names = {n for spec in program.inputs for d in spec.shape if isinstance(d, Dim) for n in d.variables}
    if names != set(sizes):
        raise ArgumentError(
            f"the symbolic sizes of the program are {sorted(names) or 'none'}, but {sorted(sizes)} were given; "
            "give each of them, or none",
            sizes=tuple(sorted(names)),
        )
    return program if definitions(program) else substitute(program, sizes)


def step_costs(program: Program, memory: MemoryPlan) -> tuple[StepCost, ...]:
    """The cost of each step of a program, without further passes."""
    storage, specs = Storage(program), program.specs
    steps = []
    for i, (eq, c) in enumerate(zip(program.equations, memory.costs, strict=True)):
        operands = tuple([repr(v.value) if isinstance(v, Literal) else specs[v] for v in eq.operands])
        over = tuple([eq.operands.index(memory.victims[v]) if v in memory.victims else None for v in eq.results])
        bodies = []
        for title, inner, times, carried, donated, most in programs_inside(eq):
            inner = lowered(inner)
            bodies.append(BodyCost(title, times, carried, step_costs(inner, plan_memory(inner, donated)), most))
        steps.append(
            StepCost(
                i, name_of(eq), operands, tuple([specs[v] for v in eq.results]), over, c.flops,
                0 if c.bytes is None else c.bytes, c.workspace, memory.live[i], *_kernel(program, eq, storage),
                eq.where, tuple(bodies), _parts(eq),
            )
        )  # fmt: skip
    return tuple(steps)


def name_of(eq: Equation) -> str:
    """Name of the primitive; for a part, the names of its steps."""
    names = _parts(eq)
    if not names:
        return eq.op.primitive.name
    return f"fused({', '.join(names[:MAX_NAMED_STEPS])}{', …' * (len(names) > MAX_NAMED_STEPS)})"


def _parts(eq: Equation) -> tuple[str, ...]:
    """Names of the primitives of a part."""
    if not is_part(eq):
        return ()
    return tuple([inner.op.primitive.name for inner in eq.op.params["program"].equations])


def _kernel(program: Program, eq: Equation, storage: Storage) -> tuple[str, str]:
    """Device of an equation, and the module, or the backend, that provides or replaced its kernel."""
    place = program.specs[(*eq.variables, *eq.results)[0]].place
    if storage.is_view(eq):
        return str(place.device), "view"
    unregistered = "none"
    with suppress(BackendUnavailableError):
        backend = get_backend(place.device.kind)  # registers its kernels
        if type(backend).kernel not in (Backend.kernel, AcceleratorBackend.kernel):
            unregistered = backend.name  # makes kernels by itself
    make: Any = REGISTRY.find("kernel", eq.op.primitive, place.device.kind)
    module = unregistered if make is None else str(getattr(make, "__module__", type(make).__module__))
    made = REGISTRY.registration("kernel", eq.op.primitive, place.device.kind)
    if made is not None and made.replaced is not None:
        return str(place.device), f"replaced by {made.owner.distribution or made.owner.module}"
    return str(place.device), module.replace("tenferro_", "").replace("._", ".")
