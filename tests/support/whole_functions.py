"""Hand-written `LoopFunction`s, and a runner of rendered ones."""

import ctypes
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from machine_code import level_of
from tenferro_cpu.native import engine
from tenferro_cpu.native.codegen.whole import NAME, arena_bytes, arena_slots, fortran_symbols, render
from tenferro_cpu.native.threads._team import team
from tenferro_tensor import Op, Primitive
from tenferro_tensor.loop_ir import (
    INDEX,
    Affine,
    Buffer,
    Call,
    Carried,
    For,
    Let,
    Literal,
    Load,
    LoopFunction,
    Order,
    Position,
    Reg,
    Role,
    Store,
    Switch,
    While,
)
from tenferro_tensor_core import UnsupportedError


def literal(value: Any, dtype: Any = "float64") -> Literal:
    """A number."""
    return Literal(value, np.dtype(dtype))


class Writing:
    """A `LoopFunction` under construction.

    >>> w = Writing()
    >>> x, y = w.input("float64", 3), w.output("float64", 3)
    >>> with w.loop(3) as i:
    ...     w.store(y, i, w.load(x, i))
    >>> [s.extent for s in w.function().body]
    [3]
    """

    def __init__(self, *sizes: str) -> None:
        self.sizes = sizes
        self.buffers: list[Buffer] = []
        self.contents: list[np.ndarray] = []
        self.body: list[Any] = []
        self.count = 0

    def reg(self, dtype: Any = INDEX) -> Reg:
        """A register that nothing sets yet."""
        self.count += 1
        return Reg(self.count - 1, np.dtype(dtype))

    def buffer(self, role: Role, dtype: Any, *shape: Any) -> Buffer:
        """A buffer."""
        self.buffers.append(Buffer(len(self.buffers), np.dtype(dtype), shape, role))
        return self.buffers[-1]

    def input(self, dtype: Any, *shape: Any) -> Buffer:
        return self.buffer(Role.INPUT, dtype, *shape)

    def output(self, dtype: Any, *shape: Any) -> Buffer:
        return self.buffer(Role.OUTPUT, dtype, *shape)

    def temporary(self, dtype: Any, *shape: Any) -> Buffer:
        return self.buffer(Role.TEMPORARY, dtype, *shape)

    def constant(self, value: np.ndarray) -> Buffer:
        self.contents.append(value)
        return self.buffer(Role.CONSTANT, value.dtype, *value.shape)

    def let(self, op: Op | Primitive, *args: Any, dtype: Any = None) -> Reg:
        """The result of an op; its dtype is that of the first operand where none is given."""
        result = self.reg(args[0].dtype if dtype is None else dtype)
        self.body.append(Let(result, op if isinstance(op, Op) else op.op(), args))
        return result

    def load(self, buffer: Buffer, at: Any) -> Reg:
        result = self.reg(buffer.dtype)
        self.body.append(Load(result, buffer, Affine.of(at)))
        return result

    def store(self, buffer: Buffer, at: Any, value: Any) -> None:
        self.body.append(Store(buffer, Affine.of(at), value))

    def position(self, index: Any) -> Reg:
        result = self.reg()
        self.body.append(Position(result, Affine.of(index)))
        return result

    def call(self, *args: Any, **more: Any) -> None:
        self.body.append(Call(*args, **more))

    @contextmanager
    def inside(self) -> Iterator[list[Any]]:
        """Statements go to a list of their own."""
        outer, self.body = self.body, []
        inner = self.body
        yield inner
        self.body = outer

    @contextmanager
    def loop(self, extent: Any, order: Order = Order.ANY, swaps: Sequence[Any] = ()) -> Iterator[Reg]:
        """A counted loop without carries."""
        index = self.reg()
        with self.inside() as body:
            yield index
        self.body.append(For(index, extent, tuple(body), (), order, tuple(swaps)))

    def fold(
        self,
        extent: Any,
        first: Sequence[Any],
        body: Callable[..., Sequence[Any]],
        order: Order = Order.GIVEN,
        swaps: Sequence[Any] = (),
    ) -> list[Reg]:
        """A counted loop with carries; `body` is given the index and the carries and returns the following ones."""
        index, ins = self.reg(), [self.reg(x.dtype) for x in first]
        with self.inside() as inner:
            following = body(index, *ins)
        results = [self.reg(x.dtype) for x in first]
        carries = tuple(map(Carried, ins, first, following, results))
        self.body.append(For(index, extent, tuple(inner), carries, order, tuple(swaps)))
        return results

    def loop_while(
        self,
        first: Sequence[Any],
        test: Callable[..., Any],
        body: Callable[..., Sequence[Any]],
        most: int | None = None,
        swaps: Sequence[Any] = (),
    ) -> list[Reg]:
        """A loop as long as `test` of the carries holds; `body` is given the index and the carries."""
        index, ins = self.reg(), [self.reg(x.dtype) for x in first]
        with self.inside() as testing:
            condition = test(*ins)
        with self.inside() as inner:
            following = body(index, *ins)
        results = [self.reg(x.dtype) for x in first]
        carries = tuple(map(Carried, ins, first, following, results))
        self.body.append(While(tuple(testing), condition, index, tuple(inner), carries, most, tuple(swaps)))
        return results

    def switch(self, index: Any, *bodies: Callable[[], Sequence[Any]]) -> list[Reg]:
        """A choice; each body returns its values."""
        from tenferro_tensor.loop_ir import Case

        cases = []
        for body in bodies:
            with self.inside() as inner:
                values = tuple(body())
            cases.append(Case(tuple(inner), values))
        results = [self.reg(v.dtype) for v in cases[0].values]
        self.body.append(Switch(index, tuple(cases), tuple(results)))
        return results

    def function(self) -> LoopFunction:
        """What was written."""
        of = {role: tuple([b for b in self.buffers if b.role is role]) for role in Role}
        constants = tuple(zip(of[Role.CONSTANT], self.contents, strict=True))
        return LoopFunction(
            self.sizes, of[Role.INPUT], of[Role.OUTPUT], constants, of[Role.TEMPORARY], tuple(self.body)
        )


POLL = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_void_p)
CALL = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_void_p, ctypes.c_int64, ctypes.c_void_p, ctypes.c_void_p)


PIECE = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int64)
PARALLEL_FOR = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64)


class Context(ctypes.Structure):
    """``struct tenferro_whole``."""

    _fields_ = [
        ("countdown", ctypes.c_int64),
        ("poll", POLL),
        ("call", CALL),
        ("parallel_for", ctypes.c_void_p),
        ("threads", ctypes.c_int64),
    ]


class Native:
    """A function rendered and compiled for this processor, or for one that differs from it as `machine` says.

    `small` is that of `render`.

    A test that needs it is skipped at the vector level whose code has no functions such as exp.
    """

    def __init__(
        self, function: LoopFunction, level: int | None = None, *, small: bool = False, **machine: Any
    ) -> None:
        self.function = function
        try:
            self.rendered = render(function, replace(engine().host, **machine), small=small)
        except UnsupportedError as missing:  # functions need fused multiply-add
            if engine().host.level != "generic":
                raise
            pytest.skip(str(missing))
        text = self.rendered.text
        symbols = fortran_symbols(self.rendered.foreign)
        chosen = level_of(self.rendered.level) if level is None else level
        self.address = engine().function(text, NAME, symbols, level=chosen)
        self.code = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p)(self.address)

    def run(
        self,
        *inputs: np.ndarray,
        sizes: Mapping[str, int] | None = None,
        poll: Callable[[], int] = lambda: 0,
        call: Callable[..., int] = lambda *_: 0,
        countdown: int = 1 << 40,
        threads: int = 1,
        parallel_for: Callable[[Callable[[int], None], int], None] | None = None,
    ) -> tuple[int, list[np.ndarray], Context]:
        """Status, outputs and context of one run."""
        f, sizes = self.function, sizes or {}

        def shape(buffer: Buffer) -> tuple[int, ...]:
            return tuple([d if isinstance(d, int) else d.evaluate(sizes) for d in buffer.shape])

        arrays = [np.require(x, b.dtype, "C") for x, b in zip(inputs, f.inputs, strict=True)]
        arrays += [np.ascontiguousarray(c) for _, c in f.constants]
        outputs = [np.full(shape(b), 77, b.dtype) for b in f.outputs]
        arena = np.full(arena_bytes(arena_slots(f), sizes) + 64, 0x5A, np.uint8)
        base = arena.ctypes.data + -arena.ctypes.data % 64
        addresses = [x.ctypes.data for x in [*arrays, *outputs]] + [base]
        pointers = (ctypes.c_void_p * len(addresses))(*addresses)
        values = (ctypes.c_int64 * max(1, len(f.sizes)))(*[sizes[name] for name in f.sizes])
        context = Context(countdown, POLL(lambda _: poll()), CALL(lambda _, *args: call(*args)))
        context.threads, crew = threads, team()

        def pieces(piece: int, arguments: int, count: int, _: int) -> None:
            assert parallel_for is not None
            parallel_for(lambda number: PIECE(piece)(arguments, number), count)

        own = PARALLEL_FOR(pieces)
        if parallel_for is not None:
            context.parallel_for = ctypes.cast(own, ctypes.c_void_p).value
        elif crew is not None:
            context.parallel_for = crew.symbols["tenferro_parallel_for"]
        return self.code(pointers, values, ctypes.byref(context)), outputs, context

    def __call__(self, *inputs: np.ndarray, sizes: Mapping[str, int] | None = None) -> list[np.ndarray]:
        status, outputs, _ = self.run(*inputs, sizes=sizes)
        assert status == 0
        return outputs
