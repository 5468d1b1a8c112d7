"""The methods of compiled functions that save, explain or draw the program for given arguments."""

from __future__ import annotations

from collections.abc import Callable
from os import PathLike
from typing import TYPE_CHECKING, Any, NamedTuple

from tenferro_runtime.ir._call import concrete
from tenferro_runtime.ir._program import Program, ProgramError
from tenferro_runtime.ir._tools import above
from tenferro_runtime.running._executables import compiler_of
from tenferro_runtime.runtime import promised_like
from tenferro_runtime.trees._tree import TreeDef
from tenferro_tensor_core import TracingError
from tenferro_tensor_core.forks import importing
from tenferro_tensor_core.tracebacks import hiding

if TYPE_CHECKING:
    from tenferro_runtime.placement import ExecutionPlan
    from tenferro_runtime.reports import BadStep, Explanation, Profile


class Traced(NamedTuple):
    """The program of a compiled function for given arguments.

    Attributes:
        title: name of the function.
        names: names of its dynamic arguments, or ``None`` if it takes ``*args`` or ``**kwargs``.
        program: the program.
        arguments: structure of the dynamic arguments.
        result: structure of the result.
        fixed: results that are plain numbers, by position.
        values: the leaves of the arguments.
        captured: differentiated or traced values that the function uses from outside.
        donated: positions of donated leaves.
    """

    title: str
    names: tuple[str, ...] | None
    program: Program
    arguments: TreeDef
    result: TreeDef
    fixed: dict[int, Any]
    values: list[Any]
    captured: tuple[Any, ...]
    donated: tuple[int, ...]

    def alone(self, what: str) -> Traced:
        """Require that the program captures no values.

        Raises:
            TracingError: the function uses values of an outer transformation.
        """
        if self.captured:
            value = self.captured[0]
            raise TracingError(
                f"{self.title} uses {value.spec!r} of class {type(value).__name__} from outside, and cannot be {what} "
                "without it; pass the value as an argument, or do this outside the transformation",
                function=self.title,
            )
        return self

    def by_steps(self, what: str) -> Traced:
        """Require that the steps of the program run one by one.

        Raises:
            ProgramError: a compiler runs them as a whole.
        """
        compiler = compiler_of(self.program)
        if compiler is not None:
            raise ProgramError(
                f"{compiler.name} runs the program as a whole, so that its steps cannot be {what}; look at them with "
                "explain(...), or compile the function for main memory without a backend"
            )
        return self

    def sized(self) -> Program:
        """The program with the sizes of the arguments filled in."""
        return promised_like(concrete(self.program, tuple([v.spec for v in self.values])), self.program)


def equip(entry: Any, traced: Callable[[tuple[Any, ...], dict[str, Any]], Traced]) -> None:
    """Add the methods of `CompiledFunction` that inspect its program to an entry."""

    def program(*args: Any, **kwargs: Any) -> Program:
        return traced(args, kwargs).program

    def plan(*args: Any, **kwargs: Any) -> ExecutionPlan:
        with importing():
            from tenferro_runtime.placement import plan_for
        return plan_for(traced(args, kwargs).by_steps("planned").sized())

    def save(path: str | PathLike[str], *args: Any, **kwargs: Any) -> str:
        with importing():
            from tenferro_runtime.exporting import files
        t = traced(args, kwargs).alone("saved")
        return files.save(files.SavedFunction(t.title, t.names, t.program, t.arguments, t.result, t.fixed), path)

    def explain(*args: Any, **kwargs: Any) -> Explanation:
        t = traced(args, kwargs)
        found: Explanation = above("inspection").explain(t.sized(), t.donated)
        return found

    def profile(*args: Any, **kwargs: Any) -> Profile:
        t = traced(args, kwargs).by_steps("measured").alone("profiled")
        return t.program.profile(*t.values)

    def draw(path: str | PathLike[str], *args: Any, **kwargs: Any) -> str:
        return traced(args, kwargs).program.draw(path)

    def find_nan(*args: Any, **kwargs: Any) -> BadStep | None:
        t = traced(args, kwargs).alone("run step by step")
        return t.program.find_nan(*t.values)

    for method in (program, plan, save, explain, profile, draw, find_nan):
        setattr(entry, method.__name__, hiding(method))
