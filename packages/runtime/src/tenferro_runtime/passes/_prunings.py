"""Prunings: cheaper ops from the registry for ops with unused outputs."""

from __future__ import annotations

from tenferro_tensor import REGISTRY, Op
from tenferro_tensor_core import RegistryError

Pruned = tuple[Op, tuple[int | None, ...]]


def pruned(op: Op, used: tuple[bool, ...], *, rounding: bool = True) -> Pruned | None:
    """The cheaper op for an op with unused outputs.

    Args:
        op: an op of several outputs.
        used: which of them are used.
        rounding: whether the remaining outputs may round differently.

    Returns:
        The op, and for each old output its position among the new ones, or ``None`` if it is gone; ``None`` to keep the
        op.

    Raises:
        RegistryError: the pruning returned something else.
    """
    pruning = REGISTRY.find("pruning", op.primitive)
    if pruning is None or not (pruning.keeps_bits or rounding):
        return None
    found = pruning.prune(op, used)
    if found is None:
        return None
    if not _fits(found, used):
        raise RegistryError(
            f"the pruning of {op.primitive.name} returned {found!r:.80} for the used outputs {used}; let it return an "
            "op and a tuple with the new position of each output, None for removed ones, or None to keep the op",
            primitive=op.primitive.name,
        )
    return found  # type: ignore[no-any-return]


def _fits(found: object, used: tuple[bool, ...]) -> bool:
    """Whether each used output has a position, and the positions are 0, 1, 2 and so on."""
    if not isinstance(found, tuple) or len(found) != 2 or not isinstance(found[0], Op):
        return False
    outputs = found[1]
    if not isinstance(outputs, tuple) or len(outputs) != len(used):
        return False
    there = [i for i in outputs if i is not None]
    return sorted(there) == list(range(len(there))) and not any(u and i is None for u, i in zip(used, outputs))
