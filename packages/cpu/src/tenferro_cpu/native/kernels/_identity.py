"""Identity of kernels across processes: their description as text."""

from typing import Any

from tenferro_cpu.native.kernels._fixed import fixed_cost, fixed_row
from tenferro_cpu.native.machine._host import Host
from tenferro_cpu.native.machine._jit import Engine
from tenferro_tensor.device_model import Apply, KernelIR, Literal
from tenferro_tensor_core.forks import importing


def identity(kernel: KernelIR, *more: Any) -> str:
    """A text that is equal only for equal kernels, in every process.

    Args:
        kernel: the kernel.
        more: anything else that its machine code depends on.

    >>> from tenferro_tensor.catalog import mul
    >>> from tenferro_tensor.device_model import Operand
    >>> import numpy as np
    >>> f8 = Operand(np.dtype("float64"))
    >>> identity(KernelIR((f8, f8), (Apply(mul.op(), (0, 1)),), (2,)))
    '<f8 unit,<f8 unit;mul(0, 1);2 unit;None;()'
    """
    inputs = ",".join([f"{o.dtype.str} {o.access.value}" for o in kernel.inputs])
    lines = ",".join(map(_line, kernel.lines))
    outputs = ",".join([f"{i} {access.value}" for i, access in zip(kernel.outputs, kernel.writes)])
    reduction = kernel.reduction and (kernel.reduction.kind, kernel.reduction.over.value)
    return f"{inputs};{lines};{outputs};{reduction};{more}"


def _line(line: Literal | Apply) -> str:
    if isinstance(line, Literal):
        return f"{line.value!r} {line.dtype.str}"
    params = [f"{name}={value!r}" for name, value in sorted(line.op.params.items())]
    return f"{line.op.primitive.name}{'|'.join(params)}{line.args}"


def noted_cost(kernel: KernelIR, engine: Engine) -> float:
    """Nanoseconds per element in one thread; estimated once."""
    if fixed_row(kernel, engine.host):
        return fixed_cost(sum([o.dtype.itemsize for o in (*kernel.inputs, *kernel.written)]))
    return float(engine.noted(f"cost {identity(kernel)}", lambda: repr(_cost(kernel, engine.host))))


def _cost(kernel: KernelIR, host: Host) -> float:
    with importing():
        from tenferro_cpu.native.kernels._render import cost
    return cost(kernel, host)
