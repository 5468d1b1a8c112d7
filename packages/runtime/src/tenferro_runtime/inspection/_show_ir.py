"""`show_ir`: the loop nests of a program next to the user's source lines."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from tenferro_runtime.compiling._compile import compile
from tenferro_runtime.compiling._entry import Entrance
from tenferro_runtime.ir._program import Program
from tenferro_runtime.lowering import lower
from tenferro_runtime.reports import LoopNests
from tenferro_runtime.reports._lines import brief, code_at
from tenferro_tensor.loop_ir import Call, For, Let, Load, Position, Reg, Statement, Store, Switch, While, show
from tenferro_tensor_core import ArgumentError

COLUMN_MAX: Final = 60
"""Largest column at which source lines next to statements are aligned."""


def show_ir(f: Program | Callable[..., Any], /, *args: Any, **kwargs: Any) -> LoopNests:
    """Show the loop nests of a whole program, from which its machine code is generated.

    Buffers are memory (``b0``), registers are numbers (``r0``). A loop is ``parallel`` if its iterations are
    independent, ``reduce`` if they accumulate; other loops are sequential, and may carry numbers (``carry``, ``next``,
    ``last``) or swap buffers (``swap``). ``call`` is a kernel on whole arrays, such as a decomposition. Sizes stay
    symbolic where they are symbolic in the program.

    Args:
        f: a program, a compiled function, or a function, which is compiled but not run.
        args: arguments of the function.
        kwargs: keyword arguments of the function.

    Returns:
        A `LoopNests`.

    Raises:
        UnsupportedError: a step is neither loops nor a kernel on arrays in main memory; the
            message names the step and its line. Such a program runs step by step.
        ArgumentError: a program is given arguments.

    >>> print(tr.show_ir(tr.trace(lambda x: tr.sum(x * x), tr.Spec((tr.dim("n"),), tr.float64))).text.splitlines()[0])
    function(n)
    >>> print(tr.show_ir(lambda x, y: x[0] * y[1], tr.ones(3), tr.ones(3)).function.outputs)
    (Buffer(number=2, dtype=dtype('float64'), shape=(), role=<Role.OUTPUT: 'output'>),)
    """
    if isinstance(f, Program):
        if args or kwargs:
            raise ArgumentError(f"show_ir shows a program as it is, but it was given {len(args) + len(kwargs)} values")
        program = f
    else:
        compiled: Any = f if isinstance(f, Entrance) else compile(f)
        program = compiled.program(*args, **kwargs)
    function = lower(program)
    return LoopNests(function, _in_line(show(function, note=_Lines(function.where))))


class _Lines:
    """The source line of each statement; empty if it equals that of the previous statement."""

    def __init__(self, where: Callable[[int], str]) -> None:
        self.where, self.last = where, ""

    def __call__(self, s: Statement) -> str:
        made = _made(s)
        found = s.where if isinstance(s, Call) else self.where(made.number) if isinstance(made, Reg) else ""
        if not found or found == self.last:
            return ""
        self.last = found
        code = code_at(found)
        return f"{brief(found)}: {code}" if code else brief(found)


def _made(s: Statement) -> object:
    """The register that identifies the source line of a statement."""
    match s:
        case Let(result) | Load(result) | Position(result):
            return result
        case Store(value=value):
            return value
        case For(index=index) | While(index=index):
            return index
        case Switch(results=(first, *_)):
            return first
    return None


def _in_line(text: str) -> str:
    """Align comments in one column, except behind long lines."""
    split = [line.partition("  # ") for line in text.splitlines()]
    column = min(COLUMN_MAX, max([len(code) for code, sign, _ in split if sign], default=0))
    return "\n".join([f"{code.ljust(column)}{sign}{said}" if sign else code for code, sign, said in split])
