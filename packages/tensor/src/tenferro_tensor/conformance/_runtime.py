"""The device runtime under check, and work for its streams."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Final

import numpy as np

from tenferro_tensor import catalog
from tenferro_tensor._place import MemorySpace, Place
from tenferro_tensor._spec import Spec
from tenferro_tensor.backends import get_backend
from tenferro_tensor.checking import identical, shown
from tenferro_tensor.conformance._examples import Elements
from tenferro_tensor.device_runtimes import DeviceRuntime, RuntimeDevice, Stream

F8: Final = np.dtype("float64")

LARGE: Final = (2**18,)
"""Shape of the values of work that takes a while."""


class CheckedRuntime:
    """A device runtime.

    Attributes:
        runtime: the runtime.
        first: its first device.
        last: its last device, which may be the first.
    """

    def __init__(self, runtime: DeviceRuntime) -> None:
        self.runtime = runtime
        self.first, self.last = runtime.devices()[0], runtime.devices()[-1]

    @property
    def devices(self) -> tuple[RuntimeDevice, ...]:
        """The devices to check: the first and the last."""
        return (self.first,) if self.first is self.last else (self.first, self.last)


def spec_on(device: RuntimeDevice, shape: tuple[int, ...]) -> Spec:
    """The spec of a float64 value on a device."""
    return Spec(shape, F8, Place(MemorySpace(str(device.id))))


def launch(stream: Stream, name: str, *raws: Any, shape: tuple[int, ...] = (8,)) -> Any:
    """Issue an element-wise primitive; the result as a raw value."""
    primitive, spec = getattr(catalog, name), spec_on(stream.device, shape)
    ins = (spec,) * len(primitive.operands)
    run = get_backend(stream.device.id.kind).kernel(primitive.op(), ins, (spec,), stream.device.id)
    (out,) = stream.launch(run, raws, (spec,))
    return out


def keep_busy(stream: Stream) -> None:
    """Issue work that takes the device some milliseconds."""
    x = stream.device.upload(np.ones(LARGE), stream)
    for _ in range(24):
        x = launch(stream, "add", x, x, shape=LARGE)


def read(raw: Any, stream: Stream) -> Elements:
    """The elements of a raw value, as work of a stream."""
    return stream.device.download(raw, stream).result()


def numbers(seed: int, shape: tuple[int, ...] = (8,)) -> Elements:
    """Random numbers."""
    return np.asarray(np.random.default_rng(seed).standard_normal(shape))


def same(what: str, got: Any, want: Elements) -> Iterator[str]:
    """Complain about elements that differ."""
    if not isinstance(got, np.ndarray) or not identical(np.array(got, order="C"), np.array(want, order="C")):
        yield f"{what}: {shown(got) if isinstance(got, np.ndarray) else repr(got)}, expected {shown(want)}"


def holds(condition: bool, text: str) -> Iterator[str]:
    """Complain if a condition is false."""
    if not condition:
        yield text


def refuses(what: str, call: Callable[[], Any], error: type[Exception] | tuple[type[Exception], ...]) -> Iterator[str]:
    """Complain if a call does not raise an error."""
    names = " or ".join([e.__name__ for e in (error if isinstance(error, tuple) else (error,))])
    try:
        call()
    except error:
        return
    except Exception as other:
        yield f"{what} raises {type(other).__name__} ({other!s:.200}); raise {names}"
    else:
        yield f"{what} is accepted; raise {names}"
