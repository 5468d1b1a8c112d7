"""`custom_linear_solve`: the solution of a linear equation, by any solver."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Literal, overload

from tenferro_ad._trees import require_convention
from tenferro_ad.implicit._closing import Applied
from tenferro_ad.implicit._derived_programs import adjoint_of
from tenferro_ad.implicit._solvers import Solution, solved_now, solver_program, with_aux
from tenferro_ad.implicit._values import constant, matched, require_functions, unknowns
from tenferro_runtime.equations import closed, linear_solve
from tenferro_runtime.trees import unflatten

if TYPE_CHECKING:
    from tenferro_ad._signatures import Leaf, R
    from tenferro_tensor import Array

Function = Callable[..., Any]


@overload
def custom_linear_solve(
    matvec: Function, b: Leaf, solve: Function, transpose_solve: Function | None = ..., symmetric: bool = ..., *,
    has_aux: Literal[False] = ..., convention: str = ...,
) -> Array: ...  # fmt: skip
@overload
def custom_linear_solve(
    matvec: Callable[..., R], b: Any, solve: Function, transpose_solve: Function | None = ..., symmetric: bool = ..., *,
    has_aux: Literal[False] = ..., convention: str = ...,
) -> R: ...  # fmt: skip
@overload
def custom_linear_solve(
    matvec: Function, b: Leaf, solve: Function, transpose_solve: Function | None = ..., symmetric: bool = ..., *,
    has_aux: Literal[True], convention: str = ...,
) -> tuple[Array, Any]: ...  # fmt: skip
@overload
def custom_linear_solve(
    matvec: Callable[..., R], b: Any, solve: Function, transpose_solve: Function | None = ..., symmetric: bool = ..., *,
    has_aux: Literal[True], convention: str = ...,
) -> tuple[R, Any]: ...  # fmt: skip
@overload
def custom_linear_solve(
    matvec: Function, b: Any, solve: Function, transpose_solve: Function | None = ..., symmetric: bool = ...,
    has_aux: bool = ..., *, convention: str = ...,
) -> Any: ...  # fmt: skip
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
    """Solve ``matvec(x) == b`` by any solver, with the derivatives of the equation instead of the solver's.

    With A x = b, tangents satisfy A dx = db - dA x, solved by `solve`, and cotangents the adjoint equation, solved by
    `transpose_solve`. Both modes work to any order.

    With concrete values the solvers run as plain Python, so they may use loops, NumPy or SciPy. With traced values
    they are recorded, or, if they read elements, called when the program runs. `matvec` is always recorded, and may
    close over differentiated values.

    Args:
        matvec: a linear function of a pytree of arrays that returns the same structure, shapes and dtypes.
        b: the right-hand side, with that structure.
        solve: ``solve(matvec, b)`` returns the solution x.
        transpose_solve: ``transpose_solve(vecmat, b)`` returns the solution of ``vecmat(x) == b``, where vecmat is the
            adjoint A^H of `matvec`. Needed for reverse mode.
        symmetric: `matvec` is its own adjoint (a symmetric or Hermitian matrix), so `solve` serves for both.
        has_aux: both solvers return a pair ``(x, aux)``; aux is returned undifferentiated.
        convention: ``"tenferro"``, or ``"jax"``, where vecmat is the transpose A^T without conjugation.

    Returns:
        The solution, with the structure, shapes and dtypes of `b`; with `has_aux` a pair of it and aux.

    Raises:
        ArgumentError: an argument that must be callable is not, or `convention` is unknown.
        StructureError: `matvec` or a solver returns another structure, shape or dtype than `b` has.
        NumericalError: a solver with concrete values returns elements that are not finite, as for a singular matrix.
        GradientError: reverse mode without `transpose_solve`; or `b` is not real or complex floating point.

    See also:
        custom_root: the same for nonlinear equations.

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
