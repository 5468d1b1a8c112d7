"""Values of symbolic sizes that a caller passes by name."""

from __future__ import annotations

from collections.abc import Mapping

from tenferro_runtime.ir._data_sizes import definitions
from tenferro_runtime.ir._program import Program
from tenferro_runtime.ir._sizes import substitute
from tenferro_tensor_core import ArgumentError, Dim


def filled(program: Program, sizes: Mapping[str, int]) -> Program:
    """The program with numbers for its symbolic sizes; itself if none are given, or if some depend on data.

    Raises:
        ArgumentError: some sizes are given and others not, or the program has no size of that name.
    """
    if not sizes:
        return program
    names = {n for spec in program.inputs for d in spec.shape if isinstance(d, Dim) for n in d.variables}
    if names != set(sizes):
        raise ArgumentError(
            f"the symbolic sizes of the program are {sorted(names) or 'none'}, but {sorted(sizes)} were given; "
            "give each of them, or none",
            sizes=tuple(sorted(names)),
        )
    return program if definitions(program) else substitute(program, sizes)
