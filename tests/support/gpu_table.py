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
from tenferro_tensor import REGISTRY, ComputeDevice, Place, Primitive, Spec, catalog, get_backend
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

"""

_BESSEL: Final = "Bessel functions of any order and what rests on them; CuPy has those of the orders 0 and 1, and `yn`"
_SERIES: Final = "series, fractions and recurrences with as many terms as an argument needs, which CuPy has not"
_SCHUR: Final = (
    "it rests on Schur or Hessenberg factors; cuSOLVER computes eigenvalues and eigenvectors of general matrices "
    "(`Xgeev`, which is `eig` here) and returns neither factor, and CuPy has none"
)

REASONS: Final[dict[str, str]] = {
    _BESSEL: "airy airye_ai airye_aip airye_bi airye_bip bei ber iv ive jv kei ker kn kv kve modstruve spherical_in "
    "spherical_jn spherical_kn spherical_yn struve yv",
    _SERIES: "dawsn elliprc elliprd elliprf elliprg elliprj erfi fresnel_c fresnel_s hyp0f1 hyp1f1 hyp2f1 hyperu "
    "owens_t spence wofz",
    "polynomials of any real degree, which are hypergeometric functions": "eval_chebyt eval_chebyu eval_gegenbauer "
    "eval_genlaguerre eval_hermite eval_hermitenorm eval_jacobi eval_laguerre eval_legendre sph_legendre_p",
    "CuPy's function loses digits where the CPU mends those of SciPy": "beta lambertw",
    "inverses by a search, and distributions, that CuPy lacks": "betainccinv ndtri_exp stdtr stdtrit wrightomega",
    "derivatives by parameters, which are integrals or sums without a function in any library": "betainc_shapes "
    "complex_polygamma gammainc_shape",
    _SCHUR: "continuous_are discrete_are funm_points funm_term hessenberg hessenberg_rotation schur schur_factors "
    "schur_phases schur_rotation stein sylvester",
    "bisection by LAPACK; cuSOLVER has no eigenvalues of tridiagonal matrices alone": "eigvalsh_tridiagonal",
    "sparse factors, which CuPy's `splu` computes on the CPU, too": "solve",
}
"""Why primitives have no kernel."""

TABLE: Final = """
## All primitives

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
    if primitive.elementwise:
        device = ComputeDevice("cuda:0")
        spec = Spec((2,), np.dtype("float64"), Place(device.memory_space))
        try:
            op = primitive.op()
            operands = [tr.asarray(np.ones(2), device="cuda:0").data for _ in primitive.operands]
            out: Any = op.infer(*[spec] * len(operands))
            get_backend("cuda").kernel(op, (spec,) * len(operands), (out,), device)(*operands)
        except UnsupportedError:
            return "CPU"
        except (TenferroError, TypeError):
            pass  # not for floats, or not without metadata
    return "CuPy"


def places() -> dict[str, str]:
    """Where each primitive is computed, in the order of the table; several may share a name."""
    with installed_cupy(), np.errstate(all="ignore"):
        tr.zeros(1, device="cuda:0")
        return {f"| `{p.name}` | {one_by_one(p)} | {KINDS.get(p, '')} |": p.name for p in primitives()}


def page() -> str:
    """The whole page."""
    rows = places()
    reasons = [
        f"- {', '.join([f'`{name}`' for name in names.split()])}: {reason}." for reason, names in REASONS.items()
    ]
    return HEAD + "## Without a kernel\n\n" + "\n".join(reasons) + "\n" + TABLE + "\n".join(rows) + "\n"


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
