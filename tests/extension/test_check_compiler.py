"""`check_compiler` finds a planted mistake of every kind, and passes our own compilers."""

import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tenferro_runtime as tr
from tenferro_ad.compiler_checks import check_compiler
from tenferro_cpu.native import available
from tenferro_runtime.compilers import ProgramCompiler
from tenferro_runtime.extension import Equation, Program, Spec, interpret
from tenferro_runtime.ir import has_effects
from tenferro_runtime.running import _execute, fusion
from tenferro_tensor.checking import CheckError
from tenferro_tensor_core import ArgumentError, NumericalError, UnsupportedError
from tenferro_xla import XlaCompiler

CHECKS = (
    "results", "dtypes", "repeatable", "layouts", "shared arguments", "donated memory", "sizes", "control flow",
    "derivatives", "batches", "effects", "guards", "threads", "errors",
)  # fmt: skip
Run = Callable[..., Any]


class Stepwise(ProgramCompiler):
    """Runs the steps one by one, rightly."""

    name = "stepwise"

    def executable(self, program: Program, donated: tuple[int, ...]) -> Run:
        def run(*raws: Any) -> tuple[Any, ...]:
            tensors = [tr.Tensor.wrap(raw, spec) for raw, spec in zip(raws, program.inputs, strict=True)]
            return tuple([out.data for out in interpret(program, tensors)])

        return run


class Native(ProgramCompiler):
    """The machine code that runs compiled functions by default, for programs that have some."""

    name = "native"

    def executable(self, program: Program, donated: tuple[int, ...]) -> Run:
        bare = Program(program.input_ids, program.constants, program.equations, program.output_ids, program.specs)
        form = _execute._native_form(bare, False, donated)
        if form is None:
            raise UnsupportedError(f"no machine code for {', '.join(eq.op.primitive.name for eq in program.equations)}")
        compiled = has_effects(program)  # such a program must not run twice

        def call(*raws: Any) -> Any:
            nonlocal compiled
            if not compiled:  # the first run is step by step
                run, sizes, _, _ = form(())
                run(sizes, *[np.array(raw) if np.ndim(raw) else raw for raw in raws])
                fusion.wait()
                compiled = True
            run, sizes, _, _ = form(())
            return run(sizes, *raws)

        return call


@pytest.mark.parametrize("compiler", [Stepwise(), XlaCompiler("cpu")], ids=lambda c: c.name)
def test_a_right_compiler_passes_every_check(compiler: ProgramCompiler) -> None:
    report = check_compiler(compiler)
    refused = {"effects"} if isinstance(compiler, XlaCompiler) else set()
    outcomes = [(name, "left out" if name in refused else "passed") for name in CHECKS]
    assert [(f.check, f.outcome) for f in report.findings] == outcomes


@pytest.mark.skipif(not available(), reason="needs machine code")
def test_machine_code_passes_every_check() -> None:
    before = fusion.kernel_stats()
    report = check_compiler(Native())
    assert [(f.check, f.outcome) for f in report.findings] == [(name, "passed") for name in CHECKS]
    native, by_steps = (fusion.kernel_stats()[state] - before[state] for state in ("native", "step by step"))
    assert native > 20 * by_steps


class Faulty(Stepwise):
    """A compiler with one mistake: `change` makes an executable of a right one."""

    name = "faulty"

    def __init__(self, change: Callable[[Run, Program, tuple[int, ...]], Any]) -> None:
        self.change = change

    def executable(self, program: Program, donated: tuple[int, ...]) -> Run:
        return self.change(super().executable(program, donated), program, donated)


def after(change: Callable[[tuple[Any, ...]], Any]) -> Callable[..., Run]:
    """A mistake in all results."""
    return lambda run, program, donated: lambda *raws: change(run(*raws))


def before(change: Callable[[tuple[Any, ...]], Any]) -> Callable[..., Run]:
    """A mistake in how arguments are read."""
    return lambda run, program, donated: lambda *raws: run(*change(raws))


def where(holds: Callable[[Program], bool]) -> Callable[..., Run]:
    """Zeros instead of the results of some programs."""

    def change(run: Run, program: Program, donated: tuple[int, ...]) -> Run:
        if not holds(program):
            return run
        return lambda *raws: tuple([np.zeros(shape(s), s.dtype) for s in program.outputs])

    return change


def shape(spec: Spec) -> tuple[int, ...]:
    return tuple([int(n) for n in spec.shape])  # type: ignore[arg-type]


def names(program: Program) -> set[str]:
    return {eq.op.primitive.name for eq in program.equations}


def writes(run: Run, program: Program, donated: tuple[int, ...]) -> Run:
    def call(*raws: Any) -> Any:
        out = run(*raws)
        if raws and isinstance(raws[0], np.ndarray) and raws[0].flags.writeable:
            raws[0][...] = 0
        return out

    return call


def keeps_its_buffers(run: Run, program: Program, donated: tuple[int, ...]) -> Run:
    buffers = [np.empty(shape(s), s.dtype) for s in program.outputs]

    def call(*raws: Any) -> Any:
        for buffer, out in zip(buffers, run(*raws)):
            buffer[...] = out
        return tuple(buffers)

    return call


def overwrites_early(run: Run, program: Program, donated: tuple[int, ...]) -> Run:
    """Writes the first result over the donated argument before it computes the others."""

    def call(*raws: Any) -> Any:
        first, *_ = run(*raws)
        for i in donated:
            if raws[i].shape == first.shape:
                raws[i][...] = first
                return (raws[i], *run(*raws)[1:])
        return run(*raws)

    return call


def overwrites_what_it_returns(run: Run, program: Program, donated: tuple[int, ...]) -> Run:
    """Puts the last result into a donated argument of its shape, of which another result may be a view."""

    def call(*raws: Any) -> Any:
        *others, last = run(*raws)
        for i in donated:
            if raws[i].shape == last.shape:
                raws[i][...] = last
                return (*others, raws[i])
        return (*others, last)

    return call


def from_the_end(raws: tuple[Any, ...]) -> list[Any]:
    """Takes a negative index as Python does, where there are three branches."""
    return [np.asarray(x % 3) if np.ndim(x) == 0 and np.asarray(x).dtype.kind == "i" and x < 0 else x for x in raws]


def wide_rows(run: Run, program: Program, donated: tuple[int, ...]) -> Run:
    """Stacks the rows of a scan in double precision."""
    if "scan" not in names(program):
        return run
    return lambda *raws: tuple([x.astype("f8") if x.dtype == np.float32 and x.ndim == 2 else x for x in run(*raws)])


def drifts() -> Callable[..., Run]:
    calls = iter(range(10**6))
    return after(lambda out: tuple([x + next(calls) if x.dtype.kind == "f" else x for x in out]))


def without_empty_arrays(run: Run, program: Program, donated: tuple[int, ...]) -> Run:
    def call(*raws: Any) -> Any:
        if not all(np.size(raw) for raw in raws):
            raise ValueError("an array has no elements")
        return run(*raws)

    return call


class OfOneSize(Stepwise):
    """Keeps the first executable of a program for all sizes."""

    name = "of one size"

    def __init__(self) -> None:
        self.first: dict[int, tuple[Run, Program]] = {}

    def executable(self, program: Program, donated: tuple[int, ...]) -> Run:
        run, old = self.first.setdefault(len(program.outputs), (super().executable(program, donated), program))

        def call(*raws: Any) -> Any:
            cut = [np.resize(raw, shape(s)) for raw, s in zip(raws, old.inputs)]
            return tuple([np.resize(x, shape(s)) for x, s in zip(run(*cut), program.outputs)])

        return call


class Rearranging(Stepwise):
    """Does what it likes with the steps that have effects."""

    name = "rearranging"

    def __init__(self, change: Callable[[list[Equation], list[Equation]], list[Equation]]) -> None:
        self.change = change

    def executable(self, program: Program, donated: tuple[int, ...]) -> Run:
        callbacks = [eq for eq in program.equations if eq.op.primitive.name == "debug_callback"]
        others = [eq for eq in program.equations if eq not in callbacks]
        return super().executable(program.with_(equations=tuple(self.change(others, callbacks))), donated)


class OfOneKind(Stepwise):
    """Takes programs of equal numbers of axes for equal."""

    name = "of one kind"

    def __init__(self) -> None:
        self.first: dict[Any, Program] = {}

    def executable(self, program: Program, donated: tuple[int, ...]) -> Run:
        axes = tuple([s.ndim for s in (*program.inputs, *program.outputs)])
        kept = self.first.setdefault((len(program.equations), axes), program)
        return lambda *raws: tuple([out.data for out in interpret(kept, [tr.asarray(raw) for raw in raws])])


def shares_memory(run: Run, program: Program, donated: tuple[int, ...]) -> Run:
    """Copies arguments to memory that all calls share, and runs on it a moment later."""
    places = [np.empty(shape(s), s.dtype) for s in program.inputs]

    def call(*raws: Any) -> Any:
        for place, raw in zip(places, raws):
            place[...] = raw
        time.sleep(1e-4)
        return run(*[place.copy() if place.ndim else place[()] for place in places])

    return call


def twice(run: Run, program: Program, donated: tuple[int, ...]) -> Run:
    def call(*raws: Any) -> Any:
        run(*raws)
        return run(*raws)

    return call


class Unknowing(Stepwise):
    """Raises an error of another type for operations that it does not know."""

    name = "unknowing"

    def __init__(self, error: Exception) -> None:
        self.error = error

    def executable(self, program: Program, donated: tuple[int, ...]) -> Run:
        if "root_of_check" in names(program):
            raise self.error
        return super().executable(program, donated)


def swallows(run: Run, program: Program, donated: tuple[int, ...]) -> Run:
    def call(*raws: Any) -> Any:
        try:
            return run(*raws)
        except NumericalError:
            return tuple([np.zeros(shape(s), s.dtype) for s in program.outputs])

    return call


def stays_broken(run: Run, program: Program, donated: tuple[int, ...]) -> Run:
    failures: list[NumericalError] = []

    def call(*raws: Any) -> Any:
        if failures:
            raise failures[0]
        try:
            return run(*raws)
        except NumericalError as error:
            failures.append(error)
            raise

    return call


def in_memory_order(raws: tuple[Any, ...]) -> list[Any]:
    """The elements of arrays as they lie in memory, strides or not."""
    return [np.ravel(x, order="K").reshape(x.shape) if np.ndim(x) > 1 else x for x in raws]


def as_row_of_base(raws: tuple[Any, ...]) -> list[Any]:
    """Elements from the address of an array on, as if it were contiguous and began where its memory does."""
    return [
        np.ravel(x.base)[: x.size].reshape(x.shape) if isinstance(getattr(x, "base", None), np.ndarray) else x
        for x in raws
    ]


def one_for_each_object(raws: tuple[Any, ...]) -> list[Any]:
    """Takes an array that comes twice for two, of which the second has not been filled."""
    seen: set[int] = set()
    found = [np.zeros_like(x) if id(x) in seen or seen.add(id(x)) else x for x in raws]
    return found


def zero_dimensional(out: tuple[Any, ...]) -> tuple[Any, ...]:
    return tuple([np.reshape(x, (1,)) if np.ndim(x) == 0 else x for x in out])


class Borrowing(Stepwise):
    """Claims to return no memory of arguments."""

    name, borrows = "borrowing", True


FAULTS: dict[str, tuple[str, ProgramCompiler, str]] = {
    "another shape": ("results", Faulty(after(lambda out: tuple([x[None] for x in out]))), "where the program says"),
    "an axis for a number": ("results", Faulty(after(zero_dimensional)), "where the program says"),
    "a list": ("results", Faulty(after(list)), "return a tuple"),
    "the result itself": ("results", Faulty(after(lambda out: out[0] if len(out) == 1 else out)), "return a tuple"),
    "too few results": ("results", Faulty(after(lambda out: out[:1])), "return a tuple"),
    "Python numbers": ("results", Faulty(after(lambda out: tuple([x.tolist() for x in out]))), "without shape"),
    "no function": ("results", Faulty(lambda run, program, donated: None), "return a function of raw arrays"),
    "borrowed memory": ("results", Borrowing(), "a result is memory of argument 0"),
    "wrong numbers": ("results", Faulty(where(lambda program: "sort" in names(program))), "by single operations"),
    "double precision": (
        "dtypes", Faulty(after(lambda out: tuple([x * 1.0 for x in out]))), "where the program says"
    ),
    "wrong integers": (
        "dtypes", Faulty(where(lambda p: p.inputs[0].dtype == np.uint8)), "by single operations"
    ),
    "other bits": ("repeatable", Faulty(drifts()), "return different bits"),
    "one buffer": ("repeatable", Faulty(keeps_its_buffers), "changes the result of an earlier one"),
    "a written argument": ("repeatable", Faulty(writes), "writes to argument 0"),
    "order of memory": ("layouts", Faulty(before(in_memory_order)), "by single operations"),
    "start of memory": ("layouts", Faulty(before(as_row_of_base)), "by single operations"),
    "views of one array": ("shared arguments", Faulty(before(as_row_of_base)), "overlapping views"),
    "one array twice": ("shared arguments", Faulty(before(one_for_each_object)), "one array as two arguments"),
    "memory taken early": ("donated memory", Faulty(overwrites_early), "read arguments before"),
    "memory taken from a view": (
        "donated memory", Faulty(overwrites_what_it_returns), "moved axes of a donated argument"
    ),
    "kept donated memory": ("donated memory", Faulty(keeps_its_buffers), "a later call changes the results"),
    "the first size": ("sizes", OfOneSize(), "at (5,)"),
    "no empty arrays": ("sizes", Faulty(without_empty_arrays), "at (0,) raises ValueError"),
    "a wrong branch": ("control flow", Faulty(where(lambda p: "cond" in names(p))), "the other branch"),
    "a branch from the end": ("control flow", Faulty(before(from_the_end)), "a branch before the first"),
    "wide rows": ("control flow", Faulty(wide_rows), "a scan of float32 numbers"),
    "a wrong loop": ("control flow", Faulty(where(lambda p: "scan" in names(p))), "a scan backwards"),
    "a wrong gradient": ("derivatives", Faulty(where(lambda p: len(p.equations) > 6)), "the gradient of"),
    "a wrong batch": (
        "batches", Faulty(where(lambda p: bool(p.outputs) and p.outputs[0].ndim > 0)), "a batch, compiled"
    ),
    "dropped effects": ("effects", Rearranging(lambda steps, effects: steps), "callbacks see nothing"),
    "effects in reverse": ("effects", Rearranging(lambda steps, effects: [*steps, *effects[::-1]]), "in a row, call 1"),
    "effects twice": ("effects", Faulty(twice), "once, in the order"),
    "the first branch": ("guards", OfOneKind(), "depends on sizes, by_size, at (2,)"),
    "shared memory": ("threads", Faulty(shares_memory), "let no two calls share memory"),
    "an error without a line": (
        "errors", Unknowing(UnsupportedError("root_of_check has no form")), "without the line of the user"
    ),
    "another error": ("errors", Unknowing(KeyError("root_of_check")), "raise an UnsupportedError"),
    "an error without a name": ("errors", Unknowing(UnsupportedError("a step is not known")), "name the operation"),
    "no error": ("errors", Faulty(swallows), "a step whose kernel fails has a result"),
    "an error that stays": ("errors", Faulty(stays_broken), "must not stay"),
}  # fmt: skip
"""A mistake, the check that finds it, a compiler that makes it, and a part of the finding."""


@pytest.mark.parametrize("fault", FAULTS)
def test_a_planted_mistake_is_found(fault: str) -> None:
    check, compiler, text = FAULTS[fault]
    with pytest.raises(CheckError) as caught:
        check_compiler(compiler, skip=[name for name in CHECKS if name != check])
    (finding,) = caught.value.report.failed
    assert finding.check == check
    assert any(text in mistake for mistake in finding.mistakes), finding.mistakes


def test_every_check_has_a_mistake_to_find() -> None:
    assert {check for check, _, _ in FAULTS.values()} == set(CHECKS)


def test_what_a_compiler_refuses_is_left_out() -> None:
    class Refusing(Stepwise):
        name = "refusing"

        def executable(self, program: Program, donated: tuple[int, ...]) -> Run:
            if names(program) & {"cond", "switch", "scan", "while_loop", "root_of_check"}:
                lines = ", ".join([eq.where for eq in program.equations])
                raise UnsupportedError(f"no form of {', '.join(names(program))} at {lines}")
            return super().executable(program, donated)

    report = check_compiler(Refusing())
    left_out = [f.check for f in report.findings if f.outcome == "left out"]
    assert (left_out, report.failed) == (["control flow"], ())
    assert "control flow      left out  the compiler refuses all of its programs: no form of" in repr(report)


def test_unknown_checks_and_compilers_are_refused() -> None:
    with pytest.raises(ArgumentError, match="check_compiler has no check speed; it has results, dtypes"):
        check_compiler(Stepwise(), skip=["speed"])
    with pytest.raises(ArgumentError, match="is not a compiler"):
        check_compiler(3)  # type: ignore[arg-type]
