"""Cuts the work of a step into chunks for threads: along the batch, the rows or the columns, never within a sum."""

from math import prod
from typing import Final

from tenferro_cpu.native.contraction import tuning
from tenferro_cpu.native.contraction._microkernels import Microkernels
from tenferro_cpu.native.contraction._record import Step

STRIPS: Final = ("dot", "lanes")
SIDES: Final = ("rows", "columns")


def cut(code: Microkernels, step: Step, most: int) -> Step:
    """Cut the work into chunks: along the batch if it is long, otherwise along the longer side."""
    words = step.words
    flops = 2 * code.parts**2 * prod(step.sizes)
    touched = prod(step.sizes[:3]) + step.sizes[0] * step.sizes[3] * sum(step.sizes[1:3])
    pays = min(most, max(flops // tuning.THREAD_MIN_FLOPS, touched * code.item // tuning.THREAD_MIN_BYTES))
    sums = words["sums"]
    ways = [(words["batch"] // sums, 0, sums)]
    if step.kernel == "transpose":
        ways.append((-(-words["rows"] // code.width), 1, code.width))
    elif step.kernel.startswith("gemm"):
        ways += [
            (-(-words["rows"] // code.rows), 1, code.rows),
            (-(-words["columns"] // code.columns), 2, code.columns),
        ]
    elif step.kernel in STRIPS:
        ways += [(-(-words[side] // n), k + 1, n) for k, (side, n) in enumerate(zip(SIDES, code.strips[step.kernel]))]
    elif step.kernel == "blocks":
        ways.append((words["rows"] // words["row_block"], 1, words["row_block"]))
    if ways[0][0] >= 4 * most:
        ways = ways[:1]
    units, words["split"], words["unit"] = max(ways)
    words["units"], words["pieces"] = units, max(1, min(pays, units))
    return step
