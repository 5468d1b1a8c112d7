"""Functions of `jax.scipy.special` and their derivatives, for functions without a StableHLO operation."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from tenferro_tensor import Spec
from tenferro_tensor_core import UnsupportedError


def derivative_of_special(library: Any, *xs: Any, name: str, orders: tuple[int, ...], pick: int | None) -> Any:
    """Evaluate a function of `jax.scipy.special`, or a derivative of one, on JAX arrays.

    Args:
        library: returns a module of JAX by name.
        xs: the operands.
        name: name of the function.
        orders: order of differentiation with respect to each of the first operands.
        pick: index of the result, of a function that returns several.
    """
    import jax

    found = getattr(library("scipy.special"), name, None)
    if found is None:
        raise NotImplementedError(f"jax.scipy.special of JAX {jax.__version__} has no {name}")
    return _differentiated(jax, found if pick is None else lambda *xs: found(*xs)[pick], orders)(*xs)


def unsupported(name: str, specs: Sequence[Spec], orders: Sequence[int], cause: Exception) -> UnsupportedError:
    """Return the error for a function or derivative that JAX lacks."""
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
    """Return the element-wise derivative with respect to one operand."""

    def derivative(*xs: Any) -> Any:
        def along(x: Any) -> Any:
            return function(*xs[:operand], x, *xs[operand + 1 :])

        return jax.jvp(along, (xs[operand],), (jax.numpy.ones_like(xs[operand]),))[1]

    return derivative
