"""Running programs on values: the rendered form on concrete tensors, one `call` on anything else."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from tenferro_runtime._call import call, concrete, executable
from tenferro_runtime._program import Program, ProgramError
from tenferro_runtime._render import explain_failure
from tenferro_tensor import SCALARS, Array, Tensor, tensor

HOST_ARRAYS: Final = (np.ndarray, np.generic)


def run(program: Program, values: tuple[Any, ...]) -> tuple[Any, ...]:
    """Run a program on values of any level; host arrays and numbers become concrete tensors."""
    ready = tuple([tensor(v) if v.__class__ in SCALARS or isinstance(v, HOST_ARRAYS) else v for v in values])
    for i, v in enumerate(ready):
        if not isinstance(v, Array):
            raise ProgramError(f"a program runs on arrays and numbers, but value {i} is a {type(v).__name__}")
    fitting = concrete(program, tuple([v.spec for v in ready]))
    if all(v.__class__ is Tensor for v in ready):
        return run_concrete(fitting, ready)
    return call(*ready, program=fitting)  # type: ignore[no-any-return]


def run_concrete(program: Program, tensors: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
    """Run on concrete tensors that fit."""
    try:
        raws = executable(program)(*[t.data for t in tensors])
    except Exception as error:
        explain_failure(error)
        raise
    return tuple([Tensor.wrap(raw, spec) for raw, spec in zip(raws, program.outputs, strict=True)])


Program.runner = staticmethod(run)
