"""The backend contract, and the lazy discovery of backends through the entry points ``tenferro.backends``."""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from functools import partial
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
        Later,
        Literal,
        Region,
    )

__all__ = [
    "Backend", "NativeProgram", "ObjectCode", "OpenKernel", "THREAD", "available_backends", "get_backend", "made",
    "modules_compiled", "place_of",
]  # fmt: skip

_INSTALL: Final = {
    "cpu": "pip install tenferro-cpu",
    "cuda": "pip install 'tenferro-gpu[cuda12]' (or [cuda13], to match the driver)",
    "rocm": "pip install 'tenferro-gpu[rocm]'",
    "xla": "pip install tenferro-xla",
}


class _Thread(threading.local):
    busy = False


THREAD: Final = _Thread()
"""``THREAD.busy``: the calling thread belongs to a pool, or runs a part of a plan, and other threads wait for it. It
computes everything on host devices itself, because threads of pools may be among those that wait."""


class OpenKernel(NamedTuple):
    """A kernel for all sizes that symbolic specs stand for.

    Attributes:
        run: the kernel on raw arrays, followed by the values of `sizes`.
        sizes: what it has to be told: extents and tuples of extents.
        large: a pair of sizes, or ``None``: where the first exceeds the second, a kernel is made for the numbers.
    """

    run: Callable[..., Any]
    sizes: tuple[Any, ...]
    large: tuple[DimLike, DimLike] | None = None


class NativeProgram(NamedTuple):
    """A whole program as one native function.

    Attributes:
        run: takes the tuple of values of the symbolic sizes, then the inputs; returns the tuple of outputs, or the only
            one. It runs without the interpreter's lock, and sees interrupts.
    """

    run: Callable[..., Any]


class ObjectCode(NamedTuple):
    """Machine code to be linked.

    Attributes:
        object: an object file.
        fortran: whether it calls BLAS or LAPACK.
    """

    object: bytes
    fortran: bool


class Backend(ABC):
    """What a kind of device must offer so that tensors can live and be computed on it.

    A backend turns an op with concrete specs into a callable on raw arrays, and moves data between main memory
    and its own. It never transfers or falls back to another device by itself.
    """

    name: str
    """Backend name, equal to the ``kind`` of its compute devices."""

    @abstractmethod
    def devices(self) -> tuple[ComputeDevice, ...]:
        """The devices that can run work now."""

    @abstractmethod
    def upload(self, array: np.ndarray[Any, Any], device: ComputeDevice) -> Any:
        """A raw array in the memory of `device` with the contents of a host array."""

    @abstractmethod
    def download(self, raw: Any) -> np.ndarray[Any, Any]:
        """A host array with the contents of a raw array; waits for pending work."""

    @abstractmethod
    def synchronize(self) -> None:
        """Wait until all work submitted so far is done."""

    def copied(self, array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        """A copy of a host array, of its layout, in memory from where results have theirs."""
        return array.copy(order="K")

    def info(self) -> dict[str, Any]:
        """What computes here, as plain data for people: versions, libraries, threads, caches; ``{}`` says nothing."""
        return {}

    def exported(self, raw: Any, **options: Any) -> Any:
        """A DLPack capsule of a raw array, for a consumer that passed these options of ``__dlpack__``.

        What the consumer's stream does with it comes after what computes it.

        Raises:
            HostAdapterError: values of this backend have no form that other libraries know.
        """
        if not hasattr(raw, "__dlpack__"):
            raise HostAdapterError(
                f"{raw!r} has no DLPack form, which other libraries could read; download it with .to_device('cpu:0')"
            )
        return raw.__dlpack__(**options)

    def imported(self, producer: Any, *, copy: bool) -> Any:
        """A raw array that shares the memory of a DLPack producer of the backend's kind, or a copy of it.

        What the backend does with it comes after what computes it.

        Raises:
            UnsupportedError: the backend takes no foreign memory.
        """
        raise UnsupportedError(
            f"the {self.name} backend takes no memory of DLPack producers; copy the data to main memory first",
            backend=self.name,
        )

    def library(self, name: str) -> Any:
        """The library with the interface of NumPy, or of a part of SciPy, for raw arrays of this backend.

        A family writes its kernels over it once for all backends.

        Args:
            name: ``"numpy"``, ``"scipy.fft"``, ``"scipy.linalg"`` and so on.

        Raises:
            UnsupportedError: the backend has none.
        """
        raise UnsupportedError(
            f"the {self.name} backend has no library with the interface of {name}; register a kernel of its own for "
            "what needs one, or move the operands with to_device('cpu:0')",
            backend=self.name,
        )

    def routine(self, name: str) -> Callable[..., Any] | None:
        """A routine in machine code for raw arrays, which a family may use where the backend has it.

        Args:
            name: ``"small.<kernel>"`` for decompositions and equations of stacks of small matrices: a callable of one
                or two arrays and an integer of flags, which returns its results, or None where it leaves the operands
                to others.
        """
        return None

    def routine_address(self, symbol: str) -> int | None:
        """Where the code of a routine for one dtype is, which `Foreign` statements call.

        Args:
            symbol: ``"<name of the routine>.<letter of the dtype>"``.
        """
        return None

    def require(self, device: ComputeDevice) -> None:
        """Check that `device` can run work now.

        Raises:
            PlacementError: it cannot; the text names those that can.
        """
        have = self.devices()
        if device not in have:
            raise PlacementError(
                f"{device} was asked for, but the {self.name} backend has {', '.join(map(str, have)) or 'no device'}; "
                "use one that it has",
                device=str(device),
                devices=tuple(map(str, have)),
            )

    def kernel(
        self, op: Op, ins: tuple[Spec, ...], outs: tuple[Spec, ...], device: ComputeDevice
    ) -> Callable[..., Any]:
        """A callable on raw arrays for an op with concrete operand and output specs.

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
        have = ", ".join(REGISTRY.backends_of(op.primitive)) or "no backend"
        borrowed = "let the CPU compute it in `with host_fallback():`, " if on_host else ""
        return UnsupportedError(
            f"{op.primitive.name} has no kernel for {device}; {have} has one. Move the operands there with "
            f"to_device, {borrowed}or install a distribution that brings the kernel",
            primitive=op.primitive.name,
            device=str(device),
        )

    def fuses(self, op: Op, operands: tuple[np.dtype[Any] | Literal, ...], result: np.dtype[Any]) -> bool:
        """Whether an element-wise op, or a reduction, on operands of these dtypes may be part of a fused region.

        Must be cheap; a region of such ops may still turn out to have no kernel. An operand that the program knows as
        a number is that literal.
        """
        return False

    def fused(self, region: Region, fallback: Callable[..., Any], later: Later) -> Callable[..., Any] | None:
        """A callable on raw arrays for a region, or None where there is none; may take as long as a compiler does.

        The callable takes whatever `fallback` takes, and returns the same: the raw result, or a tuple where the
        region has several outputs.

        Args:
            region: what to compute; its sizes are those of the operands of each call.
            fallback: computes the same op by op, for calls that nothing is ready for.
            later: has further compiling done in the background.
        """
        return None

    def writes_into(self, op: Op, operands: tuple[np.dtype[Any], ...], result: np.dtype[Any]) -> bool:
        """Whether the kernel of an op takes an array to write to after its operands.

        It may be an operand of the shape and dtype of the result; the bits are those of a fresh result. Only
        element-wise ops are asked for, and `scatter` and `dynamic_update_slice`, whose array is the first operand.
        Must be cheap.
        """
        return False

    def compiles_wholes(self) -> bool:
        """Whether `whole` gives functions in this process; must be cheap."""
        return False

    def whole(self, function: Any, *, bare: bool = False) -> NativeProgram | None:
        """A whole program on raw arrays, or None where there is no such form; takes as long as a compiler does.

        Args:
            function: a `LoopFunction` of `tenferro_tensor.loop_ir`.
            bare: return the only output itself instead of a tuple of one.

        Raises:
            UnsupportedError: some operation of it has no native form; the text says which.
        """
        return None

    def object_code(self, entries: Mapping[str, tuple[Any, str, tuple[str, ...]]], level: str | None) -> ObjectCode:
        """Object code with a function in the convention of C for each name.

        Args:
            entries: by name a `LoopFunction` of `tenferro_tensor.loop_ir`, a text that is kept with it, and texts of
                its codes.
            level: a vector level; by default that of this processor.

        Raises:
            UnsupportedError: the backend makes none, or a program needs Python.
        """
        raise UnsupportedError(f"{self.name} makes no object code of programs")

    def contraction(self, ir: ContractionIR | ContractionGraph, device: ComputeDevice) -> ContractionKernel | None:
        """A kernel for a whole contraction, or a graph of them, or None where it is done step by step."""
        return None

    def compiled(self) -> int:
        """Number of modules of machine code that it has loaded, compiled now or before; 0 where it compiles none."""
        return 0

    def open_kernel(
        self, op: Op, ins: tuple[Spec, ...], outs: tuple[Spec, ...], device: ComputeDevice
    ) -> OpenKernel | None:
        """A kernel for symbolic specs, or ``None`` where kernels of the op are made for numbers only."""
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
        """A program over raw arrays as this backend runs it on a device; its largest value has `largest` bytes."""
        return run

    def compiler(self, device: ComputeDevice) -> str | None:
        """The compiler that runs whole programs on a device, by its name in ``compile(f, backend=...)``.

        ``None`` where programs are made of kernels.
        """
        return None

    def submit(self, device: ComputeDevice, run: Callable[[], None]) -> None:
        """Post a closure, which must not raise, to the thread of a host device; ``cpu:0`` carries it out at once.

        What is posted to one device is carried out in that order. Nobody waits; `synchronize` does. A thread of such a
        device carries out at once what it posts itself, to whichever; so does one that is busy with a plan.

        Raises:
            PlacementError: there is no such device now.
            UnsupportedError: the devices of this backend have streams, and no threads.
        """
        raise UnsupportedError(
            f"a closure was posted to {device}, but only CPU devices have threads that take some; "
            "launch kernels on a stream of the device",
            device=str(device),
        )


_made: dict[str, Backend] = {}
_lock = new_lock()


def get_backend(name: str) -> Backend:
    """The backend of a kind of device, made on first use.

    Args:
        name: kind of device, as in ``"cpu"``.

    Raises:
        BackendUnavailableError: nothing installed offers it, or its device is missing; the text says what to install.
        RegistryError: what is installed cannot be loaded; the text names the distribution.
        AcceleratorMismatchError: what was registered for the kind makes another kind.
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
    """The factory that an installed distribution offers, and the distribution in words.

    A kind of two parts is offered under the first one; the factory is called with the second.
    """
    offered = entry_points.installed(BACKENDS)
    library, _, platform = name.partition(":")
    if library not in offered:
        raise BackendUnavailableError(
            f"no backend for {name!r} devices is installed (installed: {', '.join(sorted(offered)) or 'none'}); "
            f"{_INSTALL.get(library, 'install the distribution that offers it')}",
            backend=name,
        )
    make = entry_points.load(BACKENDS, library)
    return partial(make, platform) if platform else make, entry_points.owner(offered[library])


def modules_compiled() -> int:
    """Number of modules of machine code that the backends of the process have loaded.

    >>> modules_compiled() >= 0
    True
    """
    return sum([backend.compiled() for backend in made()])


def made() -> tuple[Backend, ...]:
    """The backends that the process has used."""
    return tuple(_made.values())


def place_of(device: str | ComputeDevice | None) -> Place:
    """The place of new data: of an explicit device, of the scope's device, else main memory."""
    chosen = scoped_device() if device is None else ComputeDevice(device)
    if chosen is None or chosen is HOST.device:
        return HOST
    if chosen.kind != "cpu":
        return Place(chosen.memory_space)  # its backend is asked as soon as something is put there
    get_backend("cpu").require(chosen)
    return Place(chosen.memory_space, chosen)


def available_backends() -> tuple[str, ...]:
    """Names of the installed and registered backends, whether or not their devices are present.

    One name stands for all kinds of two parts that begin with it.
    """
    return tuple(sorted({*entry_points.installed(BACKENDS), *PROCESS.kinds()}))
