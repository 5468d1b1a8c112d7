"""The public functions `einsum`, `plan` and `contract_path`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import wraps
from typing import Any, ParamSpec

import numpy as np

from tenferro_einsum._contractible import stand_in
from tenferro_einsum._notation import Contraction, build, canonical, interleaved, parse
from tenferro_einsum._plan import ContractionPlan
from tenferro_einsum._report import PathReport
from tenferro_einsum._search import Progress, Search
from tenferro_einsum._tree import folded
from tenferro_runtime.extension import ArgumentError, BoundedCache, Op, UnsupportedError
from tenferro_runtime.progress import show_progress
from tenferro_tensor import SCALARS, Array, Spec, tensor
from tenferro_tensor.contractible import has_contractible, is_contractible
from tenferro_tensor_core import key_of, promote, result_type, weak
from tenferro_tensor_core.tracebacks import boundary, hide_frames

_P = ParamSpec("_P")

PLANS: BoundedCache[Any, ContractionPlan] = BoundedCache("tenferro_einsum: plans", 1024, recency=False)
"""Plans by subscripts, operand specs and strategy; once more by subscripts with canonical labels."""

PAIRS: BoundedCache[Any, Op | ContractionPlan] = BoundedCache("tenferro_einsum: fast paths", 1024, recency=False)
"""Contractions of two operands, by subscripts and specs: a single op, or a plan."""


def _in_one_step(contract: Callable[_P, Array]) -> Callable[_P, Array]:
    """Decorate `einsum` with the fast path for two operands whose contraction is known."""
    generic = boundary(contract)

    @wraps(contract)
    def call(*args: Any, **options: Any) -> Any:
        try:
            if len(args) == 3 and not options:
                try:
                    op = PAIRS.table.get((args[0], args[1].spec, args[2].spec))
                except (AttributeError, TypeError):  # operands that are not tensors, or labels in lists
                    op = None
                if op is not None:
                    return op(args[1], args[2]) if isinstance(op, Op) else op.run(args[1], args[2])
            return generic(*args, **options)
        except Exception as error:
            hide_frames(error)
            raise

    return call


@_in_one_step
def einsum(
    *args: Any,
    optimize: Any = "auto",
    time_limit: float | None = None,
    progress: bool | Progress = False,
    memory_budget: int | None = None,
) -> Array:
    """Sum of products over labeled axes, in any number of operands (Einstein, 1916).

    Each label names an axis. Axes with the same label share an index, and labels missing in the output are summed. A
    label may repeat within an operand (its diagonal), in the output (the result is embedded in that diagonal), and in
    any number of operands. Axes under an ellipsis broadcast, and so do extents of 1.

    Args:
        args: a subscripts string and operands, ``einsum("ij,jk->ik", x, y)``; or operands each followed by a list of
            hashable labels and, last, the output's labels, ``einsum(x, ["a", "b"], y, ["b", "c"], ["a", "c"])``.
            Without an output, the result has the labels that occur once, sorted. Parentheses in a string set the
            contraction order: ``"(ij,jk),kl->il"``. Python scalars take the dtype of the other operands.
            Sparse matrices (`SparseArray`) are operands too; the result is dense.
        optimize: the contraction order: a strategy of opt_einsum, ``"cotengra"``, ``False`` for left to right, an
            optimizer of either library, or an explicit order, as a path ``[(i, j), ...]`` or as a tree
            ``((0, 1), (2, 3))`` of operand numbers.
        time_limit: seconds for the search of an order, which tries random orders until the time is over.
        progress: ``True`` for progress bars of the search and of the slices, or a function called during the search
            with the elapsed fraction of the time and the multiplications of the best order so far.
        memory_budget: limit, in bytes, on the memory allocated at once, including the result and, for differentiated
            operands, the gradient. A contraction that needs more runs in slices of some axes, with the same result
            and gradient; `run_on` distributes slices over workers.

    Returns:
        Array with one axis per output label, of the promoted dtype of the operands.

    Raises:
        ArgumentError: the subscripts or the path are malformed.
        ShapeError: the operands do not fit the subscripts or each other.
        UnsupportedError: the result has too many axes, `optimize` needs a library that is not installed, or a memory
            budget is given for sparse matrices.
        MemoryBudgetError: even one slice needs more memory than the budget.

    See also:
        plan: the same contraction for many operands.
        contract_path: the order and its cost.

    >>> import numpy as np
    >>> einsum("ij,jk->ik", np.eye(2), np.array([[1.0, 2.0], [3.0, 4.0]]))
    Tensor([[1., 2.],
            [3., 4.]])
    >>> einsum("ii->", np.array([[1.0, 2.0], [3.0, 4.0]]))
    Tensor(5.)
    """
    subscripts, operands = _split(args)
    try:
        values = _values(operands)
    except ArgumentError:
        if not has_contractible(*operands):
            raise
        return _by_steps(subscripts, operands, optimize, time_limit, progress, memory_budget)
    specs = tuple([x.spec for x in values])
    prepared = _prepared(subscripts, specs, optimize, time_limit, progress, memory_budget)
    if len(specs) == 2 and memory_budget is None and not any(s.symbolic for s in specs):
        PAIRS.put((subscripts, *specs), prepared.op or prepared)
    if progress is True:
        with show_progress(always=True):
            return prepared.run(*values)
    return prepared.run(*values)


def _by_steps(
    subscripts: Any, operands: Sequence[Any], optimize: Any, time_limit: float | None, progress: Any, budget: int | None
) -> Array:
    """The contraction of operands some of which are no arrays."""
    if budget is not None:
        raise UnsupportedError(
            "einsum takes memory_budget= with arrays only; make sparse operands dense with todense()"
        )
    values = _values([stand_in(x) for x in operands], specs=True)
    specs = tuple([x if isinstance(x, Spec) else x.spec for x in values])
    prepared = _prepared(subscripts, specs, optimize, time_limit, progress, None)
    result: Array = prepared.run_steps([x if is_contractible(x) else v for x, v in zip(operands, values)], einsum)
    return result


@boundary
def plan(
    *args: Any,
    optimize: Any = "auto",
    time_limit: float | None = None,
    progress: bool | Progress = False,
    memory_budget: int | None = None,
) -> ContractionPlan:
    """Prepare a contraction once, to run it many times on operands with the same specs.

    Args:
        args: as in `einsum`; a `Spec` may stand for an operand.
        optimize: as in `einsum`.
        time_limit: as in `einsum`.
        progress: as in `einsum`.
        memory_budget: as in `einsum`.

    Returns:
        The plan, a function of the operands.

    Raises:
        ArgumentError: the subscripts or the path are malformed.
        ShapeError: the operands do not fit the subscripts or each other.
        UnsupportedError: the result has too many axes, or `optimize` needs a library that is not installed.
        MemoryBudgetError: even one slice needs more memory than the budget.

    >>> import numpy as np
    >>> chain = plan("ij,jk,kl->il", np.eye(2), np.eye(2), np.eye(2))
    >>> chain.path
    ((0, 1), (0, 1))
    """
    subscripts, operands = _split(args)
    specs = tuple([x if isinstance(x, Spec) else x.spec for x in _values(operands, specs=True)])
    return _prepared(subscripts, specs, optimize, time_limit, progress, memory_budget)


@boundary
def contract_path(
    *args: Any,
    optimize: Any = "auto",
    time_limit: float | None = None,
    progress: bool | Progress = False,
    memory_budget: int | None = None,
) -> tuple[list[tuple[int, ...]], PathReport]:
    """Find the order of pairwise contractions that `einsum` would use, and its cost.

    Args:
        args: as in `einsum`; a `Spec` may stand for an operand.
        optimize: as in `einsum`.
        time_limit: as in `einsum`.
        progress: as in `einsum`.
        memory_budget: as in `einsum`.

    Returns:
        The path, in the convention of NumPy and opt_einsum, and a report that prints as a table.

    Raises:
        ArgumentError: the subscripts or the path are malformed.
        ShapeError: the operands do not fit the subscripts or each other.
        UnsupportedError: the result has too many axes, or `optimize` needs a library that is not installed.
        MemoryBudgetError: even one slice needs more memory than the budget.

    >>> from tenferro_tensor import Spec
    >>> x = Spec((100, 100), np.dtype("float64"))
    >>> print(contract_path("ij,jk,kl->il", x, x, x)[1])
    operations         4.000e+06  (one loop over all labels: 3.000e+08)
    largest value      78.1 KiB
    memory at once     ...
    <BLANKLINE>
     step  operations      result       alive  memory      kernel            contraction
        0   2.000e+06    78.1 KiB    78.1 KiB  █████       ...        0, 1: ij,jk->ik
        1   2.000e+06    78.1 KiB   156.2 KiB  ██████████  ...        2, 3: kl,ik->il
    """
    prepared = plan(*args, optimize=optimize, time_limit=time_limit, progress=progress, memory_budget=memory_budget)
    return list(prepared.path), prepared.report


def _split(args: tuple[Any, ...]) -> tuple[Any, Sequence[Any]]:
    """A hashable form of the subscripts, and the operands."""
    if not args:
        raise ArgumentError('einsum needs subscripts and operands, as in einsum("ij,jk->ik", x, y)')
    if isinstance(args[0], str):
        return args[0], args[1:]
    operands, terms, output = interleaved(args)
    for n, term in enumerate([*terms, output or []]):
        for x in term:
            if not _hashable(x):
                where = f"of operand {n}" if n < len(terms) else "of the output"
                raise ArgumentError(f"einsum: labels must be hashable, but label {x!r} {where} is not")
    return (tuple(map(tuple, terms)), None if output is None else tuple(output)), operands


def _prepared(
    subscripts: Any, specs: tuple[Spec, ...], optimize: Any, time_limit: float | None, progress: Any, budget: int | None
) -> ContractionPlan:
    # Labels and explicit orders compare by equality, as in the contraction; they may nest deeper than the stack.
    limits = None if time_limit is None and budget is None else key_of((time_limit, budget))
    key = (subscripts, specs, optimize if isinstance(optimize, (tuple, list)) else key_of(optimize), limits)
    try:
        found = PLANS.table.get(key)
    except TypeError:  # lists in an explicit order, or an unhashable optimizer
        if isinstance(optimize, (tuple, list)):
            optimize = folded(optimize, tuple)
            key = (subscripts, specs, optimize, limits)
        found = PLANS.table.get(key) if _hashable(key) else None
    if found is not None:
        return found

    def read() -> Contraction:
        return _contraction(subscripts, [s.ndim for s in specs])

    def make() -> ContractionPlan:
        return ContractionPlan(read(), specs, Search(optimize, time_limit, progress), budget)

    if any(s.symbolic for s in specs) or not _hashable(key):
        return make()  # not cached: the decisions about sizes belong to the trace
    alike = canonical(subscripts)
    if alike is None or alike == subscripts:
        return PLANS.get_or_make(key, make)
    model = PLANS.get((alike, *key[1:]))
    if model is not None:
        return PLANS.put(key, model.relabelled(read))
    return PLANS.put(key, PLANS.get_or_make((alike, *key[1:]), make))


def _hashable(x: Any) -> bool:
    try:
        hash(x)
    except TypeError:
        return False
    return True


def _contraction(subscripts: Any, ndims: list[int]) -> Contraction:
    if isinstance(subscripts, str):
        return parse(subscripts, ndims)
    terms, output = subscripts
    return build(terms, output, ndims)


def _values(operands: Sequence[Any], *, specs: bool = False) -> list[Any]:
    """Operands as tensors; Python scalars take the dtype and the device of the others."""
    values = [x if specs and isinstance(x, Spec) else _value(n, x) for n, x in enumerate(operands)]
    if any(x.__class__ in SCALARS for x in values):
        known = [x if isinstance(x, Spec) else x.spec for x in values if x.__class__ not in SCALARS]
        device = known[0].place.device if known else None
        dtype = promote(*[s.dtype for s in known]) if known else result_type(*values)
        values = [
            tensor(x, dtype=weak(x.__class__, dtype), device=device) if x.__class__ in SCALARS else x for x in values
        ]
    return values


def _value(n: int, x: Any) -> Any:
    if isinstance(x, Array) or x.__class__ in SCALARS:
        return x
    if isinstance(x, (np.ndarray, np.generic)):
        return tensor(x)
    remedy = "give its Spec, as of an array" if is_contractible(x) else "convert it with asarray()"
    raise ArgumentError(f"einsum: operand {n} is a {type(x).__name__}, not a tensor; {remedy}", operand=n)
