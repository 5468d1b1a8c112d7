"""`SavedFunction`: a compiled function loaded from a file, with the same arguments and results."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tenferro_runtime.ir._program import Program
from tenferro_runtime.trees._tree import TreeDef, flatten_like, unflatten
from tenferro_tensor import SCALARS, Array, Spec, Tensor, tensor
from tenferro_tensor_core import ArgumentError, can_convert


class SavedFunction:
    """A compiled function without the Python code that it was traced from.

    It takes arguments of the structure and dtypes that it was saved with, with any sizes that the program leaves
    symbolic. Static arguments are fixed and must not be passed.

    Attributes:
        name: name of the function.
        parameters: names of its arguments in order, or ``None`` if it took ``*args`` or ``**kwargs``.
        program: its program, whose inputs are the leaves of the arguments in order.
    """

    __slots__ = ("_arguments", "_fixed", "_result", "name", "parameters", "program")
    name: str
    parameters: tuple[str, ...] | None
    program: Program

    def __init__(
        self,
        name: str,
        parameters: tuple[str, ...] | None,
        program: Program,
        arguments: TreeDef,
        result: TreeDef,
        fixed: dict[int, Any],
    ) -> None:
        self.name, self.parameters, self.program = name, parameters, program
        self._arguments, self._result, self._fixed = arguments, result, fixed

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Call the function with concrete, differentiated or traced arguments.

        Raises:
            ArgumentError: the arguments do not have the structure that the function was saved with.
            ProgramError: an array has another dtype or rank.
        """
        given = self._bound(args, kwargs)
        leaves = flatten_like(self._arguments, given, f"the arguments of {self.name}")
        for leaf, path in zip(leaves, self._arguments.paths(), strict=True):
            if leaf.__class__ not in SCALARS and not isinstance(leaf, (Array, np.ndarray, np.generic)):
                raise ArgumentError(
                    f"{self.name} takes an array or a number at argument {path}, got a {type(leaf).__name__}; "
                    f"its arguments have the structure {self._arguments.show()}",
                    path=path,
                )
        values = self.program.run(*[_fitting(leaf, s) for leaf, s in zip(leaves, self.program.inputs, strict=True)])
        rest = iter(values)
        return unflatten(
            self._result, [self._fixed[i] if i in self._fixed else next(rest) for i in range(self._result.size)]
        )

    def _bound(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        if self.parameters is None:
            return args, dict(sorted(kwargs.items()))
        given = dict(zip(self.parameters, args))
        wrong = sorted(kwargs.keys() & given.keys() | kwargs.keys() - set(self.parameters))
        missing = [name for name in self.parameters if name not in given and name not in kwargs]
        if wrong or missing or len(args) > len(self.parameters):
            raise ArgumentError(
                f"{self.name} takes ({', '.join(self.parameters)}), each once, but was called with {len(args)} "
                f"arguments by position and {sorted(kwargs) or 'none'} by name; static arguments are part of a saved "
                "function and must not be passed",
                function=self.name,
            )
        return tuple([given[name] if name in given else kwargs[name] for name in self.parameters])

    def __repr__(self) -> str:
        return f"<saved function {self.name}({self._shown()}): {self.program!r}>"

    def _shown(self) -> str:
        return "*args, **kwargs" if self.parameters is None else ", ".join(self.parameters)


def _fitting(leaf: Any, spec: Spec) -> Any:
    """A Python number in the dtype of the program, if the conversion is lossless."""
    if leaf.__class__ not in SCALARS:
        return leaf
    number: Tensor = tensor(leaf)
    return tensor(leaf, dtype=spec.dtype) if can_convert(number.spec.dtype, spec.dtype) else number


def require_lawful(function: SavedFunction) -> None:
    """Check that the parts of a function from a file are consistent.

    Raises:
        ValueError: they are not.
    """
    arguments, result, fixed = function_parts(function)
    program, parameters = function.program, function.parameters
    if parameters is None:
        parts = arguments.children
        given = len(parts) == 2 and parts[0].kind is tuple and parts[1].kind is dict
        given = given and all(name.__class__ is str for name in parts[1].names)
    else:
        given = len(arguments.children) == len(parameters) == len(set(parameters))
    if arguments.kind is not tuple or not given:
        raise ValueError(f"arguments of the structure {arguments.show():.80} cannot be those of {function!r:.80}")
    if arguments.size != len(program.inputs):
        raise ValueError(f"the function takes {arguments.size} arrays, but its program takes {len(program.inputs)}")
    if not all(0 <= i < result.size and value.__class__ in SCALARS for i, value in fixed.items()):
        raise ValueError("a result that is a plain number has no position in the structure of results")
    if result.size != len(fixed) + len(program.outputs):
        raise ValueError(
            f"the function returns {result.size} arrays and numbers, but its program has {len(program.outputs)} "
            f"outputs, and {len(fixed)} numbers are known"
        )


def function_parts(function: SavedFunction) -> Sequence[Any]:
    """Structures of arguments and results, and the results that are plain numbers."""
    return function._arguments, function._result, function._fixed
