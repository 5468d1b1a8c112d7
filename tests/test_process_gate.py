"""A run that starts more processes than the suite may start fails, also where workers start them."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from workspace import ROOT

CASES = """
import os, subprocess, sys

def test_three():
    for _ in range(3):
        subprocess.run([sys.executable, "-S", "-c", ""])

def test_a_fork():
    if not os.fork():
        os._exit(0)
    os.wait()
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="a test forks")
@pytest.mark.parametrize(("most", "options", "status"), [(4, (), 0), (3, (), 1), (3, ("-n", "1"), 1)])
def test_too_many_processes_fail_a_run(most: int, options: tuple[str, ...], status: int, tmp_path: Path) -> None:
    (tmp_path / "test_cases.py").write_text(CASES)
    (tmp_path / "bounded.py").write_text(f"import conftest\nconftest.MOST_PROCESSES = {most}\n")
    path = os.pathsep.join([str(tmp_path), str(ROOT / "tests"), str(ROOT / "tests" / "support")])
    plugins = ("-p", "conftest", "-p", "bounded", "-c", os.devnull, "-q")
    command = [sys.executable, "-W", "ignore", "-m", "pytest", *plugins, *options, str(tmp_path)]
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("PYTEST", "TENFERRO"))}
    done = subprocess.run(command, env=environment | {"PYTHONPATH": path}, capture_output=True, text=True, cwd=tmp_path)
    assert done.returncode == status, done.stdout + done.stderr
    assert "2 passed" in done.stdout
    assert (f"processes started, of at most {most}" in done.stdout) == (most >= 0)
