"""`custom_root`: a solution of an equation, by any solver."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from tenferro_ad._linearize import linear_transpose
from tenferro_ad.implicit._closing import Applied
from tenferro_ad.implicit._derived_programs import adjoint_of, linearised
from tenferro_ad.implicit._gmres import gmres
from tenferro_ad.implicit._solvers import Solution, solved_now, solver_program, with_aux
from tenferro_ad.implicit._values import constant, matched, plain, require_functions, unknowns
from tenferro_runtime.equations import Closed, closed, root
from tenferro_runtime.trees import TreeDef, unflatten
from tenferro_tensor_core import GradientError

Function = Callable[..., Any]

NAME: Final = "tangent_solve of custom_root"


def custom_root(
    f: Function, initial_guess: Any, solve: Function, tangent_solve: Function | None = None, has_aux: bool = False
) -> Any:
    """Solve ``f(x) == 0`` by any solver, and differentiate the equation in its place.

    The derivative is that of the implicit function: with J the derivative of f at the solution, and df that in the
    values from outside that f uses, the tangents solve J dx = -df, and the cotangents the adjoint equation. Both hold
    in both modes and to any order. Neither the solver nor the first guess has a derivative.

    On elements the solvers are called as they are, so they may be loops of Python and use NumPy or SciPy. On traced
    values they are recorded, or called when the program runs if they ask for elements. `f` is recorded in either
    case, and may use differentiated values from outside.

    Args:
        f: a function of arrays, in any containers, to the same containers, shapes and dtypes.
        initial_guess: where the solver starts, in these containers.
        solve: ``solve(f, initial_guess)``, a solution x.
        tangent_solve: ``tangent_solve(g, y)``, the solution of ``g(x) == y`` for a linear function g: J, and in reverse
            mode its adjoint J^H. A function that does not call g is transposed instead. By default the equation is
            solved by GMRES, which calls g alone and restarts beyond 256 unknowns.
        has_aux: `solve` returns a pair (x, aux), of which aux is passed on undifferentiated.

    Returns:
        The solution, in the containers of the first guess; with `has_aux` the pair of it and aux.

    Raises:
        StructureError: `f` or a solver returns another structure, shape or dtype than the first guess has.
        NumericalError: a solver that runs on elements returns some that are not finite, as the linear ones do where J
            is singular. In a compiled program such elements are NaN.

    >>> from tenferro_ad import custom_root, grad
    >>> def newton(f, x):
    ...     for _ in range(20):
    ...         x = x - f(x) / grad(f)(x)
    ...     return x
    >>> def cube_root(a):
    ...     return custom_root(lambda x: x**3 - a, 1.0, newton, lambda g, y: y / g(1.0))
    >>> cube_root(8.0), grad(cube_root)(8.0), grad(grad(cube_root))(8.0)
    (Tensor(2.), Tensor(0.08333333), Tensor(-0.00694444))
    """
    require_functions("custom_root", f=f, solve=solve)
    if tangent_solve is None:
        tangent_solve = gmres
    require_functions("custom_root", tangent_solve=tangent_solve)
    values, tree = unknowns(initial_guess, "custom_root: the first guess x", f)
    values = [plain(v) for v in values]
    specs = [v.spec for v in values]
    equation = closed(
        "the function of custom_root",
        lambda xs: matched(f(unflatten(tree, xs)), tree, specs, "the function of custom_root", "the first guess"),
        specs,
    )
    solution = Solution("solve of custom_root", tree, specs, has_aux)
    if constant([*values, *equation.captured]):
        return solved_now(solve, equation, solution, values)
    every = [*values, *equation.captured]
    first = solver_program(lambda g, xs: solve(g, unflatten(tree, xs)), equation, solution, specs, every)
    tangents = _Linear(tangent_solve, tree, len(equation.captured))
    second = solver_program(tangents.forward, equation, Solution(NAME, tree, specs), [*specs, *specs], every)
    third: Closed | None = None
    try:
        turned = Solution(f"{NAME}, for the adjoint", tree, specs)
        third = solver_program(tangents.backward, equation, turned, [*specs, *specs], every)
    except GradientError:
        pass  # f or the solver has forward mode only
    last = () if third is None else third.captured
    found = root(
        *equation.captured, *first.captured, *second.captured, *last, *values,
        f=equation.program, solve=first.program, tangent_solve=second.program,
        adjoint_solve=None if third is None else third.program,
        consts=(len(equation.captured), len(first.captured), len(second.captured), len(last)),
    )  # fmt: skip
    return with_aux(solution, found)


class _Linear:
    """The linear equation at a solution, as `tangent_solve` is given it."""

    def __init__(self, solve: Function, tree: TreeDef, consts: int) -> None:
        self.solve, self.tree, self.consts = solve, tree, consts

    def forward(self, f: Applied, xs: list[Any]) -> Any:
        """The solution of the equation for leaves of the solution, then of a right-hand side."""
        g, rhs = self._at(f, xs)
        return self.solve(g, rhs)

    def backward(self, f: Applied, xs: list[Any]) -> Any:
        """The same for the adjoint equation."""
        g, rhs = self._at(f, xs)
        turned = Applied(adjoint_of(g.program, len(g.consts)), g.consts, self.tree)
        found = self.solve(turned, rhs)
        if turned.calls:
            return found

        # It knows the equation by itself, and so has solved that of tangents.
        def known(y: Any) -> Any:
            specs = g.program.outputs
            return unflatten(self.tree, matched(self.solve(g, y), self.tree, specs, NAME, "the unknown"))

        return linear_transpose(known, rhs)(rhs)[0]

    def _at(self, f: Applied, xs: list[Any]) -> tuple[Applied, Any]:
        count = self.tree.size
        g = Applied(linearised(f.program, self.consts), (*f.consts, *xs[:count]), self.tree)
        return g, unflatten(self.tree, xs[count:])
