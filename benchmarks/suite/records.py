"""Results of runs, kept as files in benchmarks/results: one for each state of the packages that was measured."""

from __future__ import annotations

import importlib.metadata
import json
import os
import platform
import subprocess
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

RESULTS = Path(__file__).resolve().parents[1] / "results"
ROOT = RESULTS.parents[1]
LIBRARIES = ("numpy", "scipy", "llvmlite", "opt-einsum", "jax", "torch", "autograd")


@dataclass
class Record:
    """One run.

    Attributes:
        commit: the last commit that changed the packages, shortened.
        date: the time of that commit, in UTC.
        versions: of Python, the libraries, valgrind.
        machine: processor and number of cores, where times were measured.
        note: what a reader of the times should know.
        rows: by key, `instructions`, `bytes` and `us` by library; a row has those that were measured.
    """

    commit: str
    date: str
    versions: dict[str, str]
    machine: str = ""
    note: str = ""
    rows: dict[str, dict[str, Any]] = field(default_factory=dict)

    @property
    def path(self) -> Path:
        return RESULTS / f"{self.date[:10]}-{self.date[11:13]}{self.date[14:16]}-{self.commit}.json"

    def save(self) -> None:
        """Write the file, a row on each line."""
        head = {name: value for name, value in vars(self).items() if name != "rows"}
        lines = [f"  {json.dumps(key)}: {json.dumps(value)}" for key, value in self.rows.items()]
        text = json.dumps(head, indent=1)[:-2]
        RESULTS.mkdir(exist_ok=True)
        self.path.write_text(text + ',\n "rows": {\n' + ",\n".join(lines) + "\n }\n}\n")


def records() -> list[Record]:
    """All records, oldest first."""
    return [Record(**json.loads(path.read_text())) for path in sorted(RESULTS.glob("*.json"))]


def current(root: Path = ROOT) -> Record:
    """The record of the packages as they are checked out: an existing one, or a new one."""
    changed = subprocess.run(
        ["git", "log", "-1", "--abbrev=8", "--date=format-local:%Y-%m-%dT%H:%M", "--format=%h %cd", "--", "packages"],
        cwd=root, env=os.environ | {"TZ": "UTC"}, capture_output=True, text=True, check=True,
    ).stdout.split()  # fmt: skip
    commit, date = changed
    known = [r for r in records() if r.commit == commit]
    return known[0] if known else Record(commit, date, versions())


def versions() -> dict[str, str]:
    """Versions of what instruction counts and times depend on."""
    found = {"python": platform.python_version()}
    for name in LIBRARIES:
        try:
            found[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            continue
    try:
        said = subprocess.run(["valgrind", "--version"], capture_output=True, text=True, check=True).stdout
        found["valgrind"] = said.strip().removeprefix("valgrind-")
    except FileNotFoundError:
        pass
    return found


def machine() -> str:
    """The processor in general terms, and its cores."""
    model = platform.processor() or platform.machine()
    information = Path("/proc/cpuinfo")
    if information.exists():
        names = [
            line.partition(":")[2].strip() for line in information.read_text().splitlines() if "model name" in line
        ]
        model = names[0] if names else model
    return f"{model}, {os.cpu_count()} cores, {platform.system()}"
