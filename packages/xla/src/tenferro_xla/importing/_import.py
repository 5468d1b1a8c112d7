"""`import_stablehlo`: imports a StableHLO module as a program."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import tenferro_runtime as tr
from tenferro_runtime.extension import ArgumentError, Program, UnsupportedError
from tenferro_xla._lower import StableHloModule
from tenferro_xla.importing._parsing import parsed
from tenferro_xla.importing._reader import ModuleReader
from tenferro_xla.importing._types import spec_of
from tenferro_xla.importing._values import arrays
from tenferro_xla.importing.contraction import CONTRACTION
from tenferro_xla.importing.control_flow import CONTROL_FLOW
from tenferro_xla.importing.elementwise import ELEMENTWISE
from tenferro_xla.importing.families import FAMILIES
from tenferro_xla.importing.indexing import INDEXING
from tenferro_xla.importing.libraries import LIBRARIES
from tenferro_xla.importing.reduction import REDUCTIONS
from tenferro_xla.importing.sorting import SORTING
from tenferro_xla.importing.structure import STRUCTURE
from tenferro_xla.importing.windows import WINDOWS

OPERATIONS: Final = {
    **ELEMENTWISE, **STRUCTURE, **CONTRACTION, **REDUCTIONS, **WINDOWS, **INDEXING, **SORTING, **CONTROL_FLOW,
    **FAMILIES, **LIBRARIES,
}  # fmt: skip
"""Handlers of all supported operations, by name."""

ModuleReader.handlers = OPERATIONS


class ImportedFunction:
    """An imported module as a function of arrays, which can be differentiated, vmapped and compiled.

    Attributes:
        program: the module as a program.
    """

    __slots__ = ("_flatten", "_unflatten", "program")

    program: Program

    def __init__(
        self, program: Program, flatten: Callable[..., list[Any]] | None, unflatten: Callable[[Any], Any] | None
    ) -> None:
        self.program, self._flatten, self._unflatten = program, flatten, unflatten

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Run the program on arrays with the specs of its inputs; a single result is returned without a tuple.

        Raises:
            ArgumentError: the arguments have another structure, or keyword arguments are passed to a module without.
            ProgramError: the arguments do not fit the program.
        """
        if self._flatten is None and kwargs:
            raise ArgumentError(
                f"the module takes positional arguments only, got {', '.join(kwargs)} by name; pass them by position"
            )
        leaves = list(args) if self._flatten is None else self._flatten(args, kwargs)
        values = [
            tr.asarray(x, dtype=s.dtype) if not hasattr(x, "spec") else x
            for x, s in zip(leaves, self.program.inputs, strict=False)
        ]
        results = self.program.run(*values, *leaves[len(values) :])
        if self._unflatten is not None:
            return self._unflatten(results)
        return results[0] if len(results) == 1 else results

    def __repr__(self) -> str:
        return f"<imported {self.program!r}>"


def import_stablehlo(module: Any, *, entry: str = "main") -> ImportedFunction:
    """Import a StableHLO module as a function of arrays, composed of core primitives.

    Args:
        module: text or bytes of a module, including portable artifacts; a `StableHloModule`; an MLIR module; or an
            ``Exported`` of ``jax.export``, whose containers are preserved.
        entry: name of the function to import.

    Returns:
        A function of arrays; its attribute `program` is the module as a program.

    Raises:
        ArgumentError: `module` is not a module, or has no such function.
        UnsupportedError: an operation is not supported, or a size is dynamic; the message names operation and location.
        BackendUnavailableError: jaxlib is missing.

    See also:
        `export` and `lower_to_stablehlo`, the inverse.

    >>> text = '''
    ... func.func @main(%x: tensor<3xf64>) -> tensor<3xf64> {
    ...   %y = stablehlo.multiply %x, %x : tensor<3xf64>
    ...   return %y : tensor<3xf64>
    ... }'''
    >>> import_stablehlo(text)([1.0, 2.0, 3.0])
    Tensor([1., 4., 9.])
    """
    if isinstance(module, StableHloModule):
        module = module.text
    if hasattr(module, "mlir_module_serialized") and hasattr(module, "in_tree"):
        return _of_exported(module)
    program = _program_of(module, entry)
    return ImportedFunction(program, None, None)


def _program_of(source: Any, entry: str) -> Program:
    module = parsed(source)
    functions = {op.operation.attributes["sym_name"].value: op.operation for op in module.body.operations
                 if op.operation.name == "func.func"}  # fmt: skip
    if entry not in functions:
        raise ArgumentError(f"the module has no function {entry!r}; its functions are {', '.join(functions)}")
    reader = ModuleReader(functions)
    specs = [spec_of(a.type) for a in functions[entry].regions[0].blocks[0].arguments]
    return tr.trace(lambda *xs: tuple(arrays(reader.run(entry, xs))), *specs)


def _of_exported(exported: Any) -> ImportedFunction:
    """Import an exported JAX function, with its containers and without its unused arguments."""
    if exported.nr_devices != 1:
        raise UnsupportedError(
            f"the function was exported for {exported.nr_devices} devices; export it for one to import it"
        )
    if exported.uses_global_constants or len(exported.platforms) != 1:
        raise UnsupportedError(
            f"the function was exported for the platforms {', '.join(exported.platforms)} with sizes "
            f"{[a.shape for a in exported.in_avals]}; export it for one platform and fixed sizes"
        )
    import jax

    program = _program_of(exported.mlir_module_serialized, "main")
    kept = exported.module_kept_var_idx

    def flatten(args: Any, kwargs: Any) -> list[Any]:
        leaves, tree = jax.tree.flatten((args, kwargs), is_leaf=lambda x: hasattr(x, "spec"))
        if tree != exported.in_tree:
            raise ArgumentError(f"the function takes arguments {exported.in_tree}, got {tree}; pass such containers")
        return [leaves[i] for i in kept]

    return ImportedFunction(program, flatten, lambda results: jax.tree.unflatten(exported.out_tree, results))
