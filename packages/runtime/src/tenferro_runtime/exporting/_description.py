"""The JSON description of a library's functions: names, dtypes and shapes of arrays, sizes, and error texts."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from typing import Final

from tenferro_runtime.ir._program import Program, ProgramError
from tenferro_tensor import Spec
from tenferro_tensor.loop_ir import LoopFunction, recourses
from tenferro_tensor_core import Dim

FORMAT: Final = 1
"""Version of the description and of the calling convention."""

NO_MEMORY: Final = 1
FIRST_REPORT: Final = 2
"""Return codes of functions: 0 is success; codes from `FIRST_REPORT` refer to the texts of `Described.reports`."""


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
        reports: error texts, in the order of their codes from `FIRST_REPORT`.
    """

    name: str
    sizes: tuple[str, ...]
    found: tuple[tuple[int, int], ...]
    inputs: tuple[ArrayArgument, ...]
    outputs: tuple[ArrayArgument, ...]
    reports: tuple[str, ...]

    def text(self) -> str:
        """The description as JSON."""
        return json.dumps({"format": FORMAT, **asdict(self)}, sort_keys=True)


def describe(name: str, program: Program, function: LoopFunction) -> Described:
    """The description of a program.

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
    return Described(name, function.sizes, tuple(found), inputs, outputs, tuple(_reports(function)))


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
    arrays = {
        k: tuple([ArrayArgument(a["name"], a["dtype"], tuple(a["shape"])) for a in data[k]])
        for k in ("inputs", "outputs")
    }
    found = tuple([(int(i), int(axis)) for i, axis in data["found"]])
    return Described(data["name"], tuple(data["sizes"]), found, **arrays, reports=tuple(data["reports"]))


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
