"""`info`: what the CPU backend runs on."""

from importlib.metadata import PackageNotFoundError, version
from typing import Any

import numpy as np

from tenferro_cpu.native._extension import compiled
from tenferro_cpu.native.machine import _jit
from tenferro_cpu.native.memory import _pool
from tenferro_cpu.native.threads import _blas, _team, _threads
from tenferro_cpu.pools import open_pools


def info() -> dict[str, Any]:
    """What computes here.

    Returns:
        Usable ``cores``; ``threads``, the limit of the innermost ``with threads(n)`` or None; ``team``, the numbers of
        the thread team, or None without machine code; versions of ``numpy`` and ``scipy``; ``blas``, the BLAS that
        NumPy was built with; ``products``, the BLAS that matrix products go to, why, and every BLAS of the process;
        ``extension``, whether the C extension is here, else why not; ``level``, the vector level that its code
        uses, or None without it; ``native``, whether machine code is compiled here, else the reason why not; ``cache``,
        the folder that keeps it on disk, or None (a line in the log ``tenferro`` says why); ``memory``, the statistics
        of the memory pool, or None without one; ``pools``, the CPU pools that are open, by device.

    >>> sorted(info())
    ['blas', 'cache', 'cores', 'extension', 'level', 'memory', 'native', 'numpy', 'pools', 'products', 'scipy',
     'team', 'threads']
    """
    build: Any = np.show_config(mode="dicts")
    memory, team = _pool.pool(), _team.team()
    blas = build.get("Build Dependencies", {}).get("blas", {})
    return {
        "cores": _threads.usable_cores(),
        "threads": _threads.limit(),
        "team": None if team is None else team.stats(),
        "numpy": np.__version__,
        "scipy": _version("scipy"),
        "blas": f"{blas.get('name', 'unknown')} {blas.get('version', '')}".strip(),
        "products": _blas.report(),
        "extension": compiled is not None or "a pure wheel, built without a C compiler; NumPy kernels serve",
        "level": None if compiled is None else compiled.LEVEL,
        "native": _jit.unavailable() or True,
        "cache": _jit.folder(),
        "memory": None if memory is None else memory.stats(),
        "pools": {str(pool.device): repr(pool) for pool in open_pools()},
    }


def _version(distribution: str) -> str | None:
    try:
        return version(distribution)
    except PackageNotFoundError:
        return None
