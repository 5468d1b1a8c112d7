"""`native`: a `LoopFunction` as a callable of its sizes and of arrays."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from math import prod
from typing import Any, Final, NoReturn

import numpy as np

from tenferro_cpu.native._extension import compiled
from tenferro_cpu.native.codegen.machine._jit import compiles_programs, engine
from tenferro_cpu.native.codegen.whole._arena import arena_bytes, arena_slots
from tenferro_cpu.native.codegen.whole._checks import FIRST_FAULT, report
from tenferro_cpu.native.codegen.whole._render import NAME, render
from tenferro_cpu.native.codegen.whole._work import TEAM_MIN_WORK, nested, team_works
from tenferro_cpu.native.copying._copy import contiguous
from tenferro_cpu.native.memory import _pool
from tenferro_tensor import Op, Spec
from tenferro_tensor.backends import NativeProgram
from tenferro_tensor.checked import is_checked
from tenferro_tensor.loop_ir import Buffer, Call, LoopFunction, Statement, show
from tenferro_tensor_core import Dim, evaluate

LEVEL: Final = 1
"""Optimiser level of rendered functions."""

MAX_KERNELS: Final = 64
"""Maximum number of sizes for which one statement caches its kernel."""

Kernels = Callable[[Op, tuple[Spec, ...], tuple[Spec, ...]], Callable[..., Any]]


def native(
    function: LoopFunction, kernels: Kernels, *, bare: bool = False, otherwise: Callable[..., Any] | None = None
) -> NativeProgram | None:
    """Machine code of a function, or None if this process cannot compile.

    Args:
        function: what to compute.
        kernels: makes the kernel of an op for operands and results, for its `Call` statements.
        bare: return the only output itself instead of a tuple.
        otherwise: serves sizes that do not meet the requirements of the function.

    Returns:
        The callable, or None.

    Raises:
        UnsupportedError: it has no native form on this processor.
        CompileError: LLVM rejects it.
    """
    if not compiles_programs():
        return None
    words = RunWords(function, otherwise)
    words.small = otherwise is not None and bool(function.examples) and not words.needs_team(function.examples)
    return NativeProgram(_callable(function, _address(function, words.small), kernels, words, bare))


def with_outputs(function: LoopFunction) -> LoopFunction:
    """The function that is also given the arrays to write, as its last inputs.

    Args:
        function: any function.

    Returns:
        The function.
    """
    fresh = tuple([b for b in function.outputs if b not in function.inputs])
    return replace(function, inputs=(*function.inputs, *fresh))


def loaded(function: LoopFunction, address: int, kernels: Kernels) -> Callable[..., Any]:
    """A function whose machine code is loaded, as a callable of the tuple of its sizes and of its inputs.

    Args:
        function: what to compute.
        address: address of its code.
        kernels: as for `native`.

    Returns:
        The callable.
    """
    return _callable(function, address, kernels, RunWords(function))


def _callable(
    function: LoopFunction, address: int, kernels: Kernels, words: RunWords, bare: bool = False
) -> Callable[..., Any]:
    arrays = (*function.inputs, *function.outputs)
    pool = _pool.pool()
    run: Callable[..., Any] = compiled.WholeFunction(
        address=address,
        dtypes=tuple([b.dtype for b in arrays]),
        ranks=bytes([len(b.shape) for b in arrays]),
        inputs=len(function.inputs),
        sizes=len(function.sizes),
        constants=tuple([np.require(c, b.dtype, ("C", "A")) for b, c in function.constants]),
        calls=tuple([PythonCall(s, function.sizes, kernels).entry() for s in calls(function.body)]),
        prepare=words,
        memory=None if pool is None else pool._pool,
        contiguous=contiguous,
        bare=bare,
        over=np.array([_place(b, function) for b in function.outputs], np.int32).tobytes(),
    )
    return run


def _address(function: LoopFunction, small: bool) -> int:
    """The address of the code, which is cached on disk."""
    checked = is_checked()
    words = "\nchecked" * checked + "\nsmall" * small
    what = hashlib.sha256((show(function, where=False) + words).encode()).hexdigest()

    def text() -> str:
        made = render(function, engine().host, checked=checked, small=small)
        assert made.level == LEVEL and list(made.calls) == list(calls(function.body))
        return made.text

    return engine().rendered(what, NAME, text, LEVEL)


def calls(statements: Iterable[Statement]) -> Iterator[Call]:
    """The `Call` statements in order."""
    for s in statements:
        if isinstance(s, Call):
            yield s
        yield from calls(nested(s))


def _place(output: Buffer, function: LoopFunction) -> int:
    """0 if an output is new memory, otherwise the number, counted from 1, of the input whose memory it reuses."""
    return function.inputs.index(output) + 1 if output in function.inputs else 0


class RunWords:
    """The size-dependent data of a run, as words of `WholeFunction`, or what serves sizes that it must not run at.

    Args:
        function: the function.
        otherwise: serves those sizes.

    Attributes:
        small: whether the machine code has no chunks for a team.
    """

    def __init__(self, function: LoopFunction, otherwise: Callable[..., Any] | None = None) -> None:
        self.function, self.otherwise, self.small = function, otherwise, False
        # Made with the machine code, mostly in the background, and not by the first call at another size.
        self._slots = arena_slots(function)
        self._works = list(dict.fromkeys(team_works(function.body)))
        """Costs of nests that the team may share, unless they are certainly small."""

    def __call__(self, *values: int) -> bytes | Callable[..., Any]:
        sizes, f = self._named(values), self.function
        if not f.accepts(sizes):
            return self.otherwise or f.refuse(sizes)
        team = self.needs_team(sizes)
        if team and self.small and self.otherwise is not None:
            return self.otherwise
        blocks = [arena_bytes(self._slots, sizes), *[_bytes(b, sizes) for b in f.outputs if b not in f.inputs]]
        extents = [evaluate(d, sizes) for b in (*f.inputs, *f.outputs) for d in b.shape]
        total = sum(blocks) + sum([_bytes(b, sizes) for b in f.inputs])
        return np.array([blocks[0], total, max(blocks), team, *extents], np.int64).tobytes()

    def needs_team(self, sizes: Mapping[str, int]) -> bool:
        """Whether a nest is worth chunks at these sizes."""
        return any(evaluate(work, sizes) > TEAM_MIN_WORK for work in self._works)

    def failed(self, status: int, position: int, *values: int) -> NoReturn:
        """Raise the error of a run that ended with a status."""
        if status >= FIRST_FAULT:
            report(self.function, status, position, self._named(values))
        raise RuntimeError(f"a compiled program ended with the status {status}")

    def _named(self, values: tuple[int, ...]) -> dict[str, int]:
        return dict(zip(self.function.sizes, values, strict=True))


def _bytes(buffer: Buffer, sizes: dict[str, int]) -> int:
    return prod([evaluate(d, sizes) for d in buffer.shape]) * buffer.dtype.itemsize


class PythonCall:
    """A statement run by the kernel of its op, on views of the memory of the run."""

    def __init__(self, call: Call, names: tuple[str, ...], kernels: Kernels) -> None:
        self.call, self.names, self.make, self.count = call, names, kernels, len(call.operands)
        self.symbolic = call.op.symbolic or any(s.symbolic for s in call.ins)
        self.kernels: dict[tuple[int, ...], Callable[..., Any]] = {}

    def entry(self) -> tuple[Callable[..., None], tuple[np.dtype[Any], ...], bytes, int]:
        """Arguments for `WholeFunction`."""
        views = (*self.call.operands, *self.call.results)
        return self, tuple([v.buffer.dtype for v in views]), bytes([len(v.shape) for v in views]), self.count

    def __call__(self, sizes: tuple[int, ...], *arrays: np.ndarray[Any, Any]) -> None:
        try:
            kernel = self.kernels.get(sizes if self.symbolic else ())
            if kernel is None:
                kernel = self._made(sizes)
            found = kernel(*arrays[: self.count])
            results = arrays[self.count :]
            for to, x in zip(results, found if isinstance(found, tuple | list) else (found,), strict=True):
                to[...] = x
        except Exception as error:
            where = self.call.where
            error.add_note(f"in {self.call.op}" + (f", traced at {where}" if where else ""))
            raise

    def _made(self, sizes: tuple[int, ...]) -> Callable[..., Any]:
        if len(self.kernels) >= MAX_KERNELS:
            self.kernels.clear()
        known = dict(zip(self.names, sizes, strict=True))
        op = self.call.op
        if op.symbolic:
            op = op.primitive.op(**{k: _filled(v, known) for k, v in op.params.items()})
        ins = tuple([s.with_(shape=_filled(s.shape, known)) for s in self.call.ins])
        outs = op.infer(*ins)
        kernel = self.make(op, ins, (outs,) if isinstance(outs, Spec) else outs)
        self.kernels[sizes if self.symbolic else ()] = kernel
        return kernel


def _filled(value: Any, sizes: dict[str, int]) -> Any:
    if value.__class__ is tuple:
        return tuple([_filled(v, sizes) for v in value])
    return evaluate(value, sizes) if isinstance(value, Dim) else value
