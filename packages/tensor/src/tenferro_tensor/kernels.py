"""Kernels as programs call them: third-party kernels cannot write to operands, and their results are checked.

A tensor matches its spec: all code after a kernel relies on that, machine code included. Tests establish it for
tenferro's own kernels. Third-party kernels, and every kernel of a third-party backend, are checked at every call, since
a mistake may depend on the data. They receive arrays in main memory as read-only views, because tensors never change.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, NoReturn

import numpy as np

from tenferro_tensor._owners import in_house
from tenferro_tensor._place import ComputeDevice
from tenferro_tensor._primitive import Op
from tenferro_tensor._registry import REGISTRY
from tenferro_tensor._spec import Spec
from tenferro_tensor.backends import Backend, OpenKernel
from tenferro_tensor.calls import SCALARS
from tenferro_tensor.hooks import require_call
from tenferro_tensor.ownership import read_only
from tenferro_tensor_core import RegistryError

__all__ = ["ANY", "Results", "followed", "kernel_of", "open_kernel_of", "shapeless_kernel_of", "trusted"]

ANY: Final = None
"""Stands for an unknown shape."""

_HOST: Final = (np.ndarray, np.generic)


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
    return Results(backend, op, ins, outs).checked(run, [out.shape for out in outs])


def shapeless_kernel_of(
    backend: Backend, op: Op, ins: tuple[Spec, ...], outs: tuple[Spec, ...], device: ComputeDevice
) -> Callable[..., Any]:
    """`kernel_of` for operands of any extents: the shapes of results are not checked.

    Args:
        backend: the backend.
        op: the op.
        ins: specs of the operands.
        outs: specs of the results.
        device: device that runs it.

    Returns:
        A callable on raw arrays.
    """
    run = backend.kernel(op, ins, outs, device)
    if trusted(backend, op, outs):
        return run
    _require_kernel(op, run, ins)
    return Results(backend, op, ins, outs).checked(run, [ANY for _ in outs])


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
    run = Results(backend, op, ins, outs).checked_open(kernel.run)
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


class Results:
    """Checks the results of one kernel.

    Args:
        backend: runs the kernel.
        op: the op.
        ins: specs of the operands.
        outs: specs of the results; extents may be symbolic.
    """

    def __init__(self, backend: Backend, op: Op, ins: tuple[Spec, ...], outs: tuple[Spec, ...]) -> None:
        self.op: Op = op
        self.outs: tuple[Spec, ...] = outs
        self.backend: str = backend.name
        self.many: bool = len(outs) != 1 or isinstance(op.infer(*ins), tuple)
        # For each result, the operands in its memory: outside main memory, the result must be an array of their class.
        self.beside: list[tuple[int, ...]] = [
            tuple([i for i, s in enumerate(ins) if s.place.memory_space is out.place.memory_space]) for out in outs
        ]

    def checked(self, run: Callable[..., Any], shapes: list[Any]) -> Callable[..., Any]:
        """The kernel, with its results checked.

        Args:
            run: the kernel.
            shapes: shapes of the results, `ANY` for unknown ones.

        Returns:
            A callable on raw arrays.
        """
        run = _reading(run)
        if self.many or not self.outs[0].place.on_host or shapes[0] is ANY:
            return lambda *raws: self.held(run(*raws), raws, shapes)
        shape, dtype = shapes[0], self.outs[0].dtype
        single = (np.ndarray,) if shape else (np.ndarray, dtype.type)

        def run_checked(*raws: Any) -> Any:
            out = run(*raws)
            if out.__class__ in single and out.shape == shape and out.dtype == dtype:
                return out
            return self.held(out, raws, shapes)

        return run_checked

    def checked_open(self, run: Callable[..., Any]) -> Callable[..., Any]:
        """The checked kernel for all sizes; its last arguments are the shapes of the results.

        Args:
            run: the kernel.

        Returns:
            A callable on raw arrays, sizes and shapes.
        """
        count, run = len(self.outs), _reading(run)
        return lambda *raws: self.held(run(*raws[:-count]), raws, raws[-count:])

    def held(self, out: Any, raws: tuple[Any, ...], shapes: Any) -> Any:
        """Check the results of a call.

        Args:
            out: result of the kernel.
            raws: its operands.
            shapes: shapes of the results.

        Returns:
            `out`.

        Raises:
            RegistryError: it does not match the inference.
        """
        found = out if self.many else (out,)
        if found.__class__ is not tuple or len(found) != len(self.outs):
            self._refuse([_shown(x) for x in found] if isinstance(found, tuple) else [_shown(found)], shapes)
        for raw, spec, shape, beside in zip(found, self.outs, shapes, self.beside, strict=True):
            if not _is_array(raw, spec, [raws[i] for i in beside]):
                self._refuse([_shown(x, type(x).__name__) for x in found], shapes)
            if raw.dtype != spec.dtype or (shape is not ANY and tuple(raw.shape) != shape):
                self._refuse([_shown(x) for x in found], shapes)
        return out

    def _refuse(self, found: list[str], shapes: Any) -> NoReturn:
        name = self.op.primitive.name
        wanted = [
            repr(spec if shape is ANY else spec.with_(shape=tuple(shape)))
            for spec, shape in zip(self.outs, shapes, strict=True)
        ]
        raise RegistryError(
            f"the kernel of {name} returned {', '.join(found) or 'nothing'}, but its inference says "
            f"{', '.join(wanted)}{' in a tuple' if self.many else ''}; correct the kernel{self._owner()}, or the "
            "inference function",
            primitive=name,
        )

    def _owner(self) -> str:
        made = REGISTRY.registration("kernel", self.op.primitive, self.backend)
        return "" if made is None or made.owner.ours else f" of {made.owner}"


def _reading(run: Callable[..., Any]) -> Callable[..., Any]:
    """A kernel that receives read-only views; NumPy raises if it writes to one."""
    return lambda *raws: run(*[read_only(x) if x.__class__ is np.ndarray else x for x in raws])


def _is_array(raw: Any, spec: Spec, beside: list[Any]) -> bool:
    if spec.place.on_host:
        return raw.__class__ is np.ndarray or (isinstance(raw, np.generic) and raw.shape == ())
    for like in beside:
        if type(like) not in SCALARS:
            return isinstance(raw, _HOST if isinstance(like, _HOST) else type(like))
    return hasattr(raw, "shape") and hasattr(raw, "dtype")


def _shown(raw: Any, kind: str = "") -> str:
    shape, dtype = getattr(raw, "shape", None), getattr(raw, "dtype", None)
    if shape is None or dtype is None:
        return type(raw).__name__
    return f"{kind}{' ' if kind else ''}{dtype}{list(shape)}"
