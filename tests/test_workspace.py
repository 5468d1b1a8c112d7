"""The workspace keeps its promises: lists agree with the disk, contracts hold, and they catch what they forbid."""

import ast
import os
import re
import shutil
import subprocess
import sys
import tomllib
from functools import cache
from importlib import import_module
from importlib.metadata import entry_points
from importlib.util import resolve_name
from itertools import pairwise
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet

import addresses
import reference_groups
from workspace import FOLDERS, PROJECTS, ROOT, ROOT_CONFIG, import_name, source

LINTER = ROOT_CONFIG["tool"]["importlinter"]
MODULES = {import_name(f"tenferro-{name}") for name in PROJECTS}


@cache
def statements(path: Path) -> tuple[ast.AST, ...]:
    """The imports of a file, and its classes without their bodies, in the order of a walk."""
    found: list[ast.AST] = []
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ClassDef):
            node.body.clear()  # what is inside of it is walked all the same
        if isinstance(node, (ast.ClassDef, ast.Import, ast.ImportFrom)):
            found.append(node)
    return tuple(found)


def contract(name: str) -> dict[str, object]:
    (found,) = (contract for contract in LINTER["contracts"] if contract["id"] == name)
    return found


def requirements(project: dict[str, object]) -> list[Requirement]:
    return [Requirement(text) for text in project["dependencies"]]  # type: ignore[attr-defined]


# -- lists agree with the disk ------------------------------------------------------------------------------------


def test_import_linter_knows_exactly_the_packages_on_disk() -> None:
    layers = re.split(r"[ |]+", " | ".join(contract("layers")["layers"]))  # type: ignore[arg-type]
    assert sorted(LINTER["root_packages"]) == sorted(layers) == sorted(MODULES)
    assert sorted(contract("acyclic")["ancestors"]) == sorted(MODULES)  # type: ignore[call-overload]


def test_every_package_has_its_source_its_type_marker_and_the_licence() -> None:
    assert len(FOLDERS) == 10
    for folder in FOLDERS:
        assert PROJECTS[folder.name]["name"] == f"tenferro-{folder.name}"
        assert [path.name for path in (folder / "src").iterdir()] == [source(folder).name]
        assert (source(folder) / "__init__.py").is_file()
        assert (source(folder) / "py.typed").is_file()
        assert (folder / "LICENSE").read_text() == (ROOT / "LICENSE").read_text()


def test_every_package_is_a_workspace_source_and_a_mypy_path() -> None:
    assert set(ROOT_CONFIG["tool"]["uv"]["sources"]) == {f"tenferro-{name}" for name in PROJECTS}
    paths = {path.removeprefix("$MYPY_CONFIG_FILE_DIR/") for path in ROOT_CONFIG["tool"]["mypy"]["mypy_path"]}
    assert paths == {"tests/support", "tests/foreign", "tools", *(f"packages/{name}/src" for name in PROJECTS)}


def test_members_hold_no_tool_configuration_but_how_c_is_built() -> None:
    for folder in FOLDERS:
        tools = tomllib.loads((folder / "pyproject.toml").read_text()).get("tool", {})
        compiles = any(folder.rglob("*.c"))
        assert set(tools) == ({"hatch", "uv"} if compiles else set()), folder.name
        assert not compiles or set(tools["uv"]) == {"cache-keys"}


def test_no_package_marker_under_tests() -> None:
    """With one of them pytest may run one folder's tests twice and another's never; it does not look into assets."""
    assert "assets" in ROOT_CONFIG["tool"]["pytest"]["norecursedirs"]
    assert [path for path in ROOT.glob("tests/**/__init__.py") if "assets" not in path.parts] == []


SHARED_CLASS_NAMES = {  # name -> why it is defined more than once
    "Axis": "native loops: being merged into the copy plans",
    "Form": "matmul operand layouts, and cached call signatures of compiled functions",
    "Found": "native reductions, and cached calls of compiled functions",
    "Kind": "contraction element types, fused entries, argument kinds, plan actions",
    "Layout": "the C layout of Python objects, and the public layout of arrays",
    "Literal": "numbers in programs and in kernels",
    "Loop": "counted loops of generated code, and of copy plans",
    "Machine": "contraction modules, and the executor's devices",
    "Program": "programs of equations, and compiled kernels of the device model",
    "Recorded": "a recorded derivative, and a trace of a function",
    "Reduced": "the reduction of a kernel, planned and rendered",
    "Step": "steps of native kernels, of execution plans and of rendered programs",
    "_Backward": "the backward pass of `cond` and of `scan`",
    "_Planned": "planned reductions and planned regions",
    "_Planner": "planners of contractions and of executions",
}


def test_a_class_name_has_one_meaning() -> None:
    """A reader who finds a class by its name finds the right one; names still shared are listed with their owners."""
    homes: dict[str, set[Path]] = {}
    for path in ROOT.glob("packages/*/src/**/*.py"):
        for node in statements(path):
            if isinstance(node, ast.ClassDef):
                homes.setdefault(node.name, set()).add(path.relative_to(ROOT))
    shared = {name: sorted(map(str, paths)) for name, paths in homes.items() if len(paths) > 1}
    assert {name: paths for name, paths in shared.items() if name not in SHARED_CLASS_NAMES} == {}


# -- versions and dependencies ------------------------------------------------------------------------------------


def test_versions_move_together() -> None:
    assert {project["version"] for project in PROJECTS.values()} == {"0.1.0"}
    assert {project["requires-python"] for project in PROJECTS.values()} == {">=3.11"}
    released = re.findall(r"^## (.*)$", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)
    assert [version.split()[0] for version in released] == ["0.1.0"]


def test_siblings_are_pinned_to_the_minor_version() -> None:
    """uv ignores version specifiers between members, so only this test and a real install see them."""
    pins = [
        pin
        for project in PROJECTS.values()
        for pin in requirements(project)
        if pin.name.startswith("tenferro-")
    ]  # fmt: skip
    assert len(pins) >= 9
    assert {str(pin.specifier) for pin in pins} == {"<0.2,>=0.1"}


def test_siblings_are_those_of_the_architecture() -> None:
    siblings = {
        name: {pin.name for pin in requirements(project) if pin.name.startswith("tenferro-")}
        for name, project in PROJECTS.items()
    }
    family = {"tenferro-runtime", "tenferro-cpu"}
    assert siblings == {
        "tensor-core": set(),
        "tensor": {"tenferro-tensor-core"},
        "cpu": {"tenferro-tensor"},
        "gpu": {"tenferro-tensor"},
        "runtime": {"tenferro-tensor"},
        "einsum": family,
        "linalg": family,
        "fft": family,
        "ad": family,
        "xla": family,
    }
    assert [pin.name for pin in requirements(PROJECTS["tensor-core"])] == ["numpy"]


# -- entry points -------------------------------------------------------------------------------------------------


def test_entry_points_are_declared() -> None:
    declared = {
        (group, name): target
        for project in PROJECTS.values()
        for group, table in project.get("entry-points", {}).items()
        for name, target in table.items()
    }
    assert declared == {
        ("tenferro.backends", "cpu"): "tenferro_cpu:make_backend",
        ("tenferro.backends", "cuda"): "tenferro_gpu:make_cuda_backend",
        ("tenferro.backends", "rocm"): "tenferro_gpu:make_rocm_backend",
        ("tenferro.backends", "xla"): "tenferro_xla:make_backend",
        ("tenferro.compilers", "xla"): "tenferro_xla:make_compiler",
        ("tenferro.device_runtimes", "cuda"): "tenferro_gpu:register_cuda",
        ("tenferro.device_runtimes", "rocm"): "tenferro_gpu:register_rocm",
        ("tenferro.extensions", "einsum"): "tenferro_einsum._extension:register",
        ("tenferro.extensions", "linalg"): "tenferro_linalg._extension:register",
        ("tenferro.extensions", "fft"): "tenferro_fft._extension:register",
        ("tenferro.extensions", "random"): "tenferro_runtime.random._extension:register",
        ("tenferro.extensions", "special"): "tenferro_runtime.special._extension:register",
        ("tenferro.extensions", "xla"): "tenferro_xla.mesh._extension:register",
        ("tenferro.namespaces", "ad"): "tenferro_ad",
    }


@pytest.mark.parametrize(
    ("group", "name"),
    [
        (group, name)
        for project in PROJECTS.values()
        for group, t in project.get("entry-points", {}).items()
        for name in t
    ],
)
def test_entry_points_load(group: str, name: str) -> None:
    (entry,) = entry_points(group=group, name=name)
    found = entry.load()
    assert found.__name__ == entry.value if group == "tenferro.namespaces" else callable(found)


# -- the lock file ------------------------------------------------------------------------------------------------


def lock_complaints(text: str) -> list[str]:
    """What must not stand in a lock file that is meant for every machine."""
    lock = tomllib.loads(text)
    registries = {package["source"].get("registry") for package in lock["package"]} - {None}
    complaints = []
    if "file:" in text:
        complaints.append("a file: address")
    if len(registries) != 1:
        complaints.append(f"{len(registries)} registries")
    complaints += [
        f"private registry {url}" for url in registries if not re.fullmatch(r"https://[a-z.]+\.[a-z]+/simple", url)
    ]
    # The compiler of CUDA kernels is small, and stands alone; the extras of GPUs are chosen on purpose.
    complaints += [name for name in reached(lock["package"]) if re.match(r"torch$|nvidia-(?!cuda-nvrtc$)", name)]
    return complaints


def reached(packages: list[dict[str, Any]]) -> set[str]:
    """What all members, groups and extras bring, without the extras of GPUs."""
    waiting: list[tuple[str, str]] = []

    def follow(dependencies: list[dict[str, Any]]) -> None:
        waiting.extend((d["name"], extra) for d in dependencies for extra in ("", *d.get("extra", ())))

    for package in packages:
        if "registry" not in package["source"]:
            extras = {} if package["name"] == "tenferro-gpu" else package.get("optional-dependencies", {})
            for found in (*extras.values(), *package.get("dev-dependencies", {}).values()):
                follow(found)
            waiting.append((package["name"], ""))
    seen: set[tuple[str, str]] = set()
    while waiting:
        name, extra = key = waiting.pop()
        if key not in seen:
            seen.add(key)
            for package in packages:
                if package["name"] == name:
                    more = package.get("optional-dependencies", {}).get(extra, []) if extra else []
                    follow(more or ([] if extra else package.get("dependencies", [])))
    return {name for name, _ in seen}


def test_lock_file_fits_every_machine() -> None:
    assert lock_complaints((ROOT / "uv.lock").read_text()) == []
    assert "index" not in ROOT_CONFIG["tool"]["uv"]


@pytest.mark.parametrize(
    ("address", "complaint"),
    [
        ("file:" + "//srv/simple", "a file: address"),
        ("https://me:secret@index.example.org/simple", "private registry https://me:secret@index.example.org/simple"),
    ],
)
def test_lock_file_of_one_machine_would_be_seen(address: str, complaint: str) -> None:
    text = re.sub(r'registry = "[^"]+"', f'registry = "{address}"', (ROOT / "uv.lock").read_text())
    assert complaint in lock_complaints(text)


def test_large_packages_that_everybody_would_get_are_seen() -> None:
    large = {"name": "nvidia-cublas", "source": {"registry": "https://pypi.org/simple"}}
    toolkit = {**large, "name": "cuda-toolkit", "optional-dependencies": {"cublas": [{"name": "nvidia-cublas"}]}}
    wanted = [{"name": "cuda-toolkit", "extra": ["cublas"]}]
    cases: tuple[tuple[str, dict[str, Any], bool], ...] = (
        ("tenferro-gpu", {"optional-dependencies": {"cuda13": wanted}}, False),
        ("tenferro-gpu", {"dependencies": wanted}, True),
        ("tenferro-ad", {"optional-dependencies": {"all": wanted}}, True),
        ("tenferro-ad", {"dev-dependencies": {"test": wanted}}, True),
    )
    for member, where, seen in cases:
        packages: list[dict[str, Any]] = [{"name": member, "source": {"editable": "packages"}, **where}, toolkit, large]
        assert ("nvidia-cublas" in reached(packages)) == seen


def test_lock_file_is_up_to_date() -> None:
    """Compared by hand: `uv lock --check` would fail on every machine whose package index is a mirror."""
    locked = {p["name"]: p for p in tomllib.loads((ROOT / "uv.lock").read_text())["package"]}
    for project in PROJECTS.values():
        package = locked[project["name"]]
        optional = [Requirement(text) for texts in project.get("optional-dependencies", {}).values() for text in texts]
        wanted = {(r.name, str(r.specifier)) for r in requirements(project) + optional}
        siblings = {r.name for r in requirements(project) + optional if r.name.startswith("tenferro-")}
        found = {(r["name"], str(SpecifierSet(r.get("specifier", "")))) for r in package["metadata"]["requires-dist"]}
        assert package["version"] == project["version"]
        assert {r for r in found if r[0] not in siblings} == {r for r in wanted if r[0] not in siblings}
        assert siblings <= {name for name, _ in found}


# -- import contracts ---------------------------------------------------------------------------------------------


def lint_imports(source_root: Path | None = None, only: str = "") -> subprocess.CompletedProcess[str]:
    """Check the contracts, or one of them, on the installed packages, or on the copy under `source_root`."""
    code = f"import sys; sys.path.insert(0, {str(source_root)!r})\n" if source_root else "import sys\n"
    code += f"sys.path.append({str(ROOT)!r})\n"  # where the contracts of our own are
    code += "from importlinter.cli import lint_imports\n"
    code += f"limits = {(only,) if only else ()}\n"
    code += "sys.exit(lint_imports(config_filename=sys.argv[1], limit_to_contracts=limits, no_cache=True))"
    return subprocess.run(
        [sys.executable, "-c", code, str(ROOT / "pyproject.toml")],
        cwd=source_root or ROOT,
        capture_output=True,
        text=True,
    )


def test_contracts_hold() -> None:
    result = lint_imports()
    assert result.returncode == 0, result.stdout + result.stderr
    assert f"{len(LINTER['contracts'])} kept, 0 broken" in result.stdout


@pytest.fixture(scope="module")
def copied_sources(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("sources")
    for folder in FOLDERS:
        shutil.copytree(source(folder), root / source(folder).name, ignore=shutil.ignore_patterns("__pycache__"))
    return root


VIOLATIONS = {
    "layers": {"tenferro_tensor/_bad.py": "import tenferro_runtime"},
    "backends": {"tenferro_runtime/_bad.py": "def f():\n    import tenferro_cpu"},
    "guests": {"tenferro_ad/_bad.py": "import tenferro_einsum"},
    "surfaces": {"tenferro_fft/_bad.py": "from tenferro_tensor._spec import Spec"},
    "declared": {"tenferro_einsum/_bad.py": "import networkx"},
    "acyclic": {"tenferro_fft/_bad.py": "from . import _worse", "tenferro_fft/_worse.py": "from . import _bad"},
}


def test_every_contract_has_a_violation_to_catch() -> None:
    assert set(VIOLATIONS) == {contract["id"] for contract in LINTER["contracts"]}


@pytest.mark.parametrize("name", VIOLATIONS)
def test_contracts_catch_what_they_forbid(name: str, copied_sources: Path) -> None:
    for path, text in VIOLATIONS[name].items():
        (copied_sources / path).write_text(text + "\n")
    try:
        result = lint_imports(copied_sources, name)
    finally:
        for path in VIOLATIONS[name]:
            (copied_sources / path).unlink()
    assert result.returncode == 1, result.stdout + result.stderr
    assert f"{contract(name)['name']} BROKEN" in result.stdout


@cache
def crossings() -> set[tuple[str, str, str]]:
    """Every import of a name across distributions: importing module, module, name."""
    found = set()
    for folder in FOLDERS:
        own = source(folder).name
        for path in source(folder).rglob("*.py"):
            for node in statements(path):
                if isinstance(node, ast.ImportFrom) and (node.module or "").partition(".")[0] in MODULES - {own}:
                    importer = ".".join(path.relative_to(source(folder).parent).with_suffix("").parts)
                    found |= {(importer, node.module or "", a.name) for a in node.names if a.name != "*"}
    return found


@cache
def is_documented(module: str, name: str) -> bool:
    """Whether an object says what it is, or the text below its assignment does."""
    inside = import_module(module)
    found = getattr(inside, name)
    if isinstance(found, np.dtype) or getattr(found, "__doc__", None) not in (None, type(found).__doc__):
        return True
    path = Path(inside.__file__ or "")
    if path.suffix != ".py":  # an extension in C, whose twin in Python is asked instead
        return False
    for node in statements(path):
        if not isinstance(node, ast.ImportFrom):
            continue
        for alias in node.names:
            if name == (alias.asname or alias.name):
                origin = resolve_name("." * node.level + (node.module or ""), inside.__package__)
                if is_documented(origin, alias.name):
                    return True
    for node, below in pairwise(ast.parse(path.read_text()).body):
        targets = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", None)]
        if name in {getattr(target, "id", "") for target in targets}:
            return isinstance(below, ast.Expr) and isinstance(below.value, ast.Constant)
    return False


def test_what_crosses_distributions_is_listed_and_documented() -> None:
    """The contract forbids private modules; this, private names of public ones."""
    for importer, module, name in sorted(crossings()):
        if isinstance(getattr(import_module(module), name), ModuleType):
            continue
        where = f"{importer} imports {name} of {module}, which"
        listed = getattr(import_module(module), "__all__", vars(import_module(module)))
        assert name in listed, f"{where} does not list it"
        assert not name.startswith("_"), f"{where} is private"
        assert is_documented(module, name), f"{where} does not say what it is"


def test_names_without_documentation_would_be_seen() -> None:
    assert is_documented("tenferro_tensor_core.forks", "Lock")
    assert is_documented("tenferro_tensor_core", "DimLike")
    assert not is_documented("tenferro_tensor_core.forks", "_alive")
    assert not is_documented("tenferro_tensor_core._dims", "_dims")


def test_what_distributions_import_of_each_other_is_in_the_reference() -> None:
    pages = "".join(path.read_text() for path in (ROOT / "docs" / "reference").glob("*.md"))
    documented = set(re.findall(r"^::: (\S+)", pages, re.MULTILINE)) | set(reference_groups.MODULES)
    documented.add("tenferro_tensor.functions")  # tenferro_runtime re-exports all of them
    for module in sorted({module for _, module, _ in crossings()}):
        inside = [name for name in documented if name.startswith(f"{module}.")]
        package = {module.rpartition(".")[0]} - MODULES
        assert {module, *package} & documented or inside, f"no page of docs/reference has ::: {module}"


# -- addresses and metadata ---------------------------------------------------------------------------------------


def test_one_file_holds_the_addresses() -> None:
    """Files that repeat them say what it says, and no other text has an address of this project."""
    known = addresses.addresses()
    written = addresses.written(known)
    assert {path.name: text for path, text in written.items() if path.read_text() != text} == {}
    found = subprocess.run(
        ["git", "grep", "-lIE", r"https?://[^ )>\"']*tenferro|[a-z.]+@[a-z.-]*tenferro"],
        cwd=ROOT, capture_output=True, text=True,
    ).stdout.split()  # fmt: skip
    origins = {f"data/{name}/SOURCE.md" for name in ("einsum", "permutations")}  # data that others published
    owners = {str(path.relative_to(ROOT)) for path in written} | {"addresses.toml"} | origins
    assert set(found) - owners - {"tests/test_workspace.py"} == set()


def test_addresses_reach_what_repeats_them() -> None:
    known = {name: f"https://tenferro.example/{name}" for name in addresses.addresses()}
    for path, text in addresses.written(known).items():
        assert "https://tenferro.example/" in text, path
        if path.name == "pyproject.toml":
            project = tomllib.loads(text)["project"]
            assert project["urls"] == {title: known[name] for name, title in addresses.TITLES.items()}
            assert {**project, "urls": None} == {**PROJECTS[path.parent.name], "urls": None}
            empty = addresses.distribution(text, dict.fromkeys(known, ""))
            assert empty == addresses.distribution(path.read_text(), dict.fromkeys(known, ""))


def test_every_distribution_has_a_page_for_an_index() -> None:
    for name, project in PROJECTS.items():
        page = (ROOT / "packages" / name / project["readme"]).read_text()
        assert page.startswith(f"# tenferro-{name}\n")
        assert len(re.findall(r"^```", page, re.MULTILINE)) == 4
        assert f"pip install tenferro-{name}" in page.replace('"', "").replace("[", " ")
        assert not re.search(r"\]\((?!https:)", page)  # an index has no other files


def test_citation_names_this_version() -> None:
    (version,) = {project["version"] for project in PROJECTS.values()}
    assert f"\nversion: {version}\n" in (ROOT / "CITATION.cff").read_text()


# -- commands and documents ---------------------------------------------------------------------------------------


def test_layout_page_and_readme_name_every_package() -> None:
    layout, readme = (ROOT / "docs" / "layout.md").read_text(), (ROOT / "README.md").read_text()
    for name in PROJECTS:
        assert f"`packages/{name}`" in layout
        assert f"`tenferro-{name}`" in readme


@pytest.mark.parametrize(
    ("arguments", "status", "text"),
    [
        (["--help"], 0, "lint, and all tests"),
        ([], 2, "usage: python3 dev <command> [options]"),
        (["tset"], 2, "no command 'tset'; choose from test, quick, demo, docs"),
    ],
)
def test_dev_explains_itself(arguments: list[str], status: int, text: str) -> None:
    result = subprocess.run([sys.executable, str(ROOT / "dev"), *arguments], capture_output=True, text=True)
    assert result.returncode == status
    assert text in result.stdout + result.stderr


@pytest.fixture
def dev(monkeypatch: pytest.MonkeyPatch) -> Any:
    """The script `dev` as a module."""
    from importlib.machinery import SourceFileLoader
    from importlib.util import module_from_spec, spec_from_loader

    loader = SourceFileLoader("dev_under_test", str(ROOT / "dev"))
    spec = spec_from_loader(loader.name, loader)
    assert spec is not None
    module = module_from_spec(spec)
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    loader.exec_module(module)
    return module


@pytest.mark.parametrize(("outcomes", "status"), [((0, 0), 0), ((0, 3), 1), ((1, 0), 1)])
def test_dev_fails_when_any_step_fails(
    outcomes: tuple[int, ...], status: int, dev: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(dev, "installed", lambda program: sys.executable)
    assert dev.steps(*(("python", "-c", f"raise SystemExit({code})") for code in outcomes)) == status


@pytest.mark.parametrize(("outcomes", "status"), [((0, 0), 0), ((0, 3), 1), ((1, 0), 1)])
def test_steps_that_run_beside_others_fail_and_print_as_well(
    outcomes: tuple[int, int], status: int, dev: Any, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(dev, "installed", lambda program: sys.executable)
    first, other = (("python", "-c", f"print('step', {n}); raise SystemExit({n})") for n in outcomes)
    assert dev.steps(first, beside=(other,)) == status
    shown = capfd.readouterr().out
    assert all(shown.count(f"\nstep {n}\n") >= 1 for n in outcomes)
    assert shown.count("FAIL") == sum(map(bool, outcomes)) and shown.count("ok  ") == outcomes.count(0)


def test_a_thorough_run_is_an_option_of_the_tests(dev: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    ran: list[Any] = []
    monkeypatch.setattr(dev, "sync", lambda: None)
    monkeypatch.setattr(dev, "steps", lambda *commands, beside: ran.append((commands, beside)) or 0)
    monkeypatch.setattr(dev, "ENVIRONMENT", {})
    assert dev.test("tests/fft") == 0 and "TENFERRO_THOROUGH" not in dev.ENVIRONMENT
    assert dev.test("--thorough", "tests/fft") == 0 and dev.ENVIRONMENT["TENFERRO_THOROUGH"] == "1"
    assert ran[0] == ran[1] and ran[0][1] == dev.LINT and ran[0][0][0][-1] == "tests/fft"


def test_checking_a_gpu_fails_where_there_is_none(
    dev: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """Neither step passes without having run anything; both say what is missing."""
    (tmp_path / "cupy.py").write_text("raise ImportError('there is no CuPy')")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    monkeypatch.setattr(dev, "ENVIRONMENT", {**os.environ})
    monkeypatch.setattr(dev, "sync", lambda *options: None)
    assert dev.gpu("cuda13", "-n", "0") == 1
    shown = capfd.readouterr()
    assert "no test marked `gpu` can run: a cuda device was requested" in shown.out + shown.err
    assert "nothing is measured: a cuda device was requested" in shown.out
    assert shown.out.count("FAIL") == 2
    assert dev.gpu("cuda13", "--smoke") == 1
    assert "0 of 12 checks passed" in capfd.readouterr().out
