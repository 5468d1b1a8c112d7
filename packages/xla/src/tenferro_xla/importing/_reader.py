"""`ModuleReader`: runs the operations of a module on values of tenferro."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar, Final

from tenferro_runtime.extension import UnsupportedError, tensor
from tenferro_xla.importing._types import constant_of, spec_of
from tenferro_xla.importing._values import Splat, Value, arrays

Handler = Callable[..., Any]
"""What an operation does: ``handler(reader, op, values)``, which returns a value or a sequence of values."""

RETURNS: Final = ("func.return", "stablehlo.return", "return")


class ValueScope:
    """Values of the module by what they are called there; those of the region around are seen, too."""

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
    """Runs the functions of a module on arrays: concrete ones, or those of a trace that is going on.

    Args:
        functions: the functions of the module by name.
        handlers: what each operation does, by its full name.
    """

    handlers: ClassVar[Mapping[str, Handler]] = {}
    """Meanings of operations, by full name; set where the tables are put together."""

    def __init__(self, functions: Mapping[str, Any]) -> None:
        self.functions = functions

    def run(self, name: str, values: Sequence[Value]) -> list[Value]:
        """The results of a function for values."""
        return self.run_block(self.functions[name].regions[0].blocks[0], values, None)

    def run_block(self, block: Any, values: Sequence[Value], around: ValueScope | None) -> list[Value]:
        """What a block returns for values of its arguments."""
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
        """The results of one operation.

        Raises:
            UnsupportedError: nobody knows what it means.
        """
        if op.name == "stablehlo.constant":
            found = constant_of(op)
            return (found if isinstance(found, Splat) else tensor(found),)
        handler = self.handlers.get(op.name)
        if handler is None:
            raise unknown(op, "tenferro has no meaning for it")
        return results_of(handler(self, op, operands, scope))


def results_of(found: Any) -> Sequence[Value]:
    """What a handler returned as a sequence of values."""
    return found if isinstance(found, (list, tuple)) and not isinstance(found, Splat) else (found,)


def unknown(op: Any, why: str) -> UnsupportedError:
    """The error for an operation that cannot be translated."""
    return UnsupportedError(
        f"{op.name} at {_place(op)} cannot be imported: {why}; leave it out of the exported function, or run the "
        "module by XLA",
        operation=op.name,
        location=_place(op),
    )


def _place(op: Any) -> str:
    return str(op.location).removeprefix("loc(").removesuffix(")")


def on_arrays(function: Callable[..., Any]) -> Handler:
    """A handler from a function of the operation and arrays."""
    return lambda reader, op, xs, scope: function(op, *arrays(xs))


def out_spec(op: Any, which: int = 0) -> Any:
    """The spec of a result."""
    return spec_of(op.results[which].type)
