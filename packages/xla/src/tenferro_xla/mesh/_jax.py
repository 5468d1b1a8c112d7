"""Running a module on the devices of a mesh through ``jax.jit``."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache
from typing import Any

from tenferro_tensor_core.forks import importing
from tenferro_xla._lower import StableHloModule
from tenferro_xla._traced import TracedFunction, _wide_numbers


def wide_numbers() -> Any:
    """A scope in which JAX keeps numbers of 64 bits."""
    with importing():
        import jax
    return _wide_numbers(jax)


@cache
def _primitive() -> Any:
    with importing():
        import jax
        from jax.core import ShapedArray
        from jax.extend.core import Primitive
        from jax.interpreters import mlir
        from jaxlib.mlir import ir
        from jaxlib.mlir.dialects import func

    p = Primitive("tenferro_module")
    p.multiple_results = True

    def outs(module: StableHloModule) -> list[Any]:
        found = [ShapedArray(s.shape, s.dtype) for s in module.outputs]
        return [*found, ShapedArray((), bool)] if module.checked else found

    def lower(ctx: Any, *args: Any, module: StableHloModule) -> Any:
        context = ctx.module_context.context
        prefix = f"tenferro_{module.fingerprint[:12]}_"
        names = frozenset(re.findall(r"func\.func (?:public |private )?@([\w.$-]+)", module.text))
        parsed = ir.Module.parse(TracedFunction(module.text, names).renamed(prefix), context=context)
        results = []
        for op in list(parsed.body.operations):
            if op.attributes["sym_name"].value == f"{prefix}main":
                results = list(op.type.results)
            ctx.module_context.module.body.append(op)
        return func.CallOp(results, prefix + "main", args).results

    p.def_abstract_eval(lambda *_, module: outs(module))
    mlir.register_lowering(p, lower)
    return jax, p


def compiled(
    module: StableHloModule, in_shardings: Sequence[Any], out_shardings: Sequence[Any] | None, donate: Sequence[int]
) -> Any:
    """The executable of JAX for a module on a mesh."""
    jax, p = _primitive()
    arguments = [
        jax.ShapeDtypeStruct(s.shape, s.dtype, sharding=i) for s, i in zip(module.inputs, in_shardings, strict=True)
    ]
    with wide_numbers():
        run = jax.jit(
            lambda *xs: tuple(p.bind(*xs, module=module)),
            in_shardings=tuple(in_shardings),
            out_shardings=out_shardings if out_shardings is None else tuple(out_shardings),
            donate_argnums=tuple(donate),
        )
        return run.lower(*arguments).compile(compiler_options={"xla_allow_excess_precision": False})
