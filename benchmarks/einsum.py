"""Contractions of public benchmarks: tenferro beside NumPy, PyTorch and JAX, along the same paths.

    python3 dev run benchmarks/einsum.py [--quick] [--rounds N] [--threads N] [--only TEXT]
        [--skip TEXT ...] [--without X ...] [--dtype D] [--busy]

Instances and paths are those of data/einsum; medians in milliseconds, and how many times as long the others take.
With ``--busy``, for machines that are not quiet, the time is that of the processor, in all threads, and the least one
of all rounds.
"""

from __future__ import annotations

import json
from pathlib import Path

from contestants import Instance, Table, parser, prepare

DATA = Path(__file__).parents[1] / "data" / "einsum"


def instances(only: str) -> list[Instance]:
    """Every instance and strategy; once where strategies agree."""
    found: dict[tuple[object, ...], Instance] = {}
    for file in sorted(DATA.glob("*.json")):
        read = json.loads(file.read_text())
        subscripts = read.get("format_string_rowmajor") or read["format_string"]
        shapes = tuple(tuple(shape) for shape in read["shapes"])
        for strategy, path in read["paths"].items():
            steps = tuple(tuple(step) for step in path["path"])
            one = Instance(f"{file.stem} {strategy}", subscripts, shapes, steps)
            if only in one.name:
                found.setdefault((subscripts, shapes, steps), one)
    return list(found.values())


if __name__ == "__main__":
    chosen = parser(__doc__).parse_args()
    prepare(chosen)
    Table(chosen).run(instances(chosen.only))
