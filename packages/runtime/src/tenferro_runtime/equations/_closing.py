"""Functions as programs, closed over the outside values that they use."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from tenferro_runtime.ir import definitions, here
from tenferro_runtime.ir._program import Program
from tenferro_runtime.passes import optimise
from tenferro_runtime.tracing._staged import staged
from tenferro_tensor import Spec
from tenferro_tensor_core import UnsupportedError


class Closed(NamedTuple):
    """A function as a program.

    Attributes:
        program: takes the captured values, then the declared inputs.
        captured: the captured values, of any level.
    """

    program: Program
    captured: tuple[Any, ...]


def closed(what: str, f: Callable[[list[Any]], Sequence[Any]], specs: Sequence[Spec]) -> Closed:
    """Record a function of leaves.

    Operations on outside values only are not recorded, but run once.

    Args:
        what: name of the function, for errors.
        f: maps leaves to leaves.
        specs: specs of the leaves that it takes.

    Returns:
        The program and the captured values.

    Raises:
        UnsupportedError: the function makes arrays of data-dependent sizes.
    """
    program, captured, _ = staged(lambda *xs: f(list(xs)), specs)
    if definitions(program):
        raise UnsupportedError(
            f"{what}{here()} makes an array whose size depends on data ({', '.join(definitions(program))}); keep the "
            "full extent there and mask, where(mask, x, 0) instead of compress(x, mask)"
        )
    ids, count = program.input_ids, len(specs)
    program = program.with_(input_ids=(*ids[count:], *ids[:count]))
    return Closed(optimise(program), captured)
