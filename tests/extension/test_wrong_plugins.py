"""Distributions that are damaged, out of date, or at odds with each other: a typed error names the one at fault, when
something of it is asked for, and everything else goes on."""

import importlib.metadata
import itertools
import re
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from installed_plugins import MODULE, Installed
from plugin_site import Site
from simulated.installed import no_accelerator
from tenferro_runtime import _namespace
from tenferro_tensor import REGISTRY, Registry, Spec, entry_points, get_backend, primitive, tensor
from tenferro_tensor import backends as backends
from tenferro_tensor._requirements import satisfies
from tenferro_tensor_core import RegistryError

EXTENSIONS, BACKENDS = "tenferro.extensions", "tenferro.backends"


@pytest.fixture
def site(tmp_path: Path) -> Site:
    return Site(tmp_path)


@pytest.fixture
def installed(monkeypatch: pytest.MonkeyPatch) -> Any:
    for table in ("_groups", "_rivals", "_usurpers"):
        monkeypatch.setattr(entry_points, table, {})
    with no_accelerator():
        yield Installed(monkeypatch)


# ---- one family id, two operations ----

CLASH = """
import sys, tenferro_runtime as tr
from tenferro_runtime.exporting.files import ProgramFileError
from tenferro_tensor_core import RegistryError
import wave_a
try:
    import wave_b
except RegistryError as error:
    print(error)
print(tr.trace(lambda x: wave_a.wave(x), tr.ones(2)).save(sys.argv[1]) != "")
"""
OTHER = """
import sys, tenferro_runtime as tr
from tenferro_runtime.exporting.files import ProgramFileError
import {module}
try:
    print(tr.load(sys.argv[1]).run(tr.ones(2))[0].tolist())
except ProgramFileError as error:
    print(error)
"""


def test_one_family_id_of_two_distributions_is_an_error_wherever_it_is_met(site: Site, tmp_path: Path) -> None:
    site.wave("waves-a", "wave_a", "waves.wave.v1", "wave_a", 2.0)
    site.wave("waves-b", "wave_b", "waves.wave.v1", "wave_b", 3.0)
    saved = str(tmp_path / "program")
    first, second, *_ = site.run(CLASH, saved).splitlines()
    assert first == (
        "the family id 'waves.wave.v1' belongs to wave of distribution waves-a 1.0 (extension 'wave_a', module wave_a)"
        ", and wave of distribution waves-b 1.0 (extension 'wave_b', module wave_b) claims it too; a saved program "
        "could run either: uninstall one of the two, or give one another id"
    )
    assert second == "True"
    assert site.run(OTHER.format(module="sys"), saved) == "[2.0, 2.0]\n"
    assert site.run(OTHER.format(module="wave_a"), saved) == "[2.0, 2.0]\n"
    told = site.run(OTHER.format(module="wave_b"), saved)
    assert "the program uses wave of waves.wave.v1 (extension 'wave_a'), but here that family id belongs to" in told
    assert "module wave_b (extension 'wave_b'); pip install waves-a (the program was saved with 1.0)" in told


def test_a_file_names_the_distribution_that_it_needs(site: Site, tmp_path: Path) -> None:
    site.wave("waves-a", "wave_a", "waves.wave.v1", "waves", 2.0)
    saved = str(tmp_path / "program")
    site.run(CLASH.replace("    import wave_b\n", "    pass\n"), saved)
    usurper = Site(tmp_path / "other")
    usurper.folder.mkdir()
    usurper.wave("other-waves", "wave_a", "waves.wave.v1", "waves", 3.0)
    told = usurper.run(OTHER.format(module="sys"), saved)
    assert told == (
        "the program uses waves.wave.v1 of the extension 'waves' of waves-a 1.0, but here that extension is of "
        "other-waves 1.0; pip install waves-a, and uninstall the other\n"
    )
    empty = Site(tmp_path / "empty")
    empty.folder.mkdir()
    told = empty.run(OTHER.format(module="sys"), saved)
    assert told == (
        "the program uses waves.wave.v1, which no installed distribution provides; pip install waves-a (the program "
        "was saved with 1.0)\n"
    )


def claimed(family: str, name: str = "op") -> Any:
    space: dict[str, Any] = {"__name__": f"module_{name}", "Spec": Spec, "primitive": primitive, "family": family}
    code = compile(f"@primitive(family=family)\ndef {name}(x):\n    return x\n", f"{name}.py", "exec")
    exec(code, space)
    return space[name]


def test_the_same_code_may_define_its_family_again() -> None:
    """A module that is reloaded, a cell that is run twice, a script that is imported too."""
    first, second = claimed("again.op.v1"), claimed("again.op.v1")
    assert first is not second
    with pytest.raises(RegistryError, match="the family id 'again.op.v1' belongs to op of module module_op, and other"):
        claimed("again.op.v1", "other")


@pytest.mark.parametrize("family", ["", "waves", "waves.wave", "waves.wave.v0", "Waves.wave.v1", "waves.wave.1", 3, ()])
def test_a_family_id_has_one_form(family: Any) -> None:
    with pytest.raises(RegistryError, match="is no family id; the form is '<distribution>.<op>.v<major>'"):
        claimed(family)


# ---- what is wrong with an entry point ----

MALFORMED = ["", "module with spaces:f", "::", ":f", "a.b:", "a-b:f", "a:b:c", "a.b:f extra", "1/2"]


@pytest.mark.parametrize("value", MALFORMED)
@pytest.mark.parametrize("group", [EXTENSIONS, BACKENDS])
def test_malformed_entry_points_are_named(installed: Installed, group: str, value: str, monkeypatch: Any) -> None:
    monkeypatch.setattr(backends, "_made", {})
    installed.add(group, "odd", value)
    installed.offer(group, "good", lambda *given: None)
    text = rf"{group} 'odd' of distribution plugin 1.2 cannot be loaded from .*; reinstall or remove that distribution"
    load: Any = Registry().load_extension if group == EXTENSIONS else get_backend
    with pytest.raises(RegistryError, match=text) as caught:
        load("odd")
    assert "NoneType" not in str(caught.value)
    load("good")


def test_a_function_is_due(installed: Installed) -> None:
    vars(installed.module)["number"] = 3
    installed.add(EXTENSIONS, "odd", f"{MODULE}:number")
    installed.add(EXTENSIONS, "even", MODULE)
    with pytest.raises(RegistryError, match="it is the int 3, expected a function"):
        Registry().load_extension("odd")
    with pytest.raises(RegistryError, match="it is the module .*, expected a function"):
        Registry().load_extension("even")


@pytest.mark.parametrize("error", [SystemExit(3), SystemExit(), GeneratorExit(), MemoryError(), RecursionError("deep")])
@pytest.mark.parametrize("where", ["import", "register", "backend"])
def test_a_guest_cannot_end_the_program(
    installed: Installed, error: BaseException, where: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(backends, "_made", {})

    def fail(*_: Any) -> None:
        raise error

    if where == "import":
        monkeypatch.setattr(importlib.metadata.EntryPoint, "load", fail)
    installed.offer(EXTENSIONS, "odd", fail)
    installed.offer(BACKENDS, "odd", fail)
    load: Any = get_backend if where == "backend" else Registry().load_extension
    with pytest.raises(RegistryError, match=rf"'odd' of distribution plugin 1.2 .*{type(error).__name__}.*reinstall"):
        load("odd")


def test_an_interrupt_is_one(installed: Installed) -> None:
    def interrupted(registry: Registry) -> None:
        raise KeyboardInterrupt

    installed.offer(EXTENSIONS, "odd", interrupted)
    with pytest.raises(KeyboardInterrupt):
        Registry().load_extension("odd")


HOSTILE = """
import tenferro_runtime as tr
from tenferro_tensor import REGISTRY
from tenferro_tensor_core import TenferroError
print(tr.linalg.det(tr.eye(2)).tolist())
import wave_a
print(wave_a.wave(tr.ones(1)).tolist())
for name in ("exits", "raises", "silent", "malformed", "old"):
    try:
        REGISTRY.load_extension(name)
        print(name, "loaded")
    except TenferroError as error:
        print(error)
"""


def test_installed_plugins_of_every_kind_leave_the_rest_alone(site: Site) -> None:
    site.wave("waves-a", "wave_a", "waves.wave.v1", "wave_a", 2.0)
    point = "[tenferro.extensions]\n{0} = {0}_module:register\n".format
    site.add("exits", "exits_module", "import sys\nsys.exit(7)\n", point("exits"))
    site.add("raises", "raises_module", "1 / 0\n", point("raises"))
    site.add("silent", "silent_module", "def register(registry):\n    pass\n", point("silent"))
    site.add("malformed", "malformed_module", "", "[tenferro.extensions]\nmalformed = not a module\n")
    site.add("torn", "torn_module", "", "this is no ini file\n[tenferro.extensions\nx y z\n")
    site.add("torn-too", "torn_too_module", "", "[tenferro.extensions]\nno value\n")
    site.add("usurper", "usurper_module", "1 / 0\n", "[tenferro.extensions]\nlinalg = usurper_module:register\n")
    site.add(
        "old", "old_module", "def register(registry):\n    pass\n", point("old"), requires="tenferro-runtime<0.0.1"
    )
    det, wave, exits, raises, silent, malformed, old = site.run(HOSTILE).splitlines()
    assert (det, wave, silent) == ("1.0", "[2.0]", "silent loaded")
    assert (
        exits.startswith("tenferro.extensions 'exits' of distribution exits 1.0 cannot be loaded")
        and "SystemExit: 7" in exits
    )
    assert "ZeroDivisionError: division by zero; reinstall or remove that distribution" in raises
    assert "'not a module' is not of the form 'package.module:function'" in malformed
    assert re.fullmatch(
        r"tenferro.extensions 'old' of distribution old 1.0 needs tenferro-runtime<0.0.1, but tenferro-runtime "
        r"[\d.]+ is installed; install a version of tenferro-runtime that it takes, or a version of old for the one "
        r"that is there",
        old,
    )


# ---- names that belong to tenferro ----


def test_nobody_takes_a_name_of_tenferro(installed: Installed, caplog: pytest.LogCaptureFixture) -> None:
    installed.offer(EXTENSIONS, "linalg", lambda r: None, "evil")
    with pytest.raises(AttributeError, match=r"pip install tenferro-linalg \(distribution evil 1.2 claims .* 'linalg'"):
        _namespace.family("linalg")
    with pytest.raises(
        RegistryError, match="'linalg'; installed: none; .*belongs to tenferro-linalg; the claim is ign"
    ):
        Registry().load_extension("linalg")
    assert "distribution evil 1.2 claims tenferro.extensions 'linalg'" in caplog.text
    entry_points.rescan()
    installed.offer(EXTENSIONS, "linalg", lambda r: r.rule(OWN, "ours"), "tenferro-linalg")
    registry = Registry()
    registry.load_extension("linalg")
    assert registry.find("rule", OWN) == "ours"


@primitive
def own(x: Spec) -> Spec:
    """Of this module."""
    return x


OWN = own

# ---- versions that a plug-in requires ----


@pytest.mark.parametrize(
    ("version", "specifiers", "holds"),
    [
        ("0.1.0", "", True), ("0.1.0", ">=0.1,<0.2", True), ("0.2.0", ">=0.1,<0.2", False), ("0.1", "==0.1.0", True),
        ("0.1.1", "==0.1.*", True), ("0.2", "==0.1.*", False), ("0.2", "!=0.1.*", True), ("1.10", ">1.9", True),
        ("1.4.5", "~=1.4.2", True), ("1.5", "~=1.4.2", False), ("1.5", "~=1.4", True), ("2.0", "~=1.4", False),
        ("1.0rc1", ">=1.0", False), ("1.0rc1", "<1.0", False), ("1.0.dev3", "<1.0", False), ("0.9", "<1.0", True),
        ("1.0.post1", ">1.0", False), ("1.0.post1", ">=1.0", True), ("1.0a1", "<1.0b1", True), ("1!0.1", ">2", True),
        ("1.0+local", "==1.0", True), ("1.0", "===1.0", True), ("0.1", ">= 0.1 , != 0.1.1", True),
        ("0.1", "what", True),
    ],
)  # fmt: skip
def test_specifiers(version: str, specifiers: str, holds: bool) -> None:
    assert satisfies(version, specifiers) == holds


def test_specifiers_are_read_as_installers_read_them() -> None:
    """Against the library that installers use, where it is there."""
    specifiers_of = pytest.importorskip("packaging.specifiers").SpecifierSet
    versions = ["0.1", "0.1.0", "0.1.1", "0.2.0.dev1", "0.2a1", "0.2rc2", "0.2", "0.2.post1", "0.10", "1.0", "1!0.1"]
    targets = ["0.1", "0.1.0", "0.1.1", "0.2", "0.2rc2", "0.2.0.dev1", "0.2.post1", "1.0"]
    clauses = [c + v for c in ("==", "!=", "<", "<=", ">", ">=", "~=") for v in targets if c != "~=" or "." in v]
    clauses += [c + v + ".*" for c in ("==", "!=") for v in ("0", "0.1", "0.2", "1")]
    for version, clause in itertools.product(versions, clauses):
        assert satisfies(version, clause) == specifiers_of(clause).contains(version, prereleases=True), (
            version,
            clause,
        )


def wanting(*requires: str) -> Any:
    return SimpleNamespace(name="plugin", version="1.2", requires=list(requires))


@pytest.mark.parametrize(
    ("requirement", "fits"),
    [
        ("tenferro-runtime>=0.5,<2", True), ("tenferro_runtime (>=0.5)", True), ("Tenferro.Runtime[x] ~= 0.5", True),
        ("tenferro-runtime>=2", False), ("tenferro-tensor<0.5", False), ("numpy>=99", True),
        ("tenferro-ad==0.4.*", False), ("???", True),
        ("tenferro-runtime>=2 ; extra == 'new'", True), ("tenferro-runtime @ https://example.org/x.whl", True),
    ],
)  # fmt: skip
def test_requirements_on_tenferro_are_held_to(
    installed: Installed, monkeypatch: pytest.MonkeyPatch, requirement: str, fits: bool
) -> None:
    monkeypatch.setattr(importlib.metadata, "version", lambda name: "0.5")
    installed.offer(EXTENSIONS, "odd", lambda r: None)
    vars(installed.points[0])["dist"] = wanting(requirement)
    if fits:
        Registry().load_extension("odd")
        return
    text = f"'odd' of distribution plugin 1.2 needs {re.escape(requirement)}, but tenferro-[a-z]* 0.5 is installed"
    with pytest.raises(RegistryError, match=text):
        Registry().load_extension("odd")


def test_a_requirement_that_is_not_installed(installed: Installed, monkeypatch: pytest.MonkeyPatch) -> None:
    def absent(name: str) -> str:
        raise importlib.metadata.PackageNotFoundError(name)

    monkeypatch.setattr(importlib.metadata, "version", absent)
    installed.offer(EXTENSIONS, "odd", lambda r: None)
    vars(installed.points[0])["dist"] = wanting("tenferro-fft")
    with pytest.raises(RegistryError, match="needs tenferro-fft, but tenferro-fft is not installed; install a version"):
        Registry().load_extension("odd")


class Damaged:
    """Metadata that raise whatever is asked of them."""

    def __getattr__(self, name: str) -> Any:
        raise KeyError(name)


def test_damaged_metadata_are_no_obstacle(installed: Installed) -> None:
    installed.offer(EXTENSIONS, "odd", lambda r: 1 / 0)
    vars(installed.points[0])["dist"] = Damaged()
    with pytest.raises(RegistryError, match="'odd' of an unnamed distribution cannot be registered: ZeroDivisionError"):
        Registry().load_extension("odd")


# ---- what an inference function returns ----


@pytest.mark.parametrize("wrong", [None, 3, [], (None,), "x", (3,), np.dtype(float)])
def test_an_inference_function_returns_specs(wrong: Any) -> None:
    @primitive
    def odd(x: Spec) -> Any:
        """Wrong."""
        return wrong

    with REGISTRY.kernel(odd, "cpu", lambda ins, outs: lambda x: x):
        with pytest.raises(RegistryError, match="the inference function of odd returned .*neither a Spec nor a tuple"):
            odd(tensor([1.0]))


FIRST = """
import numpy as np
import tenferro_tensor as tt
from tenferro_tensor_core import RegistryError
try:
    tt.REGISTRY.load_extension("hasty")
except RegistryError as error:
    print(error)
print((tt.tensor([1.0]) + 1.0).tolist(), tt.REGISTRY.extensions()["hasty"])
"""
HASTY = """
import numpy as np
from tenferro_tensor import get_backend, tensor

def register(registry):
    get_backend("cpu")
    import tenferro_ad
    raise ValueError("no")
"""


def test_parts_of_tenferro_outlive_a_guest_that_fails(site: Site) -> None:
    """A guest may be the first to need a backend; its own failure must not take the kernels of that along."""
    site.add("hasty", "hasty", HASTY, "[tenferro.extensions]\nhasty = hasty:register\n")
    told, result = site.run(FIRST).splitlines()
    assert told.startswith("the extension 'hasty' of distribution hasty 1.0 cannot be registered: ValueError: no;")
    assert result == "[2.0] False"
