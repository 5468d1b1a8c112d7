"""`GraphCompiler` and `GraphExecutor`: explicit compilation and execution of programs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tenferro_runtime.compiling._trace import trace
from tenferro_runtime.ir._program import Program
from tenferro_runtime.runtime import Runtime, current_runtime


class GraphExecutor:
    """Runs one program.

    Attributes:
        program: the program.
    """

    __slots__ = ("program",)
    program: Program

    def __init__(self, program: Program) -> None:
        self.program = program

    def run(self, *values: Any) -> tuple[Any, ...]:
        """Run the program.

        Args:
            values: one concrete, differentiated or traced array for each input of the program, in order.

        Returns:
            The outputs.
        """
        return self.program.run(*values)

    def __repr__(self) -> str:
        return f"GraphExecutor({self.program!r})"


class GraphCompiler:
    """Turns programs, or functions to trace, into executors.

    Args:
        runtime: the runtime whose passes to run; by default that of the enclosing scope.

    >>> from tenferro_tensor import Spec, tensor
    >>> import numpy as np
    >>> executor = GraphCompiler().compile(lambda x: x + x * 2, Spec((2,), np.dtype("float64")))
    >>> executor.run(tensor([1.0, 2.0]))
    (Tensor([3., 6.]),)
    """

    __slots__ = ("runtime",)
    runtime: Runtime

    def __init__(self, runtime: Runtime | None = None) -> None:
        self.runtime = current_runtime() if runtime is None else runtime

    def compile(self, f: Program | Callable[..., Any], *args: Any, **kwargs: Any) -> GraphExecutor:
        """Optimize a program, or a function after tracing it.

        Args:
            f: a program, or a function to trace.
            args: arguments for `trace`.
            kwargs: keyword arguments for `trace`.

        Returns:
            An executor of the optimized program.
        """
        program = f if isinstance(f, Program) else trace(f, *args, **kwargs)
        return GraphExecutor(self.runtime.optimise(program))
