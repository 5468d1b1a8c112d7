"""The checks of a compiler: each yields mistakes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from tenferro_ad._jacobian import hvp
from tenferro_ad._reverse import grad
from tenferro_ad.compiler_checks._checked import CheckedCompiler, leaves
from tenferro_ad.compiler_checks._programs import (
    CONTROL_FLOW,
    DONATED,
    LOSSES,
    NUMBERS,
    RESULTS,
    Elements,
    M,
    Trial,
    V,
    arithmetic,
    scalar_loss,
)
from tenferro_runtime import exp, sum, vmap
from tenferro_tensor.checking import LeftOut, close, identical
from tenferro_tensor_core import UnsupportedError

Compared = tuple[str, Any, Any, tuple[Elements, ...]]
"""A program in words, the compiled function, the function, and elements of its arguments."""


def results(subject: CheckedCompiler) -> Iterator[str]:
    """Check number, shapes, dtypes and values of results."""
    yield from cases(subject, RESULTS)


def dtypes(subject: CheckedCompiler) -> Iterator[str]:
    """Check numbers of every kind."""
    numbers = np.array([3, 0, 1, 3, 2])
    given = {name: numbers * (1 - 2j if "complex" in name else 1) for name in NUMBERS}
    yield from cases(subject, [Trial(f"{n} numbers", arithmetic, (x.astype(n),)) for n, x in given.items()])


def control_flow(subject: CheckedCompiler) -> Iterator[str]:
    """Check branches and loops."""
    yield from cases(subject, CONTROL_FLOW)


def repeatable(subject: CheckedCompiler) -> Iterator[str]:
    """Check that equal calls return equal bits, and that no call changes the result of another."""
    run = subject.compiled(lambda x, v: (x * v, exp(x), x @ v))
    try:
        first = run(subject.put(M.copy()), subject.put(V.copy()))
    except UnsupportedError as error:
        raise LeftOut(f"the compiler refuses its program: {error!s:.200}") from None
    before = leaves(first)
    if not all(map(identical, leaves(run(subject.put(M.copy()), subject.put(V.copy()))), before)):
        yield "two calls with equal arguments return different bits; an executable depends on its arguments alone"
    run(subject.put(M + 1.0), subject.put(V - 1.0))
    if not all(map(identical, leaves(first), before)):
        yield "a later call changes the result of an earlier one; return newly allocated memory from every call"


def layouts(subject: CheckedCompiler) -> Iterator[str]:
    """Check arguments in main memory that are not row-major."""
    if subject.device != "cpu":
        raise LeftOut(f"arguments on {subject.device} have the layout of that device")
    spread = np.zeros((6, 8))
    spread[::2, ::2] = M
    read_only = M.copy()
    read_only.flags.writeable = False
    given = {
        "read-only": read_only,
        "column-major": np.asfortranarray(M),
        "strided": spread[::2, ::2],
        "reversed": M[::-1, ::-1],
        "broadcast": np.broadcast_to(M[:1], M.shape),
    }
    yield from cases(subject, [Trial(f"a {name} argument", _uses_all, (array, V)) for name, array in given.items()])


def _uses_all(x: Any, v: Any) -> Any:
    return x * 2.0 + v, x @ v, sum(x, axis=0), x[1]


def shared_arguments(subject: CheckedCompiler) -> Iterator[str]:
    """Check arguments in the same memory."""
    whole = np.linspace(0.1, 1.2, 12)
    pairs = {"one array as two arguments": (whole, whole), "overlapping views": (whole[2:], whole[:-2])}
    programs = [Trial(what, lambda x, y: (x + 2.0 * y, x * y, y), pair) for what, pair in pairs.items()]
    yield from cases(subject, programs)


def donated_memory(subject: CheckedCompiler) -> Iterator[str]:
    """Check results that may take the memory of arguments, of one and of both."""
    supported = False
    for case in DONATED:
        for donate in ((0,), (0, 1)):
            given = [np.array(a, order="C") for a in case.arrays]
            want = leaves(case.f(*[subject.put(a.copy()) for a in given]))
            what = f"{case.what}, {'both' if len(donate) == 2 else 'the first'} donated"
            run = subject.compiled(case.f, donate=donate)
            try:
                out = run(*[subject.put(a.copy()) for a in given])
                got = leaves(out)
                run(*[subject.put(a + 1.0) for a in given])
            except UnsupportedError:
                continue
            except Exception as error:
                yield f"{what}: {type(error).__name__} ({str(error)[:300]})"
                continue
            supported = True
            if not all(map(close, got, want)):
                yield f"{what}: wrong results; read arguments before their memory is overwritten"
            elif not all(map(identical, leaves(out), got)):
                yield f"{what}: a later call changes the results; only memory that is donated in that call is reused"
    if not supported:
        raise LeftOut("the compiler refuses its programs")


def sizes(subject: CheckedCompiler) -> Iterator[str]:
    """Check one compiled function at several sizes."""

    def one(x: Any) -> Any:
        return x * 2.0 + 1.0, sum(x)

    def two(x: Any) -> Any:
        return x @ x.mT, x[:, ::-1], sum(x, axis=1)

    ones, twos = [(3,), (5,), (0,), (1,), (3,)], [(2, 3), (0, 3), (3, 0), (1, 1), (2, 3)]
    cases = [(f"a function of the shapes {shapes}", f, shapes) for f, shapes in ((one, ones), (two, twos))]
    yield from at_shapes(subject, cases, _numbered)


def at_shapes(
    subject: CheckedCompiler,
    cases: Sequence[tuple[str, Callable[[Any], Any], Sequence[tuple[int, ...]]]],
    numbers: Callable[[tuple[int, ...]], Elements],
) -> Iterator[str]:
    """The differences of named functions, each compiled once, at one shape of their argument after the other."""
    runs = [(what, subject.compiled(f), f, shapes) for what, f, shapes in cases]
    yield from compared(
        subject,
        [(f"{what}, at {shape}", run, f, (numbers(shape),)) for what, run, f, shapes in runs for shape in shapes],
    )


def _numbered(shape: tuple[int, ...]) -> Elements:
    return np.arange(1.0, 1.0 + np.prod(shape)).reshape(shape)


def derivatives(subject: CheckedCompiler) -> Iterator[str]:
    """Check derivatives of compiled functions, and compiled derivatives."""
    runs: list[Compared] = []
    for what, f in LOSSES:
        along = _along(f)
        runs += [
            (f"the gradient of {what}, compiled", subject.compiled(grad(f)), grad(f), (M,)),
            (f"the gradient of {what}, which is compiled", grad(subject.compiled(f)), grad(f), (M,)),
            (f"a Hessian product of {what}, compiled", subject.compiled(along), along, (M,)),
        ]
    yield from compared(subject, runs)


def _along(f: Any) -> Any:
    return lambda x: hvp(f, (x,), (x * 0.5 + 1.0,))


def batches(subject: CheckedCompiler) -> Iterator[str]:
    """Check vmap of compiled functions, and compiled batches."""
    f, slope = vmap(scalar_loss), vmap(grad(scalar_loss))
    yield from compared(
        subject,
        [
            ("a compiled function under vmap", vmap(subject.compiled(scalar_loss)), f, (M,)),
            ("a batch, compiled", subject.compiled(f), f, (M,)),
            ("a batch of gradients, compiled", subject.compiled(slope), slope, (M,)),
        ],
    )


def cases(subject: CheckedCompiler, cases: Iterable[Trial]) -> Iterator[str]:
    """The mistakes in programs, each compiled for itself."""
    yield from compared(subject, [(case.what, subject.compiled(case.f), case.f, case.arrays) for case in cases])


def compared(subject: CheckedCompiler, runs: Sequence[Compared]) -> Iterator[str]:
    """The differences between compiled functions and functions; left out if the compiler refuses all of them."""
    refused = []
    for what, run, f, arrays in runs:
        try:
            yield from subject.compare(what, run, f, arrays)
        except UnsupportedError as error:
            refused.append(str(error))
    if len(refused) == len(runs):
        raise LeftOut(f"the compiler refuses all of its programs: {refused[0]:.200}")
