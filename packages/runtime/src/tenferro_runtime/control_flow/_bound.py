"""Programs that run as parts of a kernel: rendered once for all sizes, bound to those of a call."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from types import MappingProxyType
from typing import Any, Final

from tenferro_runtime.ir._program import Program
from tenferro_runtime.ir._sizes import occurring
from tenferro_runtime.running._execute import by_steps, device_of_program, lowered
from tenferro_runtime.running.rendering._render import render_open
from tenferro_tensor import get_backend
from tenferro_tensor_core import DimLike

Steps = tuple[Callable[..., Any], ...]

MAX_BOUND_SIZES: Final = 64
"""Number of combinations of sizes for which a kernel caches its bound programs."""


def sizes_in(programs: tuple[Program, ...]) -> tuple[DimLike, ...]:
    """The symbolic sizes of programs, in the order in which a kernel takes their values."""
    return tuple(occurring(*programs).values()) if any(p.symbolic for p in programs) else ()


def bound_steps(
    programs: tuple[Program, ...], donated: Mapping[int, tuple[int, ...]] = MappingProxyType({})
) -> Callable[[tuple[int, ...]], Steps]:
    """A function from the values of `sizes_in` to the programs as functions of raw arrays.

    Args:
        programs: the programs.
        donated: positions of inputs that each program may overwrite, by position of the program.
    """
    given = [donated.get(k, ()) for k in range(len(programs))]
    if not any(p.symbolic for p in programs):
        ready = tuple([by_steps(p, which) for p, which in zip(programs, given, strict=True)])
        return lambda sizes: ready
    names = tuple(occurring(*programs))
    forms = [render_open(lowered(p), names=names, donated=which) for p, which in zip(programs, given, strict=True)]
    homes = [device_of_program(p) for p in programs]
    known: dict[tuple[int, ...], Steps] = {}

    def at(sizes: tuple[int, ...]) -> Steps:
        steps = known.get(sizes)
        if steps is None:
            found = []
            for form, home in zip(forms, homes, strict=True):
                values, _, largest = form.bind(*sizes)
                found.append(partial(get_backend(home.kind).replayed(form.run, largest, home), values))
            if len(known) >= MAX_BOUND_SIZES:
                known.clear()
            steps = known[sizes] = tuple(found)
        return steps

    return at
