"""Running a program with sizes that depend on data on values of any level, one equation after the other."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tenferro_runtime._data_sizes import conditions, names_in, require
from tenferro_runtime._program import Literal, Program
from tenferro_runtime._sizes import substituted
from tenferro_tensor import catalog
from tenferro_tensor_core import DimLike


def replayed(program: Program, values: Sequence[Any], sizes: Mapping[str, DimLike]) -> tuple[Any, ...]:
    """Run a program by applying its ops to values of any level, with `sizes` in the place of its open sizes.

    Sizes that depend on data become extents of the values: numbers, or new sizes of the trace that is going on.
    """
    known: dict[str, DimLike] = dict(sizes)
    pending = list(conditions(program))
    env: dict[int, Any] = dict(program.constants)
    env.update(zip(program.input_ids, values, strict=True))
    for eq in program.equations:
        operands: list[Any] = [v.value if isinstance(v, Literal) else env[v] for v in eq.operands]
        if eq.op.primitive is catalog.define_size:
            size = eq.op.params["size"]
            known[str(size)] = operands[0]._as_extent(size.upper)
            env[eq.results[0]] = operands[0]
            for guard in [g for g in pending if (names_in(g.lhs) | names_in(g.rhs)) <= known.keys()]:
                pending.remove(guard)
                require(guard, known)
            continue
        out = substituted(eq.op, known)(*operands)
        env.update(zip(eq.results, out if isinstance(out, tuple) else (out,), strict=True))
    return tuple([env[v] for v in program.output_ids])
