"""`LoopIR`: whole programs as loop nests over buffers, with numbers in registers.

The form between a program of array operations and machine code: a compiler of programs writes it, a backend renders
it. `_nodes` are its nodes, `_affine` places in memory; `_interpret` says what they mean, `_verify` which functions obey
the law, `_arena` which temporaries share memory, and `_text` writes functions down.
"""

from tenferro_tensor.loop_ir._accumulation import accumulates, accumulation, reads
from tenferro_tensor.loop_ir._affine import INDEX, Affine, Reg
from tenferro_tensor.loop_ir._arena import ArenaPlan, plan_arena
from tenferro_tensor.loop_ir._errors import LoopIRError
from tenferro_tensor.loop_ir._fortran import fortran_address
from tenferro_tensor.loop_ir._function import LoopFunction, show
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
    "Role",
    "Statement",
    "Store",
    "Switch",
    "Touch",
    "Value",
    "View",
    "While",
    "accumulates",
    "accumulation",
    "blocks",
    "dependent",
    "everything",
    "fortran_address",
    "interpret",
    "plan_arena",
    "reads",
    "recourses",
    "registers",
    "show",
    "swapped",
    "touches",
    "verify",
]
