"""Functions of `jax.scipy.special` and their derivatives: what is no composition of operations."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from tenferro_tensor import Spec
from tenferro_tensor_core import UnsupportedError


def derivative_of_special(library: Any, *xs: Any, name: str, orders: tuple[int, ...], pick: int | None) -> Any:
    """A function of `jax.scipy.special`, or a derivative of one, of arrays of JAX.

    Args:
        library: gives modules of JAX.
        xs: the operands.
        name: the function's name.
        orders: how often it is differentiated by each of its first operands.
        pick: which result is taken of a function that returns several.
    """
    import jax

    found = getattr(library("scipy.special"), name, None)
    if found is None:
        raise NotImplementedError(f"jax.scipy.special of JAX {jax.__version__} lacks it")
    return _differentiated(jax, found if pick is None else lambda *xs: found(*xs)[pick], orders)(*xs)


def unsupported(name: str, specs: Sequence[Spec], orders: Sequence[int], cause: Exception) -> UnsupportedError:
    """The error for a function that JAX lacks, or a derivative that it lacks."""
    what = f"the derivative of order {tuple(orders)} of {name}" if any(orders) else name
    return UnsupportedError(
        f"{what} has no StableHLO lowering, because JAX cannot compute it for {', '.join(map(repr, specs))}: "
        f"{str(cause).partition(chr(10))[0]}; run the program on the CPU backend",
        function=name,
    )


def _differentiated(jax: Any, function: Callable[..., Any], orders: Sequence[int]) -> Callable[..., Any]:
    for operand, order in enumerate(orders):
        for _ in range(order):
            function = _by_operand(jax, function, operand)
    return function


def _by_operand(jax: Any, function: Callable[..., Any], operand: int) -> Callable[..., Any]:
    """The element-wise derivative."""

    def derivative(*xs: Any) -> Any:
        def along(x: Any) -> Any:
            return function(*xs[:operand], x, *xs[operand + 1 :])

        return jax.jvp(along, (xs[operand],), (jax.numpy.ones_like(xs[operand]),))[1]

    return derivative
