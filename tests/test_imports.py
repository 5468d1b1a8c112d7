"""Importing a package is cheap: no heavy third party is touched and no entry point is scanned."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from workspace import DISTRIBUTIONS, import_name

# A finder sees every attempt, also for what is not installed and for what a `try` would swallow.
WATCH = """
import importlib.metadata, sys

HEAVY = {"scipy", "jax", "jaxlib", "cupy", "cupyx", "llvmlite", "opt_einsum", "torch"}
seen = set()

class Watch:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in HEAVY:
            seen.add(name.partition(".")[0])

def scan(*args, **kwargs):
    seen.add("entry_points")
    return original(*args, **kwargs)

import numpy
sys.meta_path.insert(0, Watch())
original, importlib.metadata.entry_points = importlib.metadata.entry_points, scan
__import__(sys.argv[1])
print(" ".join(sorted(seen)))
"""


def touched_by(module: str, path: Path | None = None) -> set[str]:
    environment = os.environ | ({"PYTHONPATH": str(path)} if path else {})
    command = [sys.executable, "-W", "error", "-c", WATCH, module]
    result = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert result.returncode == 0, result.stderr
    return set(result.stdout.split())


@pytest.mark.parametrize("module", [import_name(distribution) for distribution in DISTRIBUTIONS])
def test_import_touches_nothing_heavy(module: str) -> None:
    assert touched_by(module) == set()


@pytest.mark.parametrize(
    ("text", "seen"),
    [
        ("import scipy", "scipy"),
        ("try:\n    import cupy\nexcept ImportError:\n    pass", "cupy"),
        ("import importlib.util\nimportlib.util.find_spec('jax')", "jax"),
        ("from importlib.metadata import entry_points\nentry_points(group='g')", "entry_points"),
        ("import importlib.metadata as m\nm.entry_points(group='g')", "entry_points"),
    ],
)
def test_a_heavy_import_would_be_seen(text: str, seen: str, tmp_path: Path) -> None:
    (tmp_path / "heavy.py").write_text(text)
    assert seen in touched_by("heavy", tmp_path)


@pytest.mark.parametrize("backend", ["tenferro_cpu", "tenferro_gpu"])
def test_the_array_namespace_does_not_load_a_backend(backend: str) -> None:
    code = f"import sys, tenferro_runtime; print({backend!r} in sys.modules)"
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert result.stdout.strip() == "False", result.stderr
