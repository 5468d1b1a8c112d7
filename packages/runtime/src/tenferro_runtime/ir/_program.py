"""`Program`: a function of arrays as data, in single-assignment form.

Variables are integers, each defined once: as an input, as a constant, or as a result of one equation. `_spec_check`
holds the executable specification of programs.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from tenferro_runtime.ir._bind import is_open_op
from tenferro_runtime.ir._source import Source, where
from tenferro_runtime.ir._structure import Structured
from tenferro_runtime.ir._tools import Tooled, above
from tenferro_tensor import Op, Spec, Tensor
from tenferro_tensor_core import Guard, TenferroError, key_of
from tenferro_tensor_core.tracebacks import hide_frames


class ProgramError(TenferroError, ValueError):
    """A program violates the specification of programs, or cannot run on the given values.

    The message names the equation and its line of user code. Tracing never violates the specification: the cause is a
    pass, a program built by hand or a damaged file.
    """


class Literal:
    """A Python scalar as an operand; weak: it takes the dtype of the other operands."""

    __slots__ = ("value",)
    value: complex

    def __init__(self, value: complex) -> None:
        self.value = value

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Literal) and key_of(self.value) == key_of(other.value)

    def __hash__(self) -> int:
        return hash(key_of(self.value))

    def __repr__(self) -> str:
        return repr(self.value)


Operand = int | Literal
"""A variable, or a Python scalar."""


class Equation:
    """One step: ``results = op(operands)``.

    Attributes:
        op: the op.
        operands: variables and literals.
        results: variables defined here, one for each output.
        source: line of user code.
    """

    __slots__ = ("op", "operands", "results", "source")
    op: Op
    operands: tuple[Operand, ...]
    results: tuple[int, ...]
    source: Source

    def __init__(self, op: Op, operands: tuple[Operand, ...], results: tuple[int, ...], source: Source = None) -> None:
        self.op, self.operands, self.results, self.source = op, operands, results, source

    @property
    def variables(self) -> tuple[int, ...]:
        """The operands that are variables."""
        return tuple([v for v in self.operands if v.__class__ is int])

    @property
    def where(self) -> str:
        """Line of user code, ``file.py:12``."""
        return where(self.source)

    def __str__(self) -> str:
        left = ", ".join(f"v{v}" for v in self.results)
        right = ", ".join(f"v{v}" if v.__class__ is int else repr(v) for v in self.operands)
        return f"{left} = {self.op!r}({right})"


class Program(Structured, Tooled):
    """A function of arrays as data: inputs, constants, equations, outputs. Immutable, compared by identity.

    Attributes:
        input_ids: variables of the inputs.
        constants: concrete tensors by variable.
        equations: the steps, in order of execution.
        output_ids: variables of the outputs.
        specs: spec of each variable.
        names: names of inputs, for display.
        guards: conditions on symbolic sizes that the trace relied on.
        examples: example sizes that decided the guards.
    """

    __slots__ = (
        "__weakref__", "constants", "equations", "examples", "guards", "input_ids", "memo", "names", "output_ids",
        "specs",
    )  # fmt: skip
    equations: tuple[Equation, ...]
    constants: Mapping[int, Tensor]
    examples: Mapping[str, int]
    guards: tuple[Guard, ...]
    input_ids: tuple[int, ...]
    names: Mapping[int, str]
    output_ids: tuple[int, ...]
    specs: Mapping[int, Spec]

    def __init__(
        self,
        input_ids: tuple[int, ...],
        constants: Mapping[int, Tensor],
        equations: tuple[Equation, ...],
        output_ids: tuple[int, ...],
        specs: Mapping[int, Spec],
        *,
        names: Mapping[int, str] | None = None,
        guards: tuple[Guard, ...] = (),
        examples: Mapping[str, int] | None = None,
    ) -> None:
        self.input_ids, self.constants, self.equations = input_ids, constants, equations
        self.output_ids, self.specs, self.names = output_ids, specs, names or {}
        self.guards, self.examples = guards, examples or {}
        self.memo: dict[Any, Any] = {}
        """Data that executors and compilers cache for this program."""

    @property
    def inputs(self) -> tuple[Spec, ...]:
        """Specs of the inputs."""
        return tuple([self.specs[v] for v in self.input_ids])

    @property
    def outputs(self) -> tuple[Spec, ...]:
        """Specs of the outputs."""
        return tuple([self.specs[v] for v in self.output_ids])

    @property
    def symbolic(self) -> bool:
        """Whether the program has symbolic sizes."""
        found: bool | None = self.memo.get("symbolic")
        if found is None:
            found = any(s.symbolic for s in self.specs.values()) or any(is_open_op(eq.op) for eq in self.equations)
            self.memo["symbolic"] = found
        return found

    def with_(
        self,
        *,
        input_ids: tuple[int, ...] | None = None,
        constants: Mapping[int, Tensor] | None = None,
        equations: tuple[Equation, ...] | None = None,
        output_ids: tuple[int, ...] | None = None,
        specs: Mapping[int, Spec] | None = None,
        guards: tuple[Guard, ...] | None = None,
    ) -> Program:
        """A copy with parts replaced; specs of variables that no longer occur are dropped.

        Args:
            input_ids: new inputs.
            constants: new constants.
            equations: new equations.
            output_ids: new outputs.
            specs: new specs.
            guards: new guards.

        Returns:
            The program.
        """
        input_ids = self.input_ids if input_ids is None else input_ids
        constants = self.constants if constants is None else constants
        equations = self.equations if equations is None else equations
        specs = self.specs if specs is None else specs
        kept = {v: specs[v] for v in (*input_ids, *constants)}
        for eq in equations:
            for v in eq.results:
                kept[v] = specs[v]
        made = Program(
            input_ids,
            constants,
            equations,
            self.output_ids if output_ids is None else output_ids,
            kept,
            names=self.names,
            guards=self.guards if guards is None else guards,
            examples=self.examples,
        )
        if WRITTEN_OUT in self.memo:
            made.memo[WRITTEN_OUT] = True
        return made

    def run(self, *values: Any) -> tuple[Any, ...]:
        """Run the program.

        Args:
            values: one concrete, differentiated or traced array for each input, in order.

        Returns:
            The outputs.

        Raises:
            ProgramError: the number or the specs of the values do not fit.
        """
        try:
            results: tuple[Any, ...] = above("running").run(self, values)
        except Exception as error:
            hide_frames(error)
            raise
        return results

    def __call__(self, *values: Any) -> Any:
        """Run the program, as `run` does; one output is returned by itself, several as a tuple.

        Args:
            values: one array for each input, in order.

        Returns:
            The output, or the tuple of outputs.

        Raises:
            ProgramError: the number or the specs of the values do not fit.

        >>> import tenferro_runtime as tr
        >>> program = tr.trace(lambda x: x * x, tr.asarray([1.0, 2.0]))
        >>> program(tr.asarray([3.0, 4.0]))
        Tensor([ 9., 16.])
        """
        try:
            results = self.run(*values)
        except Exception as error:
            hide_frames(error)
            raise
        return results[0] if len(results) == 1 else results

    def __repr__(self) -> str:
        ins, outs = (", ".join(map(repr, s)) for s in (self.inputs, self.outputs))
        return f"<program ({ins}) -> ({outs}), {len(self.equations)} equations>"

    def __str__(self) -> str:
        lines = [f"program({', '.join(f'{self.label(v)}: {self.specs[v]!r}' for v in self.input_ids)}) {{"]
        lines += [f"  {self.label(v)}: {c.spec!r} = constant {_brief(c)}" for v, c in self.constants.items()]
        for eq in self.equations:
            lines.append(f"  {self.show(eq)}")
            for name, inner in _named_programs(eq.op.params):
                lines += [f"    {line}" for line in f"{name}: {inner}".splitlines()]
        lines += [f"  guard {guard}" for guard in self.guards]
        lines += [f"  return {', '.join(map(self.label, self.output_ids))}", "}"]
        return "\n".join(_in_line(lines))

    def label(self, v: Operand) -> str:
        """An operand as it is printed: the name of an input, ``v7``, or a number.

        Args:
            v: the operand.

        Returns:
            The text.
        """
        if isinstance(v, Literal):
            return repr(v.value)
        return self.names.get(v, f"v{v}")

    def show(self, eq: Equation) -> str:
        """An equation as it is printed, with specs and its line of user code.

        Args:
            eq: the equation.

        Returns:
            The text.
        """
        left = ", ".join(f"{self.label(v)}: {self.specs[v]!r}" if v in self.specs else f"v{v}" for v in eq.results)
        inner = ", ".join(f"{k}={v!r}" if isinstance(v, Program) else f"{k}={v}" for k, v in eq.op.params.items())
        head = f"{eq.op.primitive.name}[{inner}]" if inner else eq.op.primitive.name
        text = f"{left} = {head}({', '.join(map(self.label, eq.operands))})"
        return f"{text}  # {eq.where}" if eq.where else text


def inner_programs(params: Mapping[str, Any]) -> list[Program]:
    """The programs in the metadata of an op: a called program, a body, branches.

    Args:
        params: the metadata.

    Returns:
        The programs, in order.
    """
    return [program for _, program in _named_programs(params)]


def _named_programs(params: Mapping[str, Any]) -> list[tuple[str, Program]]:
    found: list[tuple[str, Program]] = []
    for name, v in params.items():
        if isinstance(v, Program):
            found.append((name, v))
        elif v.__class__ is tuple:
            found += [(f"{name}[{i}]", p) for i, p in enumerate(v) if isinstance(p, Program)]
    return found


WRITTEN_OUT: Final = "written out"
"""Key of a program's memo: the user asked for its loops to be unrolled."""

SOURCE_COLUMN_MAX: Final = 100
"""Largest column at which source lines next to equations are aligned."""


def _in_line(lines: list[str]) -> list[str]:
    """Align the comments of lines of text."""
    split = [line.rpartition("  # ") if "  # " in line else (line, "", "") for line in lines]
    texts = [text.rstrip() for text, _, _ in split]
    column = min(
        SOURCE_COLUMN_MAX, max((len(t) for t, (_, sign, _) in zip(texts, split, strict=True) if sign), default=0)
    )
    return [f"{t.ljust(column)}{sign}{where}" if sign else t for t, (_, sign, where) in zip(texts, split, strict=True)]


_BRIEF: Final = 6


def _brief(c: Tensor) -> str:
    """A small constant as numbers, a large one as an ellipsis."""
    if c.spec.size != 0 and c.spec.ndim <= 1 and c.spec.size <= _BRIEF:  # type: ignore[operator]
        return str(c.tolist())
    return "..."
