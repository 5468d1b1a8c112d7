"""`info`: what the CPU backend runs on."""

from importlib.metadata import PackageNotFoundError, version
from typing import Any

import numpy as np

from tenferro_cpu.native._extension import absent, compiled
from tenferro_cpu.native.codegen.machine import _jit
from tenferro_cpu.native.memory import _pool
from tenferro_cpu.native.threads import _blas, _team, _threads
from tenferro_cpu.pools import open_pools


def info() -> dict[str, Any]:
    """Describe the CPU backend of this process.

    Returns:
        ``cores``: usable cores. ``threads``: limit of the innermost ``with threads(n)``, or None. ``team``: counters of
        the thread team, or None without machine code. ``numpy``, ``scipy``: versions. ``blas``: the BLAS that NumPy was
        built with. ``products``: the BLAS for matrix products, the reason, and every loaded BLAS. ``extension``:
        whether the C extension is available, or the reason. ``level``: the vector level of its code, or None.
        ``native``: whether machine code can be compiled, or the reason. ``cache``: the folder that caches it, or None
        (the log ``tenferro`` gives the reason). ``memory``: statistics of the memory pool, or None. ``pools``: open CPU
        pools by device.

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
        "extension": absent or True,
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
