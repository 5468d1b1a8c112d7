"""Memory of a program over time: which blocks are alive at each step, as polynomials in the sizes.

A block is alive from the step that allocates it to the last step that reads it or a view of it; outputs stay alive.
During a step, its operands, results and workspace are alive together; a result that reuses the memory of an operand is
not a separate block. Inputs and constants, which belong to the caller and to the program, are counted separately.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from tenferro_runtime.costs._costs import cost
from tenferro_runtime.costs._storage import Storage, nbytes
from tenferro_runtime.ir._program import Program
from tenferro_runtime.running.rendering._overwriting import overwriting
from tenferro_tensor import Cost
from tenferro_tensor_core import Dim, DimLike, InconclusiveDimError


@dataclass(frozen=True, slots=True)
class MemoryPlan:
    """The result of `plan_memory`.

    Attributes:
        live: bytes alive during each step, without inputs and constants.
        inputs: bytes of the inputs.
        constants: bytes of the constants.
        costs: cost of each step.
        last: index of the last step that needs each block, by the variable that owns it; the number of steps for
            outputs.
        victims: maps each result that reuses the memory of an operand to that operand.
    """

    live: tuple[DimLike, ...]
    inputs: DimLike
    constants: DimLike
    costs: tuple[Cost, ...]
    last: Mapping[int, int]
    victims: Mapping[int, int]

    def peak(self, sizes: Mapping[str, int]) -> int:
        """Peak of the live bytes, without inputs and constants.

        Data-dependent sizes count with their upper bounds.

        Args:
            sizes: values of the symbolic sizes by name.

        Returns:
            Bytes.

        Raises:
            InconclusiveDimError: a size is neither given nor bounded.
        """
        distinct = {n if isinstance(n, int) else id(n): n for n in self.live}  # comparing sizes may not be conclusive
        return max([_most(n, sizes) for n in distinct.values()], default=0)


def plan_memory(program: Program, donated: Sequence[int] = ()) -> MemoryPlan:
    """The bytes alive at each step.

    Args:
        program: a program as it runs.
        donated: positions of inputs whose memory results may reuse.

    Returns:
        The plan.
    """
    victims = overwriting(program, donated)
    storage = Storage(program, victims)
    last: dict[int, int] = {}
    for i, eq in enumerate(program.equations):
        for v in (*eq.variables, *eq.results):
            last[storage.owner[v]] = i
    for v in program.output_ids:
        last[storage.owner[v]] = len(program.equations)
    ending: dict[int, list[int]] = {}
    for v, i in last.items():
        ending.setdefault(i, []).append(v)
    specs, held = program.specs, 0
    live: list[DimLike] = []
    costs = tuple([cost(program, eq, storage) for eq in program.equations])
    for i, eq in enumerate(program.equations):
        made: DimLike = sum([nbytes(specs[v]) for v in eq.results if storage.owner[v] == v])
        held = held + made  # type: ignore[assignment]
        live.append(held + costs[i].workspace)
        gone: DimLike = sum([nbytes(specs[v]) for v in ending.get(i, ()) if v not in storage.external])
        held = held - gone  # type: ignore[assignment]
    return MemoryPlan(
        tuple(live),
        sum([nbytes(s) for s in program.inputs]),
        sum([nbytes(c.spec) for c in program.constants.values()]),
        costs,
        last,
        victims,
    )


def _most(n: DimLike, sizes: Mapping[str, int]) -> int:
    if isinstance(n, Dim):
        n = n.substitute(sizes)
    if isinstance(n, int):
        return n
    if n.upper is None:
        raise InconclusiveDimError(
            f"{n} bytes have no largest number: {', '.join(sorted(n.variables))} is neither given nor bounded; "
            "give its size",
            dim=n,
        )
    return n.upper
