"""`custom_root`: a solution of an equation, by any solver."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final, Literal, overload

from tenferro_ad._linearize import linear_transpose
from tenferro_ad.implicit._closing import Applied
from tenferro_ad.implicit._derived_programs import adjoint_of, linearised
from tenferro_ad.implicit._gmres import gmres
from tenferro_ad.implicit._solvers import Solution, solved_now, solver_program, with_aux
from tenferro_ad.implicit._values import constant, matched, plain, require_functions, unknowns
from tenferro_runtime.equations import Closed, closed, root
from tenferro_runtime.trees import TreeDef, unflatten
from tenferro_tensor_core import GradientError

if TYPE_CHECKING:
    from tenferro_ad._signatures import Leaf, R
    from tenferro_tensor import Array

Function = Callable[..., Any]

SOLVER_NAME: Final = "tangent_solve of custom_root"
"""Name of the linear solver in error messages."""


@overload
def custom_root(
    f: Function, initial_guess: Leaf, solve: Function, tangent_solve: Function | None = ..., *,
    has_aux: Literal[False] = ...,
) -> Array: ...  # fmt: skip
@overload
def custom_root(
    f: Callable[..., R], initial_guess: Any, solve: Function, tangent_solve: Function | None = ..., *,
    has_aux: Literal[False] = ...,
) -> R: ...  # fmt: skip
@overload
def custom_root(
    f: Function, initial_guess: Leaf, solve: Function, tangent_solve: Function | None = ..., *,
    has_aux: Literal[True],
) -> tuple[Array, Any]: ...  # fmt: skip
@overload
def custom_root(
    f: Callable[..., R], initial_guess: Any, solve: Function, tangent_solve: Function | None = ..., *,
    has_aux: Literal[True],
) -> tuple[R, Any]: ...  # fmt: skip
@overload
def custom_root(
    f: Function, initial_guess: Any, solve: Function, tangent_solve: Function | None = ..., has_aux: bool = ...
) -> Any: ...
def custom_root(
    f: Function, initial_guess: Any, solve: Function, tangent_solve: Function | None = None, has_aux: bool = False
) -> Any:
    """Solve ``f(x) == 0`` by any solver, with the derivatives of the equation instead of the solver's.

    By the implicit function theorem, with J the derivative of f at the solution, and df its derivative with respect to
    the values that f closes over, tangents satisfy J dx = -df, and cotangents the adjoint equation. Both modes work to
    any order. Neither the solver nor the initial guess has a derivative.

    With concrete values the solvers run as plain Python, so they may use loops, NumPy or SciPy. With traced values
    they are recorded, or, if they read elements, called when the program runs. `f` is always recorded, and may close
    over differentiated values.

    Args:
        f: a function of a pytree of arrays that returns the same structure, shapes and dtypes.
        initial_guess: the starting point of the solver, with that structure.
        solve: ``solve(f, initial_guess)`` returns a solution x.
        tangent_solve: ``tangent_solve(g, y)`` returns the solution of ``g(x) == y`` for a linear function g: J, and in
            reverse mode its adjoint J^H. If it does not call g, it is transposed instead. By default GMRES, which
            restarts beyond 256 unknowns.
        has_aux: `solve` returns a pair ``(x, aux)``; aux is returned undifferentiated.

    Returns:
        The solution, with the structure, shapes and dtypes of the initial guess; with `has_aux` a pair of it and aux.

    Raises:
        ArgumentError: an argument that must be callable is not.
        GradientError: the initial guess is not real or complex floating point.
        StructureError: `f` or a solver returns another structure, shape or dtype than the initial guess has.
        NumericalError: a solver with concrete values returns elements that are not finite, as linear solvers do if J
            is singular. In a compiled program such elements are NaN.

    See also:
        fixed_point: solves x = f(x) by iteration.
        custom_linear_solve: the same for linear equations.

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
    second = solver_program(tangents.forward, equation, Solution(SOLVER_NAME, tree, specs), [*specs, *specs], every)
    third: Closed | None = None
    try:
        turned = Solution(f"{SOLVER_NAME}, for the adjoint", tree, specs)
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
    """Applies `tangent_solve` to the linear equation at a solution."""

    def __init__(self, solve: Function, tree: TreeDef, consts: int) -> None:
        self.solve, self.tree, self.consts = solve, tree, consts

    def forward(self, f: Applied, xs: list[Any]) -> Any:
        """Solve the linear equation; `xs` holds the leaves of the solution, then of the right-hand side."""
        g, rhs = self._at(f, xs)
        return self.solve(g, rhs)

    def backward(self, f: Applied, xs: list[Any]) -> Any:
        """Solve the adjoint equation."""
        g, rhs = self._at(f, xs)
        turned = Applied(adjoint_of(g.program, len(g.consts)), g.consts, self.tree)
        found = self.solve(turned, rhs)
        if turned.calls:
            return found

        # The solver did not call g, so it has solved the equation of tangents: transpose it.
        def known(y: Any) -> Any:
            specs = g.program.outputs
            return unflatten(self.tree, matched(self.solve(g, y), self.tree, specs, SOLVER_NAME, "the unknown"))

        return linear_transpose(known, rhs)(rhs)[0]

    def _at(self, f: Applied, xs: list[Any]) -> tuple[Applied, Any]:
        count = self.tree.size
        g = Applied(linearised(f.program, self.consts), (*f.consts, *xs[:count]), self.tree)
        return g, unflatten(self.tree, xs[count:])
