"""Programs with inputs that they do not read, so that all branches or parts of a loop take the same ones."""

from collections.abc import Sequence

from tenferro_runtime.extension import Program, optimise
from tenferro_runtime.ir import applied
from tenferro_runtime.tracing import staged
from tenferro_tensor import Spec


def with_inputs(program: Program, specs: Sequence[Spec], places: Sequence[int]) -> Program:
    """The program as one of inputs `specs`, of which it reads those at `places`.

    Args:
        program: a program.
        specs: the inputs of the result.
        places: for each input of `program`, its position in `specs`.
    """
    return optimise(staged(lambda *xs: applied(program, [xs[at] for at in places]), specs).program)
