"""`Batched`: one value for each lane of a batch, with the spec of a single lane.

The value inside is an array of a lower level with an additional leading axis for the lanes. An operation on such values
applies the batching rule of its primitive to the arrays inside.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar, NoReturn

from tenferro_runtime.batching._lanes import lane_by_lane
from tenferro_runtime.batching._records import Shared, lane_of
from tenferro_runtime.batching._replay import by_rule
from tenferro_runtime.batching._rules import batching_rule, by_expansion
from tenferro_runtime.ir._source import here
from tenferro_runtime.tracing import _staging, copied_into_stage, require_own_stage
from tenferro_runtime.tracing.expanding._apply import apply_expansion
from tenferro_tensor import SCALARS, Array, Interval, Op, Spec, catalog
from tenferro_tensor.calls import LanesBase
from tenferro_tensor.promotion import materialised
from tenferro_tensor_core import DimLike, TracingError

_new = object.__new__


class Batched(LanesBase, Array):
    """The values of all lanes of a batch, which operations treat as one value.

    Attributes:
        value: the array inside; the leading axis enumerates the lanes.
        spec: the spec of one lane.
        level: level of the batch that it belongs to.
    """

    __slots__ = ()
    opaque: ClassVar[bool] = True
    value: Any
    spec: Spec
    level: int

    def _bind(self, op: Op, args: tuple[Any, ...]) -> Any:
        if _staging.active:
            inner = _staging.stage_above(self.level)
            if inner is not None:
                return inner.bind(op, args)
        return apply_batched(op, args, self.level, self.value.spec.shape[0])

    def _copied(self) -> Any:
        return copied_into_stage(self, self._alias)

    def _go_over(self, updated: Any) -> None:
        require_own_stage(self, updated)
        super()._go_over(updated)

    def _interval(self) -> Interval:
        return Interval(None, None)

    def _linear_form(self) -> None:
        return None

    def _refuse(self, asked: str, fix: str) -> NoReturn:
        raise TracingError(
            f"{asked}{here()}: this {self.spec!r} is one lane of a batch of {self.value.spec.shape[0]} under vmap, and "
            f"the lanes may differ; {fix}",
            spec=repr(self.spec),
        )

    def _as_extent(self, most: DimLike | None) -> DimLike:
        self._refuse(
            "a data-dependent extent was requested",
            "keep the full extent and mask with where(), or map this step over the lanes with map()",
        )

    def _concrete(self) -> Any:
        self._refuse("the elements were requested", "return the value from the function and look at it outside")

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        self._refuse("a NumPy array was requested", "compute with tenferro functions instead of NumPy's")

    def numpy(self, *args: Any, **kwargs: Any) -> NoReturn:
        """Not available: a lane has no array of its own.

        Args:
            args: ignored.

        Returns:
            Nothing.

        Raises:
            TracingError: always.
        """
        self._refuse("a NumPy array was requested", "return the value and convert it outside")

    def __dlpack__(self, **kwargs: Any) -> Any:
        self._refuse("a DLPack capsule was requested", "return the value and export it outside")

    def __bool__(self) -> bool:
        self._refuse(
            "a truth value was requested (by if, while, and, or, not, assert)",
            "use where() to choose between values, and cond() or while_loop() to branch or loop: each lane takes its "
            "own branch",
        )

    def __int__(self) -> int:
        self._refuse("int() was requested", "use astype()")

    def __float__(self) -> float:
        self._refuse("float() was requested", "use astype(), or return the value and look at it outside")

    def __complex__(self) -> complex:
        self._refuse("complex() was requested", "use astype(), or return the value and look at it outside")

    def __index__(self) -> int:
        self._refuse("an integer was requested (by range(), indexing a list, or a shape)", "index an array of tenferro")

    def item(self) -> NoReturn:
        """Not available: the lanes may differ."""
        self._refuse("item() was requested", "return the value and look at it outside")

    def tolist(self) -> NoReturn:
        """Not available: the lanes may differ."""
        self._refuse("tolist() was requested", "return the value and look at it outside")

    def __repr__(self) -> str:
        return f"Batched({self.spec!r}, lanes={self.value!r})"

    def __reduce__(self) -> NoReturn:
        self._refuse("pickling was requested", "return the value and save it outside")


def batched(value: Any, level: int) -> Batched:
    """A value whose leading axis enumerates the lanes."""
    z = _new(Batched)
    z.value, z.spec, z.level = value, lane_of(value.spec), level
    return z


def apply_batched(op: Op, args: Sequence[Any], level: int, size: DimLike) -> Any:
    """Apply an op to all lanes at once.

    Args:
        op: the op.
        args: its operands, some of them `Batched` of the level.
        level: the level of the batch.
        size: the number of lanes.
    """
    values: list[Any] = []
    flags: list[bool] = []
    ranks: list[int] = []
    for a in args:
        if a.__class__ is Batched and a.level == level:
            values.append(a.value)
            flags.append(True)
            ranks.append(a.spec.ndim)
        else:
            values.append(a)
            flags.append(False)
            ranks.append(0 if a.__class__ in SCALARS else a.spec.ndim)
    if op.primitive.elementwise:
        most = max(ranks)
        for i, rank in enumerate(ranks):
            if rank < most and flags[i]:
                values[i] = _with_rank(values[i], most)
        return batched(op(*values), level)
    given = materialised(tuple(values))
    rule = batching_rule(op.primitive)
    if rule is not None:
        out = by_rule(rule, op, size, given, tuple(flags))
    elif by_expansion(op.primitive):
        operands = materialised(tuple(args))
        found = apply_expansion(op, operands)
        return found if isinstance(op.infer(*[x.spec for x in operands]), tuple) else found[0]
    else:
        out = lane_by_lane(op, size, given, tuple(flags))
    if out.__class__ is tuple:
        return tuple([_wrapped(x, level) for x in out])
    return _wrapped(out, level)


def _wrapped(x: Any, level: int) -> Any:
    return x.value if x.__class__ is Shared else batched(x, level)


def _with_rank(value: Any, rank: int) -> Any:
    """Insert axes of extent 1 after the lane axis, so that the remaining axes broadcast."""
    size, *shape = value.spec.shape
    return catalog.reshape(value, shape=(size, *(1,) * (rank - len(shape)), *shape))
