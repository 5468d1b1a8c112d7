"""Functions of JAX as functions of a StableHLO module: what has no operation of its own, and is no composition."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any, Final

from tenferro_tensor import Spec
from tenferro_tensor_core import UnsupportedError

_DEFINED: Final = re.compile(r"func\.func (?:public |private )?@(\w+)")
_ATTRIBUTES: Final = re.compile(r" \{jax\.[^{}]*\}")


def function_text(symbol: str, name: str, specs: Sequence[Spec], orders: Sequence[int], pick: int | None) -> str:
    """The definition of a private function that is a function of `jax.scipy.special`, or a derivative of one.

    Args:
        symbol: what the function is called in the module.
        name: the function's name in JAX.
        specs: its operands.
        orders: how often it is differentiated by each of its first operands.
        pick: which result is taken of a function that returns several.

    Raises:
        UnsupportedError: JAX lacks the function, or this derivative of it.
    """
    import jax
    from jax.scipy import special

    found = getattr(special, name, None)
    try:
        if found is None:
            raise NotImplementedError(f"jax.scipy.special of JAX {jax.__version__} lacks it")
        with jax.enable_x64(True):
            function = _differentiated(jax, found if pick is None else lambda *xs: found(*xs)[pick], orders)
            text = jax.jit(function).lower(*[jax.ShapeDtypeStruct(s.shape, s.dtype) for s in specs]).as_text()
    except Exception as cause:  # JAX refuses in many ways
        what = f"the derivative of order {tuple(orders)} of {name}" if any(orders) else name
        raise UnsupportedError(
            f"{what} has no StableHLO lowering, because JAX cannot compute it for {', '.join(map(repr, specs))}: "
            f"{str(cause).partition(chr(10))[0]}; run the program on the CPU backend",
            function=name,
        ) from cause
    body = text[text.index("\n") + 1 : text.rindex("}")]
    for inner in _DEFINED.findall(body):
        own = symbol if inner == "main" else f"{symbol}_{inner}"
        body = re.sub(rf"@{inner}\b", f"@{own}", body)
    return _ATTRIBUTES.sub("", body.replace("func.func public", "func.func private")).rstrip()


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
