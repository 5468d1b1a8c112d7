"""`ModuleReader`: runs the operations of a module on tenferro's values."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar, Final

from tenferro_runtime.extension import UnsupportedError, tensor
from tenferro_xla.importing._types import constant_of, spec_of
from tenferro_xla.importing._values import Splat, Value, arrays

Handler = Callable[..., Any]
"""Evaluates an operation: ``handler(reader, op, values, scope)`` returns a value or a sequence of values."""

RETURNS: Final = ("func.return", "stablehlo.return", "return")


class ValueScope:
    """Values by their names in the module, including those of enclosing regions."""

    __slots__ = ("_around", "_values")

    def __init__(self, around: ValueScope | None = None) -> None:
        self._values: dict[Any, Value] = {}
        self._around = around

    def __setitem__(self, name: Any, value: Value) -> None:
        self._values[name] = value

    def __getitem__(self, name: Any) -> Value:
        scope: ValueScope | None = self
        while scope is not None:
            found = scope._values.get(name)
            if found is not None:
                return found
            scope = scope._around
        raise KeyError(name)


class ModuleReader:
    """Runs the functions of a module on concrete or traced arrays.

    Args:
        functions: the functions of the module by name.
    """

    handlers: ClassVar[Mapping[str, Handler]] = {}
    """Handlers of operations by full name; set by `_import`."""

    def __init__(self, functions: Mapping[str, Any]) -> None:
        self.functions = functions

    def run(self, name: str, values: Sequence[Value]) -> list[Value]:
        """Return the results of a function."""
        return self.run_block(self.functions[name].regions[0].blocks[0], values, None)

    def run_block(self, block: Any, values: Sequence[Value], around: ValueScope | None) -> list[Value]:
        """Return the results of a block for values of its arguments."""
        scope = ValueScope(around)
        for argument, value in zip(block.arguments, values, strict=True):
            scope[argument] = value
        for each in block.operations:
            op = each.operation
            operands = [scope[v] for v in op.operands]
            if op.name in RETURNS:
                return operands
            results = self.apply(op, operands, scope)
            for result, value in zip(op.results, results, strict=True):
                scope[result] = value
        return []

    def apply(self, op: Any, operands: list[Value], scope: ValueScope) -> Sequence[Value]:
        """Return the results of one operation.

        Raises:
            UnsupportedError: it is not supported.
        """
        if op.name == "stablehlo.constant":
            found = constant_of(op)
            return (found if isinstance(found, Splat) else tensor(found),)
        handler = self.handlers.get(op.name)
        if handler is None:
            raise unknown(op, "tenferro does not support it")
        return results_of(handler(self, op, operands, scope))


def results_of(found: Any) -> Sequence[Value]:
    """Return the result of a handler as a sequence of values."""
    return found if isinstance(found, (list, tuple)) and not isinstance(found, Splat) else (found,)


def unknown(op: Any, why: str) -> UnsupportedError:
    """Return the error for an operation that cannot be imported."""
    return UnsupportedError(
        f"{op.name} at {_place(op)} cannot be imported: {why}; remove it from the exported function, or run the "
        "module with XLA",
        operation=op.name,
        location=_place(op),
    )


def _place(op: Any) -> str:
    return str(op.location).removeprefix("loc(").removesuffix(")")


def on_arrays(function: Callable[..., Any]) -> Handler:
    """Make a handler from a function of the operation and arrays."""
    return lambda reader, op, xs, scope: function(op, *arrays(xs))


def out_spec(op: Any, which: int = 0) -> Any:
    """Return the spec of a result."""
    return spec_of(op.results[which].type)
