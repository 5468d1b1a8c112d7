"""Running programs on values: the rendered form on concrete tensors, one `call` on anything else."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np

from tenferro_runtime._call import call, concrete, require_count
from tenferro_runtime._data_sizes import definitions, replayed
from tenferro_runtime._program import Program, ProgramError
from tenferro_runtime._render import explain_failure, render
from tenferro_runtime._runtime import FUSION, current_runtime
from tenferro_runtime._sizes import bind_sizes
from tenferro_runtime.passes.fusion import fuse
from tenferro_runtime.passes.identities import remove_identities
from tenferro_tensor import REGISTRY, SCALARS, Array, Spec, Tensor, tensor
from tenferro_tensor._select import scoped_device

HOST_ARRAYS: Final = (np.ndarray, np.generic)


def lowered(program: Program) -> Program:
    """The program as it is run, its regions fused; differentiation and lowering to other systems see it without."""
    found: Program | None = program.memo.get("lowered")
    if found is None:
        runtime = current_runtime()
        fusion, exact = program.memo.get(FUSION, (runtime.fusion, runtime.deterministic))
        found = remove_identities(program)
        found = program.memo["lowered"] = fuse(found, exact=exact) if fusion else found
    return found


def executable(program: Program) -> Callable[..., tuple[Any, ...]]:
    """The program rendered over raw arrays, kept with the program for each device that a scope may choose."""
    key = ("raw", scoped_device())
    found: Callable[..., tuple[Any, ...]] | None = program.memo.get(key)
    if found is None:
        found = program.memo[key] = render(lowered(program), "raw")
    return found


def run(program: Program, values: tuple[Any, ...]) -> tuple[Any, ...]:
    """Run a program on values of any level; host arrays and numbers become concrete tensors."""
    ready = tuple([tensor(v) if v.__class__ in SCALARS or isinstance(v, HOST_ARRAYS) else v for v in values])
    for i, v in enumerate(ready):
        if not isinstance(v, Array):
            raise ProgramError(f"a program runs on arrays and numbers, but value {i} is a {type(v).__name__}")
    specs = tuple([v.spec for v in ready])
    if definitions(program):
        require_count(program, specs)
        return replayed(program, ready, bind_sizes(program, specs))
    fitting = concrete(program, specs)
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


def _call_kernel(ins: tuple[Spec, ...], outs: tuple[Spec, ...], *, program: Program) -> Callable[..., Any]:
    return executable(concrete(program, ins))


REGISTRY.kernel(call, "*", _call_kernel)
Program.runner = staticmethod(run)
