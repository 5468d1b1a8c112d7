"""`info`: what the CPU backend runs on."""

import os
from importlib.metadata import PackageNotFoundError, version
from typing import Any

import numpy as np


def info() -> dict[str, Any]:
    """What computes here: usable cores, NumPy and SciPy versions, and the BLAS behind matrix products.

    >>> sorted(info())
    ['blas', 'cores', 'numpy', 'scipy']
    """
    build: Any = np.show_config(mode="dicts")
    blas = build.get("Build Dependencies", {}).get("blas", {})
    return {
        "cores": _usable_cores(),
        "numpy": np.__version__,
        "scipy": _version("scipy"),
        "blas": f"{blas.get('name', 'unknown')} {blas.get('version', '')}".strip(),
    }


def _usable_cores() -> int:
    """Cores that this process may run on; fewer than the machine has where it is pinned."""
    affinity = getattr(os, "sched_getaffinity", None)  # Linux only
    return len(affinity(0)) if affinity is not None else os.cpu_count() or 1


def _version(distribution: str) -> str | None:
    try:
        return version(distribution)
    except PackageNotFoundError:
        return None
