"""The lowering of each core primitive to StableHLO; other packages register theirs with ``Registry.lowering``.

A lowering is called as ``lower(emitter, operands, outs, **params)`` and returns an `HloValue` or a tuple of them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tenferro_tensor import Primitive
from tenferro_xla.lowerings.control_flow import CONTROL_FLOW
from tenferro_xla.lowerings.elementwise import ELEMENTWISE
from tenferro_xla.lowerings.indexing import INDEXING
from tenferro_xla.lowerings.reduction import REDUCTIONS
from tenferro_xla.lowerings.structure import STRUCTURE

Lowering = Callable[..., Any]

CORE: dict[Primitive, Lowering] = {**ELEMENTWISE, **STRUCTURE, **REDUCTIONS, **INDEXING, **CONTROL_FLOW}
"""Lowerings of the core primitives."""

__all__ = ["CORE", "Lowering"]


def __dir__() -> list[str]:
    return __all__.copy()
