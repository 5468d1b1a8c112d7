"""Programs of `examples/` as modules, under names of their own."""

import importlib.util
import sys
from types import ModuleType

from workspace import ROOT


def load(name: str) -> ModuleType:
    """Run an example's file as a module, its `main` aside."""
    spec = importlib.util.spec_from_file_location(f"example_{name}", ROOT / "examples" / f"{name}.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # dataclasses look their module up
    spec.loader.exec_module(module)
    return module
