"""`scan`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import nullcontext
from typing import TYPE_CHECKING, Any, Final, overload

from tenferro_runtime.control_flow import primitives
from tenferro_runtime.control_flow._agreement import StructureError, in_kind, require_tree, same_carry
from tenferro_runtime.control_flow._blocks import in_blocks, steps_of
from tenferro_runtime.control_flow._bodies import Run, closed, settled
from tenferro_runtime.control_flow._budget import budget_of, within_budget
from tenferro_runtime.control_flow._carry import Carry
from tenferro_runtime.control_flow._progress import reporting
from tenferro_runtime.control_flow._rows import rows
from tenferro_runtime.control_flow._values import LeafKind, kind_of, leaf_values, name_of, require_functions
from tenferro_runtime.ir._source import here
from tenferro_runtime.tracing._traced import is_traced
from tenferro_runtime.tracing.effects._recording import Attempt
from tenferro_runtime.trees._tree import LEAF, TreeDef, flatten, unflatten
from tenferro_tensor import SCALARS, Interval, Spec, catalog, tensor
from tenferro_tensor.functions import asarray, stack, zeros
from tenferro_tensor.operands import size_of
from tenferro_tensor_core import ArgumentError, DimLike, ShapeError, ask
from tenferro_tensor_core.tracebacks import boundary

if TYPE_CHECKING:
    from tenferro_runtime._signatures import Leaf, R, Row
    from tenferro_tensor import Array

_SURE: Final = nullcontext()


@overload
def scan(
    f: Callable[[Any, Any], tuple[Any, Row]], init: Leaf, xs: Any = ..., length: Any = ..., *, reverse: bool = ...,
    unroll: bool | int = ..., progress: bool | str = ..., memory_budget: int | None = ...,
) -> tuple[Array, Row]: ...  # fmt: skip
@overload
def scan(
    f: Callable[[Any, Any], tuple[R, Row]], init: Any, xs: Any = ..., length: Any = ..., *, reverse: bool = ...,
    unroll: bool | int = ..., progress: bool | str = ..., memory_budget: int | None = ...,
) -> tuple[R, Row]: ...  # fmt: skip
@boundary
def scan(
    f: Callable[[Any, Any], tuple[Any, Any]],
    init: Any,
    xs: Any = None,
    length: Any = None,
    *,
    reverse: bool = False,
    unroll: bool | int = False,
    progress: bool | str = False,
    memory_budget: int | None = None,
) -> tuple[Any, Any]:
    """Loop over the leading axis of arrays with a carry: ``carry, y = f(carry, x)`` for each slice; stack the ``y``.

    On concrete values, including differentiated ones, this is a Python loop. On traced values it is recorded: `f` is
    traced once, and may use values from outside. Reverse mode stores the residuals of each step, and one copy of
    residuals that are the same in all steps.

    Args:
        f: a function of carry and slice that returns a pair: a carry of the same containers, shapes and dtypes, and a
            row of any containers (``None`` for no rows).
        init: initial carry. A Python number takes the dtype of the body's result.
        xs: arrays of equal leading extent, in any containers, or ``None``.
        length: number of steps, required without `xs`.
        reverse: iterate from the last index to the first; rows keep the index of their slice.
        unroll: while tracing, ``True`` unrolls all steps instead of recording a loop; a number unrolls that many steps
            in each iteration of the recorded loop.
        progress: show a progress bar while the loop runs, compiled or not, with a given label or the name of the
            function; drawn with tqdm if it is installed. Derivatives show the forward pass.
        memory_budget: bytes that reverse mode may store: the carries before some steps, between which it recomputes
            steps as rarely as possible. The loop is then recorded also on concrete values.

    Returns:
        The last carry, and the rows stacked along a new leading axis.

    Raises:
        ArgumentError: `f` is not a function, neither `xs` nor `length` is given, `unroll` is neither a boolean nor a
            positive integer, or `memory_budget` is not a positive integer or is combined with `unroll`.
        ShapeError: leading extents differ from each other or from `length`.
        StructureError: `f` does not return a pair, or the carry changes its structure, shape or dtype.

    >>> tr.scan(lambda total, x: (total + x, total), 0.0, tr.asarray([1.0, 2.0, 3.0]))
    (Tensor(6.), Tensor([0., 1., 3.]))
    """
    require_functions("scan", f)
    count = steps_of(unroll)
    budget = budget_of("scan", memory_budget)
    require_loop("scan", count, budget)
    leaves, slices = flatten(xs)
    over = [asarray(x) for x in leaf_values(leaves, slices, "xs of scan")]
    n = length_of("scan", over, list(slices.paths()), length)
    if progress is not False:
        step, start = reporting(f, init, n, progress, _pair)
        how: Any = {"reverse": reverse, "unroll": unroll, "memory_budget": budget}
        (_, last), made = scan(step, start, unflatten(slices, over), length, **how)
        return last, made
    carry = Carry("scan", init, f)
    written_out = n.__class__ is int and (count is None or n <= count > 1)

    def in_a_program() -> tuple[Any, Any]:
        if count is None or count == 1:
            return recorded("scan", f, carry, over, slices, slice_kinds(over), n, reverse, budget)
        steps = over[0].shape[0] if over else length
        return in_blocks(scan, lambda c, x: _pair(f(c, x), f), init, unflatten(slices, over), steps, count, reverse)

    traced = budget is not None or carry.traced or any(map(is_traced, over))
    if n.__class__ is not int or (not written_out and traced):
        return in_a_program()
    if n == 0:
        return _of_no_steps(f, carry, over, slices)

    columns = [rows(x) if x.level else x for x in over]

    def body(i: int) -> Callable[[Any], tuple[Any, Any]]:
        x = unflatten(slices, [column[i] for column in columns])
        return lambda value: _pair(f(value, x), f)

    kept: list[list[Any]] = []
    tree: TreeDef = LEAF
    for i in reversed(range(n)) if reverse else range(n):
        start = list(carry.leaves)
        with Attempt() if not kept else _SURE as attempt:
            found = carry.step(body(i), unroll=written_out)
            row, now = flatten(found[0]) if found is not None else ([], LEAF)
            again = found is None or (not kept and not written_out and any(map(is_traced, row)))
            if again and attempt is not None:
                attempt.give_up()
        if again:
            carry.leaves = start
            return in_a_program()
        if kept:
            require_tree("scan", tree, "the row of the first step", now, f)
        tree = now
        kept.append(row)
    if reverse:
        kept.reverse()
    checked = [leaf_values(row, tree, "a row of scan") for row in kept]
    stacked = [stack([asarray(x) for x in column]) for column in zip(*checked, strict=True)]
    return carry.arrays(), unflatten(tree, stacked)


def require_loop(what: str, count: int | None, budget: int | None) -> None:
    """Check that steps are not unrolled under a memory budget.

    Raises:
        ArgumentError: both options are given.
    """
    if budget is not None and count != 1:
        raise ArgumentError(
            f"{what} was given a memory_budget{here()} and asked to unroll steps, whose values are all stored; "
            "leave out unroll, or memory_budget"
        )


def _pair(out: Any, f: Any) -> tuple[Any, Any]:
    if not isinstance(out, tuple) or len(out) != 2:
        seen = f"a tuple of {len(out)}" if isinstance(out, tuple) else f"a {type(out).__name__}"
        raise StructureError(
            f"scan{here()}: {name_of(f)} returned {seen}; return a pair (carry, row), with None for no row"
        )
    return out


def length_of(what: str, over: Sequence[Any], paths: Sequence[str], length: Any) -> DimLike:
    """The common leading extent of all arrays."""
    n: Any = None if length is None else size_of(what, "length", length)
    for x, path in zip(over, paths, strict=True):
        if not x.spec.shape:
            raise ShapeError(
                f"{what} goes over leading axes{here()}, but xs{path} is {x.spec!r}; close over what is the same in "
                "every step"
            )
        d = x.spec.shape[0]
        if n is None:
            n = d
        elif not ask(d, "==", n):
            said = f"length={length}" if length is not None else f"xs{paths[0]}, which has {n}"
            raise ShapeError(
                f"{what}{here()}: xs{path} has {d} slices, unlike {said}; cut them to one leading extent",
                sizes=(str(d), str(n)),
            )
    if n is None:
        both = ", or length=" if what == "scan" else ""
        raise ArgumentError(f"{what} needs arrays to go over{both}{here()}, and there are none")
    if n.__class__ is int and n < 0:
        raise ArgumentError(f"{what} cannot make {n} steps{here()}; give a length of at least 0")
    return n  # type: ignore[no-any-return]


def _of_no_steps(f: Any, carry: Carry, over: Sequence[Any], slices: TreeDef) -> tuple[Any, Any]:
    """The unchanged carry, and empty rows with the specs of a step's rows."""
    run, kinds, _, (row, tree) = _traced_body("scan", f, carry, slices, slice_kinds(over))
    run.drop()
    arrays = [in_kind(v, kind) for v, kind in zip(carry.leaves, kinds, strict=True)]
    specs = [kind_of(leaf).spec for leaf in row]
    empty = [zeros((0, *s.shape), dtype=s.dtype, device=s.place.device) for s in specs]
    return unflatten(carry.tree, arrays), unflatten(tree, empty)


def slice_kinds(over: Sequence[Any]) -> list[LeafKind]:
    """Kinds of the slices of arrays."""
    return [LeafKind(Spec(x.spec.shape[1:], x.spec.dtype, x.spec.place), None, _interval(x)) for x in over]


def _interval(x: Any) -> Interval | None:
    return x._interval() if x.spec.dtype.kind in "iu" else None


def _traced_body(
    what: str, f: Any, carry: Carry, slices: TreeDef, others: Sequence[LeafKind]
) -> tuple[Run, list[LeafKind], list[Any], tuple[list[Any], TreeDef]]:
    """Trace the body: returns the kinds of the carry, its leaves after the step, and the row with its structure."""
    count = len(carry.leaves)
    trees: list[TreeDef] = []

    def body(values: list[Any]) -> Any:
        kept, row = _pair(f(unflatten(carry.tree, values[:count]), unflatten(slices, values[count:])), f)
        leaves, tree = flatten(kept)
        require_tree(what, carry.tree, "the carry", tree, carry.f)
        outs, row_tree = flatten(row)
        trees[:] = [row_tree]
        return [*leaves, *outs]

    run, kinds = settled(what, body, [kind_of(v) for v in carry.leaves], others)
    outs = same_carry(what, list(carry.tree.paths()), kinds, run.leaves[:count], carry.f)
    return run, kinds, outs, (run.leaves[count:], trees[0])


def recorded(
    what: str,
    f: Any,
    carry: Carry,
    over: list[Any],
    slices: TreeDef,
    others: Sequence[LeafKind],
    n: DimLike,
    reverse: bool,
    budget: int | None = None,
) -> tuple[Any, Any]:
    """The loop as one operation, on concrete or traced operands.

    Args:
        what: the function that the user called.
        f: a function of carry and slices that returns the carry and a row.
        carry: initial carry.
        over: the arrays to slice.
        slices: their structure.
        others: the kinds of the slices in the body.
        n: number of steps.
        reverse: iterate from the last index to the first.
        budget: bytes that reverse mode may store.
    """
    run, kinds, outs, (row, row_tree) = _traced_body(what, f, carry, slices, others)
    results = [*outs, *[asarray(x) if x.__class__ in SCALARS else x for x in row]]
    if not results:  # the body runs for its effects only
        results = [tensor(False)]
    (program,), captured = closed((run,), (results,))
    arrays = [in_kind(v, kind) for v, kind in zip(carry.leaves, kinds, strict=True)]
    even = [x if x.spec.shape[0] is n or x.spec.shape[0] == n else _with_length(x, n) for x in over]
    count = len(arrays)
    op = primitives.scan.op(body=program, consts=len(captured), carry=count, length=n, reverse=bool(reverse))
    found = within_budget(op, [*captured, *arrays, *even], budget)
    return unflatten(carry.tree, found[:count]), unflatten(row_tree, found[count : count + len(row)])


def _with_length(x: Any, n: DimLike) -> Any:
    """An array whose leading extent was found equal to `n`."""
    return catalog.reshape(x, shape=(n, *x.spec.shape[1:]))
