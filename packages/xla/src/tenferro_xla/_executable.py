"""`Executable`: a compiled module over raw arrays, with its error handling."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tenferro_runtime.extension import NumericalError, Tensor
from tenferro_xla._jax_modules import wide_numbers
from tenferro_xla._lower import StableHloModule


class Executable:
    """A compiled module over raw arrays.

    Args:
        module: the module; its program is placed in main memory.
        run: runs the module on JAX arrays.
        constants: JAX arrays that are passed after the arguments.
        near: whether arguments and results are NumPy arrays.
    """

    __slots__ = ("_checked", "_constants", "_count", "_module", "_near", "_run", "_scalars")

    def __init__(
        self, module: StableHloModule, run: Callable[..., Any], constants: tuple[Any, ...] = (), *, near: bool
    ) -> None:
        self._module, self._run, self._constants, self._near = module, run, constants, near
        self._checked, self._count = module.checked, len(module.outputs)
        self._scalars = any(not s.ndim for s in module.outputs)

    def __call__(self, *raws: Any) -> tuple[Any, ...]:
        """Run; when a step fails, run the program again on the CPU backend, whose error names the step.

        Raises:
            NumericalError: a step failed.
        """
        if self._near:
            with wide_numbers():
                found = self._run(*raws, *self._constants)
        else:
            found = self._run(*raws, *self._constants)
        if self._checked:
            if bool(found[self._count]):
                self._fail(raws)
            found = found[: self._count]
        if not self._near:
            return tuple(found)
        # XLA shares the arguments' memory until the results are ready; reading the results waits for them.
        arrays = map(np.asarray, found)
        return tuple([x[()] for x in arrays]) if self._scalars else tuple(arrays)

    def _fail(self, raws: tuple[Any, ...]) -> None:
        given = (*raws, *self._constants)
        values = [Tensor.wrap(np.asarray(raw), s) for raw, s in zip(given, self._module.inputs, strict=True)]
        self._module.program.run(*values)
        raise NumericalError(
            "a step of the program failed in XLA, though the CPU backend runs it: a matrix is so close to being "
            "singular, indefinite or degenerate that rounding decides"
        )
