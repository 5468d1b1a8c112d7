"""`explain`: each step of a program with its shapes, operations, bytes, device, kernel and line."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tenferro_runtime._program import Equation, Literal, Program
from tenferro_runtime.inspection._costs import cost
from tenferro_runtime.inspection._memory import plan_memory
from tenferro_runtime.inspection._sizes import filled
from tenferro_runtime.inspection._storage import Storage
from tenferro_runtime.inspection._table import aligned, readable
from tenferro_tensor import REGISTRY, Spec
from tenferro_tensor_core import DimLike


@dataclass(frozen=True, slots=True)
class StepCost:
    """One step of an explanation; counts are polynomials where sizes are open.

    Attributes:
        index: position among the equations.
        primitive: name of the primitive.
        inputs: specs of the operands, class names for numbers.
        outputs: specs of the results.
        flops: floating-point operations, ``None`` where nobody has described the primitive.
        bytes: bytes read and written; none for a view.
        workspace: bytes that the kernel allocates for itself.
        live: bytes alive while the step runs, beside inputs and constants.
        device: where it runs.
        kernel: who brings the kernel.
        where: line of user code.
    """

    index: int
    primitive: str
    inputs: tuple[Spec | str, ...]
    outputs: tuple[Spec, ...]
    flops: DimLike | None
    bytes: DimLike
    workspace: DimLike
    live: DimLike
    device: str
    kernel: str
    where: str


@dataclass(frozen=True, slots=True, repr=False)
class Explanation:
    """What a program costs; prints as a table.

    Attributes:
        steps: the steps, in order of execution.
        flops: operations of all steps that are described.
        unknown: number of steps that are not.
        bytes: bytes that all steps read and write.
        input_bytes: bytes of the inputs.
        constant_bytes: bytes of the constants.
        peak_bytes: largest number of bytes alive at a time beside these, ``None`` where sizes are open.
        sizes: the sizes that were filled in.
    """

    steps: tuple[StepCost, ...]
    flops: DimLike
    unknown: int
    bytes: DimLike
    input_bytes: DimLike
    constant_bytes: DimLike
    peak_bytes: int | None
    sizes: dict[str, int]

    def __repr__(self) -> str:
        head = ("step", "primitive", "operands", "result", "flops", "bytes", "live", "device", "kernel", "line")
        rows = [head] + [
            (
                str(s.index),
                s.primitive,
                ", ".join(map(str, s.inputs)),
                ", ".join(map(str, s.outputs)),
                readable(s.flops),
                readable(s.bytes, "B"),
                readable(s.live, "B"),
                s.device,
                s.kernel,
                s.where,
            )
            for s in self.steps
        ]
        more = f" and {self.unknown} steps that are not described" if self.unknown else ""
        given = "".join([f", {name} = {n}" for name, n in self.sizes.items()])
        peak = "open, give the sizes" if self.peak_bytes is None else readable(self.peak_bytes, "B")
        return (
            f"{aligned(rows, frozenset({0, 4, 5, 6}))}\n"
            f"{len(self.steps)} steps{given}: {readable(self.flops, 'flop')}{more}, {readable(self.bytes, 'B')} moved; "
            f"peak {peak} beside {readable(self.input_bytes, 'B')} of inputs and "
            f"{readable(self.constant_bytes, 'B')} of constants"
        )


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
        c = cost(program, eq, storage)
        steps.append(
            StepCost(
                i, eq.op.primitive.name, _operands(program, eq), tuple([program.specs[v] for v in eq.results]), c.flops,
                0 if c.bytes is None else c.bytes, c.workspace, memory.live[i], *_kernel(program, eq, storage), eq.where,
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
    make: Any = REGISTRY.find("kernel", eq.op.primitive, place.device.kind)
    module = "none" if make is None else str(getattr(make, "__module__", type(make).__module__))
    return str(place.device), module.replace("tenferro_", "").replace("._", ".")
