"""Which steps write their result into the memory of a dead operand.

The law is that of `ir._reuse`. In addition, the kernel must accept output arrays, and result and operand must have
equal specs, symbolic sizes included.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from tenferro_runtime.ir._data_sizes import definitions
from tenferro_runtime.ir._program import Equation, Literal, Program
from tenferro_runtime.ir._reuse import CARRIED, UPDATES, SharedMemory, on_host, updated_operands
from tenferro_tensor import REGISTRY, Backend, Place, get_backend
from tenferro_tensor.backends import is_available

OVERWRITING: Final = "overwriting"
"""Key of a program's memo: whether its steps may overwrite operands."""
EXACT: Final = "exact"
"""Key of a program's memo: whether its results have the bits of single operations."""


def overwriting(program: Program, donated: Sequence[int] = ()) -> Mapping[int, int]:
    """Maps each result that reuses an operand's memory to that operand.

    Args:
        program: a program as it runs, after fusion.
        donated: positions of donated inputs.
    """
    if not program.memo.get(OVERWRITING, True) or definitions(program):
        return {}
    backends = {place: _backend(place) for place in {spec.place for spec in program.specs.values()}}
    writers = [i for i, eq in enumerate(program.equations) if _writes(program, eq, backends)]
    if not writers:
        return {}
    given = {program.input_ids[i] for i in donated}
    sharing, specs = SharedMemory(program), program.specs
    found: dict[int, int] = {}
    for i in writers:
        eq = program.equations[i]
        operands = dict.fromkeys(eq.variables)
        anywhere = eq.op.primitive.elementwise
        partners = {} if anywhere else updated_operands(eq)
        for k, v in enumerate(eq.results):
            for u in list(operands) if anywhere else _at(eq, partners.get(k)):
                if (
                    u in operands
                    and specs[u] == specs[v]
                    and specs[u].ndim  # NumPy's scalars cannot be written to
                    and sharing.allows(i, eq, u, owned=u in given and bool(partners))
                ):
                    found[v] = u
                    del operands[u]
                    break
    return found


def _backend(place: Place) -> Backend | None:
    return get_backend(place.device.kind) if is_available(place.device.kind) else None


def _writes(program: Program, eq: Equation, backends: Mapping[Place, Backend | None]) -> bool:
    """Whether the kernel of a step accepts output arrays, and reads each element before it writes it."""
    if eq.op.primitive in CARRIED:
        return on_host(program, eq)
    if not (eq.op.primitive.elementwise or eq.op.primitive in UPDATES):
        return False
    out = program.specs[eq.results[0]]
    backend = backends[out.place]
    if backend is None or REGISTRY.is_replaced(eq.op.primitive, backend.name):
        return False
    dtypes = tuple([out.dtype if isinstance(v, Literal) else program.specs[v].dtype for v in eq.operands])
    return backend.writes_into(eq.op, dtypes, out.dtype)


def _at(eq: Equation, i: int | None) -> tuple[int, ...]:
    return tuple([v for v in eq.operands[i : i + 1] if v.__class__ is int]) if i is not None else ()
