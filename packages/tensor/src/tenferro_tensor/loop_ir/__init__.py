"""`LoopIR`: kernels and whole programs as loop nests over buffers, with numbers in registers.

The only intermediate representation between array operations and machine code: lowering produces it, eager kernels and
those written by hand are it, and every renderer of a device takes it. `_nodes` defines its nodes and `_affine` memory
positions; `_verify` is its specification, `_bounds` proves that accesses are inside their buffers, and
`tenferro_tensor.loop_interpreter` runs it. `_arena` plans the memory of temporaries, `_text` prints functions, and
`_expansions` writes special functions as simpler statements.
"""

from tenferro_tensor.loop_ir._accumulation import accumulates, accumulation, reads
from tenferro_tensor.loop_ir._affine import INDEX, Affine, Reg
from tenferro_tensor.loop_ir._arena import ArenaPlan, plan_arena
from tenferro_tensor.loop_ir._bounds import Unproved, unproved
from tenferro_tensor.loop_ir._errors import LoopIRError
from tenferro_tensor.loop_ir._expansions import WRITTEN_OUT, expansion
from tenferro_tensor.loop_ir._function import LoopFunction, Requirement, show
from tenferro_tensor.loop_ir._independence import Bounds, dependent
from tenferro_tensor.loop_ir._nodes import (
    Buffer,
    Call,
    Carried,
    Case,
    For,
    Foreign,
    Let,
    Literal,
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
from tenferro_tensor.loop_ir._terms import OpStatements
from tenferro_tensor.loop_ir._text import declared, head
from tenferro_tensor.loop_ir._traversal import Touch, blocks, everything, recourses, registers, swapped, touches
from tenferro_tensor.loop_ir._verify import verify

__all__ = [
    "INDEX",
    "WRITTEN_OUT",
    "Affine",
    "ArenaPlan",
    "Bounds",
    "Case",
    "Buffer",
    "Call",
    "Carried",
    "OpStatements",
    "For",
    "Foreign",
    "Let",
    "Literal",
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
    "expansion",
    "head",
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
