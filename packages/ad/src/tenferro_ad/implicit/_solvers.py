"""Users' solvers as programs: called directly on concrete values, recorded in a trace."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from tenferro_ad._modes import no_grad
from tenferro_ad._trees import as_value
from tenferro_ad.implicit._closing import Applied
from tenferro_ad.implicit._hosted import hosted
from tenferro_ad.implicit._values import matched, plain
from tenferro_runtime.equations import Closed, closed
from tenferro_runtime.extension import Program
from tenferro_runtime.ir import here
from tenferro_runtime.tracing import is_traced, stage_above
from tenferro_runtime.trees import TreeDef, flatten, unflatten
from tenferro_tensor import Spec, Tensor
from tenferro_tensor_core import ArgumentError, NumericalError, TracingError

Run = Callable[[Applied, list[Any]], Any]
"""A solver: ``run(f, leaves)`` returns a solution."""


class Solution:
    """Checks the results of a solver, and holds its auxiliary output.

    Attributes:
        name: name of the solver in messages.
        tree: structure of the unknowns.
        specs: specs of the unknowns.
        has_aux: whether the solver returns a pair ``(x, aux)``.
        aux: aux of the first run.
        aux_tree: structure of aux.
    """

    def __init__(self, name: str, tree: TreeDef, specs: Sequence[Spec], has_aux: bool = False) -> None:
        self.name, self.tree, self.specs, self.has_aux = name, tree, tuple(specs), has_aux
        self.aux: Any = None
        self.aux_tree: TreeDef | None = None

    def take(self, out: Any, specs: Sequence[Spec] = ()) -> list[Any]:
        """The leaves of the solution; `specs` replaces the unknowns' specs if those have symbolic sizes.

        Raises:
            ArgumentError: `has_aux` is set, but the solver does not return a pair.
            StructureError: the solution has another structure, shape or dtype than the unknowns.
            NumericalError: it has elements that are not finite.
        """
        if self.has_aux:
            if not isinstance(out, tuple) or len(out) != 2:
                raise ArgumentError(
                    f"{self.name}{here()} must return a pair (x, aux) with has_aux=True, got {type(out).__name__}"
                )
            if self.aux_tree is None:
                out, self.aux = out
                self.aux_tree = flatten(self.aux)[1]
            else:
                out = out[0]
        leaves = matched(out, self.tree, specs or self.specs, self.name, "the unknown")
        for x, path in zip(leaves, self.tree.paths(), strict=True):
            if x.__class__ is Tensor and x.spec.place.on_host and not _finite(x):
                raise NumericalError(
                    f"{self.name}{here()} returned a solution with elements that are not finite, at x{path}: the "
                    "equation has no solution there, or its linear part is singular; regularize it, or use another "
                    "solver"
                )
        return leaves


def _finite(x: Tensor) -> bool:
    return bool(x._data.size == 0 or (abs(x._data) < float("inf")).all())


def solver_program(
    run: Run, equation: Closed, solution: Solution, specs: Sequence[Spec], values: Sequence[Any]
) -> Closed:
    """A solver as a program.

    With concrete values the program calls the solver. In a trace or under `vmap` the solver is recorded; a solver that
    reads elements is called when the program runs, lane by lane.

    Args:
        run: the solver.
        equation: the equation.
        solution: checks the solver's result.
        specs: specs of the program's operands.
        values: all values of the equation.
    """
    if stage_above(0) is not None or any(map(is_traced, values)):
        try:
            return _recorded(run, equation, solution, specs)
        except TracingError:
            if solution.has_aux:  # its structure is unknown before the program runs
                raise
    return _hosted(run, equation, solution, specs)


def _recorded(run: Run, equation: Closed, solution: Solution, specs: Sequence[Spec]) -> Closed:
    def leaves(xs: list[Any]) -> list[Any]:
        with no_grad():
            found = solution.take(run(Applied(equation.program, equation.captured, solution.tree), xs))
            return [*found, *[as_value(a) for a in flatten(solution.aux)[0]]]

    return closed(solution.name, leaves, specs)


def _hosted(run: Run, equation: Closed, solution: Solution, specs: Sequence[Spec]) -> Closed:
    count = len(equation.captured)

    def function(program: Program, values: list[Any], results: Sequence[Spec]) -> list[Any]:
        return solution.take(run(Applied(program, values[:count], solution.tree), values[count:]), results)

    operands = [*[v.spec for v in equation.captured], *specs]
    return Closed(hosted(function, equation.program, operands, len(solution.specs)), equation.captured)


def with_aux(solution: Solution, found: Sequence[Any]) -> Any:
    """The result of a solver in its containers; aux is among the leaves `found`, or in `solution`."""
    count = solution.tree.size
    x = unflatten(solution.tree, found[:count])
    if not solution.has_aux:
        return x
    tree = solution.aux_tree
    assert tree is not None
    return x, solution.aux if len(found) == count else unflatten(tree, found[count:])


def solved_now(solve: Callable[..., Any], equation: Closed, solution: Solution, values: Sequence[Any]) -> Any:
    """Call a solver directly on concrete constants.

    Args:
        solve: takes the function of the equation, and the values in their containers.
        equation: the function.
        solution: checks the solver's result.
        values: leaves of the initial guess, or of the right-hand side.
    """
    tree = solution.tree
    with no_grad():
        out = solve(Applied(equation.program, equation.captured, tree), unflatten(tree, values))
    return with_aux(solution, [plain(x) for x in solution.take(out)])
