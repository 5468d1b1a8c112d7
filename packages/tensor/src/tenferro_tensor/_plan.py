"""Forward plans: for an op and operand specs, the kernel on raw arrays and the output specs, found once."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from tenferro_tensor._backend import get_backend
from tenferro_tensor._normalise import Operand, targets
from tenferro_tensor._primitive import Op
from tenferro_tensor._select import decide
from tenferro_tensor._spec import Spec
from tenferro_tensor_core import TracingError

PLANS_PER_OP: Final = 512
"""Bound of each plan table; a table that outgrows it starts anew."""


class Plan:
    """How to run one op on operands of given specs: ``run(*raws)``, and the output spec or specs.

    Attributes:
        run: kernel on raw arrays (and Python scalars), specialised for the specs.
        out: output spec, or tuple of specs.
        many: whether ``out`` is a tuple and ``run`` returns one.
    """

    __slots__ = ("many", "out", "run")

    def __init__(self, run: Callable[..., Any], out: Spec | tuple[Spec, ...]) -> None:
        self.run, self.out, self.many = run, out, isinstance(out, tuple)


def remember(table: dict[Any, Any], key: Any, plan: Any) -> Any:
    """Put a plan in a bounded table."""
    if len(table) >= PLANS_PER_OP:
        table.clear()
    table[key] = plan
    return plan


def make_plan(op: Op, operands: tuple[Operand, ...]) -> Plan:
    """Infer outputs, select the device and specialise the kernel.

    For an element-wise op the kernel broadcasts by itself; only operands of another dtype are converted before it.
    """
    given = [o for o in operands if isinstance(o, Spec)]
    device = decide(op.primitive.name, given or _created(op))
    specs = targets(op, operands) if op.primitive.elementwise else operands
    out = op.infer(*specs)  # type: ignore[arg-type]
    outs = out if isinstance(out, tuple) else (out,)
    if any(o.symbolic for o in outs):
        raise TracingError(
            f"{op!r} of concrete operands has a symbolic size, which has no number outside of the trace; derive the "
            "operand from a traced value (zeros_like, full_like, or an element-wise function of both)",
            primitive=op.primitive.name,
        )
    run = get_backend(device.kind).kernel(op, specs, outs, device)  # type: ignore[arg-type]
    casts = [
        (i, t.dtype)
        for i, (o, t) in enumerate(zip(operands, specs, strict=True))
        if isinstance(o, Spec) and isinstance(t, Spec) and o.dtype != t.dtype
    ]
    return Plan(_with_casts(run, casts) if casts else run, out)


def _created(op: Op) -> list[Spec]:
    """An op without operands names its place in its metadata."""
    out = op.infer()
    return [out] if isinstance(out, Spec) else list(out)


def _with_casts(run: Callable[..., Any], casts: list[tuple[int, Any]]) -> Callable[..., Any]:
    def run_converted(*raws: Any) -> Any:
        converted = list(raws)
        for i, dtype in casts:
            converted[i] = raws[i].astype(dtype)
        return run(*converted)

    return run_converted
