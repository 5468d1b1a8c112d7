"""The build hook: `compile_c.py`, which lies beside the packages of the workspace, and inside a source archive."""

import sys
from pathlib import Path

_HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(_HERE), str(_HERE.parent)]


def get_build_hook() -> type:
    """Return the hook's class, as hatchling asks for it."""
    from compile_c import CompileC

    return CompileC
