"""A kernel of every function that rendered GPU kernels call, for each dtype."""

from functools import cache

import numpy as np

from hand_written import of_op
from native_kernels import DTYPES, operands
from tenferro_gpu.rendering import CudaRenderer
from tenferro_gpu.rendering._functions import KINDS
from tenferro_tensor import Op
from tenferro_tensor.catalog import numbers
from tenferro_tensor.device_model import ProgramSpec
from tenferro_tensor_core import is_narrow

NAMES = [name for names in DTYPES.values() for name in names]


def kind_in(dtype: str, kinds: str) -> bool:
    """Whether a dtype is of one of the kinds, of which ``"n"`` is that of narrow floats."""
    return ("n" if is_narrow(np.dtype(dtype)) else np.dtype(dtype).kind) in kinds


@cache
def kernels_of(dtype: str) -> dict[str, tuple[Op, tuple[np.dtype, ...]]]:
    """Every primitive, and operands of it for a dtype."""
    rng, found = np.random.default_rng(0), {}
    for primitive, kinds in KINDS.items():
        if kind_in(dtype, kinds) and primitive is not numbers.convert:
            ins = operands(rng, primitive, dtype, len(primitive.operands))
            found[primitive.name] = primitive.op(), tuple(ins)
    for target in NAMES:
        found[f"convert_{target}"] = numbers.convert.op(dtype=np.dtype(target)), (np.dtype(dtype),)
    return found


@cache
def specs_of(dtype: str) -> dict[str, ProgramSpec]:
    """The kernels of a dtype, all of one source, by name."""
    kernels = {name: of_op(op, *dtypes) for name, (op, dtypes) in kernels_of(dtype).items()}
    return dict(zip(kernels, CudaRenderer().together(kernels), strict=True))
