"""A StableHLO module as a JAX primitive: its functions are merged into the module that JAX lowers.

This module imports JAX; import it on demand, inside `tenferro_tensor_core.forks.importing`.
"""

from __future__ import annotations

from typing import Any, Final

import jax
import numpy as np
from jax.extend.core import Primitive
from jax.extend.mlir import ir
from jax.extend.mlir.dialects import func
from jax.interpreters import mlir

from tenferro_tensor_core import RegistryError
from tenferro_xla._lower import StableHloModule

_MODULE: Final[Any] = Primitive("stablehlo_module")
_MODULE.multiple_results = True


def bind(module: StableHloModule, *arrays: Any) -> tuple[Any, ...]:
    """Call ``main`` of a module inside a function that JAX traces; see `_jitted.bind`."""
    return tuple(_MODULE.bind(*arrays, module=module))


@_MODULE.def_abstract_eval  # type: ignore[untyped-decorator]  # JAX has no types here
def _results(*operands: Any, module: StableHloModule) -> list[Any]:
    got, wanted = [(x.shape, x.dtype) for x in operands], [(s.shape, s.dtype) for s in module.inputs]
    if got != wanted:
        raise TypeError(f"a StableHLO module takes {list(module.inputs)}, got {list(operands)}")
    flag = [jax.core.ShapedArray((), np.dtype(bool))] if module.checked else []
    return [*[jax.core.ShapedArray(s.shape, s.dtype) for s in module.outputs], *flag]


def _merged(context: Any, *operands: Any, module: StableHloModule) -> Any:
    """Emit a call of the module's ``main``; JAX does so once for all uses of a module."""
    target = context.module_context
    try:
        source = ir.Module.parse(module.text, context=target.context)
    except ir.MLIRError as cause:
        raise RegistryError(
            f"a lowering emitted an operation that StableHLO does not allow: {str(cause)[:500]}; look at "
            "lower_to_stablehlo(program), and correct the lowering of that operation"
        ) from cause
    main = ir.SymbolTable(source.operation)["main"]
    types = ir.FunctionType(ir.TypeAttr(main.attributes["function_type"]).value).results
    # Conflicting names are changed, and all functions become private.
    name = mlir.merge_mlir_modules(target.module, "tenferro_program", source, dst_symtab=target.symbol_table)
    return func.CallOp(list(types), ir.FlatSymbolRefAttr.get(name), list(operands)).results


mlir.register_lowering(_MODULE, _merged)
