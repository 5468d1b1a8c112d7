"""Registry, entry points and backends: what is found, when it is loaded, and what is said when it cannot be."""

import re
import subprocess
import sys
import threading
import time
from typing import Any

import pytest

from installed_plugins import MODULE, Installed
from simulated.installed import no_accelerator
from tenferro_tensor import (
    REGISTRY,
    Registry,
    Spec,
    available_backends,
    catalog,
    entry_points,
    get_backend,
    primitive,
    tensor,
)
from tenferro_tensor import backends as backends
from tenferro_tensor_core import BackendUnavailableError, PlacementError, RegistryError, UnsupportedError

EXTENSIONS, BACKENDS = "tenferro.extensions", "tenferro.backends"


@pytest.fixture
def installed(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setattr(entry_points, "_groups", {})
    monkeypatch.setattr(entry_points, "_rivals", {})
    with no_accelerator():
        yield Installed(monkeypatch)


def foreign(extension: str | None = "odd") -> Any:
    @primitive(extension=extension)
    def odd(x: Spec) -> Spec:
        """An operation of an extension."""
        return x

    return odd


def make(ins: Any, outs: Any) -> Any:
    return lambda x: x


def other(ins: Any, outs: Any) -> Any:
    return lambda x: -x


def test_entries_are_found_by_table_and_key() -> None:
    registry, p = Registry(), foreign(None)
    record, lower, prune = object(), lambda emitter, operands, outs: None, lambda op, used: None
    registry.kernel(p, "cpu", make)
    registry.rule(p, record)
    registry.lowering(p, lower)
    registry.pruning(p, prune)
    assert registry.find("kernel", p, "cpu") is make and registry.find("kernel", p, "cuda") is None
    assert registry.find("rule", p) is record
    assert registry.find("lowering", p) is lower and registry.find("pruning", p) == (prune, False)
    registry.kernel(p, "*", other)
    assert registry.find("kernel", p, "cuda") is other and registry.find("kernel", p, "cpu") is make
    assert registry.backends_of(p) == ("*", "cpu")


def test_a_second_entry_needs_to_say_that_it_replaces() -> None:
    registry, p = Registry(), foreign(None)
    registry.kernel(p, "cpu", make)
    registry.kernel(p, "cpu", make)  # the same entry is no rival
    text = r"a kernel for \(<primitive odd\(x\)>, 'cpu'\) is registered already; pass replace=True to replace it"
    with pytest.raises(RegistryError, match=text):
        registry.kernel(p, "cpu", other)
    registry.rule(p, 1)
    with pytest.raises(RegistryError, match=r"a rule for <primitive odd\(x\)> is registered already"):
        registry.rule(p, 2)
    registry.rule(p, 2, replace=True)
    assert registry.find("rule", p) == 2


def test_a_replaced_kernel_is_used_at_once() -> None:
    """A plan made before would go on with the old one."""
    p = foreign(None)
    REGISTRY.kernel(p, "cpu", make)
    assert p(tensor([1.0])).tolist() == [1.0]
    REGISTRY.kernel(p, "cpu", other, replace=True)
    assert p(tensor([1.0])).tolist() == [-1.0]


def test_a_missing_kernel_names_the_device_and_who_has_one() -> None:
    p = foreign(None)
    REGISTRY.kernel(p, "cuda", make)
    with pytest.raises(UnsupportedError, match="odd has no kernel for cpu:0; cuda has one. Move the operands there"):
        p(tensor([1.0]))


def test_a_kernel_for_a_backend_that_does_not_exist_is_named_where_one_is_missing(installed: Installed) -> None:
    p = foreign(None)
    for name in ("gpu", "cuda", "xla:cpu", "paper:0"):
        REGISTRY.kernel(p, name, make)
    installed.offer(BACKENDS, "paper", lambda kind: None)
    with pytest.raises(UnsupportedError, match="cuda, paper:0, xla:cpu has one") as caught:
        p(tensor([1.0]))
    lost = ". The kernel for 'gpu' serves no device: there is no such backend (installed: paper)"
    assert str(caught.value).endswith(lost)


def test_extensions_load_on_first_need(installed: Installed) -> None:
    registry, p, calls = Registry(), foreign(), []

    def register(r: Registry) -> None:
        calls.append(r)
        r.rule(p, "rule")

    installed.offer(EXTENSIONS, "odd", register)
    assert registry.extensions() == {"odd": False} and not calls
    assert registry.find("rule", foreign(None)) is None and not calls
    assert registry.find("rule", p) == "rule" and registry.find("kernel", p, "cpu") is None
    assert calls == [registry] and registry.extensions() == {"odd": True}
    assert installed.scans == [EXTENSIONS], "a group is scanned once"
    registry.load_extension("odd")
    assert len(calls) == 1


def test_a_missing_extension_names_the_group(installed: Installed) -> None:
    text = "no installed distribution offers the extension 'odd'; installed: none; install the distribution that"
    with pytest.raises(RegistryError, match=text):
        Registry().find("rule", foreign())
    entry_points.rescan()
    installed.offer(EXTENSIONS, "even", lambda r: None)
    with pytest.raises(RegistryError, match=r"installed: \['even'\]; .*\[project.entry-points.'tenferro.extensions'\]"):
        Registry().load_extension("odd")


def test_a_broken_extension_is_named_and_breaks_no_other(installed: Installed) -> None:
    installed.add(EXTENSIONS, "odd", "tenferro_nowhere:register")
    installed.offer(EXTENSIONS, "even", lambda r: None)
    registry = Registry()
    text = (
        "tenferro.extensions 'odd' of distribution plugin 1.2 cannot be loaded from tenferro_nowhere:register: "
        "No module named 'tenferro_nowhere'; reinstall or remove that distribution"
    )
    for _ in range(2):
        with pytest.raises(RegistryError, match=re.escape(text)):
            registry.find("rule", foreign())
    registry.load_extension("even")
    assert registry.extensions() == {"even": True, "odd": False}


@pytest.mark.parametrize("error", [ValueError("no"), KeyboardInterrupt()])
def test_a_registration_that_fails_leaves_nothing_behind(installed: Installed, error: BaseException) -> None:
    registry, p, fails = Registry(), foreign(), [True]
    registry.rule(p, "before")

    def register(r: Registry) -> None:
        r.kernel(p, "cpu", lambda ins, outs: None)
        r.rule(p, "after", replace=True)
        if fails:
            raise error

    installed.offer(EXTENSIONS, "odd", register)
    expect: Any = RegistryError if isinstance(error, Exception) else KeyboardInterrupt
    text = "the extension 'odd' of distribution plugin 1.2 cannot be registered: ValueError: no; reinstall or remove"
    with pytest.raises(expect, match=text if isinstance(error, Exception) else None):
        registry.find("kernel", p, "cpu")
    assert registry.find("rule", p) == "before" and registry.backends_of(p) == ()
    fails.clear()
    registry.load_extension("odd")
    assert registry.find("rule", p) == "after" and registry.backends_of(p) == ("cpu",)


def test_extensions_may_need_each_other(installed: Installed) -> None:
    registry, p = Registry(), foreign()

    def odd(r: Registry) -> None:
        r.load_extension("even")
        assert r.find("kernel", p, "cpu") is None  # asked while it registers: no second registration
        r.rule(p, "odd")

    installed.offer(EXTENSIONS, "odd", odd)
    installed.offer(EXTENSIONS, "even", lambda r: r.load_extension("odd"))
    assert registry.find("rule", p) == "odd"
    assert registry.extensions() == {"even": True, "odd": True}


def test_threads_wait_for_the_first_that_loads(installed: Installed) -> None:
    """Nobody may see an extension as loaded while its entries are still missing."""
    registry, p = Registry(), foreign()
    started = threading.Event()

    def register(r: Registry) -> None:
        started.set()
        time.sleep(0.05)
        r.rule(p, "rule")

    installed.offer(EXTENSIONS, "odd", register)
    found: list[Any] = []
    workers = [threading.Thread(target=lambda: found.append(registry.find("rule", p))) for _ in range(4)]
    workers[0].start()
    started.wait()
    for w in workers[1:]:
        w.start()
    for w in workers:
        w.join()
    assert found == ["rule"] * 4


def test_tables_can_be_filled_while_another_thread_loads(installed: Installed) -> None:
    """An import that registers something must not wait for a loader that waits for this import."""
    registry, p, q = Registry(), foreign(), foreign(None)
    inside, registered = threading.Event(), threading.Event()

    def register(r: Registry) -> None:
        inside.set()
        assert registered.wait(5), "the other thread was held up"

    installed.offer(EXTENSIONS, "odd", register)
    loader = threading.Thread(target=lambda: registry.find("rule", p))
    loader.start()
    assert inside.wait(5)
    registry.rule(q, "q")
    registered.set()
    loader.join()
    assert registry.find("rule", q) == "q"


def test_two_distributions_claim_one_name(installed: Installed) -> None:
    installed.offer(EXTENSIONS, "odd", lambda r: None, "first")
    installed.add(EXTENSIONS, "odd", f"{MODULE}:another", "second")
    installed.offer(EXTENSIONS, "even", lambda r: None)
    registry = Registry()
    registry.load_extension("even")  # the quarrel of two others is not its concern
    text = "tenferro.extensions 'odd' is claimed by distribution first 1.2 and by distribution second 1.2; uninstall"
    with pytest.raises(RegistryError, match=text):
        registry.load_extension("odd")


def test_one_entry_seen_twice_is_no_quarrel(installed: Installed) -> None:
    """An editable install beside its wheel shows the same entry twice."""
    installed.offer(EXTENSIONS, "odd", lambda r: None)
    installed.offer(EXTENSIONS, "odd", lambda r: None)
    Registry().load_extension("odd")


def test_unknown_backends(installed: Installed, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(backends, "_made", {})
    text = re.escape(
        "no backend for 'cuda' devices is installed (installed: none); pip install 'tenferro-gpu[cuda12]' (or"
    )
    with pytest.raises(BackendUnavailableError, match=text):
        get_backend("cuda")
    installed.offer(BACKENDS, "toy", lambda: None)
    entry_points.rescan()
    with pytest.raises(BackendUnavailableError, match=r"\(installed: toy\); install the distribution that offers it"):
        get_backend("npu")
    with pytest.raises(BackendUnavailableError, match=r"for 'gpu' devices .*; write 'cuda:0' or 'rocm:0'"):
        get_backend("gpu")
    with pytest.raises(BackendUnavailableError, match=r"for 'cpu' devices .*; pip install tenferro-cpu"):
        get_backend("cpu")
    assert available_backends() == ("toy",)


def test_backends_that_fail(installed: Installed, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(backends, "_made", {})

    def broken() -> Any:
        raise OSError("no library")

    def absent() -> Any:
        raise BackendUnavailableError("there is no device")

    installed.add(BACKENDS, "gone", "tenferro_nowhere:make", None)
    installed.offer(BACKENDS, "broken", broken)
    installed.offer(BACKENDS, "absent", absent)
    installed.offer(BACKENDS, "good", lambda: "backend")
    with pytest.raises(RegistryError, match="tenferro.backends 'gone' of an unnamed distribution cannot be loaded"):
        get_backend("gone")
    text = "the backend 'broken' of distribution plugin 1.2 cannot be made: OSError: no library; reinstall or remove"
    with pytest.raises(RegistryError, match=text):
        get_backend("broken")
    with pytest.raises(BackendUnavailableError, match="there is no device"):
        get_backend("absent")
    assert str(get_backend("good")) == "backend" and get_backend("good") is get_backend("good")


def test_a_backend_is_made_once(installed: Installed, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(backends, "_made", {})
    made: list[Any] = []

    def slow() -> Any:
        time.sleep(0.02)
        made.append(object())
        return made[-1]

    installed.offer(BACKENDS, "slow", slow)
    found: list[Any] = []
    workers = [threading.Thread(target=lambda: found.append(get_backend("slow"))) for _ in range(4)]
    for w in workers:
        w.start()
    for w in workers:
        w.join()
    assert len(made) == 1 and found == made * 4


def test_a_backend_knows_its_devices() -> None:
    from tenferro_tensor import ComputeDevice

    cpu = get_backend("cpu")
    cpu.require(ComputeDevice("cpu:0"))
    with pytest.raises(PlacementError, match="cpu:9 was requested, but no such pool was ever opened; open it with"):
        cpu.require(ComputeDevice("cpu:9"))
    s = Spec((2,), tensor(1.0).dtype)
    with pytest.raises(PlacementError, match="cpu:9 was requested"):
        cpu.kernel(catalog.neg.op(), (s,), (s,), ComputeDevice("cpu:9"))


ALONE = """
from tenferro_tensor import REGISTRY, Spec, primitive, tensor
from tenferro_tensor_core import UnsupportedError

@primitive(family="somebody.twice.v1", extension="somebody")
def twice(x: Spec) -> Spec:
    return x

REGISTRY.expansion(twice, lambda x: x + x)
try:
    twice(tensor([1.0, 2.0]))
except UnsupportedError as error:
    print(error)
"""


def test_operations_made_of_others_say_that_they_need_programs() -> None:
    done = subprocess.run([sys.executable, "-c", ALONE], capture_output=True, text=True)
    assert "twice is computed by a program of other operations" in done.stdout, done.stderr
