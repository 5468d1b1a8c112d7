"""`Providers`: kernels of a family written once, over an object with the same methods for each backend."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache, partial
from typing import Any, NamedTuple
from weakref import WeakKeyDictionary

from tenferro_tensor import (
    ComputeDevice,
    HostKernel,
    Primitive,
    Registration,
    Registry,
    Spec,
    falling_back,
    get_backend,
    sized,
)
from tenferro_tensor_core import RegistryError, UnsupportedError
from tenferro_tensor_core.forks import new_lock

Maker = Callable[..., Callable[..., Any]]
"""``make(provider, ins, outs, **params)``: a kernel maker with the provider as its first argument."""


class _FamilyKernel(NamedTuple):
    primitive: Primitive
    make: Maker
    sizes: Callable[..., tuple[Any, ...]]


class _Checked:
    """A third-party provider; a missing method is an `UnsupportedError`."""

    def __init__(self, backend: str, provider: Any) -> None:
        self._backend, self._provider = backend, provider

    def __getattr__(self, name: str) -> Any:
        try:
            return getattr(self._provider, name)
        except AttributeError:
            raise UnsupportedError(
                f"the provider of {self._backend} has no {name}; give it this method, or move the operands with "
                "to_device('cpu:0')",
                backend=self._backend,
            ) from None


class ProviderRegistration:
    """The result of registering a provider: `undo`, or the end of a ``with`` block, removes it."""

    def __init__(self, undo: Callable[[], None]) -> None:
        self._undo = undo

    def undo(self) -> None:
        """Remove the provider and its kernels; further calls do nothing."""
        self._undo()

    def __enter__(self) -> ProviderRegistration:
        return self

    def __exit__(self, *_: object) -> None:
        self.undo()


class Providers:
    """The providers of a family by backend name, and the kernels that are written over them.

    If a provider raises `UnsupportedError`, the CPU kernel runs instead where `tenferro_runtime.host_fallback` allows
    it.

    Args:
        family: name of the family, for messages.
        given: makers of the family's own providers, including that of ``"cpu"``.
    """

    def __init__(self, family: str, given: Mapping[str, Callable[[], Any]]) -> None:
        self._family, self._given = family, dict(given)
        self._makers: dict[str, Callable[[], Any]] = dict(given)
        self._kernels: WeakKeyDictionary[Registry, list[_FamilyKernel]] = WeakKeyDictionary()
        self._made: dict[str, list[Registration]] = {}
        self._lock = new_lock()

    def register(self, backend: str, make: Callable[[], Any]) -> ProviderRegistration:
        """Register the provider of a backend, for all kernels that are written over providers.

        A kernel that is already registered for the backend takes precedence.

        Args:
            backend: backend name.
            make: makes the provider when a kernel first needs it.

        Returns:
            The registration, which can be undone.

        Raises:
            RegistryError: the backend already has a provider.
        """
        with self._lock:
            if backend in self._makers:
                raise RegistryError(
                    f"{backend} has a provider of {self._family} already; undo that registration, or register single "
                    "kernels with replace=True",
                    backend=backend,
                )
            once = cache(make)
            self._makers[backend] = lambda: _Checked(backend, once())
            self._made[backend] = []
            for registry, entries in self._kernels.items():
                for entry in entries:
                    self._put(registry, entry, backend)
        return ProviderRegistration(partial(self._take_back, backend))

    def kernels(
        self,
        registry: Registry,
        primitive: Primitive,
        make: Maker,
        *,
        sizes: Callable[..., tuple[Any, ...]],
        blas: bool = False,
    ) -> None:
        """Register one kernel maker for every backend that has a provider, now or later.

        Args:
            registry: the registry.
            primitive: the primitive.
            make: the maker, with the provider as its first argument; it must not read extents.
            sizes: ``sizes(ins, outs, **params)`` returns the sizes that its kernels take after the operands.
            blas: whether the CPU kernels spend their time in BLAS or LAPACK.
        """
        self.host_kernel(registry, primitive, make, sizes=sizes, blas=blas)
        with self._lock:
            entry = _FamilyKernel(primitive, make, sizes)
            self._kernels.setdefault(registry, []).append(entry)
            for backend in self._makers:
                if backend != "cpu":
                    self._put(registry, entry, backend)

    def host_kernel(
        self,
        registry: Registry,
        primitive: Primitive,
        make: Maker,
        *,
        sizes: Callable[..., tuple[Any, ...]],
        blas: bool = False,
    ) -> None:
        """Register a kernel maker for the CPU only.

        Args:
            registry: the registry.
            primitive: the primitive.
            make: the maker, with the provider as its first argument; it must not read extents.
            sizes: ``sizes(ins, outs, **params)`` returns the sizes that its kernels take after the operands.
            blas: whether the kernels spend their time in BLAS or LAPACK.
        """

        @sized(sizes)
        def on_host(ins: Any, outs: Any, **p: Any) -> Callable[..., Any]:
            return make(self._makers["cpu"](), ins, outs, **p)

        on_host.blas = blas  # type: ignore[attr-defined]
        registry.kernel(primitive, "cpu", on_host)

    def _put(self, registry: Registry, entry: _FamilyKernel, backend: str) -> None:
        before = registry.registration("kernel", entry.primitive, backend)
        if backend not in self._given and before is not None and before.backend == backend:
            return
        made = registry.kernel(entry.primitive, backend, sized(entry.sizes)(partial(self._on_device, entry, backend)))
        if backend in self._made:
            self._made[backend].append(made)

    def _take_back(self, backend: str) -> None:
        with self._lock:
            for made in self._made.pop(backend, ()):
                made.undo()
            self._makers.pop(backend, None)

    def _on_device(
        self, entry: _FamilyKernel, backend: str, ins: tuple[Spec, ...], outs: tuple[Spec, ...], **p: Any
    ) -> Callable[..., Any]:
        """The kernel over the provider, with the CPU kernel as fallback."""
        device = outs[0].place.device

        def on_host(lack: UnsupportedError) -> HostKernel:
            make = partial(entry.make, self._makers["cpu"]())
            return HostKernel(get_backend(backend), device, make, ins, outs, p, partial(_refused, lack, device))

        try:
            run = entry.make(self._makers[backend](), ins, outs, **p)
        except UnsupportedError as lack:
            if falling_back():
                return on_host(lack)
            raise _refused(lack, device) from None

        def on_device(*raws: Any) -> Any:
            try:
                return run(*raws)
            except UnsupportedError as lack:
                if falling_back():
                    return on_host(lack)(*raws)
                raise _refused(lack, device) from None

        return on_device


def _refused(lack: UnsupportedError, device: ComputeDevice) -> UnsupportedError:
    return UnsupportedError(f"{device}: {lack}; with host_fallback() the CPU computes it instead", device=str(device))
