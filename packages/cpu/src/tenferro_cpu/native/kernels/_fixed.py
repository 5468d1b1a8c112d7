"""Row kernels that were compiled ahead of time: arithmetic, comparisons and reductions of contiguous arrays."""

from __future__ import annotations

from tenferro_cpu.native._extension import compiled
from tenferro_cpu.native.machine._host import Host
from tenferro_cpu.native.machine._jit import available
from tenferro_tensor.device_model import Access, Apply, KernelIR, Over


def fixed_row(kernel: KernelIR, host: Host) -> int:
    """The address of a kernel that needs no compiler, or 0.

    Args:
        kernel: the kernel, with the accesses along a row.
        host: what it is for: there is fixed code for one vector level of a process only.
    """
    if compiled is None or compiled.LEVEL != host.level:
        return 0
    if kernel.reduction is not None:
        return _reduction(kernel)
    if len(kernel.lines) != 1 or kernel.writes != (Access.UNIT,) or kernel.outputs != (len(kernel.inputs),):
        return 0
    (line,), reads = kernel.lines, tuple([o.access for o in kernel.inputs])
    if (
        not isinstance(line, Apply)
        or line.args != tuple(range(len(reads)))
        or len({o.dtype for o in kernel.inputs}) > 1
    ):
        return 0
    found = compiled.ROWS.get(f"{line.op.primitive.name} {_type(kernel)}") if line.op.primitive.in_house else None
    return 0 if found is None or reads not in _FORMS else found[_FORMS[reads]]


_FORMS = {
    (Access.UNIT,): 0,
    (Access.UNIT, Access.UNIT): 0,
    (Access.UNIT, Access.FIXED): 1,
    (Access.FIXED, Access.UNIT): 2,
}


def _reduction(kernel: KernelIR) -> int:
    (operand, *more), reduction = kernel.inputs, kernel.reduction
    if (
        more
        or kernel.lines
        or kernel.outputs != (0,)
        or operand.access is not Access.UNIT
        or kernel.writes != (Access.UNIT,)
    ):
        return 0
    assert reduction is not None
    if reduction.kind in ("max", "min") and kernel.inputs[0].dtype.kind == "f" and available():
        return 0  # generated code for these is up to a fifth faster
    sums = reduction.kind in ("sum", "prod")
    found = compiled.REDUCTIONS.get(f"{reduction.kind} {_type(kernel, signed=sums)}")
    return 0 if found is None else found[reduction.over is Over.LEADING]


def _type(kernel: KernelIR, *, signed: bool = False) -> str:
    """The name of a type, as in ``"f64"``; booleans are bytes, and sums of integers without a sign those of others."""
    dtype = kernel.inputs[0].dtype
    letter = {"b": "u", "u": "i" if signed else "u"}.get(dtype.kind, dtype.kind)
    return f"{letter}{8 * dtype.itemsize}"
