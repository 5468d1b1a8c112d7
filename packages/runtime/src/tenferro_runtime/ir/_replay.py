"""Runs a program with data-dependent sizes on values of any level, equation by equation."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tenferro_runtime.ir._data_sizes import conditions, names_in, require
from tenferro_runtime.ir._program import Literal, Program
from tenferro_runtime.ir._sizes import substituted
from tenferro_tensor import catalog
from tenferro_tensor_core import Dim, DimLike


class Known:
    """The sizes of a program whose equations run one by one.

    Args:
        program: the program.
        sizes: its symbolic sizes; data-dependent ones are added as they become known.
    """

    def __init__(self, program: Program, sizes: Mapping[str, DimLike]) -> None:
        self.sizes: dict[str, DimLike] = dict(sizes)
        self._pending = list(conditions(program))

    def define(self, size: Dim, value: Any) -> None:
        """Set the value of a size after checking its guards."""
        self.sizes[str(size)] = value._as_extent(size.upper)
        for guard in [g for g in self._pending if (names_in(g.lhs) | names_in(g.rhs)) <= self.sizes.keys()]:
            self._pending.remove(guard)
            require(guard, self.sizes)


def replayed(program: Program, values: Sequence[Any], sizes: Mapping[str, DimLike]) -> tuple[Any, ...]:
    """Run a program by applying its ops to values of any level.

    Data-dependent sizes become extents of the values: numbers, or new sizes of the enclosing trace.

    Args:
        program: the program.
        values: one value for each input.
        sizes: values of the symbolic sizes.

    Returns:
        The outputs.
    """
    known = Known(program, sizes)
    env: dict[int, Any] = dict(program.constants)
    env.update(zip(program.input_ids, values, strict=True))
    for eq in program.equations:
        operands: list[Any] = [v.value if isinstance(v, Literal) else env[v] for v in eq.operands]
        if eq.op.primitive is catalog.define_size:
            known.define(eq.op.params["size"], operands[0])
            env[eq.results[0]] = operands[0]
            continue
        out = substituted(eq.op, known.sizes)(*operands)
        env.update(zip(eq.results, out if isinstance(out, tuple) else (out,), strict=True))
    return tuple([env[v] for v in program.output_ids])
