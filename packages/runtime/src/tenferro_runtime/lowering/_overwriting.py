"""`overwriting`: outputs reuse the memory of donated inputs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from tenferro_runtime.lowering._rewriting import renamed, swapped
from tenferro_runtime.lowering.passes import Footprints, may_take_over
from tenferro_tensor.loop_ir import Buffer, LoopFunction


def overwriting(function: LoopFunction, donated: Sequence[int]) -> LoopFunction:
    """The function with donated inputs as outputs: it is called with arrays that it may overwrite.

    Args:
        function: the function.
        donated: positions of the donated inputs.
    """
    known: Footprints = {}
    free = [function.inputs[k] for k in donated]
    taken: dict[int, Buffer] = {}
    moving = swapped(function.body)
    for y in [b for b in function.outputs if free and b.number not in moving]:
        for x in free:
            if (x.dtype, x.shape) == (y.dtype, y.shape) and may_take_over(function.body, x.number, y.number, known):
                taken[y.number] = x
                free.remove(x)
                break
    if not taken:
        return function
    outputs = tuple([taken.get(y.number, y) for y in function.outputs])
    return replace(function, outputs=outputs, body=renamed(function.body, taken))
