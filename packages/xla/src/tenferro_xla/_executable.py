"""Compiled modules over raw arrays, with their error handling: on a device, and in main memory."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Any, Final, NoReturn

import numpy as np

from tenferro_runtime.extension import NumericalError, Program, Tensor
from tenferro_xla._jax_modules import scope_of_wide_numbers
from tenferro_xla._lower import StableHloModule, lowered

Run = Callable[..., tuple[Any, ...]]
"""A function of raw arrays."""


def executable_of(
    program: Program, platform: str, make: Callable[[StableHloModule], Run], *, optimistic: bool = True
) -> Run:
    """Compile a program that may run twice, first without what only rare values need.

    Args:
        program: a program of fixed sizes.
        platform: the platform to lower for.
        make: compiles a module.
        optimistic: False for a program that must not run twice.

    Returns:
        The executable.
    """
    module = lowered(program, platform, optimistic=optimistic)
    run = make(module)
    return Optimistic(run, lambda: make(lowered(program, platform))) if module.optimistic else run


class Missed(Exception):
    """An optimistic module met values that it leaves out, or failed."""


class Optimistic:
    """A program whose module leaves out what only rare values need, until these occur.

    Args:
        run: the executable of that module.
        whole: returns the executable of the whole program.
    """

    __slots__ = ("_run", "_whole")

    def __init__(self, run: Run, whole: Callable[[], Run]) -> None:
        self._run, self._whole = run, whole

    def __call__(self, *raws: Any) -> tuple[Any, ...]:
        """Run; after a miss, this and later calls run the whole program."""
        with suppress(Missed):
            return self._run(*raws)
        self._run = self._whole()
        return self._run(*raws)


class Executable:
    """A compiled module over JAX arrays.

    Args:
        module: the module; its program is placed in main memory.
        run: runs the module on JAX arrays.
        constants: JAX arrays that are passed after the arguments.
    """

    __slots__ = ("_checked", "_constants", "_module", "_run")

    def __init__(self, module: StableHloModule, run: Callable[..., Any], constants: tuple[Any, ...] = ()) -> None:
        self._module, self._run, self._constants = module, run, constants
        self._checked = module.checked

    def __call__(self, *raws: Any) -> tuple[Any, ...]:
        """Run; when a step fails, run the program again on the CPU backend, whose error names the step.

        Raises:
            NumericalError: a step failed.
            Missed: a step of an optimistic module failed.
        """
        found = self._run(*raws, *self._constants)
        if not self._checked:
            return tuple(found)
        if found[-1]:
            self._fail(raws)
        return tuple(found[:-1])

    def _fail(self, raws: tuple[Any, ...]) -> NoReturn:
        if self._module.optimistic:
            raise Missed
        given = (*raws, *self._constants)
        values = [Tensor.wrap(np.asarray(raw), s) for raw, s in zip(given, self._module.inputs, strict=True)]
        self._module.program.run(*values)
        raise NumericalError(
            "a step of the program failed in XLA, though the CPU backend runs it: a matrix is so close to being "
            "singular, indefinite or degenerate that rounding decides"
        )


class HostExecutable(Executable):
    """A compiled module over NumPy arrays.

    XLA shares the arguments' memory until the results are ready; reading the results waits for them.
    """

    __slots__ = ("_narrow", "_plain", "_wide")

    def __init__(self, module: StableHloModule, run: Callable[..., Any], constants: tuple[Any, ...] = ()) -> None:
        super().__init__(module, run, constants)
        self._wide, self._narrow = scope_of_wide_numbers(), all(s.dtype.itemsize < 8 for s in module.inputs)
        self._plain = not module.checked and len(module.outputs) == 1 and bool(module.outputs[0].ndim)

    def __call__(self, *raws: Any) -> tuple[Any, ...]:
        """Run, like `Executable`."""
        if self._narrow or getattr(self._wide, "value", False):  # entering the scope takes longer
            found = self._run(*raws, *self._constants)
        else:
            with self._wide(True):
                found = self._run(*raws, *self._constants)
        if self._plain:
            return (_asarray(found[0]),)
        arrays = [_asarray(x) for x in found]
        if self._checked and arrays.pop():
            self._fail(raws)
        return tuple([x if x.ndim else x[()] for x in arrays])


_asarray: Final = np.asarray
