"""StableHLO lowering of functions with custom rules: traces the function and inlines it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from tenferro_runtime import trace
from tenferro_tensor import Spec
from tenferro_tensor_core import TracingError, UnsupportedError


def traced_lowering(name: str, leaves: Callable[[Sequence[Any], dict[str, Any]], Sequence[Any]]) -> Callable[..., Any]:
    """A lowering that traces a function.

    Args:
        name: the function's name.
        leaves: maps values and metadata to the results.
    """

    def lower(e: Any, xs: Sequence[Any], outs: Sequence[Spec], **params: Any) -> Any:
        try:
            program = trace(lambda *values: tuple(leaves(values, params)), *[x.spec for x in xs])
        except TracingError as cause:
            raise UnsupportedError(
                f"{name} has no StableHLO lowering because it cannot be traced: {cause}; run the program on the CPU "
                "backend",
                primitive=name,
            ) from cause
        return e.inline(program, xs)

    return lower
