"""The device runtime of the process: which are offered, and which is in use; a process uses only one kind."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any, Final, NamedTuple

from tenferro_tensor import entry_points
from tenferro_tensor.device_runtimes._contracts import DeviceRuntime
from tenferro_tensor.device_runtimes._errors import AcceleratorMismatchError, ForkedRuntimeError
from tenferro_tensor_core import ArgumentError, BackendUnavailableError, RegistryError, TenferroError
from tenferro_tensor_core.forks import new_lock

RUNTIMES: Final = "tenferro.device_runtimes"
"""Entry points by kind; each names a function that calls `register_device_runtime` for its kind."""

CONFIGURED: Final = "TENFERRO_ACCELERATOR"
"""The environment variable that names the kind of accelerator of a process, for backend and runtime alike."""


class Offer(NamedTuple):
    """A registration: the factories of the runtime and, unless an entry point offers it, of the backend."""

    runtime: Callable[[], DeviceRuntime]
    backend: Callable[[], Any] | None


class DeviceRuntimes:
    """The runtimes that are offered, and the one in use.

    The runtime in use is published last and read without a lock. A failure leaves the state unchanged.
    """

    def __init__(self) -> None:
        self._offers: dict[str, Offer] = {}
        self._runtime: DeviceRuntime | None = None
        self._making: str | None = None
        self._loading: list[str] = []
        self._lost: str | None = None
        self._lock = new_lock()

    @property
    def used(self) -> str | None:
        """The kind in use, or being made."""
        return self._making if self._runtime is None else self._runtime.kind

    def register(
        self,
        kind: str,
        factory: Callable[[], DeviceRuntime],
        *,
        backend: Callable[[], Any] | None = None,
        force: bool = False,
    ) -> None:
        """See `register_device_runtime`."""
        _require_kind(kind)
        for what, make in (("runtime", factory), ("backend", backend)):
            if make is not None and not callable(make):
                raise ArgumentError(
                    f"the {what} of kind {kind!r} is registered as a function that makes it, got {make!r}", kind=kind
                )
        offer = Offer(factory, backend)
        with self._lock:
            known, used = self._offers.get(kind), self.used
            if used is not None:
                if used == kind and known == offer:
                    return
                text = (
                    f"a device runtime for {kind!r} is registered, but this process uses that for {used!r} already, "
                    "which stays until the process ends, also with force=True; register runtimes before the first use "
                    "of a device"
                    if used == kind
                    else f"this process uses the accelerator {used!r}, so that it cannot use {kind!r}; a process has "
                    "one kind of accelerator: use another process for the other"
                )
                raise AcceleratorMismatchError(text, kind=kind, used=used)
            if known is not None and known != offer and not force:
                raise AcceleratorMismatchError(
                    f"a device runtime for {kind!r} is registered already; pass force=True to replace it",
                    kind=kind,
                )
            self._offers[kind] = offer

    def get(self, kind: str | None = None) -> DeviceRuntime:
        """See `device_runtime`."""
        runtime = self._runtime
        if runtime is not None and (kind is None or runtime.kind == kind):
            return runtime
        with self._lock:
            self._require_process()
            if kind is None:
                kind = self.used or self._only()
            self._require(kind, f"the device runtime for {kind!r} is asked for")
            if self._runtime is not None:
                return self._runtime
            if self._making is not None:
                raise RegistryError(
                    f"the factory of the device runtime for {kind!r} asks for the runtime that it is making; "
                    "let it use what it makes",
                    kind=kind,
                )
            made = self._make(kind)
            self._runtime = made
            return made

    def pair(self, kind: str) -> None:
        """Ensure that the runtime in use is of the kind of a backend that is about to compile or launch.

        Creates the runtime if none is in use. A backend with synchronous kernels needs none.

        Raises:
            AcceleratorMismatchError: the runtime in use, or the one that is configured, is of another kind.
        """
        runtime = self._runtime
        if runtime is not None and runtime.kind == kind:
            return
        with self._lock:
            self._require_process()
            self._require(kind, f"the backend {kind!r} is asked for a kernel")
            if self.used is None and self._offer(kind) is not None:
                self.get(kind)

    def backend(self, kind: str) -> Callable[[], Any] | None:
        """The factory of the backend registered together with the runtime of a kind, or None."""
        with self._lock:
            offer = self._offer(kind)
        return None if offer is None else offer.backend

    def kinds(self) -> tuple[str, ...]:
        """Kinds of accelerator that are registered or installed, whether or not their devices are present."""
        return tuple(sorted({*self._offers, *entry_points.installed(RUNTIMES)}))

    def forked(self) -> None:
        """In a child process: forget everything that belongs to the parent."""
        self._lost = self.used or self._lost
        self._runtime, self._making = None, None
        self._loading.clear()

    def _require_process(self) -> None:
        if self._lost is not None:
            raise ForkedRuntimeError(
                f"the device runtime for {self._lost!r} was made before this process was forked (process "
                f"{os.getpid()}) and does not work in it; start workers with the 'spawn' or 'forkserver' method, or "
                "fork before the first use of a device",
                kind=self._lost,
            )

    def _require(self, kind: str, asked: str) -> None:
        _require_kind(kind)
        wanted = os.environ.get(CONFIGURED)
        if wanted and wanted != kind:
            raise AcceleratorMismatchError(
                f"{asked}, but {CONFIGURED}={wanted}; use {wanted!r} devices, or change the variable",
                kind=kind,
                configured=wanted,
            )
        used = self.used
        if used is not None and used != kind:
            raise AcceleratorMismatchError(
                f"{asked}, but this process uses the device runtime for {used!r}; a process has one kind of "
                f"accelerator: set {CONFIGURED} to it, and use another process for the other",
                kind=kind,
                used=used,
            )

    def _only(self) -> str:
        """The kind to use if none is named."""
        wanted, kinds = os.environ.get(CONFIGURED), self.kinds()
        if wanted:
            return wanted
        if len(kinds) > 1:
            raise ArgumentError(
                f"a device runtime is asked for without its kind, and there are {', '.join(kinds)}; name one, or set "
                f"{CONFIGURED}={kinds[0]}",
                kinds=kinds,
            )
        if not kinds:
            raise BackendUnavailableError(
                "a device runtime is asked for, but no accelerator is installed; install tenferro-gpu, or the "
                f"distribution that offers one under [project.entry-points.{RUNTIMES!r}]"
            )
        return kinds[0]

    def _make(self, kind: str) -> DeviceRuntime:
        offer = self._offer(kind)
        if offer is None:
            raise BackendUnavailableError(
                f"no device runtime for {kind!r} is installed (there are: {', '.join(self.kinds()) or 'none'}); "
                "install the distribution that offers it, or register_device_runtime() it",
                backend=kind,
            )
        self._making = kind
        try:
            made = offer.runtime()
        except (TenferroError, KeyboardInterrupt):
            raise
        except BaseException as cause:  # a guest that calls sys.exit must not end the program
            raise RegistryError(
                f"the device runtime for {kind!r} cannot be made: {type(cause).__name__}: {cause}; "
                f"mend {_named(offer.runtime)}, or register another one",
                kind=kind,
            ) from cause
        finally:
            self._making = None
        if not isinstance(made, DeviceRuntime):
            raise RegistryError(
                f"{_named(offer.runtime)} was registered to make the device runtime for {kind!r}, but made {made!r}, "
                "which is no DeviceRuntime",
                kind=kind,
            )
        if made.kind != kind:
            raise AcceleratorMismatchError(
                f"{_named(offer.runtime)} was registered to make the device runtime for {kind!r}, but made one for "
                f"{made.kind!r}; register it under its own kind",
                kind=kind,
                made=made.kind,
            )
        return made

    def _offer(self, kind: str) -> Offer | None:
        """The registration of a kind; an installed distribution registers itself on first use of its kind."""
        found = self._offers.get(kind)
        if found is not None or kind in self._loading:
            return found
        offered = entry_points.installed(RUNTIMES)
        if kind not in offered:
            return None
        register, who = entry_points.load(RUNTIMES, kind), entry_points.owner(offered[kind])
        before = dict(self._offers)
        self._loading.append(kind)
        try:
            register()
        except BaseException as cause:
            self._offers = before
            if isinstance(cause, (TenferroError, KeyboardInterrupt)):
                raise
            raise RegistryError(
                f"the device runtime for {kind!r} of {who} cannot be registered: {type(cause).__name__}: {cause}; "
                "reinstall or remove that distribution",
                kind=kind,
            ) from cause
        finally:
            self._loading.remove(kind)
        if kind not in self._offers:
            raise RegistryError(
                f"{who} offers a device runtime for {kind!r}, but its entry point {offered[kind].value} registers "
                f"none; it has to call register_device_runtime({kind!r}, ...)",
                kind=kind,
            )
        return self._offers[kind]


def _require_kind(kind: str) -> None:
    named = isinstance(kind, str) and kind.isascii() and kind.isidentifier()
    if not named or kind in ("cpu", "host"):
        raise ArgumentError(f"{kind!r} is no kind of accelerator; use a name like 'cuda'", kind=kind)


def _named(function: Callable[..., Any]) -> str:
    return f"{getattr(function, '__module__', None)}.{getattr(function, '__qualname__', repr(function))}"


PROCESS: Final = DeviceRuntimes()
"""The runtimes of this process."""

if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=PROCESS.forked)


def register_device_runtime(
    kind: str,
    factory: Callable[[], DeviceRuntime],
    *,
    backend: Callable[[], Any] | None = None,
    force: bool = False,
) -> None:
    """Offer the accelerators of a kind to this process; nothing is created before the first use of a device.

    Distributions call it from a function that the entry point ``kind`` of the group ``tenferro.device_runtimes`` names;
    that function runs when the kind is first used.

    Args:
        kind: kind of device, as in ``"cuda"``: the part before the colon in the names of its devices.
        factory: creates the runtime; called once.
        backend: creates the backend of the same kind; optional if an entry point in ``tenferro.backends`` offers it.
        force: replace an earlier registration; a runtime in use is never replaced.

    Raises:
        AcceleratorMismatchError: the kind is registered already, or a runtime is in use.
        ArgumentError: the kind is not a valid name, or a factory is not callable.

    >>> from mypackage import AbacusRuntime  # doctest: +SKIP
    >>> register_device_runtime("abacus", AbacusRuntime)  # doctest: +SKIP
    """
    PROCESS.register(kind, factory, backend=backend, force=force)


def device_runtime(kind: str | None = None) -> DeviceRuntime:
    """Return the device runtime of the process, created on first use.

    Args:
        kind: expected kind; by default that of ``TENFERRO_ACCELERATOR``, else the one in use, else the only installed
            one.

    Returns:
        The runtime.

    Raises:
        AcceleratorMismatchError: another kind is in use or configured, or the factory created another kind.
        BackendUnavailableError: no such runtime is installed, or its devices are missing.
        ForkedRuntimeError: the runtime was created before this process was forked.
        ArgumentError: several kinds are installed and none is named.
        RegistryError: the runtime cannot be created.

    >>> device_runtime("cuda").devices()  # doctest: +SKIP
    (<CudaDevice cuda:0>,)
    """
    return PROCESS.get(kind)
