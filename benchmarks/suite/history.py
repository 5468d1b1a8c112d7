"""Instruction counts of earlier commits, by the rows of today that exist there."""

from __future__ import annotations

import importlib.metadata
import os
import subprocess
import sys
from pathlib import Path

from suite.counting import BENCHMARKS
from suite.records import ROOT


def record_of(commit: str, *texts: str) -> int:
    """Build a commit in a working tree below build/history and record the counts of rows whose key has a text."""
    folder = ROOT / "build" / "history" / commit
    if not folder.exists():
        subprocess.run(["git", "worktree", "add", "--detach", str(folder), commit], cwd=ROOT, check=True)
    base = Path(sys.base_prefix) / "bin" / "python3"
    environment = os.environ | {"PYTHONPATH": ""}
    subprocess.run([str(base), "dev", "run", "-c", "pass"], cwd=folder, env=environment, check=True)
    python = str(folder / ".venv" / "bin" / "python")
    plugin = f"pytest-codspeed=={importlib.metadata.version('pytest-codspeed')}"
    uv = str(ROOT / ".venv-tools" / "bin" / "uv")
    subprocess.run([uv, "pip", "install", "--quiet", "--python", python, "--no-deps", plugin], check=True)
    record = ["-m", "suite", "record", "--counts", "--lenient", "--checkout", str(folder), *texts]
    environment = os.environ | {"PYTHONPATH": str(BENCHMARKS)}
    environment.pop("VIRTUAL_ENV", None)
    return subprocess.run([python, *record], cwd=folder, env=environment).returncode
