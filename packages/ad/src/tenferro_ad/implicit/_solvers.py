"""Solvers of users as programs: recorded where values are traced, called on elements elsewhere."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from tenferro_ad._modes import no_grad
from tenferro_ad._trees import as_value
from tenferro_ad.implicit._closing import Applied, Closed, closed
from tenferro_ad.implicit._hosted import hosted
from tenferro_ad.implicit._values import matched
from tenferro_runtime.extension import Program
from tenferro_runtime.ir import here
from tenferro_runtime.trees import TreeDef, flatten, unflatten
from tenferro_tensor import Spec, Tensor
from tenferro_tensor_core import ArgumentError, NumericalError

Run = Callable[[Applied, list[Any]], Any]
"""A solver: of the function of the equation, and leaves, to a solution."""


class Solution:
    """What a solver returned, checked; and what it returned beside the solution.

    Attributes:
        name: names the solver in messages.
        tree: structure of the unknowns.
        specs: specs of the unknowns.
        has_aux: whether it returns a pair (x, aux).
        aux: the second one, of the first run.
        aux_tree: the structure of its leaves.
    """

    def __init__(self, name: str, tree: TreeDef, specs: Sequence[Spec], has_aux: bool = False) -> None:
        self.name, self.tree, self.specs, self.has_aux = name, tree, tuple(specs), has_aux
        self.aux: Any = None
        self.aux_tree: TreeDef | None = None

    def take(self, out: Any) -> list[Any]:
        """The leaves of the solution.

        Raises:
            ArgumentError: the solver does not return a pair, but should.
            StructureError: the solution has another structure, shape or dtype than the unknowns.
            NumericalError: it has elements that are not finite.
        """
        if self.has_aux:
            if not isinstance(out, tuple) or len(out) != 2:
                raise ArgumentError(
                    f"{self.name}{here()} returns a pair (x, aux) where has_aux=True, got {type(out).__name__}"
                )
            if self.aux_tree is None:
                out, self.aux = out
                self.aux_tree = flatten(self.aux)[1]
            else:
                out = out[0]
        leaves = matched(out, self.tree, self.specs, self.name, "the unknown")
        for x, path in zip(leaves, self.tree.paths(), strict=True):
            if x.__class__ is Tensor and x.spec.place.on_host and not _finite(x):
                raise NumericalError(
                    f"{self.name}{here()} returned a solution with elements that are not finite, at x{path}: the "
                    "equation has no solution there, or its linear part is singular; regularise it, or look at the "
                    "solver"
                )
        return leaves


def _finite(x: Tensor) -> bool:
    return bool(x._data.size == 0 or (abs(x._data) < float("inf")).all())


def recorded_solver(run: Run, equation: Closed, solution: Solution, specs: Sequence[Spec]) -> Closed:
    """A solver as a program of the leaves that it takes.

    Args:
        run: the solver.
        equation: the equation.
        solution: takes what the solver returns.
        specs: specs of the leaves.
    """

    def leaves(xs: list[Any]) -> list[Any]:
        with no_grad():
            found = solution.take(run(Applied(equation.program, equation.captured, solution.tree), xs))
            return [*found, *[as_value(a) for a in flatten(solution.aux)[0]]]

    return closed(solution.name, leaves, specs)


def hosted_solver_of(run: Run, equation: Closed, solution: Solution, specs: Sequence[Spec]) -> Closed:
    """A solver that runs on elements; arguments as those of `recorded_solver`."""
    count = len(equation.captured)

    def function(program: Program, values: list[Any]) -> list[Any]:
        return solution.take(run(Applied(program, values[:count], solution.tree), values[count:]))

    operands = [*[v.spec for v in equation.captured], *specs]
    return Closed(hosted(function, equation.program, operands, solution.specs), equation.captured)


def with_aux(solution: Solution, found: Sequence[Any], traced: bool) -> Any:
    """The result of a solver in its containers."""
    count = solution.tree.size
    x = unflatten(solution.tree, found[:count])
    if not solution.has_aux:
        return x
    if not traced:
        return x, solution.aux
    assert solution.aux_tree is not None
    return x, unflatten(solution.aux_tree, found[count:])
