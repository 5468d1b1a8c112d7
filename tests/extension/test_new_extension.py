"""`python3 -m tenferro_runtime.extension new` writes a package whose tests pass, and refuses bad names."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from uv import find_uv_bin

from tenferro_runtime.extension._new_extension import new
from tenferro_tensor_core import ArgumentError

COMMAND = ("-W", "error", "-m", "tenferro_runtime.extension", "new")
SIGN = ("-x * out", "x * out")
"""A wrong sign in the derivative rule."""


def python(*arguments: str, site: Path | None = None) -> subprocess.CompletedProcess[str]:
    environment = os.environ | ({"PYTHONPATH": str(site)} if site else {})
    return subprocess.run([sys.executable, *arguments], env=environment, capture_output=True, text=True)


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("written")
    done = python(*COMMAND, "wave-ops", "--into", str(folder))
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith(f"wrote {folder / 'wave-ops'}; next: ")
    return folder / "wave-ops"


@pytest.fixture(scope="module")
def site(written: Path) -> Path:
    """A folder with the package as a wheel leaves it."""
    target = written.parent / "site"
    command = [find_uv_bin(), "pip", "install", "--quiet", "--no-deps", "--target", str(target), str(written)]
    done = subprocess.run([*command, "--python", sys.executable], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return target


def test_its_tests_and_its_readme_run(written: Path, site: Path) -> None:
    tests = python("-m", "pytest", "-q", "--rootdir", str(written), str(written / "tests"), site=site)
    assert tests.returncode == 0, tests.stdout
    assert "2 passed" in tests.stdout
    readme = (written / "README.md").read_text()
    (example,) = re.findall(r"```python\n(.*?)```", readme, re.DOTALL)
    assert python("-W", "error", "-c", example, site=site).returncode == 0


def test_a_mistake_in_it_is_found(written: Path, site: Path) -> None:
    module = site / "wave_ops" / "__init__.py"
    text = module.read_text()
    try:
        module.write_text(text.replace(*SIGN))
        tests = python("-m", "pytest", "-q", "--rootdir", str(written), str(written / "tests"), site=site)
    finally:
        module.write_text(text)
    assert tests.returncode == 1
    assert "CheckError" in tests.stdout


def test_an_element_wise_operation_takes_25_lines_of_the_author(written: Path) -> None:
    lines = (written / "src" / "wave_ops" / "__init__.py").read_text().splitlines()
    assert len([line for line in lines if line.strip()]) <= 25


def test_it_is_formatted(written: Path) -> None:
    for command in (("check",), ("format", "--check")):
        done = subprocess.run([sys.executable, "-m", "ruff", *command, "--isolated"], cwd=written, capture_output=True)
        assert done.returncode == 0, done.stdout


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("Wave-Ops", "is no name for an extension"),
        ("wave--ops", "is no name for an extension"),
        ("../wave", "is no name for an extension"),
        ("class", "no keyword of Python"),
        ("tenferro-waves", "not tenferro's own prefix"),
        ("numpy", "is taken: a module numpy"),
        ("einsum", "is taken: a module einsum or an extension einsum"),
        ("wave-ops", "exists already; choose another name or another folder"),
    ],
)
def test_a_bad_or_taken_name_is_refused(name: str, reason: str, written: Path) -> None:
    before = sorted(written.parent.rglob("*"))
    with pytest.raises(ArgumentError, match=reason):
        new(name, written.parent)
    assert sorted(written.parent.rglob("*")) == before


def test_a_name_that_is_installed_is_taken(site: Path, tmp_path: Path) -> None:
    done = python(*COMMAND, "wave-ops", "--into", str(tmp_path), site=site)
    assert done.returncode == 2
    assert "is taken: a module wave_ops or an extension wave-ops is installed" in done.stderr
    assert not list(tmp_path.iterdir())
