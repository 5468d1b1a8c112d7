"""Branches and loops: `cond`, `switch`, `while_loop`, `scan`.

If all deciding values are concrete, they run as Python's own control flow; on traced values they are recorded as
primitives whose metadata hold the branch or the body as a program.
"""

from tenferro_runtime.control_flow import _kernels as _kernels
from tenferro_runtime.control_flow._agreement import StructureError
from tenferro_runtime.control_flow._associative import associative_scan
from tenferro_runtime.control_flow._budget import within_budget
from tenferro_runtime.control_flow._cond import cond, switch
from tenferro_runtime.control_flow._fori import fori_loop
from tenferro_runtime.control_flow._hoisting import hoisted, invariants
from tenferro_runtime.control_flow._map import map
from tenferro_runtime.control_flow._rows import rows
from tenferro_runtime.control_flow._scan import scan
from tenferro_runtime.control_flow._while import while_loop

__all__ = [
    "StructureError",
    "associative_scan",
    "cond",
    "fori_loop",
    "hoisted",
    "invariants",
    "map",
    "rows",
    "scan",
    "switch",
    "while_loop",
    "within_budget",
]


def __dir__() -> list[str]:
    return __all__.copy()
