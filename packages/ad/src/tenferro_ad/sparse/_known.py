"""Values of a program that depend on no argument, computed on demand for given sizes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tenferro_runtime.extension import Op, Tensor
from tenferro_runtime.ir import substituted

Compute = Callable[[dict[str, int]], Any]


def known_constant(value: Tensor | complex) -> Compute:
    """A function of the sizes that always returns the same tensor."""
    return lambda sizes: value


class KnownResult:
    """A result of an op on known operands, as a function of the sizes.

    Attributes:
        op: the op; its metadata may hold symbolic sizes.
        operands: the operands, as functions of the sizes.
        output: index of the result.
    """

    __slots__ = ("_found", "op", "operands", "output")

    def __init__(self, op: Op, operands: tuple[Any, ...], output: int) -> None:
        self.op, self.operands, self.output = op, operands, output
        self._found: tuple[dict[str, int], Any] | None = None

    def __call__(self, sizes: dict[str, int]) -> Any:
        found = self._found
        if found is None or found[0] != sizes:
            out = substituted(self.op, sizes)(*[compute(sizes) for compute in self.operands])
            found = self._found = dict(sizes), out[self.output] if isinstance(out, tuple) else out
        return found[1]
