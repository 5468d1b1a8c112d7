"""`GpuTarget`: the devices of a kind, as sequences of kernels use them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, ClassVar, Protocol

import numpy as np

from tenferro_gpu.compiling import RuntimeCompiler
from tenferro_gpu.devices import CupyRuntime
from tenferro_gpu.whole import KernelTarget
from tenferro_tensor import REGISTRY, ComputeDevice, Op, RuntimeDevice, Spec
from tenferro_tensor.device_model import ProgramSpec
from tenferro_tensor_core import UnsupportedError
from tenferro_tensor_core.forks import new_lock


class KernelBackend(Protocol):
    """The part of a backend that kernels of programs use."""

    kind: ClassVar[str]

    @property
    def runtime(self) -> CupyRuntime:
        """The device runtime of the kind."""

    def started(self, device: RuntimeDevice, run: Callable[..., Any], raws: tuple[Any, ...]) -> Any:
        """Run a function that enqueues work on raw values, on their device and stream."""

    def kernel(
        self, op: Op, ins: tuple[Spec, ...], outs: tuple[Spec, ...], device: ComputeDevice
    ) -> Callable[..., Any]:
        """The kernel of an op on a device."""


class GpuTarget(KernelTarget):
    """The devices of a backend; implements `KernelTarget`.

    Args:
        backend: the backend.
        compiler: maps the number of a device to its compiler.
    """

    def __init__(self, backend: KernelBackend, compiler: Callable[[int], RuntimeCompiler]) -> None:
        self._backend, self._compiler, self._lock = backend, compiler, new_lock()
        self._cupy = backend.runtime.cupy

    def functions(self, source: str, entries: Sequence[str]) -> Callable[[int], Sequence[Any]]:
        """See `KernelTarget.functions`; other architectures compile the source when they load it."""
        spec = ProgramSpec(source, "", (), 0, (), ())
        loaded: dict[int, list[Any]] = {}
        self._compiler(0).compile(spec)

        def functions_on(ordinal: int) -> Sequence[Any]:
            found = loaded.get(ordinal)
            if found is None:
                with self._lock:
                    found = loaded.get(ordinal)
                    if found is None:
                        module = self._cupy.cuda.function.Module()
                        module.load(self._compiler(ordinal).compile(spec).code)
                        found = loaded[ordinal] = [module.get_function(entry) for entry in entries]
            return found

        return functions_on

    def start(self, run: Callable[[int, Sequence[Any]], Any], raws: Sequence[Any]) -> Any:
        """See `KernelTarget.start`; runs on the stream of the arrays."""
        device = self._backend.runtime.device_of(raws[0])
        return self._backend.started(device, lambda *raws: run(device.ordinal, raws), tuple(raws))

    def empty(self, shape: tuple[int, ...], dtype: np.dtype[Any]) -> Any:
        """See `KernelTarget.empty`; allocates from CuPy's pool."""
        return self._cupy.empty(shape, dtype)

    def lying(self, raw: Any) -> Any:
        """See `KernelTarget.lying`."""
        return raw if raw.flags.c_contiguous else self._cupy.ascontiguousarray(raw)

    def address(self, raw: Any) -> int:
        """See `KernelTarget.address`."""
        return int(raw.data.ptr)

    def viewed(self, flat: Any, at: int, shape: tuple[int, ...], strides: tuple[int, ...]) -> Any:
        """See `KernelTarget.viewed`."""
        if 0 in shape:
            return self._cupy.empty(shape, flat.dtype)
        steps = tuple([s * flat.dtype.itemsize for s in strides])
        return self._cupy.lib.stride_tricks.as_strided(flat[at:], shape, steps)

    def kernel(self, op: Op, ins: tuple[Spec, ...], outs: tuple[Spec, ...], device: int) -> Callable[..., Any]:
        """See `KernelTarget.kernel`: the kernel of single ops."""
        return self._backend.kernel(op, ins, outs, self._backend.runtime.device(device).id)

    def require_kernel(self, op: Op) -> None:
        """See `KernelTarget.require_kernel`."""
        if REGISTRY.find("kernel", op.primitive, self._backend.kind) is None:
            raise UnsupportedError(
                f"{op.primitive.name} has no kernel for {self._backend.kind}", primitive=op.primitive.name
            )

    def stream(self) -> int:
        """See `KernelTarget.stream`."""
        return int(self._cupy.cuda.get_current_stream().ptr)

    def recorded(self, run: Callable[[], None]) -> Callable[[], None]:
        """See `KernelTarget.recorded`; the default stream cannot record."""
        recording = self._cupy.cuda.Stream(non_blocking=True)
        with recording:
            recording.begin_capture()
            try:
                run()
            finally:
                graph = recording.end_capture()
        launch: Callable[[], None] = graph.launch
        return launch

    def uploaded(self, array: np.ndarray[Any, Any], device: int) -> Any:
        """See `KernelTarget.uploaded`; any stream may read the result."""
        target = self._backend.runtime.device(device)
        raw = target.upload(array, target.default_stream)
        target.default_stream.synchronize()
        return raw

    def downloaded(self, raw: Any, device: int) -> np.ndarray[Any, Any]:
        """See `KernelTarget.downloaded`; waits for the current stream."""
        found: np.ndarray[Any, Any] = self._cupy.asnumpy(raw)
        return found
