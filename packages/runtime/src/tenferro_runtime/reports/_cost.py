"""`Explanation`: the estimated cost of a program, step by step."""

from __future__ import annotations

from dataclasses import dataclass

from tenferro_runtime.reports._table import Tabular, TextTable
from tenferro_runtime.reports._walk import Visit, walk
from tenferro_tensor import Spec
from tenferro_tensor.markup import readable
from tenferro_tensor_core import DimLike


@dataclass(frozen=True, slots=True)
class StepCost:
    """One step of an explanation; counts are polynomials in symbolic sizes.

    Attributes:
        index: position among the equations.
        primitive: name of the primitive.
        inputs: specs of the operands, class names for numbers.
        outputs: specs of the results.
        over: for each result the position of the operand whose memory it reuses, or ``None``.
        flops: floating-point operations, ``None`` if the primitive has no cost model.
        bytes: bytes read and written; none for a view.
        workspace: bytes of the kernel's workspace.
        live: bytes alive during the step, without inputs and constants.
        device: where it runs.
        kernel: the provider of the kernel; the backend if it makes kernels that nobody registered.
        where: line of user code.
        bodies: the programs that the step runs: of a loop, a branch or a call.
        parts: the primitives of a fused step, in order.
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
    bodies: tuple[BodyCost, ...] = ()
    parts: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class BodyCost:
    """A program that a step runs: the body or the condition of a loop, a branch, a called program.

    Attributes:
        title: its role in the step, such as ``"body"``.
        times: how often it runs, ``None`` if that depends on data.
        carried_bytes: bytes carried between iterations.
        steps: costs of its steps in one run.
        most: largest number of runs, if their number depends on data.
    """

    title: str
    times: DimLike | None
    carried_bytes: DimLike
    steps: tuple[StepCost, ...]
    most: DimLike | None = None

    @property
    def flops(self) -> DimLike:
        """Operations of one run, of all steps with a cost model."""
        return sum([s.flops for s in self.steps if s.flops is not None])

    @property
    def bytes(self) -> DimLike:
        """Bytes that the steps read and write in one run."""
        return sum([s.bytes for s in self.steps])


@dataclass(frozen=True, slots=True, repr=False)
class Explanation(Tabular):
    """The cost of a program; prints as a table.

    The row of a loop has what all its iterations cost, where their number is known; else one iteration. The rows of its
    body have one iteration.

    Attributes:
        steps: the steps, in order of execution.
        flops: operations of all steps with a cost model.
        unknown: number of steps without one.
        bytes: bytes that all steps read and write.
        reused_bytes: bytes of results that reuse the memory of dead operands.
        input_bytes: bytes of the inputs.
        constant_bytes: bytes of the constants.
        peak_bytes: peak of the live bytes in addition to these, ``None`` if sizes are symbolic; for a native function,
            its temporaries and outputs.
        sizes: the sizes that were filled in.
        form: how a program with loops or branches runs: as one native function, step by step while that is compiled,
            or step by step and why.
    """

    _heading = "Cost of a program"

    steps: tuple[StepCost, ...]
    flops: DimLike
    unknown: int
    bytes: DimLike
    reused_bytes: DimLike
    input_bytes: DimLike
    constant_bytes: DimLike
    peak_bytes: int | None
    sizes: dict[str, int]
    form: str = ""

    def _table(self) -> TextTable:
        head = ("step", "primitive", "operands", "result", "flops", "bytes", "live", "device", "kernel", "line")
        rows = [_row(v) for v in walk(self.steps)]
        more = f" and {self.unknown} steps that are not described" if self.unknown else ""
        given = "".join([f", {name} = {n}" for name, n in self.sizes.items()])
        peak = "open, give the sizes" if self.peak_bytes is None else readable(self.peak_bytes, "B")
        reused = "" if self.reused_bytes == 0 else f", {readable(self.reused_bytes, 'B')} of results over operands"
        foot = (
            f"{len(self.steps)} steps{given}: {readable(self.flops, 'flop')}{more}, {readable(self.bytes, 'B')} moved"
            f"{reused}; peak {peak} beside {readable(self.input_bytes, 'B')} of inputs and "
            f"{readable(self.constant_bytes, 'B')} of constants" + (f"\n{self.form}" if self.form else "")
        )
        return TextTable(head, rows, frozenset({0, 4, 5, 6}), foot)


def _row(v: Visit) -> tuple[str, ...]:
    s = v.step
    if s is None:
        body = v.bodies[-1]
        return "", v.indent + titled(body), "", "", readable(body.flops), readable(body.bytes, "B"), *[""] * 4
    return (
        v.number, v.indent + s.primitive, ", ".join(map(str, s.inputs)),
        ", ".join([_placed(*pair) for pair in zip(s.outputs, s.over, strict=True)]), readable(s.flops),
        readable(s.bytes, "B"), readable(s.live, "B"), s.device, s.kernel, s.where,
    )  # fmt: skip


def titled(body: BodyCost) -> str:
    """The heading of the steps of a nested program, with the number of runs unless it is 1.

    >>> titled(BodyCost("body", 40, 16, ()))
    'body, 40 times, carries 16 B:'
    >>> titled(BodyCost("condition", None, 0, (), most=8))
    'condition, at most 8 times:'
    """
    often = "" if body.times is None or body.times == 1 else f", {body.times} times"
    often = often if body.most is None else f", at most {body.most} times"
    nothing = isinstance(body.carried_bytes, int) and not body.carried_bytes
    carries = "" if nothing else f", carries {readable(body.carried_bytes, 'B')}"
    return f"{body.title}{often}{carries}:"


def _placed(spec: Spec, over: int | None) -> str:
    """A result, and the operand that it overwrites."""
    return f"{spec}" if over is None else f"{spec} over operand {over}"
