"""Entry points that a test pretends to have installed."""

import importlib.metadata
import sys
from importlib.metadata import EntryPoint
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from tenferro_tensor import entry_points

MODULE = "tenferro_test_plugin"


class Installed:
    """What is installed, for the test: entry points by group, and how often a group was scanned."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.points: list[EntryPoint] = []
        self.scans: list[str] = []
        self.module = ModuleType(MODULE)
        monkeypatch.setitem(sys.modules, MODULE, self.module)
        monkeypatch.setattr(importlib.metadata, "entry_points", self.scan)
        monkeypatch.setattr(entry_points, "_own_claims", lambda group, name: iter(()))  # only a scan sees the points

    def scan(self, *, group: str) -> list[EntryPoint]:
        self.scans.append(group)
        return [p for p in self.points if p.group == group]

    def add(self, group: str, name: str, value: str, distribution: str | None = "plugin") -> None:
        point = EntryPoint(name, value, group)
        if distribution:
            object.__setattr__(point, "dist", SimpleNamespace(name=distribution, version="1.2"))
            vars(point)["dist"] = SimpleNamespace(name=distribution, version="1.2")
        self.points.append(point)

    def offer(self, group: str, name: str, function: Any, distribution: str = "plugin") -> None:
        setattr(self.module, name, function)
        self.add(group, name, f"{MODULE}:{name}", distribution)
