"""`host_fallback`: permission to compute on the CPU if a device has no kernel, and the kernels that do so."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from typing import Any

import numpy as np

from tenferro_tensor._place import HOST, ComputeDevice
from tenferro_tensor._spec import Spec
from tenferro_tensor.calls import SCALARS
from tenferro_tensor.transfers import book_raw
from tenferro_tensor_core import UnsupportedError

Kernel = Callable[..., Any]

_allowed: ContextVar[bool] = ContextVar("tenferro host fallback", default=False)


@contextmanager
def host_fallback() -> Iterator[None]:
    """Let operations of a family run on the CPU if a device has no kernel for them.

    Operands are copied to main memory and results back to the device, and the calling thread waits for them. Each copy
    is in the transfer log, and `no_transfers` forbids it. Operations with a kernel are unaffected. The permission is
    checked at every run, also of a compiled program created inside the scope; threads started inside are outside it.

    Returns:
        A context manager.

    >>> with host_fallback():
    ...     print(tr.linalg.det(tr.eye(2)))
    Tensor(1.)
    """
    token = _allowed.set(True)
    try:
        yield
    finally:
        with suppress(ValueError):  # a generator may be closed in another context, where it is not set
            _allowed.reset(token)


def falling_back() -> bool:
    """Whether operations without a kernel may run on the CPU in this context.

    Returns:
        True inside `host_fallback`.

    >>> falling_back()
    False
    """
    return _allowed.get()


class HostKernel:
    """A CPU kernel as the kernel of another device: copies operands and results, if permitted when it runs.

    Args:
        backend: the `Backend` of the device, which moves the data.
        device: device of the results.
        make: creates the CPU kernel.
        ins: specs of the operands; other arguments are passed on.
        outs: specs of the results.
        params: the metadata of the op.
        refusal: creates the error that is raised without permission.
    """

    __slots__ = ("_backend", "_device", "_far", "_refusal", "_run")

    def __init__(
        self,
        backend: Any,
        device: ComputeDevice,
        make: Kernel,
        ins: tuple[Spec, ...],
        outs: tuple[Spec, ...],
        params: Mapping[str, Any],
        refusal: Callable[[], UnsupportedError],
    ) -> None:
        here = [tuple([s.with_(place=HOST) for s in specs]) for specs in (ins, outs)]
        self._run = make(*here, **params)
        self._backend, self._device = backend, device
        self._far = tuple([not s.place.on_host for s in ins])
        self._refusal = refusal

    def __call__(self, *raws: Any) -> Any:
        if not falling_back():
            raise self._refusal()
        near = list(raws)
        for k, far in enumerate(self._far):
            if far and raws[k].__class__ not in SCALARS:
                near[k] = self._download(raws[k])
        found = self._run(*near)
        return tuple(map(self._upload, found)) if found.__class__ is tuple else self._upload(found)

    def _download(self, raw: Any) -> Any:
        book_raw(self._device.memory_space, HOST.memory_space, "", raw)
        return self._backend.download(raw)

    def _upload(self, found: Any) -> Any:
        array = np.asarray(found)
        book_raw(HOST.memory_space, self._device.memory_space, "", array)
        return self._backend.upload(array, self._device)
