"""The backend contract, and the lazy discovery of backends through the entry points ``tenferro.backends``."""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from functools import partial
from types import ModuleType
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np

from tenferro_tensor import entry_points
from tenferro_tensor._fallback import HostKernel, falling_back
from tenferro_tensor._place import HOST, ComputeDevice, Place
from tenferro_tensor._primitive import Op
from tenferro_tensor._registry import REGISTRY
from tenferro_tensor._spec import Spec
from tenferro_tensor.device_runtimes._errors import AcceleratorMismatchError
from tenferro_tensor.device_runtimes._registry import PROCESS
from tenferro_tensor.dispatch import scoped_device
from tenferro_tensor.entry_points import BACKENDS
from tenferro_tensor.narrow import widened_kernel, widens
from tenferro_tensor_core import (
    BackendUnavailableError,
    DimLike,
    HostAdapterError,
    PlacementError,
    UnsupportedError,
)
from tenferro_tensor_core.forks import new_lock

if TYPE_CHECKING:
    from tenferro_tensor.device_model import (
        ContractionGraph,
        ContractionIR,
        ContractionKernel,
    )

__all__ = [
    "Backend", "LibraryEntry", "NativeProgram", "ObjectCode", "ObjectTarget", "OpenKernel", "SizeCondition", "THREAD",
    "available_backends", "get_backend", "is_available", "made", "modules_compiled", "place_of",
]  # fmt: skip


def __dir__() -> list[str]:
    return __all__.copy()


_INSTALL: Final = {
    "cpu": "pip install tenferro-cpu",
    "cuda": "pip install 'tenferro-gpu[cuda12]' (or [cuda13], to match the driver)",
    "rocm": "pip install 'tenferro-gpu[rocm]'",
    "xla": "pip install tenferro-xla",
    "gpu": "write 'cuda:0' or 'rocm:0'",
    "tpu": "write 'xla:tpu:0', which tenferro-xla offers",
}


_BACKENDS: Final = frozenset({"cpu", "cuda", "rocm", "xla"})
"""Those of this project; kernels for them may be registered where they are not installed."""


class _Thread(threading.local):
    busy = False


THREAD: Final = _Thread()
"""``THREAD.busy``: the calling thread belongs to a pool or runs part of a plan, and other threads wait for it. It does
all work on host devices itself, because pool threads may be among those that wait."""


class OpenKernel(NamedTuple):
    """A kernel for all sizes of symbolic specs.

    Attributes:
        run: the kernel on raw arrays, followed by the values of `sizes`.
        sizes: its trailing arguments: extents and tuples of extents.
        large: a pair of sizes, or ``None``; if the first exceeds the second, a kernel specialised to concrete sizes is
            faster.
    """

    run: Callable[..., Any]
    sizes: tuple[Any, ...]
    large: tuple[DimLike, DimLike] | None = None


class NativeProgram(NamedTuple):
    """A whole program as one native function.

    Attributes:
        run: takes the tuple of values of the symbolic sizes, then the inputs; returns the tuple of outputs, or the only
            one. It releases the GIL and checks for interrupts.
    """

    run: Callable[..., Any]


class ObjectCode(NamedTuple):
    """Machine code to link.

    Attributes:
        object: an object file.
        fortran: whether it calls BLAS or LAPACK.
    """

    object: bytes
    fortran: bool


class ObjectTarget(NamedTuple):
    """The processors that run object code.

    Attributes:
        level: the vector level, as in ``"avx2"``.
        processor: the processors, in words.
    """

    level: str
    processor: str


class SizeCondition(NamedTuple):
    """A condition on sizes: ``left op right``, if all extents `when` are positive.

    Attributes:
        left: a size.
        op: one of == != < <= > >=.
        right: a size.
        when: extents.
    """

    left: DimLike
    op: str
    right: DimLike
    when: tuple[DimLike, ...] = ()


class LibraryEntry(NamedTuple):
    """A C function of object code.

    Attributes:
        function: a `LoopFunction` of `tenferro_tensor.loop_ir`.
        text: a text stored with it.
        bounds: conditions on single sizes, checked first.
        conditions: conditions on sizes that are inside their bounds.
        codes: texts of its error codes from 2 on: of its calls, its bounds, its conditions, and of a processor that
            does not run it.
    """

    function: Any
    text: str
    bounds: tuple[SizeCondition, ...]
    conditions: tuple[SizeCondition, ...]
    codes: tuple[str, ...]


class Backend(ABC):
    """The contract of a kind of device on which tensors are stored and computed.

    A backend turns an op with concrete specs into a callable on raw arrays, and moves data between main memory and its
    own. It never transfers or falls back to another device implicitly.
    """

    name: str
    """Backend name, equal to the ``kind`` of its compute devices."""

    @abstractmethod
    def devices(self) -> tuple[ComputeDevice, ...]:
        """The devices that can run work now."""

    @abstractmethod
    def upload(self, array: np.ndarray[Any, Any], device: ComputeDevice) -> Any:
        """Copy a host array to a device.

        Args:
            array: host array of any shape.
            device: target device.

        Returns:
            A raw array in the memory of the device.
        """

    @abstractmethod
    def download(self, raw: Any) -> np.ndarray[Any, Any]:
        """Copy a raw array to main memory; waits for pending work.

        Args:
            raw: raw array.

        Returns:
            A host array.
        """

    @abstractmethod
    def synchronize(self) -> None:
        """Wait until all work submitted so far is done."""

    def device_of(self, raw: Any) -> ComputeDevice | None:
        """The device whose memory holds a raw array of this backend.

        Args:
            raw: raw array.

        Returns:
            The device, or None if the backend cannot tell.
        """
        return None

    def copied(self, array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        """Copy a host array, preserving its layout, into the memory pool of results.

        Args:
            array: host array of any shape.

        Returns:
            The copy.
        """
        return array.copy(order="K")

    def info(self) -> dict[str, Any]:
        """Versions, libraries, threads and caches, as plain data for display; empty by default."""
        return {}

    def exported(self, raw: Any, **options: Any) -> object:
        """Export a raw array through DLPack.

        Work of the consumer's stream is ordered after the work that computes the array.

        Args:
            raw: raw array.
            options: the consumer's arguments of ``__dlpack__``.

        Returns:
            A DLPack capsule.

        Raises:
            HostAdapterError: values of this backend have no DLPack form.
        """
        if not hasattr(raw, "__dlpack__"):
            raise HostAdapterError(
                f"{raw!r} has no DLPack form, which other libraries could read; download it with .to_device('cpu:0')"
            )
        return raw.__dlpack__(**options)

    def imported(self, producer: Any, *, copy: bool) -> Any:
        """Import a DLPack producer of the backend's kind of device.

        Work of the backend is ordered after the work that computes the data.

        Args:
            producer: object with ``__dlpack__``.
            copy: copy the memory instead of sharing it.

        Returns:
            A raw array.

        Raises:
            UnsupportedError: the backend takes no foreign memory.
        """
        raise UnsupportedError(
            f"the {self.name} backend takes no memory of DLPack producers; copy the data to main memory first",
            backend=self.name,
        )

    def library(self, name: str) -> ModuleType:
        """A library with the interface of NumPy, or of a part of SciPy, on raw arrays of this backend.

        Families use it to write one kernel for all backends.

        Args:
            name: ``"numpy"``, ``"scipy.fft"``, ``"scipy.linalg"`` and so on.

        Returns:
            The module.

        Raises:
            UnsupportedError: the backend has none.
        """
        raise UnsupportedError(
            f"the {self.name} backend has no library with the interface of {name}; register a kernel of its own for "
            "what needs one, or move the operands with to_device('cpu:0')",
            backend=self.name,
        )

    def routine(self, name: str) -> Callable[..., Any] | None:
        """A routine in machine code on raw arrays, which families may use if the backend has it.

        Args:
            name: ``"small.<kernel>"`` for decompositions and equations of stacks of small matrices: a callable of one
                or two arrays and integer flags, which returns its results, or None to decline the operands.

        Returns:
            The routine, or None.
        """
        return None

    def routine_address(self, symbol: str) -> int | None:
        """Address of a routine for one dtype, which `Foreign` statements call.

        Args:
            symbol: ``"<name of the routine>.<letter of the dtype>"``.

        Returns:
            The address, or None.
        """
        return None

    def require(self, device: ComputeDevice) -> None:
        """Check that a device can run work now.

        Args:
            device: the device.

        Raises:
            PlacementError: it cannot; the text names those that can.
        """
        have = self.devices()
        if device not in have:
            raise PlacementError(
                f"{device} was requested, but the {self.name} backend has {', '.join(map(str, have)) or 'no device'}; "
                "use one that it has",
                device=str(device),
                devices=tuple(map(str, have)),
            )

    def kernel(
        self, op: Op, ins: tuple[Spec, ...], outs: tuple[Spec, ...], device: ComputeDevice
    ) -> Callable[..., Any]:
        """The kernel of an op for concrete specs.

        Args:
            op: the op.
            ins: specs of the operands.
            outs: specs of the results.
            device: device that runs it.

        Returns:
            A callable on raw arrays.

        Raises:
            PlacementError: the backend has no such device.
            UnsupportedError: the backend has no kernel for the primitive.
            AcceleratorMismatchError: the process uses another kind of accelerator.
        """
        if self.name != "cpu":
            PROCESS.pair(self.name)
        self.require(device)
        if widens(op, (*ins, *outs)):
            return widened_kernel(lambda op, ins, outs: self.kernel(op, ins, outs, device), op, ins, outs)
        make = REGISTRY.find("kernel", op.primitive, self.name)
        if make is None:
            here = REGISTRY.find("kernel", op.primitive, "cpu")
            if here is None or not falling_back():
                raise self._missing(op, device, here is not None)
            refusal = partial(self._missing, op, device, True)
            return HostKernel(self, device, here, ins, outs, op.params, refusal)
        return make(ins, outs, **op.params)  # type: ignore[no-any-return]

    def _missing(self, op: Op, device: ComputeDevice, on_host: bool) -> UnsupportedError:
        offered = REGISTRY.backends_of(op.primitive)
        unknown = [name for name in offered if not _may_exist(name)]
        have = ", ".join([name for name in offered if name not in unknown]) or "no backend"
        borrowed = "let the CPU compute it in `with host_fallback():`, " if on_host else ""
        return UnsupportedError(
            f"{op.primitive.name} has no kernel for {device}; {have} has one. Move the operands there with "
            f"to_device, {borrowed}or install a distribution that brings the kernel{_lost(unknown)}",
            primitive=op.primitive.name,
            device=str(device),
        )

    def writes_into(self, op: Op, operands: tuple[np.dtype[Any], ...], result: np.dtype[Any]) -> bool:
        """Whether the kernel of an op accepts a destination array after its operands.

        The destination may be an operand of the shape and dtype of the result; a newly allocated result has the same
        bits. Called only for element-wise ops and for `scatter` and `dynamic_update_slice`, whose destination is the
        first operand. Must be cheap.

        Args:
            op: the op.
            operands: dtype of each operand.
            result: dtype of the result.

        Returns:
            True if the kernel accepts a destination.
        """
        return False

    def compiles_wholes(self) -> bool:
        """Whether `whole` returns programs in this process; must be cheap."""
        return False

    def whole(
        self, function: Any, *, bare: bool = False, otherwise: Callable[..., Any] | None = None
    ) -> NativeProgram | None:
        """Compile a whole program on raw arrays; may take as long as a compiler does.

        Args:
            function: a `LoopFunction` of `tenferro_tensor.loop_ir`.
            bare: return a single output itself instead of a tuple of one.
            otherwise: takes the arguments of `NativeProgram.run` and serves calls with sizes that `function.accepts`
                denies. Native code would leave its arrays at these, so that it must not run; by default such calls
                raise (`function.refuse`).

        Returns:
            The program, or None if the backend compiles none.

        Raises:
            UnsupportedError: an operation has no native form; the text says which.
        """
        return None

    def object_target(self, level: str | None) -> ObjectTarget:
        """The processors that run object code of a vector level.

        Args:
            level: vector instruction level; by default that of this processor.

        Returns:
            The processors.

        Raises:
            ArgumentError: there is no such level.
            UnsupportedError: the backend produces no object code.
        """
        raise UnsupportedError(f"{self.name} makes no object code of programs")

    def object_code(self, entries: Mapping[str, LibraryEntry], level: str | None) -> ObjectCode:
        """Compile programs to an object file with one C function for each.

        Args:
            entries: the functions by name.
            level: vector instruction level; by default that of this processor.

        Returns:
            The object code.

        Raises:
            UnsupportedError: the backend produces none, or a program needs Python.
        """
        raise UnsupportedError(f"{self.name} makes no object code of programs")

    def contraction(self, ir: ContractionIR | ContractionGraph, device: ComputeDevice) -> ContractionKernel | None:
        """A kernel for a whole contraction, or a graph of contractions.

        Args:
            ir: the contraction or the graph.
            device: device that runs it.

        Returns:
            The kernel, or None if the contraction runs step by step.
        """
        return None

    def compiled(self) -> int:
        """Number of machine-code modules that the backend has loaded, newly compiled or cached."""
        return 0

    def open_kernel(
        self, op: Op, ins: tuple[Spec, ...], outs: tuple[Spec, ...], device: ComputeDevice
    ) -> OpenKernel | None:
        """The kernel of an op for symbolic specs.

        Args:
            op: the op.
            ins: specs of the operands.
            outs: specs of the results.
            device: device that runs it.

        Returns:
            The kernel, or None if the kernels of this op are specialised to concrete sizes.
        """
        make = REGISTRY.find("kernel", op.primitive, self.name)
        if make is None or widens(op, (*ins, *outs)):
            return None
        sizes: tuple[Any, ...] | None = () if getattr(make, "any_size", False) else None
        if sizes is None and hasattr(make, "sizes"):
            sizes = make.sizes(ins, outs, **op.params)
        if sizes is None:
            return None
        large = make.large(ins, outs, **op.params) if hasattr(make, "large") else None
        return OpenKernel(make(ins, outs, **op.params), sizes, large)

    def replayed(self, run: Callable[..., Any], largest: int, device: ComputeDevice) -> Callable[..., Any]:
        """Wrap a program over raw arrays for execution on a device.

        Args:
            run: the program.
            largest: bytes of its largest value.
            device: device that runs it.

        Returns:
            The program to call.
        """
        return run

    def compiler(self, device: ComputeDevice) -> str | None:
        """The compiler of whole programs on a device.

        Args:
            device: the device.

        Returns:
            Its name in ``compile(f, backend=...)``, or None if programs consist of kernels.
        """
        return None

    def submit(self, device: ComputeDevice, run: Callable[[], None]) -> None:
        """Post a closure to the thread of a host device; ``cpu:0`` runs it at once.

        Closures of one device run in order. The caller does not wait; use `synchronize` to wait. A closure posted by a
        device thread, or by a thread that is busy with a plan, runs at once in that thread, whatever its device.

        Args:
            device: a host device.
            run: the closure, which must not raise.

        Raises:
            PlacementError: there is no such device now.
            UnsupportedError: devices of this backend have streams, not threads.
        """
        raise UnsupportedError(
            f"a closure was posted to {device}, but only CPU devices have threads that take some; "
            "launch kernels on a stream of the device",
            device=str(device),
        )


_made: dict[str, Backend] = {}
_lock = new_lock()


def get_backend(name: str) -> Backend:
    """Return the backend of a kind of device, created on first use.

    Args:
        name: kind of device, as in ``"cpu"``.

    Returns:
        The backend.

    Raises:
        BackendUnavailableError: no installed distribution offers it, or its device is missing; the text says what to
            install.
        RegistryError: it cannot be loaded; the text names the distribution.
        AcceleratorMismatchError: the factory registered for the kind creates another kind.

    >>> get_backend("cpu").name
    'cpu'
    """
    backend = _made.get(name)
    if backend is not None:
        return backend
    registered = None if name == "cpu" else PROCESS.backend(name)
    with _lock:
        if name not in _made:
            make, who = _maker(name) if registered is None else (registered, f"{registered!r}")
            made: Backend = entry_points.made_by(make, f"the backend {name!r} of {who}", backend=name)
            if registered is not None and made.name != name:
                raise AcceleratorMismatchError(
                    f"{who} was registered to make the backend for {name!r}, but made that for {made.name!r}; "
                    "register it under its own kind",
                    kind=name,
                    made=made.name,
                )
            _made[name] = made
        return _made[name]


def _maker(name: str) -> tuple[Callable[[], Backend], str]:
    """The factory that an installed distribution offers, and the distribution as text.

    A kind of the form ``library:platform`` is offered under the library; the factory is called with the platform.
    """
    own = entry_points.own(BACKENDS, name)
    if own is not None:
        return own
    offered = entry_points.installed(BACKENDS)
    library, _, platform = name.partition(":")
    if name in PROCESS.kinds() and library not in offered:
        raise BackendUnavailableError(
            f"a device runtime for {name!r} is registered, but no backend; pass one to register_device_runtime as "
            "`backend=`, or install the distribution that offers it",
            backend=name,
        )
    if library not in offered:
        raise BackendUnavailableError(
            f"no backend for {name!r} devices is installed (installed: {', '.join(sorted(offered)) or 'none'}); "
            f"{_INSTALL.get(library, 'install the distribution that offers it')}",
            backend=name,
        )
    make = entry_points.load(BACKENDS, library)
    return partial(make, platform) if platform else make, entry_points.owner(offered[library])


def modules_compiled() -> int:
    """Number of machine-code modules that the backends of the process have loaded.

    Returns:
        The count.

    >>> modules_compiled() >= 0
    True
    """
    return sum([backend.compiled() for backend in made()])


def made() -> tuple[Backend, ...]:
    """The backends that the process has used so far.

    Returns:
        A tuple of backends.
    """
    return tuple(_made.values())


def place_of(device: str | ComputeDevice | None) -> Place:
    """The place of new data: of an explicit device, of the scope's device, else main memory.

    Args:
        device: device or its name, or None.

    Returns:
        The place.

    Raises:
        PlacementError: there is no such host device.
    """
    chosen = scoped_device() if device is None else ComputeDevice(device)
    if chosen is None or chosen is HOST.device:
        return HOST
    if chosen.kind != "cpu":
        return Place(chosen.memory_space)  # its backend checks the device once data is put there
    get_backend("cpu").require(chosen)
    return Place(chosen.memory_space, chosen)


def is_available(kind: str) -> bool:
    """Whether a backend is installed or registered.

    Args:
        kind: the kind of its devices.

    Returns:
        As `available_backends` lists it; a backend in use answers without a scan of what is installed.

    >>> is_available("cpu"), is_available("abacus")
    (True, False)
    """
    return any(backend.name == kind for backend in made()) or kind in available_backends()


def _may_exist(name: str) -> bool:
    """Whether a name for which a kernel is registered is that of a backend, installed or not."""
    library = name.partition(":")[0]
    return name == "*" or library in _BACKENDS or library in available_backends()


def _lost(unknown: list[str]) -> str:
    """Why the kernels for names that no backend has are not used."""
    if not unknown:
        return ""
    names, installed = ", ".join(map(repr, unknown)), ", ".join(available_backends()) or "none"
    return f". The kernel for {names} serves no device: there is no such backend (installed: {installed})"


def available_backends() -> tuple[str, ...]:
    """Names of the installed and registered backends, whether or not their devices are present.

    Kinds of the form ``library:platform`` are listed as the library.

    Returns:
        The sorted names.

    >>> "cpu" in available_backends()
    True
    """
    return tuple(sorted({*entry_points.installed(BACKENDS), *PROCESS.kinds()}))
