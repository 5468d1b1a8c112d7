"""`Explanation`: what a program costs, step by step."""

from __future__ import annotations

from dataclasses import dataclass

from tenferro_runtime.reports._table import aligned, readable
from tenferro_tensor import Spec
from tenferro_tensor_core import DimLike


@dataclass(frozen=True, slots=True)
class StepCost:
    """One step of an explanation; counts are polynomials where sizes are open.

    Attributes:
        index: position among the equations.
        primitive: name of the primitive.
        inputs: specs of the operands, class names for numbers.
        outputs: specs of the results.
        over: for each result the position of the operand whose memory it takes, or ``None``.
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
    over: tuple[int | None, ...]
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
        reused_bytes: bytes of results that take the memory of operands which nobody needs any more.
        input_bytes: bytes of the inputs.
        constant_bytes: bytes of the constants.
        peak_bytes: largest number of bytes alive at a time beside these, ``None`` where sizes are open.
        sizes: the sizes that were filled in.
    """

    steps: tuple[StepCost, ...]
    flops: DimLike
    unknown: int
    bytes: DimLike
    reused_bytes: DimLike
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
                ", ".join([_placed(*pair) for pair in zip(s.outputs, s.over, strict=True)]),
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
        reused = "" if self.reused_bytes == 0 else f", {readable(self.reused_bytes, 'B')} of results over operands"
        return (
            f"{aligned(rows, frozenset({0, 4, 5, 6}))}\n"
            f"{len(self.steps)} steps{given}: {readable(self.flops, 'flop')}{more}, {readable(self.bytes, 'B')} moved"
            f"{reused}; peak {peak} beside {readable(self.input_bytes, 'B')} of inputs and "
            f"{readable(self.constant_bytes, 'B')} of constants"
        )


def _placed(spec: Spec, over: int | None) -> str:
    """A result, and the operand that it is written over."""
    return f"{spec}" if over is None else f"{spec} over operand {over}"
