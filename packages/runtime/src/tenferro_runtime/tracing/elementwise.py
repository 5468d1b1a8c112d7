"""A function of numbers as a program on vectors, with its derivatives: for families that apply a user's function.

Differentiation belongs to a higher layer, which registers itself here.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final
from weakref import WeakValueDictionary

from tenferro_runtime.ir._call import sizes_for
from tenferro_runtime.ir._interpret import interpret
from tenferro_runtime.ir._kept import kept
from tenferro_runtime.ir._program import Program
from tenferro_runtime.ir._sizes import named
from tenferro_runtime.passes import optimise
from tenferro_runtime.tracing._staged import staged
from tenferro_tensor import Array, Spec
from tenferro_tensor_core import GradientError, ShapeError, dim

__all__ = ["DERIVATIVES", "along_captured", "applied", "derivative", "recorded"]


def __dir__() -> list[str]:
    return __all__.copy()


DERIVATIVES: Final[list[Callable[[Program, bool], Program]]] = []
"""The function that differentiates such a program, at most one; False for `derivative`, True for `along_captured`."""


_programs: Final[WeakValueDictionary[Any, Program]] = WeakValueDictionary()


def recorded(f: Callable[[Any], Any], like: Spec, what: str) -> tuple[Program, tuple[Any, ...]]:
    """Trace an element-wise function.

    Args:
        f: a function of an array to an array of the same shape.
        like: a spec with the dtype and the place of the operands.
        what: name of the public function, for errors.

    Returns:
        The program, which takes a vector of any length and then the captured values, and the captured values.

    Raises:
        ShapeError: the function changes the shape, or captures a differentiated or traced array that is not a scalar.
    """
    x = like.with_(shape=(dim("elements"),))
    program, captured, _ = staged(lambda x: [f(x)], [x], decide=True, examples={"elements": 7})
    (y,) = program.outputs
    if y.shape != x.shape:
        raise ShapeError(
            f"{what}: f maps numbers element by element, but took shape {tuple(map(str, x.shape))} to "
            f"{tuple(map(str, y.shape))}; reduce the result instead",
            shapes=(x.shape, y.shape),
        )
    for value in captured:
        if value.spec.shape:
            raise ShapeError(
                f"{what}: f maps numbers element by element, but uses {value.spec!r} from outside; its "
                "parameters are scalars",
                shapes=(value.spec.shape,),
            )
    program = optimise(program)
    # One program for equal structures, so that derivatives are made once.
    return _programs.setdefault(program.structure, program), captured


def applied(program: Program, x: Any, *captured: Any) -> Array:
    """Apply the function to a vector.

    Args:
        program: a program of `recorded`.
        x: the vector.
        captured: the captured values.

    Returns:
        The result, a vector.
    """
    values = (x, *captured)
    sizes = named(program, sizes_for(program, [v.spec for v in values]))
    return interpret(program, values, sizes)[0]  # type: ignore[no-any-return]


def derivative(program: Program, order: int = 1) -> Program:
    """The program of a derivative with respect to the first input.

    Args:
        program: a program of `recorded`.
        order: order of the derivative.

    Returns:
        The program, with the same inputs.

    Raises:
        GradientError: `tenferro_ad` is not imported.
    """
    for _ in range(order):
        program = _derived(program, False)
    return program


def along_captured(program: Program) -> Program:
    """The program of the derivative with respect to the inexact captured values.

    Args:
        program: a program of `recorded`.

    Returns:
        A program whose inputs are those of `program` followed by tangents of these values.

    Raises:
        GradientError: `tenferro_ad` is not imported.
    """
    return _derived(program, True)


@kept
def _derived(program: Program, captured: bool) -> Program:
    if not DERIVATIVES:
        raise GradientError("derivatives of a function need tenferro_ad; install and import it")
    made = DERIVATIVES[0](program, captured)
    return _programs.setdefault(made.structure, made)
