"""Runs a program step by step on concrete tensors, so that each step can be inspected."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final

from tenferro_runtime.ir._call import concrete
from tenferro_runtime.ir._interpret import KnownSizes
from tenferro_runtime.ir._program import Equation, Literal, Program, ProgramError
from tenferro_runtime.ir._sizes import substituted
from tenferro_runtime.runtime import promised_like
from tenferro_tensor import Array, Tensor, catalog, tensor
from tenferro_tensor_core import int64

_PASSED_ON: Final = catalog.convert.op(dtype=int64)


def fitting(program: Program, values: Sequence[Any]) -> tuple[Program, tuple[Tensor, ...]]:
    """The program with the sizes of the values filled in, and the values as tensors.

    Raises:
        ProgramError: the values do not fit, or are not concrete.
    """
    for i, v in enumerate(values):
        if isinstance(v, Array) and v.__class__ is not Tensor:
            raise ProgramError(
                f"a program is inspected while it runs on concrete arrays, but value {i} is a {type(v).__name__}; "
                "detach it, or trace the whole function instead",
                input=i,
            )
    ready = tuple([tensor(v) for v in values])
    return promised_like(concrete(program, tuple([t.spec for t in ready])), program), ready


def steps(
    program: Program, values: tuple[Tensor, ...], env: dict[int, Any], known: KnownSizes | None = None
) -> Iterator[tuple[Equation, tuple[Any, ...]]]:
    """Iterate over the equations with their operands; the caller runs each of them and stores its results in `env`.

    Data-dependent sizes are replaced by numbers after their definition, and recorded in `known`. Values are dropped
    after their last use; at the end, `env` holds the outputs.
    """
    env.update(program.constants)
    env.update(zip(program.input_ids, values, strict=True))
    needed: dict[int, int] = {v: i for i, eq in enumerate(program.equations) for v in eq.variables}
    needed.update(dict.fromkeys(program.output_ids, len(program.equations)))
    known = known or KnownSizes(program, {})
    for i, eq in enumerate(program.equations):
        size = eq.op.params["size"] if eq.op.primitive is catalog.define_size else None
        if size is not None:
            eq = Equation(_PASSED_ON, eq.operands, eq.results, eq.source)
        elif known.sizes:
            eq = Equation(substituted(eq.op, known.sizes), eq.operands, eq.results, eq.source)
        yield eq, tuple([v.value if isinstance(v, Literal) else env[v] for v in eq.operands])
        if size is not None:
            known.define(size, env[eq.results[0]])
        for v in {*eq.variables, *eq.results}:
            if needed.get(v, i) <= i:
                env.pop(v, None)


def store(env: dict[int, Any], eq: Equation, out: Any) -> tuple[Any, ...]:
    """Store the results of an equation for later ones; returns them."""
    results = out if isinstance(out, tuple) else (out,)
    env.update(zip(eq.results, results, strict=True))
    return results
