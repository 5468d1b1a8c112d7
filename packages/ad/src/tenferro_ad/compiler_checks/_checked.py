"""The compiler under check: it compiles as always, and every call of its executables is watched."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

import numpy as np

from tenferro_runtime import compile, tree_leaves
from tenferro_runtime.compilers import ProgramCompiler
from tenferro_runtime.extension import Program
from tenferro_tensor import Spec, Tensor, tensor
from tenferro_tensor.checking import Mistake, close, copied, identical, shown
from tenferro_tensor_core import UnsupportedError

Raws = tuple[Any, ...]


class Watched(ProgramCompiler):
    """A compiler whose executables are held to the contract of `ProgramCompiler` in every call.

    Attributes:
        inner: the compiler under check.
        lines: lines of user code of the last program.
    """

    def __init__(self, inner: ProgramCompiler, lines: list[str]) -> None:
        self.inner, self.name, self.lines = inner, inner.name, lines

    def executable(self, program: Program, donated: tuple[int, ...]) -> Callable[..., Raws]:
        """See `ProgramCompiler`."""
        self.lines[:] = dict.fromkeys([eq.where for eq in program.equations])
        run = self.inner.executable(program, donated)
        if not callable(run):
            raise Mistake(f"executable() returned {run!r:.80}; return a function of raw arrays")

        def watched(*raws: Any) -> Raws:
            inputs = enumerate(zip(raws, program.inputs))
            given = {i: Tensor.wrap(x, s) for i, (x, s) in inputs if i not in donated}
            before = {i: copied(x) for i, x in given.items()}
            results = run(*raws)
            _require_specs(results, program.outputs)
            for i, old in before.items():
                if not identical(copied(given[i]), old):
                    raise Mistake(f"the executable writes to argument {i}, which is not donated; work on a copy")
                if self.inner.borrows and any(map(partial(_share, raws[i]), results)):
                    raise Mistake(f"a result is memory of argument {i}, which is borrowed; copy it, or unset `borrows`")
            return results

        return watched


def _share(x: Any, y: Any) -> bool:
    return isinstance(x, np.ndarray) and isinstance(y, np.ndarray) and np.shares_memory(x, y)


def _require_specs(results: Any, outputs: tuple[Spec, ...]) -> None:
    if results.__class__ is not tuple or len(results) != len(outputs):
        seen = f"a tuple of {len(results)}" if results.__class__ is tuple else f"{type(results).__name__}"
        raise Mistake(f"the executable returned {seen}, where the program has {len(outputs)} results; return a tuple")
    for i, (raw, spec) in enumerate(zip(results, outputs)):
        shape, dtype = getattr(raw, "shape", None), getattr(raw, "dtype", None)
        if shape is None or tuple(shape) != spec.shape or dtype != spec.dtype:
            seen = f"{type(raw).__name__} without shape" if shape is None else f"{dtype}{list(shape)}"
            raise Mistake(f"result {i} is {seen}, where the program says {spec!r}; return what program.outputs say")


class CheckedCompiler:
    """The compiler and where its arguments are.

    Attributes:
        compiler: the compiler under check.
        device: where arguments are put.
        lines: lines of user code of the program compiled last.
    """

    def __init__(self, compiler: ProgramCompiler, device: str) -> None:
        self.compiler, self.device = compiler, device
        self.lines: list[str] = []

    def put(self, array: np.ndarray[Any, Any]) -> Tensor:
        """An array on the device; in main memory with its layout."""
        if self.device == "cpu":
            return Tensor.wrap(array if array.ndim else array[()], Spec(array.shape, array.dtype))
        return tensor(array, device=self.device)

    def compiled(self, f: Callable[..., Any], **options: Any) -> Callable[..., Any]:
        """A function compiled by the compiler under check."""
        return compile(f, backend=Watched(self.compiler, self.lines), **options)

    def compare(
        self, what: str, run: Callable[..., Any], f: Callable[..., Any], arrays: Sequence[np.ndarray[Any, Any]]
    ) -> Iterator[str]:
        """Complain where a compiled function differs from the function run by single operations.

        Args:
            what: the program and its arguments, in words.
            run: the compiled function.
            f: the function.
            arrays: elements of the arguments.

        Raises:
            UnsupportedError: the compiler refuses the program.
        """
        with np.errstate(invalid="ignore"):  # some programs have roots of negative numbers that nobody uses
            want = leaves(f(*[tensor(a.copy(), device=self.device) for a in arrays]))
        try:
            with np.errstate(invalid="ignore"):
                got = leaves(run(*map(self.put, arrays)))
        except UnsupportedError:
            raise
        except Mistake as error:
            yield f"{what}: {error}"
            return
        except Exception as error:
            yield f"{what} raises {type(error).__name__} ({str(error)[:300]}); run it, or refuse it in executable()"
            return
        for i, (x, y) in enumerate(zip(got, want, strict=True)):
            if not close(x, y):
                yield f"{what}: result {i} is {shown(x)}, and by single operations {shown(y)}"


def leaves(out: Any) -> list[np.ndarray[Any, Any]]:
    """The elements of all arrays of a result."""
    return [copied(x) for x in tree_leaves(out)]
