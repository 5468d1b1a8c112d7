"""A folder with distributions as installers leave them, for processes that have it on their path."""

import os
import subprocess
import sys
from pathlib import Path
from textwrap import dedent

WAVE = """
import numpy as np
from tenferro_runtime.extension import Spec, primitive

@primitive(family={family!r}, extension={extension!r})
def {name}(x: Spec) -> Spec:
    return x

def register(registry):
    registry.kernel({name}, "cpu", lambda ins, outs: lambda x: x * {factor})
"""
"""A plug-in of one operation, which multiplies by a number."""


class Site:
    """The folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def add(
        self, distribution: str, module: str, code: str, points: str, *, requires: str = "", version: str = "1.0"
    ) -> None:
        """Install a distribution of one module.

        Args:
            distribution: its name.
            module: name of the module.
            code: text of the module.
            points: text of ``entry_points.txt``.
            requires: a requirement on another distribution.
            version: its version.
        """
        (self.folder / f"{module}.py").write_text(dedent(code))
        info = self.folder / f"{distribution.replace('-', '_')}-{version}.dist-info"
        info.mkdir()
        needs = f"Requires-Dist: {requires}\n" if requires else ""
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {distribution}\nVersion: {version}\n{needs}")
        (info / "entry_points.txt").write_text(dedent(points))

    def wave(
        self, distribution: str, module: str, family: str, extension: str, factor: float, name: str = "wave"
    ) -> None:
        """Install a plug-in that multiplies by `factor`."""
        code = WAVE.format(family=family, extension=extension, name=name, factor=factor)
        self.add(distribution, module, code, f"[tenferro.extensions]\n{extension} = {module}:register\n")

    def run(self, script: str, *arguments: str) -> str:
        """What a fresh process prints that has the folder on its path."""
        environment = os.environ | {"PYTHONPATH": str(self.folder)}
        command = [sys.executable, "-c", dedent(script), *arguments]
        done = subprocess.run(command, env=environment, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        return done.stdout
