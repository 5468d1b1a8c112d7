"""`CpuBackend`: the reference kernels on NumPy, and machine code where that is faster, in the calling thread."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from functools import cache
from types import ModuleType
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from tenferro_cpu.native import available
from tenferro_cpu.native._extension import compiled
from tenferro_cpu.native.codegen.machine import _jit
from tenferro_cpu.native.copying import _movement
from tenferro_cpu.native.eager import _eager, _eager_reduce
from tenferro_cpu.native.kernels.ordering import _along
from tenferro_cpu.native.kernels.products import _products
from tenferro_cpu.native.kernels.random import _draw
from tenferro_cpu.native.memory import _pool
from tenferro_cpu.native.threads import _threads
from tenferro_cpu.pools import inside, open_pools, opened
from tenferro_cpu.pools._opened import CALLER
from tenferro_cpu.pools._opened import devices as pool_devices
from tenferro_tensor import REGISTRY, Backend, ComputeDevice, Op, OpenKernel, Spec, catalog, library
from tenferro_tensor.backends import LibraryEntry, NativeProgram, ObjectCode, ObjectTarget
from tenferro_tensor.device_model import chosen_toolchain
from tenferro_tensor.kernels import kernel_of
from tenferro_tensor.reference import kernels
from tenferro_tensor_core import BackendUnavailableError
from tenferro_tensor_core.forks import importing

if TYPE_CHECKING:
    from tenferro_tensor.device_model import ContractionGraph, ContractionIR, ContractionKernel
    from tenferro_tensor.loop_ir import LoopFunction

_VIEWS = frozenset(
    {catalog.transpose, catalog.reverse, catalog.slice_, catalog.broadcast_in_dim, catalog.stop_gradient}
)
"""Primitives whose large results are views, which need no allocation."""

_UPDATES = frozenset({catalog.scatter, catalog.dynamic_update_slice, catalog.update_slice})

_ROUNDED_ONCE = frozenset({catalog.add, catalog.sub, catalog.mul, catalog.div, catalog.neg, catalog.sqrt})
"""Primitives whose result does not depend on NumPy's choice of loop, so operands may be overwritten."""


TOOLCHAIN_VARIABLE: Final = "TENFERRO_CPU_TOOLCHAIN"
"""Environment variable that `chosen_toolchain` reads for the CPU."""


def _has_chosen_toolchain() -> bool:
    """Whether the user chose another toolchain than LLVM."""
    return chosen_toolchain("cpu") not in (None, "llvm")


class CpuBackend(Backend):
    """Runs ops on NumPy arrays in main memory; `cpu:0` is the calling thread, the other devices are pools.

    The methods implement `tenferro_tensor.Backend`.

    Methods take:
        array: NumPy array.
        raw: raw value, a NumPy array or scalar.
        device: compute device of this backend.
        name: name of a library or of a routine.
        symbol: symbol of a routine.
        op, ins, outs: the op, and the specs of its operands and results.
        operands, result: dtypes of operands and of the result.
        region, fallback, later: region to fuse, its generic path, and the background queue.
        function, bare: the loop function, and whether to return a single output without a tuple.
        entries, level: programs by name, and a vector level.
        ir: the contraction, or graph of contractions.
        run, largest: the callable, and the bytes of the largest value.

    Methods return:
        As specified by `tenferro_tensor.Backend`.
    """

    name = "cpu"

    def devices(self) -> tuple[ComputeDevice, ...]:
        """The calling thread, and the open pools."""
        return pool_devices()

    def info(self) -> dict[str, Any]:
        """See `tenferro_cpu.info`."""
        with importing():
            from tenferro_cpu._info import info
        return info()

    def upload(self, array: np.ndarray[Any, Any], device: ComputeDevice) -> np.ndarray[Any, Any]:
        """Return the array itself, which is already in main memory."""
        return array

    def download(self, raw: Any) -> np.ndarray[Any, Any]:
        """Return the array itself; a NumPy scalar becomes a 0-d array."""
        return np.asarray(raw)

    def synchronize(self) -> None:
        """Wait until the pools have run everything posted to them; kernels return when they are done."""
        for pool in open_pools():
            pool.synchronize()

    def library(self, name: str) -> ModuleType:
        """See `Backend.library`: NumPy and SciPy themselves."""
        return library(name)

    def routine(self, name: str) -> Callable[..., Any] | None:
        """See `Backend.routine`: routines of the C extension."""
        found: Callable[..., Any] | None = None if compiled is None else compiled.SMALL.get(name)
        return found

    def routine_address(self, symbol: str) -> int | None:
        """See `Backend.routine_address`: routines of the C extension."""
        found: int | None = None if compiled is None else compiled.ADDRESSES.get(symbol)
        return found

    def require(self, device: ComputeDevice) -> None:
        """See `Backend.require`; the error for a missing pool says how to open one."""
        if device is not CALLER:
            opened(device)

    def submit(self, device: ComputeDevice, run: Callable[[], None]) -> None:
        """See `Backend.submit`: `cpu:0` runs it now, pools run what is posted in order."""
        if device is CALLER:
            run()
        else:
            opened(device).submit(run)

    def kernel(
        self, op: Op, ins: tuple[Spec, ...], outs: tuple[Spec, ...], device: ComputeDevice
    ) -> Callable[..., Any]:
        """See `Backend.kernel`.

        Kernels that call BLAS or LAPACK run with as many threads as the operands pay for, and large results come from
        the memory pool. Kernels of pools run in the pool's thread, and with its memory.
        """
        run = super().kernel(op, ins, outs, device)
        if TOOLCHAIN_VARIABLE in os.environ and op.primitive.elementwise and _has_chosen_toolchain():
            with importing():
                from tenferro_cpu.native.kernels import _chosen
            run = _chosen.elementwise(op, ins, outs[0], run)
        if getattr(REGISTRY.find("kernel", op.primitive, self.name), "blas", False):
            run = _threads.bounded(run, sum(map(_threads.work_of, ins)))
        if device is not CALLER:
            return run if op.primitive in _VIEWS else _handed_over(device, run)
        # A kernel with a faster version allocates from the pool itself.
        return run if op.primitive in _VIEWS or hasattr(run, "ready") else _pool.pooled(run, outs)

    def copied(self, array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        """See `Backend.copied`: in memory of the pool."""
        copy: np.ndarray[Any, Any] = _pool.pooled_replay(super().copied)(array)
        return copy

    def compiles_wholes(self) -> bool:
        """See `Backend.compiles_wholes`; raises `ArgumentError` where the chosen toolchain does not exist."""
        if not _has_chosen_toolchain():
            return _jit.compiles_programs()
        with importing():
            from tenferro_cpu.native.kernels._device import device
        device().toolchain()
        return True

    def whole(
        self, function: LoopFunction, *, bare: bool = False, otherwise: Callable[..., Any] | None = None
    ) -> NativeProgram | None:
        """See `Backend.whole`: one function of machine code, cached on disk.

        Args:
            function: what to compute.
            bare: return the only output itself instead of a tuple.
            otherwise: serves sizes that the function does not accept.

        Returns:
            The program, or None if this process cannot compile.
        """
        if _has_chosen_toolchain():
            with importing():
                from tenferro_cpu.native.kernels import _chosen
            return _chosen.whole(function, bare, otherwise)
        with importing():
            from tenferro_cpu.native.codegen.whole import native

        def kernel(op: Op, ins: tuple[Spec, ...], outs: tuple[Spec, ...]) -> Callable[..., Any]:
            return kernel_of(self, op, ins, outs, CALLER)

        return native(function, kernel, bare=bare, otherwise=otherwise)

    def object_target(self, level: str | None) -> ObjectTarget:
        """See `Backend.object_target`."""
        why = _jit.unavailable()
        if why is not None:
            raise BackendUnavailableError(f"object code of programs cannot be made here: {why}", reason=why)
        with importing():
            from tenferro_cpu.native.codegen.whole._export import object_target
        return object_target(level)

    def object_code(self, entries: Mapping[str, LibraryEntry], level: str | None) -> ObjectCode:
        """See `Backend.object_code`."""
        with importing():
            from tenferro_cpu.native.codegen.whole._export import object_code
        return object_code(entries, level)

    def contraction(self, ir: ContractionIR | ContractionGraph, device: ComputeDevice) -> ContractionKernel | None:
        """See `Backend.contraction`: the native engine, for real and complex numbers."""
        with importing():
            from tenferro_cpu.native.contraction import contraction
        return contraction(ir)

    def writes_into(self, op: Op, operands: tuple[np.dtype[Any], ...], result: np.dtype[Any]) -> bool:
        """See `Backend.writes_into`: NumPy's functions do; machine code keeps values in registers instead."""
        if op.primitive in _UPDATES:
            return True
        real = result.kind == "f" and all(d.kind == "f" for d in operands)
        return real and op.primitive in _ROUNDED_ONCE and not available()

    def compiled(self) -> int:
        """See `Backend.compiled`; counts kernels of eager calls and of fused regions alike."""
        return _jit.loaded()

    def open_kernel(
        self, op: Op, ins: tuple[Spec, ...], outs: tuple[Spec, ...], device: ComputeDevice
    ) -> OpenKernel | None:
        """See `Backend.open_kernel`; a kernel that calls BLAS or LAPACK takes its number of threads as a size."""
        found = super().open_kernel(op, ins, outs, device)
        if found is not None and device is not CALLER and op.primitive not in _VIEWS:
            found = found._replace(run=_handed_over(device, found.run))
        if found is None or not getattr(REGISTRY.find("kernel", op.primitive, self.name), "blas", False):
            return found
        threads = _threads.wanted(sum(map(_threads.work_of, ins)))
        return found._replace(run=_threads.bounded_open(found.run), sizes=(*found.sizes, threads))

    def replayed(self, run: Callable[..., Any], largest: int, device: ComputeDevice) -> Callable[..., Any]:
        """The program with large values allocated from the memory pool; a pool runs the program as a whole."""
        if device is not CALLER:
            return _handed_over(device, run)
        return _pool.pooled_replay(run) if largest >= _pool.POOLED_MIN_BYTES else run


def _handed_over(device: ComputeDevice, run: Callable[..., Any]) -> Callable[..., Any]:
    """Run in the pool of a device, whichever is open at the time of the call."""

    def run_in_pool(*raws: Any) -> Any:
        return run(*raws) if inside() else opened(device).call(run, *raws)

    return run_in_pool


def make_backend() -> CpuBackend:
    """Create the CPU backend with its kernels registered; the entry point that `get_backend` calls.

    Returns:
        The backend.

    >>> from tenferro_tensor import get_backend
    >>> get_backend("cpu").devices()
    (ComputeDevice('cpu:0'),)
    """
    for primitive, make in _reference().items():
        REGISTRY.kernel(primitive, CpuBackend.name, make)
    return CpuBackend()


@cache
def _reference() -> dict[Any, Any]:
    # One table per process, so that registering the same makers again does not collide.
    table = kernels(np, _special)
    reference = table[catalog.dot_general]

    def matrices(ins: tuple[Spec, ...], outs: tuple[Spec, ...], **axes: Any) -> Callable[..., Any]:
        return _products.dot_general(reference(ins, outs, **axes), ins, outs, **axes)

    packed = _movement.packed(matrices, reference)

    def dot_general(ins: tuple[Spec, ...], outs: tuple[Spec, ...], **axes: Any) -> Callable[..., Any]:
        if not any(s.symbolic for s in ins):
            return _products.dot_general(packed(ins, outs, **axes), ins, outs, **axes)
        plain, (x, y) = reference(ins, outs, **axes), ins
        if not _products.has_open(x, y, **axes):
            return plain
        return _products.open_dot_general(plain, dot_general, ins, outs, **axes)

    dot_general.sizes = reference.sizes  # type: ignore[attr-defined]
    dot_general.large = _products.large  # type: ignore[attr-defined]
    table |= _eager.entries(table) | _eager_reduce.entries(table) | _along.entries(table) | _draw.entries()
    return table | _movement.movers(table) | {catalog.dot_general: dot_general}


@cache
def _special() -> Any:
    # Importing SciPy takes longer than everything else together, and few programs call a special function.
    return library("scipy.special")
