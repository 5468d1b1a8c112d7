"""Kernels as programs call them: third-party kernels cannot write to operands, and their results are checked.

Third-party kernels are those that third parties registered, and all kernels of their backends; see `Results`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tenferro_tensor._owners import in_house
from tenferro_tensor._place import ComputeDevice
from tenferro_tensor._primitive import Op
from tenferro_tensor._registry import REGISTRY
from tenferro_tensor._spec import Spec
from tenferro_tensor.backends import Backend, OpenKernel
from tenferro_tensor.hooks import require_call
from tenferro_tensor.results import Maker, Results
from tenferro_tensor_core import RegistryError

__all__ = ["followed", "kernel_of", "open_kernel_of", "trusted"]


def __dir__() -> list[str]:
    return __all__.copy()


def kernel_of(
    backend: Backend, op: Op, ins: tuple[Spec, ...], outs: tuple[Spec, ...], device: ComputeDevice
) -> Callable[..., Any]:
    """`Backend.kernel`; results of third-party kernels are checked at every call.

    Args:
        backend: the backend.
        op: the op.
        ins: specs of the operands.
        outs: specs of the results.
        device: device that runs it.

    Returns:
        A callable on raw arrays, which raises `RegistryError` if a result does not match the inference.

    Raises:
        RegistryError: the kernel is not a callable that takes the operands.
    """
    run = backend.kernel(op, ins, outs, device)
    if trusted(backend, op, outs):
        return run
    _require_kernel(op, run, ins)
    return _results(backend, op, ins, outs).checked(run, [out.shape for out in outs])


def open_kernel_of(
    backend: Backend, op: Op, ins: tuple[Spec, ...], outs: tuple[Spec, ...], device: ComputeDevice
) -> OpenKernel | None:
    """`Backend.open_kernel`; the wrapper that checks a third-party kernel also takes the shapes of its results.

    Args:
        backend: the backend.
        op: the op.
        ins: specs of the operands.
        outs: specs of the results.
        device: device that runs it.

    Returns:
        The kernel, or None.
    """
    kernel = backend.open_kernel(op, ins, outs, device)
    if kernel is None or trusted(backend, op, outs):
        return kernel
    shapes, name = tuple([out.shape for out in outs]), op.primitive.name
    if not isinstance(kernel.sizes, tuple):
        raise RegistryError(
            f"the sizes of the kernel maker of {name} gave {kernel.sizes!r:.80}; let them give a tuple of extents "
            "and of tuples of extents",
            primitive=name,
        )
    _require_kernel(op, kernel.run, (*ins, *kernel.sizes))
    run = _results(backend, op, ins, outs).checked_open(kernel.run)
    return kernel._replace(run=run, sizes=(*kernel.sizes, *shapes))


def followed(kernel: Callable[..., Any], sizes: tuple[Any, ...]) -> Callable[..., Any]:
    """Append constant arguments to the calls of a kernel.

    Args:
        kernel: the kernel.
        sizes: the trailing arguments.

    Returns:
        A callable on raw arrays.
    """
    if not sizes:
        return kernel
    return lambda *raws: kernel(*raws, *sizes)


def _require_kernel(op: Op, run: Any, arguments: tuple[Any, ...]) -> None:
    names = [f"x{i}" for i in range(len(arguments))]
    require_call(
        f"the kernel that was made for {op.primitive.name}", op.primitive, run, arguments, f"({', '.join(names)})"
    )


def trusted(backend: Backend, op: Op, outs: tuple[Spec, ...]) -> bool:
    """Whether kernel and backend are tenferro's own, and the results are in memory of that backend.

    Args:
        backend: the backend.
        op: the op.
        outs: specs of the results.

    Returns:
        True if results need no check.
    """
    home = "host" if backend.name == "cpu" else backend.name
    for out in outs:
        if out.place.memory_space.kind != home:
            return False
    made = REGISTRY.registration("kernel", op.primitive, backend.name)
    return in_house(type(backend).__module__) and (made is None or made.owner.ours)


def _results(backend: Backend, op: Op, ins: tuple[Spec, ...], outs: tuple[Spec, ...]) -> Results:
    """The check of the results of a kernel."""
    name = op.primitive.name

    def remedy() -> str:
        made = REGISTRY.registration("kernel", op.primitive, backend.name)
        owner = "" if made is None or made.owner.ours else f" of {made.owner}"
        return f"correct the kernel{owner}, or the inference function"

    maker = Maker(f"the kernel of {name}", "its inference says", remedy, {"primitive": name})
    return Results(maker, ins, outs, len(outs) != 1 or isinstance(op.infer(*ins), tuple))
