"""Steps of a rendered program whose sizes depend on data.

The defining step stores such a size as a number in a local variable. Expressions of it are computed inline, before the
first step that needs them. Kernels that need concrete sizes are found while the program runs.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final, NoReturn

import numpy as np

from tenferro_runtime.ir._bind import Binder, BindingIndex
from tenferro_runtime.ir._data_sizes import conditions, definitions, named_in, names_in, require
from tenferro_runtime.ir._program import Equation, Program
from tenferro_runtime.ir._sizes import open_sizes, substituted, variables
from tenferro_runtime.running.rendering._step import Step, unused
from tenferro_tensor import Op, Spec, Tensor, catalog, get_backend
from tenferro_tensor_core import Dim, Guard, ShapeError, evaluate, key_of

MAX_KERNELS_PER_STEP: Final = 256
"""Number of sizes for which a step caches its kernel."""

INT64: Final = np.dtype(np.int64)

Seen = Spec | type


class DataDependentSizes:
    """Locates the sizes that the steps of one rendered program need.

    Args:
        program: the program.
        binder: provides the sizes that are known when the program is bound.
        steps: receives the steps that compute the others.
    """

    def __init__(self, program: Program, binder: Binder, steps: list[Step]) -> None:
        self.program, self.binder, self.steps = program, binder, steps
        self._open = dict(zip(variables(program), open_sizes(program), strict=True))
        self._fresh = max(program.specs, default=-1)
        self._numbers: dict[str, int] = {}
        self._known: dict[Any, int] = {}

    def size(self, value: Any, eq: Equation) -> BindingIndex | int:
        """The location of an extent or a tuple of extents; adds a step that computes it for `eq` if necessary."""
        if not names_in(value) & self._numbers.keys():
            return self.binder.size(value)
        key = key_of(value)
        known = self._known.get(key)
        if known is None:
            operands: dict[int, str] = {}
            if isinstance(value, Dim):
                text = value.source({name: self._named(name, operands) for name in value.variables})
            else:
                text = f"({''.join(f'{self._part(v, eq, operands)}, ' for v in value)})"
            known = self._known[key] = self._new()
            self.steps.append(Step(unused, tuple(operands), (known,), False, eq, text=text))
        return known

    def define(self, eq: Equation) -> None:
        """Add the step that assigns a size its value, as an array and as a number."""
        name = str(eq.op.params["size"])
        guards = []
        needed: set[str] = set()
        for guard in conditions(self.program):
            dependent = (names_in(guard.lhs) | names_in(guard.rhs)) & definitions(self.program).keys()
            if name in dependent and dependent <= {name, *self._numbers}:
                guards.append(guard)
                needed |= dependent - {name}
        spec = self.program.specs[eq.variables[0]]
        found = Definition(eq.op.params["size"], guards, (*needed, *self._open), spec, eq.where)
        sizes = [self._numbers[n] for n in needed] + [self.binder.size(d) for d in self._open.values()]
        self._numbers[name] = number = self._new()
        self.steps.append(Step(found, eq.operands, (*eq.results, number), True, eq, tuple(sizes if guards else ())))

    def kernel(
        self, eq: Equation, seen: tuple[Seen, ...], many: bool, find: Callable[[Op, tuple[Seen, ...]], Any]
    ) -> None:
        """Add a step whose kernel is made for the concrete sizes of each call."""
        needed = sorted({*names_in(tuple([s.shape for s in seen if isinstance(s, Spec)])), *named_in(eq.op)})
        sizes = [self._numbers[n] if n in self._numbers else self.binder.size(self._open[n]) for n in needed]
        kernel = SizedKernel(eq.op, seen, needed, find)
        self.steps.append(Step(kernel, eq.operands, eq.results, many, eq, tuple(sizes)))

    def _part(self, value: Any, eq: Equation, operands: dict[int, str]) -> str:
        if value.__class__ is int:
            return str(value)
        return self._written(self.size(value, eq), operands)

    def _named(self, name: str, operands: dict[int, str]) -> str:
        number = self._numbers.get(name)
        return self._written(self.binder.size(self._open[name]) if number is None else number, operands)

    @staticmethod
    def _written(place: BindingIndex | int, operands: dict[int, str]) -> str:
        if isinstance(place, BindingIndex):
            return f"Z[{place.at}]"
        return operands.setdefault(place, f"{{{len(operands)}}}")

    def _new(self) -> int:
        self._fresh += 1
        return self._fresh


class SizedKernel:
    """The kernel of an op, made for the concrete sizes of a call and cached by them.

    Args:
        op: the op, with symbolic sizes.
        seen: specs of the operands, or classes of Python scalars.
        names: names of the sizes that are passed after the operands.
        find: makes the kernel of an op for concrete operands.
    """

    def __init__(
        self,
        op: Op,
        seen: tuple[Seen, ...],
        names: Sequence[str],
        find: Callable[[Op, tuple[Seen, ...]], Callable[..., Any]],
    ) -> None:
        self.op, self.seen, self.names, self.find, self.count = op, seen, names, find, len(seen)
        self.kernels: dict[tuple[int, ...], Callable[..., Any]] = {}

    def __call__(self, *args: Any) -> Any:
        count = self.count
        kernel = self.kernels.get(args[count:])
        if kernel is None:
            kernel = self._made(args[count:])
        return kernel(*args[:count])

    def _made(self, numbers: tuple[int, ...]) -> Callable[..., Any]:
        if len(self.kernels) >= MAX_KERNELS_PER_STEP:
            self.kernels.clear()
        sizes = dict(zip(self.names, numbers, strict=True))
        seen = [
            s.with_(shape=tuple([evaluate(d, sizes) for d in s.shape])) if isinstance(s, Spec) else s for s in self.seen
        ]
        kernel = self.kernels[numbers] = self.find(substituted(self.op, sizes), tuple(seen))
        return kernel


class Definition:
    """The step that assigns a size its value, after checking its bounds and guards.

    Args:
        size: the size.
        guards: guards over this size and others that are already known.
        names: names of the others, whose values are passed if there are guards.
        spec: spec of the array that holds the value.
        where: the user's line that turned the value into a size.
    """

    def __init__(self, size: Dim, guards: Sequence[Guard], names: Sequence[str], spec: Spec, where: str) -> None:
        self.size, self.guards, self.names, self.where = size, guards, names, where
        self.elsewhere = None if spec.place.on_host else spec

    def __call__(self, k: Any, *others: int) -> tuple[Any, int]:
        number = int(k) if self.elsewhere is None else self._downloaded(k)
        if number < 0 or (self.size.upper is not None and number > self.size.upper):
            self._refuse(number)
        if self.guards:
            sizes = {**dict(zip(self.names, others, strict=True)), str(self.size): number}
            for guard in self.guards:
                require(guard, sizes)
        return self._counted(k), number

    def _refuse(self, number: int) -> NoReturn:
        most = "" if self.size.upper is None else f" and at most {self.size.upper}"
        raise ShapeError(
            f"the size {self.size}{f' of {self.where}' if self.where else ''} is {number} in this call; it must be at "
            f"least 0{most}: bring the number into that range with clip before it becomes a size",
            size=str(self.size),
            value=number,
        )

    def _downloaded(self, k: Any) -> int:
        assert self.elsewhere is not None
        return int(get_backend(self.elsewhere.place.device.kind).download(k))

    def _counted(self, k: Any) -> Any:
        """The value as an array of 64-bit integers."""
        if self.elsewhere is None:
            return k if k.dtype is INT64 else k.astype(INT64)
        return catalog.convert(Tensor.wrap(k, self.elsewhere), dtype=INT64)._data
