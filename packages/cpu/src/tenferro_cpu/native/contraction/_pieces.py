"""Where threads cut the work of a step: along the batch, the rows or the columns, never within a sum."""

from math import prod
from typing import Final

from tenferro_cpu.native.contraction._code import Kind
from tenferro_cpu.native.contraction._record import Step
from tenferro_cpu.native.contraction._strip_text import most as most_of

PIECE_FLOPS: Final = 100_000
PIECE_BYTES: Final = 128 << 10
"""Work that pays for one more thread."""

STRIPS: Final = ("dot", "lanes")
SIDES: Final = ("rows", "columns")


def cut(kind: Kind, step: Step, most: int) -> Step:
    """Where threads cut the work: the batch where it is long, else the longer side."""
    words = step.words
    flops = 2 * kind.parts**2 * prod(step.sizes)
    touched = prod(step.sizes[:3]) + step.sizes[0] * step.sizes[3] * sum(step.sizes[1:3])
    pays = min(most, max(flops // PIECE_FLOPS, touched * kind.item // PIECE_BYTES))
    sums = words["sums"]
    ways = [(words["batch"] // sums, 0, sums)]
    if step.kernel == "turn":
        ways.append((-(-words["rows"] // kind.width), 1, kind.width))
    elif step.kernel.startswith("gemm"):
        ways += [
            (-(-words["rows"] // kind.rows), 1, kind.rows),
            (-(-words["columns"] // kind.columns), 2, kind.columns),
        ]
    elif step.kernel in STRIPS:
        ways += [(-(-words[side] // n), k + 1, n) for k, (side, n) in enumerate(zip(SIDES, most_of(kind, step.kernel)))]
    elif step.kernel == "blocks":
        ways.append((words["rows"] // words["row_block"], 1, words["row_block"]))
    if ways[0][0] >= 4 * most:
        ways = ways[:1]
    units, words["split"], words["unit"] = max(ways)
    words["units"], words["pieces"] = units, max(1, min(pays, units))
    return step
