"""Machine code for matrices of at most eight rows and columns, tried before the ordinary kernels.

Exceptional cases are left to those: singular matrices, entries that are not finite.
"""

from collections.abc import Callable
from typing import Any, Final

from tenferro_runtime.extension import Spec, get_backend

ADJOINT: Final = 1
LOWER: Final = 2
UNIT: Final = 4
"""Flags of routines that solve equations."""

SMALL_MAX_SIZE: Final = 8
"""Largest extent of the matrices that the routines accept."""


def host_routine(name: str) -> Callable[..., Any] | None:
    """A routine of the CPU backend, if it has one."""
    return get_backend("cpu").routine(f"small.{name}")


def small_first(
    la: Any,
    name: str,
    ins: tuple[Spec, ...],
    run: Callable[..., Any],
    flags: int = 0,
    taken: slice = slice(None),
    fits: Callable[[Any], bool] | None = None,
) -> Callable[..., Any]:
    """A kernel that first tries the routine for small matrices, if there is one.

    Args:
        la: the provider.
        name: name of the routine.
        ins: operand specs.
        run: the kernel, called with all operands.
        flags: flags of the routine.
        taken: the operands that the routine takes.
        fits: whether the routine supports the call, given its first operand; shapes may be unknown before the call.
    """
    routine = la.routine(name)
    if routine is None or any(isinstance(n, int) and n > SMALL_MAX_SIZE for n in ins[0].shape[-2:]):
        return run

    def quickly(*raws: Any) -> Any:
        if fits is not None and not fits(raws[0]):
            return run(*raws)
        found = routine(*raws[taken], flags)
        return run(*raws) if found is None else found

    return quickly
