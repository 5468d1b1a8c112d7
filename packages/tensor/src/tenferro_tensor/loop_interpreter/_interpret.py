"""`interpret`: the executable semantics of a `LoopFunction`, in plain Python over NumPy arrays.

Every renderer is tested against it. It is slow, checks each index, and fills undefined memory with a conspicuous value.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import as_strided

from tenferro_tensor._host_kernel import host_kernel
from tenferro_tensor._primitive import Op
from tenferro_tensor._registry import REGISTRY
from tenferro_tensor._spec import Spec
from tenferro_tensor.checked import poison
from tenferro_tensor.loop_interpreter._fortran import call_fortran, call_routine
from tenferro_tensor.loop_ir._affine import INDEX, Affine
from tenferro_tensor.loop_ir._arena import ArenaPlan
from tenferro_tensor.loop_ir._errors import LoopIRError
from tenferro_tensor.loop_ir._function import LoopFunction
from tenferro_tensor.loop_ir._nodes import (
    Buffer,
    Call,
    Carried,
    For,
    Foreign,
    Let,
    Literal,
    Load,
    Position,
    Statement,
    Store,
    Switch,
    Value,
    View,
    While,
)
from tenferro_tensor.loop_ir._text import declared, head
from tenferro_tensor_core import Dim, DimLike, UnsupportedError, evaluate

Flat = np.ndarray[tuple[int], np.dtype[Any]]


def interpret(
    function: LoopFunction, inputs: Sequence[Any], sizes: Sequence[int] = (), arena: ArenaPlan | None = None
) -> list[np.ndarray[Any, Any]]:
    """Run a function in Python and return its outputs.

    Args:
        function: the function.
        inputs: one array for each input; they are not modified.
        sizes: values of ``function.sizes``.
        arena: memory plan of the temporaries; by default each has its own memory.

    Returns:
        The outputs in order.

    Raises:
        LoopIRError: an argument does not match, an index is out of bounds, or an op returns another dtype than
            recorded.
        UnsupportedError: an op has no kernel in main memory.
    """
    if len(inputs) != len(function.inputs) or len(sizes) != len(function.sizes):
        raise LoopIRError(
            f"the function takes {len(function.inputs)} inputs and {len(function.sizes)} sizes, "
            f"got {len(inputs)} and {len(sizes)}"
        )
    run = _Interpreter(dict(zip(function.sizes, map(int, sizes), strict=True)))
    with np.errstate(all="ignore"):
        given = [*zip(function.inputs, inputs, strict=True), *function.constants]
        run.memory = {buffer.number: run.read_only(buffer, np.asarray(a)) for buffer, a in given}
        outputs = [run.memory.get(b.number, run.undefined(b)) for b in function.outputs]
        for flat in outputs:
            flat.flags.writeable = True  # including outputs that reuse a donated input, which is a copy here
        run.memory.update((b.number, flat) for b, flat in zip(function.outputs, outputs, strict=True))
        slots = [np.empty(evaluate(n, run.sizes), np.uint8) for n in (() if arena is None else arena.slots)]
        for b in function.temporaries:
            run.memory[b.number] = run.undefined(b, None if arena is None else slots[arena.slot_of[b.number]])
        run.all(function.body)
        # Return the caller's memory: swaps rebind names, but results are expected where the caller put them.
        return [flat.reshape(run.shape(b.shape)) for b, flat in zip(function.outputs, outputs, strict=True)]


class _Interpreter:
    """One run of a function.

    Attributes:
        sizes: values of the symbolic sizes.
        memory: current memory of each buffer, by number.
        registers: values by number.
    """

    def __init__(self, sizes: Mapping[str, int]) -> None:
        self.sizes = sizes
        self.memory: dict[int, Flat] = {}
        self.registers: dict[int, Any] = {}
        self._kernels: dict[Any, Callable[..., Any]] = {}

    def shape(self, shape: tuple[DimLike, ...]) -> tuple[int, ...]:
        return tuple([evaluate(d, self.sizes) for d in shape])

    def read_only(self, buffer: Buffer, array: np.ndarray[Any, Any]) -> Flat:
        shape = self.shape(buffer.shape)
        if array.shape != shape or array.dtype != buffer.dtype:
            raise LoopIRError(f"{declared(buffer)} is given {array.dtype.name}{list(array.shape)}")
        flat = array.flatten()
        flat.flags.writeable = False
        return flat

    def undefined(self, buffer: Buffer, memory: np.ndarray[Any, Any] | None = None) -> Flat:
        size = math.prod(self.shape(buffer.shape))
        flat = np.empty(size, buffer.dtype)
        if memory is not None:
            flat = memory[: flat.nbytes].view(buffer.dtype)
        flat[...] = poison(buffer.dtype)
        return flat

    def all(self, statements: Sequence[Statement]) -> None:
        for statement in statements:
            self.one(statement)

    def one(self, s: Statement) -> None:
        match s:
            case Let(result, op, args):
                values = [self.value(v) for v in args]
                self.set(s, result.number, self.element(op, args, result.dtype)(*values), result.dtype)
            case Position(result, index):
                self.registers[result.number] = INDEX.type(self.index(index))
            case Load(result, buffer, at):
                self.set(s, result.number, self.memory[buffer.number][self.place(s, buffer, at)], result.dtype)
            case Store(buffer, at, value):
                self.memory[buffer.number][self.place(s, buffer, at)] = self.value(value)
            case For():
                self.count(s)
            case While():
                self.repeat(s)
            case Switch(index, cases, results):
                case_ = cases[min(max(int(self.value(index)), 0), len(cases) - 1)]
                self.all(case_.body)
                for reg, value in zip(results, [self.value(v) for v in case_.values], strict=True):
                    self.set(s, reg.number, value, reg.dtype)
            case Call():
                self.call(s)
            case Foreign():
                self.foreign(s)

    def count(self, s: For) -> None:
        extent = evaluate(s.extent, self.sizes)
        if extent < 0:
            raise LoopIRError(f"{head(s)} the extent is {extent}")
        self.begin(s.carries)
        for i in range(extent):
            self.registers[s.index.number] = INDEX.type(i)
            self.all(s.body)
            self.step(s)
        self.end(s.carries)

    def repeat(self, s: While) -> None:
        most = None if s.most is None else evaluate(s.most, self.sizes)
        self.begin(s.carries)
        i = 0
        while most is None or i < most:
            self.registers[s.index.number] = INDEX.type(i)
            self.all(s.test)
            if not self.value(s.condition):
                break
            self.all(s.body)
            self.step(s)
            i += 1
        self.end(s.carries)

    def begin(self, carries: Sequence[Carried]) -> None:
        self.assign([(c.inside.number, c.first) for c in carries])

    def step(self, s: For | While) -> None:
        self.assign([(c.inside.number, c.following) for c in s.carries])
        for a, b in s.swaps:
            self.memory[a.number], self.memory[b.number] = self.memory[b.number], self.memory[a.number]

    def end(self, carries: Sequence[Carried]) -> None:
        self.assign([(c.result.number, c.inside) for c in carries])

    def assign(self, pairs: Sequence[tuple[int, Value]]) -> None:
        """Assign registers simultaneously: all values are read before the first assignment."""
        self.registers.update([(number, self.value(value)) for number, value in pairs])

    def value(self, value: Value) -> Any:
        return value.dtype.type(value.value) if isinstance(value, Literal) else self.registers[value.number]

    def set(self, s: Statement, number: int, value: Any, dtype: np.dtype[Any]) -> None:
        if value.dtype != dtype:
            raise LoopIRError(f"{head(s)} is {value.dtype.name}")
        self.registers[number] = value

    def index(self, index: Affine) -> int:
        value = index.evaluate({r.number: int(self.registers[r.number]) for r, _ in index.terms}, self.sizes)
        return (value + 2**63) % 2**64 - 2**63

    def place(self, s: Statement, buffer: Buffer, at: Affine) -> int:
        i, size = self.index(at), self.memory[buffer.number].size
        if not 0 <= i < size:
            raise LoopIRError(f"{head(s)} leaves {declared(buffer)}: element {i} of {size}", index=i, size=size)
        return i

    def element(self, op: Op, args: tuple[Value, ...], out: np.dtype[Any]) -> Callable[..., Any]:
        key = op, tuple([v.dtype for v in args])
        kernel = self._kernels.get(key)
        if kernel is None:
            run = self.kernel(op, tuple([Spec((), v.dtype) for v in args]), (Spec((), out),))
            kernel = self._kernels[key] = lambda *values: np.asarray(run(*values))[()]
        return kernel

    def kernel(self, op: Op, ins: tuple[Spec, ...], outs: tuple[Spec, ...]) -> Callable[..., Any]:
        found = host_kernel(op, ins, outs)
        if found is None:
            make = REGISTRY.find("kernel", op.primitive, "*")
            if make is None:
                raise UnsupportedError(f"{op.primitive.name} has no kernel in main memory", primitive=op.primitive.name)
            found = make(ins, outs, **op.params)
        return found

    def call(self, s: Call) -> None:
        op = s.op.primitive.op(**{k: self.filled(v) for k, v in s.op.params.items()}) if s.op.symbolic else s.op
        ins = tuple([spec.with_(shape=self.shape(spec.shape)) for spec in s.ins])
        inferred = op.infer(*ins)
        outs = (inferred,) if isinstance(inferred, Spec) else inferred
        got = self.kernel(op, ins, outs)(*[self.view(s, v) for v in s.operands])
        for view, array in zip(s.results, got if isinstance(got, tuple | list) else (got,), strict=True):
            self.view(s, view)[...] = array

    def foreign(self, s: Foreign) -> None:
        given: list[Any] = []
        for a in s.arguments:
            if isinstance(a, View):
                self.view(s, a)  # checks that all of it is inside its buffer
                given.append(self.memory[a.buffer.number][self.index(a.at) :])
            else:
                given.append(a if isinstance(a, str) else self.value(a))
        info = call_routine(s.symbol, given) if "." in s.symbol else call_fortran(s.symbol, given, s.info is not None)
        if s.info is not None:
            self.registers[s.info.number] = INDEX.type(info)

    def filled(self, value: Any) -> Any:
        if value.__class__ is tuple:
            return tuple([self.filled(v) for v in value])
        return evaluate(value, self.sizes) if isinstance(value, Dim) else value

    def view(self, s: Statement, view: View) -> np.ndarray[Any, Any]:
        flat, shape = self.memory[view.buffer.number], self.shape(view.shape)
        strides, start = self.shape(view.strides), self.index(view.at)
        if math.prod(shape) == 0:
            return np.empty(shape, flat.dtype)
        ends = [(n - 1) * by for n, by in zip(shape, strides, strict=True)]
        low, high = start + sum(min(e, 0) for e in ends), start + sum(max(e, 0) for e in ends)
        if low < 0 or high >= flat.size:
            raise LoopIRError(f"{head(s)} leaves {declared(view.buffer)}: elements {low} to {high} of {flat.size}")
        return as_strided(flat[start:], shape, [by * flat.itemsize for by in strides], writeable=flat.flags.writeable)
