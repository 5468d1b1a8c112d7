"""Whether an effect takes place immediately or as a step of the program that is being recorded."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextvars import ContextVar
from typing import Any, Final

from tenferro_runtime.ir._effects import effectful
from tenferro_runtime.ir._interpret import recording
from tenferro_runtime.tracing._builder import Builder
from tenferro_runtime.tracing._staging import stage_above
from tenferro_runtime.tracing._traced import TracedTensor, innermost
from tenferro_tensor import Op, Tensor
from tenferro_tensor_core import decisions

_waiting: Final[ContextVar[list[Callable[[], Any]] | None]] = ContextVar("tenferro effects that wait", default=None)


def ambient() -> Builder | None:
    """The builder of the innermost trace, branch or body that is being recorded.

    Returns:
        The builder, or ``None``.
    """
    staged, going_on = stage_above(-1), decisions()
    if staged is None and going_on is None:
        return None
    home = None if going_on is None else going_on.home
    found = [b for b in (staged, home) if isinstance(b, Builder) and not b.closed]
    return max(found, key=lambda b: b.level, default=None)


def run_or_record(op: Callable[[], Op], values: Sequence[Any], now: Callable[..., Any]) -> None:
    """Perform an effect on the values inside differentiated ones, or record it.

    It belongs to the innermost recording, even if all its operands are concrete or come from outside.

    Args:
        op: returns the op to record.
        values: the operands.
        now: performs the effect on NumPy arrays.
    """
    inner = [innermost(v) for v in values]
    top = max(inner, key=lambda v: v.level, default=None)
    builder = ambient()
    if top is not None and top.__class__ is TracedTensor and (builder is None or top.home.level > builder.level):
        builder = top.home
    if builder is not None and (top is None or top.level <= builder.level):
        builder.emit(op(), inner)
    elif top is None or top.level == 0:
        now(*[v.numpy() for v in inner])
    elif builder is None and all(recording(v) is None for v in inner):
        for k in range(top.value.spec.shape[0]):
            run_or_record(op, [innermost(v.value)[k] if v.level == top.level else v for v in inner], now)
    else:
        op()(*inner)


def apply_here(op: Op, operands: Sequence[Any]) -> Any:
    """Apply an op that may hold programs with effects; with concrete operands it belongs to the innermost recording.

    Args:
        op: the op.
        operands: its operands.

    Returns:
        The results.
    """
    if effectful(op) and all(v.__class__ is Tensor for v in operands):
        builder = ambient()
        if builder is not None:
            return builder.emit(op, operands)
    return op(*operands)


class Attempt:
    """A first attempt to run a body in Python, which is repeated or recorded if its values require that.

    Effects are deferred until the end of the scope; `give_up` drops them.
    """

    __slots__ = ("_builder", "_held", "_mark", "_token")

    def __enter__(self) -> Attempt:
        self._builder = ambient()
        self._mark = 0 if self._builder is None else self._builder.mark()
        self._held: list[Callable[[], Any]] = []
        self._token = _waiting.set(self._held)
        return self

    def __exit__(self, *error: object) -> None:
        _waiting.reset(self._token)
        for effect in self._held:
            perform(effect)

    def give_up(self) -> None:
        """Drop the effects so far, so that none takes place twice."""
        self._held.clear()
        if self._builder is not None:
            self._builder.silence(self._mark)


def perform(effect: Callable[[], Any]) -> None:
    """Perform an effect, now or after the enclosing attempt has succeeded."""
    waiting = _waiting.get()
    if waiting is None:
        effect()
    else:
        waiting.append(effect)
