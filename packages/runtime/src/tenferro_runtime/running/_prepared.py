"""`PreparedProgram`: a program prepared for sizes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from tenferro_runtime.running.rendering._render import Direct
from tenferro_tensor import Spec


class PreparedProgram(NamedTuple):
    """A program prepared for sizes.

    Attributes:
        run: ``run(values, *raws)``.
        values: the tuple Z of the sizes.
        outputs: specs of the outputs.
        direct: the only step of the program, if calling that step is enough.
    """

    run: Callable[..., Any]
    values: tuple[Any, ...]
    outputs: tuple[Spec, ...]
    direct: Direct | None


Prepare = Callable[[tuple[int, ...]], PreparedProgram]
"""Prepares a program for sizes."""
