"""Checks of what a compiler does beside its results: effects, guards, threads, errors; each yields mistakes."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Final

import numpy as np

from tenferro_ad.compiler_checks._checked import CheckedCompiler, leaves
from tenferro_ad.compiler_checks._checks import at_shapes
from tenferro_ad.compiler_checks._programs import EFFECTS, Elements, M, V
from tenferro_runtime import exp, sum, tanh
from tenferro_runtime.extension import REGISTRY, NumericalError, Primitive, Spec
from tenferro_tensor.checking import LeftOut, close
from tenferro_tensor_core import UnsupportedError

THREADS: Final = 4
"""Number of threads that call one executable."""


def effects(subject: CheckedCompiler) -> Iterator[str]:
    """Check that debug callbacks take place once each time they are reached, in order, with the right values."""
    refused = []
    for what, f, arrays in EFFECTS:
        want: list[Any] = []
        f(want.append, *[subject.put(a) for a in arrays])
        seen: list[Any] = []
        run = subject.compiled(lambda *xs, f=f, seen=seen: f(seen.append, *xs))
        try:
            for call in (1, 2):
                seen.clear()
                leaves(run(*[subject.put(a) for a in arrays]))
                if len(seen) != len(want) or not all(map(close, seen, want)):
                    yield (
                        f"{what}, call {call}: callbacks see {_few(seen)}, and by single operations {_few(want)}; run "
                        "steps with effects once, in the order of the program, also if nobody reads their results"
                    )
                    break
        except UnsupportedError as error:
            refused.append(str(error))
        except Exception as error:
            yield f"{what} raises {type(error).__name__} ({error!s:.300}); run it, or refuse it in executable()"
    if len(refused) == len(EFFECTS):
        raise LeftOut(f"the compiler refuses all of its programs: {refused[0]:.200}")


def _few(arrays: list[Elements]) -> str:
    return ", ".join([np.array2string(a, precision=3, threshold=2, edgeitems=1) for a in arrays]) or "nothing"


def guards(subject: CheckedCompiler) -> Iterator[str]:
    """Check functions that do something else at other sizes: each program is for the sizes that it was made for."""

    def by_size(x: Any) -> Any:
        return tanh(x) * 2.0 + x if x.shape[0] > 3 else (x - 1.0) * x + 2.0

    def by_equality(x: Any) -> Any:
        return exp(x) * x if x.shape[0] == x.shape[1] else x * x + 1.0

    by_sizes = [(5,), (2,), (4,), (3,), (0,), (5,)]
    by_equalities = [(2, 3), (2, 2), (3, 2), (3, 3), (0, 0), (2, 3)]
    cases = [
        (f"a function that depends on sizes, {f.__name__}", f, shapes)
        for f, shapes in ((by_size, by_sizes), (by_equality, by_equalities))
    ]
    yield from at_shapes(subject, cases, _counted)


def _counted(shape: tuple[int, ...]) -> Elements:
    return np.linspace(0.1, 0.9, int(np.prod(shape))).reshape(shape)


def threads(subject: CheckedCompiler) -> Iterator[str]:
    """Check calls of one executable from several threads at once."""

    def f(x: Any) -> Any:
        return tanh(x * 0.1) + x, sum(x * x, axis=0), x @ x.mT

    run, start = subject.compiled(f), threading.Barrier(THREADS)
    arrays = [M + 10.0 * k for k in range(THREADS)]
    try:
        run(subject.put(M.copy()))
    except UnsupportedError as error:
        raise LeftOut(f"the compiler refuses its program: {error!s:.200}") from None
    want = [leaves(f(subject.put(a))) for a in arrays]

    def call(k: int) -> int:
        """The number of calls with wrong results."""
        start.wait(60)
        return [all(map(close, leaves(run(subject.put(arrays[k]))), want[k])) for _ in range(50)].count(False)

    with ThreadPoolExecutor(THREADS) as pool:
        for k, wrong in enumerate(pool.map(call, range(THREADS))):
            if wrong:
                yield f"{wrong} of 50 calls in thread {k} have wrong results; let no two calls share memory"


def root_of_check(x: Spec) -> Spec:
    """Square roots of numbers that are not negative."""
    return x


_ROOT: Final = Primitive(root_of_check, family="nobody.root_of_check.v1")


def errors(subject: CheckedCompiler) -> Iterator[str]:
    """Check a step that the compiler cannot know, and whose kernel may fail."""
    kind = subject.put(V).device.kind

    def root(x: Any) -> Any:
        if (x < 0).any():
            raise NumericalError("root_of_check: an element is negative")
        return x**0.5

    with REGISTRY.kernel(_ROOT, kind, lambda ins, outs: root):
        run = subject.compiled(lambda x: _ROOT.op()(x * 2.0) + 1.0)
        for array, fails in ((np.abs(V), False), (V, True), (np.abs(V), False)):
            try:
                (got,) = leaves(run(subject.put(array.copy())))
            except UnsupportedError as error:
                yield from _refusal(error, subject.lines)
                return
            except NumericalError:
                if not fails:
                    yield "a call fails after one that failed rightly; an error must not stay in the executable"
                continue
            except Exception as error:
                yield (
                    f"an operation that the compiler cannot know raises {type(error).__name__} ({str(error)[:300]}); "
                    "raise an UnsupportedError in executable(), or call its kernel and let its error pass"
                )
                return
            if fails:
                yield "a step whose kernel fails has a result; let the error of the kernel pass"
            elif not close(got, (array * 2.0) ** 0.5 + 1.0):
                yield "an operation that the compiler cannot know has a wrong result; raise an UnsupportedError"


def _refusal(error: UnsupportedError, lines: list[str]) -> Iterator[str]:
    text = "\n".join([str(error), *getattr(error, "__notes__", ())])
    if "root_of_check" not in text:
        yield f"an operation without a form in the compiler is refused by {error}; name the operation"
    elif not any(line in text for line in lines):
        yield f"an operation is refused by {error}, without the line of the user; add `Equation.where`, {lines[0]}"
