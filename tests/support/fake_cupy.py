"""A stand-in for CuPy on NumPy: arrays remember the device and stream that were current when they were made.

It checks what a test without a GPU can check: that work runs with the right device and stream current, that nothing
mixes devices or memories, that what was current before is restored, and that nothing is called that the real CuPy does
not have, or as it cannot be called. Modules load libraries of `host_kernels`.
"""

import ctypes
import threading
import types
import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from cupy_interface import NAMES, faithful, like, require
from fake_cupy_linalg import LIKE_CUPY, fake_cublas
from host_kernels import HostFunction


class CUDARuntimeError(RuntimeError):
    """What CuPy raises where the driver fails."""


class OutOfMemoryError(MemoryError):
    """What CuPy raises where memory does not suffice."""


class PinnedMemory(bytearray):
    """Page-locked memory."""


@like("cupy.cuda.MemoryPool")
class MemoryPool:
    """A pool that counts the bytes that are allocated while it serves."""

    serving: ClassVar[Any] = None

    def __init__(self) -> None:
        self.taken = 0

    def malloc(self, size: int) -> None:
        self.taken += size

    def used_bytes(self) -> int:
        return self.taken

    def total_bytes(self) -> int:
        return self.taken

    def free_all_blocks(self) -> None:
        self.taken = 0


@like("cupy.cuda.MemoryAsyncPool")
class MemoryAsyncPool:
    """A pool of the driver, which counts by device, whoever asks."""

    supported: ClassVar[bool] = True

    def __init__(self) -> None:
        if not self.supported:
            raise CUDARuntimeError("cudaErrorNotSupported: operation not supported")
        self.counts: dict[int, list[int]] = {}
        FakeCupy.pool = self

    def count(self, index: int) -> list[int]:
        """Bytes in use, and the most so far."""
        return self.counts.setdefault(index, [0, 0])

    def malloc(self, size: int) -> None:
        count = self.count(FakeCupy.current)
        count[0] += size
        count[1] = max(count)

    def freed(self, index: int, size: int) -> None:
        self.count(index)[0] -= size

    def used_bytes(self) -> int:
        return self.count(FakeCupy.current)[0]

    def free_all_blocks(self) -> None:
        FakeCupy.ordered.append(("trimmed", FakeCupy.current))


@contextmanager
def using_allocator(allocator: Any) -> Iterator[None]:
    before, MemoryPool.serving = MemoryPool.serving, allocator
    try:
        yield
    finally:
        MemoryPool.serving = before


@like("cupy.ndarray")
class DeviceArray(np.ndarray):
    """An array in the memory of a simulated device."""

    __module__ = "cupy"
    _device: Any
    stream: Any

    def __array_finalize__(self, parent: Any) -> None:
        self._device, self.stream = Device(FakeCupy.current), FakeCupy.stream

    @property
    def device(self) -> Any:  # NumPy's own attribute of this name is always "cpu"
        return self._device

    @property
    def data(self) -> Any:
        return types.SimpleNamespace(ptr=self.__array_interface__["data"][0])

    @property
    def base(self) -> Any:  # CuPy's is the array that the memory was allocated for
        first = _first.get(id(_owner(self)))
        return None if first is self else first

    def __getitem__(self, key: Any) -> Any:  # CuPy has no scalars
        return as_device(super().__getitem__(key))

    def __setitem__(self, key: Any, value: Any) -> None:
        assert self.device.id == FakeCupy.current, f"device {self.device.id}, not {FakeCupy.current}"
        super().__setitem__(key, value)

    def __bool__(self) -> bool:  # the host waits
        FakeCupy.synchronized.append(("bool", self.device.id))
        return super().__bool__()

    def argmax(self, *args: Any, **kwargs: Any) -> Any:
        return as_device(self.view(np.ndarray).argmax(*args, **kwargs))

    def argmin(self, *args: Any, **kwargs: Any) -> Any:
        return as_device(self.view(np.ndarray).argmin(*args, **kwargs))

    def dot(self, other: Any) -> Any:  # type: ignore[override]
        return on_device(np.dot)(self, other)

    def set(self, host: np.ndarray, stream: Any) -> None:
        assert self.device.id == FakeCupy.current
        assert FakeCupy.is_pinned(host), "a copy from memory that is not page-locked"
        FakeCupy.ordered.append(("set", stream))
        self.view(np.ndarray)[...] = host

    def get(self, stream: Any, out: np.ndarray, blocking: bool) -> np.ndarray:
        assert self.device.id == FakeCupy.current
        assert not blocking
        assert FakeCupy.pageable or FakeCupy.is_pinned(out), "a copy to memory that is not page-locked"
        FakeCupy.ordered.append(("get", stream))
        out[...] = self.view(np.ndarray)
        return out

    def __dlpack__(self, **options: Any) -> Any:
        FakeCupy.ordered.append(("dlpack", FakeCupy.stream))
        plain = self.view(np.ndarray)
        return plain.__dlpack__(**{k: v for k, v in options.items() if k not in ("stream", "dl_device")})

    def __dlpack_device__(self) -> tuple[int, int]:  # type: ignore[override]
        return 2, self.device.id

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **kwargs: Any) -> Any:
        plain = []
        for x in inputs:
            if isinstance(x, DeviceArray):
                assert x.device.id == FakeCupy.current, f"device {x.device.id}, not {FakeCupy.current}"
                plain.append(x.view(np.ndarray))
            else:
                assert not isinstance(x, np.ndarray), "an array in main memory in a kernel of the device"
                plain.append(x)
        kwargs.pop("out", None)
        try:
            return as_device(getattr(ufunc, method)(*plain, **kwargs))
        except MemoryError as error:
            raise OutOfMemoryError(str(error)) from error


def _absent(name: str) -> property:
    def refused(self: DeviceArray) -> Any:
        raise AttributeError(f"an array of CuPy {NAMES['version']} has no {name!r}")

    return property(refused)


for _name in dir(np.ndarray):
    if not _name.startswith("_") and _name not in NAMES["cupy.ndarray"]:
        setattr(DeviceArray, _name, _absent(_name))


_first: weakref.WeakValueDictionary[int, DeviceArray] = weakref.WeakValueDictionary()


def _owner(x: np.ndarray) -> np.ndarray:
    below = np.ndarray.base.__get__(x)
    return _owner(below) if isinstance(below, np.ndarray) else x


def as_device(x: Any) -> Any:
    if isinstance(x, tuple):
        return tuple(map(as_device, x))
    if not isinstance(x, (np.ndarray, np.generic)):
        return x
    made = np.asarray(x).view(DeviceArray)
    _first.setdefault(id(_owner(made)), made)
    return made


@like("cupy.cuda.Device")
class Device:
    """CuPy's device: a context manager that makes it current."""

    def __init__(self, index: int) -> None:
        self.id = index

    def __enter__(self) -> "Device":
        _local.before.append(FakeCupy.current)
        FakeCupy.current = self.id
        return self

    def __exit__(self, *error: Any) -> None:
        FakeCupy.current = _local.before.pop()

    def synchronize(self) -> None:
        FakeCupy.synchronized.append(self.id)


@like("cupy.cuda.Stream")
class Stream:
    """CuPy's stream; work is done when it is issued, and what was ordered is written down."""

    null: ClassVar[Any]

    def __init__(self, null: bool = False, non_blocking: bool = False, priority: int | None = None) -> None:
        self.name = "null" if null else f"stream of {FakeCupy.current}"
        self.ptr, self.priority = 0 if null else id(self), priority
        self.capture: list[Any] | None = None

    def __enter__(self) -> "Stream":
        _local.before.append(FakeCupy.stream)
        FakeCupy.stream = self
        return self

    def __exit__(self, *error: Any) -> None:
        FakeCupy.stream = _local.before.pop()

    def begin_capture(self) -> None:
        assert self.ptr, "the default stream cannot record"
        self.capture = []

    def end_capture(self) -> "Graph":
        found, self.capture = self.capture, None
        assert found is not None
        return Graph(found)

    def wait_event(self, event: Any) -> None:
        assert event.stream is not None, "waits for an event that nobody recorded"
        FakeCupy.ordered.append(("wait", self, event.stream))

    def synchronize(self) -> None:
        FakeCupy.synchronized.append((FakeCupy.current, self))

    def __repr__(self) -> str:
        return self.name


Stream.null = Stream(null=True)


class Graph:
    """CuPy's graph: the recorded launches, in order; nothing else may happen while they are recorded."""

    def __init__(self, launches: list[Any]) -> None:
        self.launches = launches

    def launch(self, stream: Any = None) -> None:
        FakeCupy.ordered.append(("graph", len(self.launches)))
        for run in self.launches:
            run()


@like("cupy.cuda.Event")
class Event:
    """CuPy's event."""

    def __init__(self, block: bool = False, disable_timing: bool = False) -> None:
        assert block, "waiting would keep a processor busy"
        self.stream: Any = None
        self.device = FakeCupy.current
        self.done = True

    def record(self, stream: Any) -> None:
        self.stream = stream

    def synchronize(self) -> None:
        FakeCupy.synchronized.append((self.device, self.stream))
        if FakeCupy.failing is not None:
            raise FakeCupy.failing


@like("cupy.cuda.function.Module")
class Module:
    """A loaded library of kernels."""

    def load(self, code: str) -> None:
        self._path = Path(code)

    def get_function(self, entry: str) -> Any:
        run = HostFunction(self._path, entry)

        def launch(grid: Any, block: Any, args: Any) -> None:
            for a in args:
                assert isinstance(a, int) or a.device.id == FakeCupy.current
            if FakeCupy.stream.capture is not None:
                FakeCupy.stream.capture.append(lambda: run(grid, (8,), args))
                return
            FakeCupy.launched.append((FakeCupy.current, FakeCupy.stream))
            run(grid, (8,), args)

        return launch


class OnDevice(types.ModuleType):
    """A module of NumPy or SciPy whose functions take and give arrays of the device."""

    def __init__(self, name: str, library: str) -> None:
        super().__init__(name)
        self._library = library

    def __getattr__(self, name: str) -> Any:
        require(self.__name__, name)
        own = {f.__name__: f for f in LIKE_CUPY.get(self.__name__, ())}
        found = own.get(name) or getattr(import_module(self._library), name)
        if isinstance(found, types.ModuleType):
            return OnDevice(f"{self.__name__}.{name}", found.__name__)
        if not callable(found) or isinstance(found, (type, np.ufunc)):
            return found
        return faithful(self.__name__, name, on_device(found))


def on_device(function: Any) -> Any:
    """The function on arrays of the device, all of which must be of the current one."""

    def run(*args: Any, **kwargs: Any) -> Any:
        def plain(x: Any) -> Any:
            if isinstance(x, (tuple, list)):
                return type(x)(map(plain, x))
            if isinstance(x, DeviceArray):
                assert x.device.id == FakeCupy.current, f"device {x.device.id}, not {FakeCupy.current}"
                return x.view(np.ndarray)
            assert not isinstance(x, np.ndarray), "an array in main memory in a kernel of the device"
            return x

        return as_device(function(*map(plain, args), **{k: plain(v) for k, v in kwargs.items()}))

    return run


def fake_cupyx() -> dict[str, Any]:
    """CuPy's companion package by module name."""
    names = {"cupyx": "scipy", "cupyx.scipy": "scipy"}
    names |= {f"cupyx.scipy.{part}": f"scipy.{part}" for part in ("linalg", "fft", "special", "sparse")}
    made = {name: OnDevice(name, library) for name, library in names.items()}
    for name, module in made.items():
        package, _, part = name.rpartition(".")
        if package:
            setattr(made[package], part, module)
    return made


def module_like(owner: str, **names: Any) -> types.SimpleNamespace:
    """A module of CuPy: each name is one that it has, each function called as it can be."""
    for name, found in names.items():
        require(owner, name)
        if isinstance(found, (types.FunctionType, types.MethodType)):
            names[name] = faithful(owner, name, found)
    return types.SimpleNamespace(**names)


class _Current(threading.local):
    """What is current in a thread, and what was before."""

    def __init__(self) -> None:
        self.device, self.stream, self.before = 0, Stream.null, []


_local = _Current()


class _Module(type):
    """Device and stream that are current in the calling thread, as attributes of the class."""

    @property
    def current(cls) -> int:
        return _local.device

    @current.setter
    def current(cls, device: int) -> None:
        _local.device = device

    @property
    def stream(cls) -> Any:
        return _local.stream

    @stream.setter
    def stream(cls, stream: Any) -> None:
        _local.stream = stream


@like("cupy")
class FakeCupy(types.ModuleType, metaclass=_Module):
    """The module; functions are NumPy's, their results are arrays of the current device."""

    synchronized: ClassVar[list[Any]] = []
    ordered: ClassVar[list[Any]] = []
    launched: ClassVar[list[Any]] = []
    pool: ClassVar[MemoryAsyncPool | None] = None
    allocator: ClassVar[Any] = None
    pageable: ClassVar[bool] = False
    failing: ClassVar[Exception | None] = None

    def __init__(self, count: int = 2, is_hip: bool = False, failure: str | None = None) -> None:
        super().__init__("cupy")
        self.__version__ = NAMES["version"]
        self.room, self.used, self.most = 2**30, 0, 0

        def get_device_count() -> int:
            if failure:
                raise CUDARuntimeError(failure)
            return count

        def properties(index: int) -> dict[str, Any]:
            return {"name": b"Simulated", "totalGlobalMem": 2**30, "warpSize": 32, "major": 9, "minor": 0,
                    "gcnArchName": b"gfx90a"}  # fmt: skip

        def memcpy_peer(to: int, goal: int, source: int, home: int, nbytes: int, stream: int) -> None:
            FakeCupy.ordered.append(("peer", home, goal))
            ctypes.memmove(to, source, nbytes)

        runtime = module_like(
            "cupy.cuda.runtime",
            is_hip=is_hip, getDeviceCount=get_device_count, getDevice=lambda: FakeCupy.current,
            getDeviceProperties=properties,
            CUDARuntimeError=CUDARuntimeError, runtimeGetVersion=lambda: 13020, memGetInfo=lambda: (2**29, 2**30),
            deviceCanAccessPeer=lambda a, b: 1, memcpyPeerAsync=memcpy_peer,
            deviceGetMemPool=lambda index: index, cudaMemPoolAttrUsedMemHigh=8,
            memPoolGetAttribute=lambda pool, name: {8: FakeCupy.pool.count(pool)[1]}[name],
        )  # fmt: skip
        self.cuda = module_like(
            "cupy.cuda",
            Device=Device, runtime=runtime, Stream=Stream, Event=Event,
            memory=module_like("cupy.cuda.memory", OutOfMemoryError=OutOfMemoryError),
            function=module_like("cupy.cuda.function", Module=Module), alloc_pinned_memory=self._alloc_pinned,
            MemoryPool=MemoryPool, using_allocator=using_allocator, MemoryAsyncPool=MemoryAsyncPool,
            set_allocator=self._set_allocator,
            cublas=fake_cublas(), get_cublas_handle=lambda: 1,
            get_elapsed_time=lambda a, b: 2.0, get_current_stream=lambda: FakeCupy.stream,
        )  # fmt: skip
        self.ndarray = DeviceArray
        for part in ("linalg", "fft", "lib"):
            setattr(self, part, OnDevice(f"cupy.{part}", f"numpy.{part}"))
        FakeCupy.current, FakeCupy.stream, FakeCupy.failing = 0, Stream.null, None
        FakeCupy.pool = FakeCupy.allocator = None
        for record in (FakeCupy.synchronized, FakeCupy.ordered, FakeCupy.launched):
            record.clear()

    @staticmethod
    def _set_allocator(allocator: Any = None) -> None:
        FakeCupy.allocator = allocator

    @staticmethod
    def _alloc_pinned(size: int) -> Any:
        return PinnedMemory(size)

    @staticmethod
    def is_pinned(x: Any) -> bool:
        while isinstance(x, np.ndarray):
            x = x.base
        return isinstance(x, memoryview) and isinstance(x.obj, PinnedMemory)

    @staticmethod
    def asnumpy(x: Any) -> np.ndarray:
        return np.array(x.view(np.ndarray))

    @staticmethod
    def get_default_pinned_memory_pool() -> Any:
        return types.SimpleNamespace(n_free_blocks=lambda: 0)

    def get_default_memory_pool(self) -> Any:
        return types.SimpleNamespace(
            used_bytes=lambda: self.used, total_bytes=lambda: self.most, free_all_blocks=self.cleared
        )

    @staticmethod
    def clip(x: Any, low: int, high: int) -> Any:  # NumPy's takes any numbers, other element-wise functions do not
        info = np.iinfo(x.dtype)
        assert info.min <= low and high <= info.max, f"{low} to {high} are no numbers of {x.dtype}"
        return as_device(np.clip(x.view(np.ndarray), low, high))

    def empty(self, shape: Any, dtype: Any = float) -> Any:
        assert FakeCupy.stream.capture is None, "memory is allocated while launches are recorded"
        nbytes = int(np.prod(shape)) * np.dtype(dtype).itemsize
        if nbytes > self.room:
            raise OutOfMemoryError(f"Out of memory allocating {nbytes} bytes")
        made = as_device(np.empty(shape, dtype))
        serving = MemoryPool.serving or FakeCupy.allocator
        if serving is not None:
            serving(nbytes)
        if FakeCupy.pool is not None and serving == FakeCupy.pool.malloc:
            weakref.finalize(made, FakeCupy.pool.freed, FakeCupy.current, nbytes)
            return made
        self.used += nbytes
        self.most = max(self.most, self.used)
        weakref.finalize(made, self._freed, nbytes)
        return made

    def cleared(self) -> None:
        FakeCupy.ordered.append(("cleared", FakeCupy.current))

    def _freed(self, nbytes: int) -> None:
        self.used -= nbytes

    def __getattr__(self, name: str) -> Any:
        require("cupy", name)
        found = getattr(np, name)
        if isinstance(found, (type, np.dtype, np.ufunc)) or not callable(found):
            return found
        return faithful("cupy", name, lambda *args, **kwargs: as_device(found(*args, **kwargs)))
