"""The JSON description of a library's functions: names, dtypes and shapes of arrays, sizes, and error texts."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from typing import Final, NamedTuple

from tenferro_runtime.ir._program import Program, ProgramError
from tenferro_runtime.lowering._lower import relied_on
from tenferro_tensor import Spec
from tenferro_tensor.backends import ObjectTarget, SizeCondition
from tenferro_tensor.loop_ir import LoopFunction, recourses
from tenferro_tensor_core import Dim, dim

FORMAT: Final = 2
"""Version of the description and of the calling convention."""

NO_MEMORY: Final = 1
FIRST_REPORT: Final = 2
"""Return codes of functions: 0 is success; codes from `FIRST_REPORT` refer to the texts of `Described.codes`."""


@dataclass(frozen=True)
class ArrayArgument:
    """An array that a function reads or writes, row-major and contiguous.

    Attributes:
        name: name of the argument.
        dtype: name of the dtype.
        shape: extents, integers or expressions of sizes.
    """

    name: str
    dtype: str
    shape: tuple[int | str, ...]


@dataclass(frozen=True)
class Described:
    """A function of a library.

    Attributes:
        name: its symbol.
        sizes: names of the symbolic sizes, the first arguments.
        found: an input and an axis whose extent is the size, for each size.
        inputs: the arrays that are read.
        outputs: the arrays that are written.
        reports: texts of failed steps.
        checks: texts of conditions on sizes: of bounds, then of others.
        level: the vector level of the machine code.
        processor: the processors that run it, in words.
    """

    name: str
    sizes: tuple[str, ...]
    found: tuple[tuple[int, int], ...]
    inputs: tuple[ArrayArgument, ...]
    outputs: tuple[ArrayArgument, ...]
    reports: tuple[str, ...]
    checks: tuple[str, ...]
    level: str
    processor: str

    @property
    def codes(self) -> tuple[str, ...]:
        """The texts of codes from `FIRST_REPORT` on."""
        old = f"this processor or its system lacks instructions that the library was built for ({self.processor})"
        return (*self.reports, *self.checks, f"{old}; export it with a lower level than {self.level}")

    def text(self) -> str:
        """The description as JSON."""
        return json.dumps({"format": FORMAT, **asdict(self)}, sort_keys=True)


class Conditions(NamedTuple):
    """The conditions on sizes under which a function runs.

    Attributes:
        bounds: conditions on single sizes.
        others: all other conditions.
        texts: their texts, those of bounds first.
    """

    bounds: tuple[SizeCondition, ...]
    others: tuple[SizeCondition, ...]
    texts: tuple[str, ...]


def conditions(program: Program, function: LoopFunction) -> Conditions:
    """The conditions on sizes: bounds of sizes, guards of the program, extents, and requirements of accesses.

    Args:
        program: the program.
        function: its loop nests.
    """
    bounds: list[tuple[SizeCondition, str]] = []
    for size in function.sizes:
        low, high = _bounds(program, size)
        bounds.append((SizeCondition(dim(size), ">=", low), f"{size} must be at least {low}"))
        if high is not None:
            bounds.append((SizeCondition(dim(size), "<=", high), f"{size} must be at most {high}"))
    others = [
        (SizeCondition(g.lhs, g.op, g.rhs), f"the program was traced under the condition {g}") for g in program.guards
    ]
    for spec in (*program.inputs, *program.outputs):
        for d in spec.shape:
            if isinstance(d, Dim) and str(d) not in function.sizes:
                others.append((SizeCondition(d, ">=", 0), f"the extent {d} must not be negative"))
    guards = set(relied_on(program))
    for r in function.requires:
        if r not in guards:
            where = f" where {' and '.join([f'{n} > 0' for n in r.when])}" if r.when else ""
            text = f"the program reads or writes arrays only if {r.holds} >= 0{where}"
            others.append((SizeCondition(r.holds, ">=", 0, r.when), text))
    others = list(dict(others).items())
    return Conditions(
        tuple([c for c, _ in bounds]), tuple([c for c, _ in others]), tuple([text for _, text in (*bounds, *others)])
    )


def _bounds(program: Program, size: str) -> tuple[int, int | None]:
    """The bounds of a size, as its variable was declared."""
    for spec in program.inputs:
        for d in spec.shape:
            if isinstance(d, Dim) and str(d) == size:
                return max(0, d.lower or 0), d.upper
    return 0, None


def describe(
    name: str, program: Program, function: LoopFunction, checks: tuple[str, ...], target: ObjectTarget
) -> Described:
    """The description of a program.

    Args:
        name: its symbol.
        program: the program.
        function: its loop nests.
        checks: texts of its conditions on sizes.
        target: the processors that run it.

    Raises:
        ProgramError: a symbolic size is not the extent of an input.
    """
    found = []
    for size in function.sizes:
        where = [
            (k, axis)
            for k, s in enumerate(program.inputs)
            for axis, d in enumerate(s.shape)
            if isinstance(d, Dim) and str(d) == size
        ]
        if not where:
            raise ProgramError(
                f"the size {size} of {name} is not the extent of an input, so that the arrays do not determine it; "
                "trace with sizes that are extents by themselves"
            )
        found.append(where[0])
    names = _names(program)
    inputs = tuple([_argument(n, s) for n, s in zip(names, program.inputs, strict=True)])
    outputs = tuple([_argument(f"result{k}" if k else "result", s) for k, s in enumerate(program.outputs)])
    reports = tuple(_reports(function))
    return Described(
        name, function.sizes, tuple(found), inputs, outputs, reports, checks, target.level, target.processor
    )


def described(text: str) -> Described:
    """Parse a description.

    Raises:
        ProgramError: it has another version.
    """
    data = json.loads(text)
    version = data.pop("format", None)
    if version != FORMAT:
        raise ProgramError(
            f"the library was made in format {version}, and this version of tenferro reads format {FORMAT}; export "
            "it again"
        )
    inputs, outputs = (
        tuple([ArrayArgument(a["name"], a["dtype"], tuple(a["shape"])) for a in data[k]]) for k in ("inputs", "outputs")
    )
    found = tuple([(int(i), int(axis)) for i, axis in data["found"]])
    reports, checks = tuple(data["reports"]), tuple(data["checks"])
    return Described(
        data["name"], tuple(data["sizes"]), found, inputs, outputs, reports, checks, data["level"], data["processor"]
    )


def _argument(name: str, spec: Spec) -> ArrayArgument:
    return ArrayArgument(name, spec.dtype.name, tuple([d if isinstance(d, int) else str(d) for d in spec.shape]))


def _names(program: Program) -> list[str]:
    """Unique C names of the inputs."""
    found: list[str] = []
    for k, v in enumerate(program.input_ids):
        name = "".join([c if c.isalnum() else "_" for c in program.names.get(v, f"x{k}")]).strip("_") or f"x{k}"
        name = name if name.isascii() and not name[0].isdigit() and name not in found else f"x{k}"
        found.append(name)
    return found


def _reports(function: LoopFunction) -> list[str]:
    """The errors that end a run, in the order of their codes."""
    texts = []
    for call in recourses(function.body):
        at = f" at {call.where}" if call.where else ""
        why = "LAPACK did not succeed, an entry is not finite, or only its kernel takes such an extent"
        texts.append(f"{call.op.primitive.name.rstrip('_')}{at}: {why}")
    return texts
