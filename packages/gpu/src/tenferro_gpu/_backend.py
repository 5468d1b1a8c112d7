"""The CUDA and ROCm backends: kernels on CuPy arrays, each on its device and stream.

CuPy's current device and stream are implicit arguments of every allocation and launch. They are entered around each
kernel and restored after it, so that results do not depend on the caller's current device and stream.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from importlib import import_module
from typing import Any, ClassVar, TypeVar

from tenferro_gpu._contraction import CutensorContraction, taken
from tenferro_gpu._kernels import core_kernels
from tenferro_gpu._machine_code import MachineCode
from tenferro_gpu._stack import checked_index, cupy
from tenferro_gpu.devices import CupyRuntime, CupyStream
from tenferro_tensor import (
    REGISTRY,
    AcceleratorBackend,
    ComputeDevice,
    Op,
    OpenKernel,
    RuntimeDevice,
    Spec,
    catalog,
    current_stream,
    get_backend,
)
from tenferro_tensor.backends import NativeProgram
from tenferro_tensor.device_model import (
    ContractionGraph,
    ContractionIR,
    ContractionKernel,
    Device,
)
from tenferro_tensor.loop_ir import LoopFunction
from tenferro_tensor_core import HostAdapterError, PlacementError
from tenferro_tensor_core.forks import cached_property, importing


class _CupyBackend(AcceleratorBackend):
    """The common backend of both kinds; CuPy has one interface for them."""

    kind: ClassVar[str]

    def __init__(self) -> None:
        self.name: str = self.kind
        self._cupy = cupy(self.kind)
        self._exhausted = self._cupy.cuda.memory.OutOfMemoryError
        self.machine_code: MachineCode = MachineCode(self)

    @property
    def runtime(self) -> CupyRuntime:
        """The device runtime of the kind."""
        found = super().runtime
        assert isinstance(found, CupyRuntime)
        return found

    def require(self, device: ComputeDevice) -> None:
        """Check that the device exists.

        Raises:
            BackendUnavailableError: it does not.
        """
        checked_index(self.kind, device.index)

    def library(self, name: str) -> Any:
        """See `Backend.library`: CuPy, and its implementation of SciPy."""
        if name == "numpy":
            return self._cupy
        with importing():
            return import_module(f"cupyx.{name}")

    def kernel(
        self, op: Op, ins: tuple[Spec, ...], outs: tuple[Spec, ...], device: ComputeDevice
    ) -> Callable[..., Any]:
        """The kernel, with `device` and the stream of its operands current while it runs."""
        run = super().kernel(op, ins, outs, device)
        return run if op.primitive is catalog.transfer else self._on(device, run)

    def open_kernel(
        self, op: Op, ins: tuple[Spec, ...], outs: tuple[Spec, ...], device: ComputeDevice
    ) -> OpenKernel | None:
        """The kernel for all sizes, run in the same way."""
        if op.primitive is catalog.transfer:
            return None
        found = super().open_kernel(op, ins, outs, device)
        return found and found._replace(run=self._on(device, found.run))

    def stream_for(self, device: RuntimeDevice, raws: Iterable[Any]) -> CupyStream:
        """See `Backend.stream_for`; no wait is needed while all values are on default streams."""
        if not self.runtime.marked:
            stream = current_stream(device)
            if stream is device.default_stream:
                assert isinstance(stream, CupyStream)
                return stream
        found = super().stream_for(device, raws)
        assert isinstance(found, CupyStream)
        return found

    def _on(self, device: ComputeDevice, run: Callable[..., Any]) -> Callable[..., Any]:
        target = self.runtime.device(device.index)
        return lambda *raws: self.started(target, run, raws)

    def started(
        self, device: RuntimeDevice, run: Callable[..., Any], raws: tuple[Any, ...], written: tuple[Any, ...] = ()
    ) -> Any:
        """Run a function that enqueues work on raw values, with the device and the stream of that work current.

        Args:
            device: device of the values.
            run: the function.
            raws: its operands.
            written: those of them that it writes to.
        """
        runtime = self.runtime
        stream = self.stream_for(device, raws)
        try:
            if stream.is_current():
                result = run(*raws)
            else:
                with stream:
                    result = run(*raws)
        except self._exhausted as cause:
            raise stream.device.no_room(f"a result ({cause})") from cause
        if runtime.marked or stream is not stream.device.default_stream:
            if runtime.lent(stream, raws):
                stream.device.keeping.keep(stream.record(), raws)
            results = result if isinstance(result, (tuple, list)) else (result,)
            # An operand that is passed through remains a value of its stream, which reclaims its memory.
            runtime.mark(stream, *written, *[y for y in results if all(y is not x for x in raws)])
        return result

    def exported(self, raw: Any, **options: Any) -> Any:
        """See `Backend.exported`: the stream of the consumer waits for that of the value."""
        stream = self.runtime.stream_of(raw)
        assert stream is not None
        with stream:  # CuPy orders the consumer after the current stream
            return raw.__dlpack__(**options)

    def imported(self, producer: Any, *, copy: bool) -> Any:
        """See `Backend.imported`: the stream of the value waits for that of the producer."""
        device = self.runtime.device(int(producer.__dlpack_device__()[1]))
        stream = current_stream(device)
        assert isinstance(stream, CupyStream)
        try:
            with stream:
                raw = self._cupy.from_dlpack(producer)
        except Exception as error:  # a producer is foreign code
            raise HostAdapterError(
                f"from_dlpack cannot read {type(producer).__name__} on {device.id}: {error}; detach or copy it in its "
                "own library first",
                given=type(producer),
            ) from error
        if copy:
            shared = raw
            with device.enough(raw.size, raw.dtype), stream:
                raw = shared.copy()
            device.keeping.keep(stream.record(), shared)  # the producer may reuse its memory once no reference is left
        self.runtime.mark(stream, raw)
        return raw

    def compiles_wholes(self) -> bool:
        """See `Backend.compiles_wholes`."""
        return self.machine_code.available

    def whole(
        self, function: LoopFunction, *, bare: bool = False, otherwise: Callable[..., Any] | None = None
    ) -> NativeProgram | None:
        """See `Backend.whole`, on arrays of one of its devices: kernels, and host loops around them."""
        return self.machine_code.whole(function, bare, otherwise)

    def contraction(self, ir: ContractionIR | ContractionGraph, device: ComputeDevice) -> ContractionKernel | None:
        """See `Backend.contraction`: by cuTENSOR if it is installed."""
        if self._cutensor is None or not taken(ir):
            return None
        target = self.runtime.device(device.index)
        start = lambda run, raws, written=(): self.started(target, run, raws, written)
        return CutensorContraction(ir, self._cupy, self._cutensor.contraction, start)

    @cached_property
    def _cutensor(self) -> Any:
        """CuPy's interface to cuTENSOR, or None."""
        try:
            return import_module("cupyx.cutensor") if self.kind == "cuda" else None
        except ImportError:
            return None

    def compiled(self) -> int:
        """See `Backend.compiled`: number of compiled sources, for all architectures."""
        return self.machine_code.compiled()


def device(name: str | ComputeDevice = "cuda:0") -> Device:
    """An accelerator as a device of the device model, for hand-written kernels.

    Its only toolchain is ``"nvrtc"`` for CUDA and ``"hiprtc"`` for ROCm, the one of fused regions. Programs run on the
    stream that is entered, as in ``with stream:``.

    Args:
        name: name of the device, such as ``"cuda:0"``.

    Returns:
        The device.

    Raises:
        BackendUnavailableError: there is no such device; the text says what to install or check.
        PlacementError: the device is neither a CUDA nor a ROCm device.

    >>> from tenferro_tensor_core import BackendUnavailableError
    >>> try:
    ...     memory = device("cuda:0").allocator.stats()
    ... except BackendUnavailableError:
    ...     memory = {}  # no such device here
    """
    wanted = ComputeDevice(name)
    backend = get_backend(wanted.kind)
    if not isinstance(backend, _CupyBackend):
        raise PlacementError(f"tenferro_gpu.device({name!r}): the kinds of this package are cuda and rocm")
    return backend.machine_code.model(wanted.index)


class CudaBackend(_CupyBackend):
    """The backend of NVIDIA devices ``cuda:<i>``.

    Raises:
        BackendUnavailableError: CuPy, the driver or a device is missing; the text says what to do.
    """

    kind = "cuda"


class RocmBackend(_CupyBackend):
    """The backend of AMD devices ``rocm:<i>``.

    Raises:
        BackendUnavailableError: CuPy for ROCm, the driver or a device is missing; the text says what to do.
    """

    kind = "rocm"


_B = TypeVar("_B", bound=_CupyBackend)


def make_cuda_backend() -> CudaBackend:
    """Create the CUDA backend with its kernels registered; the entry point that `get_backend` calls.

    Returns:
        The backend.

    Raises:
        BackendUnavailableError: CuPy, the driver or a device is missing; the text says what to do.

    >>> from tenferro_tensor_core import BackendUnavailableError
    >>> try:
    ...     devices = make_cuda_backend().devices()
    ... except BackendUnavailableError:
    ...     devices = ()  # no such device here
    """
    return _registered(CudaBackend())


def make_rocm_backend() -> RocmBackend:
    """Create the ROCm backend with its kernels registered; the entry point that `get_backend` calls.

    Returns:
        The backend.

    Raises:
        BackendUnavailableError: CuPy for ROCm, the driver or a device is missing; the text says what to do.

    >>> from tenferro_tensor_core import BackendUnavailableError
    >>> try:
    ...     devices = make_rocm_backend().devices()
    ... except BackendUnavailableError:
    ...     devices = ()  # no such device here
    """
    return _registered(RocmBackend())


def _registered(backend: _B) -> _B:
    for primitive, make in core_kernels(backend.kind).items():
        REGISTRY.kernel(primitive, backend.kind, make)
    return backend
