"""NumPy's other spellings: each name is an alias of the function that it is imported from."""

from tenferro_tensor.functions.analytic import acos as arccos
from tenferro_tensor.functions.analytic import acosh as arccosh
from tenferro_tensor.functions.analytic import asin as arcsin
from tenferro_tensor.functions.analytic import asinh as arcsinh
from tenferro_tensor.functions.analytic import atan as arctan
from tenferro_tensor.functions.analytic import atan2 as arctan2
from tenferro_tensor.functions.analytic import atanh as arctanh
from tenferro_tensor.functions.arithmetic import abs as absolute
from tenferro_tensor.functions.arithmetic import divide as true_divide
from tenferro_tensor.functions.arithmetic import pow as power
from tenferro_tensor.functions.arithmetic import remainder as mod
from tenferro_tensor.functions.arithmetic import round as around
from tenferro_tensor.functions.arithmetic import trunc as fix
from tenferro_tensor.functions.bits import bitwise_invert as bitwise_not
from tenferro_tensor.functions.bits import bitwise_invert as invert
from tenferro_tensor.functions.bits import bitwise_left_shift as left_shift
from tenferro_tensor.functions.bits import bitwise_right_shift as right_shift
from tenferro_tensor.functions.elementwise import deg2rad as radians
from tenferro_tensor.functions.elementwise import rad2deg as degrees
from tenferro_tensor.functions.joining import concat as concatenate
from tenferro_tensor.functions.parts import conj as conjugate
from tenferro_tensor.functions.reductions import max as amax
from tenferro_tensor.functions.reductions import min as amin
from tenferro_tensor.functions.stacking import vstack as row_stack

__all__ = [
    "absolute", "amax", "amin", "arccos", "arccosh", "arcsin", "arcsinh", "arctan", "arctan2", "arctanh", "around",
    "bitwise_not", "concatenate", "conjugate", "degrees", "fix", "invert", "left_shift", "mod", "power", "radians",
    "right_shift", "row_stack", "true_divide",
]  # fmt: skip


def __dir__() -> list[str]:
    return __all__.copy()
