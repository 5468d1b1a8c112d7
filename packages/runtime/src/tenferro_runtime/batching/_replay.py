"""Batching rules recorded as operations for operands of given specs, and replayed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from tenferro_runtime._caches import BoundedCache
from tenferro_runtime.batching._records import BatchingRule, Flags, Shared, Values, batch_of, lane_specs
from tenferro_runtime.ir._program import Literal, inner_programs
from tenferro_runtime.ir._replay import Replay
from tenferro_runtime.passes.dead_code import remove_dead_code
from tenferro_runtime.tracing._staged import staged
from tenferro_tensor import REGISTRY, Op
from tenferro_tensor.calls import state
from tenferro_tensor_core import DimLike, RegistryError, TenferroError, likely

TRACE_USES: Final = 3
"""A rule is recorded after this many uses with operands of equal specs."""

REPLAYS: Final[BoundedCache[Any, Any]] = BoundedCache("tenferro_runtime: batching rules for specs", 4096, recency=False)
"""By rule, op, flags and specs: the number of uses, then the replay, or the rule if it cannot be recorded."""


class Recorded(Replay):
    """A rule as a replay of its operations."""

    __slots__ = ("many", "outputs")

    def __init__(self, rule: BatchingRule, op: Op, size: DimLike, values: Values, batched: Flags) -> None:
        shared: list[bool] = []

        def by_rule(*xs: Any) -> list[Any]:
            out = rule(size, xs, batched, **op.params)
            self.many = out.__class__ is tuple
            outs = out if self.many else (out,)
            shared.extend([x.__class__ is Shared for x in outs])
            return [x.value if alike else x for x, alike in zip(outs, shared, strict=True)]

        made = staged(by_rule, [v.spec for v in values])
        program = remove_dead_code(made.program)
        if made.captured or any(isinstance(v, Literal) for eq in program.equations for v in eq.operands):
            raise TenferroError("a rule with numbers, or with values from outside, runs as it is written")
        super().__init__(program)
        self.outputs = tuple(zip(self.results, shared, strict=True))

    def __call__(self, values: Sequence[Any]) -> Any:
        registers = self.registers(values)
        if not self.many:
            at, alike = self.outputs[0]
            return Shared(registers[at]) if alike else registers[at]
        return tuple([Shared(registers[at]) if alike else registers[at] for at, alike in self.outputs])


def by_rule(rule: BatchingRule, op: Op, size: DimLike, values: Values, batched: Flags) -> Any:
    """Apply a rule, by replay if it was recorded for these specs."""
    key = (rule, op, batched, *[v.spec for v in values])
    found = REPLAYS.table.get(key, 0)
    if found.__class__ is Recorded:
        return found(values)
    if found.__class__ is int and not state.open_scopes:
        REPLAYS.put(key, found + 1 if found < TRACE_USES else _written_down(rule, op, size, values, batched))
    out = rule(size, values, batched, **op.params)
    made = REGISTRY.registration("batching", op.primitive)
    if made is not None and not made.owner.ours:
        _require_lanes(op, size, values, batched, out, str(made.owner))
    return out


def _require_lanes(op: Op, size: DimLike, values: Values, batched: Flags, out: Any, owner: str) -> None:
    """Refuse results of a third party's rule that are not batches of what the inference says of a lane."""
    inferred = op.infer(*lane_specs(values, batched))
    lanes = inferred if isinstance(inferred, tuple) else (inferred,)
    found = out if isinstance(out, tuple) else (out,)
    right = isinstance(out, tuple) == isinstance(inferred, tuple) and len(found) == len(lanes)
    for x, lane in zip(found, lanes):
        alike = x.__class__ is Shared
        have, want = (x.value if alike else x).spec, lane if alike else batch_of(lane, size)
        right = right and have.dtype == want.dtype and have.ndim == want.ndim
        right = right and all(likely(n, "==", m) for n, m in zip(have.shape, want.shape))
    if not right:
        shown = ", ".join([repr(getattr(x, "spec", x)) for x in found])
        raise RegistryError(
            f"the batching rule of {op.primitive.name} returned {shown} for {size} lanes of "
            f"{', '.join(map(repr, lanes))}; correct the rule of {owner}, whose results have the lanes in front",
            primitive=op.primitive.name,
        )


def _written_down(rule: BatchingRule, op: Op, size: DimLike, values: Values, batched: Flags) -> Any:
    if inner_programs(op.params) or op.symbolic or any(v.spec.symbolic for v in values):
        return rule
    try:
        return Recorded(rule, op, size, values, batched)
    except TenferroError:
        return rule
