"""`LoopIR`: whole programs as loop nests over buffers, with numbers in registers.

The intermediate representation between programs of array operations and machine code: lowering produces it, and a
backend renders it. `_nodes` defines its nodes and `_affine` memory positions; `_interpret` is its executable semantics,
`_verify` its specification, and `_bounds` proves that accesses are inside their buffers. `_arena` plans the memory of
temporaries, and `_text` prints functions.
"""

from tenferro_tensor.loop_ir._accumulation import accumulates, accumulation, reads
from tenferro_tensor.loop_ir._affine import INDEX, Affine, Reg
from tenferro_tensor.loop_ir._arena import ArenaPlan, plan_arena
from tenferro_tensor.loop_ir._bounds import Unproved, unproved
from tenferro_tensor.loop_ir._errors import LoopIRError
from tenferro_tensor.loop_ir._fortran import fortran_address
from tenferro_tensor.loop_ir._function import LoopFunction, Requirement, show
from tenferro_tensor.loop_ir._independence import Bounds, dependent
from tenferro_tensor.loop_ir._interpret import interpret
from tenferro_tensor.loop_ir._nodes import (
    Buffer,
    Call,
    Carried,
    Case,
    For,
    Foreign,
    Let,
    Load,
    Order,
    Position,
    Role,
    Statement,
    Store,
    Switch,
    Value,
    View,
    While,
)
from tenferro_tensor.loop_ir._text import declared, head
from tenferro_tensor.loop_ir._traversal import Touch, blocks, everything, recourses, registers, swapped, touches
from tenferro_tensor.loop_ir._verify import verify

__all__ = [
    "INDEX",
    "Affine",
    "ArenaPlan",
    "Bounds",
    "Case",
    "Buffer",
    "Call",
    "Carried",
    "For",
    "Foreign",
    "Let",
    "Load",
    "LoopFunction",
    "LoopIRError",
    "Order",
    "Position",
    "Reg",
    "Requirement",
    "Role",
    "Statement",
    "Store",
    "Switch",
    "Touch",
    "Unproved",
    "Value",
    "View",
    "While",
    "accumulates",
    "accumulation",
    "blocks",
    "declared",
    "dependent",
    "everything",
    "fortran_address",
    "head",
    "interpret",
    "plan_arena",
    "reads",
    "recourses",
    "registers",
    "show",
    "swapped",
    "touches",
    "unproved",
    "verify",
]


def __dir__() -> list[str]:
    return __all__.copy()
