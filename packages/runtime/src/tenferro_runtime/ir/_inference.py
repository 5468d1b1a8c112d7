"""Output specs of equations: the specs of literals, the check of places, and a cache of both."""

from __future__ import annotations

from typing import Any

from tenferro_runtime._caches import BoundedCache
from tenferro_runtime.ir._program import inner_programs
from tenferro_tensor import Op, Spec
from tenferro_tensor.entries import device_of
from tenferro_tensor.promotion import targets
from tenferro_tensor_core import DTypeError, reached

Seen = Spec | type
"""Spec of an array operand, or class of a Python scalar."""

INFERRED: BoundedCache[tuple[Any, ...], tuple[tuple[Spec, ...], bool]] = BoundedCache(
    "tenferro_runtime: inferred specs", 16384, recency=False
)
"""Output specs, and whether they are a tuple, by op and operands in the form of the IR."""


def operand_specs(op: Op, seen: tuple[Seen, ...]) -> tuple[Spec, ...]:
    """Specs of the operands, including those of literals."""
    if all(isinstance(s, Spec) for s in seen):
        return seen  # type: ignore[return-value]
    goal = targets(op, seen)
    for s, t in zip(seen, goal, strict=True):
        if isinstance(s, Spec) and s is not t:
            raise DTypeError(
                f"{op.primitive.name} is element-wise, and with a number of class "
                f"{', '.join(c.__name__ for c in seen if not isinstance(c, Spec))} its operand {s!r} must be {t!r}; "
                "convert and broadcast it first",
                primitive=op.primitive.name,
            )
    return goal


def infer(op: Op, seen: tuple[Seen, ...]) -> tuple[tuple[Spec, ...], bool]:
    """Output specs of an op, and whether it has several outputs.

    Decisions of a trace about symbolic sizes are never cached, because each trace must record its own guards. Answers
    that follow from bounds are valid for all traces.
    """
    key = (op, *seen)
    known = INFERRED.table.get(key)
    if known is not None:
        return known
    before = reached()
    specs = operand_specs(op, seen)
    given = [s for s in seen if isinstance(s, Spec)]
    if given and any(s.place is not given[0].place for s in given):
        device_of(op, given)
    out = op.infer(*specs)
    result = (out, True) if isinstance(out, tuple) else ((out,), False)
    # An op that holds a program is owned by it, and must not outlive it here.
    owned = bool(inner_programs(op.params))
    if not owned and reached() == before:
        INFERRED.put(key, result)
    return result
