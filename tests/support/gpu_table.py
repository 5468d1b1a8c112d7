"""Which primitives have a kernel on GPUs, found out on a simulated CuPy.

``python3 dev run tests/support/gpu_table.py`` writes the page ``docs/reference/gpu-kernels.md``.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

import numpy as np

import tenferro_einsum
import tenferro_fft
import tenferro_linalg
import tenferro_runtime as tr
from installed_cupy import installed_cupy
from tenferro_gpu.rendering._functions import KINDS
from tenferro_tensor import REGISTRY, ComputeDevice, Primitive, Spec, catalog, get_backend
from tenferro_tensor._place import Place
from tenferro_tensor_core import TenferroError, UnsupportedError

PAGE: Final = Path(__file__).resolve().parents[2] / "docs" / "reference" / "gpu-kernels.md"
FAMILIES: Final = (tenferro_einsum, tenferro_fft, tenferro_linalg)
"""Imported for their primitives."""

EXTENSIONS: Final = ("einsum", "fft", "linalg", "random", "special")

HEAD: Final = """# Kernels of primitives on GPUs

The table is written by `python3 dev run tests/support/gpu_table.py` on a simulated CuPy that has the names of the real
one, and a test compares it anew.

- *One by one*: `CuPy` where the primitive has a kernel of its own, `others` where it is written with other primitives,
  `CPU` where it has none: the error names the device, and under `host_fallback()` the CPU computes it.
- *In kernels*: the dtypes for which the primitive is a function of rendered CUDA kernels: booleans (b), signed (i) and
  unsigned (u) integers, floats (f), complex numbers (c), narrow floats (n). Other primitives are loops of such kernels,
  or calls between them.

`ldl`, `banded_solve` and matrix functions by Schur factors have kernels that refuse when they run, in the same words.

| primitive | one by one | in kernels |
|---|---|---|
"""


def primitives() -> list[Primitive]:
    """All primitives of the packages, by family and name."""
    for name in EXTENSIONS:
        REGISTRY.load_extension(name)
    core = {p for p in vars(catalog).values() if isinstance(p, Primitive)}
    found = set(core)
    for key in (*REGISTRY._tables["kernel"], *REGISTRY._tables["expansion"]):
        found.add(key[0] if isinstance(key, tuple) else key)
    ours = [p for p in found if p in core or p.extension in EXTENSIONS]
    return sorted(ours, key=lambda p: (str(p.extension or ""), p.name, str(p.family)))


def one_by_one(primitive: Primitive) -> str:
    """Where a step of a primitive is computed."""
    if REGISTRY.find("kernel", primitive, "cuda") is None:
        return "CPU" if REGISTRY.find("expansion", primitive) is None else "others"
    if primitive.elementwise and not primitive.metadata:
        device = ComputeDevice("cuda:0")
        spec = Spec((2,), np.dtype("float64"), Place(device.memory_space))
        try:
            op = primitive.op()
            out: Any = op.infer(*[spec] * len(primitive.operands))
            get_backend("cuda").kernel(op, (spec,) * len(primitive.operands), (out,), device)
        except UnsupportedError:
            return "CPU"
        except TenferroError:
            pass  # not for floats
    return "CuPy"


def page() -> str:
    """The whole page."""
    with installed_cupy():
        tr.zeros(1, device="cuda:0")
        rows = [f"| `{p.name}` | {one_by_one(p)} | {KINDS.get(p, '')} |" for p in primitives()]
    return HEAD + "\n".join(dict.fromkeys(rows)) + "\n"


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
