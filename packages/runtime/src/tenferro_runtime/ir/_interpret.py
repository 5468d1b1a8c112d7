"""`interpret`: runs a program on values of any level, equation by equation."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from tenferro_runtime.ir._data_sizes import conditions, names_in, require
from tenferro_runtime.ir._effects import effectful, has_effects
from tenferro_runtime.ir._program import Equation, Literal, Program
from tenferro_runtime.ir._sizes import substituted
from tenferro_tensor import SCALARS, Tensor, catalog
from tenferro_tensor.calls import TracedBase
from tenferro_tensor_core import Dim, DimLike


class KnownSizes:
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


def interpret(
    program: Program,
    values: Sequence[Any],
    sizes: Mapping[str, DimLike] | None = None,
    apply: Callable[[Equation, list[Any]], Any] | None = None,
) -> tuple[Any, ...]:
    """Run a program by applying its ops to values one after the other; slow, and obviously correct.

    If the run is recorded, the equations keep their source lines.

    Args:
        program: the program.
        values: one value for each input.
        sizes: values of the symbolic sizes. Data-dependent sizes then become extents of the values: numbers, or new
            sizes of the enclosing trace. Without it, all sizes stay as they are.
        apply: computes the results of an equation from its operands; by default, applies the op.

    Returns:
        The outputs.
    """
    env: dict[int, Any] = dict(program.constants)
    env.update(zip(program.input_ids, values, strict=True))
    known = None if sizes is None else KnownSizes(program, sizes)
    effects = has_effects(program)
    recorder = next((b for b in map(recording, values) if b is not None), None)
    before = None if recorder is None else recorder.blame
    try:
        for eq in program.equations:
            if recorder is not None:
                recorder.blame = before or eq.source
            operands = [v.value if isinstance(v, Literal) else env[v] for v in eq.operands]
            if apply is not None:
                out = apply(eq, operands)
            elif known is not None and eq.op.primitive is catalog.define_size:
                (out,) = operands
                known.define(eq.op.params["size"], out)
            elif effects and recorder is not None and effectful(eq.op) and all(map(_is_concrete, operands)):
                out = recorder.emit(eq.op, operands)  # takes place when the recorded program runs, not now
            else:
                out = (eq.op if known is None else substituted(eq.op, known.sizes))(*operands)
            env.update(zip(eq.results, out if isinstance(out, tuple) else (out,), strict=True))
    finally:
        if recorder is not None:
            recorder.blame = before
    return tuple([env[v] for v in program.output_ids])


def recording(x: Any) -> Any:
    """The builder that records operations on a value, also on a traced value inside a differentiated one.

    Args:
        x: any value.

    Returns:
        The builder, or ``None`` if no value inside is traced.
    """
    while not isinstance(x, TracedBase):
        x = getattr(x, "value", None)
        if x is None:
            return None
    return x.home


def _is_concrete(x: Any) -> bool:
    return x.__class__ is Tensor or x.__class__ in SCALARS
