"""The built wheels, each in an empty environment: what a user gets who installs only what is needed."""

import email
import importlib.metadata
import os
import re
import subprocess
import sys
import sysconfig
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest
from uv import find_uv_bin

from workspace import DISTRIBUTIONS, PROJECTS, ROOT, import_name

pytestmark = [pytest.mark.packaging, pytest.mark.slow]

IMPORT_EVERYTHING = """
import importlib, pkgutil, sys
package = importlib.import_module(sys.argv[1])
for module in pkgutil.walk_packages(package.__path__, package.__name__ + "."):
    if module.name.rpartition(".")[2] != "__main__" and ".adapters." not in module.name:  # these are for a library
        importlib.import_module(module.name)
"""

DIFFERENTIABLE_EINSUM = """
import numpy as np
import tenferro_runtime as tr
from tenferro_ad import grad
from tenferro_einsum import einsum

a, b = np.arange(6.0).reshape(2, 3), np.arange(12.0).reshape(3, 4)
slope = grad(lambda x: einsum("ij,jk->", x, tr.asarray(b)))(tr.asarray(a))
np.testing.assert_allclose(np.asarray(slope), np.broadcast_to(b.sum(axis=1), (2, 3)))
"""

ONE_INSTALL = {
    "tenferro-ad": "from tenferro_ad import grad; assert float(grad(lambda x: x * x * x)(tr.asarray(2.0))) == 12.0",
    "tenferro-einsum": "from tenferro_einsum import einsum; assert float(einsum('i->', tr.asarray([1.0, 2.0]))) == 3",
    "tenferro-linalg": "from tenferro_linalg import det; assert abs(det(tr.asarray([[2.0, 0], [5, 4]])) - 8) < 1e-9",
    "tenferro-fft": "from tenferro_fft import fft; assert complex(tr.sum(fft(tr.asarray([3.0, 4.0])))) == 6.0",
    "tenferro-xla": "assert float(tr.sum(tr.compile(lambda x: x + 1, backend='xla')(tr.asarray([1.0, 2.0])))) == 5.0",
}
"""One install works: every family and tenferro-ad bring the CPU backend along."""

BACKEND_ERROR = """
import sys
from tenferro_tensor import get_backend
from tenferro_tensor_core import BackendUnavailableError

name, advice = sys.argv[1:]
try:
    get_backend(name)
except BackendUnavailableError as error:
    assert advice in str(error), error
else:
    raise AssertionError(f"a {name} backend was found")
"""


def uv(*arguments: str | Path, **extra: str) -> str:
    """Run uv away from this workspace and from the environment of the tests; its output, or an assertion with it."""
    environment = {name: value for name, value in os.environ.items() if name not in ("VIRTUAL_ENV", "PYTHONPATH")}
    environment |= {"UV_PYTHON": sys.executable, "UV_PYTHON_DOWNLOADS": "never", "UV_NO_PROGRESS": "1", **extra}
    result = subprocess.run([find_uv_bin(), *arguments], env=environment, capture_output=True, text=True)
    assert result.returncode == 0, f"uv {' '.join(map(str, arguments))}\n{result.stderr}"
    return result.stdout


class Environment:
    """An empty environment that knows the built wheels and the package index.

    All of a process lie in one place after each other, so that what they have in common has its bytecode already.
    """

    def __init__(self, folder: Path, wheels: Path) -> None:
        self.path, self.bytecode, self.wheels = folder / "environment", folder / "bytecode", wheels
        self.python = self.path / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
        uv("venv", "--quiet", "--no-project", "--clear", self.path)

    def install(self, *requirements: str) -> None:
        uv("pip", "install", "--quiet", "--python", self.python, "--find-links", self.wheels, *requirements)
        uv("pip", "check", "--python", self.python)

    def installed(self) -> set[str]:
        listing = uv("pip", "list", "--format", "freeze", "--python", self.python)
        return {line.partition("==")[0] for line in listing.split()}

    def run(self, code: str, *arguments: str) -> subprocess.CompletedProcess[str]:
        command = [
            str(self.python),
            "-I",
            "-W",
            "error",
            "-X",
            f"pycache_prefix={self.bytecode}",
            "-c",
            code,
            *arguments,
        ]
        return subprocess.run(command, cwd=self.path, capture_output=True, text=True)

    def check(self, code: str, *arguments: str) -> None:
        result = self.run(code, *arguments)
        assert result.returncode == 0, result.stderr


@pytest.fixture(scope="session")
def wheels(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of all wheels, which the first of several workers builds."""
    base = tmp_path_factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:
        base = base.parent
    folder, built = base / "wheels", base / "wheels-are-built"
    with open(base / "wheels.lock", "w") as lock:
        if os.name == "posix":
            import fcntl

            fcntl.flock(lock, fcntl.LOCK_EX)
        if not built.exists():
            # With NumPy's version here, the compiled objects of this workspace fit.
            constraints = base / "constraints.txt"
            constraints.write_text(f"numpy=={importlib.metadata.version('numpy')}\n")
            # Without --wheel the wheels are built from the source archives, so that those are shown to be whole.
            options = ("--quiet", "--all-packages", "--build-constraints", constraints, "--out-dir", folder)
            uv("build", *options, ROOT)
            built.touch()
    return folder


@pytest.fixture
def environment(tmp_path_factory: pytest.TempPathFactory, wheels: Path) -> Callable[[], Environment]:
    return lambda: Environment(tmp_path_factory.getbasetemp(), wheels)


def siblings(distribution: str) -> set[str]:
    """The tenferro distributions that an installation of this one brings."""
    names = re.findall(r"tenferro-[a-z-]+", " ".join(PROJECTS[distribution.removeprefix("tenferro-")]["dependencies"]))
    return {distribution}.union(*map(siblings, names))


COMPILED = {"tenferro-cpu": "tenferro_cpu/native/_compiled", "tenferro-tensor": "tenferro_tensor/_accelerated"}
"""Distributions with an extension module, where there are a compiler and Python's headers."""


def compiles() -> bool:
    return os.name == "posix" and Path(sysconfig.get_path("include"), "Python.h").exists()


def wheel_of(distribution: str, wheels: Path) -> Path:
    (found,) = wheels.glob(f"{import_name(distribution)}-0.1.0-*.whl")
    return found


def test_every_package_becomes_one_typed_wheel(wheels: Path) -> None:
    assert len(list(wheels.glob("*.whl"))) == len(DISTRIBUTIONS)
    for name in DISTRIBUTIONS:
        pure = wheel_of(name, wheels).name.endswith("-py3-none-any.whl")
        assert pure is not (name in COMPILED and compiles())


@pytest.mark.parametrize("distribution", COMPILED)
def test_a_wheel_can_be_built_without_a_compiler(distribution: str, tmp_path: Path) -> None:
    source = ROOT / "packages" / distribution.removeprefix("tenferro-")
    uv("build", "--quiet", "--wheel", "--out-dir", tmp_path, source, TENFERRO_PURE="1")
    assert wheel_of(distribution, tmp_path).name.endswith("-py3-none-any.whl")


@pytest.mark.parametrize("distribution", DISTRIBUTIONS)
def test_a_wheel_holds_its_modules_and_nothing_else(distribution: str, wheels: Path) -> None:
    package = import_name(distribution)
    source = ROOT / "packages" / distribution.removeprefix("tenferro-") / "src"
    code = [path for path in source.rglob("*") if path.suffix in {".py", ".pyi", ".c", ".h", ".cuh"}]
    modules = {path.relative_to(source).as_posix() for path in code}
    if distribution in COMPILED and compiles():
        modules.add(COMPILED[distribution] + sysconfig.get_config_var("EXT_SUFFIX"))
    with zipfile.ZipFile(wheel_of(distribution, wheels)) as wheel:
        files = {name for name in wheel.namelist() if not name.endswith("/")}
        about = {name for name in files if name.startswith(f"{package}-0.1.0.dist-info/")}
        fields = email.message_from_bytes(wheel.read(f"{package}-0.1.0.dist-info/METADATA"))
    assert files - about == modules | {f"{package}/py.typed"}
    assert f"{package}-0.1.0.dist-info/licenses/LICENSE" in about
    assert fields["Name"] == distribution and fields["License-Expression"] == "MIT" and fields["Summary"]
    assert fields["Description-Content-Type"] == "text/markdown" and f"# {distribution}" in fields.get_payload()
    assert fields["Requires-Python"] == ">=3.11" and "Typing :: Typed" in fields.get_all("Classifier", [])


@pytest.mark.parametrize("distribution", DISTRIBUTIONS)
def test_installs_and_works_alone(distribution: str, environment: Callable[[], Environment]) -> None:
    """Its modules are imported and used, and where the CPU backend or CuPy is absent, errors say what to install."""
    alone = environment()
    alone.install(f"{distribution}==0.1.0")
    alone.check(IMPORT_EVERYTHING, import_name(distribution))
    installed = alone.installed()
    assert {name for name in installed if name.startswith("tenferro-")} == siblings(distribution)
    assert "cupy" not in " ".join(installed)
    if distribution == "tenferro-tensor-core":
        assert installed == {"tenferro-tensor-core", "numpy"}
    if distribution in ONE_INSTALL:
        alone.check(f"import tenferro_runtime as tr; {ONE_INSTALL[distribution]}")
    if distribution in ("tenferro-gpu", "tenferro-tensor"):  # with the backend, and without it
        alone.check(BACKEND_ERROR, "cuda", "tenferro-gpu[cuda1")
        alone.check(BACKEND_ERROR, "rocm", "tenferro-gpu[rocm]")
        alone.check(BACKEND_ERROR, "cpu", "pip install tenferro-cpu")


def test_one_name_brings_every_family(environment: Callable[[], Environment]) -> None:
    user = environment()
    user.install("tenferro-ad[all]", "tenferro-cpu[jit]")
    assert {"tenferro-einsum", "tenferro-linalg", "tenferro-fft", "llvmlite", "platformdirs"} <= user.installed()
    user.check(DIFFERENTIABLE_EINSUM)


def test_differentiable_einsum_needs_two_names(environment: Callable[[], Environment]) -> None:
    user = environment()
    user.install("tenferro-ad", "tenferro-einsum")
    user.check(DIFFERENTIABLE_EINSUM)
    assert not user.installed() & {"tenferro-linalg", "tenferro-fft", "tenferro-xla", "tenferro-gpu", "jax"}


def test_an_undeclared_import_would_be_seen(tmp_path: Path, environment: Callable[[], Environment]) -> None:
    project, package = tmp_path / "project", tmp_path / "project" / "src" / "careless"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text("import numpy\n")
    (package / "_late.py").write_text("import scipy.linalg\n")
    (project / "pyproject.toml").write_text(
        '[build-system]\nrequires = ["uv_build>=0.9,<1"]\nbuild-backend = "uv_build"\n\n'
        '[project]\nname = "careless"\nversion = "1.0"\nrequires-python = ">=3.11"\ndependencies = ["numpy"]\n'
    )
    uv("build", "--quiet", "--wheel", "--out-dir", tmp_path / "built", project)
    careless = environment()
    careless.install(str(tmp_path / "built" / "careless-1.0-py3-none-any.whl"))
    result = careless.run(IMPORT_EVERYTHING, "careless")
    assert result.returncode == 1
    assert "No module named 'scipy'" in result.stderr
