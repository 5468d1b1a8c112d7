"""The workspace on disk, the reference of the tests of packages and imports."""

import tomllib
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
ROOT_CONFIG: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text())
FOLDERS = tuple(sorted(path.parent for path in ROOT.glob("packages/*/pyproject.toml")))
PROJECTS: dict[str, dict[str, Any]] = {
    folder.name: tomllib.loads((folder / "pyproject.toml").read_text())["project"] for folder in FOLDERS
}
DISTRIBUTIONS = tuple(f"tenferro-{name}" for name in PROJECTS)


def import_name(distribution: str) -> str:
    return distribution.replace("-", "_")


def source(folder: Path) -> Path:
    return folder / "src" / import_name(f"tenferro-{folder.name}")
