"""Which device runtime a process uses: registration, first use, force, mismatches, entry points, races and forks."""

import os
import re
import subprocess
import sys
import threading
from typing import Any

import numpy as np
import pytest

from installed_plugins import MODULE, Installed
from tenferro_tensor import (
    AcceleratorMismatchError,
    Backend,
    ComputeDevice,
    DeviceRuntime,
    ForkedRuntimeError,
    Spec,
    available_backends,
    catalog,
    device_runtime,
    entry_points,
    get_backend,
    register_device_runtime,
)
from tenferro_tensor import backends as backends
from tenferro_tensor.device_runtimes import _registry
from tenferro_tensor.device_runtimes._registry import DeviceRuntimes
from tenferro_tensor_core import ArgumentError, BackendUnavailableError, RegistryError, UnsupportedError

RUNTIMES, CONFIGURED = "tenferro.device_runtimes", "TENFERRO_ACCELERATOR"


class Toy(DeviceRuntime):
    """A runtime without devices."""

    kind = "toy"

    def devices(self) -> Any:
        return ()

    def device(self, ordinal: int) -> Any:
        raise AssertionError

    device_of = stream_of = can_access_peer = copy_peer = device  # type: ignore[assignment]


class Doll(Toy):
    kind = "doll"


class ToyBackend(Backend):
    """A backend that has a device, but no kernels."""

    name = "toy"

    def devices(self) -> tuple[ComputeDevice, ...]:
        return (ComputeDevice(f"{self.name}:0"),)

    def upload(self, array: Any, device: ComputeDevice) -> Any:
        return array

    def download(self, raw: Any) -> Any:
        return raw

    def synchronize(self) -> None:
        pass


class DollBackend(ToyBackend):
    name = "doll"


@pytest.fixture(autouse=True)
def installed(monkeypatch: pytest.MonkeyPatch) -> Installed:
    """Nothing is installed but what the test says, and the process uses no accelerator."""
    monkeypatch.setattr(entry_points, "_groups", {})
    monkeypatch.setattr(entry_points, "_rivals", {})
    monkeypatch.delenv(CONFIGURED, raising=False)
    return Installed(monkeypatch)


@pytest.fixture
def process(monkeypatch: pytest.MonkeyPatch) -> DeviceRuntimes:
    """A registry in the place of that of the process, and no backends made."""
    fresh = DeviceRuntimes()
    monkeypatch.setattr(_registry, "PROCESS", fresh)
    monkeypatch.setattr(backends, "PROCESS", fresh)
    monkeypatch.setattr(backends, "_made", {})
    return fresh


def compile_on(backend: Backend) -> Any:
    spec = Spec((2,), np.dtype("float64"))
    return backend.kernel(catalog.neg.op(), (spec,), (spec,), backend.devices()[0])


def test_a_runtime_is_made_on_first_use_and_once() -> None:
    runtimes, made = DeviceRuntimes(), []
    runtimes.register("toy", lambda: made.append(1) or Toy())
    assert not made and runtimes.used is None and runtimes.kinds() == ("toy",)
    first = runtimes.get("toy")
    assert first is runtimes.get("toy") is runtimes.get() and made == [1] and runtimes.used == "toy"


def test_a_second_registration_needs_force() -> None:
    runtimes, ran = DeviceRuntimes(), []
    runtimes.register("toy", Toy)
    runtimes.register("toy", Toy)  # the same again is no rival
    text = "a device runtime for 'toy' is registered already; pass force=True to replace it"
    with pytest.raises(AcceleratorMismatchError, match=re.escape(text)):
        runtimes.register("toy", lambda: Toy())
    with pytest.raises(AcceleratorMismatchError, match=re.escape(text)):
        runtimes.register("toy", Toy, backend=ToyBackend)
    runtimes.register("toy", lambda: ran.append(1) or Toy(), force=True)
    runtimes.get("toy")
    assert ran == [1]


@pytest.mark.parametrize("force", [False, True])
def test_a_runtime_in_use_is_never_replaced(force: bool) -> None:
    runtimes = DeviceRuntimes()
    runtimes.register("toy", Toy)
    used = runtimes.get()
    runtimes.register("toy", Toy, force=force)  # the same again
    text = (
        "a device runtime for 'toy' is registered, but this process uses that for 'toy' already, which stays until "
        "the process ends, also with force=True; register runtimes before the first use of a device"
    )
    with pytest.raises(AcceleratorMismatchError, match=re.escape(text)) as seen:
        runtimes.register("toy", lambda: Toy(), force=force)
    assert seen.value.payload == {"kind": "toy", "used": "toy"} and isinstance(seen.value, RuntimeError)
    text = (
        "this process uses the accelerator 'toy', so that it cannot use 'doll'; a process has one kind of "
        "accelerator: use another process for the other"
    )
    with pytest.raises(AcceleratorMismatchError, match=re.escape(text)):
        runtimes.register("doll", Doll, force=force)
    assert runtimes.get() is used and runtimes.kinds() == ("toy",)


def test_a_process_uses_one_kind() -> None:
    runtimes = DeviceRuntimes()
    runtimes.register("toy", Toy)
    runtimes.register("doll", Doll)
    runtimes.get("doll")
    text = (
        "the device runtime for 'toy' is asked for, but this process uses the device runtime for 'doll'; a process "
        "has one kind of accelerator: set TENFERRO_ACCELERATOR to it, and use another process for the other"
    )
    with pytest.raises(AcceleratorMismatchError, match=re.escape(text)):
        runtimes.get("toy")
    assert runtimes.get().kind == "doll"


def test_without_a_kind_there_must_be_one_choice(monkeypatch: pytest.MonkeyPatch) -> None:
    runtimes = DeviceRuntimes()
    with pytest.raises(BackendUnavailableError, match=r"no accelerator is installed; install tenferro-gpu, or"):
        runtimes.get()
    runtimes.register("toy", Toy)
    runtimes.register("doll", Doll)
    text = "asked for without its kind, and there are doll, toy; name one, or set TENFERRO_ACCELERATOR=doll"
    with pytest.raises(ArgumentError, match=text):
        runtimes.get()
    monkeypatch.setenv(CONFIGURED, "toy")
    assert runtimes.get().kind == "toy"


def test_the_configured_kind_holds_for_runtime_and_backend(
    monkeypatch: pytest.MonkeyPatch, process: DeviceRuntimes
) -> None:
    register_device_runtime("toy", Toy, backend=ToyBackend)
    register_device_runtime("doll", Doll, backend=DollBackend)
    monkeypatch.setenv(CONFIGURED, "doll")
    text = "the device runtime for 'toy' is asked for, but TENFERRO_ACCELERATOR=doll; use 'doll' devices, or change"
    with pytest.raises(AcceleratorMismatchError, match=text) as seen:
        device_runtime("toy")
    assert seen.value.payload == {"kind": "toy", "configured": "doll"}
    text = "the backend 'toy' is asked for a kernel, but TENFERRO_ACCELERATOR=doll; use 'doll' devices, or change"
    with pytest.raises(AcceleratorMismatchError, match=text):
        compile_on(get_backend("toy"))
    assert process.used is None
    with pytest.raises(UnsupportedError):
        compile_on(get_backend("doll"))
    assert process.used == "doll" and device_runtime() is device_runtime("doll")


def test_a_configured_kind_that_is_not_installed_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    runtimes = DeviceRuntimes()
    runtimes.register("toy", Toy)
    monkeypatch.setenv(CONFIGURED, "abacus")
    text = r"no device runtime for 'abacus' is installed \(there are: toy\); install the distribution that offers"
    with pytest.raises(BackendUnavailableError, match=text):
        runtimes.get()


def test_a_runtime_without_a_backend_is_told_from_no_installation(process: DeviceRuntimes) -> None:
    register_device_runtime("doll", Doll)
    text = (
        "a device runtime for 'doll' is registered, but no backend; pass one to register_device_runtime as `backend=`"
    )
    with pytest.raises(BackendUnavailableError, match=re.escape(text)):
        get_backend("doll")


def test_the_first_compile_makes_the_runtime_of_the_backend(process: DeviceRuntimes) -> None:
    register_device_runtime("toy", Toy, backend=ToyBackend)
    backend = get_backend("toy")
    assert process.used is None, "looking at a backend uses no device"
    with pytest.raises(UnsupportedError):
        compile_on(backend)
    assert process.used == "toy"


def test_a_backend_of_another_kind_does_not_compile(process: DeviceRuntimes) -> None:
    register_device_runtime("toy", Toy, backend=ToyBackend)
    register_device_runtime("doll", Doll, backend=DollBackend)
    device_runtime("doll")
    text = "the backend 'toy' is asked for a kernel, but this process uses the device runtime for 'doll'; a process has"
    with pytest.raises(AcceleratorMismatchError, match=text):
        compile_on(get_backend("toy"))


def test_a_backend_without_a_runtime_works_alone_and_not_beside_one(process: DeviceRuntimes) -> None:
    """Its kernels are done when they return; two stacks in one process are refused all the same."""
    backend = ToyBackend()
    with pytest.raises(UnsupportedError):
        compile_on(backend)
    register_device_runtime("doll", Doll)
    device_runtime()
    with pytest.raises(AcceleratorMismatchError, match="this process uses the device runtime for 'doll'"):
        compile_on(backend)


def test_a_registered_backend_is_found_and_held_against_its_kind(process: DeviceRuntimes) -> None:
    register_device_runtime("toy", Toy, backend=ToyBackend)
    assert get_backend("toy") is get_backend("toy") and available_backends() == ("toy",)
    register_device_runtime("doll", Doll, backend=ToyBackend)
    text = r"ToyBackend.* was registered to make the backend for 'doll', but made that for 'toy'; register it under"
    with pytest.raises(AcceleratorMismatchError, match=text):
        get_backend("doll")


def test_a_factory_of_another_kind_is_refused() -> None:
    runtimes = DeviceRuntimes()
    runtimes.register("toy", Doll)
    text = r"Doll was registered to make the device runtime for 'toy', but made one for 'doll'; register it under its"
    with pytest.raises(AcceleratorMismatchError, match=text) as seen:
        runtimes.get("toy")
    assert seen.value.payload == {"kind": "toy", "made": "doll"} and runtimes.used is None
    runtimes.register("toy", lambda: "toy", force=True)  # type: ignore[arg-type, return-value]
    with pytest.raises(RegistryError, match=r"for 'toy', but made 'toy', which is no DeviceRuntime"):
        runtimes.get("toy")


def test_a_factory_that_fails_changes_nothing() -> None:
    runtimes, failures = (
        DeviceRuntimes(),
        [OSError("no driver"), BackendUnavailableError("no device"), KeyboardInterrupt()],
    )

    def make() -> Toy:
        if failures:
            raise failures.pop(0)
        return Toy()

    runtimes.register("toy", make)
    with pytest.raises(RegistryError, match=r"for 'toy' cannot be made: OSError: no driver; mend .*make, or") as seen:
        runtimes.get("toy")
    assert isinstance(seen.value.__cause__, OSError)
    with pytest.raises(BackendUnavailableError, match="no device"):
        runtimes.get("toy")
    with pytest.raises(KeyboardInterrupt):
        runtimes.get("toy")
    assert runtimes.used is None
    runtimes.register("doll", Doll)  # nothing is in use
    assert runtimes.get("toy").kind == "toy"


def test_a_factory_that_asks_for_itself_is_told() -> None:
    runtimes = DeviceRuntimes()
    runtimes.register("toy", lambda: runtimes.get("toy"))
    text = "the factory of the device runtime for 'toy' asks for the runtime that it is making; let it use what"
    with pytest.raises(RegistryError, match=text):
        runtimes.get("toy")
    runtimes.register("doll", lambda: runtimes.get("toy"))
    with pytest.raises(AcceleratorMismatchError, match="'toy' is asked for, but this process uses .* 'doll'"):
        runtimes.get("doll")
    again = lambda: runtimes.register("toy", Toy, force=True) or Toy()
    runtimes.register("toy", again, force=True)
    with pytest.raises(AcceleratorMismatchError, match="this process uses that for 'toy' already"):
        runtimes.get("toy")
    assert runtimes.used is None


@pytest.mark.parametrize("kind", ["cpu", "host", "cuda:0", "", "two words", "9", "\u00e9", 3])
def test_kinds_are_names_of_accelerators(kind: Any) -> None:
    text = f"{kind!r} is no kind of accelerator; use a name like 'cuda'"
    for ask in (lambda r: r.register(kind, Toy), lambda r: r.get(kind), lambda r: r.pair(kind)):
        with pytest.raises(ArgumentError, match=text):
            ask(DeviceRuntimes())


def test_makers_are_functions() -> None:
    with pytest.raises(ArgumentError, match="the runtime of kind 'toy' is registered as a function that makes it"):
        DeviceRuntimes().register("toy", Toy())  # type: ignore[arg-type]
    with pytest.raises(ArgumentError, match="the backend of kind 'toy' is registered as a function that makes it"):
        DeviceRuntimes().register("toy", Toy, backend=3)  # type: ignore[arg-type]


def test_an_entry_point_brings_runtime_and_backend_together(installed: Installed, process: DeviceRuntimes) -> None:
    calls = []

    def register() -> None:
        calls.append(1)
        register_device_runtime("toy", Toy, backend=ToyBackend)

    installed.offer(RUNTIMES, "toy", register)
    assert process.kinds() == ("toy",) == available_backends() and not calls
    assert get_backend("toy").name == "toy" and device_runtime().kind == "toy" and calls == [1]


def test_entry_points_that_do_not_work_are_named(installed: Installed, process: DeviceRuntimes) -> None:
    def fails() -> None:
        register_device_runtime("fails", Toy)
        raise OSError("no library")

    installed.add(RUNTIMES, "gone", "tenferro_nowhere:register")
    installed.offer(RUNTIMES, "silent", lambda: None)
    installed.offer(RUNTIMES, "fails", fails)
    installed.offer(RUNTIMES, "toy", lambda: register_device_runtime("toy", Toy))
    with pytest.raises(RegistryError, match="tenferro.device_runtimes 'gone' of distribution plugin 1.2 cannot be"):
        device_runtime("gone")
    text = (
        f"distribution plugin 1.2 offers a device runtime for 'silent', but its entry point {MODULE}:silent registers "
        "none; it has to call register_device_runtime('silent', ...)"
    )
    with pytest.raises(RegistryError, match=re.escape(text)):
        device_runtime("silent")
    for _ in range(2):
        text = "the device runtime for 'fails' of distribution plugin 1.2 cannot be registered: OSError: no library;"
        with pytest.raises(RegistryError, match=text):
            device_runtime("fails")
    assert device_runtime("toy").kind == "toy", "one that is broken breaks no other"


def test_what_is_registered_here_goes_before_what_is_installed(installed: Installed, process: DeviceRuntimes) -> None:
    installed.offer(RUNTIMES, "toy", lambda: register_device_runtime("toy", Doll))
    register_device_runtime("toy", Toy)
    assert device_runtime("toy").kind == "toy"


def test_threads_that_race_make_one_runtime() -> None:
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    try:
        for _ in range(100):
            runtimes, made, outcomes = DeviceRuntimes(), [], []
            runtimes.register("toy", lambda made=made: made.append("toy") or Toy())  # type: ignore[misc]
            runtimes.register("doll", lambda made=made: made.append("doll") or Doll())  # type: ignore[misc]
            start = threading.Barrier(8)

            def work(i: int, runtimes=runtimes, outcomes=outcomes, start=start) -> None:
                start.wait()
                try:
                    if i % 4 == 3:
                        runtimes.register("toy", Toy, force=True)
                    else:
                        outcomes.append(runtimes.get("toy" if i % 2 else "doll"))
                except AcceleratorMismatchError as error:
                    outcomes.append(error)

            workers = [threading.Thread(target=work, args=(i,)) for i in range(8)]
            for w in workers:
                w.start()
            for w in workers:
                w.join()
            winners = {id(o) for o in outcomes if isinstance(o, DeviceRuntime)}
            assert len(winners) == 1 and runtimes.get() in outcomes
            assert len(made) <= 1  # the re-registered one does not say
            assert all(o.kind == runtimes.used for o in outcomes if isinstance(o, DeviceRuntime))
    finally:
        sys.setswitchinterval(interval)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")
def test_a_forked_child_raises_and_one_forked_before_the_first_use_does_not() -> None:
    """The child's registry is reset by the same function that the process has registered for forks."""
    runtimes = DeviceRuntimes()
    runtimes.register("toy", Toy)
    runtimes.forked()
    runtimes.get("toy")
    runtimes.forked()
    text = "the device runtime for 'toy' was made before this process was forked .* start workers with the 'spawn' or"
    for ask in (lambda: runtimes.get(), lambda: runtimes.get("toy"), lambda: runtimes.pair("toy")):
        with pytest.raises(ForkedRuntimeError, match=text):
            ask()
    runtimes.forked()
    with pytest.raises(ForkedRuntimeError, match="'toy' was made before"):
        runtimes.get("doll")


CHILD = """
import os
from tenferro_tensor import DeviceRuntime, ForkedRuntimeError, device_runtime, register_device_runtime

class Toy(DeviceRuntime):
    kind = "toy"
    def devices(self): return ()
    device = device_of = stream_of = can_access_peer = copy_peer = devices

register_device_runtime("toy", Toy)

def in_child(ask):
    pid = os.fork()
    if not pid:
        try:
            ask()
        except ForkedRuntimeError:
            os._exit(7)
        os._exit(3)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])

assert in_child(lambda: device_runtime("toy")) == 3
device_runtime("toy")
assert in_child(lambda: device_runtime("toy")) == 7
assert device_runtime().kind == "toy"
print("as said")
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")
def test_real_forks() -> None:
    done = subprocess.run([sys.executable, "-c", CHILD], capture_output=True, text=True)
    assert done.stdout == "as said\n", done.stderr
