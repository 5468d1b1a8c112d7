"""`custom_linear_solve`: the solution of a linear equation, by any solver."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tenferro_ad._trees import require_convention
from tenferro_ad.implicit._closing import Applied
from tenferro_ad.implicit._derived_programs import adjoint_of
from tenferro_ad.implicit._solvers import Solution, solved_now, solver_program, with_aux
from tenferro_ad.implicit._values import constant, matched, require_functions, unknowns
from tenferro_runtime.equations import closed, linear_solve
from tenferro_runtime.trees import unflatten

Function = Callable[..., Any]


def custom_linear_solve(
    matvec: Function,
    b: Any,
    solve: Function,
    transpose_solve: Function | None = None,
    symmetric: bool = False,
    has_aux: bool = False,
    *,
    convention: str = "tenferro",
) -> Any:
    """Solve ``matvec(x) == b`` by any solver, and differentiate the equation in its place.

    With A x = b the tangents are those of A dx = db - dA x, solved by `solve`, and the cotangents those of the adjoint
    equation, solved by `transpose_solve`: in both modes, to any order, and without a derivative of the solver.

    On elements the solvers are called as they are, so they may be loops of Python and use NumPy or SciPy. On traced
    values they are recorded, or called when the program runs if they ask for elements. `matvec` is recorded in either
    case, and may use differentiated values from outside.

    Args:
        matvec: a linear function of arrays, in any containers, to the same containers, shapes and dtypes.
        b: the right-hand side, in these containers.
        solve: ``solve(matvec, b)``, the solution x.
        transpose_solve: ``transpose_solve(vecmat, b)``, the solution of ``vecmat(x) == b`` for the adjoint A^H of
            `matvec`, which is handed in. Reverse mode needs it.
        symmetric: `matvec` is its own adjoint, a symmetric or Hermitian matrix, so that `solve` serves for both.
        has_aux: both solvers return a pair (x, aux), of which aux is passed on undifferentiated.
        convention: ``"jax"`` makes of the adjoint, above, the transpose A^T without conjugation.

    Returns:
        The solution, in the containers of b; with `has_aux` the pair of it and aux.

    Raises:
        StructureError: `matvec` or a solver returns another structure, shape or dtype than b has.
        NumericalError: a solver that runs on elements returns some that are not finite, as for a singular matrix.
        GradientError: in reverse mode, without `transpose_solve`.

    >>> import numpy as np
    >>> from tenferro_ad import custom_linear_solve, grad
    >>> def matrix(f, like):
    ...     return np.stack([f(e).numpy() for e in np.eye(like.shape[0])], axis=1)
    >>> def dense(f, b):
    ...     return np.linalg.solve(matrix(f, b), b.numpy())
    >>> a = tr.asarray([[2.0, 0.0], [1.0, 4.0]])
    >>> def first(a, b):
    ...     return custom_linear_solve(lambda x: a @ x, b, dense, dense)[0]
    >>> grad(first, 1)(a, np.array([6.0, 1.0]))
    Tensor([0.5, 0. ])
    """
    require_convention(convention)
    require_functions("custom_linear_solve", matvec=matvec, solve=solve)
    if symmetric:
        transpose_solve = solve
    elif transpose_solve is not None:
        require_functions("custom_linear_solve", transpose_solve=transpose_solve)
    values, tree = unknowns(b, "custom_linear_solve: the right-hand side b", matvec)
    specs = [v.spec for v in values]
    equation = closed(
        "the function matvec of custom_linear_solve",
        lambda xs: matched(matvec(unflatten(tree, xs)), tree, specs, "matvec of custom_linear_solve", "b"),
        specs,
    )
    solution = Solution("solve of custom_linear_solve", tree, specs, has_aux)
    if constant([*values, *equation.captured]):
        return solved_now(solve, equation, solution, values)
    count = len(equation.captured)

    def forward(f: Applied, rhs: list[Any]) -> Any:
        return solve(f, unflatten(tree, rhs))

    def backward(f: Applied, rhs: list[Any]) -> Any:
        turned = adjoint_of(f.program, count, convention == "jax")
        return transpose_solve(Applied(turned, f.consts, tree), unflatten(tree, rhs))  # type: ignore[misc]

    every = [*values, *equation.captured]
    first = solver_program(forward, equation, solution, specs, every)
    second = None
    if transpose_solve is not None:
        turned = Solution("transpose_solve of custom_linear_solve", tree, specs, has_aux)
        second = solver_program(backward, equation, turned, specs, every)
    turned_consts = () if second is None else second.captured
    found = linear_solve(
        *equation.captured, *first.captured, *turned_consts, *values,
        matvec=equation.program, solve=first.program, transpose_solve=None if second is None else second.program,
        consts=(count, len(first.captured), len(turned_consts)), unconjugated=convention == "jax",
    )  # fmt: skip
    return with_aux(solution, found)
