"""In which order operands are joined: paths by opt_einsum, kept in a bounded cache."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any

from tenferro_einsum._notation import Contraction
from tenferro_runtime.extension import BoundedCache
from tenferro_tensor_core import ArgumentError, DimLike, example_of

Path = tuple[tuple[int, ...], ...]

PATHS: BoundedCache[Any, Any] = BoundedCache("tenferro_einsum: paths", 1024)
"""Paths found, with their reports, by contraction, shapes and strategy."""

NOMINAL_EXTENT = 16
"""What an open extent without an example counts for in the search of a path; every path is right for all extents."""


def find_path(c: Contraction, shapes: Sequence[tuple[DimLike, ...]], optimize: Any) -> tuple[Path, Any]:
    """The order of pairwise contractions, and opt_einsum's report on it (``None`` for one or two operands).

    Args:
        c: the contraction.
        shapes: shapes of the operands.
        optimize: a strategy of opt_einsum (``"auto"``, ``"greedy"``, ``"optimal"``, ...), ``True`` for ``"auto"``,
            ``False`` for left to right, or an explicit path of position tuples.
    """
    if not isinstance(optimize, (bool, str)):
        return checked_path(optimize, len(c.inputs)), None
    if len(c.inputs) <= 2:
        return ((tuple(range(len(c.inputs))),) if c.inputs else ()), None
    if optimize is False:
        return tuple((0, 1) if i == 0 else (0, len(c.inputs) - 1 - i) for i in range(len(c.inputs) - 1)), None
    sizes = tuple([tuple(map(_counted, shape)) for shape in shapes])
    strategy = "auto" if optimize is True else optimize
    return PATHS.get_or_make((c, sizes, optimize), lambda: _search(c, sizes, strategy))  # type: ignore[no-any-return]


def _counted(d: DimLike) -> int:
    n = example_of(d)
    return NOMINAL_EXTENT if n is None else n


def _search(c: Contraction, sizes: Sequence[tuple[int, ...]], strategy: str) -> tuple[Path, Any]:
    import opt_einsum

    symbol: dict[Hashable, str] = {}
    for labels in c.inputs:
        for x in labels:
            symbol.setdefault(x, opt_einsum.get_symbol(len(symbol)))
    # A label repeated in the output costs nothing before the last step.
    text = ",".join("".join(symbol[x] for x in labels) for labels in c.inputs)
    text += "->" + "".join(symbol[x] for x in dict.fromkeys(c.output))
    try:
        path, report = opt_einsum.contract_path(text, *sizes, shapes=True, optimize=strategy)
    except KeyError as cause:
        raise ArgumentError(
            f"einsum: optimize={strategy!r} is no strategy of opt_einsum; "
            "'auto', 'greedy', 'optimal' and 'dp' are some",
            optimize=strategy,
        ) from cause
    return tuple(tuple(step) for step in path), report


def checked_path(path: Any, operands: int) -> Path:
    """An explicit path as tuples, if it leaves exactly one result.

    Raises:
        ArgumentError: a step names a position that does not exist, or operands are left over.
    """
    try:
        steps: Path = tuple(tuple(int(i) for i in step) for step in path if not isinstance(step, str))
    except TypeError as cause:
        raise ArgumentError(f"einsum: a path is a sequence of position tuples, got {path!r}") from cause
    left = operands
    for n, step in enumerate(steps):
        if not step or len(set(step)) < len(step) or not all(0 <= i < left for i in step):
            raise ArgumentError(
                f"einsum: step {n} of the path is {step}, but positions must be distinct and below {left} there", step=n
            )
        left -= len(step) - 1
    if left != 1:
        raise ArgumentError(f"einsum: the path leaves {left} operands of {operands}; it must end with one", left=left)
    return steps
