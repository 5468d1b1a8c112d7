"""Compiled modules over raw arrays, with their error handling: on a device, and in main memory."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, NoReturn

import numpy as np

from tenferro_runtime.extension import NumericalError, Tensor
from tenferro_xla._jax_modules import scope_of_wide_numbers
from tenferro_xla._lower import StableHloModule


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
        """
        found = self._run(*raws, *self._constants)
        if not self._checked:
            return tuple(found)
        if found[-1]:
            self._fail(raws)
        return tuple(found[:-1])

    def _fail(self, raws: tuple[Any, ...]) -> NoReturn:
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
